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

/* How the MMA warp groups divide a tile. Pingpong: each owns a whole one. */
static void plan_warp_groups(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->key;
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
    const struct gj_key *const key = &plan->key;
    const int sharing = plan->split_m * plan->split_n;
    plan->acc_registers = key->tile_m * key->tile_n / (GJ_WARP_GROUP * sharing);
    if (key->fp8acc == GJ_FP8ACC_PROMOTED)
        plan->acc_registers *= 2;
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
    const struct gj_key *const key = &plan->key;
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
    return elements * (int)(gj_dtype_bytes(plan->key.d.dtype) + gj_dtype_bytes(plan->key.p.dtype));
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

/* As many A/B stages as fit beside the least staging; what is left over goes to staging. */
static void plan_stages(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->key;
    plan->tile_k = GJ_STAGE_ROW_BYTES / (int)gj_dtype_bytes(key->a.dtype);
    plan->mma_k = plan->tile_k / GJ_MMA_PER_STAGE;
    plan->stage_bytes = (key->tile_m + key->tile_n) * GJ_STAGE_ROW_BYTES;
    plan->box_a_rows = key->tile_m / key->cluster_n;
    plan->box_b_rows = key->tile_n / key->cluster_m;

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

/* The widest slab of which each warp group can own at least one: rows of 128, 64 or 32 bytes (the TMA
 * swizzles). Wide slabs mean few barriers per tile: 16-column slabs cost 1 to 40 % in the epilogue-bound
 * range (H200, 2026-11-30). What a tile's width leaves over is one narrower tail slab. */
static void plan_slabs(struct gj_plan *plan)
{
    const int bytes = (int)gj_dtype_bytes(plan->key.d.dtype);
    if (bytes == 0)
        return;
    int width = GJ_STAGE_ROW_BYTES / bytes;
    while (width > 16 &&
           (width > plan->mma_n || plan->staging_bytes < plan->mma_warp_groups * GJ_MMA_M * width * bytes))
        width /= 2;
    plan->slab_n = width;
    plan->tail_n = plan->mma_n % width;
    plan->slab_bytes = GJ_MMA_M * width * bytes;
    plan->slab_buffers = plan->staging_bytes / (plan->mma_warp_groups * plan->slab_bytes);
}

/* A stage's full barrier: the producer's arrive.expect_tx. Its empty barrier: one thread of each warp group
 * that reads the stage, in every CTA that this CTA's producer writes to or gets data from. */
static void plan_barriers(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->key;
    const int readers = key->sched == GJ_SCHED_PINGPONG ? 1 : plan->mma_warp_groups;
    plan->full_arrivals = 1;
    plan->empty_arrivals = readers * (key->cluster_m + key->cluster_n - 1);
}

static void plan_smem(struct gj_plan *plan)
{
    plan->smem_a = 0;
    plan->smem_b = plan->smem_a + plan->stages * plan->key.tile_m * GJ_STAGE_ROW_BYTES;
    plan->smem_staging = plan->smem_b + plan->stages * plan->key.tile_n * GJ_STAGE_ROW_BYTES;
    plan->smem_barriers = plan->smem_staging + plan->staging_bytes + plan->c_bytes;
    plan->smem_bytes = plan->smem_barriers + GJ_SMEM_BARRIER_BYTES;
}

/* The kernel's name spells the key, so that a profiler line explains itself. */
static void plan_entry_name(struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->key;
    snprintf(plan->entry_name, sizeof plan->entry_name, "gj_gemm_sm90_a_%s%s_b_%s%s_d_%s%s_%dx%d_c%dx%d_%s",
             gj_dtype_name(key->a.dtype), key->a.major == GJ_MAJOR_K ? "k" : "m", gj_dtype_name(key->b.dtype),
             key->b.major == GJ_MAJOR_K ? "k" : "n", gj_dtype_name(key->d.dtype),
             key->d.major == GJ_MAJOR_N ? "n" : "m", key->tile_m, key->tile_n, key->cluster_m, key->cluster_n,
             key->sched == GJ_SCHED_PINGPONG ? "pingpong" : "coop");
}

void gj_plan_make(const struct gj_key *key, struct gj_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->key = *key;
    plan_warp_groups(plan);
    plan_registers(plan);
    plan_epilogue_tile(plan);
    plan_stages(plan);
    plan_slabs(plan);
    plan_barriers(plan);
    plan_smem(plan);
    plan_entry_name(plan);
}
