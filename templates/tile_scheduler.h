/* SPDX-License-Identifier: Apache-2.0 */
/* Tile scheduler: from a work index to a cluster tile. Pure arithmetic; also compiled as host C by the tests. */
#pragma once

#include "templates/params.h"

/* A cluster tile: indices along M and N in cluster tiles, and the batch. */
struct tile_index {
    u32 m, n, batch;
};

DEVICE u32 fast_divide(u32 n, struct fast_divisor by)
{
    return (u32)(((u64)n * by.multiplier) >> by.shift);
}

/* Work index 0 .. num_tiles - 1 to tile: a bijection. */
DEVICE struct tile_index tile_at(const struct tile_schedule *schedule, u32 work)
{
    const u32 batch = fast_divide(work, schedule->tiles_per_batch);
    const u32 in_batch = work - batch * schedule->tiles_per_batch.divisor;
    const u32 group = fast_divide(in_batch, schedule->tiles_per_group);
    const u32 in_group = in_batch - group * schedule->tiles_per_group.divisor;
    const struct fast_divisor width = group < schedule->full_groups ? schedule->group : schedule->tail;
    const u32 line = fast_divide(in_group, width);
    const u32 fast = group * schedule->group.divisor + (in_group - line * width.divisor);
    const u32 slow = (group & 1) ? schedule->slow_extent - 1 - line : line; /* serpentine: odd groups walk back */
    struct tile_index tile;
    tile.m = schedule->along_m ? fast : slow;
    tile.n = schedule->along_m ? slow : fast;
    tile.batch = batch;
    return tile;
}
