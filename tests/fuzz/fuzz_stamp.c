/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler stamps. Exactly the one text of a printable version and an identity without a zero byte is a
 * stamp, and only under the name of that identity. The bytes are tried as they are, with the check made
 * right, and as version and identity of a stamp. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "seal.h"

#include "cache/cache_impl.h"

static const char head[] = "gemmjit compiler stamp 1\nversion ", middle[] = "\nidentity ",
                  last[] = "\ncheck ";
enum { HEAD = sizeof head - 1, MIDDLE = sizeof middle - 1, LAST = sizeof last - 1, CHECK = 33 };

static bool is_printable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return length > 0;
}

/* The grammar of docs/cache_format.md, apart from the code. identity is the text that is found. */
static bool is_stamp(const uint8_t *data, size_t size, char *identity)
{
    const char *const text = (const char *)data;
    if (size < HEAD || memcmp(text, head, HEAD) != 0)
        return false;
    const char *const newline = memchr(text + HEAD, '\n', size - HEAD);
    if (!newline || !is_printable(text + HEAD, (size_t)(newline - text) - HEAD))
        return false;
    const size_t from = (size_t)(newline - text) + MIDDLE;
    if (size < from + LAST + CHECK || memcmp(newline, middle, MIDDLE) != 0)
        return false;
    const size_t to = size - LAST - CHECK;
    memcpy(identity, text + from, to - from);
    identity[to - from] = '\0';
    uint8_t *const sealed = fuzz_copy(data, size);
    seal_stamp(sealed, size);
    const bool is_sound = memcmp(text + to, last, LAST) == 0 && memcmp(sealed, data, size) == 0 &&
                          strlen(identity) == to - from;
    free(sealed);
    return is_sound;
}

static bool check(const uint8_t *data, size_t size)
{
    char *const identity = malloc(size + 1);
    char name[33] = GJ_STAMP_DEFAULT;
    REQUIRE(identity != NULL);
    identity[0] = '\0';
    const bool is_sound = is_stamp(data, size, identity);
    if (identity[0] != '\0') {
        const struct gj_hash hash = gj_hash_bytes(identity, strlen(identity));
        gj_hash_hex(&hash, name);
    }
    uint8_t *const copy = fuzz_copy(data, size);
    const char *reason;
    fuzz_memory_begin();
    REQUIRE(gj_stamp_check(name, copy, size, &reason) == is_sound);
    REQUIRE((reason == NULL) == is_sound && (is_sound || reason[0] != '\0'));
    REQUIRE(!gj_stamp_check(identity[0] != '\0' ? GJ_STAMP_DEFAULT : "x", copy, size, &reason));
    REQUIRE(reason != NULL && fuzz_memory_end() <= 6 * size + 1024);
    REQUIRE(size == 0 || memcmp(copy, data, size) == 0);
    free(copy);
    free(identity);
    return is_sound;
}

/* Takes the bytes as a version and, behind its end of line, an identity. */
static void check_made(const uint8_t *data, size_t size)
{
    uint8_t made[FUZZ_SEED_MAX];
    char *const version = fuzz_text(data, size);
    char *const newline = strchr(version, '\n');
    if (newline)
        *newline = '\0';
    const char *const identity = newline ? newline + 1 : "";
    if (strlen(version) + strlen(identity) < sizeof made - 128) {
        const size_t bytes = make_stamp(identity, version, made);
        REQUIRE(check(made, bytes) == is_printable(version, strlen(version)));
    }
    free(version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    uint8_t *const sealed = fuzz_copy(data, size);
    seal_stamp(sealed, size);
    check(sealed, size);
    free(sealed);
    check_made(data, size);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    static const char *const identities[] = {"", "/usr/lib/libnvrtc.so.13 1234 5678", "a\nb",
                                             "\nidentity \ncheck "};
    return idx < 4 ? make_stamp(identities[idx], idx ? "nvrtc 13.0" : "~", data) : 0;
}
