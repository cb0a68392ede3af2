/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a manifest of keys: {"version": 1, "keys": ["...", ...]} and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli.h"

#define MANIFEST_BYTES_MAX (16 << 20)

#define FAIL_MANIFEST(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

static enum gj_status fail_read(const char *path, int code, gj_error **error)
{
    return gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, code, strerrorname_np(code),
                         "%s cannot be read: %s", path, strerror(code));
}

/* Reads until the end of the file; a pipe is as good as a regular file. */
static enum gj_status read_file(const char *path, struct gj_strbuf *text, gj_error **error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_read(path, errno, error);
    int code = 0;
    char piece[16384];
    for (;;) {
        const ssize_t got = read(file, piece, sizeof(piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            code = errno;
        if (got <= 0 || text->length > MANIFEST_BYTES_MAX)
            break;
        gj_strbuf_add(text, piece, (size_t)got);
    }
    close(file);
    gj_strbuf_puts(text, ""); /* an empty file is an empty text */
    if (code != 0)
        return fail_read(path, code, error);
    if (text->length > MANIFEST_BYTES_MAX)
        FAIL_MANIFEST(error, "%s is larger than %d bytes", path, MANIFEST_BYTES_MAX);
    if (text->failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %s", path);
    return GJ_OK;
}

/* Line and column, from 1, of a position. */
static enum gj_status fail_at(const char *path, const char *text, const char *at, const char *what,
                              gj_error **error)
{
    int line = 1, column = 1;
    for (const char *c = text; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    FAIL_MANIFEST(error, "%s:%d:%d: %s", path, line, column, what);
}

/* The first \u0000 of a sound document, or NULL: as text it would end the string that it stands in. */
static const char *find_zero(const char *text)
{
    for (const char *at = strchr(text, '\\'); at; at = strchr(at + 2, '\\'))
        if (strncmp(at + 1, "u0000", 5) == 0)
            return at;
    return NULL;
}

static enum gj_status parse(const char *path, const struct gj_strbuf *text, cJSON **document,
                            gj_error **error)
{
    const char *const zero = memchr(text->text, '\0', text->length);
    if (zero)
        return fail_at(path, text->text, zero, "this is not JSON", error);
    const char *end = text->text;
    *document = cJSON_ParseWithLengthOpts(text->text, text->length + 1, &end, 1);
    if (*document == NULL)
        return fail_at(path, text->text, end, "this is not JSON", error);
    const char *const escaped = find_zero(text->text);
    return escaped ? fail_at(path, text->text, escaped, "a text has no \\u0000 in it", error) : GJ_OK;
}

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
    struct gj_strbuf text = {0};
    cJSON *document = NULL;
    const cJSON *list = NULL;
    enum gj_status status = read_file(path, &text, error);
    if (status == GJ_OK)
        status = parse(path, &text, &document, error);
    if (status == GJ_OK)
        status = check_document(path, document, &list, error);
    if (status == GJ_OK)
        status = copy_keys(list, keys, num_keys, error);
    cJSON_Delete(document);
    gj_strbuf_free(&text);
    return status;
}
