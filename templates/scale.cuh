// SPDX-License-Identifier: Apache-2.0
// alpha and beta: D = alpha A B^T + beta C with the meaning that BLAS gives to zeros: alpha = 0 ignores the product and
// beta = 0 ignores C, whatever they hold. Neither costs anything per element. With alpha = 0 the loads go outside A and
// B, which reads as zeros; with beta = 0 the slabs of C are zeros that nobody loads, and -0 * 0 + x is x.
#pragma once

#include "ptx_snippets/convert.cuh.in"
#include "templates/params.h"

struct scalars {
    float alpha, beta;
};

// Reads what the key does not fix.
DEVICE struct scalars scalars_of(const struct gemm_params *params)
{
    struct scalars s = {1, 1};
#if ALPHA_DEVICE
    s.alpha = *params->alpha_pointer;
#elif ALPHA_HOST
    s.alpha = params->alpha;
#endif
#if BETA_DEVICE
    s.beta = *params->beta_pointer;
#elif BETA_HOST
    s.beta = params->beta;
#endif
    return s;
}

DEVICE fragment scaled_fragment(const fragment &f, float by)
{
    return {by * f.v0, by * f.v1, by * f.v2, by * f.v3, by * f.v4, by * f.v5, by * f.v6, by * f.v7};
}

// f + beta c.
DEVICE fragment fragment_plus(const fragment &f, const fragment &c, float beta)
{
    return {__fmaf_rn(beta, c.v0, f.v0), __fmaf_rn(beta, c.v1, f.v1), __fmaf_rn(beta, c.v2, f.v2),
            __fmaf_rn(beta, c.v3, f.v3), __fmaf_rn(beta, c.v4, f.v4), __fmaf_rn(beta, c.v5, f.v5),
            __fmaf_rn(beta, c.v6, f.v6), __fmaf_rn(beta, c.v7, f.v7)};
}
