/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a pack: its head and the records of its index. Grammar: docs/cache_format.md. */
#ifndef GJ_CACHE_PACK_FORMAT_H
#define GJ_CACHE_PACK_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "cache/pack.h"

/* History: 1 first version. */
#define GJ_PACK_VERSION 1u
#define GJ_PACK_MAGIC "\x89GJP\r\n\x1a\n"

enum {
    GJ_PACK_MAGIC_BYTES = 8,
    GJ_PACK_VERSION_AT = 8,
    GJ_PACK_COUNT_AT = 12,
    GJ_PACK_CHECKSUM_AT = 16,
    GJ_PACK_HEAD_BYTES = 32,
    GJ_PACK_RECORD_BYTES = 40,
    /* As the cubin within an entry, and as malloc has it: a cubin in a pack is aligned as one that was read.
     * More would not reach the cubin, which stands behind fields of any length. */
    GJ_PACK_ALIGN = 16,
};

/* Offset of what follows something that ends at `at`. */
static inline uint64_t gj_pack_align(uint64_t at)
{
    const uint64_t align = GJ_PACK_ALIGN;
    return (at + align - 1) / align * align;
}

/* One member, as the index has it. The name of the default stamp is sixteen zero bytes. */
struct gj_pack_record {
    struct gj_hash name;
    enum gj_pack_kind kind;
    uint64_t offset, bytes;
};

/* The record that a file name stands for, without its place; false when it is no name of such a member. */
bool gj_pack_record_make(enum gj_pack_kind kind, const char *name, struct gj_pack_record *record);
void gj_pack_record_put(unsigned char at[GJ_PACK_RECORD_BYTES], const struct gj_pack_record *record);
/* False when the kind or the flags are not known. */
bool gj_pack_record_get(const unsigned char at[GJ_PACK_RECORD_BYTES], struct gj_pack_record *record);
/* The order of the index, as memcmp tells it: by kind, then by name. */
int gj_pack_record_compare(const struct gj_pack_record *a, const struct gj_pack_record *b);
/* The largest member of a kind. */
uint64_t gj_pack_most_bytes(enum gj_pack_kind kind);

/* Of the head, with zeros in the place of the checksum, and the index. */
struct gj_hash gj_pack_checksum(const unsigned char head[GJ_PACK_HEAD_BYTES], const unsigned char *idx,
                                size_t idx_bytes);

#endif
