// SPDX-License-Identifier: Apache-2.0
// The stages of a tile along K.
#pragma once

#if SPLIT_K > 1
#include "ptx_snippets/sync.cuh"
#endif
#include "templates/params.h"
#if SCALED
#include "templates/scale.cuh"
#endif

struct k_range {
    int tiles, start; // stages, and where the first one starts in K
};

// With alpha = 0 one stage outside A and B, which reads as zeros.
DEVICE struct k_range k_range_of(const struct gemm_params *params)
{
    struct k_range k = {params->k_tiles, params->k_start};
#if SPLIT_K > 1
    const u32 rank = cluster_rank(); // the host sees to it that k.tiles is at least SPLIT_K
    const int first = k.tiles * rank / SPLIT_K, end = k.tiles * (rank + 1) / SPLIT_K;
    k.start += first * TILE_K;
    k.tiles = end - first;
#endif
#if SCALED
    if (scalars_of(params).alpha == 0) {
#if SPLIT_K > 1
        k.start = params->k_start + params->k_tiles * TILE_K;
#else
        k.start += k.tiles * TILE_K;
#endif
        k.tiles = 1;
    }
#endif
    return k;
}
