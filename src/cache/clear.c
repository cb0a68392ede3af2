/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what the cache wrote and nothing else, while other processes may be loading and publishing. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache_impl.h"

/* Where files cannot be locked, a temporary file this old has lost its writer. */
enum { STALE_SECONDS = 3600 };

struct clearing {
    gj_cache *cache;
    int64_t entries, stamps; /* removed */
};

/* 1: removed, 0: was not there, or is a directory with something in it, which is not ours; -1: errno. */
static int remove_name(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) == 0)
        return 1;
    if (errno == EISDIR && unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return 1;
    return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
}

/* A publisher locks its temporary file until the rename; the kernel unlocks it when the publisher dies. One
 * that has not come to lock it yet loses this store, which it counts and survives. A shared lock asks the
 * same: NFS gives an exclusive one only to who can write. */
static bool is_stale(int dir, const char *name)
{
    const int file = gj_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    struct stat status;
    bool stale = false;
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
        if (flock(file, LOCK_SH | LOCK_NB) == 0)
            stale = true;
        else
            stale = errno != EWOULDBLOCK && time(NULL) - status.st_mtime > STALE_SECONDS;
    }
    if (file >= 0)
        close(file);
    return stale;
}

static bool is_entry_or_temp(const char *name)
{
    return gj_name_is_entry(name) || gj_name_is_temp(name);
}

static bool is_stamp_or_temp(const char *name)
{
    return gj_name_is_stamp(name) || gj_name_is_temp(name);
}

/* Removes the files whose names `accept` takes and counts those that are not temporary. Goes on after a
 * failure and then returns false with the first errno. */
static bool remove_files(int dir, bool (*accept)(const char *name), int64_t *removed)
{
    struct gj_names names;
    if (!gj_names_read(dir, accept, &names))
        return false;
    int error = 0;
    for (size_t i = 0; i < names.count; i++) {
        const bool is_temp = gj_name_is_temp(names.names[i]);
        if (is_temp && !is_stale(dir, names.names[i]))
            continue;
        const int result = remove_name(dir, names.names[i]);
        if (result < 0 && error == 0)
            error = errno;
        if (result > 0 && !is_temp)
            ++*removed;
    }
    gj_names_free(&names);
    errno = error;
    return error == 0;
}

static bool clear_shard(void *user, int dir, const char *shard)
{
    struct clearing *clearing = user;
    (void)shard;
    return remove_files(dir, is_entry_or_temp, &clearing->entries);
}

static bool clear_stamps(void *user, int dir, const char *sub)
{
    struct clearing *clearing = user;
    (void)sub;
    return remove_files(dir, is_stamp_or_temp, &clearing->stamps);
}

/* What is not ours is left in peace; what is ours and cannot be cleared is told. */
static bool skip_foreign(void *user, int version, const char *name, const struct gj_fault *fault)
{
    const struct clearing *clearing = user;
    if (gj_name_is_foreign(version, name))
        return true;
    gj_cache_report(clearing->cache, "not cleared", name, fault);
    errno = fault->error ? fault->error : EPERM;
    return false;
}

int64_t gj_cache_clear(gj_cache *cache)
{
    struct clearing clearing = {.cache = cache};
    const struct gj_shard_walk shards = {clear_shard, skip_foreign, &clearing};
    const struct gj_shard_walk compilers = {clear_stamps, skip_foreign, &clearing};
    return gj_shards_each(cache, &shards, &compilers) ? clearing.entries : -1;
}
