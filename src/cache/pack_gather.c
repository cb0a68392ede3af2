/* SPDX-License-Identifier: Apache-2.0 */
/* Packs a cache: walks over its entries and stamps in the order of the index, one in memory at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/pack_impl.h"

struct packing {
    gj_cache *cache;
    const struct gj_pack_listener *listener;
    struct gj_pack_writer writer;
    struct gj_cache_packed *result;
    struct gj_fault *fault;
    bool failed; /* *fault is set: the rest is passed over */
};

/* `name` in the directory `sub`, or all of `sub` when NULL. */
static void leave_out(struct packing *packing, const char *sub, const char *name,
                      const struct gj_fault *fault)
{
    if (gj_fault_is_shortage(fault)) { /* what was not read may well be sound */
        *packing->fault = *fault;
        packing->failed = true;
        return;
    }
    packing->result->left_out++;
    if (!packing->listener->left_out)
        return;
    struct gj_strbuf path = {0}, reason = {0};
    gj_strbuf_printf(&path, "%s/" GJ_CACHE_VERSION_DIR "/%s%s%s", packing->cache->root, sub, name ? "/" : "",
                     name ? name : "");
    gj_fault_describe(fault, &reason);
    packing->listener->left_out(packing->listener->user,
                                path.failed ? "a file, with no memory to say which" : path.text,
                                reason.failed ? "no memory to say why" : reason.text);
    gj_strbuf_free(&reason);
    gj_strbuf_free(&path);
}

static void add_member(struct packing *packing, enum gj_pack_kind kind, const char *name, const void *data,
                       size_t bytes)
{
    if (!gj_pack_writer_add(&packing->writer, kind, name, data, bytes, packing->fault))
        packing->failed = true;
    else if (kind == GJ_PACK_ENTRY)
        packing->result->entries++;
    else
        packing->result->stamps++;
}

static void pack_entry(struct packing *packing, int dir, const char *shard, const char *name)
{
    struct gj_fault fault = {0};
    struct gj_cache_entry entry = {0};
    size_t bytes = 0;
    if (strcmp(gj_name_shard(name).text, shard) != 0)
        return; /* would never be looked up, so it is not an entry */
    if (gj_entry_read(dir, name, &entry, &bytes, &fault))
        add_member(packing, GJ_PACK_ENTRY, name, entry.storage, bytes);
    else if (fault.error != ENOENT) /* else it was removed since it was listed */
        leave_out(packing, shard, name, &fault);
    gj_cache_entry_free(&entry);
}

static bool pack_shard(void *user, int dir, const char *shard)
{
    struct packing *packing = user;
    struct gj_names names;
    if (packing->failed)
        return true;
    if (!gj_names_read(dir, gj_name_is_entry, &names))
        return false;
    for (size_t i = 0; i < names.count && !packing->failed; i++)
        pack_entry(packing, dir, shard, names.names[i]);
    gj_names_free(&names);
    return true;
}

static void pack_stamp(struct packing *packing, int dir, enum gj_pack_kind kind, const char *name)
{
    struct gj_fault fault = {0};
    struct gj_file file = {0};
    if (gj_stamp_read(dir, name, &file, &fault))
        add_member(packing, kind, name, file.data, file.bytes);
    else if (fault.error != ENOENT)
        leave_out(packing, GJ_CACHE_COMPILERS_DIR, name, &fault);
    free(file.data);
}

static bool is_named_stamp(const char *name)
{
    return gj_name_is_stamp(name) && strcmp(name, GJ_STAMP_DEFAULT) != 0;
}

static bool pack_stamps(void *user, int dir, const char *sub)
{
    struct packing *packing = user;
    struct gj_names names;
    (void)sub;
    if (packing->failed)
        return true;
    if (!gj_names_read(dir, is_named_stamp, &names))
        return false;
    for (size_t i = 0; i < names.count && !packing->failed; i++)
        pack_stamp(packing, dir, GJ_PACK_STAMP, names.names[i]);
    gj_names_free(&names);
    if (!packing->failed)
        pack_stamp(packing, dir, GJ_PACK_DEFAULT_STAMP, GJ_STAMP_DEFAULT);
    return true;
}

/* A directory that cannot be read is left out as a whole. */
static bool skip_unread(void *user, int version, const char *name, const struct gj_fault *fault)
{
    struct packing *packing = user;
    (void)version;
    leave_out(packing, name, NULL, fault);
    return true;
}

static bool gather(struct packing *packing)
{
    const struct gj_shard_walk shards = {pack_shard, skip_unread, packing};
    const struct gj_shard_walk compilers = {pack_stamps, skip_unread, packing};
    if (!gj_shards_each(packing->cache, &shards, &compilers)) {
        *packing->fault = gj_fault_errno("the cache", "cannot be read");
        return false;
    }
    if (!packing->failed && packing->result->entries == 0) {
        *packing->fault =
            (struct gj_fault){.where = "the cache", .what = "has no sound entry, and an empty pack is none"};
        return false;
    }
    return !packing->failed;
}

enum gj_pack_status gj_cache_pack(gj_cache *cache, const char *path, const struct gj_pack_listener *listener,
                                  struct gj_cache_packed *result, struct gj_fault *fault)
{
    static const struct gj_pack_listener nobody;
    struct packing packing = {
        .cache = cache, .listener = listener ? listener : &nobody, .result = result, .fault = fault};
    struct gj_pack_place place;
    *result = (struct gj_cache_packed){0};
    if (!gj_cache_is_on(cache)) {
        *fault = (struct gj_fault){.where = "the cache", .what = "is off"};
        return GJ_PACK_FAILED;
    }
    if (!gj_pack_place_open(cache, path, &place, fault))
        return fault->error == 0 ? GJ_PACK_REFUSED : GJ_PACK_FAILED;
    bool done = gj_pack_writer_begin(&packing.writer, cache, &place, fault);
    if (done && !gather(&packing)) {
        gj_pack_writer_abandon(&packing.writer);
        done = false;
    }
    done = done && gj_pack_writer_finish(&packing.writer, fault);
    result->bytes = done ? packing.writer.at : 0;
    gj_pack_place_close(&place);
    return done ? GJ_PACK_DONE : GJ_PACK_FAILED;
}
