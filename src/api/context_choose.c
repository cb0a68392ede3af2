/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a config: what was measured, else the model. */
#include <gemmjit/launch.h>

#include "api/context_private.h"

/* H100 SXM, H200. */
#define DEFAULT_SMS 132

enum gj_status gj_context_choose(const gj_context *context, const struct gj_key *problem, int64_t m,
                                 int64_t n, int64_t k, int64_t batch, const char *gpu_name, int num_sms,
                                 struct gj_key *key, gj_error **error)
{
    if (num_sms <= 0)
        num_sms = DEFAULT_SMS;
    const struct gj_key *const tuned =
        gpu_name != NULL ? gj_tuning_find(&context->tuning, gpu_name, num_sms, problem, m, n, k, batch)
                         : NULL;
    if (tuned == NULL)
        return gj_key_choose(problem, m, n, k, batch, num_sms, key, error);
    *key = *tuned;
    return GJ_OK;
}
