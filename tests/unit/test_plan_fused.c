/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the plan's arithmetic for fused operations: staging of two outputs, slabs that hold both, pairs of
 * gates and ups, and what swap_ab transposes. test_plan.c has quack's stage tables, act and dact among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    if (gj_key_parse(text, &key, NULL) != GJ_OK)
        fail_msg("%s is no key", text);
    return key;
}

static struct gj_plan plan_of(const struct gj_key *key)
{
    struct gj_plan plan;
    gj_plan_make(key, &plan);
    return plan;
}

static struct gj_plan plan_of_text(const char *text)
{
    const struct gj_key key = parse(text);
    return plan_of(&key);
}

/* -- stages ---------------------------------------------------------------------------------------------- */

/* Worked out by hand from the rule: the bytes of an epilogue tile are those of D and of PostAct, of which
 * op=gated has half the columns; op=dgated has pairs of 16-bit elements in C and D. */
static void stages_of_gated_operations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int ab, epi, c, staging_bytes, c_bytes, smem_bytes;
    } cases[] = {
        /* 64 x 32: 2048 x 2 + 1024 x 2 = 6144; 219136 = 5 x 40960 + 14336, 2 more */
        {"op=gated,tile=128x192", 5, 4, 0, 24576, 0, 230400},
        /* 1024 x 2 = 2048; 227328 = 5 x 40960 + 22528, 11 more */
        {"op=gated,d=none,tile=128x192", 5, 13, 0, 26624, 0, 232448},
        {"op=gated,d=none,gate=halves,tile=128x192", 5, 13, 0, 26624, 0, 232448},
        /* 6144 and 2 x 4096 of C; 210944 = 5 x 40960 + 6144, 1 more */
        {"op=gated,c=bf16.n,tile=128x192", 5, 3, 2, 18432, 8192, 232448},
        /* 2048 x 4 + 1024 x 4 = 12288; 206848 = 6 x 32768 + 10240 */
        {"op=gated,d=f32.n,p=f32.n,tile=128x128", 6, 2, 0, 24576, 0, 222208},
        /* without D an 8-bit PostAct has 64 columns of A B^T: 64 x 64 / 2 = 2048;
           227328 = 6 x 32768 + 30720, 15 more */
        {"op=gated,d=none,p=e4m3.n,tile=128x128", 6, 17, 0, 34816, 0, 232448},
        /* 128 x 32: 4096 x 2 + 2048 x 2 = 12288; 206848 = 4 x 49152 + 10240 */
        {"op=gated,tile=256x128,sched=coop", 4, 2, 0, 24576, 0, 222208},
        /* 2048 x (4 + 2) = 12288 and 2 x 8192 of C; 190464 = 5 x 32768 + 26624, 2 more */
        {"op=dgated,c=bf16.n,tile=128x128", 5, 4, 2, 49152, 16384, 230400},
        /* 190464 = 4 x 40960 + 26624, 2 more */
        {"op=dgated,c=f16.n,d=bf16.n,tile=128x192", 4, 4, 2, 49152, 16384, 230400},
        /* 64 x 16: 1024 x (4 + 1) = 5120, 4 of them and 4 x 4096 of C; 194560 = 5 x 38912, 0 left */
        {"op=dgated,c=bf16.n,p=e4m3.n,tile=128x176", 5, 4, 4, 20480, 16384, 232448},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_plan plan = plan_of_text(cases[i].text);
        if (plan.stages != cases[i].ab || plan.epi_stages != cases[i].epi || plan.epi_c_stages != cases[i].c)
            fail_msg("%s: stages %d/%d/%d, not %d/%d/%d", cases[i].text, plan.stages, plan.epi_stages,
                     plan.epi_c_stages, cases[i].ab, cases[i].epi, cases[i].c);
        assert_int_equal(plan.staging_bytes, cases[i].staging_bytes);
        assert_int_equal(plan.c_bytes, cases[i].c_bytes);
        assert_int_equal(plan.smem_bytes, cases[i].smem_bytes);
    }
}

static void elements_of_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int c, d, p, shrink;
    } cases[] = {
        {"c=f32.n", 4, 2, 0, 1},
        {"op=act,p=e4m3.m", 0, 2, 1, 1},
        {"op=act,d=none,p=f32.n", 0, 0, 4, 1},
        {"op=dact,c=e5m2.m,d=f32.n", 1, 4, 2, 1},
        {"op=gated,c=bf16.n,d=f16.m,p=f32.n", 2, 2, 4, 2},
        {"op=gated,d=none", 0, 0, 2, 2},
        {"op=dgated,c=bf16.n,d=f16.n,p=e4m3.m", 4, 4, 1, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_plan plan = plan_of_text(cases[i].text);
        assert_int_equal(plan.c_element, cases[i].c);
        assert_int_equal(plan.d_element, cases[i].d);
        assert_int_equal(plan.p_element, cases[i].p);
        assert_int_equal(plan.p_shrink, cases[i].shrink);
    }
}

/* -- what holds for every accepted key ------------------------------------------------------------------- */

static const char *const problems[] = {
    "op=act,act=silu",
    "op=act,act=relu,d=none,p=f32.m,bias=col.bf16",
    "op=act,act=relu,d=e4m3.n,p=f32.n,quant=amax",
    "op=act,act=relu,c=f32.n,d=bf16.m,p=e5m2.n",
    "op=act,act=relu,swap_ab=yes,d=f32.n,p=e4m3.m",
    "op=dact,act=silu,c=bf16.n",
    "op=dact,act=silu,c=f32.m,d=f32.m,p=f16.n,quant=scale",
    "op=dact,act=silu,c=e4m3.n,d=e4m3.n,p=e4m3.n,swap_ab=yes",
    "op=gated,act=swiglu",
    "op=gated,act=swiglu,c=bf16.n,d=f32.m,p=e4m3.n",
    "op=gated,act=swiglu,d=none,p=f32.n",
    "op=gated,act=swiglu,d=none,p=e4m3.m,bias=row.f32",
    "op=gated,act=swiglu,gate=halves,d=none",
    "op=gated,act=swiglu,gate=halves,d=none,p=f32.m,a=e4m3.k,b=e4m3.k,scale=row_col",
    "op=dgated,act=swiglu,c=bf16.n",
    "op=dgated,act=swiglu,c=f16.n,d=bf16.n,p=f32.m",
    "op=dgated,act=swiglu,c=f16.n,d=bf16.n,p=e4m3.n,quant=amax",
};

static int for_accepted(void (*check)(const struct gj_plan *))
{
    enum { KEYS_MAX = 4096 };
    struct gj_key *const keys = malloc(KEYS_MAX * sizeof *keys);
    assert_non_null(keys);
    int checked = 0;
    for (size_t i = 0; i < COUNT(problems); i++) {
        const struct gj_key problem = parse(problems[i]);
        const size_t count = gj_keys_enumerate(&problem, keys, KEYS_MAX);
        if (count == 0 || count > KEYS_MAX)
            fail_msg("%s: %zu keys", problems[i], count);
        for (size_t k = 0; k < count; k++) {
            const struct gj_plan plan = plan_of(&keys[k]);
            check(&plan);
            checked++;
        }
    }
    free(keys);
    return checked;
}

/* The staging of quack's rule, written down once more. */
static void check_staging(const struct gj_plan *plan)
{
    const int tile = plan->epi_m * plan->epi_n,
              least = plan->epi_n <= 16 && plan->key.sched != GJ_SCHED_SINGLE ? 4 : 2;
    const int post = plan->key.op == GJ_OP_GATED ? tile / 2 : tile,
              pair = plan->key.op == GJ_OP_DGATED ? 2 : 1;
    const int per =
        pair * tile * (int)gj_dtype_bytes(plan->key.d.dtype) + post * (int)gj_dtype_bytes(plan->key.p.dtype);
    const int c = plan->key.c.dtype != GJ_DTYPE_NONE ? least : 0;
    const int c_bytes = c * pair * tile * (int)gj_dtype_bytes(plan->key.c.dtype);
    const int rest =
        gj_plan_smem_max(plan) - GJ_SMEM_BARRIER_BYTES - per * least - c_bytes - plan->sums_bytes;
    assert_int_equal(plan->stages, rest / plan->stage_bytes);
    assert_int_equal(plan->epi_stages, least + rest % plan->stage_bytes / per);
    assert_int_equal(plan->epi_c_stages, c);
    assert_int_equal(plan->staging_bytes, plan->epi_stages * per);
    assert_int_equal(plan->c_bytes, c_bytes);
    assert_true(plan->stages >= 2);
    assert_true(plan->smem_bytes <= GJ_SMEM_CTA_MAX);
    assert_true(plan->smem_c >= plan->smem_staging + plan->staging_bytes);
    assert_true(plan->smem_barriers >= plan->smem_c + plan->c_bytes);
}

/* One matrix of a slab: `columns` and `tail` columns of it, from `offset` in slabs of `bytes`. */
static void check_part(const struct gj_plan *plan, enum gj_major major, int element, int line, int columns,
                       int tail, int offset, int bytes)
{
    if (element == 0) {
        assert_int_equal(major, GJ_MAJOR_NONE);
        return;
    }
    const int whole = (major == GJ_MAJOR_N ? columns : 64) * element;
    assert_true(line == 16 || line == 32 || line == 64 || line == 128); /* what TMA swizzles; 16 is none */
    assert_int_equal(line, whole > 128 ? 128 : whole);
    assert_true(major == GJ_MAJOR_M || whole <= 128);
    assert_true(offset + 64 * columns * element <= bytes);
    /* each begins where the pattern of its swizzle repeats, in every slab */
    assert_int_equal(offset % (8 * line), 0);
    assert_int_equal(bytes % (8 * line), 0);
    assert_int_equal((plan->smem_staging | plan->smem_c) % 1024, 0);
    assert_true(columns % 16 == 0 && tail % 16 == 0);
    assert_true(columns <= GJ_TMA_BOX_MAX);
    assert_true(tail == 0 || major == GJ_MAJOR_M || tail * element % 16 == 0);
}

static void check_slabs(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int shrink = plan->p_shrink, groups = plan->mma_warp_groups;
    assert_true(plan->slab_n > 0 && plan->slab_n <= plan->mma_n);
    assert_int_equal(plan->slab_n % (16 * shrink), 0);
    assert_int_equal(plan->tail_n % (16 * shrink), 0);
    assert_int_equal(plan->mma_n / plan->slab_n * plan->slab_n + plan->tail_n, plan->mma_n);
    assert_int_equal(plan->p_offset, 64 * plan->slab_n * plan->d_element);
    assert_int_equal(plan->p_offset % 1024, 0);
    assert_int_equal(plan->slab_bytes, plan->p_offset + 64 * plan->slab_n / shrink * plan->p_element);
    assert_true(plan->slab_buffers >= 1);
    assert_true(groups * plan->slab_buffers * plan->slab_bytes <= plan->staging_bytes);
    check_part(plan, key->d.major, plan->d_element, plan->d_line_bytes, plan->slab_n, plan->tail_n, 0,
               plan->slab_bytes);
    check_part(plan, key->p.major, plan->p_element, plan->p_line_bytes, plan->slab_n / shrink,
               plan->tail_n / shrink, plan->p_offset, plan->slab_bytes);
    check_part(plan, key->c.major, plan->c_element, plan->c_line_bytes, plan->slab_n, plan->tail_n, 0,
               plan->c_slab_bytes);
    if (plan->c_element == 0)
        return;
    assert_true(plan->slab_n <= 32);
    assert_int_equal(plan->c_slab_bytes, 64 * plan->slab_n * plan->c_element);
    assert_true(plan->c_buffers >= 1);
    assert_true(groups * plan->c_buffers * plan->c_slab_bytes <= plan->c_bytes);
}

/* With gate=halves a tile of B is a part of the gates and the same part of the ups, in boxes of their own. */
static void check_boxes(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    if (key->b.major == GJ_MAJOR_K)
        assert_int_equal(plan->b_boxes * plan->box_b_rows * key->cluster_m, key->tile_n);
    assert_true(plan->box_b_rows % 8 == 0 && plan->box_b_rows <= 256);
    if (key->gate != GJ_GATE_HALVES)
        return;
    assert_int_equal(plan->b_boxes % 2, 0);
    assert_int_equal(plan->b_boxes / 2 * plan->box_b_rows * key->cluster_m, key->tile_n / 2);
    assert_int_equal(plan->mma_n, key->tile_n);
}

static void check_name(const struct gj_plan *plan)
{
    assert_true(gj_plan_is_fused(plan));
    assert_true(strlen(plan->entry_name) < sizeof plan->entry_name - 1);
    assert_int_equal(strspn(plan->entry_name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                     strlen(plan->entry_name));
}

static void accepted_plans_fit_the_hardware(void **state)
{
    (void)state;
    const int checked = for_accepted(check_staging);
    print_message("%d accepted keys\n", checked);
    assert_true(checked > 500);
    for_accepted(check_slabs);
    for_accepted(check_boxes);
    for_accepted(check_name);
}

/* -- swap_ab --------------------------------------------------------------------------------------------- */

static struct gj_key kernel_of(const char *text)
{
    char swapped[GJ_KEY_TEXT_MAX];
    snprintf(swapped, sizeof swapped, "%s,swap_ab=yes", text);
    return plan_of_text(swapped).kernel;
}

/* D^T = B A^T: what belongs to rows belongs to columns then. */
static void swapped_keys_transpose_vectors(void **state)
{
    (void)state;
    static const struct {
        enum gj_bias one, other;
    } biases[] = {{GJ_BIAS_NONE, GJ_BIAS_NONE},
                  {GJ_BIAS_ROW_F32, GJ_BIAS_COL_F32},
                  {GJ_BIAS_ROW_F16, GJ_BIAS_COL_F16},
                  {GJ_BIAS_ROW_BF16, GJ_BIAS_COL_BF16}};
    static const struct {
        enum gj_scale one, other;
    } scales[] = {{GJ_SCALE_NONE, GJ_SCALE_NONE},
                  {GJ_SCALE_TENSOR, GJ_SCALE_TENSOR},
                  {GJ_SCALE_ROW, GJ_SCALE_COL},
                  {GJ_SCALE_ROW_COL, GJ_SCALE_ROW_COL}};
    struct gj_key key = parse("op=act,act=relu,swap_ab=yes");
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < COUNT(biases); i++) {
            key.bias = turn ? biases[i].other : biases[i].one;
            assert_int_equal(plan_of(&key).kernel.bias, turn ? biases[i].one : biases[i].other);
        }
        for (size_t i = 0; i < COUNT(scales); i++) {
            key.scale = turn ? scales[i].other : scales[i].one;
            assert_int_equal(plan_of(&key).kernel.scale, turn ? scales[i].one : scales[i].other);
        }
    }
}

static void swapped_keys_transpose_outputs(void **state)
{
    (void)state;
    struct gj_key key =
        kernel_of("op=act,act=relu,a=bf16.m,c=f32.m,d=bf16.n,p=e4m3.m,tile=128x96,quant=amax");
    assert_int_equal(key.a.major, GJ_MAJOR_K);
    assert_int_equal(key.b.major, GJ_MAJOR_N);
    assert_int_equal(key.c.major, GJ_MAJOR_N);
    assert_int_equal(key.d.major, GJ_MAJOR_M);
    assert_int_equal(key.p.major, GJ_MAJOR_N);
    assert_int_equal(key.c.dtype, GJ_DTYPE_F32);
    assert_int_equal(key.p.dtype, GJ_DTYPE_E4M3);
    assert_int_equal(key.quant, GJ_QUANT_AMAX);
    assert_int_equal(key.tile_m, 128);
    assert_int_equal(key.tile_n, 96);
    key = kernel_of("op=act,act=relu,d=none,p=f32.n,a=e4m3.k,b=e5m2.k");
    assert_int_equal(key.a.dtype, GJ_DTYPE_E5M2);
    assert_int_equal(key.b.dtype, GJ_DTYPE_E4M3);
    assert_int_equal(key.d.major, GJ_MAJOR_NONE);
    assert_int_equal(key.c.major, GJ_MAJOR_NONE);
    assert_int_equal(key.p.major, GJ_MAJOR_M);
}

static void anything_fused_is_noticed(void **state)
{
    (void)state;
    static const char *const plain[] = {"", "c=f32.m,beta=device,alpha=host,d=e4m3.n", "swap_ab=yes,acc=f16"};
    static const char *const fused[] = {"op=act,p=none", "op=dact",      "op=gated",    "op=dgated",
                                        "bias=row.f16",  "scale=tensor", "quant=scale", "quant=amax"};
    for (size_t i = 0; i < COUNT(plain); i++) {
        const struct gj_plan plan = plan_of_text(plain[i]);
        assert_false(gj_plan_is_fused(&plan));
        assert_int_equal(plan.p_offset, 64 * plan.slab_n * plan.d_element);
        assert_int_equal(plan.slab_bytes, plan.p_offset);
    }
    for (size_t i = 0; i < COUNT(fused); i++) {
        const struct gj_plan plan = plan_of_text(fused[i]);
        assert_true(gj_plan_is_fused(&plan));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_of_gated_operations),      cmocka_unit_test(elements_of_pairs),
        cmocka_unit_test(accepted_plans_fit_the_hardware), cmocka_unit_test(swapped_keys_transpose_vectors),
        cmocka_unit_test(swapped_keys_transpose_outputs),  cmocka_unit_test(anything_fused_is_noticed),
    };
    return cmocka_run_group_tests_name("plan_fused", tests, NULL, NULL);
}
