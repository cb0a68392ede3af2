/* SPDX-License-Identifier: Apache-2.0 */
/* Packs as docs/cache_format.md has them, byte by byte. */
#include "pack_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct part part_entry(unsigned seed)
{
    struct sample sample;
    struct part part = {.kind = 1};
    sample_make(&sample, seed);
    sample.entry.cubin_bytes = 20 + seed % 7;
    void *data = gj_cache_entry_encode(&sample.entry, &part.bytes);
    assert_non_null(data);
    assert_in_range(part.bytes, 1, sizeof part.data);
    memcpy(part.data, data, part.bytes);
    free(data);
    memcpy(part.name, sample.name.text, sizeof part.name);
    return part;
}

struct part part_stamp(const char *identity, const char *version)
{
    struct part part = {.kind = identity[0] ? 2 : 3, .name = "default"};
    char hex[33];
    if (identity[0]) {
        const struct gj_hash name = gj_hash_bytes(identity, strlen(identity));
        gj_hash_hex(&name, part.name);
    }
    const int length =
        snprintf((char *)part.data, sizeof part.data,
                 "gemmjit compiler stamp 1\nversion %s\nidentity %s\ncheck ", version, identity);
    const struct gj_hash check = gj_hash_bytes(part.data, (size_t)length);
    gj_hash_hex(&check, hex);
    part.bytes = (size_t)(length + sprintf((char *)part.data + length, "%s\n", hex));
    return part;
}

/* -- Bytes of a pack --------------------------------------------------------------------------------- */

static void put_number(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static void put_record(unsigned char *at, const struct part *part, size_t offset)
{
    memset(at, 0, PACK_RECORD_BYTES);
    for (int i = 0; i < 16 && part->kind != 3; i++) {
        const char digits[3] = {part->name[2 * i], part->name[2 * i + 1], '\0'};
        at[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    put_number(at + 16, (uint64_t)part->kind, 4);
    put_number(at + 24, offset, 8);
    put_number(at + 32, part->bytes, 8);
}

unsigned char *pack_record(struct built *built, size_t idx)
{
    return built->data + built->bytes - (built->count - idx) * PACK_RECORD_BYTES;
}

void pack_seal(struct built *built)
{
    unsigned char covered[PACK_MAX];
    const size_t idx_bytes = built->count * PACK_RECORD_BYTES;
    memcpy(covered, built->data, 16);
    memset(covered + 16, 0, 16);
    memcpy(covered + PACK_HEAD_BYTES, built->data + built->bytes - idx_bytes, idx_bytes);
    const struct gj_hash hash = gj_hash_bytes(covered, PACK_HEAD_BYTES + idx_bytes);
    memcpy(built->data + 16, hash.bytes, 16);
}

void pack_build(struct built *built, const struct part *parts, size_t count)
{
    static const unsigned char magic[8] = {0x89, 'G', 'J', 'P', '\r', '\n', 0x1a, '\n'};
    *built = (struct built){.bytes = PACK_HEAD_BYTES, .count = count};
    assert_in_range(count, 1, PACK_MEMBERS_MAX);
    memcpy(built->data, magic, sizeof magic);
    put_number(built->data + 8, 1, 4);
    put_number(built->data + 12, count, 4);
    for (size_t i = 0; i < count; i++) {
        built->offset[i] = built->bytes;
        built->length[i] = parts[i].bytes;
        memcpy(built->data + built->bytes, parts[i].data, parts[i].bytes);
        built->bytes = (built->bytes + parts[i].bytes + 15) / 16 * 16;
    }
    for (size_t i = 0; i < count; i++) {
        put_record(built->data + built->bytes, &parts[i], built->offset[i]);
        built->bytes += PACK_RECORD_BYTES;
    }
    pack_seal(built);
}

/* -- The same as a directory ------------------------------------------------------------------------- */

struct path part_path(const char *root, const struct part *part)
{
    return part->kind == 1 ? path_format("%.4000s/v1/%.2s/%s", root, part->name, part->name)
                           : path_format("%.4000s/v1/compilers/%s", root, part->name);
}

void put_parts(struct scratch *scratch, const struct part *parts, size_t count)
{
    const char *const root = scratch->root.text;
    (void)mkdir(root, 0700);
    (void)mkdir(path_format("%.4000s/v1", root).text, 0700);
    (void)mkdir(path_format("%.4000s/v1/compilers", root).text, 0700);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].kind == 1)
            (void)mkdir(path_format("%.4000s/v1/%.2s", root, parts[i].name).text, 0700);
        write_file(part_path(root, &parts[i]).text, parts[i].data, parts[i].bytes, 0600);
    }
}
