/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an entry: exact, canonical, and safe to read whatever they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/cache.h"

enum { CHECKSUM_AT = 24, FIELDS_AT = 40, FILE_MAX = 64 << 20, TEXT_MAX = 64 << 10 };

static const unsigned char small_cubin[] = {0x7f, 'E', 'L', 'F'};

static struct gj_cache_entry small_entry(void)
{
    struct gj_cache_entry entry = {.key_text = "k",
                                   .compiler = "nvrtc 13.0",
                                   .arch = "sm_90a",
                                   .options = "",
                                   .entry_name = "gj",
                                   .registers = 168,
                                   .threads = 384,
                                   .smem_bytes = 0x01020304,
                                   .stages = 4,
                                   .spill_bytes = 0,
                                   .cubin = small_cubin,
                                   .cubin_bytes = 4};
    for (int i = 0; i < 16; i++)
        entry.unit_hash.bytes[i] = (unsigned char)(0xa0 + i);
    return entry;
}

static unsigned char *encode_small(size_t *bytes)
{
    const struct gj_cache_entry entry = small_entry();
    unsigned char *data = gj_cache_entry_encode(&entry, bytes);
    assert_non_null(data);
    return data;
}

/* Makes the checksum right again, so that what lies behind it is tested. */
static void seal(unsigned char *data, size_t bytes)
{
    memset(data + CHECKSUM_AT, 0, 16);
    const struct gj_hash hash = gj_hash_bytes(data, bytes);
    memcpy(data + CHECKSUM_AT, hash.bytes, 16);
}

/* Decodes from a block of exactly this size, so that a sanitizer sees each byte read past the end. */
static bool decode(const unsigned char *data, size_t bytes, struct gj_cache_entry *entry, const char **reason)
{
    unsigned char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, data, bytes);
    *reason = NULL;
    const bool done = gj_cache_entry_decode(exact, bytes, entry, reason);
    free(exact);
    return done;
}

static void assert_refused(const unsigned char *data, size_t bytes, const char *why)
{
    struct gj_cache_entry entry = {.registers = -7};
    const char *reason;
    assert_false(decode(data, bytes, &entry, &reason));
    assert_non_null(reason);
    if (why)
        assert_string_equal(reason, why);
    assert_int_equal(entry.registers, -7); /* untouched */
    assert_null(entry.storage);
}

/* -- Bytes ------------------------------------------------------------------------------------------- */

/* The checksum was computed by a program of its own, with libxxhash, from these bytes with zeros in its
 * place. */
/* clang-format off */
static const unsigned char golden[] = {
    0x89, 'G', 'J', 'C', '\r', '\n', 0x1a, '\n',     /* magic */
    1, 0, 0, 0, 148, 0, 0, 0,                        /* format version, bytes of the fields */
    4, 0, 0, 0, 0, 0, 0, 0,                          /* bytes of the cubin */
    0x32, 0x20, 0x0a, 0xf2, 0xca, 0x7b, 0x65, 0x30,  /* checksum */
    0xd4, 0xc7, 0x66, 0x91, 0x47, 0x90, 0x64, 0x05,
    1, 0, 0, 0, 2, 0, 0, 0, 'k', 0,                  /* key_text */
    2, 0, 0, 0, 16, 0, 0, 0,                         /* unit_hash */
    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
    3, 0, 0, 0, 11, 0, 0, 0,                         /* compiler */
    'n', 'v', 'r', 't', 'c', ' ', '1', '3', '.', '0', 0,
    4, 0, 0, 0, 7, 0, 0, 0,                          /* arch */
    's', 'm', '_', '9', '0', 'a', 0,
    5, 0, 0, 0, 1, 0, 0, 0, 0,                       /* options */
    6, 0, 0, 0, 3, 0, 0, 0, 'g', 'j', 0,             /* entry_name */
    7, 0, 0, 0, 4, 0, 0, 0, 168, 0, 0, 0,            /* registers */
    8, 0, 0, 0, 4, 0, 0, 0, 0x80, 1, 0, 0,           /* threads */
    9, 0, 0, 0, 4, 0, 0, 0, 4, 3, 2, 1,              /* smem_bytes */
    10, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0,             /* stages */
    11, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,             /* spill_bytes */
    0, 0, 0, 0,                                      /* padding to 192 */
    0x7f, 'E', 'L', 'F',                             /* cubin */
};
/* clang-format on */

static void bytes_are_the_documented_ones(void **state)
{
    (void)state;
    size_t bytes = 0;
    unsigned char *data = encode_small(&bytes);
    assert_int_equal(bytes, sizeof golden);
    assert_memory_equal(data, golden, sizeof golden);
    free(data);
}

static void name_is_the_documented_hash(void **state)
{
    (void)state;
    const struct gj_cache_entry entry = small_entry();
    const struct gj_cache_name name =
        gj_cache_name_make(&entry.unit_hash, entry.compiler, entry.arch, entry.options);
    assert_string_equal(name.text, "6afc0ed7665dabfbcd508331bfbc1efe.gjc");
    struct gj_hash other = entry.unit_hash;
    other.bytes[15] ^= 1;
    const struct gj_cache_name changed[] = {
        gj_cache_name_make(&other, entry.compiler, entry.arch, entry.options),
        gj_cache_name_make(&entry.unit_hash, "nvrtc 13.1", entry.arch, entry.options),
        gj_cache_name_make(&entry.unit_hash, entry.compiler, "sm_90", entry.options),
        gj_cache_name_make(&entry.unit_hash, entry.compiler, entry.arch, "-lineinfo"),
        gj_cache_name_make(&entry.unit_hash, "nvrtc 13.0sm_90a", "", entry.options),
    };
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++)
        assert_string_not_equal(name.text, changed[i].text);
}

static void round_trip_gives_every_field(void **state)
{
    (void)state;
    char *longest = malloc(TEXT_MAX);
    assert_non_null(longest);
    memset(longest, 'x', TEXT_MAX - 1);
    longest[TEXT_MAX - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        struct gj_cache_entry entry = small_entry(), read;
        entry.options = i % 2 ? longest : longest + TEXT_MAX - 1 - i;
        entry.spill_bytes = INT32_MAX - i;
        const char *reason;
        size_t bytes = 0, again_bytes = 0;
        unsigned char *data = gj_cache_entry_encode(&entry, &bytes);
        assert_non_null(data);
        assert_true(decode(data, bytes, &read, &reason));
        assert_string_equal(read.key_text, "k");
        assert_string_equal(read.options, entry.options);
        assert_int_equal(read.smem_bytes, 0x01020304);
        assert_int_equal(read.spill_bytes, entry.spill_bytes);
        assert_int_equal((uintptr_t)read.cubin % 16, 0);
        unsigned char *again = gj_cache_entry_encode(&read, &again_bytes);
        assert_int_equal(again_bytes, bytes);
        assert_memory_equal(again, data, bytes);
        free(again);
        free(data);
        gj_cache_entry_free(&read);
        assert_null(read.storage);
        gj_cache_entry_free(&read); /* twice is legal */
    }
    free(longest);
}

static void encode_refuses_what_decode_would(void **state)
{
    (void)state;
    char *too_long = malloc(TEXT_MAX + 1);
    assert_non_null(too_long);
    memset(too_long, 'x', TEXT_MAX);
    too_long[TEXT_MAX] = '\0';
    struct gj_cache_entry bad[7];
    for (size_t i = 0; i < 7; i++)
        bad[i] = small_entry();
    bad[0].key_text = NULL;
    bad[1].options = too_long;
    bad[2].registers = -1;
    bad[3].cubin = NULL;
    bad[4].cubin_bytes = 0;
    bad[5].cubin_bytes = FILE_MAX;
    bad[6].cubin_bytes = SIZE_MAX;
    for (size_t i = 0; i < 7; i++) {
        size_t bytes = 5;
        assert_null(gj_cache_entry_encode(&bad[i], &bytes));
        assert_int_equal(bytes, 5);
    }
    free(too_long);
}

/* -- Damage ------------------------------------------------------------------------------------------ */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = encode_small(&bytes);
    for (size_t length = 0; length < bytes; length++) {
        assert_refused(data, length, NULL);
        if (length >= FIELDS_AT) {
            unsigned char copy[sizeof golden];
            memcpy(copy, data, length);
            seal(copy, length);
            assert_refused(copy, length, NULL);
        }
    }
    unsigned char longer[sizeof golden + 1] = {0};
    memcpy(longer, data, bytes);
    seal(longer, bytes + 1);
    assert_refused(longer, bytes + 1, "is longer or shorter than its head says");
    assert_false(gj_cache_entry_decode(NULL, (size_t)FILE_MAX + 1, NULL, NULL));
    free(data);
}

/* A file that ends in the padding, whose cubin length makes up for it modulo 2^64. */
static void lengths_cannot_wrap_round(void **state)
{
    (void)state;
    for (size_t bytes = 188; bytes < 192; bytes++) {
        unsigned char data[sizeof golden];
        memcpy(data, golden, bytes);
        memset(data + 16, 0xff, 8);
        data[16] = (unsigned char)(256 - (192 - bytes));
        seal(data, bytes);
        assert_refused(data, bytes, "is longer or shorter than its head says");
    }
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = encode_small(&bytes);
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_refused(data, bytes, NULL);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(data);
}

/* Refused, or the only bytes of what it says. */
static void assert_refused_or_canonical(const unsigned char *data, size_t bytes)
{
    struct gj_cache_entry entry;
    const char *reason;
    if (!decode(data, bytes, &entry, &reason))
        return;
    size_t again_bytes = 0;
    unsigned char *again = gj_cache_entry_encode(&entry, &again_bytes);
    assert_non_null(again);
    assert_int_equal(again_bytes, bytes);
    assert_memory_equal(again, data, bytes);
    free(again);
    gj_cache_entry_free(&entry);
}

static void resealed_damage_is_refused_or_canonical(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = encode_small(&bytes);
    for (size_t at = 0; at < bytes; at++) {
        const unsigned char old = data[at];
        for (unsigned value = 0; value < 256; value++) {
            data[at] = (unsigned char)value;
            seal(data, bytes);
            assert_refused_or_canonical(data, bytes);
        }
        data[at] = old;
    }
    uint32_t random = 1;
    for (int round = 0; round < 200000; round++) {
        unsigned char copy[sizeof golden];
        memcpy(copy, data, bytes);
        for (int i = 0; i < 3; i++) {
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % bytes] = (unsigned char)(random >> 24);
        }
        seal(copy, bytes);
        assert_refused_or_canonical(copy, bytes);
    }
    free(data);
}

/* -- Fields ------------------------------------------------------------------------------------------ */

/* Offsets of the fields in `golden`, and of the padding behind the last. */
static const size_t field_at[12] = {40, 50, 74, 93, 108, 117, 128, 140, 152, 164, 176, 188};

/* An entry of the fields named by `order` (1-based tags, 0 ends), sealed. Returns its bytes. */
static size_t build(unsigned char *data, const int *order)
{
    size_t at = FIELDS_AT;
    memcpy(data, golden, FIELDS_AT);
    for (; *order; order++) {
        const size_t from = field_at[*order - 1], length = field_at[*order] - from;
        memcpy(data + at, golden + from, length);
        at += length;
    }
    data[12] = (unsigned char)(at - FIELDS_AT);
    data[13] = (unsigned char)((at - FIELDS_AT) >> 8);
    for (; at % 16 != 0; at++)
        data[at] = 0;
    memcpy(data + at, small_cubin, 4);
    seal(data, at + 4);
    return at + 4;
}

static void fields_come_once_and_in_order(void **state)
{
    (void)state;
    static const struct {
        int order[14];
        const char *why;
    } cases[] = {
        {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, NULL},
        {{1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "has a repeated field or fields in a wrong order"},
        {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11}, "has a repeated or unknown field"},
        {{2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "lacks a field"},
        {{1, 2, 4, 5, 6, 7, 8, 9, 10, 11}, "lacks a field"},
        {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "lacks a field"},
        {{0}, "lacks a field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char data[512];
        const size_t bytes = build(data, cases[i].order);
        struct gj_cache_entry entry;
        const char *reason;
        if (cases[i].why) {
            assert_refused(data, bytes, cases[i].why);
        } else {
            assert_true(decode(data, bytes, &entry, &reason));
            gj_cache_entry_free(&entry);
        }
    }
}

static void each_rule_has_its_reason(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        unsigned char value;
        const char *why;
    } cases[] = {
        {0, 0x88, "does not begin as an entry does"},
        {8, 2, "has another format version"},
        {15, 0xff, "is shorter than its fields"},
        {16, 0, "has no cubin"},
        {23, 0xff, "is longer or shorter than its head says"},
        {40, 99, "has an unknown field"},
        {41, 1, "has an unknown field"},
        {42, 1, "has a field with unknown flags"},
        {44, 1, "has a text field that is not a text"}, /* no zero */
        {44, 3, "has a text field that is not a text"}, /* two of them */
        {47, 0xff, "has a field that is longer than the fields"},
        {54, 15, "has a hash field of a wrong length"},
        {132, 3, "has a number field of a wrong length or range"},
        {139, 0x80, "has a number field of a wrong length or range"},
        {188, 1, "has padding that is not zero"},
        {191, 0x80, "has padding that is not zero"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char data[sizeof golden];
        memcpy(data, golden, sizeof golden);
        data[cases[i].at] = cases[i].value;
        seal(data, sizeof golden);
        assert_refused(data, sizeof golden, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_the_documented_ones),
        cmocka_unit_test(name_is_the_documented_hash),
        cmocka_unit_test(round_trip_gives_every_field),
        cmocka_unit_test(encode_refuses_what_decode_would),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(lengths_cannot_wrap_round),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(resealed_damage_is_refused_or_canonical),
        cmocka_unit_test(fields_come_once_and_in_order),
        cmocka_unit_test(each_rule_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
