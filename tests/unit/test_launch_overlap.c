/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what launches with sched=single overlap, on a fake libcuda: beside test_launch_single.c, the flags
 * and attributes of all schedules, limits in bytes, tokens and waves, scalars in device memory. Argument: the
 * fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/args.h"
#include "single_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BOTH (GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT)

static unsigned overlap_of(const char *key, const struct gj_gemm_args *args)
{
    return single_launch(key, args)->params.overlap;
}

/* -- attributes ------------------------------------------------------------------------------------------ */

/* One attribute without the flag, and of kernels that do not wait, whatever the flags say. */
static void attributes_of_each_schedule(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool waits;
    } cases[] = {
        {"sched=pingpong,tile=64x64,cluster=1x1", false},
        {"sched=pingpong,tile=128x128,cluster=2x1", false},
        {"sched=coop,tile=128x128,cluster=1x1,tiles=once", false},
        {"sched=coop,tile=128x128,cluster=1x1,tiles=dynamic", false},
        {ALONE("tile=64x64"), true},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), true},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"), true},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes", true},
    };
    static const unsigned flags[] = {0, GJ_LAUNCH_OVERLAP, BOTH};
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t f = 0; f < COUNT(flags); f++) {
            const struct gj_gemm_args args = single_args(16, 4096, 4096, flags[f]);
            const struct fake_launch *const made = single_launch(cases[i].key, &args);
            const unsigned expected = cases[i].waits && flags[f] != 0 ? 2 : 1;
            assert_int_equal(made->config.numAttrs, expected);
            assert_int_equal(made->attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
            if (expected == 2)
                assert_int_equal(made->attributes[1].id,
                                 CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
        }
    }
}

/* -- what overlaps --------------------------------------------------------------------------------------- */

#define ALL (overlap_b_once | overlap_early | overlap_b_constant)

/* 128 MiB of B in all batches, in bytes of its type. */
static void bytes_of_b(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t n, k, batch;
        bool early;
    } cases[] = {
        {SWAPPED, 4096, 16384, 1, true},
        {SWAPPED, 4096, 16384 + 8, 1, false},
        {SWAPPED, 4096 + 1, 16384, 1, false},
        {SWAPPED, 1024, 4096, 16, true},
        {SWAPPED, 1024, 4096, 17, false},
        {ALONE("tile=64x32"), 4096, 16384, 1, true},
        {ALONE("tile=64x32"), 4096, 16384 + 8, 1, false},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16,swap_ab=yes"), 8192, 16384, 1, true},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16,swap_ab=yes"), 8192, 16384 + 16, 1, false},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16"), 8192, 16384, 1, true},
        {SWAPPED, 4096, 0, 1, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gj_gemm_args args = single_args(16, cases[i].n, cases[i].k, GJ_LAUNCH_OVERLAP);
        args.batch = cases[i].batch;
        if ((overlap_of(cases[i].key, &args) & overlap_early) != (cases[i].early ? overlap_early : 0))
            fail_msg("%s, n %lld, k %lld, batch %lld", cases[i].key, (long long)cases[i].n,
                     (long long)cases[i].k, (long long)cases[i].batch);
    }
}

/* The product of all extents is past 2^63: still more than 128 MiB, and nothing overflows on the way. */
static void largest_b(void **state)
{
    (void)state;
    struct gj_gemm_args args = single_args(1, 8, GJ_EXTENT_MAX, GJ_LAUNCH_OVERLAP);
    args.a.batch_stride = args.b.batch_stride = 0;
    args.d.ld = args.d.batch_stride = 16;
    static const int64_t batches[] = {1, 1 << 29, 1 << 30, GJ_EXTENT_MAX};
    for (size_t i = 0; i < COUNT(batches); i++) {
        const unsigned expected = batches[i] == 1 ? overlap_b_once : 0; /* they share B */
        args.batch = batches[i];
        assert_int_equal(overlap_of(SWAPPED, &args), expected);
        assert_int_equal(overlap_of(ALONE("tile=64x16"), &args), expected);
    }
}

static void tokens(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t m;
        unsigned expected;
    } cases[] = {
        {ALONE("tile=64x64,swap_ab=yes"), 1, ALL},
        {ALONE("tile=64x64,swap_ab=yes"), 64, ALL},
        {ALONE("tile=64x64,swap_ab=yes"), 65, overlap_b_constant},
        {ALONE("tile=64x128,swap_ab=yes"), 65, overlap_b_once | overlap_b_constant},
        {ALONE("tile=64x128,swap_ab=yes"), 128, overlap_b_once | overlap_b_constant},
        {ALONE("tile=64x128,swap_ab=yes"), 129, overlap_b_constant},
        {ALONE("tile=128x32"), 64, ALL},
        {ALONE("tile=128x32"), 65, overlap_b_once | overlap_b_constant},
        {ALONE("tile=128x32"), 129, overlap_b_constant},
        {ALONE("tile=64x32"), 1, ALL},
        {"sched=single,cluster=2x1,tile=64x32,swap_ab=yes", 32, ALL},
        {"sched=single,cluster=2x1,tile=64x32,swap_ab=yes", 33, overlap_early | overlap_b_constant},
        {"sched=single,cluster=1x2,tile=64x32", 64, ALL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_gemm_args args = single_args(cases[i].m, 2048, 2048, BOTH);
        if (overlap_of(cases[i].key, &args) != cases[i].expected)
            fail_msg("%s, m %lld: %u, not %u", cases[i].key, (long long)cases[i].m,
                     single.fake->launches[0].params.overlap, cases[i].expected);
    }
}

/* A wave is what fits: clusters, not CTAs. */
static void waves(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t n;
        bool early;
    } cases[] = {
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 60 * 64, true},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 60 * 64 + 1, false},
        {ALONE("tile=128x16,swap_ab=yes,tiles=once,split_k=4"), 60 * 128, true},
        {ALONE("tile=128x16,swap_ab=yes,tiles=once,split_k=4"), 60 * 128 + 1, false},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes,tiles=once", 60 * 128, true},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes,tiles=once", 60 * 128 + 1, false},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes", 60 * 128 + 1, true},
        {ALONE("tile=64x16,swap_ab=yes"), 200 * 64, true},
    };
    single.fake->max_clusters = 60;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_gemm_args args = single_args(16, cases[i].n, 512, BOTH);
        if (overlap_of(cases[i].key, &args) != (cases[i].early ? ALL : overlap_b_once | overlap_b_constant))
            fail_msg("%s, n %lld: %u", cases[i].key, (long long)cases[i].n,
                     single.fake->launches[0].params.overlap);
    }
}

/* Loads ahead of the launch in front must not depend on what that may write: alpha and the order of batches
 * in device memory. beta is read by those who wait. */
static void scalars_and_loads_ahead(void **state)
{
    (void)state;
    struct gj_gemm_args args = single_args(16, 2048, 2048, BOTH);
    assert_int_equal(overlap_of(ALONE("alpha=host,tile=64x16,swap_ab=yes"), &args), ALL);
    for (int swaps = 0; swaps < 2; swaps++) {
        args.alpha_device = ADDRESS(0x40000);
        assert_int_equal(overlap_of(swaps ? ALONE("alpha=device,tile=64x16,swap_ab=yes")
                                          : ALONE("alpha=device,tile=64x16"),
                                    &args),
                         overlap_b_once | overlap_early);
        args.alpha_device = NULL;
        args.batch_order = ADDRESS(0x50000);
        assert_int_equal(overlap_of(swaps ? SWAPPED : ALONE("tile=64x16"), &args),
                         overlap_b_once | overlap_early);
        args.batch_order = NULL;
    }
    single.fake->num_maps = 6;
    args.c = (struct gj_tensor){ADDRESS(0x60000), 2048, 0};
    args.beta_device = ADDRESS(0x40000);
    assert_int_equal(overlap_of(ALONE("c=bf16.n,beta=device,tile=64x16,swap_ab=yes"), &args), ALL);
}

/* B is the caller's B, with swap_ab and without: a batch_stride of 0 does not change what may be ahead. */
static void without_flags_only_a_hint(void **state)
{
    (void)state;
    static const char *const keys[] = {SWAPPED, ALONE("tile=64x32"),
                                       ALONE("alpha=device,tile=64x16,swap_ab=yes")};
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct gj_gemm_args args = single_args(8, 2048, 2048, 0);
        args.alpha_device = i == 2 ? ADDRESS(0x40000) : NULL;
        assert_int_equal(overlap_of(keys[i], &args), overlap_b_once);
        args = single_args(65, 2048, 2048, 0);
        args.alpha_device = i == 2 ? ADDRESS(0x40000) : NULL;
        assert_int_equal(overlap_of(keys[i], &args), 0);
    }
}

/* -- flags ----------------------------------------------------------------------------------------------- */

static void unknown_flags(void **state)
{
    (void)state;
    static const char *const keys[] = {SWAPPED, "sched=pingpong,tile=64x64,cluster=1x1"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        gj_kernel *const kernel = kernels_get(&single.kernels, keys[i]);
        for (unsigned bit = 2; bit < 32; bit++) {
            char value[32];
            gj_error *error = NULL;
            struct gj_gemm_args args = single_args(16, 4096, 4096, 1u << bit | BOTH);
            snprintf(value, sizeof value, "flags = 0x%x:", args.flags);
            check_error(gj_launch(kernel, &args, &single.stream, &error), GJ_ERR_ARGUMENT, &error, value,
                        "GJ_LAUNCH_OVERLAP (0x1)", "GJ_LAUNCH_B_CONSTANT (0x2)", NULL);
            args.m = 0; /* also where nothing is to be done */
            check_error(gj_launch(kernel, &args, &single.stream, &error), GJ_ERR_ARGUMENT, &error, value,
                        NULL);
        }
        gj_error *error = NULL;
        const struct gj_gemm_args args = single_args(16, 4096, 4096, GJ_LAUNCH_B_CONSTANT);
        gj_prepared *prepared = NULL;
        check_error(gj_launch(kernel, &args, &single.stream, &error), GJ_ERR_ARGUMENT, &error,
                    "flags = GJ_LAUNCH_B_CONSTANT without GJ_LAUNCH_OVERLAP", NULL);
        check_error(gj_launch_prepare(kernel, &args, 0, &prepared, &error), GJ_ERR_ARGUMENT, &error,
                    "flags = GJ_LAUNCH_B_CONSTANT without GJ_LAUNCH_OVERLAP", NULL);
        assert_null(prepared);
    }
    assert_int_equal(single.fake->num_launches, 0);
}

/* A prepared launch has the attributes and parameters of a launch with its arguments, again and again. */
static void prepared_launches(void **state)
{
    (void)state;
    static const char *const keys[] = {SWAPPED, ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"),
                                       "sched=pingpong,tile=64x64,cluster=1x1"};
    static const unsigned flags[] = {0, GJ_LAUNCH_OVERLAP, BOTH};
    const struct gj_pointers pointers = {
        .a = ADDRESS(0x110000), .b = ADDRESS(0x120000), .d = ADDRESS(0x130000)};
    for (size_t i = 0; i < COUNT(keys) * COUNT(flags); i++) {
        const struct gj_gemm_args args = single_args(7, 300, 512, flags[i % COUNT(flags)]);
        const char *const key = keys[i / COUNT(flags)];
        const struct fake_launch direct = *single_launch(key, &args);
        gj_prepared *prepared = NULL;
        assert_int_equal(gj_launch_prepare(kernels_get(&single.kernels, key), &args, 0, &prepared, NULL),
                         GJ_OK);
        fake_forget(single.fake);
        for (int time = 0; time < 2; time++) {
            assert_int_equal(gj_prepared_launch(prepared, &pointers, &single.stream, NULL), GJ_OK);
            const struct fake_launch *const made = &single.fake->launches[time];
            assert_int_equal(made->config.numAttrs, direct.config.numAttrs);
            assert_int_equal(made->config.gridDimX, direct.config.gridDimX);
            assert_int_equal(made->params.overlap, direct.params.overlap);
            assert_int_equal(made->params.a_bytes, direct.params.a_bytes);
            assert_int_equal(made->params.b_bytes, direct.params.b_bytes);
            assert_int_equal(made->params.k_tiles, direct.params.k_tiles);
            assert_memory_equal(made->maps[0].box, direct.maps[0].box, sizeof direct.maps[0].box);
            assert_memory_equal(made->maps[1].box, direct.maps[1].box, sizeof direct.maps[1].box);
        }
        gj_prepared_free(&prepared);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, single_set_up, single_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(attributes_of_each_schedule),
        TEST(bytes_of_b),
        TEST(largest_b),
        TEST(tokens),
        TEST(waves),
        TEST(scalars_and_loads_ahead),
        TEST(without_flags_only_a_hint),
        TEST(unknown_flags),
        TEST(prepared_launches),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    single.library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
