/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time parameters of a GEMM kernel. The host includes this very file, so both sides agree. */
#pragma once

/* Division by a value known at launch: n / divisor = n * multiplier >> shift for 0 <= n < 2^31. */
struct fast_divisor {
    unsigned int divisor, multiplier, shift;
};

/* The order in which clusters take cluster tiles: per batch, groups of `group` tiles along the fast direction,
 * serpentine along the slow one. */
struct tile_schedule {
    unsigned int num_tiles;               /* cluster tiles over all batches */
    struct fast_divisor tiles_per_batch;
    struct fast_divisor tiles_per_group;  /* in a full group */
    struct fast_divisor group, tail;      /* width of a full group and of the last, narrower one (or 1) */
    unsigned int full_groups;
    unsigned int slow_extent;
    unsigned int along_m;                 /* non-zero: the fast direction is M */
};

struct gemm_params {
    int m, n;
    int k_tiles; /* stages per tile, at least 1 */
    int k_start; /* of the first stage; not 0 only where K is 0: then it lies outside A and B, which reads as zeros */
    int a_batch_step, b_batch_step, c_batch_step; /* 0 when all batches share one matrix, else 1 */
    int d_cut; /* non-zero: D's contiguous extent does not end on 16 bytes, so TMA may not store its end */
    float alpha, beta;
    const float *alpha_pointer, *beta_pointer; /* instead of alpha and beta, where the key says device */
    const int *batch_order;                    /* batch to process as n-th; 0: in order */
    unsigned int *tile_counter;                /* 0 before and after the launch; dynamic tiles only */
    long long d_ld, d_batch_stride; /* elements */
    void *d;
    struct tile_schedule schedule;
#if SINGLE
    unsigned int overlap;          /* bits of enum gemm_overlap */
    unsigned int a_bytes, b_bytes; /* of A and B that arrive for a stage */
#endif
};
#if SINGLE

/* How a launch overlaps the one in front of it and the one behind it (programmatic dependent launch). */
enum gemm_overlap {
    overlap_early = 1,      /* the next launch may start as soon as all CTAs of this one have */
    overlap_b_constant = 2, /* B is loaded before the launch in front has ended */
    overlap_b_once = 4      /* each element of B is read by one CTA: L2 need not keep it */
};
#endif
