// SPDX-License-Identifier: Apache-2.0
// Threads, barriers, registers and clusters. sm_90a, PTX 8.0.
#pragma once

// Address of a shared-memory object in the shared window.
DEVICE u32 shared_address(const void *object)
{
    return (u32)__cvta_generic_to_shared(object);
}

// Whole warp. True in one lane, the same each time. Tells the compiler that one thread is active, so that TMA
// instructions under it need no loop over lanes.
DEVICE bool elect_one()
{
    u32 elected;
    asm volatile(R"ptx({
        // ptx_snippets/sync.cuh elect_one
        .reg .pred leader;
        elect.sync _|leader, 0xffffffff;
        selp.b32 %0, 1, 0, leader;
        })ptx" : "=r"(elected));
    return elected != 0;
}

// `threads` threads (a multiple of 32) meet at barrier `id` (1 to 15).
DEVICE void named_barrier_sync(u32 id, u32 threads)
{
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh named_barrier_sync
        bar.sync %0, %1;
        )ptx" ::"r"(id), "r"(threads) : "memory");
}

// Writers. Orders earlier shared-memory writes of this thread before asynchronous copies that read them. The
// .shared::cta matters: without it this is a GPU-wide fence.
DEVICE void fence_proxy_async_shared()
{
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh fence_proxy_async_shared
        fence.proxy.async.shared::cta;
        )ptx" ::: "memory");
}

// Whole warp group. Gives registers back; `count` per thread remain.
template <int count> DEVICE void registers_release()
{
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh registers_release
        setmaxnreg.dec.sync.aligned.u32 %0;
        )ptx" ::"n"(count));
}

// Whole warp group. Waits until `count` registers per thread are to be had and takes them.
template <int count> DEVICE void registers_take()
{
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh registers_take
        setmaxnreg.inc.sync.aligned.u32 %0;
        )ptx" ::"n"(count));
}

// Rank of this CTA in its cluster.
DEVICE u32 cluster_rank()
{
    u32 rank;
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh cluster_rank
        mov.u32 %0, %%cluster_ctarank;
        )ptx" : "=r"(rank));
    return rank;
}

// Cluster-wide address of what lies at `address` in the CTA of this rank.
DEVICE u32 cluster_address(u32 address, u32 rank)
{
    u32 mapped;
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh cluster_address
        mapa.shared::cluster.u32 %0, %1, %2;
        )ptx" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

// All threads of the cluster meet. Relaxed: barriers made before it are published by mbarrier_init_fence.
DEVICE void cluster_sync()
{
    asm volatile(R"ptx(
        // ptx_snippets/sync.cuh cluster_sync
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.acquire.aligned;
        )ptx" ::: "memory");
}
