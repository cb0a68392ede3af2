/* SPDX-License-Identifier: Apache-2.0 */
/* What one launch hands to the driver, made of checked arguments; a prepared launch keeps it. */
#ifndef GJ_CUDA_WORK_H
#define GJ_CUDA_WORK_H

#include "cuda/loaded.h"
#include "cuda/params_host.h"
#include "cuda/tensor_maps.h"

struct gj_work {
    struct gj_tensor_maps maps;
    struct gemm_params params;
    struct fused_params fused;
    int clusters;  /* of the grid */
    bool overlaps; /* the launch in front of it in the stream */
    bool reads_a_b, reads_c;
    struct gj_pointers at; /* of the matrices in the maps, as the caller names them */
};

/* Whether C has tensor maps. */
bool gj_work_reads_c(const struct gj_plan *plan, const struct gj_gemm_args *args);

/* The arguments as the kernel sees them: with swap_ab A and B, and M and N, change places. */
struct gj_gemm_args gj_kernel_args(const struct gj_plan *plan, const struct gj_gemm_args *args);

/* Makes the work of checked arguments, on a device that the kernel is prepared for.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: too many tiles; GJ_ERR_DRIVER. */
enum gj_status gj_work_make(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                            const struct gj_gemm_args *args, struct gj_work *work, gj_error **error);

/* Gives it other matrices of the same extents and strides; those that the kernel does not have are ignored.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: an address breaks a rule; GJ_ERR_DRIVER. */
enum gj_status gj_work_point(const struct gj_driver *driver, const struct gj_plan *plan, struct gj_work *work,
                             const struct gj_pointers *to, gj_error **error);

/* Launches it, with a tile counter of the library's own where one is needed and none is given. */
enum gj_status gj_work_launch(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                              struct gj_work *work, CUstream stream, gj_error **error);

#endif
