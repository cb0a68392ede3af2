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
    const struct gj_key *const key = &plan->kernel;
    add(constants, "TILE_M", key->tile_m, "rows of D per CTA tile");
    add(constants, "TILE_N", key->tile_n, "columns of D per CTA tile");
    add(constants, "TILE_K", plan->tile_k, "elements of K per stage");
    add(constants, "CLUSTER_M", key->cluster_m, "CTAs of a cluster along M");
    add(constants, "CLUSTER_N", key->cluster_n, "CTAs of a cluster along N");
    add(constants, "CLUSTER_SIZE", key->cluster_m * key->cluster_n, "CTAs of a cluster");
    add(constants, "PINGPONG", key->sched == GJ_SCHED_PINGPONG, NULL);
    add(constants, "TILES_DYNAMIC", key->tiles == GJ_TILES_DYNAMIC, NULL);
    add(constants, "TILES_ONCE", key->tiles == GJ_TILES_ONCE, NULL);
    add(constants, "THREADS", plan->threads, "of a CTA: the load warp group and the MMA warp groups");
    add(constants, "MMA_WARP_GROUPS", plan->mma_warp_groups, "warp groups that multiply");
    add(constants, "LOAD_REGISTERS", plan->load_registers, "per thread of the load warp group");
    add(constants, "MMA_REGISTERS", plan->mma_registers, "per thread of an MMA warp group");
    add(constants, "SPLIT_N", plan->split_n, "warp groups that share a tile along its columns");
    add(constants, "M_BLOCKS", plan->m_blocks, "64-row blocks of a tile that one warp group computes");
    add(constants, "MMA_N", plan->mma_n, "columns of one wgmma");
    add(constants, "MMA_K", plan->mma_k, "elements of K of one wgmma");
    add(constants, "MMA_PER_STAGE", GJ_MMA_PER_STAGE, "wgmma along K in one stage");
}

static void add_operands(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->kernel;
    const int acc_f16 = key->acc == GJ_DTYPE_F16;
    add(constants, "AB_BYTES", (long)gj_dtype_bytes(key->a.dtype), "per element of A and B");
    add(constants, "A_M_MAJOR", key->a.major == GJ_MAJOR_M, "A's columns are contiguous, not its rows");
    add(constants, "B_N_MAJOR", key->b.major == GJ_MAJOR_N, "B's columns are contiguous, not its rows");
    add(constants, "ACC_F16", acc_f16, "accumulators are pairs of f16");
    add(constants, "ACC_REGISTERS", plan->mma_n / (acc_f16 ? 4 : 2), "registers of one accumulator block");
    add(constants, "PROMOTED", plan->promotion != GJ_PROMOTION_NONE, NULL);
    add(constants, "ALTERNATING", plan->promotion == GJ_PROMOTION_ALTERNATING, NULL);
    /* In descriptor units of 16 bytes: 32 bytes of a k-major row, or 16 lines of 128 bytes. */
    add(constants, "A_K_STEP", key->a.major == GJ_MAJOR_K ? 2 : 128,
        "from one wgmma's A to the next, 16 bytes each");
    add(constants, "B_K_STEP", key->b.major == GJ_MAJOR_K ? 2 : 128,
        "from one wgmma's B to the next, 16 bytes each");
    const int scaled = key->alpha != GJ_SCALAR_ONE, has_c = key->c.dtype != GJ_DTYPE_NONE;
    add(constants, "SCALED", scaled, NULL);
    add(constants, "ALPHA_DEVICE", key->alpha == GJ_SCALAR_DEVICE, NULL);
    add(constants, "BETA_HOST", key->beta == GJ_SCALAR_HOST, NULL);
    add(constants, "BETA_DEVICE", key->beta == GJ_SCALAR_DEVICE, NULL);
    add(constants, "HAS_C", has_c, NULL);
    add(constants, "PLAIN", !scaled && !has_c && !acc_f16, NULL);
}

static void add_stages(const struct gj_plan *plan, struct gj_constants *constants)
{
    add(constants, "STAGES", plan->stages, "depth of the ring of A and B tiles");
    add(constants, "A_STAGE_BYTES", plan->a_stage_bytes, "A tile of one stage");
    add(constants, "B_STAGE_BYTES", plan->b_stage_bytes, "B tile of one stage");
    add(constants, "STAGE_BYTES", plan->stage_bytes, "what the loads of one stage deliver to a CTA");
    add(constants, "A_BOXES", plan->a_boxes, "TMA boxes of a CTA's share of an A tile");
    add(constants, "B_BOXES", plan->b_boxes, "TMA boxes of a CTA's share of a B tile");
    add(constants, "A_BOX_ROWS", plan->box_a_rows, "rows (lines along K if m-major) of one box of A");
    add(constants, "B_BOX_ROWS", plan->box_b_rows, "rows (lines along K if n-major) of one box of B");
    add(constants, "FULL_ARRIVALS", plan->full_arrivals, "the producer, with the bytes it expects");
    add(constants, "EMPTY_ARRIVALS", plan->empty_arrivals,
        "warp groups that read a stage, in all sharing CTAs");
    add(constants, "QUEUE_SLOTS", GJ_QUEUE_SLOTS, "tickets on their way in a cluster");
    add(constants, "QUEUE_EMPTY_ARRIVALS", plan->queue_empty_arrivals, "readers of a ticket in the cluster");
}

/* Bytes from one block of 16 columns of a slab to the next. */
static long column_step(struct gj_format format, int line_bytes)
{
    return 16 * (format.major == GJ_MAJOR_N ? (long)gj_dtype_bytes(format.dtype) : line_bytes);
}

static void add_output(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->kernel;
    const int d_bytes = (int)gj_dtype_bytes(key->d.dtype), c_bytes = (int)gj_dtype_bytes(key->c.dtype);
    const bool d_m = key->d.major == GJ_MAJOR_M, c_m = key->c.major == GJ_MAJOR_M;
    add(constants, "D_BYTES", d_bytes, "per element of D");
    add(constants, "D_BITS", 8 * d_bytes, NULL);
    add(constants, "D_M_MAJOR", d_m, "D's columns are contiguous, not its rows");
    add(constants, "SLAB_N", plan->slab_n,
        "columns of a slab: 64 rows that the epilogue handles in one step");
    add(constants, "SLABS", plan->slab_n ? plan->mma_n / plan->slab_n : 0,
        "slabs of that width in a tile's width");
    add(constants, "TAIL_N", plan->tail_n, "columns of a tile's tail slab");
    add(constants, "D_LINE_BYTES", plan->d_line_bytes, "contiguous bytes of a slab of D");
    add(constants, "D_STEP", column_step(key->d, plan->d_line_bytes), NULL);
    add(constants, "TAIL_LINE_BYTES", d_m ? plan->d_line_bytes : plan->tail_n * d_bytes,
        "the same of a tail slab, which is not swizzled if D is n-major");
    add(constants, "SLAB_BYTES", plan->slab_bytes, "one slab of D");
    add(constants, "SLAB_BUFFERS", plan->slab_buffers, "slabs in flight per warp group");
    add(constants, "C_BYTES", c_bytes, "per element of C");
    add(constants, "C_F16", key->c.dtype == GJ_DTYPE_F16, NULL);
    add(constants, "C_M_MAJOR", c_m, "C's columns are contiguous, not its rows");
    add(constants, "C_LINE_BYTES", plan->c_line_bytes, "contiguous bytes of a slab of C");
    add(constants, "C_STEP", column_step(key->c, plan->c_line_bytes), NULL);
    add(constants, "C_TAIL_LINE_BYTES", c_m ? plan->c_line_bytes : plan->tail_n * c_bytes,
        "the same of a tail slab, which is not swizzled if C is n-major");
    add(constants, "C_SLAB_BYTES", plan->c_slab_bytes, "one slab of C");
    add(constants, "C_BUFFERS", plan->c_buffers, "slabs of C in flight per warp group");
}

static void add_offsets(const struct gj_plan *plan, struct gj_constants *constants)
{
    const int full = plan->smem_barriers, empty = full + 8 * plan->stages, turn = empty + 8 * plan->stages;
    const int c = turn + 16, queue_full = c + 8 * plan->mma_warp_groups * plan->c_buffers;
    const int queue_empty = queue_full + 8 * GJ_QUEUE_SLOTS;
    add(constants, "SMEM_A", plan->smem_a, "offset of the A tiles in shared memory");
    add(constants, "SMEM_B", plan->smem_b, "offset of the B tiles");
    add(constants, "SMEM_STAGING", plan->smem_staging, "offset of the slabs of D");
    add(constants, "SMEM_C", plan->smem_c, "offset of the slabs of C");
    add(constants, "FULL_BARRIERS", full, "offset: one per stage, open until its data is there");
    add(constants, "EMPTY_BARRIERS", empty, "offset: one per stage, open until it may be overwritten");
    add(constants, "TURN_BARRIERS", turn, "offset: one per MMA warp group, open until it may multiply");
    add(constants, "C_BARRIERS", c, "offset: one per slab of C, open until its data is there");
    add(constants, "QUEUE_FULL_BARRIERS", queue_full, "offset: one per slot, open until its ticket is there");
    add(constants, "QUEUE_EMPTY_BARRIERS", queue_empty,
        "offset: one per slot, open until all have read its ticket");
    add(constants, "SMEM_QUEUE", queue_empty + 8 * GJ_QUEUE_SLOTS, "offset of the tickets");
}

void gj_constants_make(const struct gj_plan *plan, struct gj_constants *constants)
{
    constants->count = 0;
    add_text(constants, "KERNEL_NAME", plan->entry_name);
    add_text(constants, "A_TYPE", gj_dtype_name(plan->kernel.a.dtype));
    add_text(constants, "B_TYPE", gj_dtype_name(plan->kernel.b.dtype));
    add_text(constants, "C_TYPE", gj_dtype_name(plan->kernel.c.dtype));
    add_text(constants, "D_TYPE", gj_dtype_name(plan->kernel.d.dtype));
    add_text(constants, "ACC_TYPE", gj_dtype_name(plan->kernel.acc));
    add_tile(plan, constants);
    add_operands(plan, constants);
    add_stages(plan, constants);
    add_output(plan, constants);
    add_offsets(plan, constants);
}

const struct gj_constant *gj_constants_find(const struct gj_constants *constants, const char *name,
                                            size_t length)
{
    for (int i = constants->count - 1; i >= 0; i--)
        if (strncmp(constants->items[i].name, name, length) == 0 && constants->items[i].name[length] == '\0')
            return &constants->items[i];
    return NULL;
}
