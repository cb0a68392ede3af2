/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the directories of a cache, for listing and clearing; loading never comes here. */
#include <errno.h>
#include <unistd.h>

#include "cache/cache_impl.h"

/* Opens as gj_dir_open; *absent tells apart what is simply not there. */
static int open_subdir(gj_cache *cache, const char *sub, bool *absent)
{
    struct gj_fault fault;
    const int dir = gj_dir_open(cache, sub, false, &fault);
    *absent = dir < 0 && fault.error == ENOENT;
    if (dir < 0 && !*absent) {
        gj_cache_report(cache, "not listed", sub ? sub : GJ_CACHE_VERSION_DIR, &fault);
        errno = fault.error ? fault.error : EPERM;
    }
    return dir;
}

bool gj_subdir_visit(gj_cache *cache, const char *sub, gj_shard_fn act, void *user)
{
    bool absent = false;
    const int dir = open_subdir(cache, sub, &absent);
    if (dir < 0)
        return absent;
    const bool done = act(user, dir, sub);
    const int error = errno;
    close(dir);
    errno = error;
    return done;
}

static bool read_shards(gj_cache *cache, struct gj_names *shards)
{
    bool absent = false;
    *shards = (struct gj_names){0};
    const int dir = open_subdir(cache, NULL, &absent);
    if (dir < 0)
        return absent;
    const bool done = gj_names_read(dir, gj_name_is_shard, shards);
    const int error = errno;
    close(dir);
    errno = error;
    return done;
}

bool gj_shards_each(gj_cache *cache, gj_shard_fn act, void *user)
{
    if (!cache)
        return true;
    if (!gj_cache_is_on(cache)) {
        errno = cache->off_error;
        return false;
    }
    struct gj_names shards;
    if (!read_shards(cache, &shards))
        return false;
    int error = 0;
    for (size_t i = 0; i < shards.count; i++) {
        if (!gj_subdir_visit(cache, shards.names[i], act, user) && error == 0)
            error = errno;
    }
    gj_names_free(&shards);
    errno = error;
    return error == 0;
}
