/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and publishes entries. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"

enum { USE_SECONDS = 24 * 3600 };

/* -- Load -------------------------------------------------------------------------------------------- */

static enum gj_cache_result report_damage(gj_cache *cache, const char *name, const struct gj_fault *fault)
{
    gj_cache_report(cache, "not loaded", name, fault);
    return gj_fault_is_shortage(fault) ? GJ_CACHE_MISS : GJ_CACHE_DAMAGED;
}

/* Takes over the file's data. */
static enum gj_cache_result accept_file(gj_cache *cache, const char *name, const struct gj_file *file,
                                        const struct gj_cache_entry *expected, struct gj_cache_entry *entry)
{
    struct gj_cache_entry read;
    struct gj_fault fault = {.where = "the entry"};
    if (!gj_entry_adopt(file->data, file->bytes, &read, &fault.what)) {
        free(file->data);
        return report_damage(cache, name, &fault);
    }
    fault.what = gj_entry_difference(&read, expected);
    if (fault.what) {
        gj_cache_entry_free(&read);
        return report_damage(cache, name, &fault);
    }
    *entry = read;
    entry->file_bytes = file->bytes;
    return GJ_CACHE_HIT;
}

/* The file's time says when an entry was used last, to a day: what gj_cache_trim goes by. A cache that cannot
 * be written keeps its times. */
static void note_use(int dir, const char *name, time_t modified)
{
    if (time(NULL) - modified >= USE_SECONDS)
        (void)utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
}

enum gj_cache_result gj_cache_load(gj_cache *cache, const struct gj_cache_name *name,
                                   const struct gj_cache_entry *expected, struct gj_cache_entry *entry)
{
    if (!gj_cache_is_on(cache) || !gj_name_is_entry(name->text))
        return GJ_CACHE_MISS;
    struct gj_fault fault = {0};
    const struct gj_shard shard = gj_name_shard(name->text);
    const int dir = gj_dir_open(cache, shard.text, false, &fault);
    if (dir < 0) {
        if (fault.error != ENOENT)
            gj_cache_report(cache, "not looked for", name->text, &fault);
        return GJ_CACHE_MISS;
    }
    struct gj_file file;
    const bool is_read = gj_file_read(dir, name->text, GJ_CACHE_FILE_MAX, &file, &fault);
    if (is_read && !cache->read_only)
        note_use(dir, name->text, file.modified);
    close(dir);
    if (is_read)
        return accept_file(cache, name->text, &file, expected, entry);
    return fault.error == ENOENT ? GJ_CACHE_MISS : report_damage(cache, name->text, &fault);
}

/* -- Store ------------------------------------------------------------------------------------------- */

static bool publish_entry(gj_cache *cache, const char *name, const void *data, size_t bytes,
                          struct gj_fault *fault)
{
    const struct gj_shard shard = gj_name_shard(name);
    const int dir = gj_dir_open(cache, shard.text, true, fault);
    if (dir < 0)
        return false;
    const bool done = gj_publish(cache, dir, name, data, bytes, fault);
    close(dir);
    return done;
}

size_t gj_cache_store(gj_cache *cache, const struct gj_cache_name *name, const struct gj_cache_entry *entry)
{
    if (!gj_cache_is_on(cache) || cache->read_only || !gj_name_is_entry(name->text))
        return 0;
    struct gj_fault fault = {.where = "the entry",
                             .what = "cannot be encoded: a part is missing or too large, or memory ran out"};
    size_t bytes = 0;
    void *data = gj_cache_entry_encode(entry, &bytes);
    const bool done = data && publish_entry(cache, name->text, data, bytes, &fault);
    free(data);
    if (!done)
        gj_cache_report(cache, "not stored", name->text, &fault);
    return done ? bytes : 0;
}
