/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests. One that is read has a key at least, and printed again it has the same keys; another member in
 * it makes it refused. A refusal names the file, a place within it where it is no JSON, and leaves the
 * results. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../../tools/cli.h"

/* A node of cJSON for every two bytes, as in [0,0,0, and its overhead. */
enum { NODE_BYTES = 64 };

struct keys {
    char **texts;
    size_t count;
};

static enum gj_status read_keys(const void *data, size_t size, struct keys *keys, gj_error **error)
{
    struct fuzz_file file = fuzz_file_make(data, size);
    const enum gj_status status = cli_manifest_read(file.path, &keys->texts, &keys->count, error);
    fuzz_file_close(&file);
    return status;
}

static void free_keys(struct keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->texts[i]);
    free(keys->texts);
}

/* The manifest of these keys, as cJSON prints it. */
static char *print_keys(const struct keys *keys)
{
    cJSON *const document = cJSON_CreateObject();
    cJSON_AddNumberToObject(document, "version", 1);
    cJSON *const list = cJSON_AddArrayToObject(document, "keys");
    for (size_t i = 0; i < keys->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(keys->texts[i]));
    char *const text = cJSON_Print(document);
    cJSON_Delete(document);
    REQUIRE(text != NULL);
    return text;
}

static void check_accepted(const struct keys *keys, size_t size)
{
    size_t bytes = 0;
    REQUIRE(keys->count >= 1 && keys->count < size);
    for (size_t i = 0; i < keys->count; i++) {
        REQUIRE(keys->texts[i] != NULL);
        bytes += strlen(keys->texts[i]);
    }
    REQUIRE(bytes < size);
    char *const printed = print_keys(keys);
    struct keys again = {0};
    REQUIRE(read_keys(printed, strlen(printed), &again, NULL) == GJ_OK && again.count == keys->count);
    for (size_t i = 0; i < keys->count; i++)
        REQUIRE(strcmp(again.texts[i], keys->texts[i]) == 0);
    free_keys(&again);
    free(printed);
}

/* The bytes with a member more. */
static void check_more(const uint8_t *data, size_t size, const char *more)
{
    const size_t length = strlen(more);
    uint8_t *const longer = malloc(size + length);
    const uint8_t *const open = memchr(data, '{', size);
    REQUIRE(longer != NULL && open != NULL);
    const size_t before = (size_t)(open - data) + 1;
    memcpy(longer, data, before);
    memcpy(longer + before, more, length);
    memcpy(longer + before + length, data + before, size - before);
    struct keys none;
    REQUIRE(read_keys(longer, size + length, &none, NULL) == GJ_ERR_ARGUMENT);
    free(longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *no_texts = NULL;
    struct keys keys = {&no_texts, 7};
    gj_error *error = NULL;
    fuzz_memory_of_cjson();
    fuzz_memory_begin();
    struct fuzz_file file = fuzz_file_make(data, size);
    const enum gj_status status = cli_manifest_read(file.path, &keys.texts, &keys.count, &error);
    if (status == GJ_OK) {
        REQUIRE(error == NULL);
        check_accepted(&keys, size);
        check_more(data, size, "\"more\":1,");
        check_more(data, size, "\"version\":1,");
        check_more(data, size, "\"keys\":[\"\"],");
        free_keys(&keys);
    } else {
        REQUIRE(status == GJ_ERR_ARGUMENT && keys.texts == &no_texts && keys.count == 7);
        fuzz_check_json_error(error, file.path, data, size);
    }
    gj_error_free(&error);
    fuzz_file_close(&file);
    REQUIRE(fuzz_memory_end() <= 3 * NODE_BYTES * size + 65536);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    (void)idx, (void)data; /* the corpus has them */
    return 0;
}
