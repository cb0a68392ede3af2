/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read and write packs share. */
#ifndef GJ_CACHE_PACK_IMPL_H
#define GJ_CACHE_PACK_IMPL_H

#include "cache/cache_impl.h"
#include "cache/pack_format.h"
#include "cache/temp_file.h"

/* Constant once it is open. */
struct gj_pack {
    int file;                  /* kept for its length; also keeps the file when its name goes */
    const unsigned char *data; /* the mapping */
    size_t bytes;
    const unsigned char *idx; /* `count` records that lie inside the mapping, in order */
    size_t count;
};

/* -- Writing ----------------------------------------------------------------------------------------- */

/* Where a pack goes: an open directory and a name in it. */
struct gj_pack_place {
    int dir;
    char *name;
};
/* False with *fault, whose error is 0 when the path is none for a pack. */
bool gj_pack_place_open(const gj_cache *cache, const char *path, struct gj_pack_place *place,
                        struct gj_fault *fault);
void gj_pack_place_close(struct gj_pack_place *place);

/* A pack being written to a temporary file. */
struct gj_pack_writer {
    const struct gj_pack_place *place;
    struct gj_temp_name temp;
    int file;
    uint64_t at; /* bytes written */
    struct gj_strbuf idx;
    uint32_t count;
    struct gj_pack_record last;
};
/* Each false with *fault. After begin succeeded, finish or abandon ends the use of the writer. */
bool gj_pack_writer_begin(struct gj_pack_writer *writer, gj_cache *cache, const struct gj_pack_place *place,
                          struct gj_fault *fault);
/* Appends a member; the caller adds them in the order of the index. */
bool gj_pack_writer_add(struct gj_pack_writer *writer, enum gj_pack_kind kind, const char *name,
                        const void *data, size_t bytes, struct gj_fault *fault);
/* Writes index and head, syncs, and renames the file to its place; on failure leaves nothing. */
bool gj_pack_writer_finish(struct gj_pack_writer *writer, struct gj_fault *fault);
/* Leaves nothing behind. */
void gj_pack_writer_abandon(struct gj_pack_writer *writer);

#endif
