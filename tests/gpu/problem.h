/* SPDX-License-Identifier: Apache-2.0 */
/* One shape with operands in every type and layout, and the exact comparison of what a key makes of it. */
#ifndef GJ_TESTS_GPU_PROBLEM_H
#define GJ_TESTS_GPU_PROBLEM_H

#include <stdbool.h>

#include "rig.h"

struct shape {
    int m, n, k, batch;
    bool shared_b; /* one B for all batches */
};

/* A matrix in device memory; the padding around its rows is poison (NaN in every type). */
struct layout {
    void *data;
    int64_t ld, batch_stride; /* elements */
};

/* A (batch, rows, columns) matrix of the small integers of fill_matrix, rows contiguous or (other) columns
 * contiguous. */
struct layout layout_make(struct rig *rig, int batch, int rows, int columns, enum gj_dtype dtype, bool other,
                          uint32_t seed);

#define PAD 16 /* elements of poison around a row of D; keeps rows 16-byte aligned in every type */

/* Where an output lies in its buffer: a slice with poison before, between and behind its rows. */
struct place {
    int64_t ld, batch_stride, first, count; /* elements; count: of the buffer that is compared */
};

struct place place_make(const struct shape *shape, int columns, bool n_major);

#define PROBLEM_SEED_C 37u
#define DTYPES 6 /* enum gj_dtype */

struct problem {
    struct shape shape;
    struct layout a[DTYPES][2], b[DTYPES][2],
        c[DTYPES][2]; /* by type, then 0: usual major (k, k, n), 1: the other */
    void *nan;        /* poison, as large as any operand */
    float *product;   /* (batch, m, n) packed */
    void *d;          /* room for D and poison around it */
    size_t d_bytes;
    float *scalars; /* pairs of alpha and beta */
    int32_t *order; /* a permutation of the batches */
};

void problem_make(struct rig *rig, const struct shape *shape, struct problem *problem);
void problem_free(struct rig *rig, struct problem *problem);

/* Launches a kernel; variant chooses among raster orders, SM limits, scalars, in-place C and batch orders. D
 * and everything around it is prepared first. problem_compare with the same key and variant then adds the
 * number of wrong elements to *wrong (device memory). */
void problem_launch(struct rig *rig, const struct problem *problem, const struct gj_key *key,
                    gj_kernel *kernel, int variant);
void problem_relaunch(struct rig *rig, const struct problem *problem, const struct gj_key *key,
                      gj_kernel *kernel, int variant, int times);
void problem_compare(struct rig *rig, const struct problem *problem, const struct gj_key *key, int variant,
                     unsigned *wrong);

/* The alpha and beta that a variant passes, and what a key makes of them. */
const float *problem_pair(const struct gj_key *key, int variant, float effective[2]);

/* Puts the scalars of variant `from` where launches with `variant` look for them. */
void problem_set_scalars(struct rig *rig, const struct problem *problem, int variant, int from);

/* Puts poison (and C, where it is D) where D goes. */
void problem_prepare(struct rig *rig, const struct problem *problem, const struct gj_key *key, int variant);

#endif
