/* SPDX-License-Identifier: Apache-2.0 */
/* Dead code removal by paragraphs.
 *
 * A paragraph is a run of lines that ends at a blank line outside braces. One that defines a DEVICE function
 * or a struct is kept when a kept paragraph names it; a paragraph of comments when its file has anything else
 * kept; any other paragraph always. */
#include "generate/prune.h"

#include <stdlib.h>
#include <string.h>

enum { LETTER = 1, DIGIT = 2 };

/* What may stand in an identifier; the locale has no say. */
static const unsigned char name_classes[256] = {
    ['A' ... 'Z'] = LETTER, ['a' ... 'z'] = LETTER, ['_'] = LETTER, ['0' ... '9'] = DIGIT};

static unsigned char name_class(char c)
{
    return name_classes[(unsigned char)c];
}

/* FNV-1a, one character at a time. */
#define HASH_START ((size_t)14695981039346656037u)

static size_t hash_next(size_t hash, char c)
{
    return (hash ^ (unsigned char)c) * (size_t)1099511628211u;
}

static size_t name_hash(const char *at, size_t length)
{
    size_t hash = HASH_START;
    for (size_t i = 0; i < length; i++)
        hash = hash_next(hash, at[i]);
    return hash;
}

/* The place of a name of this hash, free or its own. */
static struct gj_name *name_slot(const struct gj_name_set *names, const char *at, size_t length, size_t hash)
{
    size_t i = hash & (names->capacity - 1);
    while (names->slots[i].at != NULL &&
           (names->slots[i].length != length || memcmp(names->slots[i].at, at, length) != 0))
        i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

bool gj_name_set_has(const struct gj_name_set *names, const char *at, size_t length)
{
    return names->capacity > 0 && name_slot(names, at, length, name_hash(at, length))->at != NULL;
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
    for (size_t i = 0; i < names->capacity; i++) {
        const struct gj_name name = names->slots[i];
        if (name.at != NULL)
            *name_slot(&grown, name.at, name.length, name_hash(name.at, name.length)) = name;
    }
    free(names->slots);
    *names = grown;
}

static void name_set_add(struct gj_name_set *names, const char *at, size_t length, size_t hash)
{
    if (2 * names->count >= names->capacity)
        name_set_grow(names);
    if (names->failed)
        return;
    struct gj_name *const slot = name_slot(names, at, length, hash);
    if (slot->at == NULL) {
        *slot = (struct gj_name){at, length};
        names->count++;
    }
}

/* Adds every identifier of a text, except in // comments. */
static void name_set_add_text(struct gj_name_set *names, const char *at, const char *end)
{
    while (at < end) {
        const char *const start = at;
        const unsigned char class = name_class(*at++);
        size_t hash = hash_next(HASH_START, *start);
        if (class == 0) {
            if (*start == '/' && at < end && *at == '/') {
                const char *const newline = memchr(at, '\n', (size_t)(end - at));
                at = newline ? newline : end;
            }
            continue;
        }
        for (; at < end && name_class(*at) != 0; at++)
            hash = hash_next(hash, *at);
        if (class == LETTER)
            name_set_add(names, start, (size_t)(at - start), hash);
    }
}

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
        for (cut = at; cut < end && name_class(*cut);)
            cut++;
    } else if (line_starts(at, end, "DEVICE ") || line_starts(at, end, "template <")) {
        cut = memchr(at, '(', (size_t)(end - at));
        if (cut == NULL)
            return (struct gj_name){0};
        for (at = cut; name_class(at[-1]);)
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

static int count_of(const char *at, const char *end, char wanted)
{
    int count = 0;
    for (; (at = memchr(at, wanted, (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

static void cut_paragraphs(const struct gj_lines *lines, struct gj_paragraphs *out)
{
    const char *at = lines->text.text, *const stop = at + lines->text.length;
    int depth = 0;
    bool in_block = false, open = false;
    for (size_t i = 0; i < lines->count; i++) {
        const char *const end = memchr(at, '\n', (size_t)(stop - at));
        const bool blank = end == at;
        if (blank && depth == 0) {
            open = false;
        } else {
            if (!open)
                out->items[out->count++] =
                    (struct gj_paragraph){.first_line = i, .at = at, .comment_only = true};
            struct gj_paragraph *const paragraph = &out->items[out->count - 1];
            open = true;
            paragraph->end_line = i + 1;
            paragraph->end = end + 1;
            const bool verbatim = lines->items[i].verbatim;
            const bool comment = !verbatim && is_comment(at, end, &in_block);
            if (!comment && paragraph->comment_only) {
                paragraph->comment_only = false;
                paragraph->defines = defined_name(at, end);
            }
            if (!comment && !verbatim)
                depth += count_of(at, end, '{') - count_of(at, end, '}');
        }
        at = end + 1;
    }
}

/* Keeps paragraphs until nothing changes: first those that stand for themselves, then what they name. */
static void mark_used(struct gj_paragraphs *paragraphs, struct gj_name_set *used)
{
    bool changed = true;
    while (changed && !used->failed) {
        changed = false;
        for (size_t i = 0; i < paragraphs->count; i++) {
            struct gj_paragraph *const p = &paragraphs->items[i];
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

/* Files of which something is kept. */
struct files {
    const struct gj_asset *items[64]; /* more than a unit has; beyond them comments go */
    size_t count;
};

static bool files_have(const struct files *files, const struct gj_asset *asset)
{
    for (size_t i = files->count; i-- > 0;)
        if (files->items[i] == asset)
            return true;
    return false;
}

/* A file's comments stay when anything else of the file does. */
static void mark_comments(const struct gj_lines *lines, struct gj_paragraphs *paragraphs)
{
    struct files files = {.count = 0};
    for (size_t i = 0; i < paragraphs->count; i++) {
        const struct gj_paragraph *const p = &paragraphs->items[i];
        const struct gj_asset *const asset = lines->items[p->first_line].asset;
        if (p->kept && !p->comment_only && files.count < sizeof files.items / sizeof files.items[0] &&
            !files_have(&files, asset))
            files.items[files.count++] = asset;
    }
    for (size_t i = 0; i < paragraphs->count; i++) {
        struct gj_paragraph *const p = &paragraphs->items[i];
        if (p->comment_only)
            p->kept = files_have(&files, lines->items[p->first_line].asset);
    }
}

bool gj_prune(const struct gj_lines *lines, struct gj_paragraphs *paragraphs, struct gj_name_set *used)
{
    *paragraphs = (struct gj_paragraphs){.items = calloc(lines->num_blank + 1, sizeof(struct gj_paragraph))};
    if (paragraphs->items == NULL)
        return false;
    cut_paragraphs(lines, paragraphs);
    mark_used(paragraphs, used);
    mark_comments(lines, paragraphs);
    return !used->failed;
}

void gj_paragraphs_free(struct gj_paragraphs *paragraphs)
{
    free(paragraphs->items);
    *paragraphs = (struct gj_paragraphs){0};
}
