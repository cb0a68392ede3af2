/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling many keys at once. */
#ifndef GJ_TESTS_GPU_KERNELS_H
#define GJ_TESTS_GPU_KERNELS_H

#include "rig.h"

/* Gets and prepares the kernels of keys in `jobs` threads, at most 64. One that fails is told to stderr and
 * becomes NULL; returns how many did. */
size_t kernels_get(struct rig *rig, const struct gj_key *keys, gj_kernel **kernels, size_t count, int jobs);

#endif
