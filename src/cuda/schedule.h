/* SPDX-License-Identifier: Apache-2.0 */
/* The host's half of the tile scheduler: from extents to the parameters that templates/tile_scheduler.h
 * reads. Pure arithmetic, the formulas of quack 0.2.0's dense scheduler. */
#ifndef GJ_CUDA_SCHEDULE_H
#define GJ_CUDA_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include <gemmjit/launch.h>

#include "cuda/params_host.h"

/* divisor from 1 to 2^31 - 1; exact for 0 <= n < 2^31. */
struct fast_divisor gj_fast_divisor_make(uint32_t divisor);

/* Cluster tiles along M and N (each at least 1), batches (at least 1), raster order, tiles per raster group
 * (at least 1). Returns false when the cluster tiles are 2^31 or more. */
bool gj_schedule_make(int64_t cluster_tiles_m, int64_t cluster_tiles_n, int64_t batches,
                      enum gj_raster raster, int group_size, struct tile_schedule *schedule);

#endif
