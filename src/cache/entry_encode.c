/* SPDX-License-Identifier: Apache-2.0 */
/* Entry to bytes: equal entries give equal bytes, whatever the host, time or path. */
#include <stdlib.h>
#include <string.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"
#include "cache/little_endian.h"

static const char *member_text(const struct gj_cache_entry *entry, const struct gj_entry_field *field)
{
    const char *text;
    memcpy(&text, (const char *)entry + field->offset, sizeof text);
    return text;
}

static int32_t member_int(const struct gj_cache_entry *entry, const struct gj_entry_field *field)
{
    int32_t value;
    memcpy(&value, (const char *)entry + field->offset, sizeof value);
    return value;
}

/* Bytes of a field's value; 0 when it cannot be stored. */
static size_t value_bytes(const struct gj_cache_entry *entry, const struct gj_entry_field *field)
{
    switch (field->kind) {
    case GJ_ENTRY_TEXT: {
        const char *text = member_text(entry, field);
        const size_t length = text ? strnlen(text, GJ_ENTRY_TEXT_MAX) : GJ_ENTRY_TEXT_MAX;
        return length < GJ_ENTRY_TEXT_MAX ? length + 1 : 0;
    }
    case GJ_ENTRY_HASH:
        return sizeof(struct gj_hash);
    case GJ_ENTRY_INT:
        return member_int(entry, field) >= 0 ? sizeof(int32_t) : 0;
    }
    return 0;
}

/* Writes the field at `at` and returns its end. */
static unsigned char *put_field(unsigned char *at, const struct gj_cache_entry *entry,
                                const struct gj_entry_field *field)
{
    const size_t bytes = value_bytes(entry, field);
    gj_le16_put(at, field->tag);
    gj_le16_put(at + 2, 0);
    gj_le32_put(at + 4, (uint32_t)bytes);
    at += GJ_ENTRY_FIELD_HEAD_BYTES;
    switch (field->kind) {
    case GJ_ENTRY_TEXT:
        memcpy(at, member_text(entry, field), bytes);
        break;
    case GJ_ENTRY_HASH:
        memcpy(at, (const char *)entry + field->offset, bytes);
        break;
    case GJ_ENTRY_INT:
        gj_le32_put(at, (uint32_t)member_int(entry, field));
        break;
    }
    return at + bytes;
}

/* Bytes of all fields; 0 when one cannot be stored. */
static size_t measure_fields(const struct gj_cache_entry *entry)
{
    size_t total = 0;
    for (size_t i = 0; i < GJ_ENTRY_NUM_FIELDS; i++) {
        const size_t bytes = value_bytes(entry, &gj_entry_fields[i]);
        if (bytes == 0)
            return 0;
        total += GJ_ENTRY_FIELD_HEAD_BYTES + bytes;
    }
    return total;
}

void *gj_cache_entry_encode(const struct gj_cache_entry *entry, size_t *bytes)
{
    const size_t fields_bytes = measure_fields(entry);
    const size_t cubin_at = gj_entry_cubin_at(fields_bytes);
    if (fields_bytes == 0 || !entry->cubin || entry->cubin_bytes == 0 ||
        entry->cubin_bytes > GJ_CACHE_FILE_MAX - cubin_at)
        return NULL;

    const size_t total = cubin_at + entry->cubin_bytes;
    unsigned char *data = calloc(1, total);
    if (!data)
        return NULL;
    memcpy(data, GJ_ENTRY_MAGIC, GJ_ENTRY_MAGIC_BYTES);
    gj_le32_put(data + GJ_ENTRY_VERSION_AT, GJ_ENTRY_VERSION);
    gj_le32_put(data + GJ_ENTRY_FIELDS_BYTES_AT, (uint32_t)fields_bytes);
    gj_le64_put(data + GJ_ENTRY_CUBIN_BYTES_AT, entry->cubin_bytes);
    unsigned char *at = data + GJ_ENTRY_FIELDS_AT;
    for (size_t i = 0; i < GJ_ENTRY_NUM_FIELDS; i++)
        at = put_field(at, entry, &gj_entry_fields[i]);
    memcpy(data + cubin_at, entry->cubin, entry->cubin_bytes);

    /* Last, while its own bytes are still zero. */
    const struct gj_hash checksum = gj_hash_bytes(data, total);
    memcpy(data + GJ_ENTRY_CHECKSUM_AT, checksum.bytes, sizeof checksum.bytes);
    *bytes = total;
    return data;
}
