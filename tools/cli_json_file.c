/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a JSON document from a file of bounded size; errors have line and column. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define JSON_BYTES_MAX (16 << 20)

#define FAIL_JSON(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

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
        if (got <= 0 || text->length > JSON_BYTES_MAX)
            break;
        gj_strbuf_add(text, piece, (size_t)got);
    }
    close(file);
    gj_strbuf_puts(text, ""); /* an empty file is an empty text */
    if (code != 0)
        return fail_read(path, code, error);
    if (text->length > JSON_BYTES_MAX)
        FAIL_JSON(error, "%s is larger than %d bytes", path, JSON_BYTES_MAX);
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
    FAIL_JSON(error, "%s:%d:%d: %s", path, line, column, what);
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

enum gj_status cli_json_read(const char *path, cJSON **document, gj_error **error)
{
    struct gj_strbuf text = {0};
    cJSON *read = NULL;
    enum gj_status status = read_file(path, &text, error);
    if (status == GJ_OK)
        status = parse(path, &text, &read, error);
    gj_strbuf_free(&text);
    if (status == GJ_OK)
        *document = read;
    else
        cJSON_Delete(read);
    return status;
}
