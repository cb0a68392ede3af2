// SPDX-License-Identifier: Apache-2.0
// The stages of a tile along K.
#pragma once

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
#if SCALED
    if (scalars_of(params).alpha == 0) {
        k.start += k.tiles * TILE_K;
        k.tiles = 1;
    }
#endif
    return k;
}
