/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda's state, which a test sets and reads: one struct, found by dlsym under FAKE_CUDA_STATE. */
#ifndef GJ_TESTS_FAKE_CUDA_H
#define GJ_TESTS_FAKE_CUDA_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cuda/params_host.h"

#define FAKE_CUDA_STATE "fake_cuda_state"

enum {
    FAKE_DEVICES = 80,
    FAKE_CALLS = 8192,
    FAKE_LAUNCHES = 64,
    FAKE_MEMSETS = 64,
    FAKE_ATTRIBUTES = 8,
    FAKE_KERNELS = 128
};

/* What the fake writes into a CUtensorMap: the arguments it was made of. */
struct fake_map {
    void *address;
    cuuint64_t extents[4], strides[3]; /* of dimensions that the map has; others are 0 */
    cuuint32_t rank, box[4], steps[4];
    int type, interleave, swizzle, promotion, fill;
};

struct fake_stream {
    int device; /* whose primary context it belongs to; -1: none, the call on it fails */
    bool captures;
};

struct fake_launch {
    CUlaunchConfig config; /* attrs points to the attributes below */
    CUlaunchAttribute attributes[FAKE_ATTRIBUTES];
    CUfunction function;
    int device;
    struct fake_map maps[8];
    struct fused_params fused; /* zeros unless the test says that the kernel has them */
    struct gemm_params params;
};

struct fake_cuda {
    /* Set by the test. */
    int driver_version, num_devices, major, minor, num_sms, max_clusters;
    int other_from;      /* devices from this one on have another name; 0: none has */
    int num_maps;        /* arguments of the kernel before its parameters */
    bool has_fused;      /* struct fused_params stands between them */
    const char *missing; /* the entry point that cuGetProcAddress does not have */
    const char *fails;   /* the function that fails with fail_result ... */
    int fails_from;      /* ... from this call of it on, the first one being 0 */
    int fails_to;        /* ... up to before this one; 0: for ever */
    CUresult fail_result;
    bool captures; /* some stream captures: loading and allocating are counted as illegal */
    int current;   /* device whose primary context the test made current; -1: none */

    /* Written by the fake. */
    pthread_mutex_t lock;
    pid_t pid; /* that called cuInit */
    int num_calls, num_illegal;
    const char *calls[FAKE_CALLS];
    int retained[FAKE_DEVICES];      /* by cuDevicePrimaryCtxRetain */
    int num_libraries;               /* loaded and not unloaded */
    int num_allocations;             /* by cuMemAlloc, not freed */
    const void *image;               /* given to cuLibraryLoadData last */
    char kernels[FAKE_KERNELS][256]; /* names given to cuLibraryGetKernel; a handle points to one */
    int smem_limit[FAKE_KERNELS][FAKE_DEVICES]; /* by cuKernelSetAttribute */
    CUlaunchConfig occupancy_config;
    unsigned occupancy_cluster;
    int num_launches;
    struct fake_launch launches[FAKE_LAUNCHES];
};

#endif
