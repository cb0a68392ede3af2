/* SPDX-License-Identifier: Apache-2.0 */
/* Opening libcuda. Nothing here runs before the first prepare, launch or device query. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error_build.h"

#define DRIVER_MIN 12000 /* cuLibrary, tensor maps, clusters */

/* cuGetProcAddress as of CUDA 11.3 (the name without suffix) and 12.0 (_v2). */
typedef CUresult(CUDAAPI *get_proc_v1)(const char *, void **, int, cuuint64_t);
typedef CUresult(CUDAAPI *get_proc_v2)(const char *, void **, int, cuuint64_t,
                                       CUdriverProcAddressQueryResult *);

enum gj_status gj_driver_fail(const struct gj_driver *driver, CUresult result, enum gj_stage stage,
                              gj_error **error, const char *format, ...)
{
    const char *name = NULL, *sentence = NULL;
    driver->cuGetErrorName_fn(result, &name);
    driver->cuGetErrorString_fn(result, &sentence);
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const enum gj_status status = result == CUDA_ERROR_OUT_OF_MEMORY ? GJ_ERR_NO_MEMORY : GJ_ERR_DRIVER;
    return gj_error_make(error, status, stage, (int)result, name ? name : "", "%s: %s (%d): %s", what,
                         name ? name : "CUDA error", (int)result, sentence ? sentence : "no description");
}

static bool find_function(void *get_proc, bool has_v2, const char *name, int version, void **function)
{
    CUdriverProcAddressQueryResult found;
    *function = NULL;
    const CUresult result =
        has_v2 ? ((get_proc_v2)get_proc)(name, function, version, CU_GET_PROC_ADDRESS_DEFAULT, &found)
               : ((get_proc_v1)get_proc)(name, function, version, CU_GET_PROC_ADDRESS_DEFAULT);
    return result == CUDA_SUCCESS && *function != NULL;
}

/* Fills the table; returns the first required name that is missing, or NULL. */
static const char *find_functions(struct gj_driver *driver, void *get_proc, bool has_v2)
{
    const char *missing = NULL;
/* cuda.h defines macros such as cuMemAlloc -> cuMemAlloc_v2: # and ## keep the names as written. */
#define REQUIRED(name, cuda_version, result, parameters)                                                \
    if (!find_function(get_proc, has_v2, #name, cuda_version, (void **)&driver->name##_fn) && !missing) \
        missing = #name;
#define OPTIONAL(name, cuda_version, result, parameters) \
    find_function(get_proc, has_v2, #name, cuda_version, (void **)&driver->name##_fn);
    GJ_DRIVER_FUNCTIONS(REQUIRED, OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
    return missing;
}

static enum gj_status open_library(struct gj_driver *driver, gj_error **error)
{
    const char *const given = gj_env_get(GJ_ENV_CUDA);
    const char *const path = given ? given : "libcuda.so.1";
    driver->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL)
        GJ_FAIL(error, GJ_ERR_NO_DRIVER, GJ_STAGE_LOAD, "the CUDA driver cannot be loaded: %s", dlerror());
    void *get_proc = dlsym(driver->library, "cuGetProcAddress_v2");
    const bool has_v2 = get_proc != NULL;
    if (!has_v2)
        get_proc = dlsym(driver->library, "cuGetProcAddress");
    if (get_proc == NULL)
        GJ_FAIL(error, GJ_ERR_NO_DRIVER, GJ_STAGE_LOAD,
                "%s has no cuGetProcAddress: the driver is older than CUDA 12.0, or this is a stub", path);
    const char *const missing = find_functions(driver, get_proc, has_v2);
    if (driver->cuDriverGetVersion_fn != NULL)
        driver->cuDriverGetVersion_fn(&driver->version);
    if (driver->version != 0 && driver->version < DRIVER_MIN)
        GJ_FAIL(error, GJ_ERR_NO_DRIVER, GJ_STAGE_LOAD, "%s supports CUDA %d.%d: gemmjit needs 12.0 or newer",
                path, driver->version / 1000, driver->version % 1000 / 10);
    if (missing != NULL)
        GJ_FAIL(error, GJ_ERR_NO_DRIVER, GJ_STAGE_LOAD,
                "%s lacks %s: the driver is too old, or this is a stub", path, missing);
    return GJ_OK;
}

static enum gj_status init_driver(const struct gj_driver *driver, gj_error **error)
{
    const CUresult result = driver->cuInit_fn(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        GJ_FAIL(error, GJ_ERR_NO_DEVICE, GJ_STAGE_LOAD, "the CUDA driver sees no GPU");
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LOAD, error, "cuInit failed");
    return GJ_OK;
}

enum gj_status gj_driver_open(gj_driver **driver, gj_error **error)
{
    struct gj_driver *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LOAD, "no memory for the driver's table");
    enum gj_status status = open_library(opened, error);
    if (status == GJ_OK)
        status = init_driver(opened, error);
    if (status != GJ_OK) {
        gj_driver_close(&opened);
        return status;
    }
    *driver = opened;
    return GJ_OK;
}

void gj_driver_close(gj_driver **driver)
{
    if (driver == NULL)
        return;
    free(*driver);
    *driver = NULL;
}

int gj_driver_version(const gj_driver *driver)
{
    return driver->version;
}

int gj_gpu_count(const gj_driver *driver)
{
    int count = 0;
    return driver->cuDeviceGetCount_fn(&count) == CUDA_SUCCESS ? count : 0;
}

enum gj_status gj_gpu_info_get(const gj_driver *driver, int device, struct gj_gpu_info *info,
                               gj_error **error)
{
    struct gj_gpu_info read = {0};
    CUdevice handle;
    int count = 0;
    CUresult result = driver->cuDeviceGetCount_fn(&count);
    if (result == CUDA_SUCCESS && (device < 0 || device >= count))
        GJ_FAIL(error, GJ_ERR_NO_DEVICE, GJ_STAGE_LOAD, "there is no device %d: the driver sees %d", device,
                count);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGet_fn(&handle, device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetName_fn(read.name, sizeof read.name, handle);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute_fn(&read.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                                 handle);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute_fn(&read.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                                 handle);
    if (result == CUDA_SUCCESS)
        result =
            driver->cuDeviceGetAttribute_fn(&read.num_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceTotalMem_fn(&read.memory_bytes, handle);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LOAD, error, "device %d cannot be queried", device);
    *info = read;
    return GJ_OK;
}

enum gj_status gj_gpu_require(const gj_driver *driver, int device, struct gj_gpu_info *info, gj_error **error)
{
    GJ_TRY(gj_gpu_info_get(driver, device, info, error));
    if (info->major != 9 || info->minor != 0)
        GJ_FAIL(error, GJ_ERR_NO_DEVICE, GJ_STAGE_LOAD,
                "device %d, %s, has compute capability %d.%d: the kernels are for 9.0 (H100, H200) only",
                device, info->name, info->major, info->minor);
    return GJ_OK;
}

/* A kind is the SMs, and above them 1 + the first device that is like this one. */
#define KIND_SMS_BITS 16

int gj_gpu_kind_sms(int kind)
{
    return kind & ((1 << KIND_SMS_BITS) - 1);
}

/* The first device with the name and the SMs of this one, which may be itself. */
static int first_like(const gj_driver *driver, int device, const struct gj_gpu_info *info)
{
    struct gj_gpu_info other;
    for (int i = 0; i < device; i++)
        if (gj_gpu_info_get(driver, i, &other, NULL) == GJ_OK && other.num_sms == info->num_sms &&
            strcmp(other.name, info->name) == 0)
            return i;
    return device;
}

enum gj_status gj_gpu_kind(gj_driver *driver, int device, int *kind, gj_error **error)
{
    const bool is_known_place = device >= 0 && device < GJ_DEVICES_MAX;
    const int known = is_known_place ? atomic_load_explicit(&driver->kinds[device], memory_order_relaxed) : 0;
    struct gj_gpu_info info;
    if (known > 0) {
        *kind = known;
        return GJ_OK;
    }
    GJ_TRY(gj_gpu_require(driver, device, &info, error));
    *kind = (first_like(driver, device, &info) + 1) << KIND_SMS_BITS | info.num_sms;
    if (is_known_place)
        atomic_store_explicit(&driver->kinds[device], *kind, memory_order_relaxed);
    return GJ_OK;
}

enum gj_status gj_stream_is_capturing(const gj_driver *driver, void *stream, bool *is_capturing,
                                      gj_error **error)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver->cuStreamIsCapturing_fn((CUstream)stream, &capture);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error, "the stream cannot be queried");
    *is_capturing = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return GJ_OK;
}

enum gj_status gj_stream_may_prepare(const gj_driver *driver, void *stream, int device, gj_error **error)
{
    bool is_capturing = false;
    GJ_TRY(gj_stream_is_capturing(driver, stream, &is_capturing, error));
    if (is_capturing)
        GJ_FAIL(error, GJ_ERR_NOT_PREPARED, GJ_STAGE_LAUNCH,
                "the stream is capturing and the kernel is not prepared on device %d: call gj_kernel_prepare "
                "first",
                device);
    return GJ_OK;
}

enum gj_status gj_stream_may_load(const gj_driver *driver, void *stream, gj_error **error)
{
    int device;
    struct gj_gpu_info info;
    GJ_TRY(gj_gpu_of_stream(driver, stream, &device, error));
    GJ_TRY(gj_stream_may_prepare(driver, stream, device, error));
    return gj_gpu_require(driver, device, &info, error);
}

/* By the stream's context, which is the current one as a rule. cuStreamGetDevice would be one call instead of
 * three, but invalidates a capture (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, driver 580.159.04, 2026-12-01). */
static CUresult device_of_context(const gj_driver *driver, CUstream stream, CUdevice *device)
{
    CUcontext current = NULL, wanted = NULL;
    CUresult result = driver->cuCtxGetCurrent_fn(&current);
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamGetCtx_fn(stream, &wanted);
    if (result != CUDA_SUCCESS || wanted == current)
        return result == CUDA_SUCCESS ? driver->cuCtxGetDevice_fn(device) : result;
    result = driver->cuCtxPushCurrent_fn(wanted);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuCtxGetDevice_fn(device);
    driver->cuCtxPopCurrent_fn(&wanted);
    return result;
}

enum gj_status gj_gpu_of_stream(const gj_driver *driver, void *stream, int *device, gj_error **error)
{
    CUdevice found = 0;
    CUresult result;
    if (stream == NULL) {
        result = driver->cuCtxGetDevice_fn(&found);
        if (result == CUDA_ERROR_INVALID_CONTEXT)
            GJ_FAIL(
                error, GJ_ERR_NO_DEVICE, GJ_STAGE_LAUNCH,
                "no CUDA context is current on this thread and the stream is NULL: make one current first");
    } else {
        result = device_of_context(driver, (CUstream)stream, &found);
    }
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error, "the stream's device cannot be found");
    *device = (int)found;
    return GJ_OK;
}
