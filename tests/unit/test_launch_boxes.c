/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the arithmetic of launches with sched=single, on a fake libcuda:
 * grids and their largest bounds, boxes and bytes of all types and majors, stages along K. Argument: the fake
 * libcuda. */
#include <gemmjit/launch.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "single_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- grids ----------------------------------------------------------------------------------------------- */

static void clusters_and_limits(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t m, n;
        int max_sms;
        unsigned cluster, ctas;
    } cases[] = {
        /* 157 tiles of 64 rows of B; 5 of 16 of A, or 3 of 32 */
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 70, 10000, 0, 2, 2 * 157 * 5},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"), 16, 64, 0, 4, 4},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"), 16, 10000, 8, 4, 4 * 157},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2,ctas_per_sm=2"), 16, 10000, 0, 2, 2 * 157},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 16, 10000, 1, 1, 2},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 16, 10000, 65, 1, 130},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 16, 10000, 66, 1, 132},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 16, 10000, 67, 1, 132},
        {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"), 16, 100, 0, 1, 2},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes,ctas_per_sm=2", 16, 10000, 1, 2, 2},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes,ctas_per_sm=2", 16, 10000, 3, 2, 6},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes", 16, 10000, 3, 2, 2},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes,tiles=once", 16, 10000, 40, 2, 2 * 79},
        {"sched=single,cluster=1x2,tile=64x48", 64, 10000, 0, 2, 2 * 105},
        {"sched=single,cluster=1x2,tile=64x48,tiles=once", 65, 10000, 0, 2, 2 * 105 * 2},
        {"sched=single,cluster=1x2,tile=64x48", 65, 10000, 0, 2, 2 * 132},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gj_gemm_args args = single_args(cases[i].m, cases[i].n, 4096, 0);
        args.max_sms = cases[i].max_sms;
        const struct fake_launch *const made = single_launch(cases[i].key, &args);
        assert_int_equal(made->config.numAttrs, 1);
        assert_int_equal(made->attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        assert_int_equal(made->attributes[0].value.clusterDim.x, cases[i].cluster);
        assert_int_equal(made->attributes[0].value.clusterDim.y, 1);
        if (made->config.gridDimX != cases[i].ctas)
            fail_msg("%s, max_sms %d: %u CTAs, not %u", cases[i].key, cases[i].max_sms, made->config.gridDimX,
                     cases[i].ctas);
        assert_int_equal(made->config.gridDimY * made->config.gridDimZ, 1);
    }
}

/* A bound above all SMs is none, however large. */
static void largest_max_sms(void **state)
{
    (void)state;
    static const int bounds[] = {132, 133, 1 << 29, 1 << 30, INT_MAX - 1, INT_MAX};
    static const char *const keys[] = {ALONE("tile=64x16,swap_ab=yes,ctas_per_sm=2"),
                                       ALONE("tile=64x16,swap_ab=yes"), "tile=64x64,cluster=1x1"};
    struct gj_gemm_args args = single_args(16, 10000, 4096, 0);
    for (size_t k = 0; k < COUNT(keys); k++) {
        for (size_t i = 0; i < COUNT(bounds); i++) {
            args.max_sms = bounds[i];
            assert_int_equal(single_launch(keys[k], &args)->config.gridDimX, 132);
        }
    }
}

static void max_sms_below_a_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int refused;
    } cases[] = {
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"), 3},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4,ctas_per_sm=2"), 1},
        {"sched=single,cluster=2x1,tile=64x16,swap_ab=yes", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        gj_error *error = NULL;
        char text[32];
        struct gj_gemm_args args = single_args(16, 4096, 4096, 0);
        args.max_sms = cases[i].refused;
        snprintf(text, sizeof text, "max_sms = %d", cases[i].refused);
        gj_kernel *const kernel = kernels_get(&single.kernels, cases[i].key);
        check_error(gj_launch(kernel, &args, &single.stream, &error), GJ_ERR_ARGUMENT, &error, text, NULL);
        args.max_sms++;
        assert_int_equal(gj_launch(kernel, &args, &single.stream, NULL), GJ_OK);
    }
}

/* From 2^30 tiles on a grid of clusters of four has 2^32 CTAs and more, which is more than a grid may have.
 */
static void grid_of_too_many_ctas(void **state)
{
    (void)state;
    static const char *const keys[] = {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=4"),
                                       "sched=coop,tile=128x64,cluster=2x2,tiles=once"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        gj_error *error = NULL;
        struct gj_gemm_args args = single_args(1, 8, 64, 0);
        args.b.batch_stride = 0;
        args.batch = (1 << 30) + 1;
        gj_kernel *const kernel = kernels_get(&single.kernels, keys[i]);
        fake_forget(single.fake);
        const enum gj_status status = gj_launch(kernel, &args, &single.stream, &error);
        if (single.fake->num_launches > 0)
            print_error("%s: %u CTAs\n", keys[i], single.fake->launches[0].config.gridDimX);
        check_error(status, GJ_ERR_ARGUMENT, &error, "batch = 1073741825", NULL);
    }
}

/* -- bytes of a stage ------------------------------------------------------------------------------------ */

/* What all sharing CTAs' boxes bring for a stage: of boxes of 128 bytes in a row. */
static unsigned delivered(const struct gj_plan *plan, const struct fake_map *map, bool is_a)
{
    const struct gj_key *const key = &plan->kernel;
    const unsigned element = (unsigned)gj_dtype_bytes(key->a.dtype);
    const bool k_major = (is_a ? key->a.major : key->b.major) == GJ_MAJOR_K;
    const int tile = is_a ? key->tile_m : key->tile_n;
    const unsigned sharers = (unsigned)(is_a ? key->cluster_n : key->cluster_m);
    const unsigned boxes = k_major ? 1 : ((unsigned)tile + 63) / 64;
    assert_int_equal(map->box[0] * element, 128);
    return (unsigned)plan->atoms * boxes * sharers * map->box[1] * 128;
}

static void check_bytes(const char *text, int64_t m, int64_t n)
{
    const struct gj_plan plan = plan_of(text);
    const struct gj_key *const key = &plan.kernel;
    struct gj_gemm_args args = single_args(m, n, 512, 0);
    if (plan.key.a.major == GJ_MAJOR_M)
        args.a.ld = single_align(m);
    if (plan.key.b.major == GJ_MAJOR_N)
        args.b.ld = single_align(n);
    const struct fake_launch *const made = single_launch(text, &args);
    const bool swaps = plan.key.swap_ab == GJ_SWAP_AB_YES;
    for (int i = 0; i < 2; i++) {
        const bool is_a = i == 0;
        const int64_t extent = is_a == swaps ? n : m;
        const int tile = is_a ? key->tile_m : key->tile_n;
        const int sharers = is_a ? key->cluster_n : key->cluster_m;
        const bool k_major = (is_a ? key->a.major : key->b.major) == GJ_MAJOR_K;
        const bool alone = key->cluster_m * key->cluster_n == 1;
        const int64_t rows = k_major ? (alone && extent < tile ? extent : tile / sharers) : 64 / sharers;
        assert_int_equal(made->maps[i].box[1], rows);
        assert_int_equal(is_a ? made->params.a_bytes : made->params.b_bytes,
                         delivered(&plan, &made->maps[i], is_a));
    }
}

static void bytes_of_a_stage(void **state)
{
    (void)state;
    static const char *const keys[] = {
        SWAPPED,
        ALONE("tile=64x64,swap_ab=yes,ctas_per_sm=2"),
        ALONE("tile=128x80"),
        ALONE("a=e4m3.k,b=e5m2.k,fp8acc=fast,tile=64x32,swap_ab=yes"),
        ALONE("a=e4m3.k,b=e4m3.k,fp8acc=promoted,tile=64x32"),
        ALONE("a=bf16.m,tile=64x80,swap_ab=yes"),
        ALONE("b=bf16.n,tile=128x80"),
        "sched=single,cluster=2x1,a=bf16.m,b=bf16.n,tile=64x80,swap_ab=yes",
        "sched=single,cluster=1x2,a=e4m3.k,b=e4m3.k,fp8acc=promoted,tile=128x32",
        "sched=single,cluster=2x1,tile=64x16,swap_ab=yes,ctas_per_sm=2",
    };
    static const int extents[] = {1, 8, 15, 16, 17, 63, 64, 79, 80, 81, 127, 128, 129, 1000};
    for (size_t i = 0; i < COUNT(keys); i++)
        for (size_t m = 0; m < COUNT(extents); m++)
            for (size_t n = 0; n < COUNT(extents); n += 1 + m % 3)
                check_bytes(keys[i], extents[m], extents[n]);
}

/* Other schedules load whole tiles, which lie where their constants say. */
static void other_schedules_are_not_cut(void **state)
{
    (void)state;
    static const char *const keys[] = {"sched=pingpong,tile=64x64,cluster=1x1",
                                       "sched=coop,tile=128x64,cluster=1x1,swap_ab=yes"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct gj_plan plan = plan_of(keys[i]);
        const struct gj_gemm_args args = single_args(3, 5, 512, 0);
        const struct fake_launch *const made = single_launch(keys[i], &args);
        assert_int_equal(made->maps[0].box[1], plan.kernel.tile_m);
        assert_int_equal(made->maps[1].box[1], plan.kernel.tile_n);
    }
}

/* -- stages ---------------------------------------------------------------------------------------------- */

static void stages_along_k(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t k;
        int tiles, start;
    } cases[] = {
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 0, 2, 128},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 8, 2, 0},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 256, 2, 0},
        {ALONE("tile=64x16,swap_ab=yes,tiles=once,split_k=2"), 264, 3, 0},
        {ALONE("tile=64x64,tiles=once,split_k=2,ctas_per_sm=2"), 0, 2, 64},
        {ALONE("tile=64x64,tiles=once,split_k=2,ctas_per_sm=2"), 136, 3, 0},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16,tiles=once,split_k=4"), 0, 4, 256},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=fast,tile=64x16,tiles=once,split_k=4"), 1040, 5, 0},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=promoted,tile=64x16,tiles=once,split_k=4"), 0, 4, 128},
        {ALONE("a=e4m3.k,b=e4m3.k,fp8acc=promoted,tile=64x16,tiles=once,split_k=4"), 528, 5, 0},
        {SWAPPED, 0, 1, 128},
        {SWAPPED, 1, 1, 0},
        {SWAPPED, 128, 1, 0},
        {SWAPPED, 129, 2, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_gemm_args args = single_args(16, 300, cases[i].k, 0);
        const struct fake_launch *const made = single_launch(cases[i].key, &args);
        assert_int_equal(made->params.k_tiles, cases[i].tiles);
        assert_int_equal(made->params.k_start, cases[i].start);
        if (cases[i].k == 0) /* the stand-ins end before the first stage */
            assert_true(made->maps[0].extents[0] <= (cuuint64_t)made->params.k_start &&
                        made->maps[1].extents[0] <= (cuuint64_t)made->params.k_start);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, single_set_up, single_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(clusters_and_limits),         TEST(largest_max_sms),
        TEST(max_sms_below_a_cluster),     TEST(bytes_of_a_stage),
        TEST(other_schedules_are_not_cut), TEST(stages_along_k),
        TEST(grid_of_too_many_ctas),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    single.library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
