// SPDX-License-Identifier: Apache-2.0
// D = alpha A B^T + beta C on Hopper, and what is fused behind it: persistent, warp-specialised, TMA and wgmma.
#include "templates/prelude.cuh"
#include "templates/params.h"
#include "templates/load.cuh"
#if PROMOTED
#include "templates/mma_promoted.cuh"
#else
#include "templates/mma.cuh"
#endif
#if SCALED || HAS_C
#include "templates/scale.cuh"
#endif
#if SPLIT_K > 1
#include "templates/split_k.cuh"
#endif
#include "templates/epilogue.cuh.in"

// MMA warp group number `group`: multiplies and stores its share of the CTA's tiles. Pingpong: the two groups take
// tiles in turn, and turn barrier g is open until group g may multiply.
DEVICE void multiply_tiles(u32 smem, const struct outputs &to, u32 group, u32 cta_m, u32 cta_n
#if HAS_C
                           , struct source_maps source_maps
#endif
                           )
{
    const struct gemm_params *const params = to.params;
    const u32 thread = threadIdx.x % 128;
    struct stages s;
    s.smem = smem;
    s.reports = exchanges_with(cta_m, cta_n, thread);
#if SHARED_TILES
    s.empty = cluster_address(smem + EMPTY_BARRIERS, thread % CLUSTER_SIZE);
#else
    s.empty = smem + EMPTY_BARRIERS;
#endif
    s.ring = {0, 0};
#if SPLIT_N > 1
    const u32 first_row = 0, first_column = group * MMA_N;
    s.a_offset = 0;
    s.b_offset = first_column * 128; // 64 columns are 8192 bytes in either major
#elif PINGPONG
    const u32 first_row = 0, first_column = 0;
    s.a_offset = 0;
    s.b_offset = 0;
#else
    const u32 first_row = group * (64 * M_BLOCKS), first_column = 0;
    s.a_offset = first_row * 128;
    s.b_offset = 0;
#endif
    struct staging out = staging_of(smem, group);
#if QUANT
    out.quant_scale = *to.fused->quant_scale;
#endif
#if SCALED || HAS_C
    const struct scalars scalars = scalars_of(params);
#endif
#if HAS_C
    struct source source = source_of(smem, group, out.warp, scalars.beta);
#if SPLIT_K > 1
    source.loads = out.warp == 0 && cluster_rank() == 0;
#else
    source.loads = out.warp == 0;
#endif
#endif
    struct tile_queue queue = queue_start();
    const int k_tiles = k_range_of(params).tiles;
#if PINGPONG
    u32 turn_parity = group ^ 1; // the first turn of group 0 is open from the start
    if (group == 1) {
        queue_next(&queue, smem);
        s.ring = ring_advance(s.ring, k_tiles);
    }
#endif
#pragma unroll 1
    while (queue_has_tile(&queue, params)) {
        const struct tile_index tile = queue_tile(&queue, params);
        const int row = (tile.m * CLUSTER_M + cta_m) * TILE_M + first_row;
        const int column = (tile.n * CLUSTER_N + cta_n) * TILE_N + first_column;
        accumulator acc[M_BLOCKS];
#if SCALE_TENSOR
        const float alpha = scalars.alpha * tensor_factor(to.fused, tile.batch);
#elif SCALED
        const float alpha = scalars.alpha;
#endif
#if HAS_C
        source_begin(&source, source_maps, params, row, column, tile.batch * params->c_batch_step);
#endif
#if PINGPONG
        mbarrier_wait(smem + TURN_BARRIERS + 8 * group, turn_parity);
        turn_parity ^= 1;
#endif
#if PROMOTED
        multiply_promoted(acc, &s, k_tiles);
#else
        multiply_stages(acc, &s, k_tiles);
#endif
#if PINGPONG
        if (thread % 32 == 0)
            mbarrier_arrive(smem + TURN_BARRIERS + 8 * (group ^ 1));
#endif
#if !PROMOTED
        finish_stages(&s);
#endif
#if PINGPONG
        s.ring = ring_advance(s.ring, k_tiles); // the other group's tile
#endif
#if SPLIT_K > 1
        if (!collect_sums(acc, smem, cluster_rank()))
            return;
#endif
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++)
            store_block(acc[i], &out, &to, row + 64 * i, column, tile.batch
#if HAS_C
                        , &source, source_maps
#endif
#if SCALED
                        , alpha
#endif
            );
        queue_next(&queue, smem);
#if PINGPONG
        if (queue_has_tile(&queue, params)) // that was the other group's tile
            queue_next(&queue, smem);
#endif
    }
    tma_store_wait_read<0>(); // shared memory must outlive the stores that read it
#if AMAX
    publish_amax(out.amax, to.fused);
#endif
}

// One thread. Every barrier of the CTA.
DEVICE void init_barriers(u32 smem)
{
    for (u32 stage = 0; stage < STAGES; stage++) {
        mbarrier_init(smem + FULL_BARRIERS + 8 * stage, FULL_ARRIVALS);
        mbarrier_init(smem + EMPTY_BARRIERS + 8 * stage, EMPTY_ARRIVALS);
    }
#if PINGPONG
    mbarrier_init(smem + TURN_BARRIERS, 4); // one arrival per warp of the other group
    mbarrier_init(smem + TURN_BARRIERS + 8, 4);
#endif
#if HAS_C
    for (u32 i = 0; i < MMA_WARP_GROUPS * C_BUFFERS; i++)
        mbarrier_init(smem + C_BARRIERS + 8 * i, 1);
#endif
#if SPLIT_K > 1
    mbarrier_init(smem + SUMS_BARRIER, 1);
#endif
#if TILES_DYNAMIC
    for (u32 slot = 0; slot < QUEUE_SLOTS; slot++) {
        mbarrier_init(smem + QUEUE_FULL_BARRIERS + 8 * slot, 1);
        mbarrier_init(smem + QUEUE_EMPTY_BARRIERS + 8 * slot, QUEUE_EMPTY_ARRIVALS);
    }
#endif
    mbarrier_init_fence();
}

// Grid: clusters of CLUSTER_SIZE CTAs along x, at most one per cluster tile; with tiles=once exactly that many. Dynamic shared
// memory: the bytes that the plan above says.
#if CTAS_PER_SM == 2
extern "C" __global__ void __launch_bounds__(THREADS, 2)
#else
extern "C" __global__ void __launch_bounds__(THREADS, 1)
#endif
KERNEL_NAME(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b,
#if HAS_D
            const __grid_constant__ tensor_map map_d, const __grid_constant__ tensor_map map_d_tail,
#endif
#if HAS_C
            const __grid_constant__ tensor_map map_c, const __grid_constant__ tensor_map map_c_tail,
#endif
#if HAS_P
            const __grid_constant__ tensor_map map_p, const __grid_constant__ tensor_map map_p_tail,
#endif
#if FUSED
            const __grid_constant__ fused_params fused,
#endif
            const __grid_constant__ gemm_params params)
{
    extern __shared__ __align__(1024) unsigned char dynamic_smem[];
    const u32 smem = shared_address(dynamic_smem);
    const u32 warp_group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0); // uniform, and known to be
#if SHARED_TILES
    const u32 rank = cluster_rank();
    const u32 cta_m = rank % CLUSTER_M, cta_n = rank / CLUSTER_M;
#else
    const u32 cta_m = 0, cta_n = 0;
#endif
    if (threadIdx.x == 0) {
        if (smem % 1024 != 0)
            __trap(); // the swizzle arithmetic needs it
        tma_prefetch_map(&map_a);
        tma_prefetch_map(&map_b);
#if HAS_D
        tma_prefetch_map(&map_d);
#endif
#if HAS_P
        tma_prefetch_map(&map_p);
#endif
        init_barriers(smem);
#if SPLIT_K > 1
        expect_sums(smem, cluster_rank());
#endif
#if SINGLE
        if (params.overlap & overlap_early)
            overlap_launch_next();
#endif
    }
#if SHARED_TILES
    cluster_sync();
#else
    __syncthreads();
#endif
#if SPLIT_K > 1
    cluster_arrive();
#endif
    if (warp_group == 0) {
#if SINGLE
        const u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
        if (warp < 2 && elect_one())
            load_operand(smem, {&map_a, &map_b}, &params, warp == 0, cta_m, cta_n);
#if SPLIT_K > 1
        __syncwarp();
        cluster_wait(); // whoever arrives also waits
#endif
#else
        registers_release<LOAD_REGISTERS>();
        if (threadIdx.x < 32 && elect_one())
            load_tiles(smem, {&map_a, &map_b}, &params, cta_m, cta_n);
#endif
    } else {
#if SINGLE
        overlap_wait();
#else
        registers_take<MMA_REGISTERS>();
#endif
        struct outputs to;
        to.params = &params;
#if HAS_D
        to.d = {&map_d, &map_d_tail};
#endif
#if HAS_P
        to.p = {&map_p, &map_p_tail};
#endif
#if FUSED
        to.fused = &fused;
#endif
        multiply_tiles(smem, to, warp_group - 1, cta_m, cta_n
#if HAS_C
                       , {&map_c, &map_c_tail}
#endif
        );
    }
}
