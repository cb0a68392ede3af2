/* SPDX-License-Identifier: Apache-2.0 */
/* A loaded cubin, as src/cuda's own files see it. */
#ifndef GJ_CUDA_LOADED_H
#define GJ_CUDA_LOADED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "cuda/driver.h"

/* Words for tile counters per kernel and device. The first half serves launches in turn: more than that many
 * of one kernel cannot be under way at once (a stream holds 1024). The second half serves captured launches,
 * which keep theirs for as long as their graph may be replayed. */
#define GJ_COUNTERS 16384

/* What is known of a kernel on one device; max_clusters is written before ready is set. */
struct gj_on_device {
    atomic_bool ready;
    int max_clusters;            /* clusters that fit at once */
    struct gj_recent *recent;    /* see cuda/recent.h */
    CUcontext primary;           /* the device's primary context while this kernel holds it, else NULL */
    CUdeviceptr counters;        /* GJ_COUNTERS words that are 0 between launches; dynamic tiles only */
    atomic_uint eager, captured; /* counters handed out so far, of either half */
};

struct gj_loaded {
    const struct gj_driver *driver;
    CUlibrary library;
    CUkernel kernel;
    int threads, smem_bytes, cluster_size, ctas_per_sm;
    bool counts_tiles;
    pthread_mutex_t lock; /* of preparing */
    struct gj_on_device devices[GJ_DEVICES_MAX];
};

/* A launch config and what it points to. */
struct gj_config {
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config;
};
/* Fills it for `clusters` clusters; overlaps: they may start before the launch in front of them has ended. */
void gj_loaded_config(const struct gj_loaded *loaded, int clusters, CUstream stream, bool overlaps,
                      struct gj_config *config);

#endif
