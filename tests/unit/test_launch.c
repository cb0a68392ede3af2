/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launches on a fake libcuda: tensor maps, parameters, grid, and what a hot launch may call.
 * Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/schedule.h"
#include "fake_control.h"
#include "kernel_fixture.h"

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
    for (int i = 0; i < FAKE_DEVICES; i++)
        assert_int_equal(fake->retained[i], 0);
    return 0;
}

static const struct gj_gemm_args basic = {
    .m = 1000,
    .n = 520,
    .k = 200,
    .batch = 1,
    .a = {ADDRESS(0x10000), 208, 0},
    .b = {ADDRESS(0x20000), 216, 0},
    .d = {ADDRESS(0x30000), 528, 0},
};

static const struct fake_launch *launch(gj_kernel *kernel, const struct gj_gemm_args *args)
{
    gj_error *error = NULL;
    fake_forget(fake);
    if (gj_launch(kernel, args, &stream, &error) != GJ_OK)
        fail_msg("%s", error->message);
    assert_int_equal(fake->num_launches, 1);
    return &fake->launches[0];
}

/* -- Tensor maps ----------------------------------------------------------------------------------------- */

static void check_map(const struct fake_map *map, const struct gj_tensor *tensor, int type,
                      const cuuint64_t extents[3], const cuuint64_t strides[2], cuuint32_t box_columns,
                      cuuint32_t box_rows, int swizzle)
{
    assert_ptr_equal(map->address, tensor->data);
    assert_int_equal(map->type, type);
    assert_int_equal(map->rank, 3);
    assert_memory_equal(map->extents, extents, 3 * sizeof *extents);
    assert_memory_equal(map->strides, strides, 2 * sizeof *strides);
    assert_int_equal(map->box[0], box_columns);
    assert_int_equal(map->box[1], box_rows);
    assert_int_equal(map->box[2], 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(map->steps[i], 1);
    assert_int_equal(map->interleave, CU_TENSOR_MAP_INTERLEAVE_NONE);
    assert_int_equal(map->swizzle, swizzle);
    assert_int_equal(map->fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void maps_of_one_gemm(void **state)
{
    (void)state;
    gj_kernel *const kernel = kernels_get(&kernels, "tile=128x192,cluster=2x1");
    const struct fake_launch *const made = launch(kernel, &basic);
    /* The second stride is never used with one batch: any legal one will do. */
    check_map(&made->maps[0], &basic.a, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, (cuuint64_t[]){200, 1000, 1},
              (cuuint64_t[]){416, made->maps[0].strides[1]}, 64, 128, CU_TENSOR_MAP_SWIZZLE_128B);
    check_map(&made->maps[1], &basic.b, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, (cuuint64_t[]){200, 520, 1},
              (cuuint64_t[]){432, made->maps[1].strides[1]}, 64, 96, CU_TENSOR_MAP_SWIZZLE_128B);
    const struct gj_plan plan = plan_of("tile=128x192,cluster=2x1");
    check_map(&made->maps[2], &basic.d, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, (cuuint64_t[]){520, 1000, 1},
              (cuuint64_t[]){1056, made->maps[2].strides[1]}, (cuuint32_t)plan.slab_n, 64,
              plan.slab_n == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
              : plan.slab_n == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                  : CU_TENSOR_MAP_SWIZZLE_32B);
}

/* Every slab width, with and without a tail, in each element type of D. */
static void maps_of_d(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "tile=64x16,cluster=1x1",           "tile=64x48,cluster=1x1",
        "tile=128x208,cluster=1x1",         "tile=128x176,cluster=2x1",
        "d=f32.n,tile=64x16,cluster=1x1",   "d=f32.n,tile=128x112,cluster=1x1",
        "d=f16.n,tile=128x128,cluster=1x2",
    };
    static const int types[] = {[GJ_DTYPE_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                [GJ_DTYPE_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                [GJ_DTYPE_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32};
    struct gj_gemm_args args = basic;
    args.batch = 3;
    args.d.batch_stride = 1000 * 528;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct gj_plan plan = plan_of(keys[i]);
        if (gj_key_check(&plan.key, NULL) != GJ_OK)
            continue;
        const struct fake_launch *const made = launch(kernels_get(&kernels, keys[i]), &args);
        const cuuint64_t bytes = gj_dtype_bytes(plan.key.d.dtype);
        const int row_bytes = plan.slab_n * (int)bytes;
        const cuuint64_t extents[3] = {520, 1000, 3}, strides[2] = {528 * bytes, 528000 * bytes};
        const int swizzle = row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                            : row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                              : CU_TENSOR_MAP_SWIZZLE_32B;
        assert_true(row_bytes == 128 || row_bytes == 64 || row_bytes == 32);
        check_map(&made->maps[2], &args.d, types[plan.key.d.dtype], extents, strides, (cuuint32_t)plan.slab_n,
                  64, swizzle);
        if (plan.tail_n > 0)
            check_map(&made->maps[3], &args.d, types[plan.key.d.dtype], extents, strides,
                      (cuuint32_t)plan.tail_n, 64, CU_TENSOR_MAP_SWIZZLE_NONE);
        assert_int_equal(plan.tail_n > 0, plan.key.tile_n % plan.slab_n > 0);
    }
}

static void maps_of_batches(void **state)
{
    (void)state;
    gj_kernel *const kernel = kernels_get(&kernels, "tile=64x16,cluster=1x1");
    struct gj_gemm_args args = basic;
    args.batch = 5;
    args.a.batch_stride = 1000 * 208;
    args.d.batch_stride = 1000 * 528;
    const struct fake_launch *const made = launch(kernel, &args);
    assert_int_equal(made->maps[0].extents[2], 5);
    assert_int_equal(made->maps[0].strides[1], 2 * 208000);
    assert_int_equal(made->params.a_batch_step, 1);
    /* All batches share one B: a stride of 0 is not a tensor map's. */
    assert_int_equal(made->maps[1].extents[2], 1);
    assert_true(made->maps[1].strides[1] > 0 && made->maps[1].strides[1] % 16 == 0);
    assert_int_equal(made->params.b_batch_step, 0);
    assert_int_equal(made->maps[2].extents[2], 5);
    assert_int_equal(made->maps[2].strides[1], 2 * 528000);

    args.a.batch_stride = 0;
    args.b.batch_stride = 8; /* they overlap, which reading does not mind */
    launch(kernel, &args);
    assert_int_equal(made->maps[0].extents[2], 1);
    assert_int_equal(made->params.a_batch_step, 0);
    assert_int_equal(made->maps[1].extents[2], 5);
    assert_int_equal(made->maps[1].strides[1], 16);
    assert_int_equal(made->params.b_batch_step, 1);

    /* With one batch the strides are not read at all. */
    args.batch = 1;
    args.a.batch_stride = args.b.batch_stride = args.d.batch_stride = 7;
    launch(kernel, &args);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(made->maps[i].extents[2], 1);
        assert_int_equal(made->maps[i].strides[1] % 16, 0);
    }
}

/* -- Parameters and grid --------------------------------------------------------------------------------- */

static void check_params(const char *key_text, struct gj_gemm_args args, enum gj_raster raster,
                         int group_size)
{
    const struct gj_plan plan = plan_of(key_text);
    args.raster = raster;
    args.group_size = group_size;
    const int64_t rows = (int64_t)plan.key.tile_m * plan.key.cluster_m;
    const int64_t columns = (int64_t)plan.key.tile_n * plan.key.cluster_n;
    struct tile_schedule schedule;
    assert_true(gj_schedule_make((args.m + rows - 1) / rows, (args.n + columns - 1) / columns, args.batch,
                                 raster, group_size ? group_size : 8, &schedule));
    const struct fake_launch *const made = launch(kernels_get(&kernels, key_text), &args);
    const struct gemm_params *const params = &made->params;
    assert_int_equal(params->m, args.m);
    assert_int_equal(params->n, args.n);
    assert_int_equal(params->k_tiles, (args.k + 63) / 64);
    assert_int_equal(params->k_start, 0);
    assert_int_equal(params->a_batch_step, args.a.batch_stride != 0);
    assert_int_equal(params->b_batch_step, args.b.batch_stride != 0);
    assert_int_equal(params->d_cut, args.n % 8 != 0);
    assert_int_equal(params->d_ld, args.d.ld);
    assert_int_equal(params->d_batch_stride, args.d.batch_stride);
    assert_ptr_equal(params->d, args.d.data);
    assert_null(params->batch_order);
    assert_null(params->tile_counter);
    assert_memory_equal(&params->schedule, &schedule, sizeof schedule);
    const unsigned cluster = (unsigned)(plan.key.cluster_m * plan.key.cluster_n);
    const unsigned tiles = schedule.num_tiles;
    assert_int_equal(made->config.gridDimX, cluster * (tiles < 66 ? tiles : 66));
}

static void parameters(void **state)
{
    (void)state;
    static const char *const keys[] = {"tile=64x16,cluster=1x1", "tile=128x192,cluster=2x1",
                                       "tile=128x128,cluster=1x2,sched=coop"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct gj_gemm_args args = basic;
        check_params(keys[i], args, GJ_RASTER_HEURISTIC, 0);
        check_params(keys[i], args, GJ_RASTER_ALONG_M, 3);
        args.n = 521;
        check_params(keys[i], args, GJ_RASTER_ALONG_N, 100);
        args.m = args.n = args.k = 1;
        check_params(keys[i], args, GJ_RASTER_HEURISTIC, 1);
        args = basic;
        args.batch = 7;
        args.a.batch_stride = 208 * 1000;
        args.d.batch_stride = 528 * 1000;
        check_params(keys[i], args, GJ_RASTER_HEURISTIC, 0);
    }
}

static void launch_config(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        unsigned cluster;
    } cases[] = {
        {"tile=64x16,cluster=1x1", 1},
        {"tile=128x192,cluster=2x1", 2},
        {"tile=128x128,cluster=1x2,sched=coop", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct gj_plan plan = plan_of(cases[i].key);
        const struct fake_launch *const made = launch(kernels_get(&kernels, cases[i].key), &basic);
        assert_int_equal(made->config.gridDimY * made->config.gridDimZ, 1);
        assert_int_equal(made->config.blockDimX, plan.threads);
        assert_int_equal(made->config.blockDimY * made->config.blockDimZ, 1);
        assert_int_equal(made->config.sharedMemBytes, plan.smem_bytes);
        assert_ptr_equal(made->config.hStream, &stream);
        unsigned num_clusters = 0;
        for (unsigned a = 0; a < made->config.numAttrs; a++) {
            if (made->attributes[a].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
                continue;
            num_clusters++;
            assert_int_equal(made->attributes[a].value.clusterDim.x, cases[i].cluster);
            assert_int_equal(made->attributes[a].value.clusterDim.y, 1);
            assert_int_equal(made->attributes[a].value.clusterDim.z, 1);
        }
        assert_int_equal(num_clusters, 1);
        assert_int_equal(made->config.gridDimX % cases[i].cluster, 0);
    }
}

static void grid_limits(void **state)
{
    (void)state;
    static const struct {
        int max_sms;
        unsigned grid;
    } cases[] = {{0, 132}, {132, 132}, {1000, 132}, {67, 66}, {66, 66}, {3, 2}, {2, 2}};
    gj_kernel *const kernel = kernels_get(&kernels, "tile=64x16,cluster=2x1");
    struct gj_gemm_args args = basic;
    args.m = 4000;
    const struct fake_launch *const made = launch(kernel, &args);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        args.max_sms = cases[i].max_sms;
        launch(kernel, &args);
        assert_int_equal(made->config.gridDimX, cases[i].grid);
    }
    args.m = 200; /* 2 x 33 cluster tiles, 1 x 33 with m = 128 */
    args.max_sms = 0;
    launch(kernel, &args);
    assert_int_equal(made->config.gridDimX, 132);
    args.m = 128;
    launch(kernel, &args);
    assert_int_equal(made->config.gridDimX, 66);
}

static void too_many_tiles(void **state)
{
    (void)state;
    gj_kernel *const kernel = kernels_get(&kernels, "tile=64x16,cluster=1x1");
    struct gj_gemm_args args = basic;
    gj_error *error = NULL;
    args.batch = 1000000000;
    args.d.batch_stride = 528000; /* bytes of all batches are not limited, their number of tiles is */
    check_error(gj_launch(kernel, &args, &stream, &error), GJ_ERR_ARGUMENT, &error, "m = 1000", "n = 520",
                "batch = 1000000000", "2^31", NULL);
    assert_int_equal(fake->num_launches, 0);
}

/* -- K = 0 ----------------------------------------------------------------------------------------------- */

/* The kernel runs and reads nothing: its one stage lies behind the stand-ins for A and B. */
static void k_zero(void **state)
{
    (void)state;
    static const char *const keys[] = {"tile=64x16,cluster=1x1", "d=f32.n,tile=64x16,cluster=1x1",
                                       "tile=128x192,cluster=2x1"};
    struct gj_gemm_args args = basic;
    args.k = 0;
    args.a = args.b = (struct gj_tensor){0};
    args.batch = 4;
    args.d.batch_stride = 528 * 1000;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const struct fake_launch *const made = launch(kernels_get(&kernels, keys[i]), &args);
        assert_int_equal(made->params.k_tiles, 1);
        for (int input = 0; input < 2; input++) {
            assert_non_null(made->maps[input].address);
            assert_true(made->maps[input].extents[0] <= (cuuint64_t)made->params.k_start);
        }
        assert_int_equal(made->params.a_batch_step + made->params.b_batch_step, 0);
        assert_int_equal(made->maps[2].extents[2], 4);
        assert_ptr_equal(made->maps[2].address, args.d.data);
    }
}

/* With swap_ab the kernel computes D^T: A and B, M and N, and the raster order change places. */
static void swapped_operands(void **state)
{
    (void)state;
    const char *const key_text = "tile=64x16,cluster=1x1,swap_ab=yes";
    struct gj_key key;
    if (gj_key_parse(key_text, &key, NULL) != GJ_OK || gj_key_check(&key, NULL) != GJ_OK)
        return;
    struct gj_gemm_args args = basic;
    args.raster = GJ_RASTER_ALONG_M;
    const struct fake_launch *const made = launch(kernels_get(&kernels, key_text), &args);
    assert_ptr_equal(made->maps[0].address, args.b.data);
    assert_ptr_equal(made->maps[1].address, args.a.data);
    assert_ptr_equal(made->maps[2].address, args.d.data);
    assert_int_equal(made->params.m, args.n);
    assert_int_equal(made->params.n, args.m);
    assert_int_equal(made->params.schedule.along_m, 0);
}

static void nothing_to_do(void **state)
{
    (void)state;
    gj_kernel *const kernel = kernels_get(&kernels, "tile=64x16,cluster=1x1");
    stream.captures = fake->captures = true;
    for (int i = 0; i < 3; i++) {
        struct gj_gemm_args args = basic;
        *(i == 0 ? &args.m : i == 1 ? &args.n : &args.batch) = 0;
        assert_int_equal(gj_launch(kernel, &args, &stream, NULL), GJ_OK);
    }
    assert_int_equal(fake->num_calls, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(maps_of_one_gemm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maps_of_d, set_up, tear_down),
        cmocka_unit_test_setup_teardown(maps_of_batches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(launch_config, set_up, tear_down),
        cmocka_unit_test_setup_teardown(grid_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_tiles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(k_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(swapped_operands, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_to_do, set_up, tear_down),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
