/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of gj_gemm's choices: a sequence lock for each place, all of atomics, so that a torn read is no
 * race and is only thrown away (H.-J. Boehm, Can seqlocks get along with programming language memory models?,
 * 2012). Acquiring loads keep the last look at the version behind them, releasing stores the first one before
 * them. */
#include "api/choice.h"

#include <string.h>

#include "base/hash.h"

/* Keys have no padding (src/api/table.c), and neither has the rest: 33 + 3 ints, then 64-bit extents. */
_Static_assert(sizeof(struct gj_question) == 36 * sizeof(int) + 4 * sizeof(int64_t), "hashed as bytes");
_Static_assert(sizeof(struct gj_question) % sizeof(uint64_t) == 0, "read as words");

static struct gj_choice *place_of(struct gj_choices *choices, const struct gj_question *question,
                                  uint64_t words[GJ_QUESTION_WORDS])
{
    memcpy(words, question, sizeof *question);
    return &choices->items[gj_hash64(question, sizeof *question) % GJ_CHOICES];
}

gj_kernel *gj_choices_find(struct gj_choices *choices, const struct gj_question *question)
{
    uint64_t words[GJ_QUESTION_WORDS];
    struct gj_choice *const place = place_of(choices, question, words);
    const unsigned version = atomic_load_explicit(&place->version, memory_order_acquire);
    gj_kernel *const kernel = atomic_load_explicit(&place->kernel, memory_order_acquire);
    bool is_same = kernel != NULL && version % 2 == 0;
    for (size_t i = 0; is_same && i < GJ_QUESTION_WORDS; i++)
        is_same = atomic_load_explicit(&place->question[i], memory_order_acquire) == words[i];
    return is_same && atomic_load_explicit(&place->version, memory_order_relaxed) == version ? kernel : NULL;
}

void gj_choices_put(struct gj_choices *choices, const struct gj_question *question, gj_kernel *kernel)
{
    uint64_t words[GJ_QUESTION_WORDS];
    struct gj_choice *const place = place_of(choices, question, words);
    unsigned version = atomic_load_explicit(&place->version, memory_order_relaxed);
    if (version % 2 != 0 ||
        !atomic_compare_exchange_strong_explicit(&place->version, &version, version + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    for (size_t i = 0; i < GJ_QUESTION_WORDS; i++)
        atomic_store_explicit(&place->question[i], words[i], memory_order_release);
    atomic_store_explicit(&place->kernel, kernel, memory_order_release);
    atomic_store_explicit(&place->version, version + 2, memory_order_release);
}
