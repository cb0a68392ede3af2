/* SPDX-License-Identifier: Apache-2.0 */
/* Configs of sched=single for few rows of A, as in decoding: what a launch takes is the time that B streams
 * in. */
#ifndef GJ_PLAN_FEW_ROWS_H
#define GJ_PLAN_FEW_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gemmjit/key.h>

/* Rows of A up to which these configs are taken. */
#define GJ_FEW_ROWS_MAX 64

/* The problem with the config for m rows on num_sms SMs; at most seven for all m of one (n, k). Pure.
 * Returns false, and leaves *key alone: there are too many rows, an extent is past 2^31 - 1, or sched=single
 * has no kernel for the problem. */
bool gj_few_rows_choose(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                        int num_sms, struct gj_key *key);

/* Configs that are worth measuring, that of gj_few_rows_choose first. Writes at most capacity keys and
 * returns how many there are; 0 where that one returns false. */
#define GJ_FEW_ROWS_CANDIDATES 24
size_t gj_few_rows_list(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                        int num_sms, struct gj_key *keys, size_t capacity);

#endif
