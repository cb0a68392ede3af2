// SPDX-License-Identifier: Apache-2.0
// Producer: one thread fills the ring with the A and B tiles of every tile that the cluster takes.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#if SINGLE
#include "ptx_snippets/overlap.cuh"
#endif
#include "ptx_snippets/tma.cuh"
#include "templates/k_range.cuh"
#include "templates/pipeline.h"
#include "templates/tile_queue.cuh"

// Tensor maps of A and B.
struct input_maps {
    const tensor_map *a, *b;
};

// Loads this CTA's share of an A tile: everything, or one slice that goes to all CTAs that use the tile. A k-major
// tile is TILE_M rows of 128 bytes, cut along its rows; an m-major one is blocks of 64 rows, each TILE_K lines of
// 128 bytes, cut along K.
#if SINGLE
DEVICE void load_a(u32 a, u32 full, const tensor_map *map, int row, int k, int batch, u32 cta_m, u32 cta_n, u64 policy)
#else
DEVICE void load_a(u32 a, u32 full, const tensor_map *map, int row, int k, int batch, u32 cta_m, u32 cta_n)
#endif
{
#pragma unroll
    for (int i = 0; i < A_BOXES; i++) {
#if A_M_MAJOR
        const u32 to = a + i * 8192 + cta_n * (8192 / CLUSTER_N);
        const int x = row + 64 * i, y = k + cta_n * (ATOM_K / CLUSTER_N);
#else
        const u32 to = a + (cta_n * (TILE_M / CLUSTER_N) + i * A_BOX_ROWS) * 128;
        const int x = k, y = row + cta_n * (TILE_M / CLUSTER_N) + i * A_BOX_ROWS;
#endif
#if CLUSTER_N > 1
        tma_load_3d_multicast(to, map, full, x, y, batch, sharers_of_a(cta_m));
#elif SINGLE
        tma_load_3d_hint(to, map, full, x, y, batch, policy);
#else
        tma_load_3d(to, map, full, x, y, batch);
#endif
    }
}

// The same for B; an n-major tile is blocks of 64 columns of D.
#if HALVES
// With the gates in the first half of B's rows and the ups in the second, so are they in a tile: `to_up` rows lie between
// a gate and its up.
DEVICE void load_b(u32 b, u32 full, const tensor_map *map, int column, int k, int batch, u32 cta_m, u32 cta_n, int to_up)
#elif SINGLE
DEVICE void load_b(u32 b, u32 full, const tensor_map *map, int column, int k, int batch, u32 cta_m, u32 cta_n, u64 policy)
#else
DEVICE void load_b(u32 b, u32 full, const tensor_map *map, int column, int k, int batch, u32 cta_m, u32 cta_n)
#endif
{
#pragma unroll
    for (int i = 0; i < B_BOXES; i++) {
#if HALVES
        const int slice = cta_m * (TILE_N / 2 / CLUSTER_M) + i % (B_BOXES / 2) * B_BOX_ROWS;
        const u32 to = b + (i < B_BOXES / 2 ? slice : slice + TILE_N / 2) * 128;
        const int x = k, y = column / 2 + slice + (i < B_BOXES / 2 ? 0 : to_up);
#elif B_N_MAJOR
        const u32 to = b + i * 8192 + cta_m * (8192 / CLUSTER_M);
        const int x = column + 64 * i, y = k + cta_m * (ATOM_K / CLUSTER_M);
#else
        const u32 to = b + (cta_m * (TILE_N / CLUSTER_M) + i * B_BOX_ROWS) * 128;
        const int x = k, y = column + cta_m * (TILE_N / CLUSTER_M) + i * B_BOX_ROWS;
#endif
#if CLUSTER_M > 1
        tma_load_3d_multicast(to, map, full, x, y, batch, sharers_of_b(cta_n));
#elif SINGLE
        tma_load_3d_hint(to, map, full, x, y, batch, policy);
#else
        tma_load_3d(to, map, full, x, y, batch);
#endif
    }
}

// Waits until every stage has been released: until then other CTAs of the cluster may still arrive at this CTA's barriers.
DEVICE void wait_until_released(u32 smem, struct ring_position ring)
{
#pragma unroll 1
    for (u32 i = 0; i < STAGES; i++) {
        mbarrier_wait(smem + EMPTY_BARRIERS + 8 * ring.stage, ring.parity ^ 1);
        ring = ring_next(ring);
    }
}

#if SINGLE
// One thread for each operand. Loads A (or B) of every tile that this CTA takes. The caller's B is A where the two are
// swapped: what it is good for to know that B is constant, or read once, see enum gemm_overlap.
DEVICE void load_operand(u32 smem, struct input_maps maps, const struct gemm_params *params, bool is_a, u32 cta_m, u32 cta_n)
{
    const bool is_callers_b = is_a == (SWAP_AB == 1);
    const bool reads_once = is_callers_b && (params->overlap & overlap_b_once) != 0;
    const u64 policy = reads_once ? evict_first_policy() : evict_normal_policy();
    struct ring_position ring = {0, 0};
    struct tile_queue queue = queue_start();
    if (!is_callers_b || (params->overlap & overlap_b_constant) == 0)
        overlap_wait();
    const struct k_range range = k_range_of(params);
#pragma unroll 1
    while (queue_has_tile(&queue, params)) {
        const struct tile_index tile = queue_tile(&queue, params);
        const int row = (tile.m * CLUSTER_M + cta_m) * TILE_M, column = (tile.n * CLUSTER_N + cta_n) * TILE_N;
#pragma unroll 1
        for (int i = 0; i < range.tiles; i++) {
            const u32 full = smem + FULL_BARRIERS + 8 * ring.stage;
            const int k = range.start + i * TILE_K;
            mbarrier_wait(smem + EMPTY_BARRIERS + 8 * ring.stage, ring.parity ^ 1);
            mbarrier_arrive_expect_tx(full, is_a ? params->a_bytes : params->b_bytes);
#pragma unroll
            for (int atom = 0; atom < ATOMS; atom++) {
                if (is_a)
                    load_a(smem + SMEM_A + ring.stage * A_STAGE_BYTES + atom * A_ATOM_BYTES, full, maps.a, row,
                           k + atom * ATOM_K, tile.batch * params->a_batch_step, cta_m, cta_n, policy);
                else
                    load_b(smem + SMEM_B + ring.stage * B_STAGE_BYTES + atom * B_ATOM_BYTES, full, maps.b, column,
                           k + atom * ATOM_K, tile.batch * params->b_batch_step, cta_m, cta_n, policy);
            }
            ring = ring_next(ring);
        }
        queue_step(&queue);
    }
    if (is_callers_b)
        overlap_launch_next();
#if SHARED_TILES
    wait_until_released(smem, ring);
#endif
}
#else
// Loads one stage. Whoever sends the data, every CTA expects the bytes of its whole stage.
DEVICE void load_stage(u32 smem, u32 stage, struct input_maps maps, int k, struct tile_index tile,
                       const struct gemm_params *params, u32 cta_m, u32 cta_n)
{
    const u32 full = smem + FULL_BARRIERS + 8 * stage;
    const int row = (tile.m * CLUSTER_M + cta_m) * TILE_M;
    const int column = (tile.n * CLUSTER_N + cta_n) * TILE_N;
    mbarrier_arrive_expect_tx(full, STAGE_BYTES);
    load_a(smem + SMEM_A + stage * A_STAGE_BYTES, full, maps.a, row, k, tile.batch * params->a_batch_step, cta_m, cta_n);
    load_b(smem + SMEM_B + stage * B_STAGE_BYTES, full, maps.b, column, k, tile.batch * params->b_batch_step, cta_m,
           cta_n
#if HALVES
           , params->n / 2
#endif
    );
}

// All tiles of this CTA.
DEVICE void load_tiles(u32 smem, struct input_maps maps, const struct gemm_params *params, u32 cta_m, u32 cta_n)
{
    struct ring_position ring = {0, 0};
    struct tile_queue queue = queue_start();
    const struct k_range range = k_range_of(params);
#pragma unroll 1
    while (queue_has_tile(&queue, params)) {
        const struct tile_index tile = queue_tile(&queue, params);
#pragma unroll 1
        for (int k = 0; k < range.tiles; k++) {
            mbarrier_wait(smem + EMPTY_BARRIERS + 8 * ring.stage, ring.parity ^ 1);
            load_stage(smem, ring.stage, maps, range.start + k * TILE_K, tile, params, cta_m, cta_n);
            ring = ring_next(ring);
        }
        queue_produce(&queue, smem, params, cta_rank(cta_m, cta_n));
    }
    wait_until_released(smem, ring);
    queue_finish(&queue, smem, cta_rank(cta_m, cta_n));
}
#endif
