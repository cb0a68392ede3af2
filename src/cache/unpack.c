/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks a pack into a cache: each member is checked in full before it is published. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/entry_format.h"
#include "cache/pack_impl.h"

struct unpacking {
    gj_cache *cache;
    const struct gj_pack_listener *listener;
    struct gj_cache_unpacked *result;
    struct gj_fault *fault;
};

/* NULL, or what is wrong with the member. */
static const char *find_damage(const struct gj_pack_member *member)
{
    const char *reason = NULL;
    struct gj_cache_entry entry;
    if (member->kind != GJ_PACK_ENTRY)
        return gj_stamp_check(member->name, member->data, member->bytes, &reason) ? NULL : reason;
    return gj_entry_view(member->data, member->bytes, &entry, &reason)
               ? gj_entry_name_problem(member->name, &entry)
               : reason;
}

/* Whether the directory has a sound file of this name; else *fault. */
static bool is_there(int dir, const struct gj_pack_member *member, struct gj_fault *fault)
{
    if (member->kind == GJ_PACK_ENTRY) {
        struct gj_cache_entry entry;
        size_t bytes;
        const bool is_sound = gj_entry_read(dir, member->name, &entry, &bytes, fault);
        if (is_sound)
            gj_cache_entry_free(&entry);
        return is_sound;
    }
    struct gj_file file;
    const bool is_sound = gj_stamp_read(dir, member->name, &file, fault);
    if (is_sound)
        free(file.data);
    return is_sound;
}

/* Keeps what is there, else publishes the member. False with *fault. */
static bool put_member(struct unpacking *unpacking, int dir, const struct gj_pack_member *member)
{
    struct gj_cache_unpacked *const result = unpacking->result;
    if (is_there(dir, member, unpacking->fault)) {
        result->kept++;
        return true;
    }
    /* What is damaged is replaced; what was not read for lack of something may be sound. */
    if (gj_fault_is_shortage(unpacking->fault))
        return false;
    if (!gj_publish(unpacking->cache, dir, member->name, member->data, member->bytes, unpacking->fault))
        return false;
    result->bytes += member->bytes;
    if (member->kind == GJ_PACK_ENTRY)
        result->entries++;
    else
        result->stamps++;
    return true;
}

static bool restore(struct unpacking *unpacking, const struct gj_pack_member *member)
{
    const struct gj_shard shard = gj_name_shard(member->name);
    const char *const sub = member->kind == GJ_PACK_ENTRY ? shard.text : GJ_CACHE_COMPILERS_DIR;
    /* Looked for without making anything: a cache that has it all need not be writable. */
    int dir = gj_dir_open(unpacking->cache, sub, false, unpacking->fault);
    if (dir < 0 && unpacking->fault->error == ENOENT)
        dir = gj_dir_open(unpacking->cache, sub, true, unpacking->fault);
    if (dir < 0)
        return false;
    const bool done = put_member(unpacking, dir, member);
    close(dir);
    return done;
}

static bool unpack_member(struct unpacking *unpacking, const struct gj_pack_member *member)
{
    const char *const damage = find_damage(member);
    if (!damage)
        return restore(unpacking, member);
    unpacking->result->left_out++;
    if (unpacking->listener->left_out)
        unpacking->listener->left_out(unpacking->listener->user, member->name, damage);
    return true;
}

static bool unpack_all(struct unpacking *unpacking, const gj_pack *pack)
{
    const size_t count = gj_pack_count(pack);
    for (size_t i = 0; i < count; i++) {
        struct gj_pack_member member;
        if (!gj_pack_member(pack, i, &member)) {
            if (gj_pack_is_intact(pack, unpacking->fault))
                *unpacking->fault =
                    (struct gj_fault){.where = "the pack", .what = "was written over while it was read"};
            return false;
        }
        if (!unpack_member(unpacking, &member))
            return false;
    }
    return true;
}

enum gj_pack_status gj_cache_unpack(gj_cache *cache, const char *path,
                                    const struct gj_pack_listener *listener, struct gj_cache_unpacked *result,
                                    struct gj_fault *fault)
{
    static const struct gj_pack_listener nobody;
    struct unpacking unpacking = {
        .cache = cache, .listener = listener ? listener : &nobody, .result = result, .fault = fault};
    *result = (struct gj_cache_unpacked){0};
    if (!gj_cache_is_on(cache)) {
        *fault = (struct gj_fault){.where = "the cache", .what = "is off"};
        return GJ_PACK_FAILED;
    }
    gj_pack *pack = gj_pack_open(path, fault);
    if (!pack)
        return gj_fault_is_shortage(fault) ? GJ_PACK_FAILED : GJ_PACK_REFUSED;
    const bool done = unpack_all(&unpacking, pack);
    gj_pack_close(&pack);
    return done ? GJ_PACK_DONE : GJ_PACK_FAILED;
}
