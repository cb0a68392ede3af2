/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch takes, by a model of waves of tiles. */
#ifndef GJ_PLAN_COST_MODEL_H
#define GJ_PLAN_COST_MODEL_H

#include <stdint.h>

#include <gemmjit/key.h>

/* Fitted by tests/bench/fit_model to h200_bf16*.json of tests/bench/measured. Clocks are those of an SM. */
struct gj_cost_constants {
    double clocks_per_us;
    double load_bytes;      /* that an SM gets from L2 in a clock */
    double coop_tile;       /* clocks of a cooperative tile's epilogue, which nothing overlaps ... */
    double coop_block;      /* ... and of it for 16384 elements of a warp group */
    double pingpong_tile;   /* clocks of a pingpong tile that the other group's main loop does not hide */
    double pingpong_ragged; /* more of them where the columns are not a multiple of 64 */
    double pingpong_64;     /* more of them for 64 rows */
    double coop_launch;     /* clocks of a launch: start, first loads, last stores */
    double pingpong_launch;
    double last_wave; /* what a wave that is not full takes, from 0, as long as a full one, to 1, its share */
    double hidden;    /* of compute and arrival the shorter one, from 0, all, to 1, nothing */
    double cold_bytes;   /* of A and B that arrive in a us where they are asked for first */
    double memory_bytes; /* of A, B and D that move in a us at most */
};
extern const struct gj_cost_constants gj_cost_h200;

/* Microseconds of a launch; num_sms at least 1. Total and pure. */
double gj_cost_us(const struct gj_cost_constants *constants, const struct gj_key *key, int64_t m, int64_t n,
                  int64_t k, int64_t batch, int num_sms);

#endif
