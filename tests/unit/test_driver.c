/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of opening libcuda and of asking for devices, on fakes. Arguments: the fake libcuda, the one with the
 * older cuGetProcAddress only, the one without. */
#include <gemmjit/gemmjit.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/driver.h"
#include "fake_control.h"
#include "kernel_fixture.h"

static const char *library, *library_v1, *library_none;

static const char *const required[] = {
#define NAME(name, version, result, parameters) #name,
#define NONE(name, version, result, parameters)
    GJ_DRIVER_FUNCTIONS(NAME, NONE)
#undef NONE
};
static const char *const optional[] = {
#define NONE(name, version, result, parameters)
    GJ_DRIVER_FUNCTIONS(NONE, NAME)
#undef NONE
#undef NAME
};

static gj_driver *opened(void)
{
    gj_driver *driver = NULL;
    gj_error *error = NULL;
    if (gj_driver_open(&driver, &error) != GJ_OK)
        fail_msg("%s", error->message);
    assert_null(error);
    return driver;
}

static void not_opened(enum gj_status status, const char *first, const char *second)
{
    gj_driver *driver = NULL;
    gj_error *error = NULL;
    check_error(gj_driver_open(&driver, &error), status, &error, first, second, NULL);
    assert_null(driver);
    assert_int_equal(gj_driver_open(&driver, NULL), status);
}

/* -- Opening --------------------------------------------------------------------------------------------- */

static void opens(void **state)
{
    (void)state;
    const char *const libraries[] = {library, library_v1};
    for (int i = 0; i < 2; i++) {
        struct fake_cuda *const fake = fake_use(libraries[i]);
        gj_driver *driver = opened();
        assert_int_equal(gj_driver_version(driver), 13000);
        assert_int_equal(gj_gpu_count(driver), 2);
        assert_int_equal(fake_count(fake, "cuInit"), 1);
        gj_driver_close(&driver);
        assert_null(driver);
        gj_driver_close(&driver);
    }
    gj_driver_close(NULL);
}

static void oldest_driver(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    fake->driver_version = 12000;
    gj_driver *driver = opened();
    assert_int_equal(gj_driver_version(driver), 12000);
    gj_driver_close(&driver);
    fake->driver_version = 11080;
    not_opened(GJ_ERR_NO_DRIVER, "supports CUDA 11.8", "12.0 or newer");
    assert_int_equal(fake_count(fake, "cuInit"), 1);
}

static void missing_entry_points(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        fake->missing = required[i];
        not_opened(GJ_ERR_NO_DRIVER, path_format("lacks %s:", required[i]).text, library);
    }
    assert_int_equal(fake->num_calls, 0);
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        fake->missing = optional[i];
        gj_driver *driver = opened();
        gj_driver_close(&driver);
    }
}

static void no_library(void **state)
{
    (void)state;
    setenv("GEMMJIT_CUDA", "/nonexistent/libcuda.so.1", 1);
    not_opened(GJ_ERR_NO_DRIVER, "cannot be loaded", "/nonexistent/libcuda.so.1");
    setenv("GEMMJIT_CUDA", "/dev/null", 1);
    not_opened(GJ_ERR_NO_DRIVER, "cannot be loaded", "/dev/null");
    setenv("GEMMJIT_CUDA", library_none, 1);
    not_opened(GJ_ERR_NO_DRIVER, "has no cuGetProcAddress", library_none);
}

static void no_gpu(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    fake->num_devices = 0;
    not_opened(GJ_ERR_NO_DEVICE, "sees no GPU", "");
    fake_use(library);
    gj_driver *driver = NULL;
    gj_error *error = NULL;
    fake_fail(fake, "cuInit", CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(gj_driver_open(&driver, &error), GJ_ERR_DRIVER);
    assert_int_equal(error->origin_code, CUDA_ERROR_LAUNCH_FAILED);
    assert_string_equal(error->origin_name, "CUDA_ERROR_LAUNCH_FAILED");
    assert_string_equal(error->message,
                        "cuInit failed: CUDA_ERROR_LAUNCH_FAILED (719): the fake was told to");
    gj_error_free(&error);
    /* A code that this driver has no name for. */
    fake_fail(fake, "cuInit", (CUresult)34);
    assert_int_equal(gj_driver_open(&driver, &error), GJ_ERR_DRIVER);
    assert_string_equal(error->message, "cuInit failed: CUDA error (34): no description");
    assert_string_equal(error->origin_name, "");
    gj_error_free(&error);
}

/* Loading the library and all that needs no GPU leaves CUDA alone. */
static void nothing_else_opens_it(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    struct kernels kernels;
    struct gj_kernel_info info;
    struct gj_key key = gj_key_default();
    char *source = NULL;
    kernels_open(&kernels);
    gj_kernel_info(kernels_get(&kernels, "tile=64x16,cluster=1x1"), &info);
    assert_int_equal(info.origin, GJ_ORIGIN_DISK);
    assert_int_equal(gj_source(&key, &source, NULL, NULL), GJ_OK);
    assert_int_equal(gj_key_choose(&key, 100, 100, 100, 1, 0, &key, NULL), GJ_OK);
    gj_free(source);
    kernels_close(&kernels);
    assert_int_equal(fake->num_calls, 0);
    assert_int_equal(fake->pid, 0);
}

/* -- Devices --------------------------------------------------------------------------------------------- */

static void device_facts(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    gj_driver *driver = opened();
    struct gj_gpu_info info;
    fake->num_sms = 78;
    assert_int_equal(gj_gpu_info_get(driver, 1, &info, NULL), GJ_OK);
    assert_string_equal(info.name, "Fake GPU");
    assert_int_equal(info.major, 9);
    assert_int_equal(info.minor, 0);
    assert_int_equal(info.num_sms, 78);
    assert_true(info.memory_bytes == (size_t)1 << 37);

    static const int wrong[] = {-1, 2, 1000};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        gj_error *error = NULL;
        info.num_sms = 55;
        check_error(gj_gpu_info_get(driver, wrong[i], &info, &error), GJ_ERR_NO_DEVICE, &error,
                    path_format("no device %d", wrong[i]).text, "the driver sees 2", NULL);
        assert_int_equal(info.num_sms, 55);
    }
    gj_driver_close(&driver);
}

/* A call that fails is named whichever it is. */
static void check_surfaces(const gj_driver *driver, struct fake_cuda *fake, const char *name, int call)
{
    struct gj_gpu_info info;
    gj_error *error = NULL;
    fake_forget(fake);
    fake_fail(fake, name, CUDA_ERROR_LAUNCH_FAILED);
    fake->fails_from = call;
    assert_int_equal(gj_gpu_info_get(driver, 0, &info, &error), GJ_ERR_DRIVER);
    assert_int_equal(error->origin_code, CUDA_ERROR_LAUNCH_FAILED);
    check_error(error->status, GJ_ERR_DRIVER, &error, "CUDA_ERROR_LAUNCH_FAILED (719)", NULL);
    fake_fail(fake, NULL, CUDA_SUCCESS);
}

static void failing_queries(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    gj_driver *driver = opened();
    check_surfaces(driver, fake, "cuDeviceGetCount", 0);
    check_surfaces(driver, fake, "cuDeviceGet", 0);
    check_surfaces(driver, fake, "cuDeviceGetName", 0);
    for (int i = 0; i < 3; i++)
        check_surfaces(driver, fake, "cuDeviceGetAttribute", i);
    check_surfaces(driver, fake, "cuDeviceTotalMem", 0);
    gj_driver_close(&driver);
}

static void device_of_a_stream(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    gj_driver *driver = opened();
    gj_error *error = NULL;
    int device = 77;
    check_error(gj_gpu_of_stream(driver, NULL, &device, &error), GJ_ERR_NO_DEVICE, &error,
                "no CUDA context is current", NULL);
    assert_int_equal(device, 77);
    fake->current = 1;
    assert_int_equal(gj_gpu_of_stream(driver, NULL, &device, NULL), GJ_OK);
    assert_int_equal(device, 1);
    for (int of_stream = 0; of_stream < 2; of_stream++) {
        struct fake_stream stream = {.device = of_stream};
        fake->retained[of_stream] = 1;
        fake_forget(fake);
        assert_int_equal(gj_gpu_of_stream(driver, &stream, &device, NULL), GJ_OK);
        assert_int_equal(device, of_stream);
        fake_check_calls(fake, of_stream == 1
                                   ? "cuCtxGetCurrent cuStreamGetCtx cuCtxGetDevice"
                                   : "cuCtxGetCurrent cuStreamGetCtx cuCtxPushCurrent cuCtxGetDevice "
                                     "cuCtxPopCurrent");
    }
    struct fake_stream stream = {.device = 0};
    for (int i = 0; i < 2; i++) {
        device = 77;
        fake_fail(fake, i ? "cuCtxGetDevice" : "cuStreamGetCtx", CUDA_ERROR_INVALID_VALUE);
        check_error(gj_gpu_of_stream(driver, i ? NULL : &stream, &device, &error), GJ_ERR_DRIVER, &error,
                    "CUDA_ERROR_INVALID_VALUE", NULL);
        assert_int_equal(device, 77);
    }
    gj_driver_close(&driver);
}

static void device_of_a_stream_by_context(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    gj_driver *driver = opened();
    gj_error *error = NULL;
    int device = 77;
    for (int current = -1; current < 2; current++) {
        for (int of_stream = 0; of_stream < 2; of_stream++) {
            struct fake_stream stream = {.device = of_stream};
            fake->current = current;
            fake->retained[of_stream] = 1;
            fake_forget(fake);
            assert_int_equal(gj_gpu_of_stream(driver, &stream, &device, NULL), GJ_OK);
            assert_int_equal(device, of_stream);
            assert_int_equal(fake_count(fake, "cuStreamGetCtx"), 1);
            assert_int_equal(fake_count(fake, "cuCtxPushCurrent"), current != of_stream);
            assert_int_equal(fake_count(fake, "cuCtxPopCurrent"), current != of_stream);
        }
    }
    static const char *const calls[] = {"cuCtxGetCurrent", "cuStreamGetCtx", "cuCtxPushCurrent",
                                        "cuCtxGetDevice"};
    struct fake_stream stream = {.device = 0};
    fake->current = 1;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        device = 77;
        fake_forget(fake);
        fake_fail(fake, calls[i], CUDA_ERROR_INVALID_VALUE);
        check_error(gj_gpu_of_stream(driver, &stream, &device, &error), GJ_ERR_DRIVER, &error,
                    "CUDA_ERROR_INVALID_VALUE", NULL);
        assert_int_equal(device, 77);
        assert_int_equal(fake_count(fake, "cuCtxPopCurrent"), strcmp(calls[i], "cuCtxGetDevice") == 0);
    }
    gj_driver_close(&driver);
}

static void the_kind_is_asked_for_once(void **state)
{
    (void)state;
    struct fake_cuda *const fake = fake_use(library);
    gj_driver *driver = opened();
    gj_error *error = NULL;
    int kind = 0;
    fake->num_devices = FAKE_DEVICES;
    fake->num_sms = 78;
    assert_int_equal(gj_gpu_kind(driver, 1, &kind, NULL), GJ_OK);
    assert_int_equal(gj_gpu_kind_sms(kind), 78);
    assert_true(kind > 0xffff); /* no number of SMs */
    fake_forget(fake);
    fake->num_sms = 132;
    assert_int_equal(gj_gpu_kind(driver, 1, &kind, NULL), GJ_OK);
    assert_int_equal(gj_gpu_kind_sms(kind), 78);
    assert_int_equal(fake->num_calls, 0);
    int others[3];
    fake->num_sms = 78;
    fake->other_from = 4;
    for (int i = 0; i < 3; i++)
        assert_int_equal(gj_gpu_kind(driver, 3 + i, &others[i], NULL), GJ_OK);
    assert_int_equal(others[0], kind);
    assert_true(others[1] != kind && others[2] == others[1]);
    fake->num_sms = 132;
    assert_int_equal(gj_gpu_kind(driver, FAKE_DEVICES - 1, &kind, NULL), GJ_OK); /* beyond what is kept */
    assert_int_equal(gj_gpu_kind_sms(kind), 132);
    fake->minor = 1;
    check_error(gj_gpu_kind(driver, 2, &kind, &error), GJ_ERR_NO_DEVICE, &error, "9.1", NULL);
    check_error(gj_gpu_kind(driver, -1, &kind, &error), GJ_ERR_NO_DEVICE, &error, "-1", NULL);
    assert_int_equal(gj_gpu_kind_sms(kind), 132);
    gj_driver_close(&driver);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_else_opens_it), /* first: the library stays mapped once it was opened */
        cmocka_unit_test(opens),
        cmocka_unit_test(oldest_driver),
        cmocka_unit_test(missing_entry_points),
        cmocka_unit_test(no_library),
        cmocka_unit_test(no_gpu),
        cmocka_unit_test(device_facts),
        cmocka_unit_test(failing_queries),
        cmocka_unit_test(device_of_a_stream),
        cmocka_unit_test(device_of_a_stream_by_context),
        cmocka_unit_test(the_kind_is_asked_for_once),
    };
    if (argc != 4) {
        fprintf(stderr, "usage: %s FAKE_CUDA FAKE_CUDA_V1 FAKE_CUDA_NONE\n", argv[0]);
        return 1;
    }
    library = argv[1];
    library_v1 = argv[2];
    library_none = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
