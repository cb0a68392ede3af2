/* SPDX-License-Identifier: Apache-2.0 */
/* Sample entries and stamps, and checksums made right again after bytes were changed. */
#include "seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"
#include "cache/little_endian.h"

size_t make_entry(unsigned number, uint8_t data[FUZZ_SEED_MAX])
{
    uint8_t cubin[64];
    char key_text[64];
    for (size_t i = 0; i < sizeof cubin; i++)
        cubin[i] = (uint8_t)(number + 7 * i);
    snprintf(key_text, sizeof key_text, "op=gemm,tile=128x%u", 16 * (number + 1));
    const struct gj_cache_entry entry = {
        .key_text = key_text,
        .unit_hash = gj_hash_bytes(key_text, strlen(key_text)),
        .compiler = "nvrtc 13.0",
        .arch = "sm_90a",
        .options = number % 2 ? "" : "-arch=sm_90a -default-device",
        .entry_name = "gj_gemm",
        .registers = 168,
        .threads = 384,
        .smem_bytes = 200000,
        .stages = 4,
        .spill_bytes = 0,
        .cubin = cubin,
        .cubin_bytes = 1 + 20 * (number % 4),
    };
    size_t bytes = 0;
    void *const encoded = gj_cache_entry_encode(&entry, &bytes);
    REQUIRE(encoded != NULL && bytes <= FUZZ_SEED_MAX);
    memcpy(data, encoded, bytes);
    free(encoded);
    return bytes;
}

/* The 32 digits of the hash of what stands before them. */
static void put_check(uint8_t *data, size_t at)
{
    const struct gj_hash hash = gj_hash_bytes(data, at);
    char hex[33];
    gj_hash_hex(&hash, hex);
    memcpy(data + at, hex, 32);
}

size_t make_stamp(const char *identity, const char *version, uint8_t data[FUZZ_SEED_MAX])
{
    const int length =
        snprintf((char *)data, FUZZ_SEED_MAX - 33,
                 "gemmjit compiler stamp 1\nversion %s\nidentity %s\ncheck ", version, identity);
    REQUIRE(length > 0 && length < FUZZ_SEED_MAX - 33);
    put_check(data, (size_t)length);
    data[length + 32] = '\n';
    return (size_t)length + 33;
}

void seal_entry(uint8_t *data, size_t size)
{
    if (size < GJ_ENTRY_FIELDS_AT)
        return;
    uint32_t fields_bytes = gj_le32_get(data + GJ_ENTRY_FIELDS_BYTES_AT);
    if (gj_entry_cubin_at(fields_bytes) >= size && size > GJ_ENTRY_FIELDS_AT + GJ_ENTRY_CUBIN_ALIGN)
        fields_bytes = (uint32_t)(size - GJ_ENTRY_FIELDS_AT - GJ_ENTRY_CUBIN_ALIGN);
    const size_t cubin_at = gj_entry_cubin_at(fields_bytes);
    gj_le32_put(data + GJ_ENTRY_FIELDS_BYTES_AT, fields_bytes);
    if (cubin_at < size)
        gj_le64_put(data + GJ_ENTRY_CUBIN_BYTES_AT, size - cubin_at);
    memset(data + GJ_ENTRY_CHECKSUM_AT, 0, sizeof(struct gj_hash));
    const struct gj_hash hash = gj_hash_bytes(data, size);
    memcpy(data + GJ_ENTRY_CHECKSUM_AT, hash.bytes, sizeof hash.bytes);
}

void seal_stamp(uint8_t *data, size_t size)
{
    if (size < 33)
        return;
    put_check(data, size - 33);
    data[size - 1] = '\n';
}
