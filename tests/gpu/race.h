/* SPDX-License-Identifier: Apache-2.0 */
/* Times several arms interleaved in one run: each round runs all of them in random order, each as a train of
 * back-to-back launches of about 3 ms; ratios are paired by round. */
#ifndef GJ_TESTS_GPU_RACE_H
#define GJ_TESTS_GPU_RACE_H

#include "rig.h"

#define ARMS_MAX 96
#define ROUNDS_MAX 64
#define ROTATE_BYTES 200e6 /* of operands that take turns, so that L2 is cold */
#define SETS_MAX 16

struct race {
    struct rig *rig;
    void (*run)(void *user, int arm, int set); /* one launch of an arm on one set of operands */
    void *user;
    int num_arms, num_sets, rounds;
    double seconds; /* for all rounds together; there are at least 11 */
    float us[ARMS_MAX][ROUNDS_MAX];
};

/* Sets of operands of so many bytes each that rotate. */
int race_sets(double bytes);
/* Fills rounds and us. flop: of one launch, for the length of a train. */
void race_run(struct race *race, double flop);
float race_us(const struct race *race, int arm, double quantile);
/* Ratio of `base` to `arm`, above 1 when the arm is faster. */
float race_ratio(const struct race *race, int base, int arm, double quantile);

/* ||x - y|| / ||y|| of two packed arrays. */
double race_distance(struct rig *rig, void *x, void *y, uint64_t count, enum gj_dtype dtype,
                     const char *what);

#endif
