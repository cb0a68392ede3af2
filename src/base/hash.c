/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 over bytes and over tagged fields. */
#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* The header alone is enough: nothing of libxxhash is linked. */
#define XXH_INLINE_ALL
#include <xxhash.h>

static struct gj_hash canonical(XXH128_hash_t value)
{
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, value);
    struct gj_hash hash;
    static_assert(sizeof(hash.bytes) == sizeof(bytes.digest), "a hash is 128 bits");
    memcpy(hash.bytes, bytes.digest, sizeof(hash.bytes));
    return hash;
}

struct gj_hash gj_hash_bytes(const void *data, size_t length)
{
    return canonical(XXH3_128bits(length ? data : "", length));
}

uint64_t gj_hash64(const void *data, size_t length)
{
    return XXH3_64bits(length ? data : "", length);
}

struct gj_hash gj_hash_parts(const struct gj_hash_part *parts, size_t count)
{
    XXH3_state_t state; /* on the stack: nothing here can fail */
    (void)XXH3_128bits_reset(&state);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > 0)
            (void)XXH3_128bits_update(&state, parts[i].data, parts[i].length);
    }
    return canonical(XXH3_128bits_digest(&state));
}

/* Length first, in a byte order of its own: where a field ends never depends on what it holds. */
static void add_delimited(XXH3_state_t *state, const void *data, size_t length)
{
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)length >> (8 * i));
    XXH3_128bits_update(state, prefix, sizeof(prefix));
    if (length > 0)
        XXH3_128bits_update(state, data, length);
}

struct gj_hash gj_hash_fields(const struct gj_hash_field *fields, size_t count, int *ok)
{
    /* On the stack: the state is about 600 bytes, and so nothing here can fail. */
    XXH3_state_t state;
    const int ready = XXH3_128bits_reset(&state) == XXH_OK;
    if (ok)
        *ok = ready;
    if (!ready)
        return (struct gj_hash){{0}};
    for (size_t i = 0; i < count; i++) {
        add_delimited(&state, fields[i].tag, strlen(fields[i].tag));
        add_delimited(&state, fields[i].data, fields[i].length);
    }
    return canonical(XXH3_128bits_digest(&state));
}

void gj_hash_hex(const struct gj_hash *hash, char hex[33])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(hash->bytes); i++) {
        hex[2 * i] = digits[hash->bytes[i] >> 4];
        hex[2 * i + 1] = digits[hash->bytes[i] & 15];
    }
    hex[32] = '\0';
}

bool gj_hash_from_hex(const char *hex, struct gj_hash *hash)
{
    static const char digits[] = "0123456789abcdef";
    struct gj_hash read = {{0}};
    for (size_t i = 0; i < 2 * sizeof(read.bytes); i++) {
        const char *const digit = hex[i] ? strchr(digits, hex[i]) : NULL;
        if (!digit)
            return false;
        read.bytes[i / 2] = (unsigned char)(read.bytes[i / 2] << 4 | (digit - digits));
    }
    *hash = read;
    return true;
}
