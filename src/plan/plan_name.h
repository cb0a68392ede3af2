/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a kernel. */
#ifndef GJ_PLAN_PLAN_NAME_H
#define GJ_PLAN_PLAN_NAME_H

#include <stddef.h>

#include <gemmjit/key.h>

/* Writes the name of the __global__ function of a key. It spells the key, so that a profiler line explains
 * itself; what has its usual value is left out. */
void gj_plan_name(const struct gj_key *key, char *name, size_t capacity);

#endif
