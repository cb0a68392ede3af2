/* SPDX-License-Identifier: Apache-2.0 */
/* The partial preprocessor over template lines. */
#include "generate/expand_impl.h"

#include "base/error_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fails at a template line. */
enum gj_status gj_expand_fail(struct expander *expander, const struct source *source, int index,
                              const char *message)
{
    const struct line line = source->lines[index];
    gj_error_make(expander->error, GJ_ERR_GENERATE, GJ_STAGE_GENERATE, 0, "", "%s:%d: %s",
                  source->asset->path, index + 1, message);
    char excerpt[160];
    snprintf(excerpt, sizeof excerpt, "%.*s", (int)line.length, line.at);
    const struct gj_location location = {source->asset->path, index + 1, 0, message, excerpt};
    gj_error_add_location(expander->error, &location);
    return GJ_ERR_GENERATE;
}

struct line gj_line_trim(struct line line)
{
    while (line.length > 0 && isspace((unsigned char)*line.at)) {
        line.at++;
        line.length--;
    }
    while (line.length > 0 && isspace((unsigned char)line.at[line.length - 1]))
        line.length--;
    return line;
}

/* Whether a line starts with a word such as "#if" or "@for"; *rest is what follows it. */
bool gj_line_starts_with(struct line line, const char *word, struct line *rest)
{
    const char *at = line.at, *const end = line.at + line.length;
    while (at < end && isspace((unsigned char)*at))
        at++;
    const size_t length = strlen(word);
    if ((size_t)(end - at) < length || *at != *word || memcmp(at, word, length) != 0)
        return false;
    at += length;
    if (at < end && (isalnum((unsigned char)*at) || *at == '_'))
        return false;
    if (rest != NULL)
        *rest = gj_line_trim((struct line){at, (size_t)(end - at)});
    return true;
}

bool gj_line_take_quoted(struct line *text, struct line *value)
{
    if (text->length < 2 || text->at[0] != '"')
        return false;
    const char *const close = memchr(text->at + 1, '"', text->length - 1);
    if (close == NULL)
        return false;
    *value = (struct line){text->at + 1, (size_t)(close - text->at - 1)};
    *text = gj_line_trim((struct line){close + 1, text->length - (size_t)(close + 1 - text->at)});
    return true;
}

/* Value of an expression, in which ${WORD} may stand for a part of a name. */
enum gj_status gj_expand_value(struct expander *expander, const struct source *source, int index,
                               struct line text, long *value)
{
    char message[160];
    struct gj_strbuf whole = {0};
    if (memchr(text.at, '$', text.length) != NULL) {
        enum gj_status status = gj_expand_substitute(expander, source, index, text, &whole);
        if (status == GJ_OK && whole.failed)
            status = gj_error_make(expander->error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, 0, "",
                                   "no memory for %s", source->asset->path);
        if (status != GJ_OK) {
            gj_strbuf_free(&whole);
            return status;
        }
        text = (struct line){whole.text, whole.length};
    }
    const bool good =
        gj_expression_value(text.at, text.length, &expander->constants, value, message, sizeof message);
    gj_strbuf_free(&whole);
    return good ? GJ_OK : gj_expand_fail(expander, source, index, message);
}

/* The brace that closes a "${" before `at`, or NULL; others may stand inside. */
static const char *closing_brace(const char *at, const char *end)
{
    for (int depth = 0; at < end; at++) {
        if (*at == '{')
            depth++;
        else if (*at == '}' && depth-- == 0)
            return at;
    }
    return NULL;
}

/* Whether a text can be the name of a constant, and not an expression. */
static bool is_name(struct line text)
{
    bool good = text.length > 0;
    for (size_t i = 0; i < text.length && good; i++)
        good = isalnum((unsigned char)text.at[i]) || text.at[i] == '_';
    return good;
}

/* printf is a tenth of a unit's time otherwise. */
static void add_number(struct gj_strbuf *out, long value)
{
    char digits[24], *at = digits + sizeof digits;
    unsigned long rest = value < 0 ? 0 - (unsigned long)value : (unsigned long)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--at = '-';
    gj_strbuf_add(out, at, (size_t)(digits + sizeof digits - at));
}

/* Replaces ${expression} and ${WORD} in a line. */
enum gj_status gj_expand_substitute(struct expander *expander, const struct source *source, int index,
                                    struct line line, struct gj_strbuf *out)
{
    const char *const end = line.at + line.length;
    const char *at = line.at, *open;
    while ((open = memchr(at, '$', (size_t)(end - at))) != NULL) {
        if (open + 1 == end || open[1] != '{') {
            gj_strbuf_add(out, at, (size_t)(open + 1 - at));
            at = open + 1;
            continue;
        }
        const char *const close = closing_brace(open + 2, end);
        if (close == NULL)
            return gj_expand_fail(expander, source, index, "\"${\" without \"}\"");
        gj_strbuf_add(out, at, (size_t)(open - at));
        const struct line inner = gj_line_trim((struct line){open + 2, (size_t)(close - open - 2)});
        const struct gj_constant *const constant =
            is_name(inner) ? gj_constants_find(&expander->constants, inner.at, inner.length) : NULL;
        if (constant != NULL && constant->text != NULL) {
            gj_strbuf_puts(out, constant->text);
        } else {
            long value = constant ? constant->value : 0;
            if (constant == NULL)
                GJ_TRY(gj_expand_value(expander, source, index, inner, &value));
            add_number(out, value);
        }
        at = close + 1;
    }
    gj_strbuf_add(out, at, (size_t)(end - at));
    return GJ_OK;
}

/* Adds an expanded line of a template. */
static void add_line(struct expander *expander, const struct source *source, int index, const char *text,
                     size_t length)
{
    if (source->asset == expander->own_user)
        gj_lines_add(expander->out, text, length, &expander->own->asset, expander->own->line);
    else
        gj_lines_add(expander->out, text, length, source->asset, index + 1);
}

static enum gj_status emit(struct expander *expander, const struct source *source, int index)
{
    const struct line line = source->lines[index];
    if (memchr(line.at, '$', line.length) == NULL) {
        add_line(expander, source, index, line.at, line.length);
        return GJ_OK;
    }
    struct gj_strbuf text = {0};
    const enum gj_status status = gj_expand_substitute(expander, source, index, line, &text);
    if (status == GJ_OK)
        add_line(expander, source, index, text.text ? text.text : "", text.length);
    if (text.failed)
        expander->out->failed = true;
    gj_strbuf_free(&text);
    return status;
}

static bool opens_block(enum directive directive)
{
    return directive >= DIRECTIVE_FOR && directive <= DIRECTIVE_AT_IF;
}

/* Index of the line that ends the block opened before `from`, by @end or #endif, or `to`. */
static int find_end(const struct source *source, int from, int to, enum directive closer)
{
    int depth = 0;
    for (int i = from; i < to; i++) {
        const enum directive directive = source->directives[i];
        if (closer == DIRECTIVE_END ? opens_block(directive) : directive == DIRECTIVE_IF)
            depth++;
        else if (directive == closer && depth-- == 0)
            return i;
    }
    return to;
}

/* Index of the line that ends the branch at `index` of an #if: #elif, #else, or `end`, its #endif. */
static int find_branch_end(const struct source *source, int index, int end)
{
    for (int i = index + 1; i < end; i++) {
        if (source->directives[i] == DIRECTIVE_IF)
            i = find_end(source, i + 1, end, DIRECTIVE_ENDIF);
        else if (source->directives[i] == DIRECTIVE_ELIF || source->directives[i] == DIRECTIVE_ELSE)
            return i;
    }
    return end;
}

/* An `#if` chain from `index` to its `#endif` at `end`: expands the first branch that holds. */
static enum gj_status expand_if(struct expander *expander, const struct source *source, int index, int end)
{
    bool taken = false, otherwise = false;
    int at = index;
    while (at < end) {
        const int next = find_branch_end(source, at, end);
        if (otherwise)
            return gj_expand_fail(expander, source, at, "a branch after #else");
        otherwise = source->directives[at] == DIRECTIVE_ELSE;
        long holds = 1;
        if (!otherwise)
            GJ_TRY(gj_expand_value(expander, source, at, gj_source_rest(source, at), &holds));
        if (holds && !taken) {
            taken = true;
            GJ_TRY(gj_expand_range(expander, source, at + 1, next));
        }
        at = next;
    }
    return GJ_OK;
}

/* A zero byte would end the unit early. */
static enum gj_status check_zeros(struct expander *expander, const struct source *source)
{
    if (memchr(source->asset->text, '\0', source->asset->length) == NULL)
        return GJ_OK;
    int index = 0;
    while (memchr(source->lines[index].at, '\0', source->lines[index].length) == NULL)
        index++;
    return gj_expand_fail(expander, source, index, "a zero byte");
}

static enum gj_status expand_file(struct expander *expander, const struct gj_asset *asset)
{
    struct source source;
    if (!gj_source_cut(&source, asset))
        GJ_FAIL(expander->error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, "no memory for %s", asset->path);
    enum gj_status status = check_zeros(expander, &source);
    if (status == GJ_OK)
        status = gj_expand_range(expander, &source, 0, source.count);
    gj_source_free(&source);
    return status;
}

static enum gj_status expand_include(struct expander *expander, const struct source *source, int index,
                                     struct line path)
{
    struct line name;
    if (!gj_line_take_quoted(&path, &name))
        return gj_expand_fail(expander, source, index, "expected #include \"PATH\"");
    const struct gj_asset *const asset = gj_assets_find(expander->assets, name.at, name.length);
    if (asset == NULL)
        return gj_expand_fail(expander, source, index, "there is no such template");
    for (int i = 0; i < expander->num_included; i++)
        if (expander->included[i] == asset)
            return GJ_OK;
    if (expander->num_included == INCLUDES_MAX)
        return gj_expand_fail(expander, source, index, "more than 32 files");
    expander->included[expander->num_included++] = asset;
    return expand_file(expander, asset);
}

static enum gj_status expand_at_if(struct expander *expander, const struct source *source, int index,
                                   struct line text, int end)
{
    long holds;
    GJ_TRY(gj_expand_value(expander, source, index, text, &holds));
    return holds ? gj_expand_range(expander, source, index + 1, end) : GJ_OK;
}

/* A block that ends at @end, at *index, which moves there. */
static enum gj_status expand_block(struct expander *expander, const struct source *source, int *index, int to)
{
    const int at = *index;
    const struct line rest = gj_source_rest(source, at);
    const int end = *index = find_end(source, at + 1, to, DIRECTIVE_END);
    if (end == to)
        return gj_expand_fail(expander, source, at, "no @end for this line");
    if (source->directives[at] == DIRECTIVE_FOR)
        return gj_expand_for(expander, source, at, rest, end);
    if (source->directives[at] == DIRECTIVE_EACH)
        return gj_expand_each(expander, source, at, rest, end);
    if (source->directives[at] == DIRECTIVE_JOIN)
        return gj_expand_join(expander, source, at, rest, end);
    return expand_at_if(expander, source, at, rest, end);
}

/* `@own`: the user's lines. */
static enum gj_status expand_own(struct expander *expander, const struct source *source, int index)
{
    if (expander->own == NULL)
        return gj_expand_fail(expander, source, index, "there is no own function");
    const char *at = expander->own->asset.text;
    const char *const end = at + expander->own->asset.length;
    for (int line = 1; at < end; line++) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline ? newline : end) - at);
        gj_lines_add(expander->out, at, length, &expander->own->asset, line);
        if (!expander->out->failed)
            expander->out->items[expander->out->count - 1].verbatim = true;
        at += length + 1;
    }
    expander->own_user = source->asset;
    return GJ_OK;
}

/* Expands the directive at *index, if there is one, and moves *index behind it; otherwise emits the line. */
static enum gj_status expand_line(struct expander *expander, const struct source *source, int *index, int to)
{
    const int at = *index;
    switch ((enum directive)source->directives[at]) {
    case DIRECTIVE_NONE:
        break;
    case DIRECTIVE_LEFT_OUT:
        return GJ_OK;
    case DIRECTIVE_OWN:
        return expand_own(expander, source, at);
    case DIRECTIVE_INCLUDE:
        return expand_include(expander, source, at, gj_source_rest(source, at));
    case DIRECTIVE_IF:
        *index = find_end(source, at + 1, to, DIRECTIVE_ENDIF);
        if (*index == to)
            return gj_expand_fail(expander, source, at, "#if without #endif");
        return expand_if(expander, source, at, *index);
    case DIRECTIVE_FOR:
    case DIRECTIVE_EACH:
    case DIRECTIVE_JOIN:
    case DIRECTIVE_AT_IF:
        return expand_block(expander, source, index, to);
    case DIRECTIVE_ELIF:
    case DIRECTIVE_ELSE:
    case DIRECTIVE_ENDIF:
    case DIRECTIVE_UNKNOWN:
    case DIRECTIVE_END:
        return gj_expand_fail(expander, source, at,
                              "directive without its beginning, or one that templates don't have");
    }
    return emit(expander, source, at);
}

enum gj_status gj_expand_range(struct expander *expander, const struct source *source, int from, int to)
{
    if (from < to && expander->nesting == NESTING_MAX)
        return gj_expand_fail(expander, source, from, "blocks and includes are nested deeper than 16");
    expander->nesting++;
    enum gj_status status = GJ_OK;
    for (int i = from; i < to && status == GJ_OK; i++)
        status = expand_line(expander, source, &i, to);
    expander->nesting--;
    return status;
}

enum gj_status gj_expand(const struct gj_assets *assets, const char *path,
                         const struct gj_constants *constants, const struct gj_own_source *own,
                         struct gj_lines *lines, gj_error **error)
{
    struct expander expander = {
        .assets = assets, .constants = *constants, .own = own, .out = lines, .error = error};
    const struct gj_asset *const asset = gj_assets_find(assets, path, strlen(path));
    if (asset == NULL)
        GJ_FAIL(error, GJ_ERR_GENERATE, GJ_STAGE_GENERATE, "there is no template %s", path);
    gj_constants_index(&expander.constants);
    expander.included[expander.num_included++] = asset;
    GJ_TRY(expand_file(&expander, asset));
    if (lines->failed || lines->text.failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, "no memory for the unit");
    return GJ_OK;
}
