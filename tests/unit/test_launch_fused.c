/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launches of fused kernels on a fake libcuda: the order of arguments, the tensor maps of PostAct
 * and of pairs, and the parameters. Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ADDRESS(value) ((void *)(uintptr_t)(value))

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static struct fake_stream stream = {.device = 0};

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    stream = (struct fake_stream){.device = 0};
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    assert_int_equal(fake->num_libraries, 0);
    return 0;
}

/* -- launching ------------------------------------------------------------------------------------------- */

#define M 1000
#define N 520
#define LD_C 1064 /* enough for 2 N */
#define LD_D 1056
#define LD_P 1040 /* enough for any PostAct, n-major or m-major */

/* What a key asks for, of M x N elements. */
static struct gj_gemm_args args_of(const char *key_text)
{
    const struct gj_key key = key_of(key_text);
    struct gj_gemm_args args = {.m = M,
                                .n = N,
                                .k = 200,
                                .batch = 1,
                                .a = {ADDRESS(0x10000), 208, 0},
                                .b = {ADDRESS(0x20000), 208, 0}};
    if (key.c.dtype != GJ_DTYPE_NONE)
        args.c = (struct gj_tensor){ADDRESS(0x30000), LD_C, 0};
    if (key.d.dtype != GJ_DTYPE_NONE)
        args.d = (struct gj_tensor){ADDRESS(0x40000), LD_D, 0};
    if (key.p.dtype != GJ_DTYPE_NONE)
        args.p = (struct gj_tensor){ADDRESS(0x50000), LD_P, 0};
    if (key.bias != GJ_BIAS_NONE)
        args.bias = ADDRESS(0x60000);
    if (key.scale != GJ_SCALE_NONE && key.scale != GJ_SCALE_COL)
        args.scale_a = ADDRESS(0x70000);
    if (key.scale != GJ_SCALE_NONE && key.scale != GJ_SCALE_ROW)
        args.scale_b = ADDRESS(0x80000);
    if (key.quant != GJ_QUANT_NONE)
        args.quant_scale = ADDRESS(0x90000);
    if (key.quant == GJ_QUANT_AMAX)
        args.amax = ADDRESS(0xa0000);
    args.beta = 2;
    return args;
}

/* Where the maps of C, D and PostAct are among the arguments; -1: nowhere. */
struct places {
    int d, c, p;
};

static struct places places_of(const struct gj_plan *plan)
{
    struct places places = {-1, -1, -1};
    int count = 2;
    if (plan->key.d.dtype != GJ_DTYPE_NONE)
        places.d = count, count += 2;
    if (plan->key.c.dtype != GJ_DTYPE_NONE)
        places.c = count, count += 2;
    if (plan->key.p.dtype != GJ_DTYPE_NONE)
        places.p = count, count += 2;
    fake->num_maps = count;
    fake->has_fused = gj_plan_is_fused(plan);
    return places;
}

static const struct fake_launch *launch(const char *key_text, const struct gj_gemm_args *args,
                                        struct places *places)
{
    const struct gj_plan plan = plan_of(key_text);
    gj_error *error = NULL;
    if (gj_key_check(&plan.key, &error) != GJ_OK)
        fail_msg("%s: %s", key_text, error->reasons[0]);
    gj_kernel *const kernel = kernels_get(&kernels, key_text);
    *places = places_of(&plan);
    fake_forget(fake);
    if (gj_launch(kernel, args, &stream, &error) != GJ_OK)
        fail_msg("%s: %s", key_text, error->message);
    assert_int_equal(fake->num_launches, 1);
    return &fake->launches[0];
}

/* -- order and number of arguments ----------------------------------------------------------------------- */

static const char *const kinds[] = {
    "tile=128x192",
    "c=bf16.n,beta=host,tile=128x192",
    "bias=col.bf16,tile=128x192",
    "c=f32.m,bias=row.f32,quant=amax,tile=128x128",
    "scale=tensor,tile=64x48,cluster=1x1",
    "scale=row_col,swap_ab=yes,tile=128x128",
    "op=act,act=relu,tile=128x192",
    "op=act,act=relu,d=none,tile=128x192",
    "op=act,act=relu,c=bf16.m,d=none,p=f32.n,tile=128x128",
    "op=act,act=relu,c=f32.n,beta=host,p=e4m3.m,quant=amax,scale=row,tile=128x128",
    "op=act,act=relu,c=f32.n,p=e4m3.m,swap_ab=yes,tile=128x128",
    "op=dact,act=silu,c=bf16.n,tile=128x128",
    "op=gated,act=swiglu,tile=128x192",
    "op=gated,act=swiglu,d=none,gate=halves,tile=128x192",
    "op=gated,act=swiglu,c=bf16.n,tile=128x128",
    "op=gated,act=swiglu,gate=halves,c=f32.n,d=f32.n,beta=host,tile=128x128",
    "op=dgated,act=swiglu,c=bf16.n,bias=col.f32,tile=128x128",
    "op=dgated,act=swiglu,gate=halves,c=bf16.n,tile=128x112",
};

static void arguments_come_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct gj_gemm_args args = args_of(kinds[i]);
        const struct gj_plan plan = plan_of(kinds[i]);
        const bool swaps = plan.key.swap_ab == GJ_SWAP_AB_YES;
        struct places places;
        const struct fake_launch *const made = launch(kinds[i], &args, &places);
        assert_ptr_equal(made->maps[0].address, swaps ? args.b.data : args.a.data);
        assert_ptr_equal(made->maps[1].address, swaps ? args.a.data : args.b.data);
        for (int tail = 0; tail < 2; tail++) {
            if (places.d >= 0)
                assert_ptr_equal(made->maps[places.d + tail].address, args.d.data);
            if (places.c >= 0)
                assert_ptr_equal(made->maps[places.c + tail].address, args.c.data);
            if (places.p >= 0)
                assert_ptr_equal(made->maps[places.p + tail].address, args.p.data);
        }
        assert_int_equal(made->params.m, swaps ? N : M);
        assert_int_equal(made->params.n, swaps ? M : N);
        assert_int_equal(made->params.k_tiles, 4);
        assert_ptr_equal(made->params.d, args.d.data);
        assert_int_equal(made->params.d_ld, args.d.ld / (gj_plan_has_pairs(&plan) ? 2 : 1));
        assert_true(made->params.beta == 2);
        assert_ptr_equal(made->fused.p, args.p.data);
        assert_int_equal(made->fused.p_ld, args.p.ld);
        assert_ptr_equal(made->fused.bias, args.bias);
        assert_ptr_equal(made->fused.scale_row, swaps ? args.scale_b : args.scale_a);
        assert_ptr_equal(made->fused.scale_col, swaps ? args.scale_a : args.scale_b);
        assert_ptr_equal(made->fused.quant_scale, args.quant_scale);
        assert_ptr_equal(made->fused.amax, args.amax);
    }
}

/* -- tensor maps ----------------------------------------------------------------------------------------- */

static int swizzle_of(int line_bytes)
{
    switch (line_bytes) {
    case 128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    case 64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case 32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
    default:
        assert_int_equal(line_bytes, 16);
        return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

static int type_of(enum gj_dtype dtype)
{
    static const int types[] = {[GJ_DTYPE_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                [GJ_DTYPE_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                [GJ_DTYPE_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                [GJ_DTYPE_E4M3] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                [GJ_DTYPE_E5M2] = CU_TENSOR_MAP_DATA_TYPE_UINT8};
    return types[dtype];
}

/* A matrix of `rows` rows of `columns` contiguous elements, as the kernel sees it, in boxes of one slab: its
 * `slab` and `tail` columns of the matrix lie along `rows` if it is m-major. */
struct expected {
    int type;
    cuuint64_t columns, rows, batches, row_bytes, batch_bytes;
    int line_bytes, element, slab, tail;
    bool n_major;
};

static void check_map(const struct fake_map *map, const struct expected *expected, bool is_tail)
{
    const bool narrow = is_tail && expected->tail > 0; /* without a tail the map is that of slabs */
    const int width = narrow ? expected->tail : expected->slab;
    const bool flat = narrow && expected->n_major;
    assert_int_equal(map->type, expected->type);
    assert_int_equal(map->rank, 3);
    assert_int_equal(map->extents[0], expected->columns);
    assert_int_equal(map->extents[1], expected->rows);
    assert_int_equal(map->extents[2], expected->batches);
    assert_int_equal(map->strides[0], expected->row_bytes);
    if (expected->batches > 1)
        assert_int_equal(map->strides[1], expected->batch_bytes);
    if (expected->n_major)
        assert_int_equal(map->box[0], width);
    else
        assert_int_equal(map->box[0], expected->line_bytes / expected->element);
    assert_int_equal(map->box[1], expected->n_major ? 64 : width);
    assert_int_equal(map->box[2], 1);
    assert_int_equal(map->swizzle, flat ? CU_TENSOR_MAP_SWIZZLE_NONE : swizzle_of(expected->line_bytes));
    assert_int_equal(map->interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
    assert_int_equal(map->fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* PostAct in each type and major, with and without a tail, in three batches. */
static void maps_of_postact(void **state)
{
    (void)state;
    static const char *const ops[] = {
        "op=act,act=relu,d=none,tile=128x192",    "op=act,act=relu,tile=64x48",
        "op=act,act=relu,d=f32.n,tile=128x160",   "op=act,act=relu,d=none,swap_ab=yes,tile=128x96",
        "op=gated,act=glu,tile=128x160",          "op=gated,act=glu,d=none,gate=halves,tile=128x96",
        "op=dgated,act=glu,c=bf16.n,tile=128x112"};
    static const char *const types[] = {"f16", "bf16", "f32", "e4m3", "e5m2"};
    int tails = 0;
    for (size_t o = 0; o < COUNT(ops); o++) {
        for (size_t t = 0; t < 2 * COUNT(types); t++) {
            char text[128];
            snprintf(text, sizeof text, "%s,cluster=1x1,p=%s.%c", ops[o], types[t / 2], t % 2 ? 'm' : 'n');
            const struct gj_plan plan = plan_of(text);
            struct gj_gemm_args args = args_of(text);
            args.batch = 3;
            args.d.batch_stride = 1024 * LD_D;
            args.p.batch_stride = 2048 * LD_P;
            struct places places;
            const struct fake_launch *const made = launch(text, &args, &places);
            const cuuint64_t bytes = gj_dtype_bytes(plan.key.p.dtype);
            const cuuint64_t post_n = plan.key.op == GJ_OP_GATED ? N / 2 : N;
            const bool rows_are_m = plan.key.p.major == GJ_MAJOR_N;
            const struct expected expected = {
                .type = type_of(plan.key.p.dtype),
                .columns = rows_are_m ? post_n : M,
                .rows = rows_are_m ? M : post_n,
                .batches = 3,
                .row_bytes = LD_P * bytes,
                .batch_bytes = 2048 * LD_P * bytes,
                .line_bytes = plan.p_line_bytes,
                .element = (int)bytes,
                .slab = plan.slab_n / plan.p_shrink,
                .tail = plan.tail_n / plan.p_shrink,
                .n_major = plan.kernel.p.major == GJ_MAJOR_N,
            };
            tails += expected.tail > 0;
            check_map(&made->maps[places.p], &expected, false);
            check_map(&made->maps[places.p + 1], &expected, true);
            assert_int_equal(made->fused.p_batch_stride, 2048 * LD_P);
        }
    }
    assert_true(tails > 10);
}

/* With gate=halves rows of C and D have two parts of so many elements, a dimension of their maps. */
static void check_halves(const struct fake_map *map, const struct gj_plan *plan, int line_bytes,
                         enum gj_dtype dtype, int64_t part, int64_t ld)
{
    const int64_t bytes = (int64_t)gj_dtype_bytes(dtype);
    const int64_t extents[] = {part, M, 2, 3}, strides[] = {ld * bytes, part * bytes, M * ld * bytes};
    for (int tail = 0; tail < 2; tail++) {
        const bool narrow = tail && plan->tail_n > 0;
        const int width = (narrow ? plan->tail_n : plan->slab_n) / (plan->key.op == GJ_OP_GATED ? 2 : 1);
        const cuuint32_t box[] = {(cuuint32_t)width, 64, 1, 1};
        assert_int_equal(map[tail].rank, 4);
        assert_int_equal(map[tail].type, type_of(dtype));
        assert_memory_equal(map[tail].extents, extents, sizeof extents);
        assert_memory_equal(map[tail].strides, strides, sizeof strides);
        assert_memory_equal(map[tail].box, box, sizeof box);
        assert_int_equal(map[tail].swizzle, narrow ? CU_TENSOR_MAP_SWIZZLE_NONE : swizzle_of(line_bytes));
        assert_true(narrow || line_bytes == width * bytes);
    }
}

static void maps_of_halves(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "op=gated,act=swiglu,gate=halves,tile=128x160,c=f32.n",
        "op=gated,act=swiglu,gate=halves,tile=128x96,d=f32.n,c=e4m3.n",
        "op=gated,act=swiglu,gate=halves,tile=64x224,d=e4m3.n,cluster=1x1,sched=coop",
        "op=dgated,act=swiglu,gate=halves,c=bf16.n,tile=128x128",
        "op=dgated,act=swiglu,gate=halves,c=f16.n,d=bf16.n,p=f32.n,tile=128x112,cluster=1x1",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct gj_plan plan = plan_of(texts[i]);
        struct gj_gemm_args args = args_of(texts[i]);
        const int64_t columns = 512, part = plan.key.op == GJ_OP_GATED ? columns / 2 : columns;
        args.n = columns;
        args.batch = 3;
        args.d.ld = args.c.ld = 2 * columns;
        args.d.batch_stride = args.c.batch_stride = M * 2 * columns;
        args.p.batch_stride = M * LD_P;
        struct places places;
        const struct fake_launch *const made = launch(texts[i], &args, &places);
        check_halves(&made->maps[places.d], &plan, plan.d_line_bytes, plan.key.d.dtype, part, args.d.ld);
        if (places.c >= 0)
            check_halves(&made->maps[places.c], &plan, plan.c_line_bytes, plan.key.c.dtype, part, args.c.ld);
        assert_int_equal(made->params.d_cut, 0);
    }
}

/* op=dgated sees C and D as matrices of 32-bit pairs, N columns of them. */
static void maps_of_pairs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "op=dgated,act=swiglu,c=bf16.n,tile=128x128",
        "op=dgated,act=swiglu,c=f16.n,d=bf16.n,p=f32.n,tile=128x112,cluster=1x1",
        "op=dgated,act=swiglu,c=bf16.n,d=f16.n,p=e4m3.m,tile=64x16,cluster=1x1",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct gj_plan plan = plan_of(texts[i]);
        struct gj_gemm_args args = args_of(texts[i]);
        args.batch = 2;
        args.d.batch_stride = M * LD_D;
        args.p.batch_stride = M * LD_P;
        struct places places;
        const struct fake_launch *made = launch(texts[i], &args, &places);
        struct expected expected = {
            .type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
            .columns = N,
            .rows = M,
            .batches = 2,
            .row_bytes = 2 * LD_D,
            .batch_bytes = 2 * M * LD_D,
            .line_bytes = plan.d_line_bytes,
            .element = 4,
            .slab = plan.slab_n,
            .tail = plan.tail_n,
            .n_major = true,
        };
        assert_int_equal(plan.d_line_bytes, 4 * plan.slab_n);
        assert_int_equal(plan.c_line_bytes, 4 * plan.slab_n);
        check_map(&made->maps[places.d], &expected, false);
        check_map(&made->maps[places.d + 1], &expected, true);
        assert_int_equal(made->params.d_ld, LD_D / 2);
        assert_int_equal(made->params.d_batch_stride, M * LD_D / 2);
        assert_int_equal(made->params.c_batch_step, 0);

        expected.row_bytes = 2 * LD_C; /* all batches share C */
        expected.batches = 1;
        check_map(&made->maps[places.c], &expected, false);
        check_map(&made->maps[places.c + 1], &expected, true);
        args.c.batch_stride = M * LD_C;
        made = launch(texts[i], &args, &places);
        expected.batches = 2;
        expected.batch_bytes = 2 * M * LD_C;
        check_map(&made->maps[places.c], &expected, false);
        assert_int_equal(made->params.c_batch_step, 1);
    }
}

/* C is not read: its maps are some that the driver takes. */
static void a_source_without_weight(void **state)
{
    (void)state;
    static const char text[] = "op=act,act=relu,c=f32.n,beta=host,tile=128x128";
    struct gj_gemm_args args = args_of(text);
    args.beta = 0;
    args.c = (struct gj_tensor){0};
    struct places places;
    const struct fake_launch *const made = launch(text, &args, &places);
    assert_non_null(made->maps[places.c].address);
    assert_non_null(made->maps[places.c + 1].address);
    assert_ptr_equal(made->maps[places.p].address, args.p.data);
    assert_true(made->params.beta == 0);
}

/* Without D the stand-ins for A and B are in PostAct. */
static void k_zero_without_d(void **state)
{
    (void)state;
    static const char text[] = "op=gated,act=glu,d=none,tile=128x192";
    struct gj_gemm_args args = args_of(text);
    args.k = 0;
    args.a = args.b = (struct gj_tensor){0};
    struct places places;
    const struct fake_launch *const made = launch(text, &args, &places);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(made->maps[i].address, args.p.data);
        assert_true(made->maps[i].extents[0] <= (cuuint64_t)made->params.k_start);
    }
    assert_int_equal(made->params.k_tiles, 1);
    assert_null(made->params.d);
}

/* -- parameters ------------------------------------------------------------------------------------------ */

static void vectors_have_batch_strides(void **state)
{
    (void)state;
    for (int swaps = 0; swaps < 2; swaps++) {
        const char *const text = swaps ? "scale=row_col,bias=col.f32,swap_ab=yes,tile=128x128"
                                       : "scale=row_col,bias=col.f32,tile=128x128";
        struct gj_gemm_args args = args_of(text);
        args.bias_batch_stride = 5;
        args.scale_a_batch_stride = 6;
        args.scale_b_batch_stride = 7;
        struct places places;
        const struct fake_launch *const made = launch(text, &args, &places);
        assert_int_equal(made->fused.bias_batch_stride, 5);
        assert_int_equal(made->fused.scale_row_batch_stride, swaps ? 7 : 6);
        assert_int_equal(made->fused.scale_col_batch_stride, swaps ? 6 : 7);
    }
}

/* An output is cut where its contiguous extent does not end on 16 bytes. */
static void outputs_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t m, n;
        int d_cut, p_cut;
    } cases[] = {
        {"op=act,act=relu,tile=128x192", 1000, 520, 0, 0},
        {"op=act,act=relu,tile=128x192", 1000, 516, 1, 1},
        {"op=act,act=relu,p=f32.n,tile=128x128", 1000, 516, 1, 0},
        {"op=act,act=relu,d=f32.n,p=e4m3.n,tile=128x128", 1000, 516, 0, 1},
        {"op=act,act=relu,p=e4m3.m,tile=128x128", 992, 516, 1, 0},
        {"op=act,act=relu,p=e4m3.m,tile=128x128", 1000, 520, 0, 1},
        {"op=act,act=relu,p=bf16.m,tile=128x128", 1000, 519, 1, 0},
        {"op=act,act=relu,d=none,tile=128x128", 1000, 519, -1, 1},
        {"op=act,act=relu,swap_ab=yes,tile=128x128", 1001, 520, 0, 0},
        {"op=act,act=relu,swap_ab=yes,tile=128x128", 1000, 519, 1, 1},
        {"op=act,act=relu,swap_ab=yes,p=bf16.m,tile=128x128", 1001, 520, 0, 1},
        {"op=gated,act=glu,tile=128x192", 1000, 512, 0, 0},
        {"op=gated,act=glu,tile=128x192", 1000, 520, 0, 1},
        {"op=gated,act=glu,p=f32.n,tile=128x128", 1000, 520, 0, 0},
        {"op=gated,act=glu,d=none,gate=halves,tile=128x128", 1000, 518, -1, 1},
        {"op=gated,act=glu,p=bf16.m,tile=128x128", 1000, 514, 1, 0},
        {"op=dgated,act=glu,c=bf16.n,tile=128x128", 1000, 516, 0, 1},
        {"op=dgated,act=glu,c=bf16.n,tile=128x128", 1000, 514, 1, 1},
        {"op=dgated,act=glu,c=bf16.n,p=f32.n,tile=128x128", 1000, 516, 0, 0},
        {"op=dgated,act=glu,c=bf16.n,p=f32.m,tile=128x128", 1002, 515, 1, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gj_gemm_args args = args_of(cases[i].text);
        args.m = cases[i].m;
        args.n = cases[i].n;
        struct places places;
        const struct fake_launch *const made = launch(cases[i].text, &args, &places);
        if ((cases[i].d_cut >= 0 && made->params.d_cut != cases[i].d_cut) ||
            made->fused.p_cut != cases[i].p_cut)
            fail_msg("%s of %d x %d: cuts %d and %d", cases[i].text, (int)args.m, (int)args.n,
                     made->params.d_cut, made->fused.p_cut);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arguments_come_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maps_of_postact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maps_of_pairs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maps_of_halves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_source_without_weight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(k_zero_without_d, set_up, tear_down),
        cmocka_unit_test_setup_teardown(vectors_have_batch_strides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(outputs_are_cut, set_up, tear_down),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests_name("launch_fused", tests, NULL, NULL);
}
