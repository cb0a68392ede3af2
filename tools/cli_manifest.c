/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a manifest of keys: {"version": 1, "keys": ["...", ...]} and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"

#define FAIL_MANIFEST(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

/* Every member is known and given once. */
static enum gj_status check_members(const char *path, const cJSON *document, const cJSON **version,
                                    const cJSON **keys, gj_error **error)
{
    if (!cJSON_IsObject(document))
        FAIL_MANIFEST(error, "%s: the document is not an object with the members version and keys", path);
    for (const cJSON *member = document->child; member; member = member->next) {
        const cJSON **const found = strcmp(member->string, "version") == 0 ? version
                                    : strcmp(member->string, "keys") == 0  ? keys
                                                                           : NULL;
        if (found == NULL)
            FAIL_MANIFEST(error, "%s: unknown member \"%s\": the members are version, keys", path,
                          gj_utf8_quote(member->string, strlen(member->string)).text);
        if (*found)
            FAIL_MANIFEST(error, "%s: member %s is given twice", path, member->string);
        *found = member;
    }
    return GJ_OK;
}

static enum gj_status check_document(const char *path, const cJSON *document, const cJSON **keys,
                                     gj_error **error)
{
    const cJSON *version = NULL;
    GJ_TRY(check_members(path, document, &version, keys, error));
    if (!cJSON_IsNumber(version))
        FAIL_MANIFEST(error, "%s: no number in member version: 1 is the only version", path);
    if (version->valuedouble < 1 || version->valuedouble > 1)
        FAIL_MANIFEST(error, "%s: version %g is unknown: 1 is the only version", path, version->valuedouble);
    if (!cJSON_IsArray(*keys) || (*keys)->child == NULL)
        FAIL_MANIFEST(error, "%s: member keys is not an array with at least one key", path);
    int i = 0;
    for (const cJSON *key = (*keys)->child; key; key = key->next, i++)
        if (!cJSON_IsString(key))
            FAIL_MANIFEST(error, "%s: keys[%d] is not a string", path, i);
    return GJ_OK;
}

static enum gj_status copy_keys(const cJSON *list, char ***keys, size_t *num_keys, gj_error **error)
{
    const size_t count = (size_t)cJSON_GetArraySize(list);
    char **const copies = calloc(count, sizeof(*copies));
    size_t i = 0;
    for (const cJSON *key = list->child; copies && key; key = key->next, i++)
        if ((copies[i] = strdup(key->valuestring)) == NULL)
            break;
    if (i < count) {
        while (copies && i > 0)
            free(copies[--i]);
        free(copies);
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %zu keys", count);
    }
    *keys = copies;
    *num_keys = count;
    return GJ_OK;
}

enum gj_status cli_manifest_read(const char *path, char ***keys, size_t *num_keys, gj_error **error)
{
    cJSON *document = NULL;
    const cJSON *list = NULL;
    enum gj_status status = cli_json_read(path, &document, error);
    if (status == GJ_OK)
        status = check_document(path, document, &list, error);
    if (status == GJ_OK)
        status = copy_keys(list, keys, num_keys, error);
    cJSON_Delete(document);
    return status;
}
