/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of loading and preparing on a fake libcuda: order of calls, once per device, contexts, captures, and
 * every call that can fail. Argument: the fake libcuda. */
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

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char small_key[] = "tile=64x16,cluster=1x1";

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static gj_kernel *kernel;
static struct fake_stream stream;

static const struct gj_gemm_args basic = {
    .m = 100,
    .n = 48,
    .k = 64,
    .batch = 1,
    .a = {ADDRESS(0x10000), 64, 0},
    .b = {ADDRESS(0x20000), 64, 0},
    .d = {ADDRESS(0x30000), 48, 0},
};

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    stream = (struct fake_stream){.device = 0};
    kernels_open(&kernels);
    kernel = kernels_get(&kernels, small_key);
    return 0;
}

/* Whatever went wrong, nothing may stay behind. */
static int tear_down(void **state)
{
    (void)state;
    fake_fail(fake, NULL, CUDA_SUCCESS);
    kernels_close(&kernels);
    assert_int_equal(fake->num_libraries, 0);
    assert_int_equal(fake->num_allocations, 0);
    for (int i = 0; i < FAKE_DEVICES; i++)
        assert_int_equal(fake->retained[i], 0);
    return 0;
}

static void prepared(int device)
{
    gj_error *error = NULL;
    if (gj_kernel_prepare(kernel, device, &error) != GJ_OK)
        fail_msg("%s", error->message);
}

static void launched(void)
{
    gj_error *error = NULL;
    if (gj_launch(kernel, &basic, &stream, &error) != GJ_OK)
        fail_msg("%s", error->message);
}

/* -- Preparing ------------------------------------------------------------------------------------------- */

static void what_preparing_calls(void **state)
{
    (void)state;
    const struct gj_plan plan = plan_of(small_key);
    struct gj_kernel_info info;
    gj_kernel_info(kernel, &info);
    prepared(0);
    assert_ptr_equal(fake->image, info.cubin);
    assert_string_equal(fake->kernels[0], info.entry_name);
    assert_int_equal(fake->smem_limit[0][0], plan.smem_bytes);
    assert_int_equal(fake_count(fake, "cuLibraryLoadData"), 1);
    assert_int_equal(fake_count(fake, "cuFuncLoad"), 1);
    assert_int_equal(fake_count(fake, "cuCtxSynchronize"), 0);
    /* The occupancy is asked for what a launch will be. */
    assert_int_equal(fake->occupancy_cluster, 1);
    assert_int_equal(fake->occupancy_config.sharedMemBytes, plan.smem_bytes);
    assert_int_equal(fake->occupancy_config.blockDimX, plan.threads);
    /* No context was current: the primary one is held, and none is current afterwards. */
    assert_int_equal(fake->retained[0], 1);
    assert_int_equal(fake_count(fake, "cuCtxPushCurrent"), fake_count(fake, "cuCtxPopCurrent"));

    fake_forget(fake);
    prepared(0);
    prepared(0);
    assert_int_equal(fake->num_calls, 0);
    gj_context_close(&kernels.context);
    assert_int_equal(fake_count(fake, "cuLibraryUnload"), 1);
    assert_int_equal(fake_count(fake, "cuDevicePrimaryCtxRelease"), 1);
    assert_int_equal(fake_count(fake, "cuCtxPushCurrent"), fake_count(fake, "cuCtxPopCurrent"));
}

static void attributes_are_set_per_device(void **state)
{
    (void)state;
    const struct gj_plan plan = plan_of(small_key);
    fake->current = 0;
    prepared(0);
    assert_int_equal(fake->smem_limit[0][1], 0);
    assert_int_equal(fake->retained[0], 0); /* it was current already */
    prepared(1);
    assert_int_equal(fake->smem_limit[0][1], plan.smem_bytes);
    assert_int_equal(fake->retained[1], 1);
    assert_int_equal(fake_count(fake, "cuLibraryLoadData"), 1);
    assert_int_equal(fake_count(fake, "cuKernelSetAttribute"), 2);
    for (int i = 0; i < 3; i++) {
        stream.device = i % 2;
        launched();
        assert_int_equal(fake->launches[i].device, i % 2);
    }
    assert_int_equal(fake_count(fake, "cuKernelSetAttribute"), 2);
    assert_int_equal(fake->retained[0], 0);
}

static void a_launch_prepares(void **state)
{
    (void)state;
    fake->current = 0;
    launched();
    assert_int_equal(fake_count(fake, "cuKernelSetAttribute"), 1);
    fake_forget(fake);
    launched();
    /* All of these may be called while a stream captures, and none waits for the device. */
    fake_check_calls(fake, "cuCtxGetCurrent cuStreamGetCtx cuCtxGetDevice cuLaunchKernelEx");
    struct gj_gemm_args other = basic;
    other.m++;
    fake_forget(fake);
    assert_int_equal(gj_launch(kernel, &other, &stream, NULL), GJ_OK);
    fake_check_calls(
        fake, "cuCtxGetCurrent cuStreamGetCtx cuCtxGetDevice cuTensorMapEncodeTiled cuTensorMapEncodeTiled "
              "cuTensorMapEncodeTiled cuLaunchKernelEx");
}

static void wrong_devices(void **state)
{
    (void)state;
    static const int wrong[][2] = {{8, 9}, {8, 0}, {7, 5}, {9, 1}, {10, 0}, {10, 3}, {12, 0}};
    gj_error *error = NULL;
    fake->current = 0;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        fake->major = wrong[i][0];
        fake->minor = wrong[i][1];
        const struct path capability = path_format("compute capability %d.%d", wrong[i][0], wrong[i][1]);
        check_error(gj_kernel_prepare(kernel, 0, &error), GJ_ERR_NO_DEVICE, &error, "device 0, Fake GPU",
                    capability.text, "9.0", NULL);
        check_error(gj_launch(kernel, &basic, &stream, &error), GJ_ERR_NO_DEVICE, &error, capability.text,
                    NULL);
        const struct gj_key problem = gj_key_default();
        check_error(gj_gemm(kernels.context, &problem, &basic, &stream, &error), GJ_ERR_NO_DEVICE, &error,
                    capability.text, NULL);
    }
    /* It is our check that refuses, before the driver sees the cubin and before one is looked for. */
    struct gj_stats stats;
    gj_stats(kernels.context, &stats);
    assert_int_equal(stats.disk_hits + stats.disk_misses, 1);
    assert_int_equal(fake_count(fake, "cuLibraryLoadData"), 0);

    fake->major = 9;
    fake->minor = 0;
    static const int none[] = {-1, 2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(none); i++)
        check_error(gj_kernel_prepare(kernel, none[i], &error), GJ_ERR_NO_DEVICE, &error,
                    path_format("no device %d", none[i]).text, NULL);
    fake->num_devices = FAKE_DEVICES;
    check_error(gj_kernel_prepare(kernel, 64, &error), GJ_ERR_NO_DEVICE, &error, "device 64",
                "at most 64 devices", NULL);
    prepared(63);
    check_error(gj_kernel_prepare(kernel, -1, &error), GJ_ERR_NO_DEVICE, &error, "no device -1", NULL);
}

static void no_room_on_the_device(void **state)
{
    (void)state;
    gj_error *error = NULL;
    fake->current = 0;
    fake->max_clusters = 0;
    check_error(gj_launch(kernel, &basic, &stream, &error), GJ_ERR_NO_DEVICE, &error, "no cluster of 1 CTAs",
                "bytes of shared memory", NULL);
    fake->max_clusters = 1; /* a context with a part of the SMs */
    launched();
    assert_int_equal(fake->launches[0].config.gridDimX, 1);
}

static void no_context(void **state)
{
    (void)state;
    gj_error *error = NULL;
    check_error(gj_launch(kernel, &basic, NULL, &error), GJ_ERR_NO_DEVICE, &error,
                "no CUDA context is current", NULL);
    assert_int_equal(fake_count(fake, "cuLibraryLoadData"), 0);
    fake->current = 1;
    assert_int_equal(gj_launch(kernel, &basic, NULL, &error), GJ_OK);
    assert_int_equal(fake->launches[0].device, 1);
    assert_null(fake->launches[0].config.hStream);
}

/* -- Captures -------------------------------------------------------------------------------------------- */

static void capture_of_a_cold_kernel(void **state)
{
    (void)state;
    gj_error *error = NULL;
    fake->current = 0;
    stream.captures = fake->captures = true;
    check_error(gj_launch(kernel, &basic, &stream, &error), GJ_ERR_NOT_PREPARED, &error, "capturing",
                "device 0", "gj_kernel_prepare", NULL);
    assert_int_equal(fake->num_illegal, 0);
    assert_int_equal(fake->num_launches, 0);

    /* Loaded by now, but not prepared on the other device. */
    stream.captures = fake->captures = false;
    prepared(0);
    fake_forget(fake);
    stream = (struct fake_stream){.device = 1, .captures = true};
    fake->captures = true;
    fake->retained[1]++;
    check_error(gj_launch(kernel, &basic, &stream, &error), GJ_ERR_NOT_PREPARED, &error, "capturing",
                "device 1", NULL);
    fake->retained[1]--;
    assert_int_equal(fake->num_illegal, 0);
    assert_int_equal(fake->num_launches, 0);
}

static void capture_of_a_warm_kernel(void **state)
{
    (void)state;
    fake->current = 0;
    prepared(0);
    fake_forget(fake);
    stream.captures = fake->captures = true;
    launched();
    struct gj_gemm_args zeros = basic;
    zeros.k = 0;
    assert_int_equal(gj_launch(kernel, &zeros, &stream, NULL), GJ_OK);
    assert_int_equal(fake->num_illegal, 0);
    assert_int_equal(fake->num_launches, 2);
}

/* Tile counters of dynamic kernels: device memory that is had when preparing, never when launching. */
static void tile_counters(void **state)
{
    (void)state;
    const char *const key_text = "tile=64x16,cluster=1x1,tiles=dynamic";
    const struct gj_key key = key_of(key_text);
    if (gj_key_check(&key, NULL) != GJ_OK)
        return;
    gj_kernel *const dynamic = kernels_get(&kernels, key_text);
    gj_error *error = NULL;
    fake_fail(fake, "cuMemcpyHtoD", CUDA_ERROR_LAUNCH_FAILED);
    check_error(gj_kernel_prepare(dynamic, 0, &error), GJ_ERR_DRIVER, &error, "CUDA_ERROR_LAUNCH_FAILED",
                NULL);
    assert_int_equal(fake->num_allocations, 0);
    fake_fail(fake, "cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
    check_error(gj_kernel_prepare(dynamic, 0, &error), GJ_ERR_NO_MEMORY, &error, "CUDA_ERROR_OUT_OF_MEMORY",
                NULL);
    fake_fail(fake, NULL, CUDA_SUCCESS);
    assert_int_equal(gj_kernel_prepare(dynamic, 0, NULL), GJ_OK);
    assert_int_equal(fake->num_allocations, 1);
    fake_forget(fake);
    fake->retained[0]++; /* the stream's context is someone else's too */
    stream.captures = fake->captures = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(gj_launch(dynamic, &basic, &stream, NULL), GJ_OK);
    fake->retained[0]--;
    assert_int_equal(fake->num_illegal, 0);
    assert_non_null(fake->launches[0].params.tile_counter);
    assert_int_equal(*fake->launches[0].params.tile_counter, 0);
    assert_ptr_not_equal(fake->launches[0].params.tile_counter, fake->launches[1].params.tile_counter);
    /* tear_down closes it with no context current */
}

/* -- Failures -------------------------------------------------------------------------------------------- */

static void check_failure(const char *function, int call, const struct gj_gemm_args *args)
{
    static const struct {
        CUresult result;
        const char *name;
        enum gj_status status;
    } results[] = {
        {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", GJ_ERR_DRIVER},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", GJ_ERR_NO_MEMORY},
    };
    for (size_t i = 0; i < COUNT(results); i++) {
        gj_error *error = NULL;
        fake_forget(fake);
        fake_fail(fake, function, results[i].result);
        fake->fails_from = call;
        const enum gj_status status = gj_launch(kernel, args, &stream, &error);
        if (status == GJ_OK)
            fail_msg("call %d of %s failed and no one said so", call, function);
        assert_int_equal(error->origin_code, results[i].result);
        assert_string_equal(error->origin_name, results[i].name);
        check_error(status, results[i].status, &error, results[i].name, "the fake was told to", NULL);
        assert_int_equal(gj_launch(kernel, args, &stream, NULL), status);
        assert_int_equal(fake->num_launches, 0);
        assert_int_equal(fake_count(fake, "cuCtxPushCurrent"), fake_count(fake, "cuCtxPopCurrent"));
    }
    fake_fail(fake, NULL, CUDA_SUCCESS);
}

/* Each failing call surfaces, and once it works again so does the launch. */
static void failures_of_preparing(void **state)
{
    static const char *const calls[] = {
        "cuStreamGetCtx",      "cuStreamIsCapturing",          "cuDeviceGetCount",
        "cuDeviceGet",         "cuDeviceGetAttribute",         "cuLibraryLoadData",
        "cuLibraryGetKernel",  "cuKernelSetAttribute",         "cuFuncLoad",
        "cuKernelGetFunction", "cuOccupancyMaxActiveClusters", "cuTensorMapEncodeTiled",
        "cuLaunchKernelEx",
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        fake->current = 0;
        check_failure(calls[i], 0, &basic);
        fake_forget(fake);
        launched();
        assert_int_equal(fake->num_launches, 1);
        tear_down(state);
        set_up(state);
    }
}

static void failures_of_a_hot_launch(void **state)
{
    (void)state;
    fake->current = 0;
    launched();
    struct gj_gemm_args other = basic;
    for (int i = 0; i < 3; i++) {
        other.m++; /* or nothing is encoded */
        check_failure("cuTensorMapEncodeTiled", i, &other);
    }
    other = basic;
    other.a.data = (char *)other.a.data + 256;
    check_failure("cuTensorMapReplaceAddress", 0, &other);
    check_failure("cuLaunchKernelEx", 0, &basic);
    check_failure("cuStreamGetCtx", 0, &basic);
    launched();
}

/* Where no context is current, preparing uses the device's primary one. */
static void failures_of_contexts(void **state)
{
    static const char *const calls[] = {
        "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
        "cuKernelSetAttribute",     "cuFuncLoad",
        "cuKernelGetFunction",      "cuOccupancyMaxActiveClusters",
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        for (int current = -1; current <= 1; current += 2) {
            gj_error *error = NULL;
            fake->current = current;
            fake_fail(fake, calls[i], CUDA_ERROR_LAUNCH_FAILED);
            check_error(gj_kernel_prepare(kernel, 0, &error), GJ_ERR_DRIVER, &error,
                        "CUDA_ERROR_LAUNCH_FAILED (719)", "device 0", NULL);
            fake_fail(fake, NULL, CUDA_SUCCESS);
            /* The second attempt works, in the right context, and holds it once. */
            prepared(0);
            assert_int_equal(fake->retained[0], 1);
            assert_int_equal(fake->retained[1], 0);
            tear_down(state);
            set_up(state);
        }
    }
}

static int launch_in_child(void *unused)
{
    (void)unused;
    gj_error *error = NULL;
    CHILD_CHECK(gj_launch(kernel, &basic, &stream, &error) == GJ_ERR_DRIVER);
    CHILD_CHECK(strcmp(error->origin_name, "CUDA_ERROR_NOT_INITIALIZED") == 0);
    gj_error_free(&error);
    CHILD_CHECK(gj_kernel_prepare(kernel, 1, &error) == GJ_ERR_DRIVER);
    CHILD_CHECK(strcmp(error->origin_name, "CUDA_ERROR_NOT_INITIALIZED") == 0);
    gj_error_free(&error);
    gj_context_close(&kernels.context);
    return 0;
}

static void forked_child(void **state)
{
    (void)state;
    fake->current = 0;
    launched();
    assert_int_equal(run_child(launch_in_child, NULL), 0);
    launched();
}

/* -- gj_gemm --------------------------------------------------------------------------------------------- */

static void gemm(int num_sms, int max_sms)
{
    const struct gj_key problem = gj_key_default();
    struct gj_gemm_args args = basic;
    struct gj_key key;
    gj_error *error = NULL;
    args.max_sms = max_sms;
    fake->num_sms = num_sms;
    assert_int_equal(gj_key_choose(&problem, args.m, args.n, args.k, args.batch,
                                   max_sms > 0 && max_sms < num_sms ? max_sms : num_sms, &key, NULL),
                     GJ_OK);
    kernels_add(&kernels, &key);
    fake_forget(fake);
    if (gj_gemm(kernels.context, &problem, &args, &stream, &error) != GJ_OK)
        fail_msg("%s", error->message);
    struct gj_plan plan;
    gj_plan_make(&key, &plan);
    assert_int_equal(fake->num_launches, 1);
    assert_string_equal((const char *)fake->launches[0].function, plan.entry_name);
    if (max_sms > 0)
        assert_in_range(fake->launches[0].config.gridDimX, 1, max_sms);
}

static void gemm_chooses_for_the_device(void **state)
{
    (void)state;
    static const int sms[] = {132, 78, 114};
    for (size_t i = 0; i < COUNT(sms); i++) {
        fake->current = 0;
        gemm(sms[i], 0);
        gemm(sms[i], 2);
        gemm(sms[i], 66);
        tear_down(state);
        set_up(state);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_preparing_calls),
        TEST(attributes_are_set_per_device),
        TEST(a_launch_prepares),
        TEST(wrong_devices),
        TEST(no_room_on_the_device),
        TEST(no_context),
        TEST(capture_of_a_cold_kernel),
        TEST(capture_of_a_warm_kernel),
        TEST(tile_counters),
        TEST(failures_of_preparing),
        TEST(failures_of_a_hot_launch),
        TEST(failures_of_contexts),
        TEST(forked_child),
        TEST(gemm_chooses_for_the_device),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
