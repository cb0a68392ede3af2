// SPDX-License-Identifier: Apache-2.0
// Main loop: a warp group multiplies the stages of one tile into its accumulators.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/sync.cuh"
#include "ptx_snippets/wgmma.cuh.in"
#include "templates/pipeline.h"

// Descriptor of a k-major operand in 128-byte swizzle: rows of 128 bytes, groups of 8 rows 1024 bytes apart.
DEVICE u64 k_major_descriptor(u32 address)
{
    const u64 swizzle_128 = 1ull << 62, stride = (u64)(1024 >> 4) << 32, unused_leading = 1ull << 16;
    return swizzle_128 | stride | unused_leading | (address >> 4);
}

// Tells the producers that fill this CTA's stage that this warp group has read it. `empty` is the first empty
// barrier of the CTA that this thread reports to.
DEVICE void release_stage(u32 empty, u32 stage, bool reports)
{
    if (reports) {
#if CLUSTER_SIZE > 1
        mbarrier_arrive_cluster(empty + 8 * stage);
#else
        mbarrier_arrive(empty + 8 * stage);
#endif
    }
}

// Multiplies k_tiles stages from `ring` on and leaves the last group unfinished. One group stays in flight
// while the next is issued, so a stage is released one step late (waiting for each costs pingpong 22 %: H200,
// 2026-11-30). Returns the position after the tile.
DEVICE struct ring_position multiply_stages(accumulator (&acc)[M_BLOCKS], u32 smem, u32 first_row,
                                            struct ring_position ring, int k_tiles, u32 empty, bool reports)
{
    u32 unreleased = 0;
#pragma unroll 1
    for (int k = 0; k < k_tiles; k++) {
        mbarrier_wait(smem + FULL_BARRIERS + 8 * ring.stage, ring.parity);
        const u64 a = k_major_descriptor(smem + SMEM_A + ring.stage * A_STAGE_BYTES + first_row * 128);
        const u64 b = k_major_descriptor(smem + SMEM_B + ring.stage * B_STAGE_BYTES);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++)
            wgmma_stage(acc[i], a + i * (64 * 128 >> 4), b, k > 0);
        wgmma_commit();
        wgmma_wait<1>();
        release_stage(empty, unreleased, reports && k > 0);
        unreleased = ring.stage;
        ring = ring_next(ring);
    }
    return ring;
}

// Waits for the last group of multiply_stages and releases its stage, the one before `ring`.
DEVICE void finish_stages(struct ring_position ring, u32 empty, bool reports)
{
    wgmma_wait<0>();
    release_stage(empty, ring.stage == 0 ? STAGES - 1 : ring.stage - 1, reports);
}
