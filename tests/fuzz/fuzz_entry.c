/* SPDX-License-Identifier: Apache-2.0 */
/* Entries. What decodes lies in its bytes and encodes to the very same; what is refused leaves the results.
 * The bytes are tried as they are, and with lengths and checksum made right, so that the fields are reached;
 * and they are taken as the fields of an entry, which must come back. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "seal.h"

#include "cache/cache_impl.h"
#include "cache/entry_format.h"

static void check_text(const char *text, const uint8_t *data, size_t size)
{
    const uintptr_t at = (uintptr_t)text, start = (uintptr_t)data;
    REQUIRE(at >= start + GJ_ENTRY_FIELDS_AT && at < start + size);
    REQUIRE(memchr(text, '\0', start + size - at) != NULL);
}

static void check_accepted(const struct gj_cache_entry *entry, const uint8_t *data, size_t size)
{
    check_text(entry->key_text, data, size);
    check_text(entry->compiler, data, size);
    check_text(entry->arch, data, size);
    check_text(entry->options, data, size);
    check_text(entry->entry_name, data, size);
    REQUIRE(entry->registers >= 0 && entry->threads >= 0 && entry->smem_bytes >= 0 && entry->stages >= 0 &&
            entry->spill_bytes >= 0);
    const uint8_t *const cubin = entry->cubin;
    REQUIRE(cubin > data && entry->cubin_bytes > 0 && cubin + entry->cubin_bytes == data + size);
    REQUIRE((cubin - data) % GJ_ENTRY_CUBIN_ALIGN == 0);
    size_t bytes = 0;
    void *const encoded = gj_cache_entry_encode(entry, &bytes);
    REQUIRE(encoded != NULL && bytes == size && memcmp(encoded, data, size) == 0);
    free(encoded);
    REQUIRE(gj_entry_difference(entry, entry) == NULL);
    const struct gj_cache_name name =
        gj_cache_name_make(&entry->unit_hash, entry->compiler, entry->arch, entry->options);
    REQUIRE(gj_entry_name_problem(name.text, entry) == NULL);
}

/* The three ways to decode agree. */
static bool check(const uint8_t *data, size_t size)
{
    uint8_t *const copy = fuzz_copy(data, size);
    struct gj_cache_entry untouched, viewed, decoded, adopted;
    const char *reason = NULL;
    memset(&untouched, 0xa5, sizeof untouched);
    viewed = decoded = adopted = untouched;
    fuzz_memory_begin();
    const bool is_entry = gj_entry_view(copy, size, &viewed, &reason);
    REQUIRE(gj_entry_view(copy, size, &(struct gj_cache_entry){0}, NULL) == is_entry);
    REQUIRE(fuzz_memory_end() == 0);
    REQUIRE(is_entry == (reason == NULL) && (is_entry || reason[0] != '\0'));
    fuzz_memory_begin();
    REQUIRE(gj_cache_entry_decode(copy, size, &decoded, &reason) == is_entry);
    if (is_entry) {
        REQUIRE(viewed.storage == NULL);
        check_accepted(&viewed, copy, size);
        check_accepted(&decoded, decoded.storage, size);
        gj_cache_entry_free(&decoded);
    }
    REQUIRE(fuzz_memory_end() <= 3 * size + 1024);
    REQUIRE(gj_entry_adopt(copy, size, &adopted, NULL) == is_entry);
    REQUIRE(size == 0 || memcmp(copy, data, size) == 0);
    if (is_entry) {
        REQUIRE(adopted.storage == copy);
        gj_cache_entry_free(&adopted);
        return true;
    }
    REQUIRE(memcmp(&viewed, &untouched, sizeof viewed) == 0);
    REQUIRE(memcmp(&decoded, &untouched, sizeof decoded) == 0);
    REQUIRE(memcmp(&adopted, &untouched, sizeof adopted) == 0);
    free(copy);
    return false;
}

/* Takes the bytes as texts that zeros end, then numbers, then the cubin. */
static void check_fields(const uint8_t *data, size_t size)
{
    char *texts[5];
    int32_t numbers[5] = {0};
    for (size_t i = 0; i < 5; i++) {
        texts[i] = fuzz_text(data, size);
        const size_t taken = strlen(texts[i]) < size ? strlen(texts[i]) + 1 : size;
        data += taken;
        size -= taken;
    }
    if (size > sizeof numbers) {
        memcpy(numbers, data, sizeof numbers);
        data += sizeof numbers;
        size -= sizeof numbers;
    }
    const struct gj_cache_entry made = {.key_text = texts[0],
                                        .compiler = texts[1],
                                        .arch = texts[2],
                                        .options = texts[3],
                                        .entry_name = texts[4],
                                        .unit_hash = gj_hash_bytes(data, size),
                                        .registers = numbers[0],
                                        .threads = numbers[1],
                                        .smem_bytes = numbers[2],
                                        .stages = numbers[3],
                                        .spill_bytes = numbers[4],
                                        .cubin = data,
                                        .cubin_bytes = size};
    bool is_legal = size > 0;
    for (size_t i = 0; i < 5; i++)
        is_legal = is_legal && numbers[i] >= 0 && strlen(texts[i]) < GJ_ENTRY_TEXT_MAX;
    size_t bytes = 0;
    void *const encoded = gj_cache_entry_encode(&made, &bytes);
    REQUIRE((encoded != NULL) == is_legal);
    REQUIRE(!encoded || check(encoded, bytes));
    free(encoded);
    for (size_t i = 0; i < 5; i++)
        free(texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    uint8_t *const sealed = fuzz_copy(data, size);
    seal_entry(sealed, size);
    check(sealed, size);
    free(sealed);
    check_fields(data, size);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    return idx < 4 ? make_entry((unsigned)idx, data) : 0;
}
