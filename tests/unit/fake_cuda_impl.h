/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake libcuda share. */
#ifndef GJ_TESTS_FAKE_CUDA_IMPL_H
#define GJ_TESTS_FAKE_CUDA_IMPL_H

#include "fake_cuda.h"

extern struct fake_cuda fake_cuda_state;
#define STATE (&fake_cuda_state)

/* Numbers of the state, which threads share; fake_add returns the one before. */
int fake_add(int *number, int amount);
int fake_get(int *number);
void fake_set(int *number, int value);

/* Records a call and says how it must end. */
CUresult fake_enter(const char *name);
#define ENTER(name)                                 \
    do {                                            \
        const CUresult entered = fake_enter(#name); \
        if (entered != CUDA_SUCCESS)                \
            return entered;                         \
    } while (0)

/* -1: none. */
int fake_current_device(void);
int fake_device_of_stream(CUstream stream);

CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
                                void **jit_values, unsigned num_jit, CUlibraryOption *options, void **values,
                                unsigned num_options);
CUresult fake_cuLibraryUnload(CUlibrary library);
CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                   CUdevice device);
CUresult fake_cuFuncLoad(CUfunction function);
CUresult fake_cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config);
CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *extents, const cuuint64_t *strides,
                                     const cuuint32_t *box, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                               void **extra);
CUresult fake_cuTensorMapReplaceAddress(CUtensorMap *map, void *address);
CUresult fake_cuMemAlloc(CUdeviceptr *memory, size_t bytes);
CUresult fake_cuMemFree(CUdeviceptr memory);
CUresult fake_cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes);

#endif
