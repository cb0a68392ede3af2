/* SPDX-License-Identifier: Apache-2.0 */
/* 128-bit hash of tagged, length-delimited fields (XXH3), so that fields can neither run together nor alias.
 */
#ifndef GJ_BASE_HASH_H
#define GJ_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gj_hash {
    unsigned char bytes[16]; /* canonical (big-endian) order: equal on every machine */
};

/* Hash of one byte string. */
struct gj_hash gj_hash_bytes(const void *data, size_t length);
uint64_t gj_hash64(const void *data, size_t length);

/* Hash of byte strings as one, put together in this order: equal to gj_hash_bytes of that one. */
struct gj_hash_part {
    const void *data;
    size_t length;
};
struct gj_hash gj_hash_parts(const struct gj_hash_part *parts, size_t count);

/* One field of a hash: tag says what it is, e.g. "unit". */
struct gj_hash_field {
    const char *tag;
    const void *data;
    size_t length;
};
/* Returns a hash of zeros when memory runs out; *ok tells. */
struct gj_hash gj_hash_fields(const struct gj_hash_field *fields, size_t count, int *ok);

/* 32 lower-case hexadecimal digits and a zero. */
void gj_hash_hex(const struct gj_hash *hash, char hex[33]);
/* Reads 32 lower-case hexadecimal digits, whatever stands behind them. False, and *hash untouched, when there
 * are fewer. */
bool gj_hash_from_hex(const char *hex, struct gj_hash *hash);

#endif
