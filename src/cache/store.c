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

/* What is looked for, and where. */
struct search {
    gj_cache *cache;
    const char *name;
    const struct gj_cache_entry *expected;
    struct gj_cache_entry *entry; /* filled by a hit */
};

static enum gj_cache_result report_damage(const struct search *search, const char *place,
                                          const struct gj_fault *fault)
{
    gj_cache_report_at(search->cache, place, "not loaded", search->name, fault);
    /* A file that stays stale was replaced or removed; nobody has seen that it is damaged. */
    return gj_fault_is_shortage(fault) || fault->error == ESTALE ? GJ_CACHE_MISS : GJ_CACHE_DAMAGED;
}

/* Takes the entry over, or frees it when it is of other inputs. */
static enum gj_cache_result accept_entry(const struct search *search, const char *place,
                                         struct gj_cache_entry *read, size_t bytes)
{
    const struct gj_fault fault = {.where = "the entry", .what = gj_entry_difference(read, search->expected)};
    if (fault.what) {
        gj_cache_entry_free(read);
        return report_damage(search, place, &fault);
    }
    *search->entry = *read;
    search->entry->file_bytes = bytes;
    return GJ_CACHE_HIT;
}

/* Takes over the file's data. */
static enum gj_cache_result accept_file(const struct search *search, const char *place,
                                        const struct gj_file *file)
{
    struct gj_cache_entry read;
    struct gj_fault fault = {.where = "the entry"};
    if (gj_entry_adopt(file->data, file->bytes, &read, &fault.what))
        return accept_entry(search, place, &read, file->bytes);
    free(file->data);
    return report_damage(search, place, &fault);
}

/* The file's time says when an entry was used last, to a day: what gj_cache_trim goes by. A cache that cannot
 * be written keeps its times. */
static void note_use(int dir, const char *name, time_t modified)
{
    if (time(NULL) - modified >= USE_SECONDS)
        (void)utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static enum gj_cache_result search_directory(const struct search *search, const char *root, bool writable)
{
    struct gj_fault fault = {0};
    const struct gj_shard shard = gj_name_shard(search->name);
    const int dir = gj_dir_open_in(root, shard.text, false, &fault);
    if (dir < 0) {
        if (fault.error != ENOENT)
            gj_cache_report_at(search->cache, root, "not looked for", search->name, &fault);
        return GJ_CACHE_MISS;
    }
    struct gj_file file;
    const bool is_read = gj_file_read(dir, search->name, GJ_CACHE_FILE_MAX, &file, &fault);
    if (is_read && writable)
        note_use(dir, search->name, file.modified);
    close(dir);
    if (is_read)
        return accept_file(search, root, &file);
    return fault.error == ENOENT ? GJ_CACHE_MISS : report_damage(search, root, &fault);
}

static enum gj_cache_result search_pack(const struct search *search, const struct gj_layer *layer)
{
    const void *data;
    size_t bytes;
    struct gj_cache_entry read;
    struct gj_fault fault = {0};
    if (!gj_pack_is_intact(layer->pack, &fault))
        return report_damage(search, layer->path, &fault);
    if (!gj_pack_find_entry(layer->pack, search->name, &data, &bytes))
        return GJ_CACHE_MISS;
    fault = (struct gj_fault){.where = "the entry"};
    if (gj_entry_view(data, bytes, &read, &fault.what))
        return accept_entry(search, layer->path, &read, bytes);
    return report_damage(search, layer->path, &fault);
}

static enum gj_cache_result search_layer(const struct search *search, const struct gj_layer *layer)
{
    if (layer->off_reason)
        return GJ_CACHE_MISS;
    return layer->pack ? search_pack(search, layer) : search_directory(search, layer->path, false);
}

/* Equal entries have equal bytes, so these are the layer's. */
static void heal(gj_cache *cache, const char *name, const struct gj_cache_entry *entry)
{
    struct gj_fault fault = {.where = "the entry", .what = "does not fit into memory"};
    size_t bytes = 0;
    void *const data = gj_cache_entry_encode(entry, &bytes);
    if (!data || !gj_entry_publish(cache, name, data, bytes, &fault))
        gj_cache_report(cache, "not stored", name, &fault);
    free(data);
}

enum gj_cache_result gj_cache_load(gj_cache *cache, const struct gj_cache_name *name,
                                   const struct gj_cache_entry *expected, struct gj_cache_entry *entry)
{
    if (!cache || !gj_name_is_entry(name->text))
        return GJ_CACHE_MISS;
    const struct search search = {cache, name->text, expected, entry};
    enum gj_cache_result own = GJ_CACHE_MISS, result = GJ_CACHE_MISS;
    if (gj_cache_is_on(cache))
        own = search_directory(&search, cache->root, !cache->read_only);
    if (own == GJ_CACHE_HIT) {
        entry->place = GJ_CACHE_PLACE_ROOT;
        entry->is_on_disk = true;
        return own;
    }
    bool is_damaged = own == GJ_CACHE_DAMAGED;
    for (size_t i = 0; i < cache->num_layers && result != GJ_CACHE_HIT; i++) {
        result = search_layer(&search, &cache->layers[i]);
        is_damaged = is_damaged || result == GJ_CACHE_DAMAGED;
    }
    if (result != GJ_CACHE_HIT)
        return is_damaged ? GJ_CACHE_DAMAGED : GJ_CACHE_MISS;
    entry->place = GJ_CACHE_PLACE_LAYER;
    entry->is_on_disk = true;
    if (own == GJ_CACHE_DAMAGED && !cache->read_only)
        heal(cache, name->text, entry);
    return GJ_CACHE_HIT;
}

/* -- Store ------------------------------------------------------------------------------------------- */

bool gj_entry_publish(gj_cache *cache, const char *name, const void *data, size_t bytes,
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
    const bool is_on = gj_cache_is_on(cache);
    if (!cache || cache->read_only || (!is_on && !cache->remote) || !gj_name_is_entry(name->text))
        return 0;
    struct gj_fault fault = {.where = "the entry",
                             .what = "cannot be encoded: a part is missing or too large, or memory ran out"};
    size_t bytes = 0;
    void *data = gj_cache_entry_encode(entry, &bytes);
    const bool done = data && is_on && gj_entry_publish(cache, name->text, data, bytes, &fault);
    if (data && cache->remote)
        gj_remote_put(cache->remote, name->text, data, bytes);
    free(data);
    if (done)
        gj_cap_keep(cache);
    else if (is_on)
        gj_cache_report(cache, "not stored", name->text, &fault);
    return done ? bytes : 0;
}
