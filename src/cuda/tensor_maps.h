/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps of a launch. */
#ifndef GJ_CUDA_TENSOR_MAPS_H
#define GJ_CUDA_TENSOR_MAPS_H

#include "cuda/driver.h"

/* Those of absent operands stay unset. */
struct gj_tensor_maps {
    CUtensorMap a, b, d, d_tail, c, c_tail, p, p_tail;
};

/* Encodes the maps of checked arguments as the kernel sees them (plan->kernel).
 * Returns GJ_OK; GJ_ERR_DRIVER: the driver refuses a map (the message has operand, extents and stride). */
enum gj_status gj_tensor_maps_encode(const struct gj_driver *driver, const struct gj_plan *plan,
                                     const struct gj_gemm_args *args, struct gj_tensor_maps *maps,
                                     gj_error **error);

/* Rows of a TMA box of A or B whose extent along M or N is this. */
int gj_input_box_rows(const struct gj_plan *plan, bool is_a, int64_t extent);

#endif
