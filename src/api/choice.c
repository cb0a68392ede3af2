/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of gj_gemm's choices. */
#include "api/choice.h"

#include <string.h>

#include "base/error_build.h"
#include "base/hash.h"

/* Keys have no padding (src/api/table.c), and neither has the rest: 31 + 1 ints, then 64-bit extents. */
_Static_assert(sizeof(struct gj_question) == 32 * sizeof(int) + 4 * sizeof(int64_t), "hashed as bytes");

enum gj_status gj_choices_get(struct gj_choices *choices, const struct gj_question *question,
                              struct gj_key *key, gj_error **error)
{
    struct gj_choice *const place = &choices->items[gj_hash64(question, sizeof(*question)) % GJ_CHOICES];
    pthread_mutex_lock(&choices->lock);
    const bool known = place->used && memcmp(&place->question, question, sizeof(*question)) == 0;
    if (known)
        *key = place->answer;
    pthread_mutex_unlock(&choices->lock);
    if (known)
        return GJ_OK;
    GJ_TRY(gj_key_choose(&question->problem, question->m, question->n, question->k, question->batch,
                         question->num_sms, key, error));
    pthread_mutex_lock(&choices->lock);
    *place = (struct gj_choice){true, *question, *key};
    pthread_mutex_unlock(&choices->lock);
    return GJ_OK;
}
