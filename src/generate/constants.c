/* SPDX-License-Identifier: Apache-2.0 */
/* From plan numbers to the constants of a unit. */
#include "generate/constants.h"

#include <string.h>

static void add(struct gj_constants *constants, const char *name, long value, const char *comment)
{
    constants->items[constants->count++] = (struct gj_constant){name, NULL, value, comment};
}

static void add_text(struct gj_constants *constants, const char *name, const char *text)
{
    constants->items[constants->count++] = (struct gj_constant){name, text, 0, NULL};
}

static void add_tile(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->key;
    add(constants, "TILE_M", key->tile_m, "rows of D per CTA tile");
    add(constants, "TILE_N", key->tile_n, "columns of D per CTA tile");
    add(constants, "TILE_K", plan->tile_k, "elements of K per stage");
    add(constants, "CLUSTER_M", key->cluster_m, "CTAs of a cluster along M");
    add(constants, "CLUSTER_N", key->cluster_n, "CTAs of a cluster along N");
    add(constants, "CLUSTER_SIZE", key->cluster_m * key->cluster_n, "CTAs of a cluster");
    add(constants, "PINGPONG", key->sched == GJ_SCHED_PINGPONG, NULL);
    add(constants, "THREADS", plan->threads, "of a CTA: the load warp group and the MMA warp groups");
    add(constants, "LOAD_REGISTERS", plan->load_registers, "per thread of the load warp group");
    add(constants, "MMA_REGISTERS", plan->mma_registers, "per thread of an MMA warp group");
    add(constants, "M_BLOCKS", plan->m_blocks, "64-row blocks of a tile that one warp group computes");
    add(constants, "MMA_N", plan->mma_n, "columns of one wgmma");
    add(constants, "MMA_K", plan->mma_k, "elements of K of one wgmma");
    add(constants, "MMA_PER_STAGE", GJ_MMA_PER_STAGE, "wgmma along K in one stage");
}

static void add_memory(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->key;
    const int a_bytes = key->tile_m * GJ_STAGE_ROW_BYTES, b_bytes = key->tile_n * GJ_STAGE_ROW_BYTES;
    const int d_bytes = (int)gj_dtype_bytes(key->d.dtype);
    add(constants, "STAGES", plan->stages, "depth of the ring of A and B tiles");
    add(constants, "A_STAGE_BYTES", a_bytes, "A tile of one stage: TILE_M rows of 128 bytes");
    add(constants, "B_STAGE_BYTES", b_bytes, "B tile of one stage: TILE_N rows of 128 bytes");
    add(constants, "STAGE_BYTES", plan->stage_bytes, "what the loads of one stage deliver to a CTA");
    add(constants, "FULL_ARRIVALS", plan->full_arrivals, "the producer, with the bytes it expects");
    add(constants, "EMPTY_ARRIVALS", plan->empty_arrivals,
        "warp groups that read a stage, in all sharing CTAs");
    add(constants, "D_BYTES", d_bytes, "per element of D");
    add(constants, "D_BITS", 8 * d_bytes, NULL);
    add(constants, "SLAB_N", plan->slab_n, "columns of D that one TMA store writes, for 64 rows");
    add(constants, "SLAB_ROW_BYTES", plan->slab_n * d_bytes, "one row of a slab");
    add(constants, "TAIL_N", plan->tail_n, "columns of a tile's tail slab");
    add(constants, "TAIL_ROW_BYTES", plan->tail_n * d_bytes, "one row of a tail slab, which is not swizzled");
    add(constants, "SLAB_BYTES", plan->slab_bytes, "one slab");
    add(constants, "SLAB_BUFFERS", plan->slab_buffers, "slabs in flight per warp group");
    add(constants, "SMEM_A", plan->smem_a, "offset of the A tiles in shared memory");
    add(constants, "SMEM_B", plan->smem_b, "offset of the B tiles");
    add(constants, "SMEM_STAGING", plan->smem_staging, "offset of the slabs");
    add(constants, "FULL_BARRIERS", plan->smem_barriers,
        "offset: one per stage, open until its data is there");
    add(constants, "EMPTY_BARRIERS", plan->smem_barriers + 8 * plan->stages,
        "offset: one per stage, open until it may be overwritten");
    add(constants, "TURN_BARRIERS", plan->smem_barriers + 16 * plan->stages,
        "offset: one per MMA warp group, open until it may multiply");
}

void gj_constants_make(const struct gj_plan *plan, struct gj_constants *constants)
{
    constants->count = 0;
    add_text(constants, "KERNEL_NAME", plan->entry_name);
    add_text(constants, "A_TYPE", gj_dtype_name(plan->key.a.dtype));
    add_text(constants, "B_TYPE", gj_dtype_name(plan->key.b.dtype));
    add_text(constants, "D_TYPE", gj_dtype_name(plan->key.d.dtype));
    add_tile(plan, constants);
    add_memory(plan, constants);
}

const struct gj_constant *gj_constants_find(const struct gj_constants *constants, const char *name,
                                            size_t length)
{
    for (int i = constants->count - 1; i >= 0; i--)
        if (strncmp(constants->items[i].name, name, length) == 0 && constants->items[i].name[length] == '\0')
            return &constants->items[i];
    return NULL;
}
