/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launches with sched=single on a fake libcuda: clusters, attributes, boxes and the bytes that
 * arrive, what overlaps. Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BOTH (GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT)

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static struct fake_stream stream = {.device = 0};

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    fake->max_clusters = 132;
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    return 0;
}

/* m rows of A by n rows of B, all with rows of k elements of 16 bits. */
static struct gj_gemm_args args_of(int64_t m, int64_t n, int64_t k, unsigned flags)
{
    const int64_t ld = (k + 7) / 8 * 8;
    return (struct gj_gemm_args){.m = m,
                                 .n = n,
                                 .k = k,
                                 .batch = 1,
                                 .a = {ADDRESS(0x10000), ld, 0},
                                 .b = {ADDRESS(0x20000), ld, 0},
                                 .d = {ADDRESS(0x30000), (n + 7) / 8 * 8, 0},
                                 .flags = flags};
}

static const struct fake_launch *launch(const char *key, const struct gj_gemm_args *args)
{
    gj_error *error = NULL;
    gj_kernel *const kernel = kernels_get(&kernels, key);
    fake_forget(fake);
    if (gj_launch(kernel, args, &stream, &error) != GJ_OK)
        fail_msg("%s", error->message);
    assert_int_equal(fake->num_launches, 1);
    return &fake->launches[0];
}

#define SINGLE_KEY(fields) "cluster=1x1,sched=single," fields
#define SWAPPED SINGLE_KEY("tile=64x16,swap_ab=yes")

static void clusters_and_grids(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int max_sms;
        unsigned cluster, ctas;
    } cases[] = {
        {SINGLE_KEY("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 0, 2, 2 * 157},
        {SINGLE_KEY("tile=128x16,swap_ab=yes,tiles=once,split_k=4"), 0, 4, 4 * 79},
        {SINGLE_KEY("tile=64x16,swap_ab=yes,tiles=once"), 0, 1, 157},
        {SINGLE_KEY("tile=64x16,swap_ab=yes"), 0, 1, 132},
        {SINGLE_KEY("tile=64x16,swap_ab=yes"), 100, 1, 100},
        {SINGLE_KEY("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 50, 1, 100},
        {"cluster=2x1,sched=single,tile=64x16,swap_ab=yes", 0, 2, 2 * 79},
        {"cluster=2x1,sched=single,tile=64x16,swap_ab=yes", 40, 2, 40},
    };
    struct gj_gemm_args args = args_of(16, 10000, 4096, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        args.max_sms = cases[i].max_sms;
        const struct fake_launch *const made = launch(cases[i].key, &args);
        assert_int_equal(made->attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        assert_int_equal(made->attributes[0].value.clusterDim.x, cases[i].cluster);
        assert_int_equal(made->config.gridDimX, cases[i].ctas);
        assert_int_equal(made->config.blockDimX, 256);
    }
}

/* Only with the flag, and only of kernels that wait. */
static void the_attribute(void **state)
{
    (void)state;
    for (int single = 0; single < 2; single++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            if (flags == GJ_LAUNCH_B_CONSTANT)
                continue;
            const struct gj_gemm_args args = args_of(16, 4096, 4096, flags);
            const struct fake_launch *const made = launch(single ? SWAPPED : "tile=64x64,cluster=1x1", &args);
            const bool overlaps = single && flags & GJ_LAUNCH_OVERLAP;
            assert_int_equal(made->config.numAttrs, overlaps ? 2 : 1);
            if (!overlaps)
                continue;
            assert_int_equal(made->attributes[1].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
            assert_int_equal(made->attributes[1].value.programmaticStreamSerializationAllowed, 1);
        }
    }
}

static void what_overlaps(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int64_t m, n, k;
        unsigned flags, expected;
    } cases[] = {
        {"tile=64x16,swap_ab=yes", 1, 4096, 4096, 0, overlap_b_once},
        {"tile=64x16,swap_ab=yes", 16, 4096, 4096, GJ_LAUNCH_OVERLAP, overlap_b_once | overlap_early},
        {"tile=64x16,swap_ab=yes", 16, 4096, 4096, BOTH, overlap_b_once | overlap_early | overlap_b_constant},
        {"tile=64x16,swap_ab=yes", 17, 4096, 4096, BOTH, overlap_early | overlap_b_constant},
        {"tile=64x64,swap_ab=yes", 64, 4096, 4096, BOTH, overlap_b_once | overlap_early | overlap_b_constant},
        {"tile=64x80,swap_ab=yes", 65, 4096, 4096, BOTH, overlap_b_once | overlap_b_constant},
        {"tile=64x16,swap_ab=yes,tiles=once", 16, 132 * 64, 64, BOTH,
         overlap_b_once | overlap_early | overlap_b_constant},
        {"tile=64x16,swap_ab=yes,tiles=once", 16, 133 * 64, 64, BOTH, overlap_b_once | overlap_b_constant},
        {"tile=64x16,swap_ab=yes", 16, 8192, 8192, BOTH, overlap_b_once | overlap_early | overlap_b_constant},
        {"tile=64x16,swap_ab=yes", 16, 8192, 8200, BOTH, overlap_b_once | overlap_b_constant},
        {"tile=64x32", 64, 4096, 4096, BOTH, overlap_b_once | overlap_early | overlap_b_constant},
        {"tile=64x32", 65, 4096, 4096, BOTH, overlap_b_constant},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char key[128];
        snprintf(key, sizeof key, "cluster=1x1,sched=single,%s", cases[i].fields);
        const struct gj_gemm_args args = args_of(cases[i].m, cases[i].n, cases[i].k, cases[i].flags);
        assert_int_equal(launch(key, &args)->params.overlap, cases[i].expected);
    }
}

/* What the loads of B ahead would read from device memory keeps them from being ahead. */
static void nothing_is_read_ahead(void **state)
{
    (void)state;
    struct gj_gemm_args args = args_of(16, 4096, 4096, BOTH);
    args.alpha_device = ADDRESS(0x40000);
    assert_int_equal(launch(SINGLE_KEY("alpha=device,tile=64x16,swap_ab=yes"), &args)->params.overlap &
                         overlap_b_constant,
                     0);
    args.alpha_device = NULL;
    args.batch_order = ADDRESS(0x50000);
    assert_int_equal(launch(SWAPPED, &args)->params.overlap & overlap_b_constant, 0);
}

/* The bytes that barriers expect are those that the boxes of all sharing CTAs bring. */
static void check_bytes(const char *text, int64_t m, int64_t n)
{
    const struct gj_plan plan = plan_of(text);
    struct gj_gemm_args args = args_of(m, n, 512, 0);
    if (plan.key.a.major == GJ_MAJOR_M)
        args.a.ld = (m + 7) / 8 * 8;
    if (plan.key.b.major == GJ_MAJOR_N)
        args.b.ld = (n + 7) / 8 * 8;
    const struct fake_launch *const made = launch(text, &args);
    const struct gj_key *const key = &plan.kernel;
    for (int i = 0; i < 2; i++) {
        const struct fake_map *const map = &made->maps[i];
        const int boxes = i == 0 ? plan.a_boxes * key->cluster_n : plan.b_boxes * key->cluster_m;
        const unsigned bytes = (unsigned)(plan.atoms * boxes) * map->box[0] * map->box[1] * 2;
        const int whole = i == 0 ? plan.a_stage_bytes : plan.b_stage_bytes;
        const bool cut =
            (i == 0 ? key->a.major : key->b.major) == GJ_MAJOR_K && key->cluster_m * key->cluster_n == 1;
        const int64_t extent = map->extents[1];
        assert_int_equal(i == 0 ? made->params.a_bytes : made->params.b_bytes, bytes);
        assert_true(bytes <= (unsigned)whole);
        if (!cut || extent >= (i == 0 ? key->tile_m : key->tile_n))
            assert_int_equal(bytes, whole);
        else
            assert_int_equal(map->box[1], extent);
    }
}

static void bytes_of_a_stage(void **state)
{
    (void)state;
    static const char *const keys[] = {
        SINGLE_KEY("tile=64x16,swap_ab=yes"),
        SINGLE_KEY("tile=128x64,swap_ab=yes,tiles=once,split_k=4"),
        SINGLE_KEY("tile=64x112"),
        SINGLE_KEY("a=bf16.m,b=bf16.n,tile=64x32,swap_ab=yes"),
        "cluster=2x1,sched=single,tile=64x32,swap_ab=yes",
        "cluster=1x2,sched=single,tile=64x48",
        "cluster=1x2,sched=single,a=bf16.m,b=bf16.n,tile=64x64",
    };
    static const int extents[] = {1, 7, 16, 31, 64, 65, 300};
    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t m = 0; m < COUNT(extents); m++)
            for (size_t n = 0; n < COUNT(extents); n++)
                check_bytes(keys[i], extents[m], extents[n]);
}

/* At least one stage for each CTA of a split; what lies behind K reads as zeros. */
static void stages_of_a_split(void **state)
{
    (void)state;
    static const struct {
        int64_t k;
        int tiles, start;
    } cases[] = {{0, 4, 128}, {1, 4, 0}, {128, 4, 0}, {512, 4, 0}, {513, 5, 0}, {4096, 32, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gj_gemm_args args = args_of(16, 300, cases[i].k, 0);
        const struct fake_launch *const made =
            launch(SINGLE_KEY("tile=128x16,swap_ab=yes,tiles=once,split_k=4"), &args);
        assert_int_equal(made->params.k_tiles, cases[i].tiles);
        assert_int_equal(made->params.k_start, cases[i].start);
    }
}

static void flags_that_are_none(void **state)
{
    (void)state;
    gj_error *error = NULL;
    gj_kernel *const kernel = kernels_get(&kernels, SWAPPED);
    struct gj_gemm_args args = args_of(16, 4096, 4096, 4);
    check_error(gj_launch(kernel, &args, &stream, &error), GJ_ERR_ARGUMENT, &error, "flags = 0x4", NULL);
    args.flags = GJ_LAUNCH_B_CONSTANT;
    check_error(gj_launch(kernel, &args, &stream, &error), GJ_ERR_ARGUMENT, &error,
                "GJ_LAUNCH_B_CONSTANT without GJ_LAUNCH_OVERLAP", NULL);
    assert_int_equal(fake->num_launches, 0);
}

static void prepared_launches_keep_flags(void **state)
{
    (void)state;
    gj_prepared *prepared = NULL;
    gj_kernel *const kernel = kernels_get(&kernels, SWAPPED);
    const struct gj_gemm_args args = args_of(16, 4096, 4096, BOTH);
    const struct gj_pointers pointers = {
        .a = ADDRESS(0x110000), .b = ADDRESS(0x120000), .d = ADDRESS(0x130000)};
    assert_int_equal(gj_launch_prepare(kernel, &args, 0, &prepared, NULL), GJ_OK);
    fake_forget(fake);
    assert_int_equal(gj_prepared_launch(prepared, &pointers, &stream, NULL), GJ_OK);
    assert_int_equal(fake->launches[0].config.numAttrs, 2);
    assert_int_equal(fake->launches[0].params.overlap, overlap_b_once | overlap_early | overlap_b_constant);
    gj_prepared_free(&prepared);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(clusters_and_grids),  TEST(the_attribute),
        TEST(what_overlaps),       TEST(nothing_is_read_ahead),
        TEST(bytes_of_a_stage),    TEST(stages_of_a_split),
        TEST(flags_that_are_none), TEST(prepared_launches_keep_flags),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
