/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: every number that follows from a key. Pure arithmetic, defined for any key that parses; whether
 * a kernel is generated for it is gj_key_check's question.
 *
 * A CTA is one load warp group and 1 to 3 MMA warp groups of 128 threads. The load warp group's first warp
 * fills a ring of `stages` A/B tiles by TMA; the MMA warp groups run wgmma on them and store D through a
 * staging area, one slab of 64 rows x slab_n columns at a time. */
#ifndef GJ_PLAN_PLAN_H
#define GJ_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include <gemmjit/key.h>

#include "base/strbuf.h"

/* Hopper limits (compute capability 9.0). */
#define GJ_SMEM_CTA_MAX 232448 /* opt-in dynamic shared memory of a CTA: 227 KiB */
#define GJ_SMEM_HALF \
    115712 /* of each of two CTAs on an SM: 228 KiB hold both and 1 KiB of the driver's for each */
#define GJ_SMEM_BARRIER_BYTES 1024 /* reserved for barriers; keeps every tile 1024-byte aligned */
#define GJ_WARP_GROUP 128          /* threads of a warp group */
#define GJ_STAGE_ROW_BYTES 128     /* one tile row of a stage: the 128-byte swizzle atom */
#define GJ_TMA_BOX_MAX 256         /* elements of a TMA box along one dimension */
#define GJ_MMA_M 64                /* rows of one wgmma */
#define GJ_MMA_N_MAX 256           /* columns of one wgmma */
#define GJ_MMA_PER_ATOM 4          /* wgmma along K in 128 bytes: 4 x 32 */

/* How sums of 8-bit products are kept exact to f32. */
enum gj_promotion {
    GJ_PROMOTION_NONE,
    GJ_PROMOTION_SIMPLE,      /* each stage is summed from zero, waited for and added */
    GJ_PROMOTION_ALTERNATING, /* two sets of accumulators take turns, so that nothing waits */
};

struct gj_plan {
    struct gj_key key;
    struct gj_key
        kernel; /* the key of the kernel that runs: with swap_ab, A and B and M and N change places */
    char entry_name[256];

    int mma_warp_groups;  /* in the CTA */
    int split_m, split_n; /* warp groups that share a tile, along its rows and columns */
    int threads;
    int load_registers, mma_registers; /* per thread, by setmaxnreg */
    int acc_registers;                 /* per MMA thread: accumulators, and sums where they are promoted */
    enum gj_promotion promotion;
    int m_blocks;     /* wgmma along the rows of one warp group's part */
    int mma_n, mma_k; /* columns and depth of one wgmma, elements */

    int atoms;               /* pieces of 128 bytes along K in a stage, one behind the other */
    int tile_k;              /* elements of K per stage */
    int split_k;             /* CTAs that share a tile's K; 1: no split */
    int cluster_size;        /* CTAs of a cluster: those that share A or B tiles, or a tile's K */
    int stages, stage_bytes; /* the A/B ring */
    int a_stage_bytes, b_stage_bytes;
    /* TMA boxes that one CTA loads of its A and B tile; the cluster multicasts the rest. k-major: box_rows
     * rows of 128 bytes each; m- or n-major: 64 elements x box_rows lines along K. */
    int a_boxes, b_boxes, box_a_rows, box_b_rows;

    int epi_m, epi_n;                    /* epilogue tile, the unit in which staging memory is counted */
    int epi_stages, epi_c_stages;        /* number of those for D and PostAct and for C */
    int staging_bytes;                   /* epi_stages of D and PostAct */
    int c_bytes;                         /* epi_c_stages of C */
    int c_element, d_element, p_element; /* bytes; 0: absent. op=dgated: of a (gate, up) pair of C and D */
    int slab_n; /* what one step of the epilogue handles: 64 rows x slab_n columns of A B^T */
    int tail_n; /* columns of the last, narrower slab of a tile's width; 0: none */
    int slab_bytes, slab_buffers; /* of D and PostAct; buffers per MMA warp group */
    int p_offset;                 /* of PostAct in a slab: the bytes of D */
    int p_shrink;                 /* columns of A B^T per column of PostAct: 2 for op=gated, else 1 */
    int parts; /* of a slab of C and D, one behind the other: 2 with gate=halves, of gates and of ups, else 1
                */
    int c_slab_bytes, c_buffers; /* of C */
    /* contiguous bytes of a slab, or of one of its parts: a row if n-major, a column (or half) if m-major */
    int d_line_bytes, p_line_bytes, c_line_bytes;

    int full_arrivals, empty_arrivals; /* per phase of a stage's barriers */
    int queue_empty_arrivals; /* per phase of a ticket's barrier: readers in the cluster; dynamic tiles only
                               */

    int sums_bytes; /* in a split's first CTA: the accumulators of the others */
    int smem_a, smem_b, smem_staging, smem_c, smem_sums, smem_barriers; /* offsets */
    int barrier_bytes;                                                  /* of GJ_SMEM_BARRIER_BYTES */
    int smem_bytes;
};

#define GJ_QUEUE_SLOTS 2 /* tickets on their way in a cluster; dynamic tiles only */

/* Fills *plan from a key. Total: any key whose enums are in range gives numbers, fit or not. */
void gj_plan_make(const struct gj_key *key, struct gj_plan *plan);

/* The same without the entry name, for those who compare many keys: allocates nothing. */
void gj_plan_make_numbers(const struct gj_key *key, struct gj_plan *plan);

/* MMA warp groups of a CTA; of a key as the kernel sees it, see struct gj_plan. */
int gj_key_mma_warp_groups(const struct gj_key *kernel);

/* Whether anything is fused behind alpha A B^T + beta C: then the kernel takes struct fused_params. */
bool gj_plan_is_fused(const struct gj_plan *plan);

/* Whether the kernel takes a (gate, up) pair of C and D as one element: op=dgated, interleaved. */
bool gj_plan_has_pairs(const struct gj_plan *plan);

/* Whether a tile of B is made of rows of gates and the rows of the same ups: op=gated with gate=halves. */
bool gj_plan_has_b_halves(const struct gj_plan *plan);

/* The plan as a table, one "name  value" line per number. */
void gj_plan_format(const struct gj_plan *plan, struct gj_strbuf *text);

/* Shared memory that a CTA of this plan may have. */
int gj_plan_smem_max(const struct gj_plan *plan);

/* Bytes that `stages` stages take together with the least staging: what must fit GJ_SMEM_CTA_MAX. */
int gj_plan_smem_for_stages(const struct gj_plan *plan, int stages);

#endif
