// SPDX-License-Identifier: Apache-2.0
// mbarrier: phase barriers in shared memory that also count the bytes of asynchronous copies. sm_90, PTX 8.0.
#pragma once

// One thread. Prepares a barrier for `arrivals` arrivals per phase; phase 0 is open afterwards.
DEVICE void mbarrier_init(u32 barrier, u32 arrivals)
{
    asm volatile(R"ptx(
        // ptx_snippets/mbarrier.cuh mbarrier_init
        mbarrier.init.shared::cta.b64 [%0], %1;
        )ptx" ::"r"(barrier), "r"(arrivals) : "memory");
}

// The thread that initialised. Makes the barriers visible to the asynchronous proxy and to the cluster.
DEVICE void mbarrier_init_fence()
{
    asm volatile(R"ptx(
        // ptx_snippets/mbarrier.cuh mbarrier_init_fence
        fence.mbarrier_init.release.cluster;
        )ptx" ::: "memory");
}

// One thread. Arrives and announces `bytes` that copies will add to the current phase.
DEVICE void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes)
{
    asm volatile(R"ptx(
        // ptx_snippets/mbarrier.cuh mbarrier_arrive_expect_tx
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;
        )ptx" ::"r"(barrier), "r"(bytes) : "memory");
}

// One thread. Arrives at a barrier of this CTA (release, CTA scope).
DEVICE void mbarrier_arrive(u32 barrier)
{
    asm volatile(R"ptx(
        // ptx_snippets/mbarrier.cuh mbarrier_arrive
        mbarrier.arrive.shared::cta.b64 _, [%0];
        )ptx" ::"r"(barrier) : "memory");
}

// One thread. Arrives at a barrier anywhere in the cluster; `barrier` comes from cluster_address. The default
// semantics are wanted: .release.cluster costs 25 to 57 % of the whole kernel (H200, 2026-11-30).
DEVICE void mbarrier_arrive_cluster(u32 barrier)
{
    asm volatile(R"ptx(
        // ptx_snippets/mbarrier.cuh mbarrier_arrive_cluster
        mbarrier.arrive.shared::cluster.b64 _, [%0];
        )ptx" ::"r"(barrier) : "memory");
}

// Any threads. Waits until the phase with this parity has completed (acquire, CTA scope). A fresh barrier
// counts as having completed parity 1.
DEVICE void mbarrier_wait(u32 barrier, u32 parity)
{
    asm volatile(R"ptx({
        // ptx_snippets/mbarrier.cuh mbarrier_wait
        .reg .pred done;
        AGAIN:
        mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;
        @done bra DONE;
        bra AGAIN;
        DONE:
        })ptx" ::"r"(barrier), "r"(parity) : "memory");
}
