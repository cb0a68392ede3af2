/* SPDX-License-Identifier: Apache-2.0 */
/* Plan arithmetic. The rules are those of quack 0.2.0 (warp groups, register budgets, stage counts), so that
 * its stage tables serve as test vectors; the slab rule is our own. */
#include "plan/plan.h"

#include "plan/plan_name.h"

#include <stdbool.h>
#include <string.h>

static int gcd(int a, int b)
{
    while (b != 0) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Three sets of accumulators of 64 registers compile without spills at 232 (H200, 2026-11-30). */
#define ALTERNATING_MAX 192

static enum gj_bias transposed_bias(enum gj_bias bias)
{
    if (bias == GJ_BIAS_NONE)
        return bias;
    const int by_column = GJ_BIAS_COL_F32 - GJ_BIAS_ROW_F32;
    return (enum gj_bias)((int)bias + (bias >= GJ_BIAS_COL_F32 ? -by_column : by_column));
}

/* Exchanges the roles of A and B: D^T = B A^T. */
static struct gj_key swapped(const struct gj_key *key)
{
    struct gj_key swap = *key;
    swap.a = key->b;
    swap.b = key->a;
    swap.a.major = key->b.major == GJ_MAJOR_N ? GJ_MAJOR_M : key->b.major;
    swap.b.major = key->a.major == GJ_MAJOR_M ? GJ_MAJOR_N : key->a.major;
    struct gj_format *const outputs[] = {&swap.c, &swap.d, &swap.p};
    for (int i = 0; i < 3; i++)
        if (outputs[i]->dtype != GJ_DTYPE_NONE)
            outputs[i]->major = outputs[i]->major == GJ_MAJOR_N ? GJ_MAJOR_M : GJ_MAJOR_N;
    swap.bias = transposed_bias(key->bias);
    if (key->scale == GJ_SCALE_ROW || key->scale == GJ_SCALE_COL)
        swap.scale = key->scale == GJ_SCALE_ROW ? GJ_SCALE_COL : GJ_SCALE_ROW;
    return swap;
}

/* How the MMA warp groups divide a tile. Pingpong: each owns a whole one. */
static void split_tile(const struct gj_key *key, int *split_m, int *split_n)
{
    *split_m = 1;
    *split_n = 1;
    if (key->sched == GJ_SCHED_COOP) {
        if (key->tile_m == 320 || (key->tile_m == 192 && key->tile_n > 128))
            *split_n = 2;
        else if (key->tile_m == 192)
            *split_m = 3;
        else if (key->tile_m % 128 == 0)
            *split_m = 2;
    }
}

int gj_key_mma_warp_groups(const struct gj_key *kernel)
{
    int split_m, split_n;
    split_tile(kernel, &split_m, &split_n);
    return kernel->sched == GJ_SCHED_PINGPONG ? 2 : split_m * split_n;
}

static void plan_warp_groups(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    split_tile(key, &plan->split_m, &plan->split_n);
    plan->mma_warp_groups = gj_key_mma_warp_groups(key);
    plan->split_k = key->split_k == GJ_SPLIT_K_4 ? 4 : key->split_k == GJ_SPLIT_K_2 ? 2 : 1;
    plan->cluster_size = key->cluster_m * key->cluster_n * plan->split_k;
    plan->threads = GJ_WARP_GROUP * (plan->mma_warp_groups + 1);
    plan->m_blocks = key->tile_m / (GJ_MMA_M * plan->split_m);
    plan->mma_n = key->tile_n / plan->split_n;
}

/* setmaxnreg budgets: 65536 registers per SM over the CTA's threads. Two MMA warp groups: 40 + 2 x 232 = 504
 * of the 504 that 384 threads start with (168 each); from 208 accumulators on they need 240. */
static void plan_registers(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int sharing = plan->split_m * plan->split_n;
    const int acc_bits = key->acc == GJ_DTYPE_F16 ? 16 : 32;
    const int one_set = key->tile_m * key->tile_n / (GJ_WARP_GROUP * sharing) * acc_bits / 32;
    plan->acc_registers = one_set;
    if (key->fp8acc == GJ_FP8ACC_PROMOTED) {
        plan->acc_registers = 2 * one_set;
        plan->promotion = 3 * one_set <= ALTERNATING_MAX ? GJ_PROMOTION_ALTERNATING : GJ_PROMOTION_SIMPLE;
    }
    if (key->sched == GJ_SCHED_SINGLE) { /* 256 threads may have what they like, 512 on an SM 128 each */
        plan->load_registers = plan->mma_registers = key->ctas_per_sm == GJ_CTAS_PER_SM_2 ? 128 : 248;
    } else if (plan->mma_warp_groups == 3) {
        plan->load_registers = 32;
        plan->mma_registers = 160;
    } else if (plan->acc_registers >= 208) {
        plan->load_registers = 24;
        plan->mma_registers = 240;
    } else {
        plan->load_registers = 40;
        plan->mma_registers = 232;
    }
}

/* The unit of staging: as many rows as the warp groups along M cover in one step, 32 (or 16) columns. */
static void plan_epilogue_tile(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int tile_m = key->tile_m, tile_n = key->tile_n;
    if (plan->split_m > 1 && tile_m % 128 == 0) {
        plan->epi_m = gcd(128, tile_m);
        plan->epi_n = gcd(32, tile_n);
    } else if (plan->split_m > 1 && tile_m % 192 == 0) {
        plan->epi_m = gcd(192, tile_m);
        plan->epi_n = gcd(32, tile_n);
    } else {
        plan->epi_m = 64;
        const enum gj_dtype output = key->d.dtype != GJ_DTYPE_NONE ? key->d.dtype : key->p.dtype;
        plan->epi_n = gcd(gj_dtype_bytes(output) == 1 ? 64 : 32, tile_n);
    }
}

/* Bytes per element of C, D and PostAct. op=dgated sees C and D as matrices of (gate, up) pairs. */
static void plan_elements(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int pair = key->op == GJ_OP_DGATED ? 2 : 1;
    plan->c_element = pair * (int)gj_dtype_bytes(key->c.dtype);
    plan->d_element = pair * (int)gj_dtype_bytes(key->d.dtype);
    plan->p_element = (int)gj_dtype_bytes(key->p.dtype);
    plan->p_shrink = key->op == GJ_OP_GATED ? 2 : 1;
    plan->parts = key->gate == GJ_GATE_HALVES ? 2 : 1;
}

/* Bytes of one epilogue tile of D and PostAct. */
static int staging_unit(const struct gj_plan *plan)
{
    const int elements = plan->epi_m * plan->epi_n;
    return elements * plan->d_element + elements / plan->p_shrink * plan->p_element;
}

static int min_epi_stages(const struct gj_plan *plan)
{
    return plan->epi_n <= 16 && plan->kernel.sched != GJ_SCHED_SINGLE ? 4 : 2;
}

int gj_plan_smem_max(const struct gj_plan *plan)
{
    return plan->kernel.ctas_per_sm == GJ_CTAS_PER_SM_2 ? GJ_SMEM_HALF : GJ_SMEM_CTA_MAX;
}

int gj_plan_smem_for_stages(const struct gj_plan *plan, int stages)
{
    return GJ_SMEM_BARRIER_BYTES + staging_unit(plan) * min_epi_stages(plan) + plan->c_bytes +
           plan->sums_bytes + stages * plan->stage_bytes;
}

/* Boxes of one operand: k-major tiles are cut into at most 256 rows, others into blocks of 64 elements. */
static void plan_boxes(int rows, int sharers, bool k_major, int atom_k, int *boxes, int *box_rows)
{
    if (k_major) {
        const int slice = rows / sharers;
        *boxes = (slice + GJ_TMA_BOX_MAX - 1) / GJ_TMA_BOX_MAX;
        *box_rows = *boxes ? slice / *boxes : 0;
    } else {
        *boxes = (rows + 63) / 64;
        *box_rows = atom_k / sharers;
    }
}

/* A tile of one operand in an atom of a stage: rows of 128 bytes, or whole blocks of 64 elements. */
static int operand_bytes(int rows, bool k_major)
{
    return (k_major ? rows : (rows + 63) / 64 * 64) * GJ_STAGE_ROW_BYTES;
}

/* Two atoms halve the barriers per byte: 0.2 to 1 us of 9 to 13 at M <= 32 (H200, 2026-11-30), where four
 * stages of them fit. Promoted sums take one, or they would be promoted half as often. */
static int count_atoms(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int four_stages = 4 * 2 * (key->tile_m + key->tile_n) * GJ_STAGE_ROW_BYTES;
    const bool deep = key->sched == GJ_SCHED_SINGLE && plan->promotion == GJ_PROMOTION_NONE;
    return deep && four_stages <= gj_plan_smem_max(plan) ? 2 : 1;
}

/* As many A/B stages as fit beside the least staging; what is left over goes to staging. */
static void plan_stages(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const bool a_k = key->a.major == GJ_MAJOR_K, b_k = key->b.major == GJ_MAJOR_K;
    const int parts = gj_plan_has_b_halves(plan) ? 2 : 1; /* a tile of B: rows of gates, rows of ups */
    const int atom_k = GJ_STAGE_ROW_BYTES / (int)gj_dtype_bytes(key->a.dtype);
    plan->atoms = count_atoms(plan);
    plan->tile_k = plan->atoms * atom_k;
    plan->mma_k = atom_k / GJ_MMA_PER_ATOM;
    plan->a_stage_bytes = plan->atoms * operand_bytes(key->tile_m, a_k);
    plan->b_stage_bytes = plan->atoms * operand_bytes(key->tile_n, b_k);
    plan->stage_bytes = plan->a_stage_bytes + plan->b_stage_bytes;
    plan_boxes(key->tile_m, key->cluster_n, a_k, atom_k, &plan->a_boxes, &plan->box_a_rows);
    plan_boxes(key->tile_n / parts, key->cluster_m, b_k, atom_k, &plan->b_boxes, &plan->box_b_rows);
    plan->b_boxes *= parts;

    const int c_unit = plan->epi_m * plan->epi_n * plan->c_element;
    plan->epi_c_stages = c_unit ? min_epi_stages(plan) : 0;
    plan->c_bytes = c_unit * plan->epi_c_stages;
    const int unit = staging_unit(plan);
    plan->sums_bytes = (plan->split_k - 1) * key->tile_m * key->tile_n * (int)sizeof(float);
    const int left = gj_plan_smem_max(plan) - gj_plan_smem_for_stages(plan, 0);
    plan->stages = left > 0 ? left / plan->stage_bytes : 0;
    plan->epi_stages = min_epi_stages(plan);
    if (unit > 0 && left > 0)
        plan->epi_stages += (left - plan->stage_bytes * plan->stages) / unit;
    plan->staging_bytes = unit * plan->epi_stages;
}

/* Whether rows of a slab of this width are at most 128 bytes, the widest TMA swizzle, if they are contiguous.
 */
static bool row_fits(enum gj_major major, int width, int element)
{
    return major != GJ_MAJOR_N || width * element <= GJ_STAGE_ROW_BYTES;
}

/* Bytes of D and PostAct in a slab. */
static int slab_bytes(const struct gj_plan *plan, int width)
{
    return GJ_MMA_M * (width * plan->d_element + width / plan->p_shrink * plan->p_element);
}

/* Whether slabs of this width suit all outputs and C, with at least one for each MMA warp group in memory. */
static bool slab_fits(const struct gj_plan *plan, int width)
{
    const struct gj_key *const key = &plan->kernel;
    const int groups = plan->mma_warp_groups;
    return width <= plan->mma_n && row_fits(key->d.major, width, plan->d_element) &&
           row_fits(key->p.major, width / plan->p_shrink, plan->p_element) &&
           row_fits(key->c.major, width, plan->c_element) &&
           groups * slab_bytes(plan, width) <= plan->staging_bytes &&
           groups * GJ_MMA_M * width * plan->c_element <= plan->c_bytes;
}

/* Contiguous bytes of a slab: its rows if n-major, else 64 rows of a column, cut into lines of at most 128
 * bytes. */
static int line_bytes(enum gj_major major, int width, int element)
{
    const int line = (major == GJ_MAJOR_N ? width : GJ_MMA_M) * element;
    return line > GJ_STAGE_ROW_BYTES ? GJ_STAGE_ROW_BYTES : line;
}

/* The widest slab of which each warp group can own at least one, of D, PostAct and C. Wide slabs mean few
 * barriers per tile: 16-column slabs cost 1 to 40 % in the epilogue-bound range (H200, 2026-11-30). With C no
 * wider than 32 columns, so that one slab can be loaded while another is used. What a tile's width leaves
 * over is a narrower tail slab. */
static void plan_slabs(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    if (plan->d_element + plan->p_element == 0)
        return;
    const int least = 16 * plan->p_shrink;
    int width = plan->c_element == 0 ? 128 : 32;
    while (width > least && !slab_fits(plan, width))
        width /= 2;
    plan->slab_n = width;
    plan->tail_n = plan->mma_n % width;
    plan->slab_bytes = slab_bytes(plan, width);
    plan->p_offset = GJ_MMA_M * width * plan->d_element;
    plan->slab_buffers = plan->staging_bytes / (plan->mma_warp_groups * plan->slab_bytes);
    plan->d_line_bytes = line_bytes(key->d.major, width / plan->parts, plan->d_element);
    plan->p_line_bytes = line_bytes(key->p.major, width / plan->p_shrink, plan->p_element);
    if (plan->c_element == 0)
        return;
    plan->c_slab_bytes = GJ_MMA_M * width * plan->c_element;
    plan->c_buffers = plan->c_bytes / (plan->mma_warp_groups * plan->c_slab_bytes);
    plan->c_line_bytes = line_bytes(key->c.major, width / plan->parts, plan->c_element);
}

/* A stage's full barrier: the arrive.expect_tx of each load warp. Its empty barrier: one thread of each warp
 * group that reads the stage, in every CTA that this CTA's producer writes to or gets data from. A ticket's
 * empty barrier, in the first CTA of a cluster: every MMA warp of the cluster and the producers of the other
 * CTAs.
 */
static void plan_barriers(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int readers = key->sched == GJ_SCHED_PINGPONG ? 1 : plan->mma_warp_groups;
    const int ctas = key->cluster_m * key->cluster_n;
    plan->full_arrivals = key->sched == GJ_SCHED_SINGLE ? 2 : 1;
    plan->empty_arrivals = readers * (key->cluster_m + key->cluster_n - 1);
    plan->barrier_bytes = 8 * (2 * plan->stages + 2 + plan->mma_warp_groups * plan->c_buffers);
    if (plan->split_k > 1)
        plan->barrier_bytes += 8;
    if (key->tiles == GJ_TILES_DYNAMIC) {
        plan->queue_empty_arrivals = ctas * 4 * plan->mma_warp_groups + ctas - 1;
        plan->barrier_bytes += GJ_QUEUE_SLOTS * (2 * 8 + 4);
    }
}

static void plan_smem(struct gj_plan *plan)
{
    plan->smem_a = 0;
    plan->smem_b = plan->smem_a + plan->stages * plan->a_stage_bytes;
    plan->smem_staging = plan->smem_b + plan->stages * plan->b_stage_bytes;
    plan->smem_c = plan->smem_staging + plan->staging_bytes;
    plan->smem_sums = plan->smem_c + plan->c_bytes;
    plan->smem_barriers = plan->smem_sums + plan->sums_bytes;
    plan->smem_bytes = plan->smem_barriers + GJ_SMEM_BARRIER_BYTES;
}

bool gj_plan_has_pairs(const struct gj_plan *plan)
{
    return plan->kernel.op == GJ_OP_DGATED && plan->parts == 1;
}

bool gj_plan_has_b_halves(const struct gj_plan *plan)
{
    return plan->kernel.op == GJ_OP_GATED && plan->kernel.gate == GJ_GATE_HALVES;
}

bool gj_plan_is_fused(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->key;
    return key->op != GJ_OP_GEMM || key->bias != GJ_BIAS_NONE || key->scale != GJ_SCALE_NONE ||
           key->quant != GJ_QUANT_NONE;
}

void gj_plan_make_numbers(const struct gj_key *key, struct gj_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->key = *key;
    plan->kernel = key->swap_ab == GJ_SWAP_AB_YES ? swapped(key) : *key;
    plan_warp_groups(plan);
    plan_registers(plan);
    plan_elements(plan);
    plan_epilogue_tile(plan);
    plan_stages(plan);
    plan_slabs(plan);
    plan_barriers(plan);
    plan_smem(plan);
}

void gj_plan_make(const struct gj_key *key, struct gj_plan *plan)
{
    gj_plan_make_numbers(key, plan);
    gj_plan_name(key, plan->entry_name, sizeof plan->entry_name);
}
