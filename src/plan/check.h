/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys this version generates a kernel for. */
#ifndef GJ_PLAN_CHECK_H
#define GJ_PLAN_CHECK_H

#include <stdbool.h>

#include "plan/plan.h"

/* True when the key is accepted; needs no allocation, unlike gj_key_check with its sentences. */
bool gj_plan_accepts(const struct gj_plan *plan);

#endif
