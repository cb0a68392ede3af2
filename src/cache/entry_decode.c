/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to entry: any bytes are safe, and only exactly what gj_cache_entry_encode writes is taken. */
#include <stdlib.h>
#include <string.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"
#include "cache/little_endian.h"

static bool refuse(const char **reason, const char *text)
{
    if (reason)
        *reason = text;
    return false;
}

/* Lengths of the parts, proven to lie inside the file. */
struct parts {
    size_t fields_bytes, cubin_at, cubin_bytes;
};

static bool read_head(const unsigned char *data, size_t bytes, struct parts *parts, const char **reason)
{
    if (bytes < GJ_ENTRY_FIELDS_AT)
        return refuse(reason, "is shorter than the head of an entry");
    if (bytes > GJ_CACHE_FILE_MAX)
        return refuse(reason, "is larger than 64 MiB");
    if (memcmp(data, GJ_ENTRY_MAGIC, GJ_ENTRY_MAGIC_BYTES) != 0)
        return refuse(reason, "does not begin as an entry does");
    if (gj_le32_get(data + GJ_ENTRY_VERSION_AT) != GJ_ENTRY_VERSION)
        return refuse(reason, "has another format version");

    parts->fields_bytes = gj_le32_get(data + GJ_ENTRY_FIELDS_BYTES_AT);
    if (parts->fields_bytes > bytes - GJ_ENTRY_FIELDS_AT)
        return refuse(reason, "is shorter than its fields");
    parts->cubin_at = gj_entry_cubin_at(parts->fields_bytes);
    const uint64_t cubin_bytes = gj_le64_get(data + GJ_ENTRY_CUBIN_BYTES_AT);
    if (cubin_bytes == 0)
        return refuse(reason, "has no cubin");
    if (parts->cubin_at > bytes || cubin_bytes != bytes - parts->cubin_at)
        return refuse(reason, "is longer or shorter than its head says");
    parts->cubin_bytes = (size_t)cubin_bytes;
    return true;
}

static bool check_checksum(const unsigned char *data, size_t bytes, const char **reason)
{
    static const struct gj_hash zeros; /* what stood in the place of the checksum */
    const size_t behind = GJ_ENTRY_CHECKSUM_AT + sizeof zeros;
    const struct gj_hash_part parts[] = {
        {data, GJ_ENTRY_CHECKSUM_AT}, {&zeros, sizeof zeros}, {data + behind, bytes - behind}};
    const struct gj_hash computed = gj_hash_parts(parts, sizeof parts / sizeof parts[0]);
    if (memcmp(data + GJ_ENTRY_CHECKSUM_AT, computed.bytes, sizeof computed.bytes) != 0)
        return refuse(reason, "has a wrong checksum");
    return true;
}

static bool read_value(const unsigned char *value, size_t bytes, const struct gj_entry_field *field,
                       struct gj_cache_entry *entry, const char **reason)
{
    char *member = (char *)entry + field->offset;
    switch (field->kind) {
    case GJ_ENTRY_TEXT: {
        const char *text = (const char *)value;
        /* The first zero must be the last byte. */
        if (bytes == 0 || bytes > GJ_ENTRY_TEXT_MAX || strnlen(text, bytes) != bytes - 1)
            return refuse(reason, "has a text field that is not a text");
        memcpy(member, &text, sizeof text);
        return true;
    }
    case GJ_ENTRY_HASH:
        if (bytes != sizeof(struct gj_hash))
            return refuse(reason, "has a hash field of a wrong length");
        memcpy(member, value, bytes);
        return true;
    case GJ_ENTRY_INT: {
        if (bytes != sizeof(int32_t) || gj_le32_get(value) > INT32_MAX)
            return refuse(reason, "has a number field of a wrong length or range");
        const int32_t number = (int32_t)gj_le32_get(value);
        memcpy(member, &number, sizeof number);
        return true;
    }
    }
    return false;
}

/* Reads the field at *at, of which `left` bytes remain, and moves on. */
static bool read_field(const unsigned char **at, size_t *left, const struct gj_entry_field *field,
                       struct gj_cache_entry *entry, const char **reason)
{
    if (*left < GJ_ENTRY_FIELD_HEAD_BYTES)
        return refuse(reason, "lacks a field");
    const uint16_t tag = gj_le16_get(*at);
    if (tag > GJ_ENTRY_NUM_FIELDS)
        return refuse(reason, "has an unknown field");
    if (tag != field->tag)
        return refuse(reason,
                      tag < field->tag ? "has a repeated field or fields in a wrong order" : "lacks a field");
    if (gj_le16_get(*at + 2) != 0)
        return refuse(reason, "has a field with unknown flags");
    const size_t bytes = gj_le32_get(*at + 4);
    if (bytes > *left - GJ_ENTRY_FIELD_HEAD_BYTES)
        return refuse(reason, "has a field that is longer than the fields");
    if (!read_value(*at + GJ_ENTRY_FIELD_HEAD_BYTES, bytes, field, entry, reason))
        return false;
    *at += GJ_ENTRY_FIELD_HEAD_BYTES + bytes;
    *left -= GJ_ENTRY_FIELD_HEAD_BYTES + bytes;
    return true;
}

static bool read_fields(const unsigned char *data, const struct parts *parts, struct gj_cache_entry *entry,
                        const char **reason)
{
    const unsigned char *at = data + GJ_ENTRY_FIELDS_AT;
    size_t left = parts->fields_bytes;
    for (size_t i = 0; i < GJ_ENTRY_NUM_FIELDS; i++) {
        if (!read_field(&at, &left, &gj_entry_fields[i], entry, reason))
            return false;
    }
    if (left != 0)
        return refuse(reason, "has a repeated or unknown field");
    for (; at < data + parts->cubin_at; at++) {
        if (*at != 0)
            return refuse(reason, "has padding that is not zero");
    }
    return true;
}

bool gj_entry_view(const void *data, size_t bytes, struct gj_cache_entry *entry, const char **reason)
{
    struct parts parts;
    struct gj_cache_entry read = {0};
    if (!read_head(data, bytes, &parts, reason) || !check_checksum(data, bytes, reason) ||
        !read_fields(data, &parts, &read, reason))
        return false;
    read.cubin = (const unsigned char *)data + parts.cubin_at;
    read.cubin_bytes = parts.cubin_bytes;
    *entry = read;
    return true;
}

bool gj_entry_adopt(void *storage, size_t bytes, struct gj_cache_entry *entry, const char **reason)
{
    if (!gj_entry_view(storage, bytes, entry, reason))
        return false;
    entry->storage = storage;
    return true;
}

bool gj_cache_entry_decode(const void *data, size_t bytes, struct gj_cache_entry *entry, const char **reason)
{
    if (bytes > GJ_CACHE_FILE_MAX)
        return refuse(reason, "is larger than 64 MiB");
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return refuse(reason, "does not fit into memory");
    if (bytes)
        memcpy(copy, data, bytes);
    if (gj_entry_adopt(copy, bytes, entry, reason))
        return true;
    free(copy);
    return false;
}
