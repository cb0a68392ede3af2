// SPDX-License-Identifier: Apache-2.0
// Main loop for 8-bit operands with promotion: the tensor core's sums keep about 14 bits, so each stage (128 along
// K) is summed from zero and added to f32 registers.
#pragma once

#include "templates/mma.cuh"

#if ALTERNATING
// Adds a finished stage to the sum and releases it.
DEVICE void promote(accumulator (&sum)[M_BLOCKS], accumulator (&part)[M_BLOCKS], const struct stages *s, u32 stage)
{
    release_stage(s->empty, stage, s->reports);
#pragma unroll
    for (int i = 0; i < M_BLOCKS; i++)
        accumulator_add(sum[i], part[i]);
}

// Two sets of accumulators take turns, so that one stage is multiplied while the other is added (0.98 of the speed
// without promotion, where waiting for each reaches 0.83: H200, 2026-11-30).
DEVICE void multiply_promoted(accumulator (&sum)[M_BLOCKS], struct stages *s, int k_tiles)
{
    accumulator even[M_BLOCKS], odd[M_BLOCKS];
#pragma unroll
    for (int i = 0; i < M_BLOCKS; i++)
        accumulator_clear(sum[i]);
    u32 even_stage = s->ring.stage, odd_stage;
    issue_stage(even, s, false);
    s->ring = ring_next(s->ring);
    int k = 1;
#pragma unroll 1
    for (; k + 1 < k_tiles; k += 2) {
        odd_stage = s->ring.stage;
        issue_stage(odd, s, false);
        s->ring = ring_next(s->ring);
        wgmma_wait<1>();
        promote(sum, even, s, even_stage);
        even_stage = s->ring.stage;
        issue_stage(even, s, false);
        s->ring = ring_next(s->ring);
        wgmma_wait<1>();
        promote(sum, odd, s, odd_stage);
    }
    if (k < k_tiles) {
        odd_stage = s->ring.stage;
        issue_stage(odd, s, false);
        s->ring = ring_next(s->ring);
        wgmma_wait<1>();
        promote(sum, even, s, even_stage);
        wgmma_wait<0>();
        promote(sum, odd, s, odd_stage);
    } else {
        wgmma_wait<0>();
        promote(sum, even, s, even_stage);
    }
}
#else
// Stage by stage: multiply, wait, add.
DEVICE void multiply_promoted(accumulator (&sum)[M_BLOCKS], struct stages *s, int k_tiles)
{
    accumulator part[M_BLOCKS];
#pragma unroll
    for (int i = 0; i < M_BLOCKS; i++)
        accumulator_clear(sum[i]);
#pragma unroll 1
    for (int k = 0; k < k_tiles; k++) {
        issue_stage(part, s, false);
        wgmma_wait<0>();
        release_stage(s->empty, s->ring.stage, s->reports);
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++)
            accumulator_add(sum[i], part[i]);
        s->ring = ring_next(s->ring);
    }
}
#endif
