/* SPDX-License-Identifier: Apache-2.0 */
/* Plan arithmetic. The rules are those of quack 0.2.0 (warp groups, register budgets, stage counts), so that
 * its stage tables serve as test vectors; the slab rule is our own. */
#include "plan/plan.h"

#include <stdbool.h>
#include <stdio.h>
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
    return swap;
}

/* How the MMA warp groups divide a tile. Pingpong: each owns a whole one. */
static void plan_warp_groups(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    plan->split_m = 1;
    plan->split_n = 1;
    if (key->sched == GJ_SCHED_COOP) {
        if (key->tile_m == 320 || (key->tile_m == 192 && key->tile_n > 128))
            plan->split_n = 2;
        else if (key->tile_m == 192)
            plan->split_m = 3;
        else if (key->tile_m % 128 == 0)
            plan->split_m = 2;
    }
    plan->mma_warp_groups = key->sched == GJ_SCHED_PINGPONG ? 2 : plan->split_m * plan->split_n;
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
    if (plan->mma_warp_groups == 3) {
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
        plan->epi_n = gcd(gj_dtype_bytes(key->d.dtype) == 1 ? 64 : 32, tile_n);
    }
}

/* Bytes of one epilogue tile of D and PostAct. */
static int staging_unit(const struct gj_plan *plan)
{
    const int elements = plan->epi_m * plan->epi_n;
    return elements * (int)(gj_dtype_bytes(plan->kernel.d.dtype) + gj_dtype_bytes(plan->kernel.p.dtype));
}

static int min_epi_stages(const struct gj_plan *plan)
{
    return plan->epi_n <= 16 ? 4 : 2;
}

int gj_plan_smem_for_stages(const struct gj_plan *plan, int stages)
{
    return GJ_SMEM_BARRIER_BYTES + staging_unit(plan) * min_epi_stages(plan) + plan->c_bytes +
           stages * plan->stage_bytes;
}

/* Boxes of one operand: k-major tiles are cut into at most 256 rows, others into blocks of 64 elements. */
static void plan_boxes(int rows, int sharers, bool k_major, int tile_k, int *boxes, int *box_rows)
{
    if (k_major) {
        const int slice = rows / sharers;
        *boxes = (slice + GJ_TMA_BOX_MAX - 1) / GJ_TMA_BOX_MAX;
        *box_rows = *boxes ? slice / *boxes : 0;
    } else {
        *boxes = (rows + 63) / 64;
        *box_rows = tile_k / sharers;
    }
}

/* A tile of one operand in a stage: rows of 128 bytes, or whole blocks of 64 elements. */
static int operand_bytes(int rows, bool k_major)
{
    return (k_major ? rows : (rows + 63) / 64 * 64) * GJ_STAGE_ROW_BYTES;
}

/* As many A/B stages as fit beside the least staging; what is left over goes to staging. */
static void plan_stages(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const bool a_k = key->a.major == GJ_MAJOR_K, b_k = key->b.major == GJ_MAJOR_K;
    plan->tile_k = GJ_STAGE_ROW_BYTES / (int)gj_dtype_bytes(key->a.dtype);
    plan->mma_k = plan->tile_k / GJ_MMA_PER_STAGE;
    plan->a_stage_bytes = operand_bytes(key->tile_m, a_k);
    plan->b_stage_bytes = operand_bytes(key->tile_n, b_k);
    plan->stage_bytes = plan->a_stage_bytes + plan->b_stage_bytes;
    plan_boxes(key->tile_m, key->cluster_n, a_k, plan->tile_k, &plan->a_boxes, &plan->box_a_rows);
    plan_boxes(key->tile_n, key->cluster_m, b_k, plan->tile_k, &plan->b_boxes, &plan->box_b_rows);

    const int c_unit = plan->epi_m * plan->epi_n * (int)gj_dtype_bytes(key->c.dtype);
    plan->epi_c_stages = c_unit ? min_epi_stages(plan) : 0;
    plan->c_bytes = c_unit * plan->epi_c_stages;
    const int unit = staging_unit(plan);
    const int left = GJ_SMEM_CTA_MAX - gj_plan_smem_for_stages(plan, 0);
    plan->stages = left > 0 ? left / plan->stage_bytes : 0;
    plan->epi_stages = min_epi_stages(plan);
    if (unit > 0 && left > 0)
        plan->epi_stages += (left - plan->stage_bytes * plan->stages) / unit;
    plan->staging_bytes = unit * plan->epi_stages;
}

/* Whether slabs of this width suit an output: rows of at most 128 bytes (the widest TMA swizzle) if n-major,
 * and at least one slab of memory for each MMA warp group. */
static bool slab_fits(const struct gj_plan *plan, struct gj_format format, int width, int memory)
{
    const int bytes = (int)gj_dtype_bytes(format.dtype);
    return (format.major != GJ_MAJOR_N || width * bytes <= GJ_STAGE_ROW_BYTES) &&
           plan->mma_warp_groups * GJ_MMA_M * width * bytes <= memory;
}

/* Contiguous bytes of a slab: its rows if n-major, else 64 rows of a column, cut into lines of at most 128
 * bytes. */
static int line_bytes(struct gj_format format, int width)
{
    const int bytes = (int)gj_dtype_bytes(format.dtype);
    const int line = (format.major == GJ_MAJOR_N ? width : GJ_MMA_M) * bytes;
    return line > GJ_STAGE_ROW_BYTES ? GJ_STAGE_ROW_BYTES : line;
}

/* The widest slab of which each warp group can own at least one, of D and of C. Wide slabs mean few barriers
 * per tile: 16-column slabs cost 1 to 40 % in the epilogue-bound range (H200, 2026-11-30). With C no wider
 * than 32 columns, so that one slab can be loaded while another is used. What a tile's width leaves over is a
 * narrower tail slab. */
static void plan_slabs(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    if (key->d.dtype == GJ_DTYPE_NONE)
        return;
    int width = key->c.dtype == GJ_DTYPE_NONE ? 128 : 32;
    while (width > 16 && (width > plan->mma_n || !slab_fits(plan, key->d, width, plan->staging_bytes) ||
                          (plan->c_bytes > 0 && !slab_fits(plan, key->c, width, plan->c_bytes))))
        width /= 2;
    plan->slab_n = width;
    plan->tail_n = plan->mma_n % width;
    plan->slab_bytes = GJ_MMA_M * width * (int)gj_dtype_bytes(key->d.dtype);
    plan->slab_buffers = plan->staging_bytes / (plan->mma_warp_groups * plan->slab_bytes);
    plan->d_line_bytes = line_bytes(key->d, width);
    if (key->c.dtype == GJ_DTYPE_NONE)
        return;
    plan->c_slab_bytes = GJ_MMA_M * width * (int)gj_dtype_bytes(key->c.dtype);
    plan->c_buffers = plan->c_bytes / (plan->mma_warp_groups * plan->c_slab_bytes);
    plan->c_line_bytes = line_bytes(key->c, width);
}

/* A stage's full barrier: the producer's arrive.expect_tx. Its empty barrier: one thread of each warp group
 * that reads the stage, in every CTA that this CTA's producer writes to or gets data from. A ticket's empty
 * barrier, in the first CTA of a cluster: every MMA warp of the cluster and the producers of the other CTAs.
 */
static void plan_barriers(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int readers = key->sched == GJ_SCHED_PINGPONG ? 1 : plan->mma_warp_groups;
    const int ctas = key->cluster_m * key->cluster_n;
    plan->full_arrivals = 1;
    plan->empty_arrivals = readers * (key->cluster_m + key->cluster_n - 1);
    plan->barrier_bytes = 8 * (2 * plan->stages + 2 + plan->mma_warp_groups * plan->c_buffers);
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
    plan->smem_barriers = plan->smem_c + plan->c_bytes;
    plan->smem_bytes = plan->smem_barriers + GJ_SMEM_BARRIER_BYTES;
}

static const char *major_letter(enum gj_major major)
{
    return major == GJ_MAJOR_K ? "k" : major == GJ_MAJOR_M ? "m" : "n";
}

/* Appends "_NAMEtype+major" for an operand that is there. */
static void name_operand(struct gj_strbuf *name, const char *operand, struct gj_format format)
{
    if (format.dtype != GJ_DTYPE_NONE)
        gj_strbuf_printf(name, "_%s_%s%s", operand, gj_dtype_name(format.dtype), major_letter(format.major));
}

/* The kernel's name spells the key, so that a profiler line explains itself; what has its usual value is left
 * out. */
static void plan_entry_name(struct gj_plan *plan)
{
    static const char *const modes[] = {"none", "one", "host", "device"};
    static const char *const tiles[] = {"", "_dynamic", "_once"};
    const struct gj_key *const key = &plan->key;
    struct gj_strbuf name = {0};
    gj_strbuf_puts(&name, "gj_gemm_sm90");
    name_operand(&name, "a", key->a);
    name_operand(&name, "b", key->b);
    name_operand(&name, "c", key->c);
    name_operand(&name, "d", key->d);
    if (key->acc != GJ_DTYPE_F32)
        gj_strbuf_printf(&name, "_acc_%s", gj_dtype_name(key->acc));
    if (key->alpha != GJ_SCALAR_ONE)
        gj_strbuf_printf(&name, "_alpha_%s", modes[key->alpha]);
    if (key->beta != GJ_SCALAR_NONE && key->beta != GJ_SCALAR_ONE)
        gj_strbuf_printf(&name, "_beta_%s", modes[key->beta]);
    if (key->fp8acc != GJ_FP8ACC_NONE)
        gj_strbuf_puts(&name, key->fp8acc == GJ_FP8ACC_FAST ? "_fast" : "_promoted");
    gj_strbuf_printf(&name, "_%dx%d_c%dx%d_%s%s%s", key->tile_m, key->tile_n, key->cluster_m, key->cluster_n,
                     key->sched == GJ_SCHED_PINGPONG ? "pingpong" : "coop", tiles[key->tiles],
                     key->swap_ab == GJ_SWAP_AB_YES ? "_swap" : "");
    snprintf(plan->entry_name, sizeof plan->entry_name, "%s", name.text ? name.text : "");
    gj_strbuf_free(&name);
}

void gj_plan_make_numbers(const struct gj_key *key, struct gj_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->key = *key;
    plan->kernel = key->swap_ab == GJ_SWAP_AB_YES ? swapped(key) : *key;
    plan_warp_groups(plan);
    plan_registers(plan);
    plan_epilogue_tile(plan);
    plan_stages(plan);
    plan_slabs(plan);
    plan_barriers(plan);
    plan_smem(plan);
}

void gj_plan_make(const struct gj_key *key, struct gj_plan *plan)
{
    gj_plan_make_numbers(key, plan);
    plan_entry_name(plan);
}
