/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the plan's arithmetic against the stage tables of quack 0.2.0 and against the hardware's limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/check.h"
#include "plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gj_format format(enum gj_dtype dtype, enum gj_major major)
{
    return (struct gj_format){dtype, major};
}

static struct gj_plan plan_of(struct gj_key key)
{
    struct gj_plan plan;
    gj_plan_make(&key, &plan);
    return plan;
}

static struct gj_plan plan_of_text(const char *text)
{
    struct gj_key key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_OK);
    return plan_of(key);
}

/* -- stage tables ---------------------------------------------------------------------------------------- */

/* Stages of A and B, of the epilogue's D and PostAct, and of C. */
struct stages {
    int ab, epi, c;
};

/* quack 0.2.0, all persistent. Operand sets: D; D and C; D and f32 C; f32 D and f32 C; D and PostAct; D, C
 * and PostAct; bf16 where not said otherwise. */
static const struct row {
    int tile_m, tile_n;
    enum gj_sched sched;
    int warp_groups, threads, accumulators, epi_m, epi_n;
    struct stages sets[6];
} table[] = {
#define PP GJ_SCHED_PINGPONG
#define CO GJ_SCHED_COOP
    /* clang-format off */
    {256, 128, CO, 2, 384, 128, 128, 32, {{4, 4,0}, {4, 2,2}, {3, 6,2}, {3, 3,2}, {4, 2,0}, {3, 4,2}}},
    {256, 144, CO, 2, 384, 144, 128, 16, {{4, 6,0}, {3,15,4}, {3,11,4}, {3, 5,4}, {3, 9,0}, {3, 7,4}}},
    {256, 160, CO, 2, 384, 160, 128, 32, {{4, 2,0}, {3, 6,2}, {3, 4,2}, {3, 2,2}, {3, 4,0}, {3, 3,2}}},
    {256, 176, CO, 2, 384, 176, 128, 16, {{3,16,0}, {3,12,4}, {3, 8,4}, {3, 4,4}, {3, 8,0}, {3, 6,4}}},
    {256, 192, CO, 2, 384, 192, 128, 32, {{3, 7,0}, {3, 5,2}, {3, 3,2}, {2, 5,2}, {3, 3,0}, {3, 2,2}}},
    {256, 208, CO, 2, 384, 208, 128, 16, {{3,13,0}, {3, 9,4}, {3, 5,4}, {2, 9,4}, {3, 6,0}, {3, 4,4}}},
    {128, 224, CO, 2, 384, 112, 128, 32, {{4, 6,0}, {4, 4,2}, {4, 2,2}, {3, 3,2}, {4, 3,0}, {4, 2,2}}},
    {128, 256, CO, 2, 384, 128, 128, 32, {{4, 4,0}, {4, 2,2}, {3, 6,2}, {3, 3,2}, {4, 2,0}, {3, 4,2}}},
    {128, 128, PP, 2, 384, 128,  64, 32, {{6, 8,0}, {6, 6,2}, {6, 4,2}, {6, 2,2}, {6, 4,0}, {6, 3,2}}},
    {128, 144, PP, 2, 384, 144,  64, 16, {{6,11,0}, {6, 7,4}, {5,20,4}, {5,10,4}, {6, 5,0}, {5,12,4}}},
    {128, 160, PP, 2, 384, 160,  64, 32, {{6, 2,0}, {5, 9,2}, {5, 7,2}, {5, 3,2}, {5, 5,0}, {5, 4,2}}},
    {128, 176, PP, 2, 384, 176,  64, 16, {{5,18,0}, {5,14,4}, {5,10,4}, {5, 5,4}, {5, 9,0}, {5, 7,4}}},
    {128, 192, PP, 2, 384, 192,  64, 32, {{5, 6,0}, {5, 4,2}, {5, 2,2}, {4, 6,2}, {5, 3,0}, {5, 2,2}}},
    {128, 208, PP, 2, 384, 208,  64, 16, {{5, 8,0}, {5, 4,4}, {4,21,4}, {4,10,4}, {5, 4,0}, {4,12,4}}},
    {192, 128, PP, 2, 384, 192,  64, 32, {{5, 6,0}, {5, 4,2}, {5, 2,2}, {4, 6,2}, {5, 3,0}, {5, 2,2}}},
    { 64, 128, CO, 1, 256,  64,  64, 32, {{9, 2,0}, {8, 6,2}, {8, 4,2}, {8, 2,2}, {8, 4,0}, {8, 3,2}}},
    { 64, 256, CO, 1, 256, 128,  64, 32, {{5, 6,0}, {5, 4,2}, {5, 2,2}, {4, 6,2}, {5, 3,0}, {5, 2,2}}},
    {128,  64, CO, 2, 384,  32, 128, 32, {{8, 4,0}, {8, 2,2}, {7, 3,2}, {6, 3,2}, {8, 2,0}, {7, 2,2}}},
    {128, 128, CO, 2, 384,  64, 128, 32, {{6, 4,0}, {6, 2,2}, {5, 4,2}, {5, 2,2}, {6, 2,0}, {5, 3,2}}},
    {192, 128, CO, 3, 512,  64, 192, 32, {{5, 2,0}, {4, 3,2}, {3, 4,2}, {3, 2,2}, {4, 2,0}, {3, 3,2}}},
    {192, 256, CO, 2, 384, 192,  64, 32, {{3,14,0}, {3,12,2}, {3,10,2}, {3, 5,2}, {3, 7,0}, {3, 6,2}}},
    {320, 160, CO, 2, 384, 200,  64, 32, {{3,11,0}, {3, 9,2}, {3, 7,2}, {3, 3,2}, {3, 5,0}, {3, 4,2}}},
    {256, 256, CO, 2, 384, 256, 128, 32, {{3, 4,0}, {3, 2,2}, {2, 8,2}, {2, 4,2}, {3, 2,0}, {2, 5,2}}},
    { 64, 256, PP, 2, 384, 128,  64, 32, {{5, 6,0}, {5, 4,2}, {5, 2,2}, {4, 6,2}, {5, 3,0}, {5, 2,2}}},
    { 64, 128, PP, 2, 384,  64,  64, 32, {{9, 2,0}, {8, 6,2}, {8, 4,2}, {8, 2,2}, {8, 4,0}, {8, 3,2}}},
    /* clang-format on */
};

static struct gj_key key_of_row(const struct row *row, int set)
{
    struct gj_key key = gj_key_default();
    key.tile_m = row->tile_m;
    key.tile_n = row->tile_n;
    key.sched = row->sched;
    if (set == 3)
        key.d = format(GJ_DTYPE_F32, GJ_MAJOR_N);
    if (set == 1 || set == 5)
        key.c = format(GJ_DTYPE_BF16, GJ_MAJOR_N);
    if (set == 2 || set == 3)
        key.c = format(GJ_DTYPE_F32, GJ_MAJOR_N);
    if (key.c.dtype != GJ_DTYPE_NONE)
        key.beta = GJ_SCALAR_ONE;
    if (set >= 4) {
        key.op = set == 4 ? GJ_OP_ACT : GJ_OP_DACT;
        key.p = format(GJ_DTYPE_BF16, GJ_MAJOR_N);
    }
    return key;
}

static void assert_stages(const struct gj_plan *plan, struct stages expected, int set)
{
    if (plan->stages == expected.ab && plan->epi_stages == expected.epi && plan->epi_c_stages == expected.c)
        return;
    fail_msg("%dx%d %s, operand set S%d: stages %d/%d/%d, the table has %d/%d/%d", plan->key.tile_m,
             plan->key.tile_n, plan->key.sched == PP ? "pingpong" : "coop", set + 1, plan->stages,
             plan->epi_stages, plan->epi_c_stages, expected.ab, expected.epi, expected.c);
}

static void stage_tables_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        const struct row *const row = &table[i];
        for (int set = 0; set < 6; set++) {
            const struct gj_plan plan = plan_of(key_of_row(row, set));
            assert_stages(&plan, row->sets[set], set);
            assert_int_equal(plan.mma_warp_groups, row->warp_groups);
            assert_int_equal(plan.threads, row->threads);
            assert_int_equal(plan.acc_registers, row->accumulators);
            assert_int_equal(plan.epi_m, row->epi_m);
            assert_int_equal(plan.epi_n, row->epi_n);
            assert_int_equal(plan.tile_k, 64);
            assert_int_equal(plan.mma_k, 16);
            assert_true(plan.smem_bytes <= GJ_SMEM_CTA_MAX);
        }
    }
}

/* The bytes of K per stage are equal, so 8-bit operands give the same numbers; and PostAct alone those of D.
 */
static void stage_tables_hold_for_other_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct gj_key key = key_of_row(&table[i], 0);
        key.a = format(GJ_DTYPE_E4M3, GJ_MAJOR_K);
        key.b = format(GJ_DTYPE_E5M2, GJ_MAJOR_K);
        key.fp8acc = GJ_FP8ACC_FAST;
        struct gj_plan plan = plan_of(key);
        assert_stages(&plan, table[i].sets[0], 0);
        assert_int_equal(plan.acc_registers, table[i].accumulators);
        assert_int_equal(plan.tile_k, 128);
        assert_int_equal(plan.mma_k, 32);
        key.fp8acc = GJ_FP8ACC_PROMOTED;
        plan = plan_of(key);
        assert_stages(&plan, table[i].sets[0], 0);
        assert_int_equal(plan.acc_registers, 2 * table[i].accumulators);

        key = key_of_row(&table[i], 4);
        key.d = format(GJ_DTYPE_NONE, GJ_MAJOR_NONE);
        plan = plan_of(key);
        assert_stages(&plan, table[i].sets[0], 0);
    }
}

static void worked_example_holds(void **state)
{
    (void)state;
    const struct gj_plan plan = plan_of_text("op=dact,c=bf16.n,p=bf16.n,tile=128x192,sched=pingpong");
    assert_int_equal(plan.epi_m * plan.epi_n, 2048);
    assert_int_equal(plan.stage_bytes, 40960);
    assert_int_equal(plan.stages, 5);
    assert_int_equal(plan.epi_stages, 2);
    assert_int_equal(plan.staging_bytes, 2 * 8192);
    assert_int_equal(plan.c_bytes, 2 * 4096);
    assert_int_equal(plan.smem_bytes, 230400);
}

/* An 8-bit D has 64-column epilogue tiles where the rows of a tile are not shared. */
static void epilogue_tile_of_8_bit_d(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int m, n;
    } cases[] = {
        {"d=e4m3.n,tile=128x192,sched=pingpong", 64, 64}, {"d=e4m3.n,tile=64x160,sched=pingpong", 64, 32},
        {"d=e4m3.n,tile=64x144,sched=coop", 64, 16},      {"d=e4m3.n,tile=128x128,sched=coop", 128, 32},
        {"d=e4m3.n,tile=192x96,sched=coop", 192, 32},     {"d=e5m2.n,tile=192x256,sched=coop", 64, 64},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_plan plan = plan_of_text(cases[i].text);
        assert_int_equal(plan.epi_m, cases[i].m);
        assert_int_equal(plan.epi_n, cases[i].n);
    }
}

/* -- warp groups and registers --------------------------------------------------------------------------- */

static void warp_groups_divide_tiles(void **state)
{
    (void)state;
    static const struct {
        int tile_m, tile_n;
        enum gj_sched sched;
        int along_m, along_n, groups, m_blocks, mma_n;
    } cases[] = {
        {64, 256, CO, 1, 1, 1, 1, 256},  {128, 256, CO, 2, 1, 2, 1, 256}, {192, 128, CO, 3, 1, 3, 1, 128},
        {192, 32, CO, 3, 1, 3, 1, 32},   {192, 160, CO, 1, 2, 2, 3, 80},  {192, 256, CO, 1, 2, 2, 3, 128},
        {256, 208, CO, 2, 1, 2, 2, 208}, {320, 160, CO, 1, 2, 2, 5, 80},  {64, 256, PP, 1, 1, 2, 1, 256},
        {128, 208, PP, 1, 1, 2, 2, 208}, {192, 128, PP, 1, 1, 2, 3, 128},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gj_key key = gj_key_default();
        key.tile_m = cases[i].tile_m;
        key.tile_n = cases[i].tile_n;
        key.sched = cases[i].sched;
        const struct gj_plan plan = plan_of(key);
        assert_int_equal(plan.split_m, cases[i].along_m);
        assert_int_equal(plan.split_n, cases[i].along_n);
        assert_int_equal(plan.mma_warp_groups, cases[i].groups);
        assert_int_equal(plan.threads, 128 * (cases[i].groups + 1));
        assert_int_equal(plan.m_blocks, cases[i].m_blocks);
        assert_int_equal(plan.mma_n, cases[i].mma_n);
        assert_int_equal(plan.m_blocks * GJ_MMA_M * plan.split_m, key.tile_m);
        assert_int_equal(plan.acc_registers, plan.m_blocks * plan.mma_n / 2);
    }
}

static void register_budgets_hold(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int load, mma;
    } cases[] = {
        {"tile=128x192,sched=pingpong", 40, 232},
        {"tile=64x256,sched=coop", 40, 232},
        {"tile=128x256,sched=coop", 40, 232},
        {"tile=256x192,sched=coop", 40, 232},
        {"tile=256x208,sched=coop", 24, 240},
        {"tile=128x208,sched=pingpong", 24, 240},
        {"tile=192x128,sched=coop", 32, 160},
        {"tile=192x64,sched=coop", 32, 160},
        {"a=e4m3.k,b=e4m3.k,tile=64x192,sched=pingpong", 40, 232},
        {"a=e4m3.k,b=e4m3.k,tile=128x128,sched=pingpong", 24, 240},
        {"a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=128x128,sched=pingpong", 40, 232},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_plan plan = plan_of_text(cases[i].text);
        assert_int_equal(plan.load_registers, cases[i].load);
        assert_int_equal(plan.mma_registers, cases[i].mma);
    }
}

/* -- what holds for every accepted key ------------------------------------------------------------------- */

/* Calls check with the plan of every key that the library accepts. */
static int for_accepted(void (*check)(const struct gj_plan *))
{
    static const enum gj_dtype inputs[] = {GJ_DTYPE_F16, GJ_DTYPE_BF16, GJ_DTYPE_E4M3, GJ_DTYPE_E5M2};
    static const enum gj_dtype outputs[] = {GJ_DTYPE_F16, GJ_DTYPE_BF16, GJ_DTYPE_F32, GJ_DTYPE_E4M3};
    struct gj_key *const keys = malloc(4096 * sizeof *keys);
    assert_non_null(keys);
    int checked = 0;
    for (size_t i = 0; i < COUNT(inputs); i++) {
        for (size_t o = 0; o < COUNT(outputs); o++) {
            struct gj_key problem = gj_key_default();
            problem.a.dtype = problem.b.dtype = inputs[i];
            problem.d.dtype = outputs[o];
            const size_t count = gj_keys_enumerate(&problem, keys, 4096);
            assert_true(count <= 4096);
            for (size_t k = 0; k < count; k++) {
                const struct gj_plan plan = plan_of(keys[k]);
                check(&plan);
                checked++;
            }
        }
    }
    free(keys);
    return checked;
}

static void check_memory(const struct gj_plan *plan)
{
    const int a_end = plan->smem_a + plan->stages * plan->key.tile_m * GJ_STAGE_ROW_BYTES;
    const int b_end = plan->smem_b + plan->stages * plan->key.tile_n * GJ_STAGE_ROW_BYTES;
    assert_true(plan->smem_a >= 0);
    assert_true(plan->smem_b >= a_end);
    assert_true(plan->smem_staging >= b_end);
    assert_true(plan->smem_sums >= plan->smem_staging + plan->staging_bytes + plan->c_bytes);
    assert_int_equal(plan->sums_bytes, (plan->split_k - 1) * plan->key.tile_m * plan->key.tile_n * 4);
    assert_true(plan->smem_barriers >= plan->smem_sums + plan->sums_bytes);
    assert_true(plan->smem_bytes <= gj_plan_smem_max(plan));
    /* an SM has 228 KiB, of which the driver takes one for each CTA */
    assert_true((plan->key.ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1) * (plan->smem_bytes + 1024) <=
                228 * 1024);
    /* full, empty and turn barriers */
    assert_true(plan->smem_barriers + 8 * (2 * plan->stages + plan->mma_warp_groups) <= plan->smem_bytes);
    assert_int_equal(plan->smem_a % 1024, 0);
    assert_int_equal(plan->smem_b % 1024, 0);
    assert_int_equal(plan->smem_staging % 1024, 0);
    assert_int_equal(plan->smem_barriers % 1024, 0);
    assert_int_equal(plan->key.tile_m * GJ_STAGE_ROW_BYTES % 1024, 0);
    assert_int_equal(plan->key.tile_n * GJ_STAGE_ROW_BYTES % 1024, 0);
    assert_int_equal(plan->stage_bytes,
                     plan->atoms * (plan->key.tile_m + plan->key.tile_n) * GJ_STAGE_ROW_BYTES);
    assert_true(plan->stages >= 2);
    /* one stage more would not fit */
    assert_true(gj_plan_smem_for_stages(plan, plan->stages) <= gj_plan_smem_max(plan));
    assert_true(gj_plan_smem_for_stages(plan, plan->stages + 1) > gj_plan_smem_max(plan));
}

static void check_slabs(const struct gj_plan *plan)
{
    const int row_bytes = plan->slab_n * (int)gj_dtype_bytes(plan->kernel.d.dtype);
    assert_true(plan->kernel.d.major == GJ_MAJOR_M || plan->d_line_bytes == row_bytes);
    /* the lines that TMA can swizzle; 16 bytes need none */
    const int line = plan->d_line_bytes;
    assert_true(line == 128 || line == 64 || line == 32 || line == 16);
    assert_int_equal(plan->slab_bytes, 64 * row_bytes);
    assert_true(plan->slab_n <= plan->mma_n);
    const int whole = plan->mma_n / plan->slab_n;
    assert_int_equal(plan->slab_n * whole + plan->tail_n, plan->mma_n);
    assert_true(plan->tail_n >= 0 && plan->tail_n < plan->slab_n);
    assert_int_equal(plan->slab_n % 16, 0); /* one stmatrix covers 16 columns */
    assert_int_equal(plan->tail_n % 16, 0);
    assert_true(plan->slab_buffers >= 1);
    assert_true(plan->mma_warp_groups * plan->slab_buffers * plan->slab_bytes <= plan->staging_bytes);
    /* each slab begins where the pattern of its swizzle repeats */
    assert_int_equal(plan->slab_bytes % (8 * row_bytes), 0);
    assert_int_equal(plan->smem_staging % (8 * row_bytes), 0);
}

static void check_registers(const struct gj_plan *plan)
{
    const int ctas = plan->key.ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1;
    const int registers = 65536 / (ctas * plan->threads) / 8 * 8; /* per thread at launch */
    assert_true(128 * (plan->load_registers + plan->mma_warp_groups * plan->mma_registers) <=
                registers * plan->threads);
    assert_int_equal(plan->load_registers % 8, 0);
    assert_int_equal(plan->mma_registers % 8, 0);
    assert_true(plan->load_registers >= 24 && plan->mma_registers <= 256);
    assert_true(plan->acc_registers + 24 <= plan->mma_registers);
    assert_int_equal(plan->acc_registers, plan->m_blocks * plan->mma_n / 2);
}

static void check_instructions(const struct gj_plan *plan)
{
    assert_true(plan->mma_n % 8 == 0 && plan->mma_n >= 8 && plan->mma_n <= 256);
    assert_int_equal(plan->m_blocks * 64 * plan->split_m, plan->key.tile_m);
    assert_int_equal(plan->mma_n * plan->split_n, plan->key.tile_n);
    const int atom_k = plan->tile_k / plan->atoms;
    assert_int_equal(plan->mma_k * 4, atom_k);
    assert_int_equal(atom_k * (int)gj_dtype_bytes(plan->key.a.dtype), 128);
    assert_true(plan->atoms == 1 || (plan->key.sched == GJ_SCHED_SINGLE && plan->stages >= 3));
    /* the cluster's slices are whole swizzle atoms that one TMA box holds and together are the tile */
    if (plan->kernel.a.major == GJ_MAJOR_K)
        assert_int_equal(plan->a_boxes * plan->box_a_rows * plan->kernel.cluster_n, plan->kernel.tile_m);
    else
        assert_int_equal(plan->box_a_rows * plan->kernel.cluster_n, atom_k);
    if (plan->kernel.b.major == GJ_MAJOR_K)
        assert_int_equal(plan->b_boxes * plan->box_b_rows * plan->kernel.cluster_m, plan->kernel.tile_n);
    else
        assert_int_equal(plan->box_b_rows * plan->kernel.cluster_m, atom_k);
    assert_true(plan->box_a_rows % 8 == 0 && plan->box_a_rows <= 256);
    assert_true(plan->box_b_rows % 8 == 0 && plan->box_b_rows <= 256);
}

/* One arrival per warp group that reads the stage, from every CTA of the same cluster row or column. */
static void check_arrivals(const struct gj_plan *plan)
{
    const int readers = plan->key.sched == GJ_SCHED_PINGPONG ? 1 : plan->mma_warp_groups;
    assert_int_equal(plan->full_arrivals, plan->key.sched == GJ_SCHED_SINGLE ? 2 : 1);
    assert_int_equal(plan->empty_arrivals, (plan->key.cluster_m + plan->key.cluster_n - 1) * readers);
}

static void accepted_plans_fit_the_hardware(void **state)
{
    (void)state;
    const int checked = for_accepted(check_memory);
    print_message("%d accepted keys\n", checked);
    assert_true(checked > 100);
    for_accepted(check_slabs);
    for_accepted(check_registers);
    for_accepted(check_instructions);
    for_accepted(check_arrivals);
}

static void arrivals_grow_with_the_cluster(void **state)
{
    (void)state;
    struct gj_key key = gj_key_default();
    for (key.cluster_m = 1; key.cluster_m <= 8; key.cluster_m++) {
        for (key.cluster_n = 1; key.cluster_n <= 8; key.cluster_n++) {
            key.sched = GJ_SCHED_PINGPONG;
            assert_int_equal(plan_of(key).empty_arrivals, key.cluster_m + key.cluster_n - 1);
            key.sched = GJ_SCHED_COOP;
            assert_int_equal(plan_of(key).empty_arrivals, 2 * (key.cluster_m + key.cluster_n - 1));
        }
    }
}

/* -- text ------------------------------------------------------------------------------------------------ */

static void check_entry_name(const struct gj_plan *plan)
{
    char part[64];
    assert_int_equal(strncmp(plan->entry_name, "gj_gemm_sm90_", 13), 0);
    assert_true(strlen(plan->entry_name) < sizeof plan->entry_name - 1);
    assert_int_equal(strspn(plan->entry_name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                     strlen(plan->entry_name));
    snprintf(part, sizeof part, "%dx%d", plan->key.tile_m, plan->key.tile_n);
    assert_non_null(strstr(plan->entry_name, part));
}

static void entry_names_are_identifiers(void **state)
{
    (void)state;
    assert_true(for_accepted(check_entry_name) > 100);
}

static void text_has_the_numbers(void **state)
{
    (void)state;
    const struct gj_plan plan = plan_of_text("");
    struct gj_strbuf text = {0};
    gj_plan_format(&plan, &text);
    assert_false(text.failed);
    static const char *const parts[] = {
        "128 x 192 x 64", "2 x 1", "384", "232", "192", "m64n192k16", "40960", "slabs of D       64 x 64"};
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_non_null(strstr(text.text, parts[i]));
    assert_non_null(strstr(text.text, plan.entry_name));
    gj_strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_tables_hold),
        cmocka_unit_test(stage_tables_hold_for_other_types),
        cmocka_unit_test(worked_example_holds),
        cmocka_unit_test(epilogue_tile_of_8_bit_d),
        cmocka_unit_test(warp_groups_divide_tiles),
        cmocka_unit_test(register_budgets_hold),
        cmocka_unit_test(accepted_plans_fit_the_hardware),
        cmocka_unit_test(arrivals_grow_with_the_cluster),
        cmocka_unit_test(entry_names_are_identifiers),
        cmocka_unit_test(text_has_the_numbers),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
