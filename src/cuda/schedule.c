/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the tile scheduler. */
#include "cuda/schedule.h"

struct fast_divisor gj_fast_divisor_make(uint32_t divisor)
{
    /* multiplier = ceil(2^p / divisor) with p = 31 + ceil(log2 divisor) fits 32 bits and divides exactly. */
    uint32_t log = 0;
    while ((UINT64_C(1) << log) < divisor)
        log++;
    const uint32_t shift = 31 + log;
    const uint64_t power = UINT64_C(1) << shift;
    return (struct fast_divisor){divisor, (uint32_t)((power + divisor - 1) / divisor), shift};
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

bool gj_schedule_make(int64_t cluster_tiles_m, int64_t cluster_tiles_n, int64_t batches,
                      enum gj_raster raster, int group_size, struct tile_schedule *schedule)
{
    int64_t per_batch, total;
    if (__builtin_mul_overflow(cluster_tiles_m, cluster_tiles_n, &per_batch) ||
        __builtin_mul_overflow(per_batch, batches, &total) || total > INT32_MAX)
        return false;
    /* Heuristic: the direction that wastes fewer places of the last group is the fast one. */
    const bool along_m = raster == GJ_RASTER_ALONG_M ||
                         (raster == GJ_RASTER_HEURISTIC &&
                          round_up(cluster_tiles_n, group_size) > round_up(cluster_tiles_m, group_size));
    const uint32_t fast = (uint32_t)(along_m ? cluster_tiles_m : cluster_tiles_n);
    const uint32_t slow = (uint32_t)(along_m ? cluster_tiles_n : cluster_tiles_m);
    const uint32_t group = (uint32_t)group_size < fast ? (uint32_t)group_size : fast;
    const uint32_t tail = fast % group;
    *schedule = (struct tile_schedule){
        .num_tiles = (uint32_t)total,
        .tiles_per_batch = gj_fast_divisor_make((uint32_t)per_batch),
        .tiles_per_group = gj_fast_divisor_make(group * slow),
        .group = gj_fast_divisor_make(group),
        .tail = gj_fast_divisor_make(tail ? tail : 1),
        .full_groups = fast / group,
        .slow_extent = slow,
        .along_m = along_m,
    };
    return true;
}
