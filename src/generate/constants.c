/* SPDX-License-Identifier: Apache-2.0 */
/* From plan numbers to the constants of a unit. */
#include "generate/constants.h"

#include "base/hash.h"

#include <string.h>

static void add(struct gj_constants *constants, const char *name, long value, const char *comment)
{
    constants->items[constants->count++] = (struct gj_constant){name, NULL, value, comment};
}

static void add_text(struct gj_constants *constants, const char *name, const char *text)
{
    constants->items[constants->count++] = (struct gj_constant){name, text, 0, NULL};
}

void gj_constants_add_text(struct gj_constants *constants, const char *name, const char *text)
{
    add_text(constants, name, text);
}

static void add_tile(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->kernel;
    add(constants, "TILE_M", key->tile_m, "rows of D per CTA tile");
    add(constants, "TILE_N", key->tile_n, "columns of D per CTA tile");
    add(constants, "TILE_K", plan->tile_k, "elements of K per stage");
    add(constants, "CLUSTER_M", key->cluster_m, "CTAs of a cluster along M");
    add(constants, "CLUSTER_N", key->cluster_n, "CTAs of a cluster along N");
    add(constants, "CLUSTER_SIZE", plan->cluster_size, "CTAs of a cluster");
    add(constants, "SHARED_TILES", key->cluster_m * key->cluster_n > 1, NULL);
    add(constants, "SPLIT_K", plan->split_k, "CTAs of a cluster that share a tile's K");
    add(constants, "CTAS_PER_SM", key->ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1, NULL);
    add(constants, "PINGPONG", key->sched == GJ_SCHED_PINGPONG, NULL);
    add(constants, "SINGLE", key->sched == GJ_SCHED_SINGLE, NULL);
    add(constants, "SWAP_AB", key->swap_ab == GJ_SWAP_AB_YES, "A is the caller's B");
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
    add(constants, "MMA_PER_ATOM", GJ_MMA_PER_ATOM, "wgmma along K in 128 bytes of it");
    add(constants, "MMA_PER_STAGE", GJ_MMA_PER_ATOM * plan->atoms, "wgmma along K in one stage");
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
    add(constants, "A_ATOM_STEP", plan->a_stage_bytes / plan->atoms / 16, "from one atom of A to the next");
    add(constants, "B_ATOM_STEP", plan->b_stage_bytes / plan->atoms / 16, "from one atom of B to the next");
    const int scaled = key->alpha != GJ_SCALAR_ONE || key->scale == GJ_SCALE_TENSOR;
    const int has_c = key->c.dtype != GJ_DTYPE_NONE;
    add(constants, "SCALED", scaled, NULL);
    add(constants, "ALPHA_HOST", key->alpha == GJ_SCALAR_HOST, NULL);
    add(constants, "ALPHA_DEVICE", key->alpha == GJ_SCALAR_DEVICE, NULL);
    add(constants, "BETA_HOST", key->beta == GJ_SCALAR_HOST, NULL);
    add(constants, "BETA_DEVICE", key->beta == GJ_SCALAR_DEVICE, NULL);
    add(constants, "HAS_C", has_c, NULL);
    const bool is_fused = gj_plan_is_fused(plan);
    add(constants, "FUSED", is_fused, NULL);
    add(constants, "PLAIN", !scaled && !has_c && !acc_f16 && !is_fused, NULL);
}

static void add_stages(const struct gj_plan *plan, struct gj_constants *constants)
{
    add(constants, "STAGES", plan->stages, "depth of the ring of A and B tiles");
    add(constants, "ATOMS", plan->atoms, "pieces of 128 bytes along K in a stage, one behind the other");
    add(constants, "ATOM_K", plan->tile_k / plan->atoms, "elements of K in one of them");
    add(constants, "A_ATOM_BYTES", plan->a_stage_bytes / plan->atoms, "A tile of one atom");
    add(constants, "B_ATOM_BYTES", plan->b_stage_bytes / plan->atoms, "B tile of one atom");
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

/* Device functions of activation.cuh, by enum gj_act. */
#define ACTIVATION(name)       \
    {                          \
        name, name "_gradient" \
    }
static const struct {
    const char *forward, *gradient;
} activations[] = {
    [GJ_ACT_NONE] = ACTIVATION("none"),
    [GJ_ACT_RELU] = ACTIVATION("relu"),
    [GJ_ACT_RELU_SQ] = ACTIVATION("relu_sq"),
    [GJ_ACT_GELU_TANH] = ACTIVATION("gelu_tanh"),
    [GJ_ACT_GELU_ERF] = ACTIVATION("gelu_erf"),
    [GJ_ACT_SILU] = ACTIVATION("silu"),
    [GJ_ACT_QUICK_GELU] = ACTIVATION("quick_gelu"),
    [GJ_ACT_SIGMOID] = ACTIVATION("sigmoid"),
    [GJ_ACT_TANH] = ACTIVATION("hyperbolic_tangent"),
    [GJ_ACT_SWIGLU] = ACTIVATION("swiglu"),
    [GJ_ACT_SWIGLU_OAI] = ACTIVATION("swiglu_oai"),
    [GJ_ACT_GEGLU] = ACTIVATION("geglu"),
    [GJ_ACT_REGLU] = ACTIVATION("reglu"),
    [GJ_ACT_GLU] = ACTIVATION("glu"),
    [GJ_ACT_OWN] = {"own_function", "own_function"},
};

/* The function of convert.cuh.in that writes 16 x 16 elements of an output. */
static const char *store_name(enum gj_dtype dtype, enum gj_major major)
{
    static const char *const names[][2] = {
        [GJ_DTYPE_NONE] = {"", ""},
        [GJ_DTYPE_F16] = {"store_f16_n", "store_f16_m"},
        [GJ_DTYPE_BF16] = {"store_bf16_n", "store_bf16_m"},
        [GJ_DTYPE_F32] = {"store_f32_n", "store_f32_m"},
        [GJ_DTYPE_E4M3] = {"store_e4m3_n", "store_e4m3_m"},
        [GJ_DTYPE_E5M2] = {"store_e5m2_n", "store_e5m2_m"},
    };
    return names[dtype][major == GJ_MAJOR_M];
}

/* An output, or C: `prefix` is D, P or C; `shrink` columns of A B^T make one of it. Names are static. */
struct matrix_names {
    const char *bytes, *m_major, *offset, *shrink, *slab_n, *tail_n, *slab_line, *tail_line, *step;
    const char *parts, *slab_part, *tail_part;
};
#define MATRIX_NAMES(X)                                                                                     \
    {                                                                                                       \
        X "_BYTES", X "_M_MAJOR", X "_OFFSET", X "_SHRINK", X "_SLAB_N", X "_TAIL_N", X "_SLAB_LINE_BYTES", \
            X "_TAIL_LINE_BYTES", X "_STEP", X "_PARTS", X "_SLAB_PART", X "_TAIL_PART"                     \
    }

static void add_matrix(const struct gj_plan *plan, struct gj_constants *constants,
                       const struct matrix_names *names, struct gj_format format, int element, int line,
                       int shrink, int parts, int offset)
{
    const bool m_major = format.major == GJ_MAJOR_M;
    const int tail = plan->tail_n / shrink;
    add(constants, names->bytes, element, "per element");
    add(constants, names->m_major, m_major, "columns are contiguous, not rows");
    add(constants, names->offset, offset, "in a slab buffer");
    add(constants, names->shrink, shrink, "columns of A B^T for one of it");
    add(constants, names->slab_n, plan->slab_n / shrink, "its columns in a slab");
    add(constants, names->tail_n, tail, "its columns in a tail slab");
    add(constants, names->slab_line, line, "its contiguous bytes in a slab");
    add(constants, names->tail_line, m_major ? line : tail * element,
        "the same of a tail slab, which is not swizzled if n-major");
    add(constants, names->step, 16 * (m_major ? line : element), NULL);
    add(constants, names->parts, parts, "of a slab: 1, or gates and ups, one behind the other");
    add(constants, names->slab_part, GJ_MMA_M * line, "bytes of the gates of a slab, before its ups");
    add(constants, names->tail_part, GJ_MMA_M * tail * element, "the same of a tail slab");
}

static void add_output(const struct gj_plan *plan, struct gj_constants *constants)
{
    static const struct matrix_names d = MATRIX_NAMES("D"), p = MATRIX_NAMES("P"), c = MATRIX_NAMES("C");
    const struct gj_key *const key = &plan->kernel;
    const int slabs = plan->slab_n ? plan->mma_n / plan->slab_n : 0;
    add(constants, "HAS_D", plan->d_element > 0, NULL);
    add(constants, "HAS_P", plan->p_element > 0, NULL);
    add(constants, "SLAB_N", plan->slab_n,
        "columns of a slab: 64 rows that the epilogue handles in one step");
    add(constants, "SLABS", slabs, "slabs of that width in a tile's width");
    add(constants, "TAIL_N", plan->tail_n, "columns of a tile's tail slab");
    add(constants, "SLAB_FIRST", 0, NULL);
    add(constants, "SLAB_COUNT", slabs, NULL);
    add(constants, "TAIL_FIRST", slabs * plan->slab_n, NULL);
    add(constants, "TAIL_COUNT", plan->tail_n > 0, NULL);
    add(constants, "SLAB_BYTES", plan->slab_bytes, "one slab of all outputs");
    add(constants, "SLAB_BUFFERS", plan->slab_buffers, "slabs in flight per warp group");
    /* With halves op=gated has one column of gates, and one of ups, for two of A B^T; op=dgated for each. */
    const int shrink = gj_plan_has_b_halves(plan) ? 2 : 1, pair = shrink == 2 ? 1 : plan->parts;
    add_matrix(plan, constants, &d, key->d, plan->d_element / pair, plan->d_line_bytes, shrink, plan->parts,
               0);
    add_matrix(plan, constants, &p, key->p, plan->p_element, plan->p_line_bytes, plan->p_shrink, 1,
               plan->p_offset);
    add_matrix(plan, constants, &c, key->c, plan->c_element / pair, plan->c_line_bytes, shrink, plan->parts,
               0);
    add(constants, "C_F16", key->c.dtype == GJ_DTYPE_F16, NULL);
    add(constants, "C_SLAB_BYTES", plan->c_slab_bytes, "one slab of C");
    add(constants, "C_BUFFERS", plan->c_buffers, "slabs of C in flight per warp group");
}

/* What is fused behind the product. */
static void add_fused(const struct gj_plan *plan, struct gj_constants *constants)
{
    const struct gj_key *const key = &plan->kernel;
    const bool by_row = key->bias >= GJ_BIAS_ROW_F32 && key->bias <= GJ_BIAS_ROW_BF16;
    const bool has_bias = key->bias != GJ_BIAS_NONE;
    const bool is_pair = gj_plan_has_pairs(plan); /* written as one word */
    const enum gj_bias kind =
        by_row || !has_bias ? key->bias : (enum gj_bias)(key->bias - GJ_BIAS_COL_F32 + GJ_BIAS_ROW_F32);
    const bool scale_row = key->scale == GJ_SCALE_ROW || key->scale == GJ_SCALE_ROW_COL;
    const bool scale_col = key->scale == GJ_SCALE_COL || key->scale == GJ_SCALE_ROW_COL;
    add(constants, "OWN", key->act == GJ_ACT_OWN, NULL);
    add(constants, "OP_ACT", key->op == GJ_OP_ACT, NULL);
    add(constants, "OP_DACT", key->op == GJ_OP_DACT, NULL);
    add(constants, "OP_GATED", key->op == GJ_OP_GATED, NULL);
    add(constants, "OP_DGATED", key->op == GJ_OP_DGATED, NULL);
    add(constants, "BACKWARD", key->op == GJ_OP_DACT || key->op == GJ_OP_DGATED, NULL);
    add(constants, "HALVES", gj_plan_has_b_halves(plan), NULL);
    add(constants, "HAS_BIAS", has_bias, NULL);
    add(constants, "BIAS_ROW", by_row, NULL);
    add(constants, "BIAS_COL", has_bias && !by_row, NULL);
    add(constants, "BIAS_BYTES", kind == GJ_BIAS_ROW_F32 ? 4 : 2, NULL);
    add(constants, "SCALE_TENSOR", key->scale == GJ_SCALE_TENSOR, NULL);
    add(constants, "SCALE_ROW", scale_row, NULL);
    add(constants, "SCALE_COL", scale_col, NULL);
    add(constants, "SCALE_VECTORS", scale_row || scale_col, NULL);
    add(constants, "VECTORS", scale_row || scale_col || has_bias, NULL);
    add(constants, "QUANT", key->quant != GJ_QUANT_NONE, NULL);
    add(constants, "AMAX", key->quant == GJ_QUANT_AMAX, NULL);
    add_text(constants, "BIAS_TYPE", kind == GJ_BIAS_ROW_F16 ? "f16" : "bf16");
    add_text(constants, "LAST", plan->p_element > 0 ? "p" : "d");
    add_text(constants, "ACTIVATION", activations[key->act].forward);
    add_text(constants, "GRADIENT", activations[key->act].gradient);
    add_text(constants, "D_STORE", store_name(is_pair ? GJ_DTYPE_F32 : key->d.dtype, key->d.major));
    add_text(constants, "P_STORE", store_name(key->p.dtype, key->p.major));
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
    add(constants, "SMEM_SUMS", plan->smem_sums, "offset of the sums of the split's other CTAs");
    add(constants, "SUMS_BYTES", plan->sums_bytes, "the sums of all of them");
    add(constants, "SUMS_BARRIER", queue_full, "offset: open until those are there"); /* no tickets then */
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
    constants->count = constants->num_indexed = 0;
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
    add_fused(plan, constants);
    add_offsets(plan, constants);
}

static bool is_named(const struct gj_constant *constant, const char *name, size_t length)
{
    return constant->name[0] == name[0] && strncmp(constant->name, name, length) == 0 &&
           constant->name[length] == '\0';
}

/* The slot of a name, with its constant's number plus one, or 0. */
static unsigned char *find_slot(const struct gj_constants *constants, const char *name, size_t length)
{
    size_t i = gj_hash64(name, length) % GJ_CONSTANTS_SLOTS;
    while (constants->slots[i] != 0 && !is_named(&constants->items[constants->slots[i] - 1], name, length))
        i = (i + 1) % GJ_CONSTANTS_SLOTS;
    return (unsigned char *)&constants->slots[i];
}

void gj_constants_index(struct gj_constants *constants)
{
    _Static_assert(GJ_CONSTANTS_MAX < 256 && 2 * GJ_CONSTANTS_MAX < GJ_CONSTANTS_SLOTS, "slots are bytes");
    memset(constants->slots, 0, sizeof constants->slots);
    for (int i = 0; i < constants->count; i++) {
        const char *const name = constants->items[i].name;
        *find_slot(constants, name, strlen(name)) = (unsigned char)(i + 1);
    }
    constants->num_indexed = constants->count;
}

const struct gj_constant *gj_constants_find(const struct gj_constants *constants, const char *name,
                                            size_t length)
{
    for (int i = constants->count - 1; i >= constants->num_indexed; i--)
        if (is_named(&constants->items[i], name, length))
            return &constants->items[i];
    const unsigned char slot = constants->num_indexed > 0 ? *find_slot(constants, name, length) : 0;
    return slot ? &constants->items[slot - 1] : NULL;
}
