/* SPDX-License-Identifier: Apache-2.0 */
/* One shape with operands, vectors and outputs of every fused epilogue, and the exact comparison of what a
 * key makes of it. */
#ifndef GJ_TESTS_GPU_FUSED_H
#define GJ_TESTS_GPU_FUSED_H

#include "problem.h"

/* Kernels of epilogues.cu. */
struct fused_kernels {
    CUlibrary library;
    CUkernel fill_scales, compare_output, compare_amax;
};

struct fused {
    struct problem base;
    struct layout wide_c[DTYPES][2]; /* PreAct of op=dgated, (M, 2 N), as base.c */
    struct layout bias_row[DTYPES], bias_col[DTYPES];
    struct layout scale_a, scale_b;
    void *d, *p;    /* room for the outputs and poison around them */
    float *factors; /* of quant */
    uint32_t *amax; /* the kernel's and the expected one */
};

void fused_open(struct rig *rig, const char *path, struct fused_kernels *kernels);
void fused_close(struct rig *rig, struct fused_kernels *kernels);

void fused_make(struct rig *rig, const struct fused_kernels *kernels, const struct shape *shape,
                struct fused *fused);
void fused_free(struct rig *rig, struct fused *fused);

/* Whether a key can run on the shape: a gated operation needs an even N. */
bool fused_fits(const struct gj_key *key, const struct shape *shape);

/* Poison, and C where it is D, where the outputs go; and amax's first value. */
void fused_prepare(struct rig *rig, const struct fused *fused, const struct gj_key *key, int variant);
/* Launches; variant chooses as for problem_launch, and the vectors' batch strides and quant's factor. */
enum gj_status fused_launch(struct rig *rig, const struct fused *fused, const struct gj_key *key,
                            gj_kernel *kernel, int variant, int times, gj_error **error);
/* Adds the number of wrong elements of D, PostAct and amax to *wrong (device memory). */
void fused_compare(struct rig *rig, const struct fused_kernels *kernels, const struct fused *fused,
                   const struct gj_key *key, int variant, unsigned *wrong);

/* Columns of D and of PostAct. */
int fused_d_columns(const struct gj_key *key, int n);
int fused_p_columns(const struct gj_key *key, int n);

#endif
