/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a pack's index, to bytes and back. */
#include "cache/pack_format.h"

#include <string.h>

#include "cache/cache_impl.h"
#include "cache/little_endian.h"

/* Offsets within a record; its name stands first. */
enum { KIND_AT = 16, FLAGS_AT = 20, OFFSET_AT = 24, BYTES_AT = 32 };

bool gj_pack_record_make(enum gj_pack_kind kind, const char *name, struct gj_pack_record *record)
{
    *record = (struct gj_pack_record){.kind = kind};
    switch (kind) {
    case GJ_PACK_ENTRY:
        return gj_name_is_entry(name) && gj_hash_from_hex(name, &record->name);
    case GJ_PACK_STAMP:
        return gj_name_is_stamp(name) && gj_hash_from_hex(name, &record->name);
    case GJ_PACK_DEFAULT_STAMP:
        return strcmp(name, GJ_STAMP_DEFAULT) == 0;
    }
    return false;
}

void gj_pack_record_put(unsigned char at[GJ_PACK_RECORD_BYTES], const struct gj_pack_record *record)
{
    memcpy(at, record->name.bytes, sizeof record->name.bytes);
    gj_le32_put(at + KIND_AT, (uint32_t)record->kind);
    gj_le32_put(at + FLAGS_AT, 0);
    gj_le64_put(at + OFFSET_AT, record->offset);
    gj_le64_put(at + BYTES_AT, record->bytes);
}

bool gj_pack_record_get(const unsigned char at[GJ_PACK_RECORD_BYTES], struct gj_pack_record *record)
{
    const uint32_t kind = gj_le32_get(at + KIND_AT);
    if (kind < GJ_PACK_ENTRY || kind > GJ_PACK_DEFAULT_STAMP || gj_le32_get(at + FLAGS_AT) != 0)
        return false;
    memcpy(record->name.bytes, at, sizeof record->name.bytes);
    record->kind = (enum gj_pack_kind)kind;
    record->offset = gj_le64_get(at + OFFSET_AT);
    record->bytes = gj_le64_get(at + BYTES_AT);
    return true;
}

int gj_pack_record_compare(const struct gj_pack_record *a, const struct gj_pack_record *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return memcmp(a->name.bytes, b->name.bytes, sizeof a->name.bytes);
}

uint64_t gj_pack_most_bytes(enum gj_pack_kind kind)
{
    return kind == GJ_PACK_ENTRY ? GJ_CACHE_FILE_MAX : GJ_STAMP_FILE_MAX;
}

struct gj_hash gj_pack_checksum(const unsigned char head[GJ_PACK_HEAD_BYTES], const unsigned char *idx,
                                size_t idx_bytes)
{
    static const struct gj_hash zeros;
    const struct gj_hash_part parts[] = {
        {head, GJ_PACK_CHECKSUM_AT}, {&zeros, sizeof zeros}, {idx, idx_bytes}};
    return gj_hash_parts(parts, sizeof parts / sizeof parts[0]);
}
