/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda's libraries, tensor maps, launches and memory. */
#include "fake_cuda_impl.h"

#include <stdlib.h>
#include <string.h>

/* -- Libraries and kernels ------------------------------------------------------------------------------- */

CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
                                void **jit_values, unsigned num_jit, CUlibraryOption *options, void **values,
                                unsigned num_options)
{
    ENTER(cuLibraryLoadData);
    (void)jit_options, (void)jit_values, (void)options, (void)values;
    if (num_jit != 0 || num_options != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&STATE->lock);
    STATE->image = image;
    pthread_mutex_unlock(&STATE->lock);
    fake_add(&STATE->num_libraries, 1);
    *library = (CUlibrary)(void *)&STATE->num_libraries;
    return CUDA_SUCCESS;
}

CUresult fake_cuLibraryUnload(CUlibrary library)
{
    ENTER(cuLibraryUnload);
    if ((void *)library != &STATE->num_libraries || fake_get(&STATE->num_libraries) == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    fake_add(&STATE->num_libraries, -1);
    return CUDA_SUCCESS;
}

/* Index of a kernel by its handle, or -1. */
static int kernel_at(const void *handle)
{
    for (int i = 0; i < FAKE_KERNELS; i++)
        if (handle == STATE->kernels[i])
            return i;
    return -1;
}

CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetKernel);
    if ((void *)library != &STATE->num_libraries)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&STATE->lock);
    int i = 0;
    while (i < FAKE_KERNELS && STATE->kernels[i][0] != '\0' && strcmp(STATE->kernels[i], name) != 0)
        i++;
    if (i < FAKE_KERNELS)
        strncpy(STATE->kernels[i], name, sizeof STATE->kernels[i] - 1);
    pthread_mutex_unlock(&STATE->lock);
    if (i == FAKE_KERNELS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *kernel = (CUkernel)(void *)STATE->kernels[i];
    return CUDA_SUCCESS;
}

CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ENTER(cuKernelGetFunction);
    if (fake_current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                   CUdevice device)
{
    ENTER(cuKernelSetAttribute);
    if (kernel_at(kernel) < 0 || device < 0 || device >= STATE->num_devices)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        fake_set(&STATE->smem_limit[kernel_at(kernel)][device], value);
    return CUDA_SUCCESS;
}

CUresult fake_cuFuncLoad(CUfunction function)
{
    ENTER(cuFuncLoad);
    return kernel_at(function) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    ENTER(cuOccupancyMaxActiveClusters);
    if (kernel_at(function) < 0 || fake_current_device() < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    unsigned cluster = 0;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            cluster = config->attrs[i].value.clusterDim.x;
    pthread_mutex_lock(&STATE->lock);
    STATE->occupancy_config = *config;
    STATE->occupancy_cluster = cluster;
    pthread_mutex_unlock(&STATE->lock);
    *clusters = STATE->max_clusters;
    return CUDA_SUCCESS;
}

CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *extents, const cuuint64_t *strides,
                                     const cuuint32_t *box, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    ENTER(cuTensorMapEncodeTiled);
    struct fake_map made = {.address = address,
                            .rank = rank,
                            .type = (int)type,
                            .interleave = (int)interleave,
                            .swizzle = (int)swizzle,
                            .promotion = (int)promotion,
                            .fill = (int)fill};
    _Static_assert(sizeof made <= sizeof *map, "a map holds its arguments");
    if (rank < 3 || rank > 4 || (uintptr_t)address % 16 != 0 || (uintptr_t)map % 64 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; i++) {
        if (extents[i] == 0 || extents[i] > UINT64_C(1) << 32 || box[i] == 0 || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= UINT64_C(1) << 40))
            return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(made.extents, extents, rank * sizeof *extents);
    memcpy(made.strides, strides, (rank - 1) * sizeof *strides);
    memcpy(made.box, box, rank * sizeof *box);
    memcpy(made.steps, steps, rank * sizeof *steps);
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

/* -- Work ------------------------------------------------------------------------------------------------ */

CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                               void **extra)
{
    ENTER(cuLaunchKernelEx);
    const int device = fake_device_of_stream(config->hStream);
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (kernel_at(function) < 0 || extra != NULL || config->numAttrs > FAKE_ATTRIBUTES)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((int)config->sharedMemBytes > fake_get(&STATE->smem_limit[kernel_at(function)][device]))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&STATE->lock);
    struct fake_launch *const launch = &STATE->launches[STATE->num_launches++ % FAKE_LAUNCHES];
    *launch = (struct fake_launch){.config = *config, .function = function, .device = device};
    for (unsigned i = 0; i < config->numAttrs; i++)
        launch->attributes[i] = config->attrs[i];
    launch->config.attrs = launch->attributes;
    int at = 0;
    for (; at < STATE->num_maps; at++)
        memcpy(&launch->maps[at], arguments[at], sizeof launch->maps[at]);
    if (STATE->has_fused)
        memcpy(&launch->fused, arguments[at++], sizeof launch->fused);
    memcpy(&launch->params, arguments[at], sizeof launch->params);
    pthread_mutex_unlock(&STATE->lock);
    return CUDA_SUCCESS;
}

CUresult fake_cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    struct fake_map made;
    ENTER(cuTensorMapReplaceAddress);
    memcpy(&made, map, sizeof made);
    made.address = address;
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemAlloc(CUdeviceptr *memory, size_t bytes)
{
    ENTER(cuMemAlloc);
    if (fake_current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *memory = (CUdeviceptr)malloc(bytes);
    if (*memory == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_add(&STATE->num_allocations, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemFree(CUdeviceptr memory)
{
    ENTER(cuMemFree);
    if (fake_current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    fake_add(&STATE->num_allocations, -1);
    free((void *)memory);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes)
{
    ENTER(cuMemcpyHtoD);
    memcpy((void *)target, source, bytes);
    return CUDA_SUCCESS;
}
