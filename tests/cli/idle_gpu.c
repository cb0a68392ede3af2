/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda and a libcublasLt in one, without a GPU, for the verbs that measure: kernels do nothing and take
 * 10 us of a clock that only they move, those with $IDLE_GPU_FAST in their name 8 us. Every read of device
 * memory gives zeros, a count of elements that differ $IDLE_GPU_DIFFERENT, or 7 behind a kernel with
 * $IDLE_GPU_WRONG in its name. */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/bench/cublas_lt.h"

struct graph {
    double us;
};

/* What a kernel or a function points to. */
struct kernel {
    double us;
    bool is_wrong;
};
static struct kernel usual = {10, false}, fast = {8, false}, wrong = {10, true}, helper = {10, false};

static struct {
    double clock_us, captured_us;
    bool is_capturing, is_wrong;                 /* is_wrong: what the last GEMM wrote */
    int num_allocations, num_graphs, num_events; /* the process ends badly when one is left */
} state;

static void launched(double us)
{
    if (state.is_capturing)
        state.captured_us += us;
    else
        state.clock_us += us;
}

__attribute__((destructor)) static void look_for_leaks(void)
{
    if (state.num_allocations != 0 || state.num_graphs != 0 || state.num_events != 0 || state.is_capturing)
        abort();
}

/* -- libcuda ------------------------------------------------------------------------------------------- */

static CUresult succeed(void)
{
    return CUDA_SUCCESS;
}

static CUresult driver_get_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static CUresult get_one(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult get_zero(int *value)
{
    *value = 0;
    return CUDA_SUCCESS;
}

static CUresult get_name(char *name, int capacity, CUdevice device)
{
    (void)device;
    strncpy(name, "Idle GPU", (size_t)capacity);
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT   ? 132
                                                                       : 0;
    return CUDA_SUCCESS;
}

static CUresult total_mem(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 37;
    return CUDA_SUCCESS;
}

/* Any handle: what it points to is never looked at. */
static CUresult get_handle(void **handle)
{
    *handle = &state;
    return CUDA_SUCCESS;
}

static CUresult stream_get_context(CUstream stream, CUcontext *context)
{
    (void)stream;
    return get_handle((void **)context);
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = state.is_capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    state.is_capturing = true;
    state.captured_us = 0;
    return CUDA_SUCCESS;
}

static CUresult end_capture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    state.is_capturing = false;
    return get_handle((void **)graph);
}

static CUresult instantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    (void)graph;
    (void)flags;
    struct graph *const made = malloc(sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->us = state.captured_us;
    state.num_graphs++;
    *executable = (CUgraphExec)(void *)made;
    return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec executable, CUstream stream)
{
    (void)stream;
    launched(((const struct graph *)(void *)executable)->us);
    return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraphExec executable)
{
    free(executable);
    state.num_graphs--;
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
    (void)flags;
    double *const made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    state.num_events++;
    *event = (CUevent)(void *)made;
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
    free(event);
    state.num_events--;
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    (void)stream;
    *(double *)(void *)event = state.clock_us;
    return CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ms, CUevent from, CUevent to)
{
    *ms = (float)((*(const double *)(void *)to - *(const double *)(void *)from) / 1000);
    return CUDA_SUCCESS;
}

/* Addresses only: nothing is ever written there. */
static CUresult mem_alloc(CUdeviceptr *memory, size_t bytes)
{
    static CUdeviceptr next = 1 << 20;
    *memory = next;
    next += (bytes + 511) / 512 * 512;
    state.num_allocations++;
    return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr memory)
{
    (void)memory;
    state.num_allocations--;
    return CUDA_SUCCESS;
}

static CUresult read_memory(void *target, CUdeviceptr source, size_t bytes)
{
    (void)source;
    memset(target, 0, bytes);
    const char *const different = getenv("IDLE_GPU_DIFFERENT");
    if (bytes == sizeof(uint64_t) && (different != NULL || state.is_wrong))
        *(uint64_t *)target = state.is_wrong ? 7 : strtoull(different, NULL, 10);
    return CUDA_SUCCESS;
}

static bool is_named(const char *variable, const char *name)
{
    const char *const part = getenv(variable);
    return part != NULL && strstr(name, part) != NULL;
}

static CUresult get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library;
    struct kernel *const found = strncmp(name, "gj_", 3) != 0       ? &helper
                                 : is_named("IDLE_GPU_WRONG", name) ? &wrong
                                 : is_named("IDLE_GPU_FAST", name)  ? &fast
                                                                    : &usual;
    *kernel = (CUkernel)(void *)found;
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

static CUresult max_clusters(int *clusters, CUfunction function, const CUlaunchConfig *config)
{
    (void)function;
    *clusters = 132 / (int)config->attrs[0].value.clusterDim.x;
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    (void)config;
    (void)arguments;
    (void)extra;
    const struct kernel *const kernel = (const struct kernel *)(const void *)function;
    if (kernel != &helper)
        state.is_wrong = kernel->is_wrong;
    launched(kernel->us);
    return CUDA_SUCCESS;
}

#define ROW(name, function)            \
    {                                  \
        name, (void (*)(void))function \
    }
static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
    ROW("cuDriverGetVersion", driver_get_version),
    ROW("cuDeviceGetCount", get_one),
    ROW("cuDeviceGet", get_zero),
    ROW("cuDeviceGetName", get_name),
    ROW("cuDeviceGetAttribute", get_attribute),
    ROW("cuDeviceTotalMem", total_mem),
    ROW("cuDevicePrimaryCtxRetain", get_handle),
    ROW("cuCtxGetCurrent", get_handle),
    ROW("cuCtxPopCurrent", get_handle),
    ROW("cuCtxGetDevice", get_zero),
    ROW("cuStreamGetCtx", stream_get_context),
    ROW("cuStreamIsCapturing", is_capturing),
    ROW("cuStreamCreate", get_handle),
    ROW("cuStreamBeginCapture", begin_capture),
    ROW("cuStreamEndCapture", end_capture),
    ROW("cuGraphInstantiateWithFlags", instantiate),
    ROW("cuGraphLaunch", graph_launch),
    ROW("cuGraphExecDestroy", graph_destroy),
    ROW("cuEventCreate", event_create),
    ROW("cuEventDestroy", event_destroy),
    ROW("cuEventRecord", event_record),
    ROW("cuEventElapsedTime", event_elapsed),
    ROW("cuMemAlloc", mem_alloc),
    ROW("cuMemFree", mem_free),
    ROW("cuMemcpyDtoH", read_memory),
    ROW("cuLibraryLoadData", get_handle),
    ROW("cuLibraryGetKernel", get_kernel),
    ROW("cuKernelGetFunction", get_function),
    ROW("cuOccupancyMaxActiveClusters", max_clusters),
    ROW("cuLaunchKernelEx", launch),
};

#undef cuGetProcAddress
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    void (*found)(void) = (void (*)(void))succeed;
    (void)version;
    (void)flags;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            found = functions[i].function;
    memcpy(function, &found, sizeof found);
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

/* -- libcublasLt --------------------------------------------------------------------------------------- */

#define DECLARE(name, parameters) int name parameters;
LT_FUNCTIONS(DECLARE)
size_t cublasLtGetVersion(void);

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtCreate(void **handle)
{
    return (int)get_handle(handle);
}

int cublasLtMatmulDescCreate(void **descriptor, int compute, int scale_type)
{
    (void)compute;
    (void)scale_type;
    return (int)get_handle(descriptor);
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    (void)type;
    (void)columns;
    *layout = NULL;
    return rows > (uint64_t)ld ? 7 : (int)get_handle(layout); /* CUBLAS_STATUS_INVALID_VALUE */
}

int cublasLtMatmulPreferenceCreate(void **preference)
{
    return (int)get_handle(preference);
}

#define SUCCEED(name, ...) \
    int name(__VA_ARGS__)  \
    {                      \
        return 0;          \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
SUCCEED(cublasLtDestroy, void *handle)
SUCCEED(cublasLtMatmulDescDestroy, void *descriptor)
SUCCEED(cublasLtMatmulDescSetAttribute, void *descriptor, int attribute, const void *value, size_t bytes)
SUCCEED(cublasLtMatrixLayoutDestroy, void *layout)
SUCCEED(cublasLtMatrixLayoutSetAttribute, void *layout, int attribute, const void *value, size_t bytes)
SUCCEED(cublasLtMatmulPreferenceDestroy, void *preference)
SUCCEED(cublasLtMatmulPreferenceSetAttribute, void *preference, int attribute, const void *value,
        size_t bytes)

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *descriptor, void *a, void *b, void *c, void *d,
                                   void *preference, int asked, struct lt_heuristic *results, int *found)
{
    for (int i = 0; i < asked && i < 3; i++)
        results[i] = (struct lt_heuristic){.algo.data[0] = (uint64_t)i};
    *found = asked < 3 ? asked : 3;
    return 0;
}

/* The first algorithm takes 12 us, the next ones 11 and 10. */
int cublasLtMatmul(void *handle, void *descriptor, const void *alpha, const void *a, void *layout_a,
                   const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,
                   void *layout_d, const struct lt_algo *algo, void *workspace, size_t workspace_bytes,
                   void *stream)
{
    launched(12 - (double)algo->data[0]);
    return 0;
}
