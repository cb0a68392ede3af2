/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the directories of a cache, for listing and clearing; loading never comes here. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cache/cache_impl.h"

bool gj_name_is_foreign(int version, const char *name)
{
    struct stat status;
    return fstatat(version, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (!S_ISDIR(status.st_mode) || status.st_uid != geteuid());
}

/* False with errno when the walk does not bear the fault. */
static bool visit_subdir(gj_cache *cache, int version, const char *name, const struct gj_shard_walk *walk)
{
    struct gj_fault fault = {0};
    const int dir = gj_dir_open(cache, name, false, &fault);
    if (dir < 0)
        return fault.error == ENOENT || walk->skip(walk->user, version, name, &fault);
    const bool done = walk->act(walk->user, dir, name);
    if (!done)
        fault = gj_fault_errno("the directory", "cannot be worked through");
    close(dir);
    return done || walk->skip(walk->user, version, name, &fault);
}

/* Opens v1. -1 with *absent, or with errno. */
static int open_version(gj_cache *cache, bool *absent)
{
    struct gj_fault fault = {0};
    const int version = gj_dir_open(cache, NULL, false, &fault);
    *absent = version < 0 && fault.error == ENOENT;
    if (version < 0 && !*absent) {
        gj_cache_report(cache, "not listed", GJ_CACHE_VERSION_DIR, &fault);
        errno = fault.error ? fault.error : EPERM;
    }
    return version;
}

bool gj_shards_each(gj_cache *cache, const struct gj_shard_walk *shards,
                    const struct gj_shard_walk *compilers)
{
    if (!cache)
        return true;
    if (!gj_cache_is_on(cache)) {
        errno = cache->off_error;
        return false;
    }
    bool absent = false;
    const int version = open_version(cache, &absent);
    if (version < 0)
        return absent;
    struct gj_names names;
    int error = gj_names_read(version, gj_name_is_shard, &names) ? 0 : errno;
    for (size_t i = 0; i < names.count; i++) {
        if (!visit_subdir(cache, version, names.names[i], shards) && error == 0)
            error = errno;
    }
    if (!visit_subdir(cache, version, GJ_CACHE_COMPILERS_DIR, compilers) && error == 0)
        error = errno;
    gj_names_free(&names);
    close(version);
    errno = error;
    return error == 0;
}
