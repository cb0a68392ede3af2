/* SPDX-License-Identifier: Apache-2.0 */
/* How configs rank for a problem and its extents. */
#ifndef GJ_PLAN_CHOOSE_H
#define GJ_PLAN_CHOOSE_H

#include <gemmjit/launch.h>

/* The configs that a choice for a problem is made of, for who chooses for many extents: listing them takes
 * longer than choosing. They are those of a menu; all that are enumerated where a problem takes none of it.
 */
#define GJ_MENU_MAX 24
#define GJ_CANDIDATES_MAX 1024
struct gj_candidates {
    size_t count; /* 0: the problem is refused */
    int num_sms;
    struct gj_key keys[GJ_CANDIDATES_MAX];
};
void gj_candidates_list(const struct gj_key *problem, int num_sms, struct gj_candidates *candidates);
/* The one that gj_key_choose takes where gj_few_rows_choose has none; there is at least one. */
const struct gj_key *gj_candidates_choose(const struct gj_candidates *candidates, int64_t m, int64_t n,
                                          int64_t k, int64_t batch);
/* Why a problem has none: as gj_key_choose fails. */
enum gj_status gj_candidates_fail(const struct gj_key *problem, gj_error **error);

/* Microseconds that a launch takes by the model, which knows pingpong and cooperative configs; num_sms 0:
 * 132. */
double gj_key_us(const struct gj_key *key, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms);

/* All configs that gj_key_choose considers, the one that it takes first, and those of gj_few_rows_list.
 * Writes at most capacity keys and returns how many there are; 0: the problem is refused. */
size_t gj_keys_rank(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms,
                    struct gj_key *keys, size_t capacity);

#endif
