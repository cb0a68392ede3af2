/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda without a GPU: it records calls, keeps the rules that matter here, and fails on request.
 *
 * A context is the address of a device's slot, a stream that of a struct fake_stream. Built three times: with
 * cuGetProcAddress_v2, with the one before it (FAKE_PROC_V1), with none (FAKE_PROC_NONE). */
#include "fake_cuda.h"

#include <string.h>
#include <unistd.h>

extern struct fake_cuda fake_cuda_state;
struct fake_cuda fake_cuda_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define STATE (&fake_cuda_state)

/* What cuCtxPushCurrent has pushed on this thread: devices. */
static _Thread_local int pushed[8], num_pushed;

/* -- Recording and failing ------------------------------------------------------------------------------- */

static int count_calls(const char *name)
{
    int count = 0;
    for (int i = 0; i < STATE->num_calls && i < FAKE_CALLS; i++)
        count += strcmp(STATE->calls[i], name) == 0;
    return count;
}

/* What invalidates a capture: always, on older drivers, or with lazy loading. */
static bool is_illegal_in_capture(const char *name)
{
    static const char *const names[] = {"cuLibraryLoadData",        "cuKernelGetFunction",
                                        "cuKernelSetAttribute",     "cuFuncLoad",
                                        "cuDevicePrimaryCtxRetain", "cuCtxSynchronize"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int add(int *number, int amount)
{
    pthread_mutex_lock(&STATE->lock);
    const int before = *number;
    *number += amount;
    pthread_mutex_unlock(&STATE->lock);
    return before;
}

static int get(int *number)
{
    return add(number, 0);
}

/* Records a call and says how it must end. */
static CUresult enter(const char *name)
{
    pthread_mutex_lock(&STATE->lock);
    CUresult result = CUDA_SUCCESS;
    if (STATE->fails != NULL && strcmp(STATE->fails, name) == 0) {
        const int earlier = count_calls(name);
        if (earlier >= STATE->fails_from && (STATE->fails_to == 0 || earlier < STATE->fails_to))
            result = STATE->fail_result;
    }
    if (STATE->num_calls < FAKE_CALLS)
        STATE->calls[STATE->num_calls] = name;
    STATE->num_calls++;
    STATE->num_illegal += STATE->captures && is_illegal_in_capture(name);
    pthread_mutex_unlock(&STATE->lock);
    if (result == CUDA_SUCCESS && STATE->pid != getpid() && strcmp(name, "cuInit") != 0)
        result = CUDA_ERROR_NOT_INITIALIZED; /* as in a child of the process that called cuInit */
    return result;
}

#define ENTER(name)                            \
    do {                                       \
        const CUresult entered = enter(#name); \
        if (entered != CUDA_SUCCESS)           \
            return entered;                    \
    } while (0)

/* -- The device and its contexts ------------------------------------------------------------------------- */

static CUresult fake_cuInit(unsigned flags)
{
    ENTER(cuInit);
    if (STATE->num_devices == 0)
        return CUDA_ERROR_NO_DEVICE;
    STATE->pid = getpid();
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The calls that need no cuInit. */
static CUresult fake_cuDriverGetVersion(int *version)
{
    *version = STATE->driver_version;
    return CUDA_SUCCESS;
}

static CUresult fake_cuGetErrorName(CUresult result, const char **name)
{
    switch ((int)result) {
    case CUDA_ERROR_INVALID_VALUE:
        *name = "CUDA_ERROR_INVALID_VALUE";
        return CUDA_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
        *name = "CUDA_ERROR_OUT_OF_MEMORY";
        return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_INITIALIZED:
        *name = "CUDA_ERROR_NOT_INITIALIZED";
        return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_FAILED:
        *name = "CUDA_ERROR_LAUNCH_FAILED";
        return CUDA_SUCCESS;
    default:
        *name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult fake_cuGetErrorString(CUresult result, const char **sentence)
{
    const CUresult known = fake_cuGetErrorName(result, sentence);
    if (known == CUDA_SUCCESS)
        *sentence = "the fake was told to";
    return known;
}

static CUresult fake_cuDeviceGetCount(int *count)
{
    ENTER(cuDeviceGetCount);
    *count = STATE->num_devices;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER(cuDeviceGet);
    if (ordinal < 0 || ordinal >= STATE->num_devices)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetName(char *name, int capacity, CUdevice device)
{
    ENTER(cuDeviceGetName);
    (void)device;
    strncpy(name, "Fake GPU", (size_t)capacity);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    ENTER(cuDeviceGetAttribute);
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? STATE->major
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? STATE->minor
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? STATE->num_sms
                                                                         : 0;
    return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    ENTER(cuDeviceTotalMem);
    (void)device;
    *bytes = (size_t)1 << 37;
    return CUDA_SUCCESS;
}

static CUcontext context_of(int device)
{
    return device < 0 ? NULL : (CUcontext)(void *)&STATE->retained[device];
}

static int device_of(CUcontext context)
{
    return context ? (int)((int *)(void *)context - STATE->retained) : -1;
}

static int current_device(void)
{
    return num_pushed > 0 ? pushed[num_pushed - 1] : STATE->current;
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    add(&STATE->retained[device], 1);
    *context = context_of(device);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease);
    add(&STATE->retained[device], -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    ENTER(cuCtxGetCurrent);
    *context = context_of(current_device());
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    ENTER(cuCtxPushCurrent);
    const int device = device_of(context);
    if (device < 0 || (get(&STATE->retained[device]) == 0 && device != STATE->current))
        return CUDA_ERROR_INVALID_CONTEXT;
    pushed[num_pushed++] = device;
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    ENTER(cuCtxPopCurrent);
    if (num_pushed == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = context_of(pushed[--num_pushed]);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device)
{
    ENTER(cuCtxGetDevice);
    if (current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = current_device();
    return CUDA_SUCCESS;
}

/* -- Streams --------------------------------------------------------------------------------------------- */

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    ENTER(cuStreamGetCtx);
    const struct fake_stream *const fake = (const struct fake_stream *)(void *)stream;
    if (fake->device < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *context = context_of(fake->device);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    ENTER(cuStreamIsCapturing);
    const struct fake_stream *const fake = (const struct fake_stream *)(void *)stream;
    *status =
        fake != NULL && fake->captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static int device_of_stream(CUstream stream)
{
    return stream ? ((const struct fake_stream *)(void *)stream)->device : current_device();
}

/* -- Libraries and kernels ------------------------------------------------------------------------------- */

static CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
                                       void **jit_values, unsigned num_jit, CUlibraryOption *options,
                                       void **values, unsigned num_options)
{
    ENTER(cuLibraryLoadData);
    (void)jit_options, (void)jit_values, (void)options, (void)values;
    if (num_jit != 0 || num_options != 0)
        return CUDA_ERROR_INVALID_VALUE;
    STATE->image = image;
    add(&STATE->num_libraries, 1);
    *library = (CUlibrary)(void *)&STATE->num_libraries;
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryUnload(CUlibrary library)
{
    ENTER(cuLibraryUnload);
    if ((void *)library != &STATE->num_libraries || get(&STATE->num_libraries) == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    add(&STATE->num_libraries, -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    ENTER(cuLibraryGetKernel);
    if ((void *)library != &STATE->num_libraries)
        return CUDA_ERROR_INVALID_HANDLE;
    strncpy(STATE->kernel_name, name, sizeof STATE->kernel_name - 1);
    *kernel = (CUkernel)(void *)STATE->kernel_name;
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    ENTER(cuKernelGetFunction);
    if (current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

static CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                          CUdevice device)
{
    ENTER(cuKernelSetAttribute);
    if ((void *)kernel != STATE->kernel_name || device < 0 || device >= STATE->num_devices)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        add(&STATE->smem_limit[device], value - get(&STATE->smem_limit[device]));
    return CUDA_SUCCESS;
}

static CUresult fake_cuFuncLoad(CUfunction function)
{
    ENTER(cuFuncLoad);
    return (void *)function == STATE->kernel_name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult fake_cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                                  const CUlaunchConfig *config)
{
    ENTER(cuOccupancyMaxActiveClusters);
    if ((void *)function != STATE->kernel_name || current_device() < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    STATE->occupancy_config = *config;
    STATE->occupancy_cluster = 0;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            STATE->occupancy_cluster = config->attrs[i].value.clusterDim.x;
    *clusters = STATE->max_clusters;
    return CUDA_SUCCESS;
}

static CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                            void *address, const cuuint64_t *extents,
                                            const cuuint64_t *strides, const cuuint32_t *box,
                                            const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                            CUtensorMapFloatOOBfill fill)
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
    if (rank != 3 || (uintptr_t)address % 16 != 0 || (uintptr_t)map % 64 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; i++) {
        if (extents[i] == 0 || extents[i] > UINT64_C(1) << 32 || box[i] == 0 || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= UINT64_C(1) << 40))
            return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(made.extents, extents, sizeof made.extents);
    memcpy(made.strides, strides, sizeof made.strides);
    memcpy(made.box, box, sizeof made.box);
    memcpy(made.steps, steps, sizeof made.steps);
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

/* -- Work ------------------------------------------------------------------------------------------------ */

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                                      void **extra)
{
    ENTER(cuLaunchKernelEx);
    const int device = device_of_stream(config->hStream);
    if (device < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((void *)function != STATE->kernel_name || extra != NULL || config->numAttrs > FAKE_ATTRIBUTES)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((int)config->sharedMemBytes > get(&STATE->smem_limit[device]))
        return CUDA_ERROR_INVALID_VALUE;
    struct fake_launch *const launch = &STATE->launches[add(&STATE->num_launches, 1) % FAKE_LAUNCHES];
    *launch = (struct fake_launch){.config = *config, .function = function, .device = device};
    for (unsigned i = 0; i < config->numAttrs; i++)
        launch->attributes[i] = config->attrs[i];
    launch->config.attrs = launch->attributes;
    for (int i = 0; i < 4; i++)
        memcpy(&launch->maps[i], arguments[i], sizeof launch->maps[i]);
    memcpy(&launch->params, arguments[4], sizeof launch->params);
    return CUDA_SUCCESS;
}

static CUresult add_memset(const struct fake_memset *made)
{
    STATE->memsets[add(&STATE->num_memsets, 1) % FAKE_MEMSETS] = *made;
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream)
{
    ENTER(cuMemsetD8Async);
    return add_memset(&(struct fake_memset){target, 0, count, 1, value, stream});
}

static CUresult fake_cuMemsetD2D8Async(CUdeviceptr target, size_t pitch, unsigned char value, size_t width,
                                       size_t height, CUstream stream)
{
    ENTER(cuMemsetD2D8Async);
    if (pitch < width)
        return CUDA_ERROR_INVALID_VALUE;
    return add_memset(&(struct fake_memset){target, pitch, width, height, value, stream});
}

/* Stands for every entry point that no test looks at. */
static CUresult fake_other(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* -- cuGetProcAddress ------------------------------------------------------------------------------------ */

/* The names in quotes: cuda.h has macros of some of them. */
static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
#define ROW(name) {#name, (void (*)(void))fake_##name},
    ROW(cuInit) ROW(cuDriverGetVersion) ROW(cuGetErrorName) ROW(cuGetErrorString) ROW(cuDeviceGetCount)
        ROW(cuDeviceGet) ROW(cuDeviceGetName) ROW(cuDeviceGetAttribute) ROW(cuDeviceTotalMem)
            ROW(cuDevicePrimaryCtxRetain) ROW(cuDevicePrimaryCtxRelease) ROW(cuCtxGetCurrent)
                ROW(cuCtxPushCurrent) ROW(cuCtxPopCurrent) ROW(cuCtxGetDevice) ROW(cuStreamGetCtx)
                    ROW(cuStreamIsCapturing) ROW(cuLibraryLoadData) ROW(cuLibraryUnload)
                        ROW(cuLibraryGetKernel) ROW(cuKernelGetFunction) ROW(cuKernelSetAttribute)
                            ROW(cuFuncLoad) ROW(cuOccupancyMaxActiveClusters) ROW(cuTensorMapEncodeTiled)
                                ROW(cuLaunchKernelEx) ROW(cuMemsetD8Async) ROW(cuMemsetD2D8Async)
#undef ROW
};

static CUresult find(const char *name, void **function, int version)
{
    void (*found)(void) = (void (*)(void))fake_other;
    if (version > STATE->driver_version || (STATE->missing && strcmp(STATE->missing, name) == 0)) {
        *function = NULL;
        return CUDA_ERROR_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            found = functions[i].function;
    memcpy(function, &found, sizeof found);
    return CUDA_SUCCESS;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags);

#if defined(FAKE_PROC_V1)
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return flags == 0 ? find(name, function, version) : CUDA_ERROR_INVALID_VALUE;
}
#elif !defined(FAKE_PROC_NONE)
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const CUresult result = find(name, function, version);
    if (status != NULL)
        *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    /* The real one answers success with a NULL function when there is only an older version. */
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#endif
