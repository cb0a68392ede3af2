/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON documents; errors have line and column. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "base/file_text.h"

#define FAIL_JSON(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

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

enum gj_status gj_json_parse(const char *name, const struct gj_strbuf *text, cJSON **document,
                             gj_error **error)
{
    const char *const zero = memchr(text->text, '\0', text->length);
    if (zero)
        return fail_at(name, text->text, zero, "this is not JSON", error);
    const char *end = text->text;
    cJSON *const read = cJSON_ParseWithLengthOpts(text->text, text->length + 1, &end, 1);
    if (read == NULL)
        return fail_at(name, text->text, end, "this is not JSON", error);
    const char *const escaped = find_zero(text->text);
    if (escaped) {
        cJSON_Delete(read);
        return fail_at(name, text->text, escaped, "a text has no \\u0000 in it", error);
    }
    *document = read;
    return GJ_OK;
}

enum gj_status gj_json_read(const char *path, size_t most, cJSON **document, gj_error **error)
{
    struct gj_strbuf text = {0};
    enum gj_status status = gj_file_text_read(path, most, &text, error);
    if (status == GJ_OK)
        status = gj_json_parse(path, &text, document, error);
    gj_strbuf_free(&text);
    return status;
}
