// SPDX-License-Identifier: Apache-2.0
// Main loop: a warp group multiplies the stages of one tile into its accumulators.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/sync.cuh"
#include "ptx_snippets/wgmma.cuh.in"
#include "templates/pipeline.h"

// Descriptor of an operand in 128-byte swizzle. k-major: rows of 128 bytes, groups of 8 rows 1024 bytes apart.
// m- or n-major: lines of 64 elements, groups of 8 lines (along K) 1024 bytes apart, blocks of 64 elements 8192.
DEVICE u64 operand_descriptor(u32 address)
{
    const u64 swizzle_128 = 1ull << 62, stride = (u64)(1024 >> 4) << 32, next_block = (u64)(8192 >> 4) << 16;
    return swizzle_128 | stride | next_block | ((address & 0x3ffff) >> 4); // without the CTA's rank in a cluster
}

// Tells the producers that fill this CTA's stage that this warp group has read it: wgmma is one operation of its four
// warps, so the wait of one of them covers all. `empty` is the first empty
// barrier of the CTA that this thread reports to.
DEVICE void release_stage(u32 empty, u32 stage, bool reports)
{
    if (reports) {
#if SHARED_TILES
        mbarrier_arrive_cluster(empty + 8 * stage);
#else
        mbarrier_arrive(empty + 8 * stage);
#endif
    }
}

// What a warp group's main loop works with.
struct stages {
    u32 smem;
    u32 a_offset, b_offset; // of the warp group's rows of A and columns of D in their tiles, bytes
    u32 empty;              // see release_stage
    bool reports;
    struct ring_position ring;
};

// Waits for the next stage and issues its wgmma as one group; accumulate = 0 starts from zero.
DEVICE void issue_stage(accumulator (&acc)[M_BLOCKS], const struct stages *s, bool accumulate)
{
    mbarrier_wait(s->smem + FULL_BARRIERS + 8 * s->ring.stage, s->ring.parity);
    const u64 a = operand_descriptor(s->smem + SMEM_A + s->ring.stage * A_STAGE_BYTES + s->a_offset);
    const u64 b = operand_descriptor(s->smem + SMEM_B + s->ring.stage * B_STAGE_BYTES + s->b_offset);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < M_BLOCKS; i++)
        wgmma_stage(acc[i], a + i * (8192 >> 4), b, accumulate); // 64 rows of A are 8192 bytes in either major
    wgmma_commit();
}

// Multiplies k_tiles stages and leaves the last group unfinished. One group stays in flight while the next is
// issued, so a stage is released one step late (waiting for each costs pingpong 22 %: H200, 2026-11-30).
DEVICE void multiply_stages(accumulator (&acc)[M_BLOCKS], struct stages *s, int k_tiles)
{
    u32 unreleased = 0;
#pragma unroll 1
    for (int k = 0; k < k_tiles; k++) {
        issue_stage(acc, s, k > 0);
        wgmma_wait<1>();
        release_stage(s->empty, unreleased, s->reports && k > 0);
        unreleased = s->ring.stage;
        s->ring = ring_next(s->ring);
    }
}

// Waits for the last group of multiply_stages and releases its stage.
DEVICE void finish_stages(const struct stages *s)
{
    wgmma_wait<0>();
    release_stage(s->empty, s->ring.stage == 0 ? STAGES - 1 : s->ring.stage - 1, s->reports);
}
