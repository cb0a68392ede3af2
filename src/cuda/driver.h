/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda by dlopen and versioned entry points. Only src/cuda includes this header and cuda.h. */
#ifndef GJ_CUDA_DRIVER_H
#define GJ_CUDA_DRIVER_H

#include <cuda.h>
#include <stdatomic.h>

#include <gemmjit/error.h>

#include "cuda/gpu.h"

/* Entry points: name as cuGetProcAddress takes it, the CUDA version whose ABI is meant (never a newer one, so
 * that any driver from 12.0 on answers), and the typed member. OPTIONAL ones may be missing. */
#define GJ_DRIVER_FUNCTIONS(REQUIRED, OPTIONAL)                                                             \
    REQUIRED(cuInit, 2000, CUresult, (unsigned int))                                                        \
    REQUIRED(cuDriverGetVersion, 2020, CUresult, (int *))                                                   \
    REQUIRED(cuGetErrorName, 6000, CUresult, (CUresult, const char **))                                     \
    REQUIRED(cuGetErrorString, 6000, CUresult, (CUresult, const char **))                                   \
    REQUIRED(cuDeviceGetCount, 2000, CUresult, (int *))                                                     \
    REQUIRED(cuDeviceGet, 2000, CUresult, (CUdevice *, int))                                                \
    REQUIRED(cuDeviceGetName, 2000, CUresult, (char *, int, CUdevice))                                      \
    REQUIRED(cuDeviceGetAttribute, 2000, CUresult, (int *, CUdevice_attribute, CUdevice))                   \
    REQUIRED(cuDeviceTotalMem, 3020, CUresult, (size_t *, CUdevice))                                        \
    REQUIRED(cuDevicePrimaryCtxRetain, 7000, CUresult, (CUcontext *, CUdevice))                             \
    REQUIRED(cuDevicePrimaryCtxRelease, 11000, CUresult, (CUdevice))                                        \
    REQUIRED(cuCtxGetCurrent, 4000, CUresult, (CUcontext *))                                                \
    REQUIRED(cuCtxPushCurrent, 4000, CUresult, (CUcontext))                                                 \
    REQUIRED(cuCtxPopCurrent, 4000, CUresult, (CUcontext *))                                                \
    REQUIRED(cuCtxGetDevice, 2000, CUresult, (CUdevice *))                                                  \
    REQUIRED(cuCtxSynchronize, 2000, CUresult, (void))                                                      \
    REQUIRED(cuStreamGetCtx, 9020, CUresult, (CUstream, CUcontext *))                                       \
    REQUIRED(cuStreamIsCapturing, 10000, CUresult, (CUstream, CUstreamCaptureStatus *))                     \
    REQUIRED(cuStreamCreate, 2000, CUresult, (CUstream *, unsigned int))                                    \
    REQUIRED(cuStreamDestroy, 4000, CUresult, (CUstream))                                                   \
    REQUIRED(cuStreamSynchronize, 7000, CUresult, (CUstream))                                               \
    REQUIRED(cuStreamQuery, 7000, CUresult, (CUstream))                                                     \
    REQUIRED(cuEventCreate, 2000, CUresult, (CUevent *, unsigned int))                                      \
    REQUIRED(cuEventDestroy, 4000, CUresult, (CUevent))                                                     \
    REQUIRED(cuEventRecord, 7000, CUresult, (CUevent, CUstream))                                            \
    REQUIRED(cuEventSynchronize, 2000, CUresult, (CUevent))                                                 \
    REQUIRED(cuEventElapsedTime, 2000, CUresult, (float *, CUevent, CUevent))                               \
    REQUIRED(cuMemAlloc, 3020, CUresult, (CUdeviceptr *, size_t))                                           \
    REQUIRED(cuMemFree, 3020, CUresult, (CUdeviceptr))                                                      \
    REQUIRED(cuMemcpyHtoD, 7000, CUresult, (CUdeviceptr, const void *, size_t))                             \
    REQUIRED(cuMemcpyDtoH, 7000, CUresult, (void *, CUdeviceptr, size_t))                                   \
    REQUIRED(cuMemsetD8Async, 7000, CUresult, (CUdeviceptr, unsigned char, size_t, CUstream))               \
    REQUIRED(cuLibraryLoadData, 12000, CUresult,                                                            \
             (CUlibrary *, const void *, CUjit_option *, void **, unsigned int, CUlibraryOption *, void **, \
              unsigned int))                                                                                \
    REQUIRED(cuLibraryUnload, 12000, CUresult, (CUlibrary))                                                 \
    REQUIRED(cuLibraryGetKernel, 12000, CUresult, (CUkernel *, CUlibrary, const char *))                    \
    REQUIRED(cuKernelGetFunction, 12000, CUresult, (CUfunction *, CUkernel))                                \
    REQUIRED(cuKernelSetAttribute, 12000, CUresult, (CUfunction_attribute, int, CUkernel, CUdevice))        \
    REQUIRED(cuOccupancyMaxActiveClusters, 11070, CUresult, (int *, CUfunction, const CUlaunchConfig *))    \
    REQUIRED(cuTensorMapEncodeTiled, 12000, CUresult,                                                       \
             (CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,                   \
              const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,            \
              CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill))                         \
    REQUIRED(cuLaunchKernelEx, 11060, CUresult, (const CUlaunchConfig *, CUfunction, void **, void **))     \
    REQUIRED(cuTensorMapReplaceAddress, 12000, CUresult, (CUtensorMap *, void *))                           \
    OPTIONAL(cuFuncLoad, 12040, CUresult, (CUfunction))                                                     \
    OPTIONAL(cuStreamBeginCapture, 10010, CUresult, (CUstream, CUstreamCaptureMode))                        \
    OPTIONAL(cuStreamEndCapture, 10000, CUresult, (CUstream, CUgraph *))                                    \
    OPTIONAL(cuGraphInstantiateWithFlags, 11040, CUresult, (CUgraphExec *, CUgraph, unsigned long long))    \
    OPTIONAL(cuGraphLaunch, 10000, CUresult, (CUgraphExec, CUstream))                                       \
    OPTIONAL(cuGraphExecDestroy, 10000, CUresult, (CUgraphExec))                                            \
    OPTIONAL(cuGraphDestroy, 10000, CUresult, (CUgraph))

/* Devices that the library works with; ordinals from 0. */
#define GJ_DEVICES_MAX 64

struct gj_driver {
    void *library;
    int version;                      /* cuDriverGetVersion, e.g. 13000 */
    atomic_int kinds[GJ_DEVICES_MAX]; /* of devices that gj_gpu_kind was asked about, else 0 */
#define MEMBER(name, cuda_version, result, parameters) result(CUDAAPI *name##_fn) parameters;
    GJ_DRIVER_FUNCTIONS(MEMBER, MEMBER)
#undef MEMBER
};

/* Fails with the CUresult's name, number and the driver's own sentence, and what was being done. */
enum gj_status gj_driver_fail(const struct gj_driver *driver, CUresult result, enum gj_stage stage,
                              gj_error **error, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
