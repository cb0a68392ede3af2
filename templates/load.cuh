// SPDX-License-Identifier: Apache-2.0
// Producer: one thread fills the ring with the A and B tiles of every tile that the cluster takes.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/tma.cuh"
#include "templates/pipeline.h"
#include "templates/tile_scheduler.h"

// Loads one stage. Row coordinates are those of this CTA's slice; a slice that other CTAs use too is sent to
// all of them, and each of them expects the bytes of the whole stage.
DEVICE void load_stage(u32 smem, u32 stage, const tensor_map *map_a, const tensor_map *map_b, int k,
                       struct tile_index tile, const struct gemm_params *params, u32 cta_m, u32 cta_n)
{
    const u32 full = smem + FULL_BARRIERS + 8 * stage;
    const u32 a = smem + SMEM_A + stage * A_STAGE_BYTES;
    const u32 b = smem + SMEM_B + stage * B_STAGE_BYTES;
    const int row_a = (tile.m * CLUSTER_M + cta_m) * TILE_M;
    const int row_b = (tile.n * CLUSTER_N + cta_n) * TILE_N;
    const int batch_a = tile.batch * params->a_batch_step;
    const int batch_b = tile.batch * params->b_batch_step;
    mbarrier_arrive_expect_tx(full, STAGE_BYTES);
#if CLUSTER_N > 1
    tma_load_3d_multicast(a + cta_n * (A_STAGE_BYTES / CLUSTER_N), map_a, full, k * TILE_K,
                          row_a + cta_n * (TILE_M / CLUSTER_N), batch_a, sharers_of_a(cta_m));
#else
    tma_load_3d(a, map_a, full, k * TILE_K, row_a, batch_a);
#endif
#if CLUSTER_M > 1
    tma_load_3d_multicast(b + cta_m * (B_STAGE_BYTES / CLUSTER_M), map_b, full, k * TILE_K,
                          row_b + cta_m * (TILE_N / CLUSTER_M), batch_b, sharers_of_b(cta_n));
#else
    tma_load_3d(b, map_b, full, k * TILE_K, row_b, batch_b);
#endif
}

// All tiles of this CTA, then waits until every stage has been released: until then other CTAs of the cluster
// may still arrive at this CTA's barriers.
DEVICE void load_tiles(u32 smem, const tensor_map *map_a, const tensor_map *map_b,
                       const struct gemm_params *params, u32 cta_m, u32 cta_n)
{
    struct ring_position ring = {0, 0};
#pragma unroll 1
    for (u32 work = blockIdx.x / CLUSTER_SIZE; work < params->schedule.num_tiles;
         work += gridDim.x / CLUSTER_SIZE) {
        const struct tile_index tile = tile_at(&params->schedule, work);
#pragma unroll 1
        for (int k = 0; k < params->k_tiles; k++) {
            mbarrier_wait(smem + EMPTY_BARRIERS + 8 * ring.stage, ring.parity ^ 1);
            load_stage(smem, ring.stage, map_a, map_b, k, tile, params, cta_m, cta_n);
            ring = ring_next(ring);
        }
    }
#pragma unroll 1
    for (u32 i = 0; i < STAGES; i++) {
        mbarrier_wait(smem + EMPTY_BARRIERS + 8 * ring.stage, ring.parity ^ 1);
        ring = ring_next(ring);
    }
}
