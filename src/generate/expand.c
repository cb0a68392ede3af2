/* SPDX-License-Identifier: Apache-2.0 */
/* The partial preprocessor over template lines. */
#include "generate/expand.h"

#include "base/error_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INCLUDES_MAX 32 /* distinct files of one unit */
#define NESTING_MAX 16  /* includes and blocks inside each other */
#define ITERATIONS_MAX 1024

struct line {
    const char *at;
    size_t length;
};

/* A file cut into lines. */
struct source {
    const struct gj_asset *asset;
    struct line *lines;
    int count;
};

struct expander {
    const struct gj_assets *assets;
    struct gj_constants constants; /* plan constants, then the loop variables in scope */
    const struct gj_asset *included[INCLUDES_MAX];
    int num_included;
    int nesting;
    struct gj_lines *out;
    gj_error **error;
};

static enum gj_status expand_range(struct expander *expander, const struct source *source, int from, int to);

void gj_lines_add(struct gj_lines *lines, const char *text, size_t length, const struct gj_asset *asset,
                  int line)
{
    if (lines->count == lines->capacity) {
        const size_t capacity = lines->capacity ? 2 * lines->capacity : 1024;
        struct gj_unit_line *const grown = realloc(lines->items, capacity * sizeof *grown);
        if (grown == NULL) {
            lines->failed = true;
            return;
        }
        lines->items = grown;
        lines->capacity = capacity;
    }
    lines->items[lines->count++] = (struct gj_unit_line){asset, line};
    gj_strbuf_add(&lines->text, text, length);
    gj_strbuf_add(&lines->text, "\n", 1);
}

void gj_lines_free(struct gj_lines *lines)
{
    gj_strbuf_free(&lines->text);
    free(lines->items);
    *lines = (struct gj_lines){0};
}

/* Fails at a template line. */
static enum gj_status fail_at(struct expander *expander, const struct source *source, int index,
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

static struct line trim(struct line line)
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
static bool starts_with(struct line line, const char *word, struct line *rest)
{
    const struct line trimmed = trim(line);
    const size_t length = strlen(word);
    if (trimmed.length < length || memcmp(trimmed.at, word, length) != 0)
        return false;
    if (trimmed.length > length && (isalnum((unsigned char)trimmed.at[length]) || trimmed.at[length] == '_'))
        return false;
    if (rest != NULL)
        *rest = trim((struct line){trimmed.at + length, trimmed.length - length});
    return true;
}

static enum gj_status value_at(struct expander *expander, const struct source *source, int index,
                               struct line text, long *value)
{
    char message[160];
    if (!gj_expression_value(text.at, text.length, &expander->constants, value, message, sizeof message))
        return fail_at(expander, source, index, message);
    return GJ_OK;
}

/* Replaces ${expression} and ${WORD} in a line. */
static enum gj_status substitute(struct expander *expander, const struct source *source, int index,
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
        const char *const close = memchr(open, '}', (size_t)(end - open));
        if (close == NULL)
            return fail_at(expander, source, index, "\"${\" without \"}\"");
        gj_strbuf_add(out, at, (size_t)(open - at));
        const struct line inner = trim((struct line){open + 2, (size_t)(close - open - 2)});
        const struct gj_constant *const constant =
            gj_constants_find(&expander->constants, inner.at, inner.length);
        long value;
        if (constant != NULL && constant->text != NULL) {
            gj_strbuf_puts(out, constant->text);
        } else {
            GJ_TRY(value_at(expander, source, index, inner, &value));
            gj_strbuf_printf(out, "%ld", value);
        }
        at = close + 1;
    }
    gj_strbuf_add(out, at, (size_t)(end - at));
    return GJ_OK;
}

static enum gj_status emit(struct expander *expander, const struct source *source, int index)
{
    const struct line line = source->lines[index];
    if (memchr(line.at, '$', line.length) == NULL) {
        gj_lines_add(expander->out, line.at, line.length, source->asset, index + 1);
        return GJ_OK;
    }
    struct gj_strbuf text = {0};
    const enum gj_status status = substitute(expander, source, index, line, &text);
    if (status == GJ_OK)
        gj_lines_add(expander->out, text.text ? text.text : "", text.length, source->asset, index + 1);
    if (text.failed)
        expander->out->failed = true;
    gj_strbuf_free(&text);
    return status;
}

/* `VAR in A .. B` at the start of a loop directive; *rest is what follows B's expression, up to a keyword. */
struct range {
    struct line variable, rest;
    long first, last;
};

/* Cuts text at a keyword standing as a word; the part before it, trimmed, goes to *before. */
static bool cut_at(struct line text, const char *keyword, struct line *before, struct line *after)
{
    const size_t length = strlen(keyword);
    for (size_t i = 0; i + length <= text.length; i++) {
        if (memcmp(text.at + i, keyword, length) == 0) {
            *before = trim((struct line){text.at, i});
            *after = trim((struct line){text.at + i + length, text.length - i - length});
            return true;
        }
    }
    return false;
}

static enum gj_status read_range(struct expander *expander, const struct source *source, int index,
                                 struct line text, struct range *range)
{
    struct line bounds, low, high, ignored;
    if (!cut_at(text, " in ", &range->variable, &bounds) || !cut_at(bounds, "..", &low, &high))
        return fail_at(expander, source, index, "expected VARIABLE in FIRST .. LAST");
    if (!cut_at(high, " sep ", &high, &ignored))
        range->rest = (struct line){high.at + high.length, 0};
    else
        range->rest = (struct line){ignored.at - strlen("sep "), ignored.length + strlen("sep ")};
    GJ_TRY(value_at(expander, source, index, low, &range->first));
    GJ_TRY(value_at(expander, source, index, high, &range->last));
    long span;
    if (__builtin_sub_overflow(range->last, range->first, &span) || span >= ITERATIONS_MAX)
        return fail_at(expander, source, index, "more than 1024 iterations");
    return GJ_OK;
}

/* Brings a loop variable into scope; drop_variable takes it out again. */
static enum gj_status push_variable(struct expander *expander, const struct source *source, int index,
                                    struct line name, char *storage, size_t capacity)
{
    bool good = name.length > 0 && name.length < capacity && !isdigit((unsigned char)*name.at);
    for (size_t i = 0; i < name.length; i++)
        good = good && (isalnum((unsigned char)name.at[i]) || name.at[i] == '_');
    if (!good || expander->constants.count == GJ_CONSTANTS_MAX)
        return fail_at(expander, source, index, "bad loop variable");
    memcpy(storage, name.at, name.length);
    storage[name.length] = '\0';
    expander->constants.items[expander->constants.count++] = (struct gj_constant){.name = storage};
    return GJ_OK;
}

static enum gj_status expand_for(struct expander *expander, const struct source *source, int index,
                                 struct line text, int end)
{
    struct range range;
    char name[32];
    GJ_TRY(read_range(expander, source, index, text, &range));
    if (range.rest.length > 0)
        return fail_at(expander, source, index, "@for has no sep: it belongs to @join");
    GJ_TRY(push_variable(expander, source, index, range.variable, name, sizeof name));
    const int slot = expander->constants.count - 1;
    enum gj_status status = GJ_OK;
    for (long i = 0; i <= range.last - range.first && status == GJ_OK; i++) {
        expander->constants.items[slot].value = range.first + i;
        status = expand_range(expander, source, index + 1, end);
    }
    expander->constants.count--;
    return status;
}

/* Options of @join, each a quoted text or a number. */
struct join {
    struct line separator, begin, end;
    long per;
};

static bool read_quoted(struct line *text, struct line *value)
{
    if (text->length < 2 || text->at[0] != '"')
        return false;
    const char *const close = memchr(text->at + 1, '"', text->length - 1);
    if (close == NULL)
        return false;
    *value = (struct line){text->at + 1, (size_t)(close - text->at - 1)};
    *text = trim((struct line){close + 1, text->length - (size_t)(close + 1 - text->at)});
    return true;
}

static enum gj_status read_join(struct expander *expander, const struct source *source, int index,
                                struct line text, struct join *join)
{
    *join = (struct join){.per = 1};
    while (text.length > 0) {
        struct line rest;
        bool good;
        if (starts_with(text, "sep", &rest)) {
            good = read_quoted(&rest, &join->separator);
        } else if (starts_with(text, "begin", &rest)) {
            good = read_quoted(&rest, &join->begin);
        } else if (starts_with(text, "end", &rest)) {
            good = read_quoted(&rest, &join->end);
        } else if (starts_with(text, "per", &rest)) {
            char *stop;
            join->per = strtol(rest.at, &stop, 10);
            good = rest.length > 0 && isdigit((unsigned char)*rest.at) && join->per > 0;
            if (good)
                rest = trim((struct line){stop, rest.length - (size_t)(stop - rest.at)});
        } else {
            good = false;
        }
        if (!good)
            return fail_at(expander, source, index,
                           "expected sep \"TEXT\" [per N] [begin \"TEXT\"] [end \"TEXT\"]");
        text = rest;
    }
    return GJ_OK;
}

/* Writes the items of a @join, `per` of them on a line, in the indentation of the body line. */
static enum gj_status write_join(struct expander *expander, const struct source *source, int index,
                                 const struct range *range, const struct join *join, int slot)
{
    const struct line body = source->lines[index + 1], item = trim(body);
    struct gj_strbuf text = {0};
    enum gj_status status = GJ_OK;
    for (long position = 0; position <= range->last - range->first && status == GJ_OK; position++) {
        if (position % join->per == 0)
            gj_strbuf_add(&text, body.at, (size_t)(item.at - body.at));
        if (position == 0)
            gj_strbuf_add(&text, join->begin.at, join->begin.length);
        expander->constants.items[slot].value = range->first + position;
        status = substitute(expander, source, index + 1, item, &text);
        const bool last = position == range->last - range->first,
                   line_ends = last || (position + 1) % join->per == 0;
        const struct line tail = last ? join->end : line_ends ? trim(join->separator) : join->separator;
        gj_strbuf_add(&text, tail.at, tail.length);
        if (line_ends) {
            gj_lines_add(expander->out, text.text, text.length, source->asset, index + 2);
            expander->out->failed |= text.failed;
            text.length = 0;
        }
    }
    gj_strbuf_free(&text);
    return status;
}

static enum gj_status expand_join(struct expander *expander, const struct source *source, int index,
                                  struct line text, int end)
{
    struct range range;
    struct join join;
    char name[32];
    if (end != index + 2)
        return fail_at(expander, source, index, "the body of @join is one line");
    GJ_TRY(read_range(expander, source, index, text, &range));
    GJ_TRY(read_join(expander, source, index, range.rest, &join));
    GJ_TRY(push_variable(expander, source, index, range.variable, name, sizeof name));
    const enum gj_status status =
        write_join(expander, source, index, &range, &join, expander->constants.count - 1);
    expander->constants.count--;
    return status;
}

/* Index of the line that ends the block opened before `from`, or `to`. */
static int find_end(const struct source *source, int from, int to, const char *const openers[],
                    const char *closer)
{
    int depth = 0;
    for (int i = from; i < to; i++) {
        for (int o = 0; openers[o] != NULL; o++)
            if (starts_with(source->lines[i], openers[o], NULL))
                depth++;
        if (starts_with(source->lines[i], closer, NULL) && depth-- == 0)
            return i;
    }
    return to;
}

static const char *const at_openers[] = {"@for", "@join", "@if", NULL};
static const char *const hash_openers[] = {"#if", NULL};

/* An `#if` chain from `index` to its `#endif` at `end`: expands the first branch that holds. */
static enum gj_status expand_if(struct expander *expander, const struct source *source, int index, int end)
{
    bool taken = false, otherwise = false;
    int at = index;
    while (at < end) {
        int next = at + 1;
        while (next < end) {
            if (starts_with(source->lines[next], "#if", NULL))
                next = find_end(source, next + 1, end, hash_openers, "#endif");
            else if (starts_with(source->lines[next], "#elif", NULL) ||
                     starts_with(source->lines[next], "#else", NULL))
                break;
            next++;
        }
        if (otherwise)
            return fail_at(expander, source, at, "a branch after #else");
        otherwise = starts_with(source->lines[at], "#else", NULL);
        struct line condition;
        long holds = 1;
        if (starts_with(source->lines[at], "#if", &condition) ||
            starts_with(source->lines[at], "#elif", &condition))
            GJ_TRY(value_at(expander, source, at, condition, &holds));
        if (holds && !taken) {
            taken = true;
            GJ_TRY(expand_range(expander, source, at + 1, next));
        }
        at = next;
    }
    return GJ_OK;
}

static enum gj_status expand_file(struct expander *expander, const struct gj_asset *asset)
{
    struct source source = {.asset = asset};
    const char *const end = asset->text + asset->length;
    size_t newlines = 0;
    for (const char *c = asset->text; c < end; c++)
        newlines += *c == '\n';
    source.lines = calloc(newlines + 1, sizeof *source.lines);
    if (source.lines == NULL)
        GJ_FAIL(expander->error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, "no memory for %s", asset->path);
    for (const char *at = asset->text; at < end;) { /* the last line needs no newline */
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const struct line line = {at, (size_t)((newline ? newline : end) - at)};
        source.lines[source.count++] = line;
        if (memchr(line.at, '\0', line.length) != NULL) {
            const enum gj_status status = fail_at(expander, &source, source.count - 1, "a zero byte");
            free(source.lines);
            return status;
        }
        at += line.length + 1;
    }
    const enum gj_status status = expand_range(expander, &source, 0, source.count);
    free(source.lines);
    return status;
}

static enum gj_status expand_include(struct expander *expander, const struct source *source, int index,
                                     struct line path)
{
    struct line name;
    if (!read_quoted(&path, &name))
        return fail_at(expander, source, index, "expected #include \"PATH\"");
    const struct gj_asset *const asset = gj_assets_find(expander->assets, name.at, name.length);
    if (asset == NULL)
        return fail_at(expander, source, index, "there is no such template");
    for (int i = 0; i < expander->num_included; i++)
        if (expander->included[i] == asset)
            return GJ_OK;
    if (expander->num_included == INCLUDES_MAX)
        return fail_at(expander, source, index, "more than 32 files");
    expander->included[expander->num_included++] = asset;
    return expand_file(expander, asset);
}

/* Expands the directive at *index, if there is one, and moves *index behind it; otherwise emits the line. */
static enum gj_status expand_line(struct expander *expander, const struct source *source, int *index, int to)
{
    const int at = *index;
    const struct line line = source->lines[at];
    struct line rest = trim(line);
    if (rest.length == 0 ||
        strchr("#@/", *rest.at) == NULL) /* no directive, nothing to leave out: most lines */
        return emit(expander, source, at);
    if (starts_with(line, "#pragma once", NULL) || starts_with(line, "// SPDX-License-Identifier", NULL) ||
        starts_with(line, "/* SPDX-License-Identifier", NULL))
        return GJ_OK;
    if (starts_with(line, "#include", &rest))
        return expand_include(expander, source, at, rest);
    if (starts_with(line, "#if", NULL)) {
        *index = find_end(source, at + 1, to, hash_openers, "#endif");
        if (*index == to)
            return fail_at(expander, source, at, "#if without #endif");
        return expand_if(expander, source, at, *index);
    }
    const bool is_for = starts_with(line, "@for", &rest),
               is_join = !is_for && starts_with(line, "@join", &rest);
    if (is_for || is_join || starts_with(line, "@if", &rest)) {
        *index = find_end(source, at + 1, to, at_openers, "@end");
        if (*index == to)
            return fail_at(expander, source, at, "no @end for this line");
        if (is_for)
            return expand_for(expander, source, at, rest, *index);
        if (is_join)
            return expand_join(expander, source, at, rest, *index);
        long holds;
        GJ_TRY(value_at(expander, source, at, rest, &holds));
        return holds ? expand_range(expander, source, at + 1, *index) : GJ_OK;
    }
    if (starts_with(line, "@end", NULL) || starts_with(line, "#endif", NULL) ||
        starts_with(line, "#else", NULL) || starts_with(line, "#elif", NULL) ||
        starts_with(line, "#ifdef", NULL) || starts_with(line, "#ifndef", NULL))
        return fail_at(expander, source, at,
                       "directive without its beginning, or one that templates don't have");
    return emit(expander, source, at);
}

static enum gj_status expand_range(struct expander *expander, const struct source *source, int from, int to)
{
    if (from < to && expander->nesting == NESTING_MAX)
        return fail_at(expander, source, from, "blocks and includes are nested deeper than 16");
    expander->nesting++;
    enum gj_status status = GJ_OK;
    for (int i = from; i < to && status == GJ_OK; i++)
        status = expand_line(expander, source, &i, to);
    expander->nesting--;
    return status;
}

enum gj_status gj_expand(const struct gj_assets *assets, const char *path,
                         const struct gj_constants *constants, struct gj_lines *lines, gj_error **error)
{
    struct expander expander = {.assets = assets, .constants = *constants, .out = lines, .error = error};
    const struct gj_asset *const asset = gj_assets_find(assets, path, strlen(path));
    if (asset == NULL)
        GJ_FAIL(error, GJ_ERR_GENERATE, GJ_STAGE_GENERATE, "there is no template %s", path);
    expander.included[expander.num_included++] = asset;
    GJ_TRY(expand_file(&expander, asset));
    if (lines->failed || lines->text.failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, "no memory for the unit");
    return GJ_OK;
}
