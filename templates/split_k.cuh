// SPDX-License-Identifier: Apache-2.0
// A tile whose K is split over the CTAs of a cluster: all send their sums to the first one, which adds them up in the
// order of their ranks. Each CTA has one tile, so that nothing is sent twice.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/split_k.cuh.in"
#include "ptx_snippets/sync.cuh"

// One thread, behind the initialisation of the barriers.
DEVICE void expect_sums(u32 smem, u32 rank)
{
    if (rank == 0)
        mbarrier_arrive_expect_tx(smem + SUMS_BARRIER, SUMS_BYTES);
}

// MMA warp group. Whether this CTA has the whole sums now.
DEVICE bool collect_sums(accumulator (&acc)[M_BLOCKS], u32 smem, u32 rank)
{
    constexpr u32 block = 64 * MMA_N * 4, one_cta = M_BLOCKS * block;
    const u32 at = smem + SMEM_SUMS + 16 * (threadIdx.x % 128);
    cluster_wait(); // the first CTA's barriers are made
    if (rank > 0) {
        const u32 to = cluster_address(at + (rank - 1) * one_cta, 0), barrier = cluster_address(smem + SUMS_BARRIER, 0);
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++)
            send_accumulator(to + i * block, barrier, acc[i]);
        return false;
    }
    mbarrier_wait_cluster(smem + SUMS_BARRIER, 0);
#pragma unroll
    for (int i = 0; i < M_BLOCKS; i++) {
#pragma unroll 1
        for (u32 r = 1; r < SPLIT_K; r++)
            accumulator_add(acc[i], load_accumulator(at + (r - 1) * one_cta + i * block));
    }
    return true;
}
