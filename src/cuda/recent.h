/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a kernel's recent launches on one device: a launch like an earlier one encodes no tensor map
 * again. */
#ifndef GJ_CUDA_RECENT_H
#define GJ_CUDA_RECENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/work.h"

/* All of the arguments that a launch's work depends on but for addresses, scalars and vectors. No padding:
 * compared as bytes. */
struct gj_form {
    int64_t m, n, k, batch;
    int64_t ld[5], batch_stride[5]; /* of A, B, C, D and P */
    int raster, group_size, max_sms;
    unsigned flags;
    int reads_c, has_order; /* C is read; batch_order is given */
};

struct gj_form gj_form_of(const struct gj_plan *plan, const struct gj_gemm_args *args);

/* What is kept for a form. */
struct gj_recent_work {
    struct gj_work work; /* first: its tensor maps are aligned */
    struct gj_form form;
};

#define GJ_RECENT_SLOTS 4
#define GJ_RECENT_WORDS (sizeof(struct gj_recent_work) / sizeof(uint64_t))

/* Each form has one slot, where the latest stays. A slot is written under its version, odd meanwhile, and
 * read without a lock, as in src/api/choice.c. Zeros: empty. */
struct gj_recent {
    struct gj_recent_slot {
        atomic_uint version;
        atomic_uint_least64_t words[GJ_RECENT_WORDS];
    } slots[GJ_RECENT_SLOTS];
};

/* Copies the work of a form that is kept. No lock, no allocation; safe beside gj_recent_put. */
bool gj_recent_find(struct gj_recent *recent, const struct gj_form *form, struct gj_recent_work *found);
/* Keeps made->work for made->form, unless another thread is writing there. */
void gj_recent_put(struct gj_recent *recent, const struct gj_recent_work *made);

#endif
