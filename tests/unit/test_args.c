/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the checks of one launch's arguments: each operand and each rule, with what the message names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/args.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define GIGA (INT64_C(1) << 30)
#define TERA (INT64_C(1) << 40)

static const char small_key[] = "tile=64x16,cluster=1x1";

static const struct gj_gemm_args good = {
    .m = 100,
    .n = 48,
    .k = 72,
    .batch = 3,
    .a = {ADDRESS(0x10000), 72, 7200},
    .b = {ADDRESS(0x20000), 80, 4096},
    .d = {ADDRESS(0x30000), 48, 4800},
};

/* The operands, and what is true of each in `good`. */
static const struct {
    const char *name;
    size_t offset;
    int64_t columns;
} operands[] = {
    {"A", offsetof(struct gj_gemm_args, a), 72},
    {"B", offsetof(struct gj_gemm_args, b), 72},
    {"D", offsetof(struct gj_gemm_args, d), 48},
};
#define NUM_OPERANDS (sizeof operands / sizeof operands[0])

static struct gj_tensor *operand(struct gj_gemm_args *args, size_t index)
{
    return (struct gj_tensor *)(void *)((char *)args + operands[index].offset);
}

static void accepted_by(const char *key_text, const struct gj_gemm_args *args)
{
    const struct gj_plan plan = plan_of(key_text);
    gj_error *error = NULL;
    const enum gj_status status = gj_args_check(&plan, args, &error);
    if (status != GJ_OK)
        fail_msg("%s", error->message);
    assert_null(error);
}

static void accepted(const struct gj_gemm_args *args)
{
    accepted_by(small_key, args);
}

/* Three words because more are never needed; NULL stands for none. */
static void refused_by(const char *key_text, const struct gj_gemm_args *args, const char *first,
                       const char *second, const char *third)
{
    const struct gj_plan plan = plan_of(key_text);
    gj_error *error = NULL;
    const enum gj_status status = gj_args_check(&plan, args, &error);
    if (error != NULL)
        assert_int_equal(error->stage, GJ_STAGE_LAUNCH);
    check_error(status, GJ_ERR_ARGUMENT, &error, first, second, third, NULL);
    assert_int_equal(gj_args_check(&plan, args, NULL), GJ_ERR_ARGUMENT);
}

static void refused(const struct gj_gemm_args *args, const char *first, const char *second, const char *third)
{
    refused_by(small_key, args, first, second, third);
}

static struct path number(int64_t value)
{
    return path_format("%lld", (long long)value);
}

/* -- Each operand ---------------------------------------------------------------------------------------- */

static void good_arguments(void **state)
{
    (void)state;
    accepted(&good);
    accepted_by("", &good);
    accepted_by("d=f32.n,tile=64x16,cluster=1x1", &good);
}

static void addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_OPERANDS; i++) {
        struct gj_gemm_args args = good;
        operand(&args, i)->data = NULL;
        refused(&args, path_format("%s: ", operands[i].name).text, "data is NULL", NULL);
        for (uintptr_t shift = 1; shift < 16; shift++) {
            args = good;
            operand(&args, i)->data = (char *)operand(&args, i)->data + shift;
            refused(&args, path_format("%s: data = 0x%d000%x", operands[i].name, (int)i + 1, (int)shift).text,
                    "multiple of 16", NULL);
        }
        operand(&args, i)->data = (char *)ADDRESS(0x50000) + 16;
        accepted(&args);
    }
}

static void row_strides(void **state)
{
    (void)state;
    static const struct {
        int64_t ld;
        const char *rule;
    } cases[] = {
        {INT64_MIN, "must be at least the contiguous extent"},
        {-80, "must be at least the contiguous extent"},
        {-1, "must be at least the contiguous extent"},
        {0, "must be at least the contiguous extent"},
        {40, "must be at least the contiguous extent"},
        {81, "multiple of 16"},
        {84, "multiple of 16"},
        {TERA / 2, "less than 2^40 bytes"},
        {TERA, "less than 2^40 bytes"},
        {INT64_MAX / 2 + 1, "less than 2^40 bytes"},
        {INT64_MAX, "less than 2^40 bytes"},
    };
    for (size_t i = 0; i < NUM_OPERANDS; i++) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            struct gj_gemm_args args = good;
            operand(&args, i)->ld = cases[c].ld;
            refused(&args, path_format("%s: ld = ", operands[i].name).text, number(cases[c].ld).text,
                    cases[c].rule);
        }
        struct gj_gemm_args args = good;
        operand(&args, i)->ld = operands[i].columns - 8;
        refused(&args, path_format("%s: ld", operands[i].name).text, number(operands[i].columns - 8).text,
                path_format("extent, %lld", (long long)operands[i].columns).text);
        operand(&args, i)->ld = operands[i].columns;
        args.batch = 1;
        accepted(&args);
        operand(&args, i)->ld = TERA / 2 - 8;
        accepted(&args);
    }
}

/* A row stride in elements is judged in bytes: 65 is wrong for 16-bit elements, 68 only for them. */
static void strides_count_bytes(void **state)
{
    (void)state;
    struct gj_gemm_args args = {.m = 8, .n = 8, .k = 65, .batch = 1};
    args.a = (struct gj_tensor){ADDRESS(0x1000), 65, 0};
    args.b = (struct gj_tensor){ADDRESS(0x2000), 72, 0};
    args.d = (struct gj_tensor){ADDRESS(0x3000), 8, 0};
    refused(&args, "A: ld = 65 elements of 2 bytes = 130 bytes", "multiple of 16", NULL);
    args.a.ld = 72;
    accepted(&args);
    args.d.ld = 12;
    refused(&args, "D: ld = 12 elements of 2 bytes = 24 bytes", "multiple of 16", NULL);
    accepted_by("d=f32.n,tile=64x16,cluster=1x1", &args);
    args.d.ld = 10;
    refused_by("d=f32.n,tile=64x16,cluster=1x1", &args, "D: ld = 10 elements of 4 bytes = 40 bytes",
               "multiple of 16", NULL);
}

static void batch_strides(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_OPERANDS; i++) {
        static const int64_t wrong[] = {INT64_MIN, -8, 100 * 80 + 4, 100 * 80 + 1, TERA / 2, INT64_MAX};
        for (size_t c = 0; c < sizeof wrong / sizeof wrong[0]; c++) {
            struct gj_gemm_args args = good;
            operand(&args, i)->batch_stride = wrong[c];
            const bool is_range = wrong[c] < 0 || wrong[c] >= TERA / 2;
            refused(&args, path_format("%s: batch_stride = ", operands[i].name).text, number(wrong[c]).text,
                    is_range ? "from 0 to less than 2^40 bytes" : "multiple of 16");
            args.batch = 1; /* then it is not read */
            accepted(&args);
        }
    }
    /* A and B may be shared by all batches, and their batches may overlap. */
    struct gj_gemm_args args = good;
    args.a.batch_stride = args.b.batch_stride = 0;
    accepted(&args);
    args.a.batch_stride = args.b.batch_stride = 8;
    accepted(&args);
}

/* -- Batches of D ---------------------------------------------------------------------------------------- */

static void d_with(int64_t m, int64_t n, int64_t batch, int64_t ld, int64_t batch_stride, bool is_accepted)
{
    struct gj_gemm_args args = good;
    args.m = m;
    args.n = n;
    args.batch = batch;
    args.a.batch_stride = args.b.batch_stride = 0;
    args.d.ld = ld;
    args.d.batch_stride = batch_stride;
    if (is_accepted)
        accepted(&args);
    else
        refused(&args, "D: batch_stride = ", number(batch_stride).text, "batches overlap");
}

static void batches_of_d(void **state)
{
    (void)state;
    d_with(100, 48, 3, 48, 0, false);
    d_with(100, 48, 3, 48, 48, false);
    d_with(100, 48, 3, 48, 4792, false);
    d_with(100, 48, 3, 48, 4800, true);
    /* The last row of a batch need not be followed by its padding. */
    d_with(100, 48, 3, 64, 99 * 64 + 40, false);
    d_with(100, 48, 3, 64, 99 * 64 + 48, true);
    /* Batches side by side in the rows of one wide matrix. */
    d_with(100, 48, 3, 144, 48, true);
    d_with(100, 48, 3, 136, 48, false);
    d_with(100, 48, 3, 144, 40, false);
    d_with(100, 48, 3, 144, 56, false);
    d_with(100, 48, 3, 160, 56, true);
    d_with(1, 48, 3, 48, 48, true);
    d_with(1, 48, 3, 48, 40, false);
    d_with(100, 48, 1, 48, 0, true);
    d_with(100, 48, 2, 48, 8, false);
    d_with(100, 42, 3, 48, 99 * 48 + 40, false);
    d_with(100, 42, 3, 48, 99 * 48 + 48, true);
    struct gj_gemm_args args = good;
    args.d.batch_stride = 64;
    refused(&args, "D: batch_stride = 64", "one spans 4800 elements", "rows are 48 apart");
}

/* Where the sizes that are compared do not fit 64 bits. */
static void huge_batches_of_d(void **state)
{
    (void)state;
    const int64_t most = GJ_EXTENT_MAX, widest = TERA / 2 - 8;
    d_with(most, 48, 2, widest, widest, false);
    d_with(most, 48, most, widest, widest, false);
    d_with(most, 48, 2, widest, 48, true);
    d_with(most, 48, most, widest, 48, true);
    d_with(most, 48, most, widest, 256, true); /* 2^31 - 4098 times 256 and 48 more are less than 2^39 - 8 */
    d_with(most, 48, most, widest, 264, false);
    d_with(most, 48, most, widest, GIGA, false);
    d_with(2, 48, most, 48, 96, true);
    d_with(1, 48, most, widest, widest, true);
}

/* -- Everything else ------------------------------------------------------------------------------------- */

static void extents(void **state)
{
    (void)state;
    static const int64_t wrong[] = {
        INT64_MIN, -1, (int64_t)GJ_EXTENT_MAX + 1, INT32_MAX, 2 * GIGA, 4 * GIGA, 4 * GIGA + 1, INT64_MAX};
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
        {"m", offsetof(struct gj_gemm_args, m)},
        {"n", offsetof(struct gj_gemm_args, n)},
        {"k", offsetof(struct gj_gemm_args, k)},
        {"batch", offsetof(struct gj_gemm_args, batch)},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (size_t c = 0; c < sizeof wrong / sizeof wrong[0]; c++) {
            struct gj_gemm_args args = good;
            memcpy((char *)&args + names[i].offset, &wrong[c], sizeof wrong[c]);
            refused(&args, path_format("%s = %lld:", names[i].name, (long long)wrong[c]).text,
                    "an extent is from 0 to 2147479551", NULL);
            memset((char *)&args.a, 0, sizeof args.a); /* extents are judged first */
            refused(&args, path_format("%s = ", names[i].name).text, NULL, NULL);
        }
    }
    struct gj_gemm_args args = good;
    args.m = args.batch = GJ_EXTENT_MAX;
    args.a.batch_stride = args.b.batch_stride = 0;
    args.d.ld = (int64_t)GJ_EXTENT_MAX * 48 + 64; /* 48 * (2^31 - 4097) + 64, a multiple of 8 */
    args.d.ld -= args.d.ld % 8;
    args.d.batch_stride = 48;
    accepted(&args);
}

static void empty_problems(void **state)
{
    (void)state;
    const struct gj_gemm_args nothing = {0};
    accepted(&nothing);
    for (int i = 0; i < 16; i++) {
        const struct gj_gemm_args args = {
            .m = i & 1 ? 5 : 0, .n = i & 2 ? 5 : 0, .k = i & 4 ? 5 : 0, .batch = i & 8 ? 5 : 0};
        if (args.m != 0 && args.n != 0 && args.batch != 0)
            refused(&args, "data is NULL", NULL, NULL);
        else
            accepted(&args);
    }
    /* k = 0 writes zeros: A and B are not read, D must be right. */
    struct gj_gemm_args args = good;
    args.k = 0;
    args.a = args.b = (struct gj_tensor){0};
    accepted(&args);
    args.d.data = (char *)args.d.data + 2;
    refused(&args, "D: data = 0x30002", NULL, NULL);
}

static void modes(void **state)
{
    (void)state;
    struct gj_gemm_args args = good;
    for (int raster = -2; raster < 6; raster++) {
        args.raster = (enum gj_raster)raster;
        if (raster >= GJ_RASTER_HEURISTIC && raster <= GJ_RASTER_ALONG_N)
            accepted(&args);
        else
            refused(&args, path_format("raster = %d", raster).text, "enum gj_raster", NULL);
    }
    args = good;
    args.group_size = -1;
    refused(&args, "group_size = -1", "must not be negative", NULL);
    args.group_size = INT32_MAX;
    accepted(&args);
    args = good;
    args.c.data = ADDRESS(0x40000);
    refused(&args, "C is given", "c=none", NULL);
    args.m = 0; /* wrong is wrong, however little there is to do */
    refused(&args, "C is given", NULL, NULL);
}

static void max_sms(void **state)
{
    (void)state;
    struct gj_gemm_args args = good;
    args.max_sms = -1;
    refused(&args, "max_sms = -1", "must be 0, or at least the cluster's 1 CTAs", NULL);
    args.max_sms = 1;
    accepted(&args);
    refused_by("cluster=2x1", &args, "max_sms = 1", "at least the cluster's 2 CTAs", NULL);
    refused_by("tile=128x128,cluster=1x2", &args, "max_sms = 1", "at least the cluster's 2 CTAs", NULL);
    args.max_sms = 2;
    accepted_by("cluster=2x1", &args);
    args.max_sms = INT32_MAX;
    accepted(&args);
}

/* -- Through the public calls, without a driver ---------------------------------------------------------- */

static void before_the_driver(void **state)
{
    (void)state;
    struct kernels kernels;
    setenv("GEMMJIT_CUDA", "/nonexistent/libcuda.so.1", 1);
    kernels_open(&kernels);
    gj_kernel *const kernel = kernels_get(&kernels, small_key);
    const struct gj_key problem = gj_key_default();
    gj_error *error = NULL;

    struct gj_gemm_args args = good;
    args.b.ld = 73;
    check_error(gj_launch(kernel, &args, NULL, &error), GJ_ERR_ARGUMENT, &error, "B: ld = 73", NULL);
    check_error(gj_gemm(kernels.context, &problem, &args, NULL, &error), GJ_ERR_ARGUMENT, &error,
                "B: ld = 73", NULL);
    assert_int_equal(gj_launch(kernel, &args, NULL, NULL), GJ_ERR_ARGUMENT);
    assert_int_equal(gj_gemm(kernels.context, &problem, &args, NULL, NULL), GJ_ERR_ARGUMENT);

    args = good;
    args.n = -1;
    check_error(gj_gemm(kernels.context, &problem, &args, NULL, &error), GJ_ERR_ARGUMENT, &error, "n = -1",
                NULL);

    /* Nothing to do needs no driver. */
    const struct gj_gemm_args nothing = {.m = 0, .n = 5, .k = 5, .batch = 1};
    assert_int_equal(gj_launch(kernel, &nothing, NULL, &error), GJ_OK);
    assert_int_equal(gj_gemm(kernels.context, &problem, &nothing, NULL, &error), GJ_OK);
    assert_null(error);

    check_error(gj_launch(kernel, &good, NULL, &error), GJ_ERR_NO_DRIVER, &error, "/nonexistent/libcuda.so.1",
                NULL);
    check_error(gj_gemm(kernels.context, &problem, &good, NULL, &error), GJ_ERR_NO_DRIVER, &error,
                "/nonexistent/libcuda.so.1", NULL);
    check_error(gj_kernel_prepare(kernel, 0, &error), GJ_ERR_NO_DRIVER, &error, "/nonexistent/libcuda.so.1",
                NULL);

    struct gj_key unknown = problem;
    unknown.d = (struct gj_format){GJ_DTYPE_NONE, GJ_MAJOR_NONE};
    check_error(gj_gemm(kernels.context, &unknown, &good, NULL, &error), GJ_ERR_UNSUPPORTED, &error, NULL);
    kernels_close(&kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_arguments),    cmocka_unit_test(addresses),
        cmocka_unit_test(row_strides),       cmocka_unit_test(strides_count_bytes),
        cmocka_unit_test(batch_strides),     cmocka_unit_test(batches_of_d),
        cmocka_unit_test(huge_batches_of_d), cmocka_unit_test(extents),
        cmocka_unit_test(empty_problems),    cmocka_unit_test(modes),
        cmocka_unit_test(max_sms),           cmocka_unit_test(before_the_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
