/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of gpu_epilogues. Each prints a Markdown table and returns how much of it failed. */
#ifndef GJ_TESTS_GPU_EPILOGUES_H
#define GJ_TESTS_GPU_EPILOGUES_H

#include <stdbool.h>
#include <stddef.h>

#include "rig.h"

struct epilogues_options {
    const char *reference, *epilogues, *cache_dir, *commit, *filter, *set, *keys;
    bool small;   /* few shapes: for compute-sanitizer */
    int from, to; /* leave out the keys before and from these on: to repeat a failure */
    int every;    /* use each every-th key */
    int repeats;  /* launches of the back-to-back test */
    int jobs;     /* compiles at once */
    int watch;    /* wait after so many keys */
    unsigned seed;
};

/* Keys exactly, over shapes. */
size_t epilogues_exact(struct rig *rig, const struct epilogues_options *options);
/* Functions against f64, and the cases of quack's tests. */
size_t epilogues_error(struct rig *rig, const struct epilogues_options *options);

#endif
