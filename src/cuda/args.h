/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of one launch's arguments. Pure; runs before anything of CUDA is touched. */
#ifndef GJ_CUDA_ARGS_H
#define GJ_CUDA_ARGS_H

#include <gemmjit/launch.h>

#include "plan/plan.h"

/* Largest extent: coordinates of a whole cluster tile past it still fit the 32 bits that TMA takes. */
#define GJ_EXTENT_MAX (INT32_MAX - 4096)

/* Returns GJ_OK, or GJ_ERR_ARGUMENT with operand, value and rule. Empty problems (an extent of 0) need no
 * valid pointers. */
enum gj_status gj_args_check(const struct gj_plan *plan, const struct gj_gemm_args *args, gj_error **error);

#endif
