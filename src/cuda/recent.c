/* SPDX-License-Identifier: Apache-2.0 */
/* Recent work, by sequence locks of atomic words; src/api/choice.c says why that is no race. */
#include "cuda/recent.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"

_Static_assert(sizeof(struct gj_form) == 14 * sizeof(int64_t) + 6 * sizeof(int), "compared as bytes");
_Static_assert(sizeof(struct gj_recent_work) % sizeof(uint64_t) == 0, "read as words");
_Static_assert(offsetof(struct gj_recent_work, form) % sizeof(uint64_t) == 0, "compared as words");

#define FORM_FIRST (offsetof(struct gj_recent_work, form) / sizeof(uint64_t))
#define FORM_WORDS (sizeof(struct gj_form) / sizeof(uint64_t))

struct gj_form gj_form_of(const struct gj_plan *plan, const struct gj_gemm_args *args)
{
    const struct gj_tensor *const tensors[5] = {&args->a, &args->b, &args->c, &args->d, &args->p};
    struct gj_form form = {
        .m = args->m,
        .n = args->n,
        .k = args->k,
        .batch = args->batch,
        .raster = (int)args->raster,
        .group_size = args->group_size,
        .max_sms = args->max_sms,
        .flags = args->flags,
        .reads_c = gj_work_reads_c(plan, args),
        .has_order = args->batch_order != NULL,
    };
    for (int i = 0; i < 5; i++) {
        form.ld[i] = tensors[i]->ld;
        form.batch_stride[i] = tensors[i]->batch_stride;
    }
    return form;
}

static struct gj_recent_slot *slot_of(struct gj_recent *recent, const struct gj_form *form)
{
    return &recent->slots[gj_hash64(form, sizeof *form) % GJ_RECENT_SLOTS];
}

bool gj_recent_find(struct gj_recent *recent, const struct gj_form *form, struct gj_recent_work *found)
{
    struct gj_recent_slot *const slot = slot_of(recent, form);
    uint64_t wanted[FORM_WORDS], *const words = (uint64_t *)(void *)found;
    memcpy(wanted, form, sizeof wanted);
    const unsigned version = atomic_load_explicit(&slot->version, memory_order_acquire);
    bool is_same = version != 0 && version % 2 == 0;
    for (size_t i = 0; is_same && i < FORM_WORDS; i++)
        is_same = atomic_load_explicit(&slot->words[FORM_FIRST + i], memory_order_acquire) == wanted[i];
    for (size_t i = 0; is_same && i < FORM_FIRST; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
    return is_same && atomic_load_explicit(&slot->version, memory_order_relaxed) == version;
}

void gj_recent_put(struct gj_recent *recent, const struct gj_recent_work *made)
{
    struct gj_recent_slot *const slot = slot_of(recent, &made->form);
    const uint64_t *const words = (const uint64_t *)(const void *)made;
    unsigned version = atomic_load_explicit(&slot->version, memory_order_relaxed);
    if (version % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&slot->version, &version, version + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    for (size_t i = 0; i < GJ_RECENT_WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
    atomic_store_explicit(&slot->version, version + 2, memory_order_release);
}
