/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code removal by paragraphs.
 *
 * A paragraph is a run of lines that ends at a blank line outside braces. One that defines a DEVICE function
 * or a struct is kept when a kept paragraph names it; a paragraph of comments when its file has anything else
 * kept; any other paragraph always. */
#include "generate/prune.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static size_t name_hash(const char *at, size_t length)
{
    size_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)at[i]) * 1099511628211u;
    return hash;
}

static struct gj_name *name_slot(const struct gj_name_set *names, const char *at, size_t length)
{
    size_t i = name_hash(at, length) & (names->capacity - 1);
    while (names->slots[i].at != NULL &&
           (names->slots[i].length != length || memcmp(names->slots[i].at, at, length) != 0))
        i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

bool gj_name_set_has(const struct gj_name_set *names, const char *at, size_t length)
{
    return names->capacity > 0 && name_slot(names, at, length)->at != NULL;
}

void gj_name_set_free(struct gj_name_set *names)
{
    free(names->slots);
    *names = (struct gj_name_set){0};
}

static void name_set_grow(struct gj_name_set *names)
{
    struct gj_name_set grown = {.capacity = names->capacity ? 2 * names->capacity : 1024,
                                .count = names->count};
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (grown.slots == NULL) {
        names->failed = true;
        return;
    }
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].at != NULL)
            *name_slot(&grown, names->slots[i].at, names->slots[i].length) = names->slots[i];
    free(names->slots);
    *names = grown;
}

static void name_set_add(struct gj_name_set *names, const char *at, size_t length)
{
    if (2 * names->count >= names->capacity)
        name_set_grow(names);
    if (names->failed)
        return;
    struct gj_name *const slot = name_slot(names, at, length);
    if (slot->at == NULL) {
        *slot = (struct gj_name){at, length};
        names->count++;
    }
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Adds every identifier of a text, except in // comments. */
static void name_set_add_text(struct gj_name_set *names, const char *at, const char *end)
{
    while (at < end) {
        if (at + 1 < end && at[0] == '/' && at[1] == '/') {
            while (at < end && *at != '\n')
                at++;
        } else if (isalpha((unsigned char)*at) || *at == '_') {
            const char *const start = at;
            while (at < end && is_name_char(*at))
                at++;
            name_set_add(names, start, (size_t)(at - start));
        } else if (isdigit((unsigned char)*at)) {
            while (at < end && is_name_char(*at))
                at++;
        } else {
            at++;
        }
    }
}

struct paragraph {
    size_t first_line, end_line;
    const char *at, *end;
    struct gj_name defines; /* at NULL: nothing that could be left out */
    bool comment_only, kept;
};

struct paragraphs {
    struct paragraph *items;
    size_t count;
};

static bool line_starts(const char *at, const char *end, const char *word)
{
    const size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* The name that a line at column 0 defines: a DEVICE function's or a struct's. */
static struct gj_name defined_name(const char *at, const char *end)
{
    const char *cut = NULL;
    if (line_starts(at, end, "struct ")) {
        at += strlen("struct ");
        if (line_starts(at, end, "alignas(")) {
            const char *const close = memchr(at, ')', (size_t)(end - at));
            at = close ? close + 1 : end;
        }
        while (at < end && *at == ' ')
            at++;
        for (cut = at; cut < end && is_name_char(*cut);)
            cut++;
    } else if (line_starts(at, end, "DEVICE ") || line_starts(at, end, "template <")) {
        cut = memchr(at, '(', (size_t)(end - at));
        if (cut == NULL)
            return (struct gj_name){0};
        for (at = cut; is_name_char(at[-1]);)
            at--;
    }
    return cut == NULL || cut == at ? (struct gj_name){0} : (struct gj_name){at, (size_t)(cut - at)};
}

static bool is_comment(const char *at, const char *end, bool *in_block)
{
    while (at < end && *at == ' ')
        at++;
    const bool block = *in_block;
    if (line_starts(at, end, "/*"))
        *in_block = true;
    if (*in_block && memmem(at, (size_t)(end - at), "*/", 2) != NULL)
        *in_block = false;
    return block || at == end || line_starts(at, end, "//") || line_starts(at, end, "/*");
}

static void cut_paragraphs(const struct gj_lines *lines, struct paragraphs *out)
{
    const char *at = lines->text.text;
    int depth = 0;
    bool in_block = false, open = false;
    for (size_t i = 0; i < lines->count; i++) {
        const char *const end = strchr(at, '\n');
        const bool blank = end == at;
        if (blank && depth == 0) {
            open = false;
        } else {
            if (!open)
                out->items[out->count++] =
                    (struct paragraph){.first_line = i, .at = at, .comment_only = true};
            struct paragraph *const paragraph = &out->items[out->count - 1];
            open = true;
            paragraph->end_line = i + 1;
            paragraph->end = end + 1;
            const bool verbatim = lines->items[i].verbatim;
            const bool comment = !verbatim && is_comment(at, end, &in_block);
            if (!comment && paragraph->comment_only) {
                paragraph->comment_only = false;
                paragraph->defines = defined_name(at, end);
            }
            for (const char *c = at; !comment && !verbatim && c < end; c++)
                depth += (*c == '{') - (*c == '}');
        }
        at = end + 1;
    }
}

/* Keeps paragraphs until nothing changes: first those that stand for themselves, then what they name. */
static void mark_used(struct paragraphs *paragraphs, struct gj_name_set *used)
{
    bool changed = true;
    while (changed && !used->failed) {
        changed = false;
        for (size_t i = 0; i < paragraphs->count; i++) {
            struct paragraph *const p = &paragraphs->items[i];
            const bool wanted = !p->comment_only && (p->defines.at == NULL ||
                                                     gj_name_set_has(used, p->defines.at, p->defines.length));
            if (p->kept || !wanted)
                continue;
            p->kept = true;
            changed = true;
            name_set_add_text(used, p->at, p->end);
        }
    }
}

/* A file's opening comment stays when anything else of the file does. */
static void mark_comments(const struct gj_lines *lines, struct paragraphs *paragraphs)
{
    for (size_t i = 0; i < paragraphs->count; i++) {
        struct paragraph *const p = &paragraphs->items[i];
        for (size_t j = 0; p->comment_only && !p->kept && j < paragraphs->count; j++) {
            const struct paragraph *const other = &paragraphs->items[j];
            p->kept = other->kept && !other->comment_only &&
                      lines->items[other->first_line].asset == lines->items[p->first_line].asset;
        }
    }
}

static void write_kept(const struct gj_lines *lines, const struct paragraphs *paragraphs,
                       struct gj_lines *kept)
{
    for (size_t i = 0; i < paragraphs->count; i++) {
        const struct paragraph *const p = &paragraphs->items[i];
        if (!p->kept)
            continue;
        gj_lines_add(kept, "", 0, NULL, 0);
        const char *at = p->at;
        for (size_t l = p->first_line; l < p->end_line; l++) {
            const char *const end = strchr(at, '\n');
            gj_lines_add(kept, at, (size_t)(end - at), lines->items[l].asset, lines->items[l].line);
            at = end + 1;
        }
    }
}

bool gj_prune(const struct gj_lines *lines, struct gj_lines *kept, struct gj_name_set *used)
{
    struct paragraphs paragraphs = {.items = calloc(lines->count + 1, sizeof(struct paragraph))};
    if (paragraphs.items == NULL)
        return false;
    cut_paragraphs(lines, &paragraphs);
    mark_used(&paragraphs, used);
    mark_comments(lines, &paragraphs);
    write_kept(lines, &paragraphs, kept);
    free(paragraphs.items);
    return !used->failed && !kept->failed && !kept->text.failed;
}
