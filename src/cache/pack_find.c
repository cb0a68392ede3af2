/* SPDX-License-Identifier: Apache-2.0 */
/* Finds members of an open pack. */
#include <string.h>

#include "cache/pack_impl.h"

/* The index was checked when the pack was opened. */
static struct gj_pack_record read_record(const gj_pack *pack, size_t idx)
{
    struct gj_pack_record record = {0};
    (void)gj_pack_record_get(pack->idx + idx * GJ_PACK_RECORD_BYTES, &record);
    return record;
}

/* A file that was written over since then must not lead out of the mapping. */
static bool is_inside(const gj_pack *pack, const struct gj_pack_record *record)
{
    return record->offset <= pack->bytes && record->bytes <= pack->bytes - record->offset;
}

static bool find(const gj_pack *pack, enum gj_pack_kind kind, const char *name, const void **data,
                 size_t *bytes)
{
    struct gj_pack_record wanted;
    if (!gj_pack_record_make(kind, name, &wanted) || !gj_pack_is_intact(pack, NULL))
        return false;
    size_t low = 0, high = pack->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct gj_pack_record record = read_record(pack, middle);
        const int order = gj_pack_record_compare(&record, &wanted);
        if (order == 0 && is_inside(pack, &record)) {
            *data = pack->data + record.offset;
            *bytes = (size_t)record.bytes;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool gj_pack_find_entry(const gj_pack *pack, const char *entry_name, const void **data, size_t *bytes)
{
    return find(pack, GJ_PACK_ENTRY, entry_name, data, bytes);
}

bool gj_pack_find_stamp(const gj_pack *pack, const char *stamp_name, const void **data, size_t *bytes)
{
    const bool is_default = strcmp(stamp_name, GJ_STAMP_DEFAULT) == 0;
    return find(pack, is_default ? GJ_PACK_DEFAULT_STAMP : GJ_PACK_STAMP, stamp_name, data, bytes);
}

size_t gj_pack_count(const gj_pack *pack)
{
    return pack->count;
}

bool gj_pack_member(const gj_pack *pack, size_t idx, struct gj_pack_member *member)
{
    if (idx >= pack->count || !gj_pack_is_intact(pack, NULL))
        return false;
    const struct gj_pack_record record = read_record(pack, idx);
    if (!is_inside(pack, &record))
        return false;
    struct gj_pack_member found = {
        .kind = record.kind, .data = pack->data + record.offset, .bytes = (size_t)record.bytes};
    if (record.kind == GJ_PACK_DEFAULT_STAMP)
        strcpy(found.name, GJ_STAMP_DEFAULT);
    else
        gj_hash_hex(&record.name, found.name);
    if (record.kind == GJ_PACK_ENTRY)
        strcat(found.name, GJ_ENTRY_SUFFIX);
    *member = found;
    return true;
}
