/* SPDX-License-Identifier: Apache-2.0 */
/* What gpu_epilogues runs on random data: functions in both directions, and cases. */
#ifndef GJ_TESTS_GPU_EPILOGUES_LIST_H
#define GJ_TESTS_GPU_EPILOGUES_LIST_H

#include <stdbool.h>

#include "rig.h"

#define EXACT 1e-30 /* a bound that only equality keeps */
#define VARIANTS_MAX 256

struct function {
    const char *name;
    bool gated;
    double forward, backward; /* bounds of the error */
};

struct variant {
    const char *id;
    const struct function *function; /* NULL: a case of quack's */
    struct gj_key key;
    bool none, moved; /* no accepted key; another config than wanted */
    int m, n, k, gap_a;
    double eps_d, eps_p;
};

struct variants {
    struct variant list[VARIANTS_MAX];
    int count;
    const char *filter; /* of key text; NULL: all */
};

/* Every function forward and backward, with the most exact formats that are accepted; extents are left 0. */
void variants_add_functions(struct variants *variants);
/* T2, T3 and the gated and dgated rows of quack's tests. */
void variants_add_cases(struct variants *variants);

#endif
