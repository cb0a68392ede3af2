/* SPDX-License-Identifier: Apache-2.0 */
/* How configs rank for a problem and its extents. */
#ifndef GJ_PLAN_CHOOSE_H
#define GJ_PLAN_CHOOSE_H

#include <gemmjit/launch.h>

/* All configs that gj_key_choose considers, the one that it takes first. Writes at most capacity keys and
 * returns how many there are; 0: the problem is refused. */
size_t gj_keys_rank(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms,
                    struct gj_key *keys, size_t capacity);

#endif
