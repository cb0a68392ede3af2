/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda without a GPU: it records calls, keeps the rules that matter here, and fails on request.
 *
 * A context is the address of a device's slot, a stream that of a struct fake_stream. Built three times: with
 * cuGetProcAddress_v2, with the one before it (FAKE_PROC_V1), with none (FAKE_PROC_NONE). */
#include "fake_cuda_impl.h"

#include <string.h>
#include <unistd.h>

struct fake_cuda fake_cuda_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
    static const char names[] = "cuLibraryLoadData cuKernelGetFunction cuKernelSetAttribute cuFuncLoad "
                                "cuDevicePrimaryCtxRetain cuCtxSynchronize cuMemAlloc cuMemFree cuMemcpyHtoD";
    return strstr(names, name) != NULL;
}

int fake_add(int *number, int amount)
{
    pthread_mutex_lock(&STATE->lock);
    const int before = *number;
    *number += amount;
    pthread_mutex_unlock(&STATE->lock);
    return before;
}

int fake_get(int *number)
{
    return fake_add(number, 0);
}

void fake_set(int *number, int value)
{
    pthread_mutex_lock(&STATE->lock);
    *number = value;
    pthread_mutex_unlock(&STATE->lock);
}

/* Records a call and says how it must end. */
CUresult fake_enter(const char *name)
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
    static const struct {
        CUresult result;
        const char *name;
    } names[] = {{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].result == result)
            *name = names[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
    const bool is_other = STATE->other_from > 0 && device >= STATE->other_from;
    strncpy(name, is_other ? "Other GPU" : "Fake GPU", (size_t)capacity);
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

int fake_current_device(void)
{
    return num_pushed > 0 ? pushed[num_pushed - 1] : STATE->current;
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    fake_add(&STATE->retained[device], 1);
    *context = context_of(device);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    ENTER(cuDevicePrimaryCtxRelease);
    fake_add(&STATE->retained[device], -1);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    ENTER(cuCtxGetCurrent);
    *context = context_of(fake_current_device());
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    ENTER(cuCtxPushCurrent);
    const int device = device_of(context);
    if (device < 0 || (fake_get(&STATE->retained[device]) == 0 && device != STATE->current))
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
    if (fake_current_device() < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = fake_current_device();
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

int fake_device_of_stream(CUstream stream)
{
    return stream ? ((const struct fake_stream *)(void *)stream)->device : fake_current_device();
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
    // clang-format off
    ROW(cuInit) ROW(cuDriverGetVersion) ROW(cuGetErrorName) ROW(cuGetErrorString) ROW(cuDeviceGetCount)
    ROW(cuDeviceGet) ROW(cuDeviceGetName) ROW(cuDeviceGetAttribute) ROW(cuDeviceTotalMem)
    ROW(cuDevicePrimaryCtxRetain) ROW(cuDevicePrimaryCtxRelease) ROW(cuCtxGetCurrent) ROW(cuCtxPushCurrent)
    ROW(cuCtxPopCurrent) ROW(cuCtxGetDevice) ROW(cuStreamGetCtx) ROW(cuStreamIsCapturing) ROW(cuTensorMapReplaceAddress)
    ROW(cuLibraryLoadData) ROW(cuLibraryUnload) ROW(cuLibraryGetKernel) ROW(cuKernelGetFunction)
    ROW(cuKernelSetAttribute) ROW(cuFuncLoad) ROW(cuOccupancyMaxActiveClusters) ROW(cuTensorMapEncodeTiled)
    ROW(cuLaunchKernelEx) ROW(cuMemAlloc) ROW(cuMemFree)
    ROW(cuMemcpyHtoD)
// clang-format on
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
#if defined(FAKE_PROC_V1)
#define PROC_V1 cuGetProcAddress
#elif defined(FAKE_PROC_NONE)
#define PROC_V1 notGetProcAddress
#endif

#ifdef PROC_V1
CUresult PROC_V1(const char *name, void **function, int version, cuuint64_t flags);
CUresult PROC_V1(const char *name, void **function, int version, cuuint64_t flags)
{
    return flags == 0 ? find(name, function, version) : CUDA_ERROR_INVALID_VALUE;
}
#else
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
