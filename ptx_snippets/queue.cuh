// SPDX-License-Identifier: Apache-2.0
// Words between the CTAs of a cluster, and tickets from global memory. sm_90, PTX 8.1.
#pragma once

// One thread. Adds 1 to a counter that returns to 0 after `last`; gives the value before.
DEVICE u32 take_ticket(u32 *counter, u32 last)
{
    u32 ticket;
    asm volatile(R"ptx(
        // ptx_snippets/queue.cuh take_ticket
        atom.global.inc.u32 %0, [%1], %2;
        )ptx" : "=r"(ticket) : "l"(counter), "r"(last) : "memory");
    return ticket;
}

// One thread. Writes a word to shared memory anywhere in the cluster; arrives at a barrier of that CTA, which
// completes once the word is there. Addresses come from cluster_address.
DEVICE void send_word(u32 address, u32 barrier, u32 word)
{
    asm volatile(R"ptx(
        // ptx_snippets/queue.cuh send_word
        mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%1], 4;
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %2, [%1];
        )ptx" ::"r"(address), "r"(barrier), "r"(word) : "memory");
}

// One thread. Writes a word of this CTA's shared memory.
DEVICE void store_shared_word(u32 address, u32 word)
{
    asm volatile(R"ptx(
        // ptx_snippets/queue.cuh store_shared_word
        st.shared.u32 [%0], %1;
        )ptx" ::"r"(address), "r"(word) : "memory");
}

// Any threads. Reads a word of this CTA's shared memory.
DEVICE u32 load_shared_word(u32 address)
{
    u32 word;
    asm volatile(R"ptx(
        // ptx_snippets/queue.cuh load_shared_word
        ld.shared.u32 %0, [%1];
        )ptx" : "=r"(word) : "r"(address) : "memory");
    return word;
}
