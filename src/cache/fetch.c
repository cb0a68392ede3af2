/* SPDX-License-Identifier: Apache-2.0 */
/* The remote store behind the local places: what it has is checked as a file is, and then kept in the root.
 */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "cache/cache_impl.h"
#include "cache/entry_format.h"

/* False when memory runs out. A store that cannot be used is told and left out. */
bool gj_fetch_open(gj_cache *cache, const struct gj_cache_params *params)
{
    struct gj_remote_params remote = {.url = params->remote, .upload = params->upload};
    if (!params->remote) {
        const char *const upload = gj_env_get(GJ_ENV_CACHE_UPLOAD);
        remote.url = gj_env_get(GJ_ENV_CACHE_REMOTE);
        remote.upload = upload && upload[0] != '\0' && strcmp(upload, "0") != 0;
    }
    if (!remote.url || remote.url[0] == '\0')
        return true;
    remote.upload = remote.upload && !params->read_only;
    char *reason = NULL;
    cache->remote = gj_remote_open(&remote, &cache->log, &reason);
    if (cache->remote)
        return true;
    if (reason)
        gj_log_printf(&cache->log, GJ_LOG_WARNING, "remote cache left out: %s", reason);
    cache->remote_off_reason = reason;
    return reason != NULL;
}

void gj_fetch_close(gj_cache *cache)
{
    gj_remote_close(&cache->remote);
    free(cache->remote_off_reason);
}

const char *gj_cache_remote(const gj_cache *cache, const char **off_reason)
{
    *off_reason = cache->remote_off_reason;
    return cache->remote ? gj_remote_url(cache->remote) : cache->remote_off_reason ? "" : NULL;
}

/* Keeps the very bytes that came. False: they are not on disk. */
static bool keep(gj_cache *cache, const char *name, const void *data, size_t bytes)
{
    struct gj_fault fault = {0};
    if (!gj_cache_is_on(cache) || cache->read_only)
        return false;
    if (gj_entry_publish(cache, name, data, bytes, &fault)) {
        gj_cap_keep(cache);
        return true;
    }
    gj_cache_report(cache, "not stored", name, &fault);
    return false;
}

enum gj_cache_result gj_cache_fetch(gj_cache *cache, const struct gj_cache_name *name,
                                    const struct gj_cache_entry *expected, struct gj_cache_entry *entry)
{
    void *data;
    size_t bytes;
    struct gj_cache_entry read;
    struct gj_fault fault = {.where = "the entry"};
    if (!cache || !cache->remote || !gj_name_is_entry(name->text) ||
        gj_remote_get(cache->remote, name->text, GJ_CACHE_FILE_MAX, &data, &bytes) != GJ_REMOTE_HIT)
        return GJ_CACHE_MISS;
    if (!gj_entry_adopt(data, bytes, &read, &fault.what)) {
        free(data);
    } else if ((fault.what = gj_entry_difference(&read, expected)) != NULL) {
        gj_cache_entry_free(&read);
    } else {
        *entry = read;
        entry->is_on_disk = keep(cache, name->text, data, bytes);
        entry->file_bytes = bytes;
        entry->place = GJ_CACHE_PLACE_REMOTE;
        return GJ_CACHE_HIT;
    }
    gj_cache_report_at(cache, gj_remote_url(cache->remote), "not loaded", name->text, &fault);
    return GJ_CACHE_DAMAGED;
}

void gj_cache_remote_counts(const gj_cache *cache, struct gj_remote_counts *counts)
{
    *counts = (struct gj_remote_counts){0};
    if (cache && cache->remote)
        gj_remote_counts(cache->remote, counts);
}

bool gj_cache_flush(gj_cache *cache, int most_ms)
{
    return !cache || !cache->remote || gj_remote_flush(cache->remote, most_ms);
}
