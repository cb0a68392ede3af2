/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the plan's numbers for sched=single, for every config of some problems: depth of the ring, atoms,
 * shared memory and what lies where in it, barriers, sums of a split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/constants.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gj_plan plan_of(const struct gj_key *key)
{
    struct gj_plan plan;
    gj_plan_make(key, &plan);
    return plan;
}

static struct gj_plan plan_of_text(const char *text)
{
    struct gj_key key;
    if (gj_key_parse(text, &key, NULL) != GJ_OK)
        fail_msg("%s is no key", text);
    return plan_of(&key);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* -- every config ---------------------------------------------------------------------------------------- */

static const char *const problems[] = {
    "d=bf16.n",
    "a=bf16.m,b=bf16.n",
    "a=f16.k,b=f16.k,d=f16.n,acc=f16",
    "a=e4m3.k,b=e4m3.k,fp8acc=fast",
    "a=e4m3.k,b=e5m2.k,fp8acc=promoted",
    "a=e4m3.k,b=e4m3.k,fp8acc=fast,d=e4m3.n,quant=amax,scale=row_col",
    "c=f32.n,beta=host",
    "c=f32.m,d=f32.m,alpha=device,beta=device",
    "op=act,act=gelu_tanh,bias=col.bf16",
    "op=act,act=silu,d=none,p=e4m3.n,bias=row.f32",
    "op=gated,act=swiglu,d=none",
    "op=dgated,act=swiglu,c=bf16.n",
};
static const char *const configs[] = {"swap_ab=no", "swap_ab=yes", "swap_ab=no,tiles=once",
                                      "swap_ab=yes,tiles=once"};

/* Calls check with every plan of sched=single of these problems. */
static int for_single(void (*check)(const struct gj_plan *))
{
    enum { KEYS_MAX = 4096 };
    struct gj_key *const keys = malloc(KEYS_MAX * sizeof *keys);
    assert_non_null(keys);
    int checked = 0;
    for (size_t i = 0; i < COUNT(problems) * COUNT(configs); i++) {
        char text[GJ_KEY_TEXT_MAX];
        snprintf(text, sizeof text, "%s,%s", problems[i / COUNT(configs)], configs[i % COUNT(configs)]);
        const struct gj_key problem = plan_of_text(text).key;
        const size_t count = gj_keys_enumerate(&problem, keys, KEYS_MAX);
        assert_true(count <= KEYS_MAX);
        int singles = 0;
        for (size_t k = 0; k < count; k++) {
            if (keys[k].sched != GJ_SCHED_SINGLE)
                continue;
            const struct gj_plan plan = plan_of(&keys[k]);
            check(&plan);
            singles++;
        }
        if ((singles == 0) != (problem.swap_ab == GJ_SWAP_AB_YES && problem.gate != GJ_GATE_NONE))
            fail_msg("%s: %d configs", text, singles);
        checked += singles;
    }
    free(keys);
    return checked;
}

static int ctas_of(const struct gj_plan *plan)
{
    return plan->key.ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1;
}

/* 228 KiB of an SM, of which the driver takes one for each CTA; at most 227 for one. */
static int memory_of_cta(const struct gj_plan *plan)
{
    return min(228 * 1024 / ctas_of(plan) - 1024, 227 * 1024);
}

static int split_of(const struct gj_plan *plan)
{
    return plan->key.split_k == GJ_SPLIT_K_4 ? 4 : plan->key.split_k == GJ_SPLIT_K_2 ? 2 : 1;
}

/* Rows of 128 bytes that an operand's tile takes in an atom: m- and n-major ones are blocks of 64. */
static int atom_rows(int rows, enum gj_major major)
{
    return major == GJ_MAJOR_K ? rows : (rows + 63) / 64 * 64;
}

static void check_atoms(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int element = (int)gj_dtype_bytes(key->a.dtype);
    const bool four_fit = 4 * 2 * (key->tile_m + key->tile_n) * 128 <= memory_of_cta(plan);
    const bool promoted = key->fp8acc == GJ_FP8ACC_PROMOTED;
    assert_int_equal(plan->atoms, four_fit && !promoted ? 2 : 1);
    assert_int_equal(plan->tile_k * element, plan->atoms * 128);
    assert_int_equal(plan->mma_k * element, 32);
    assert_int_equal(plan->a_stage_bytes, plan->atoms * 128 * atom_rows(key->tile_m, key->a.major));
    assert_int_equal(plan->b_stage_bytes, plan->atoms * 128 * atom_rows(key->tile_n, key->b.major));
    assert_int_equal(plan->stage_bytes, plan->a_stage_bytes + plan->b_stage_bytes);
    /* swizzle atoms are 1024 bytes, and so an atom of either operand begins with a whole one */
    assert_int_equal(plan->a_stage_bytes / plan->atoms % 1024, 0);
    assert_int_equal(plan->b_stage_bytes / plan->atoms % 1024, 0);
}

/* The ring takes what is left beside two epilogue tiles, those of C, the sums and the barriers. */
static void check_stages(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const enum gj_dtype output = key->d.dtype != GJ_DTYPE_NONE ? key->d.dtype : key->p.dtype;
    const int widest = gj_dtype_bytes(output) == 1 ? 64 : 32;
    int columns = widest;
    while (key->tile_n % columns != 0)
        columns /= 2;
    const int pair = key->op == GJ_OP_DGATED ? 2 : 1, elements = 64 * columns;
    const int post = elements / (key->op == GJ_OP_GATED ? 2 : 1) * (int)gj_dtype_bytes(key->p.dtype);
    const int unit = pair * elements * (int)gj_dtype_bytes(key->d.dtype) + post;
    const int c = 2 * pair * elements * (int)gj_dtype_bytes(key->c.dtype);
    const int sums = (split_of(plan) - 1) * key->tile_m * key->tile_n * 4;
    const int left = memory_of_cta(plan) - 1024 - 2 * unit - c - sums;
    assert_int_equal(plan->epi_m, 64);
    assert_int_equal(plan->epi_n, columns);
    assert_int_equal(plan->stages, left / plan->stage_bytes);
    assert_true(plan->stages >= 2);
    assert_int_equal(plan->epi_stages, 2 + left % plan->stage_bytes / unit);
    assert_int_equal(plan->staging_bytes, plan->epi_stages * unit);
    assert_int_equal(plan->c_bytes, c);
    assert_int_equal(plan->sums_bytes, sums);
}

/* One behind the other, each from a multiple of 1024 bytes on, and together not more than a CTA has. */
static void check_regions(const struct gj_plan *plan)
{
    const struct {
        int at, bytes;
    } regions[] = {
        {plan->smem_a, plan->stages * plan->a_stage_bytes},
        {plan->smem_b, plan->stages * plan->b_stage_bytes},
        {plan->smem_staging, plan->staging_bytes},
        {plan->smem_c, plan->c_bytes},
        {plan->smem_sums, plan->sums_bytes},
        {plan->smem_barriers, GJ_SMEM_BARRIER_BYTES},
    };
    int end = 0;
    for (size_t i = 0; i < COUNT(regions); i++) {
        assert_true(regions[i].bytes >= 0);
        assert_true(regions[i].at >= end);
        assert_int_equal(regions[i].at % 1024, 0);
        end = regions[i].at + regions[i].bytes;
    }
    assert_int_equal(plan->smem_bytes, end);
    assert_int_equal(gj_plan_smem_max(plan), memory_of_cta(plan));
    assert_true(plan->smem_bytes <= memory_of_cta(plan));
    assert_true(ctas_of(plan) * (plan->smem_bytes + 1024) <= 228 * 1024);
}

static void check_threads(const struct gj_plan *plan)
{
    assert_int_equal(plan->mma_warp_groups, 1);
    assert_int_equal(plan->threads, 256);
    assert_int_equal(plan->load_registers, plan->mma_registers);
    assert_true(ctas_of(plan) * plan->threads * plan->mma_registers <= 65536);
    assert_true(plan->acc_registers + 24 <= plan->mma_registers);
    assert_int_equal(plan->split_k, split_of(plan));
    assert_int_equal(plan->cluster_size, split_of(plan) * plan->kernel.cluster_m * plan->kernel.cluster_n);
    assert_true(plan->cluster_size <= 4);
    assert_int_equal(plan->full_arrivals, 2); /* a load warp for each operand */
    assert_int_equal(plan->empty_arrivals, plan->kernel.cluster_m + plan->kernel.cluster_n - 1);
}

/* -- barriers and sums, as the generated unit finds them ------------------------------------------------- */

static int constant(const struct gj_constants *constants, const char *name)
{
    const struct gj_constant *const found = gj_constants_find(constants, name, strlen(name));
    if (found == NULL)
        fail_msg("no constant %s", name);
    return (int)found->value;
}

static void check_barriers(const struct gj_plan *plan)
{
    static struct gj_constants constants;
    gj_constants_make(plan, &constants);
    gj_constants_index(&constants);
    const struct {
        const char *name;
        int count;
    } kinds[] = {{"FULL_BARRIERS", plan->stages},
                 {"EMPTY_BARRIERS", plan->stages},
                 {"TURN_BARRIERS", 2},
                 {"C_BARRIERS", plan->mma_warp_groups * plan->c_buffers},
                 {"SUMS_BARRIER", plan->split_k > 1 ? 1 : 0}};
    int end = plan->smem_barriers;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const int at = constant(&constants, kinds[i].name);
        assert_int_equal(at % 8, 0);
        assert_true(at >= end);
        end = at + 8 * kinds[i].count;
    }
    assert_true(plan->barrier_bytes <= GJ_SMEM_BARRIER_BYTES);
    assert_int_equal(end, plan->smem_barriers + plan->barrier_bytes);
    assert_true(end <= plan->smem_bytes);
}

/* Each of the other CTAs sends its accumulators in pieces of 16 bytes, those of a thread 2048 bytes apart:
 * templates/split_k.cuh. They fill the sums without a gap. */
static void check_sums(const struct gj_plan *plan)
{
    static struct gj_constants constants;
    gj_constants_make(plan, &constants);
    gj_constants_index(&constants);
    assert_int_equal(constant(&constants, "SUMS_BYTES"), plan->sums_bytes);
    assert_int_equal(constant(&constants, "SMEM_SUMS"), plan->smem_sums);
    assert_int_equal(constant(&constants, "SPLIT_K"), plan->split_k);
    if (plan->split_k == 1)
        return;
    const int registers = constant(&constants, "ACC_REGISTERS");
    const int block = 64 * constant(&constants, "MMA_N") * 4;
    assert_int_equal(registers % 4, 0);
    assert_int_equal(registers / 4 * 2048, block);
    assert_int_equal(2048, GJ_WARP_GROUP * 16);
    assert_int_equal((plan->split_k - 1) * constant(&constants, "M_BLOCKS") * block, plan->sums_bytes);
    assert_true(plan->sums_bytes < 1 << 20); /* what a barrier counts up to */
}

static void each_config(void **state)
{
    (void)state;
    const int checked = for_single(check_atoms);
    print_message("%d configs\n", checked);
    assert_true(checked > 2000);
    for_single(check_stages);
    for_single(check_regions);
    for_single(check_threads);
    for_single(check_barriers);
    for_single(check_sums);
}

/* What a stage's barrier counts: bytes of both operands, 2^20 - 1 at most. */
static void check_expected_bytes(const struct gj_plan *plan)
{
    assert_true(plan->stage_bytes < 1 << 20);
    const struct gj_key *const key = &plan->kernel;
    const bool a_k = key->a.major == GJ_MAJOR_K, b_k = key->b.major == GJ_MAJOR_K;
    const int a = plan->a_boxes * plan->box_a_rows * 128 * key->cluster_n * plan->atoms;
    const int b = plan->b_boxes * plan->box_b_rows * 128 * key->cluster_m * plan->atoms;
    assert_int_equal(a, plan->a_stage_bytes);
    assert_int_equal(b, plan->b_stage_bytes);
    assert_true(!a_k || plan->box_a_rows % 8 == 0);
    assert_true(!b_k || plan->box_b_rows % 8 == 0);
    assert_true(plan->box_a_rows <= 256 && plan->box_b_rows <= 256);
}

static void boxes_fill_stages(void **state)
{
    (void)state;
    assert_true(for_single(check_expected_bytes) > 2000);
}

/* -- by hand --------------------------------------------------------------------------------------------- */

static void worked_examples(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int atoms, tile_k, stage_bytes, stages, epi_stages, sums_bytes, smem_bytes;
    } cases[] = {
        /* 232448 - 1024 - 2 x 2048 = 227328 = 11 x 20480 + 2048 */
        {"tile=64x16", 2, 128, 20480, 11, 3, 0, 232448},
        /* 115712 - 1024 - 4096 = 110592 = 5 x 20480 + 8192 */
        {"tile=64x16,ctas_per_sm=2", 2, 128, 20480, 5, 6, 0, 115712},
        /* 4 x 2 x 112 x 128 = 114688 <= 115712; 115712 - 1024 - 4096 = 110592 = 3 x 28672 + 24576 */
        {"tile=64x48,ctas_per_sm=2", 2, 128, 28672, 3, 14, 0, 115712},
        /* 4 x 2 x 128 x 128 = 131072 > 115712: one atom; 115712 - 1024 - 8192 = 106496 = 6 x 16384 + 8192 */
        {"tile=64x64,ctas_per_sm=2", 1, 64, 16384, 6, 4, 0, 115712},
        /* 3 x 128 x 32 x 4 = 49152; 232448 - 1024 - 8192 - 49152 = 174080 = 4 x 40960 + 10240 */
        {"tile=128x32,tiles=once,split_k=4", 2, 128, 40960, 4, 4, 49152, 230400},
        /* 64 x 64 x 4 = 16384; 115712 - 1024 - 8192 - 16384 = 90112 = 5 x 16384 + 8192 */
        {"tile=64x64,tiles=once,split_k=2,ctas_per_sm=2", 1, 64, 16384, 5, 4, 16384, 115712},
        /* promoted: one atom of 128 elements; 232448 - 1024 - 4096 = 227328 = 22 x 10240 + 2048 */
        {"a=e4m3.k,b=e4m3.k,fp8acc=promoted,tile=64x16", 1, 128, 10240, 22, 3, 0, 232448},
        {"a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16", 2, 256, 20480, 11, 3, 0, 232448},
        /* n-major: 64 columns at least; 227328 = 6 x 32768 + 30720 */
        {"b=bf16.n,tile=64x16", 2, 128, 32768, 6, 17, 0, 232448},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "cluster=1x1,sched=single,%s", cases[i].text);
        const struct gj_plan plan = plan_of_text(text);
        print_message("%s: %d stages of %d bytes\n", cases[i].text, plan.stages, plan.stage_bytes);
        assert_int_equal(gj_key_check(&plan.key, NULL), GJ_OK);
        assert_int_equal(plan.atoms, cases[i].atoms);
        assert_int_equal(plan.tile_k, cases[i].tile_k);
        assert_int_equal(plan.stage_bytes, cases[i].stage_bytes);
        assert_int_equal(plan.stages, cases[i].stages);
        assert_int_equal(plan.epi_stages, cases[i].epi_stages);
        assert_int_equal(plan.sums_bytes, cases[i].sums_bytes);
        assert_int_equal(plan.smem_bytes, cases[i].smem_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_config),
        cmocka_unit_test(boxes_fill_stages),
        cmocka_unit_test(worked_examples),
    };
    return cmocka_run_group_tests_name("single_plan", tests, NULL, NULL);
}
