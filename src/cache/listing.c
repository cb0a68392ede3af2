/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the entries of a cache, for the command's verbs; loading never comes here. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cache/cache_impl.h"

struct walk {
    gj_cache *cache;
    gj_cache_visit_fn visit;
    void *user;
    struct gj_cache_scan *scan; /* may be NULL */
    int64_t count;
    bool stopped;
};

/* Hands one file to the visitor, with its entry or what is wrong with it. False when memory runs out. */
static bool report_file(struct walk *walk, const char *name, uint64_t bytes,
                        const struct gj_cache_entry *entry, const struct gj_fault *fault)
{
    struct gj_strbuf path = {0}, reason = {0};
    gj_strbuf_printf(&path, "%s/" GJ_CACHE_VERSION_DIR "/%s/%s", walk->cache->root, gj_name_shard(name).text,
                     name);
    if (!entry)
        gj_fault_describe(fault, &reason);
    const bool done = !path.failed && !reason.failed;
    if (done) {
        walk->count++;
        walk->stopped = !walk->visit(walk->user, path.text, bytes, entry, reason.text);
    }
    gj_strbuf_free(&reason);
    gj_strbuf_free(&path);
    if (!done)
        errno = ENOMEM;
    return done;
}

static bool visit_file(struct walk *walk, int dir, const char *name)
{
    struct stat status;
    struct gj_fault fault = {0};
    struct gj_cache_entry entry = {0};
    if (fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT; /* removed since it was listed */
    size_t bytes = 0;
    const bool is_sound = gj_entry_read(dir, name, &entry, &bytes, &fault);
    if (!is_sound && fault.error == ENOENT)
        return true;
    const bool done = report_file(walk, name, (uint64_t)status.st_size, is_sound ? &entry : NULL, &fault);
    gj_cache_entry_free(&entry);
    return done;
}

/* -- Directories ------------------------------------------------------------------------------------- */

static bool count_temps(void *user, int dir, const char *name)
{
    struct walk *walk = user;
    struct gj_names names;
    (void)name;
    if (!walk->scan)
        return true;
    if (!gj_names_read(dir, gj_name_is_temp, &names))
        return false;
    walk->scan->temporary += names.count;
    gj_names_free(&names);
    return true;
}

static bool note_unread(void *user, int version, const char *name, const struct gj_fault *fault)
{
    struct walk *walk = user;
    (void)version;
    if (!walk->scan || fault->error == ENOMEM) {
        errno = fault->error ? fault->error : EPERM;
        return false;
    }
    if (walk->scan->unread++ == 0) {
        gj_strbuf_printf(&walk->scan->first_unread, GJ_CACHE_VERSION_DIR "/%s: ", name);
        gj_fault_describe(fault, &walk->scan->first_unread);
    }
    return true;
}

/* An entry in the directory of another hash would never be looked up, so it is not one. */
static bool visit_shard(void *user, int dir, const char *shard)
{
    struct walk *walk = user;
    struct gj_names names;
    if (walk->stopped)
        return true;
    if (!gj_names_read(dir, gj_name_is_entry, &names))
        return false;
    bool done = true;
    for (size_t i = 0; i < names.count && done && !walk->stopped; i++) {
        if (strcmp(gj_name_shard(names.names[i]).text, shard) == 0)
            done = visit_file(walk, dir, names.names[i]);
    }
    const int error = errno;
    gj_names_free(&names);
    errno = error;
    return done && count_temps(walk, dir, shard);
}

int64_t gj_cache_list(gj_cache *cache, gj_cache_visit_fn visit, void *user, struct gj_cache_scan *scan)
{
    struct walk walk = {.cache = cache, .visit = visit, .user = user, .scan = scan};
    const struct gj_shard_walk shards = {visit_shard, note_unread, &walk};
    const struct gj_shard_walk compilers = {count_temps, note_unread, &walk};
    return gj_shards_each(cache, &shards, &compilers) ? walk.count : -1;
}
