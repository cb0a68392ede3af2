/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a pack member by member: head and index follow when all are known, the name when all is synced. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/little_endian.h"
#include "cache/pack_impl.h"

static const char where_pack[] = "the pack";

static bool append(struct gj_pack_writer *writer, const void *data, size_t bytes, struct gj_fault *fault)
{
    if (gj_temp_write(writer->file, data, bytes)) {
        writer->at += bytes;
        return true;
    }
    *fault = gj_fault_errno(where_pack, "cannot be written");
    return false;
}

static bool append_padding(struct gj_pack_writer *writer, struct gj_fault *fault)
{
    static const unsigned char zeros[GJ_PACK_ALIGN];
    return append(writer, zeros, (size_t)(gj_pack_align(writer->at) - writer->at), fault);
}

bool gj_pack_writer_begin(struct gj_pack_writer *writer, gj_cache *cache, const struct gj_pack_place *place,
                          struct gj_fault *fault)
{
    static const unsigned char head[GJ_PACK_HEAD_BYTES]; /* the right one comes last */
    *writer = (struct gj_pack_writer){.place = place};
    /* For whoever may read the directory, unlike the cache: an image's users are many. */
    writer->file = gj_temp_create(cache, place->dir, 0644, &writer->temp, fault);
    if (writer->file < 0)
        return false;
    if (append(writer, head, sizeof head, fault))
        return true;
    gj_pack_writer_abandon(writer);
    return false;
}

bool gj_pack_writer_add(struct gj_pack_writer *writer, enum gj_pack_kind kind, const char *name,
                        const void *data, size_t bytes, struct gj_fault *fault)
{
    struct gj_pack_record record;
    unsigned char coded[GJ_PACK_RECORD_BYTES];
    const bool is_named = gj_pack_record_make(kind, name, &record);
    assert(is_named && bytes > 0 && bytes <= gj_pack_most_bytes(kind));
    assert(writer->count == 0 || gj_pack_record_compare(&writer->last, &record) < 0);
    if (!is_named || writer->count == UINT32_MAX) {
        *fault = (struct gj_fault){.where = where_pack, .what = "has too many members"};
        return false;
    }
    record.offset = writer->at;
    record.bytes = bytes;
    gj_pack_record_put(coded, &record);
    gj_strbuf_add(&writer->idx, (const char *)coded, sizeof coded);
    writer->count++;
    writer->last = record;
    return append(writer, data, bytes, fault) && append_padding(writer, fault);
}

/* -- The end ----------------------------------------------------------------------------------------- */

static bool write_idx(struct gj_pack_writer *writer, struct gj_fault *fault)
{
    if (!writer->idx.failed)
        return append(writer, writer->idx.text, writer->idx.length, fault);
    errno = ENOMEM;
    *fault = gj_fault_errno(where_pack, "cannot be written");
    return false;
}

/* Over the zeros that begin writes. */
static bool write_head(const struct gj_pack_writer *writer, struct gj_fault *fault)
{
    unsigned char head[GJ_PACK_HEAD_BYTES] = {0};
    memcpy(head, GJ_PACK_MAGIC, GJ_PACK_MAGIC_BYTES);
    gj_le32_put(head + GJ_PACK_VERSION_AT, GJ_PACK_VERSION);
    gj_le32_put(head + GJ_PACK_COUNT_AT, writer->count);
    const struct gj_hash checksum =
        gj_pack_checksum(head, (const unsigned char *)writer->idx.text, writer->idx.length);
    memcpy(head + GJ_PACK_CHECKSUM_AT, checksum.bytes, sizeof checksum.bytes);
    if (lseek(writer->file, 0, SEEK_SET) == 0 && gj_temp_write(writer->file, head, sizeof head))
        return true;
    *fault = gj_fault_errno(where_pack, "cannot be written");
    return false;
}

static bool put_in_place(const struct gj_pack_writer *writer, struct gj_fault *fault)
{
    struct stat status;
    const struct gj_pack_place *place = writer->place;
    if (!gj_temp_finish(writer->file))
        *fault = gj_fault_errno(where_pack, "cannot be synced");
    else if (fstat(writer->file, &status) != 0)
        *fault = gj_fault_errno(where_pack, "cannot be examined");
    else if (status.st_size < 0 || (uintmax_t)status.st_size != writer->at)
        *fault = (struct gj_fault){.where = where_pack, .what = "is not as long as what was written into it"};
    else if (renameat(place->dir, writer->temp.text, place->dir, place->name) != 0)
        *fault = gj_fault_errno(where_pack, "cannot be renamed to its name");
    else
        return true;
    return false;
}

static void end(struct gj_pack_writer *writer)
{
    close(writer->file); /* nothing to learn from: the file was finished, or is not wanted */
    writer->file = -1;
    gj_strbuf_free(&writer->idx);
}

bool gj_pack_writer_finish(struct gj_pack_writer *writer, struct gj_fault *fault)
{
    if (!write_idx(writer, fault) || !write_head(writer, fault) || !put_in_place(writer, fault)) {
        gj_pack_writer_abandon(writer);
        return false;
    }
    (void)gj_temp_sync(writer->place->dir); /* the pack is in place whatever this says */
    end(writer);
    return true;
}

void gj_pack_writer_abandon(struct gj_pack_writer *writer)
{
    (void)unlinkat(writer->place->dir, writer->temp.text, 0);
    end(writer);
}
