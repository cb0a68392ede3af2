/* SPDX-License-Identifier: Apache-2.0 */
/* The owned error object: construction, growth and release. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "base/strbuf.h"
#include "base/utf8.h"

/* Every status. The switch below has no default, so the compiler reports one that is missing here. */
#define STATUS_LIST(X)     \
    X(GJ_OK)               \
    X(GJ_ERR_ARGUMENT)     \
    X(GJ_ERR_KEY)          \
    X(GJ_ERR_UNSUPPORTED)  \
    X(GJ_ERR_NO_COMPILER)  \
    X(GJ_ERR_NO_DRIVER)    \
    X(GJ_ERR_NO_DEVICE)    \
    X(GJ_ERR_NOT_CACHED)   \
    X(GJ_ERR_NOT_PREPARED) \
    X(GJ_ERR_GENERATE)     \
    X(GJ_ERR_COMPILE)      \
    X(GJ_ERR_DRIVER)       \
    X(GJ_ERR_SYSTEM)       \
    X(GJ_ERR_NO_MEMORY)    \
    X(GJ_ERR_INTERNAL)

#define STAGE_LIST(X)                \
    X(GJ_STAGE_NONE, "none")         \
    X(GJ_STAGE_KEY, "key")           \
    X(GJ_STAGE_PLAN, "plan")         \
    X(GJ_STAGE_GENERATE, "generate") \
    X(GJ_STAGE_COMPILE, "compile")   \
    X(GJ_STAGE_CACHE, "cache")       \
    X(GJ_STAGE_LOAD, "load")         \
    X(GJ_STAGE_LAUNCH, "launch")

const char *gj_status_name(enum gj_status status)
{
#define CASE(status_name) \
    case status_name:     \
        return #status_name;
    switch (status) {
        STATUS_LIST(CASE)
    }
#undef CASE
    return "GJ_ERR_?";
}

const char *gj_stage_name(enum gj_stage stage)
{
#define CASE(value, stage_name) \
    case value:                 \
        return stage_name;
    switch (stage) {
        STAGE_LIST(CASE)
    }
#undef CASE
    return "?";
}

/* Stands for every empty string of an error, so that an empty one needs no allocation. */
static const char empty[] = "";

static void free_string(const char *text)
{
    if (text != empty)
        free((void *)text);
}

/* Copy of a string that free_string releases, as valid UTF-8; with `lines` it may have several. NULL when
 * memory runs out. */
static const char *copy_string(const char *text, bool lines)
{
    if (!text || !*text)
        return empty;
    struct gj_strbuf copy = {0};
    gj_utf8_escape(&copy, text, lines);
    return gj_strbuf_take(&copy);
}

/* A formatted sentence, as copy_string. */
static __attribute__((format(printf, 1, 0))) const char *format_string(const char *format, va_list args)
{
    struct gj_strbuf text = {0};
    gj_strbuf_vprintf(&text, format, args);
    char *const raw = gj_strbuf_take(&text);
    const char *const copy = raw ? copy_string(raw, false) : NULL;
    free(raw);
    return copy;
}

static void free_location(const struct gj_location *location)
{
    free_string(location->file);
    free_string(location->message);
    free_string(location->excerpt);
}

enum gj_status gj_error_make(gj_error **error, enum gj_status status, enum gj_stage stage, int origin_code,
                             const char *origin_name, const char *format, ...)
{
    if (!error || *error)
        return status;
    gj_error *const made = calloc(1, sizeof(*made));
    if (!made)
        return status;

    va_list args;
    va_start(args, format);
    made->message = format_string(format, args);
    va_end(args);
    made->status = status;
    made->stage = stage;
    made->origin_code = origin_code;
    made->origin_name = copy_string(origin_name, false);
    made->detail = empty;
    if (!made->origin_name || !made->message) {
        free_string(made->origin_name);
        free_string(made->message);
        free(made);
        return status;
    }
    *error = made;
    return status;
}

void gj_error_set_detail(gj_error **error, const char *detail)
{
    if (!error || !*error)
        return;
    const char *const copy = copy_string(detail, true);
    if (!copy)
        return;
    free_string((*error)->detail);
    (*error)->detail = copy;
}

void gj_error_add_reason(gj_error **error, const char *format, ...)
{
    if (!error || !*error)
        return;
    va_list args;
    va_start(args, format);
    const char *const reason = format_string(format, args);
    va_end(args);
    if (!reason)
        return;

    gj_error *const grown = *error;
    const char **const reasons =
        realloc((void *)grown->reasons, (grown->num_reasons + 1) * sizeof(*grown->reasons));
    if (!reasons) {
        free_string(reason);
        return;
    }
    reasons[grown->num_reasons++] = reason;
    grown->reasons = reasons;
}

void gj_error_add_location(gj_error **error, const struct gj_location *location)
{
    if (!error || !*error)
        return;
    gj_error *const grown = *error;
    const struct gj_location copy = {
        .file = copy_string(location->file, false),
        .line = location->line,
        .unit_line = location->unit_line,
        .message = copy_string(location->message, true),
        .excerpt = copy_string(location->excerpt, true),
    };
    if (!copy.file || !copy.message || !copy.excerpt) {
        free_location(&copy);
        return;
    }
    struct gj_location *const locations =
        realloc((void *)grown->locations, (grown->num_locations + 1) * sizeof(*locations));
    if (!locations) {
        free_location(&copy);
        return;
    }
    locations[grown->num_locations++] = copy;
    grown->locations = locations;
}

void gj_error_copy(gj_error **copy, const gj_error *error)
{
    if (!error)
        return;
    gj_error_make(copy, error->status, error->stage, error->origin_code, error->origin_name, "%s",
                  error->message);
    gj_error_set_detail(copy, error->detail);
    for (size_t i = 0; i < error->num_reasons; i++)
        gj_error_add_reason(copy, "%s", error->reasons[i]);
    for (size_t i = 0; i < error->num_locations; i++)
        gj_error_add_location(copy, &error->locations[i]);
}

void gj_error_free(gj_error **error)
{
    if (!error || !*error)
        return;
    gj_error *const freed = *error;
    for (size_t i = 0; i < freed->num_reasons; i++)
        free_string(freed->reasons[i]);
    for (size_t i = 0; i < freed->num_locations; i++)
        free_location(&freed->locations[i]);
    free((void *)freed->reasons);
    free((void *)freed->locations);
    free_string(freed->origin_name);
    free_string(freed->message);
    free_string(freed->detail);
    free(freed);
    *error = NULL;
}
