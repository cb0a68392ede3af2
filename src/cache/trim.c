/* SPDX-License-Identifier: Apache-2.0 */
/* Removes the entries that were used least recently until the rest is small enough. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_impl.h"

struct candidate {
    char name[GJ_ENTRY_NAME_BYTES];
    struct timespec used;
    uint64_t bytes;
    bool goes;
};

struct trimming {
    gj_cache *cache;
    const struct gj_cache_trim *trim;
    struct candidate *items; /* by name while removing */
    size_t count, capacity;
    struct gj_cache_trimmed *result;
};

/* -- What is there --------------------------------------------------------------------------------------- */

static bool add_candidate(struct trimming *trimming, const char *name, const struct stat *status)
{
    if (trimming->count == trimming->capacity) {
        const size_t capacity = trimming->capacity ? 2 * trimming->capacity : 256;
        struct candidate *const grown = realloc(trimming->items, capacity * sizeof(*grown));
        if (grown == NULL) {
            errno = ENOMEM;
            return false;
        }
        trimming->items = grown;
        trimming->capacity = capacity;
    }
    struct candidate *const item = &trimming->items[trimming->count++];
    *item = (struct candidate){.used = status->st_mtim, .bytes = (uint64_t)status->st_size};
    memcpy(item->name, name, sizeof(item->name));
    trimming->result->entries++;
    trimming->result->bytes += item->bytes;
    return true;
}

static bool gather_shard(void *user, int dir, const char *shard)
{
    struct trimming *const trimming = user;
    struct gj_names names;
    if (!gj_names_read(dir, gj_name_is_entry, &names))
        return false;
    bool done = true;
    for (size_t i = 0; i < names.count && done; i++) {
        struct stat status;
        if (strcmp(gj_name_shard(names.names[i]).text, shard) != 0)
            continue;
        if (fstatat(dir, names.names[i], &status, AT_SYMLINK_NOFOLLOW) != 0)
            done = errno == ENOENT; /* removed since it was listed */
        else if (S_ISREG(status.st_mode))
            done = add_candidate(trimming, names.names[i], &status);
    }
    const int error = errno;
    gj_names_free(&names);
    errno = error;
    return done;
}

static bool pass_over(void *user, int dir, const char *name)
{
    (void)user, (void)dir, (void)name;
    return true;
}

/* What is not ours is left in peace; what is ours and cannot be read is told. */
static bool skip_foreign(void *user, int version, const char *name, const struct gj_fault *fault)
{
    const struct trimming *const trimming = user;
    if (gj_name_is_foreign(version, name))
        return true;
    gj_cache_report(trimming->cache, "not trimmed", name, fault);
    errno = fault->error ? fault->error : EPERM;
    return false;
}

static bool walk(struct trimming *trimming, bool (*act)(void *user, int dir, const char *name))
{
    const struct gj_shard_walk shards = {act, skip_foreign, trimming};
    const struct gj_shard_walk compilers = {pass_over, skip_foreign, trimming};
    return gj_shards_each(trimming->cache, &shards, &compilers);
}

/* -- What goes ------------------------------------------------------------------------------------------- */

static int by_use(const void *left, const void *right)
{
    const struct candidate *const a = left, *const b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right)
{
    const struct candidate *const a = left, *const b = right;
    return strcmp(a->name, b->name);
}

/* Chooses, tells the caller in the order of use, and leaves the items in the order of their names. */
static void choose(struct trimming *trimming)
{
    uint64_t bytes = trimming->result->bytes;
    if (trimming->count > 0)
        qsort(trimming->items, trimming->count, sizeof(*trimming->items), by_use);
    for (size_t i = 0; i < trimming->count && bytes > trimming->trim->max_bytes; i++) {
        struct candidate *const item = &trimming->items[i];
        item->goes = true;
        bytes -= item->bytes;
        if (trimming->trim->visit)
            trimming->trim->visit(trimming->trim->user, item->name, item->bytes, item->used.tv_sec);
        if (trimming->trim->dry_run) {
            trimming->result->removed++;
            trimming->result->removed_bytes += item->bytes;
        }
    }
    if (trimming->count > 0)
        qsort(trimming->items, trimming->count, sizeof(*trimming->items), by_name);
}

/* A name that was published anew since it was looked at stays: somebody wants it. */
static bool remove_candidate(struct trimming *trimming, int dir, const struct candidate *item)
{
    struct stat status;
    if (fstatat(dir, item->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    if (status.st_mtim.tv_sec != item->used.tv_sec || status.st_mtim.tv_nsec != item->used.tv_nsec)
        return true;
    if (unlinkat(dir, item->name, 0) != 0)
        return errno == ENOENT;
    trimming->result->removed++;
    trimming->result->removed_bytes += item->bytes;
    return true;
}

static bool remove_shard(void *user, int dir, const char *shard)
{
    struct trimming *const trimming = user;
    int error = 0;
    for (size_t i = 0; i < trimming->count; i++) {
        const struct candidate *const item = &trimming->items[i];
        if (item->goes && strcmp(gj_name_shard(item->name).text, shard) == 0 &&
            !remove_candidate(trimming, dir, item) && error == 0)
            error = errno;
    }
    errno = error;
    return error == 0;
}

bool gj_cache_trim(gj_cache *cache, const struct gj_cache_trim *trim, struct gj_cache_trimmed *result)
{
    struct trimming trimming = {.cache = cache, .trim = trim, .result = result};
    *result = (struct gj_cache_trimmed){0};
    bool done = walk(&trimming, gather_shard);
    if (done)
        choose(&trimming);
    if (done && !trim->dry_run)
        done = walk(&trimming, remove_shard);
    const int error = errno;
    free(trimming.items);
    errno = error;
    return done;
}
