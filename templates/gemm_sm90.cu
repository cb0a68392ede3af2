// SPDX-License-Identifier: Apache-2.0
// D = A B^T on Hopper: persistent, warp-specialised, TMA and wgmma.
#include "templates/prelude.cuh"
#include "templates/params.h"
#include "templates/load.cuh"
#include "templates/mma.cuh"
#include "templates/epilogue.cuh.in"

// MMA warp group number `group`: multiplies and stores its share of the CTA's tiles.
DEVICE void multiply_tiles(u32 smem, struct output_maps maps, const struct gemm_params *params, u32 group,
                           u32 cta_m, u32 cta_n)
{
    const u32 thread = threadIdx.x % 128;
    const bool reports = exchanges_with(cta_m, cta_n, thread);
#if CLUSTER_SIZE > 1
    const u32 empty = cluster_address(smem + EMPTY_BARRIERS, thread % CLUSTER_SIZE);
#else
    const u32 empty = smem + EMPTY_BARRIERS;
#endif
    const u32 clusters = gridDim.x / CLUSTER_SIZE;
    struct staging out = staging_of(smem, group);
    struct ring_position ring = {0, 0};
#if PINGPONG
    // The groups take tiles in turn. Each skips the stages of the other's tiles and waits for its turn to
    // multiply: turn barrier 0 opens group 0's turns and is passed at once the first time.
    const u32 first_row = 0, first_work = blockIdx.x / CLUSTER_SIZE + group * clusters, step = 2 * clusters;
    u32 turn_parity = group ^ 1;
    if (group == 1)
        ring = ring_advance(ring, params->k_tiles);
#else
    const u32 first_row = group * (64 * M_BLOCKS), first_work = blockIdx.x / CLUSTER_SIZE, step = clusters;
#endif
#pragma unroll 1
    for (u32 work = first_work; work < params->schedule.num_tiles; work += step) {
        accumulator acc[M_BLOCKS];
#if PINGPONG
        mbarrier_wait(smem + TURN_BARRIERS + 8 * group, turn_parity);
        turn_parity ^= 1;
#endif
        ring = multiply_stages(acc, smem, first_row, ring, params->k_tiles, empty, reports);
#if PINGPONG
        if (thread % 32 == 0)
            mbarrier_arrive(smem + TURN_BARRIERS + 8 * (group ^ 1));
#endif
        finish_stages(ring, empty, reports);
#if PINGPONG
        ring = ring_advance(ring, params->k_tiles);
#endif
        const struct tile_index tile = tile_at(&params->schedule, work);
        const int row = (tile.m * CLUSTER_M + cta_m) * TILE_M + first_row;
        const int column = (tile.n * CLUSTER_N + cta_n) * TILE_N;
#pragma unroll
        for (int i = 0; i < M_BLOCKS; i++)
            store_block(acc[i], &out, maps, params, row + 64 * i, column, tile.batch);
    }
    tma_store_wait_read<0>(); // shared memory must outlive the stores that read it
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
    mbarrier_init_fence();
}

// Grid: clusters of CLUSTER_SIZE CTAs along x, any number of them. Dynamic shared memory: SMEM_BYTES.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
KERNEL_NAME(const __grid_constant__ tensor_map map_a, const __grid_constant__ tensor_map map_b,
            const __grid_constant__ tensor_map map_d, const __grid_constant__ tensor_map map_d_tail,
            const __grid_constant__ gemm_params params)
{
    extern __shared__ __align__(1024) unsigned char dynamic_smem[];
    const u32 smem = shared_address(dynamic_smem);
    const u32 warp_group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0); // uniform, and known to be
#if CLUSTER_SIZE > 1
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
        tma_prefetch_map(&map_d);
        init_barriers(smem);
    }
#if CLUSTER_SIZE > 1
    cluster_sync();
#else
    __syncthreads();
#endif
    if (warp_group == 0) {
        registers_release<LOAD_REGISTERS>();
        if (threadIdx.x < 32 && elect_one())
            load_tiles(smem, &map_a, &map_b, &params, cta_m, cta_n);
    } else {
        registers_take<MMA_REGISTERS>();
        multiply_tiles(smem, {&map_d, &map_d_tail}, &params, warp_group - 1, cta_m, cta_n);
    }
}
