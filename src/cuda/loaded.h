/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded cubin, as src/cuda's own files see it. */
#ifndef GJ_CUDA_LOADED_H
#define GJ_CUDA_LOADED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cuda/driver.h"

#define GJ_DEVICES_MAX 64

/* What is known of a kernel on one device; max_clusters is written before ready is set. */
struct gj_on_device {
    atomic_bool ready;
    int max_clusters; /* clusters that fit at once */
    bool retained;    /* this kernel holds the device's primary context */
};

struct gj_loaded {
    const struct gj_driver *driver;
    CUlibrary library;
    CUkernel kernel;
    int threads, smem_bytes, cluster_size;
    pthread_mutex_t lock; /* of preparing */
    struct gj_on_device devices[GJ_DEVICES_MAX];
};

/* Fills a launch config of `clusters` clusters; attribute holds one entry and must live as long. */
void gj_loaded_config(const struct gj_loaded *loaded, int clusters, CUstream stream,
                      CUlaunchAttribute *attribute, CUlaunchConfig *config);

#endif
