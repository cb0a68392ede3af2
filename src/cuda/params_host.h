/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of kernels, as the host fills them: those of sched=single go on where those of the others
 * end, so that one struct serves all. */
#ifndef GJ_CUDA_PARAMS_HOST_H
#define GJ_CUDA_PARAMS_HOST_H

#define SINGLE 1
#include "templates/fused_params.h"
#include "templates/params.h"

#endif
