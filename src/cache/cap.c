/* SPDX-License-Identifier: Apache-2.0 */
/* The size that the root's entries may have together: kept after each publish, never by a lookup. */
#include <errno.h>
#include <string.h>

#include "base/env.h"
#include "base/size_text.h"
#include "cache/cache_impl.h"

void gj_cap_open(gj_cache *cache, const struct gj_cache_params *params)
{
    const char *const text = params->max_bytes ? NULL : gj_env_get(GJ_ENV_CACHE_MAX_SIZE);
    cache->max_bytes = params->max_bytes;
    if (text && *text != '\0' && !gj_size_text_read(text, &cache->max_bytes))
        gj_log_printf(&cache->log, GJ_LOG_WARNING, "%s=%s is left out: it must be " GJ_SIZE_TEXT_RULE,
                      gj_env_name(GJ_ENV_CACHE_MAX_SIZE), text);
}

void gj_cap_keep(gj_cache *cache)
{
    if (cache->max_bytes == 0)
        return;
    const struct gj_cache_trim trim = {.max_bytes = cache->max_bytes};
    struct gj_cache_trimmed trimmed;
    if (!gj_cache_trim(cache, &trim, &trimmed)) {
        const struct gj_fault fault = gj_fault_errno("the cache", "cannot be made smaller");
        gj_cache_report(cache, "not trimmed", "", &fault);
    }
    if (trimmed.removed > 0)
        gj_log_printf(&cache->log, GJ_LOG_DEBUG,
                      "removed %llu entries that were unused for longest, %llu bytes",
                      (unsigned long long)trimmed.removed, (unsigned long long)trimmed.removed_bytes);
}
