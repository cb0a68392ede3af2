/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, streams and timing. */
#include "cuda/device.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error_build.h"
#include "cuda/device_impl.h"

enum gj_status gj_device_checked(const gj_device *device, CUresult result, const char *what, gj_error **error)
{
    if (result == CUDA_SUCCESS)
        return GJ_OK;
    return gj_driver_fail(device->driver, result, GJ_STAGE_LAUNCH, error, "%s", what);
}

static CUresult open_context(gj_device *device, int ordinal)
{
    const struct gj_driver *const driver = device->driver;
    CUcontext context;
    CUresult result = driver->cuDeviceGet_fn(&device->handle, ordinal);
    if (result == CUDA_SUCCESS)
        result = driver->cuDevicePrimaryCtxRetain_fn(&context, device->handle);
    device->retained = result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = driver->cuCtxPushCurrent_fn(context);
    device->pushed = device->retained && result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamCreate_fn(&device->stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventCreate_fn(&device->start, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventCreate_fn(&device->stop, CU_EVENT_DEFAULT);
    return result;
}

enum gj_status gj_device_open(const gj_driver *driver, int ordinal, gj_device **device, gj_error **error)
{
    gj_device *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LOAD, "no memory for device %d", ordinal);
    opened->driver = driver;
    const enum gj_status status =
        gj_device_checked(opened, open_context(opened, ordinal), "the device cannot be opened", error);
    if (status != GJ_OK)
        gj_device_close(&opened);
    else
        *device = opened;
    return status;
}

void gj_device_close(gj_device **device)
{
    if (device == NULL || *device == NULL)
        return;
    const struct gj_driver *const driver = (*device)->driver;
    if ((*device)->start != NULL)
        driver->cuEventDestroy_fn((*device)->start);
    if ((*device)->stop != NULL)
        driver->cuEventDestroy_fn((*device)->stop);
    if ((*device)->stream != NULL)
        driver->cuStreamDestroy_fn((*device)->stream);
    CUcontext context;
    if ((*device)->pushed)
        driver->cuCtxPopCurrent_fn(&context);
    if ((*device)->retained)
        driver->cuDevicePrimaryCtxRelease_fn((*device)->handle);
    free(*device);
    *device = NULL;
}

void *gj_device_stream(const gj_device *device)
{
    return device->stream;
}

enum gj_status gj_device_alloc(gj_device *device, size_t bytes, void **memory, gj_error **error)
{
    CUdeviceptr allocated;
    GJ_TRY(gj_device_checked(device, device->driver->cuMemAlloc_fn(&allocated, bytes ? bytes : 1),
                             "device memory cannot be had", error));
    *memory = (void *)allocated;
    return GJ_OK;
}

void gj_device_free(gj_device *device, void *memory)
{
    if (memory != NULL)
        device->driver->cuMemFree_fn((CUdeviceptr)memory);
}

enum gj_status gj_device_write(gj_device *device, void *target, const void *source, size_t bytes,
                               gj_error **error)
{
    return gj_device_checked(device, device->driver->cuMemcpyHtoD_fn((CUdeviceptr)target, source, bytes),
                             "a copy to the device failed", error);
}

enum gj_status gj_device_read(gj_device *device, void *target, const void *source, size_t bytes,
                              gj_error **error)
{
    return gj_device_checked(device, device->driver->cuMemcpyDtoH_fn(target, (CUdeviceptr)source, bytes),
                             "a copy from the device failed", error);
}

enum gj_status gj_device_fill(gj_device *device, void *memory, int byte, size_t bytes, gj_error **error)
{
    return gj_device_checked(
        device,
        device->driver->cuMemsetD8Async_fn((CUdeviceptr)memory, (unsigned char)byte, bytes, device->stream),
        "device memory cannot be filled", error);
}

enum gj_status gj_device_sync(gj_device *device, int timeout_ms, gj_error **error)
{
    if (timeout_ms == 0)
        return gj_device_checked(device, device->driver->cuStreamSynchronize_fn(device->stream),
                                 "the stream failed", error);
    const double deadline = gj_clock_ms() + timeout_ms;
    CUresult result;
    while ((result = device->driver->cuStreamQuery_fn(device->stream)) == CUDA_ERROR_NOT_READY) {
        if (gj_clock_ms() > deadline)
            GJ_FAIL(error, GJ_ERR_DRIVER, GJ_STAGE_LAUNCH,
                    "the stream has not finished after %d ms: a kernel hangs", timeout_ms);
        nanosleep(&(struct timespec){.tv_nsec = 5000}, NULL);
    }
    return gj_device_checked(device, result, "the stream failed", error);
}

enum gj_status gj_device_timer_start(gj_device *device, gj_error **error)
{
    return gj_device_checked(device, device->driver->cuEventRecord_fn(device->start, device->stream),
                             "an event cannot be recorded", error);
}

enum gj_status gj_device_timer_stop(gj_device *device, float *ms, gj_error **error)
{
    CUresult result = device->driver->cuEventRecord_fn(device->stop, device->stream);
    if (result == CUDA_SUCCESS)
        result = device->driver->cuEventSynchronize_fn(device->stop);
    if (result == CUDA_SUCCESS)
        result = device->driver->cuEventElapsedTime_fn(ms, device->start, device->stop);
    return gj_device_checked(device, result, "the timed work failed", error);
}
