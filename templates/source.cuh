// SPDX-License-Identifier: Apache-2.0
// C: each MMA warp group loads the slabs of its tile by TMA through C_BUFFERS buffers of its own, the first ones before
// the main loop and each next one when a slab has been used. C may be D: a slab of C is read before the same slab of D
// is stored, and nobody else touches either.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/source.cuh.in"
#include "ptx_snippets/tma.cuh"
#include "templates/params.h"
#include "templates/scale.cuh"
#include "templates/swizzle.h"

// Tensor maps of C: slabs and tail slabs.
struct source_maps {
    const tensor_map *slab, *tail;
};

struct source {
    u32 base, barriers;      // first buffer and first barrier of the warp group
    u32 loaded, used;        // slabs since the start
    u32 slab, tail;          // where in a slab, and a tail slab, this thread's first values are
    int row, column;         // of the warp group's part of the tile
    u32 batch;
    int next_block, next_slab; // of the tile, to load next
    int blocks, slabs;         // of the tile that lie inside D, and slabs per block
    bool loads;                // this thread issues the loads
    bool wanted;               // beta is not 0
    float beta;
};

DEVICE struct source source_of(u32 smem, u32 group, u32 warp, float beta)
{
    const u32 lane = threadIdx.x % 32;
    struct source c = {};
    c.base = smem + SMEM_C + group * (C_BUFFERS * C_SLAB_BYTES);
    c.barriers = smem + C_BARRIERS + group * (8 * C_BUFFERS);
    c.slab = slab_lane_offset(warp, lane, C_BYTES, C_M_MAJOR, C_SLAB_LINE_BYTES, C_SLAB_N);
#if C_M_MAJOR
    c.tail = slab_lane_offset(warp, lane, C_BYTES, C_M_MAJOR, C_SLAB_LINE_BYTES, C_TAIL_N);
#elif C_BYTES == 2
    c.tail = (16 * warp + lane % 16) * C_TAIL_LINE_BYTES + 16 * (lane / 16);
#else
    c.tail = (16 * warp + lane / 4) * C_TAIL_LINE_BYTES + 2 * C_BYTES * (lane % 4);
#endif
    c.wanted = beta != 0;
    c.beta = c.wanted ? beta : -0.0f;
    if (!c.wanted) // zeros to read; the barrier in slab_begin makes them everybody's
        for (u32 at = 16 * (threadIdx.x % 128); at < C_BUFFERS * C_SLAB_BYTES; at += 16 * 128)
            clear_shared(c.base + at);
    return c;
}

// Address of 16 columns of a slab, and of a tail slab, `step` bytes on from the first 16.
DEVICE u32 c_slab_block(u32 at, u32 step)
{
#if C_M_MAJOR
    return at + step;
#else
    return at ^ step;
#endif
}

DEVICE u32 c_tail_block(u32 at, u32 step)
{
    return at + step;
}

// Warp 0. Loads the next slab of the tile, if there is one.
DEVICE void source_load(struct source *c, struct source_maps maps)
{
    if (c->next_block >= c->blocks || !c->wanted)
        return;
    const bool tail = c->next_slab == SLABS;
    const u32 buffer = c->loaded % C_BUFFERS;
    const u32 to = c->base + buffer * C_SLAB_BYTES, barrier = c->barriers + 8 * buffer;
    const tensor_map *const map = tail ? maps.tail : maps.slab;
    const int row = c->row + 64 * c->next_block, column = c->column + SLAB_N * c->next_slab;
    if (elect_one()) {
        mbarrier_arrive_expect_tx(barrier, 64 * C_BYTES * C_PARTS * (tail ? C_TAIL_N : C_SLAB_N));
#if C_PARTS == 2
        tma_load_4d(to, map, barrier, column / C_SHRINK, row, 0, c->batch);
        tma_load_4d(to + (tail ? C_TAIL_PART : C_SLAB_PART), map, barrier, column / C_SHRINK, row, 1, c->batch);
#elif C_M_MAJOR
        tma_load_3d(to, map, barrier, row, column, c->batch);
#else
        tma_load_3d(to, map, barrier, column, row, c->batch);
#endif
#if C_M_MAJOR && C_BYTES == 4
        tma_load_3d(to + (tail ? C_TAIL_N : C_SLAB_N) * C_SLAB_LINE_BYTES, map, barrier, row + 32, column, c->batch);
#endif
    }
    c->loaded++;
    if (++c->next_slab == c->slabs) {
        c->next_slab = 0;
        c->next_block++;
    }
}

// Warp group. A new tile: its first element for this warp group is D(row, column). Loads as many slabs as there are
// buffers.
DEVICE void source_begin(struct source *c, struct source_maps maps, const struct gemm_params *params, int row, int column,
                         u32 batch)
{
    const int rows = params->m - row, columns = params->n - column, all = SLABS + (TAIL_N > 0);
    c->row = row;
    c->column = column;
    c->batch = batch;
    c->next_block = 0;
    c->next_slab = 0;
    c->slabs = columns >= MMA_N ? all : (columns + SLAB_N - 1) / SLAB_N;
    c->slabs = c->slabs > all ? all : c->slabs;
    c->blocks = columns <= 0 || rows <= 0 ? 0 : rows >= 64 * M_BLOCKS ? M_BLOCKS : (rows + 63) / 64;
    if (c->loads) {
#pragma unroll 1
        for (u32 i = 0; i < C_BUFFERS; i++) // unrolled four times it crashes ptxas 13.0
            source_load(c, maps);
    }
}

// Warp group. Waits for the slab to use next; its address.
DEVICE u32 source_wait(struct source *c)
{
    const u32 buffer = c->used % C_BUFFERS;
    if (c->wanted)
        mbarrier_wait(c->barriers + 8 * buffer, c->used / C_BUFFERS & 1);
    return c->base + buffer * C_SLAB_BYTES;
}

// Warp group, behind the barrier that all have reached after reading the slab: its buffer takes the next load.
DEVICE void source_advance(struct source *c, struct source_maps maps)
{
    c->used++;
    if (c->loads)
        source_load(c, maps);
}
