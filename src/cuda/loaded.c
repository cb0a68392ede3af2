/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a cubin and preparing it on devices. */
#include "cuda/loaded.h"

#include <stdlib.h>

#include "base/error_build.h"
#include "cuda/recent.h"

enum gj_status gj_loaded_open(const gj_driver *driver, const struct gj_plan *plan, const void *cubin,
                              gj_loaded **loaded, gj_error **error)
{
    struct gj_loaded *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LOAD, "no memory to load %s", plan->entry_name);
    opened->driver = driver;
    opened->threads = plan->threads;
    opened->smem_bytes = plan->smem_bytes;
    opened->cluster_size = plan->cluster_size;
    opened->ctas_per_sm = plan->kernel.ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1;
    opened->counts_tiles = plan->key.tiles == GJ_TILES_DYNAMIC;
    pthread_mutex_init(&opened->lock, NULL);
    CUresult result = driver->cuLibraryLoadData_fn(&opened->library, cubin, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS)
        result = driver->cuLibraryGetKernel_fn(&opened->kernel, opened->library, plan->entry_name);
    if (result != CUDA_SUCCESS) {
        gj_loaded_close(&opened);
        return gj_driver_fail(driver, result, GJ_STAGE_LOAD, error, "the cubin of %s cannot be loaded",
                              plan->entry_name);
    }
    *loaded = opened;
    return GJ_OK;
}

void gj_loaded_close(gj_loaded **loaded)
{
    if (loaded == NULL || *loaded == NULL)
        return;
    struct gj_loaded *const l = *loaded;
    /* Results are ignored: at process exit the driver may be gone already, which is no one's error. */
    if (l->library != NULL)
        l->driver->cuLibraryUnload_fn(l->library);
    for (int i = 0; i < GJ_DEVICES_MAX; i++) {
        CUcontext primary = l->devices[i].primary;
        const bool pushed = primary != NULL && l->driver->cuCtxPushCurrent_fn(primary) == CUDA_SUCCESS;
        if (l->devices[i].counters != 0)
            l->driver->cuMemFree_fn(l->devices[i].counters);
        if (pushed)
            l->driver->cuCtxPopCurrent_fn(&primary);
        free(l->devices[i].recent);
        if (l->devices[i].primary != NULL)
            l->driver->cuDevicePrimaryCtxRelease_fn((CUdevice)i);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
    *loaded = NULL;
}

void gj_loaded_config(const struct gj_loaded *loaded, int clusters, CUstream stream, bool overlaps,
                      struct gj_config *config)
{
    CUlaunchAttribute *const attributes = config->attributes;
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = (unsigned)loaded->cluster_size;
    attributes[0].value.clusterDim.y = 1;
    attributes[0].value.clusterDim.z = 1;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    config->config = (CUlaunchConfig){
        .gridDimX = (unsigned)(clusters * loaded->cluster_size),
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = (unsigned)loaded->threads,
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = (unsigned)loaded->smem_bytes,
        .hStream = stream,
        .attrs = attributes,
        .numAttrs = overlaps ? 2 : 1,
    };
}

/* Device memory for tile counters, all zero. */
static CUresult make_counters(struct gj_loaded *loaded, int device)
{
    const struct gj_driver *const driver = loaded->driver;
    struct gj_on_device *const on = &loaded->devices[device];
    if (!loaded->counts_tiles || on->counters != 0)
        return CUDA_SUCCESS;
    unsigned int *const zeros = calloc(GJ_COUNTERS, sizeof *zeros);
    if (zeros == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = driver->cuMemAlloc_fn(&on->counters, GJ_COUNTERS * sizeof *zeros);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemcpyHtoD_fn(on->counters, zeros, GJ_COUNTERS * sizeof *zeros);
    if (result != CUDA_SUCCESS && on->counters != 0) {
        driver->cuMemFree_fn(on->counters);
        on->counters = 0; /* or the next attempt takes them for zeros */
    }
    free(zeros);
    return result;
}

static CUresult make_recent(struct gj_on_device *on)
{
    if (on->recent == NULL)
        on->recent = calloc(1, sizeof *on->recent);
    return on->recent != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Attributes, eager loading and occupancy; a context of the device is current. */
static enum gj_status set_up(struct gj_loaded *loaded, int device, gj_error **error)
{
    const struct gj_driver *const driver = loaded->driver;
    CUfunction function;
    struct gj_config config;
    CUresult result = driver->cuKernelSetAttribute_fn(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                      loaded->smem_bytes, loaded->kernel, (CUdevice)device);
    if (result == CUDA_SUCCESS)
        result = driver->cuKernelGetFunction_fn(&function, loaded->kernel);
    if (result == CUDA_SUCCESS && driver->cuFuncLoad_fn != NULL)
        result = driver->cuFuncLoad_fn(function);
    if (result == CUDA_SUCCESS)
        result = make_counters(loaded, device);
    if (result == CUDA_SUCCESS)
        result = make_recent(&loaded->devices[device]);
    if (result == CUDA_SUCCESS) {
        gj_loaded_config(loaded, 1, NULL, false, &config);
        result = driver->cuOccupancyMaxActiveClusters_fn(&loaded->devices[device].max_clusters, function,
                                                         &config.config);
    }
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LOAD, error,
                              "the kernel cannot be set up on device %d", device);
    if (loaded->devices[device].max_clusters < 1)
        GJ_FAIL(error, GJ_ERR_NO_DEVICE, GJ_STAGE_LOAD,
                "no cluster of %d CTAs with %d bytes of shared memory fits device %d in this context",
                loaded->cluster_size, loaded->smem_bytes, device);
    return GJ_OK;
}

static enum gj_status check_device(const struct gj_driver *driver, int device, gj_error **error)
{
    struct gj_gpu_info info;
    GJ_TRY(gj_gpu_require(driver, device, &info, error));
    if (device >= GJ_DEVICES_MAX)
        GJ_FAIL(error, GJ_ERR_NO_DEVICE, GJ_STAGE_LOAD, "device %d: at most %d devices are supported", device,
                GJ_DEVICES_MAX);
    return GJ_OK;
}

/* Runs set_up in the current context if it is of the device, else in the device's primary context. */
static enum gj_status set_up_in_context(struct gj_loaded *loaded, int device, gj_error **error)
{
    const struct gj_driver *const driver = loaded->driver;
    struct gj_on_device *const on = &loaded->devices[device];
    CUcontext context = NULL;
    CUdevice current = -1;
    if (driver->cuCtxGetCurrent_fn(&context) == CUDA_SUCCESS && context != NULL)
        driver->cuCtxGetDevice_fn(&current);
    if (current == (CUdevice)device)
        return set_up(loaded, device, error);
    CUresult result = CUDA_SUCCESS;
    if (on->primary == NULL) {
        result = driver->cuDevicePrimaryCtxRetain_fn(&context, (CUdevice)device);
        on->primary = result == CUDA_SUCCESS ? context : NULL;
    }
    if (result == CUDA_SUCCESS)
        result = driver->cuCtxPushCurrent_fn(on->primary);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LOAD, error,
                              "the primary context of device %d cannot be used", device);
    const enum gj_status status = set_up(loaded, device, error);
    driver->cuCtxPopCurrent_fn(&context);
    return status;
}

enum gj_status gj_loaded_prepare(gj_loaded *loaded, int device, gj_error **error)
{
    if (device >= 0 && device < GJ_DEVICES_MAX &&
        atomic_load_explicit(&loaded->devices[device].ready, memory_order_acquire))
        return GJ_OK;
    GJ_TRY(check_device(loaded->driver, device, error));
    pthread_mutex_lock(&loaded->lock);
    enum gj_status status = GJ_OK;
    if (!atomic_load_explicit(&loaded->devices[device].ready, memory_order_relaxed)) {
        status = set_up_in_context(loaded, device, error);
        if (status == GJ_OK)
            atomic_store_explicit(&loaded->devices[device].ready, true, memory_order_release);
    }
    pthread_mutex_unlock(&loaded->lock);
    return status;
}
