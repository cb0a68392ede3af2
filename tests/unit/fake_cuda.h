/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda's state, which a test sets and reads: one struct, found by dlsym under FAKE_CUDA_STATE. */
#ifndef GJ_TESTS_FAKE_CUDA_H
#define GJ_TESTS_FAKE_CUDA_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "templates/params.h"

#define FAKE_CUDA_STATE "fake_cuda_state"

enum { FAKE_DEVICES = 80, FAKE_CALLS = 1024, FAKE_LAUNCHES = 64, FAKE_MEMSETS = 64, FAKE_ATTRIBUTES = 8 };

/* What the fake writes into a CUtensorMap: the arguments it was made of. */
struct fake_map {
    void *address;
    cuuint64_t extents[3], strides[2];
    cuuint32_t rank, box[3], steps[3];
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
    struct fake_map maps[4];
    struct gemm_params params;
};

struct fake_memset {
    CUdeviceptr target;
    size_t pitch, width, height; /* pitch 0: one row */
    int value;
    CUstream stream;
};

struct fake_cuda {
    /* Set by the test. */
    int driver_version, num_devices, major, minor, num_sms, max_clusters;
    const char *missing; /* the entry point that cuGetProcAddress does not have */
    const char *fails;   /* the function that fails with fail_result ... */
    int fails_from;      /* ... from this call of it on, the first one being 0 */
    int fails_to;        /* ... up to before this one; 0: for ever */
    CUresult fail_result;
    bool captures; /* some stream captures: loading and allocating are counted as illegal */
    atomic_int current;   /* device whose primary context the test made current; -1: none */

    /* Written by the fake. */
    pthread_mutex_t lock;
    pid_t pid; /* that called cuInit */
    int num_calls, num_illegal;
    const char *calls[FAKE_CALLS];
    int retained[FAKE_DEVICES];   /* by cuDevicePrimaryCtxRetain */
    int num_libraries;            /* loaded and not unloaded */
    const void *image;            /* given to cuLibraryLoadData last */
    char kernel_name[256];        /* given to cuLibraryGetKernel last */
    int smem_limit[FAKE_DEVICES]; /* by cuKernelSetAttribute */
    CUlaunchConfig occupancy_config;
    unsigned occupancy_cluster;
    int num_launches, num_memsets;
    struct fake_launch launches[FAKE_LAUNCHES];
    struct fake_memset memsets[FAKE_MEMSETS];
};

#endif
