/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an entry file, format version 1: the one table of its fields. Grammar: docs/cache_format.md. */
#ifndef GJ_CACHE_ENTRY_FORMAT_H
#define GJ_CACHE_ENTRY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"

/* History: 1 first version. A change of these bytes, or of what a name is a hash of, is a new version. */
#define GJ_ENTRY_VERSION 1u
/* As PNG's: a high bit, line ends and an end-of-file sign, so that a transfer in text mode shows. */
#define GJ_ENTRY_MAGIC "\x89GJC\r\n\x1a\n"

enum {
    GJ_ENTRY_MAGIC_BYTES = 8,
    GJ_ENTRY_VERSION_AT = 8,
    GJ_ENTRY_FIELDS_BYTES_AT = 12,
    GJ_ENTRY_CUBIN_BYTES_AT = 16,
    GJ_ENTRY_CHECKSUM_AT = 24,
    GJ_ENTRY_FIELDS_AT = 40,
    GJ_ENTRY_FIELD_HEAD_BYTES = 8,
    GJ_ENTRY_CUBIN_ALIGN = 16,
    GJ_ENTRY_TEXT_MAX = 64 << 10, /* with its zero */
    GJ_ENTRY_NUM_FIELDS = 11,
};

enum gj_entry_kind { GJ_ENTRY_TEXT, GJ_ENTRY_HASH, GJ_ENTRY_INT };

struct gj_entry_field {
    uint16_t tag;
    enum gj_entry_kind kind;
    bool expected;       /* compared with what the caller of gj_cache_load expects */
    size_t offset;       /* of the member in struct gj_cache_entry */
    const char *differs; /* what to say when it is not as expected */
};
/* In ascending order of tag. */
extern const struct gj_entry_field gj_entry_fields[GJ_ENTRY_NUM_FIELDS];

/* Offset of the cubin behind `fields_bytes` bytes of fields. */
static inline size_t gj_entry_cubin_at(size_t fields_bytes)
{
    const size_t align = GJ_ENTRY_CUBIN_ALIGN;
    return (GJ_ENTRY_FIELDS_AT + fields_bytes + align - 1) / align * align;
}

/* As gj_cache_entry_decode, but nothing is copied: the texts and the cubin point into the bytes, which the
 * caller keeps as they are for as long as it uses the entry, and storage is NULL. Writes to no byte, so any
 * number of threads may view the same ones. */
bool gj_entry_view(const void *data, size_t bytes, struct gj_cache_entry *entry, const char **reason);

/* As gj_cache_entry_decode, but the bytes are malloc'ed and become the entry's storage. On failure they stay
 * the caller's. */
bool gj_entry_adopt(void *storage, size_t bytes, struct gj_cache_entry *entry, const char **reason);

/* NULL when every compared field is equal, else what to say. */
const char *gj_entry_difference(const struct gj_cache_entry *entry, const struct gj_cache_entry *expected);

#endif
