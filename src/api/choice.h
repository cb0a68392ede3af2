/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which kernel gj_gemm took for a problem and its extents: choosing compares hundreds of configs,
 * gj_gemm asks on every call. */
#ifndef GJ_API_CHOICE_H
#define GJ_API_CHOICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <gemmjit/launch.h>

/* What a choice depends on. */
struct gj_question {
    struct gj_key problem;
    int gpu;              /* gj_gpu_kind, or the number of SMs of a call that may not have all */
    int overlaps, unused; /* GJ_LAUNCH_OVERLAP is given; 0 */
    int64_t m, n, k, batch;
};

#define GJ_CHOICES 1024
#define GJ_QUESTION_WORDS (sizeof(struct gj_question) / sizeof(uint64_t))

/* A table in which each question has one place, and the latest asked there stays. A place is written under
 * its version, odd meanwhile, and read without a lock: what was read counts if the version was even and is
 * the same afterwards. */
struct gj_choices {
    struct gj_choice {
        atomic_uint version;
        atomic_uint_least64_t question[GJ_QUESTION_WORDS];
        _Atomic(gj_kernel *) kernel; /* NULL: nothing is remembered here */
    } items[GJ_CHOICES];
};

/* The kernel of a question, or NULL. No lock, no allocation; safe beside gj_choices_put. */
gj_kernel *gj_choices_find(struct gj_choices *choices, const struct gj_question *question);
/* Remembers an answer, unless another thread is writing there. kernel lives as long as the table. */
void gj_choices_put(struct gj_choices *choices, const struct gj_question *question, gj_kernel *kernel);

#endif
