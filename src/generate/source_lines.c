/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a template into lines and tells its directives, once, so that the passes over it need not. */
#include "generate/expand_impl.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum directive directive;
    const char *word;
} words[] = {
    {DIRECTIVE_LEFT_OUT, "#pragma once"},
    {DIRECTIVE_LEFT_OUT, "// SPDX-License-Identifier"},
    {DIRECTIVE_LEFT_OUT, "/* SPDX-License-Identifier"},
    {DIRECTIVE_INCLUDE, "#include"},
    {DIRECTIVE_IF, "#if"},
    {DIRECTIVE_ELIF, "#elif"},
    {DIRECTIVE_ELSE, "#else"},
    {DIRECTIVE_ENDIF, "#endif"},
    {DIRECTIVE_UNKNOWN, "#ifdef"},
    {DIRECTIVE_UNKNOWN, "#ifndef"},
    {DIRECTIVE_FOR, "@for"},
    {DIRECTIVE_EACH, "@each"},
    {DIRECTIVE_JOIN, "@join"},
    {DIRECTIVE_AT_IF, "@if"},
    {DIRECTIVE_END, "@end"},
    {DIRECTIVE_OWN, "@own"},
};

static enum directive classify(struct line line)
{
    size_t blank = 0;
    while (blank < line.length && isspace((unsigned char)line.at[blank]))
        blank++;
    const char first = blank < line.length ? line.at[blank] : ' ';
    if (first != '#' && first != '@' && first != '/') /* most lines */
        return DIRECTIVE_NONE;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].word[0] == first && gj_line_starts_with(line, words[i].word, NULL))
            return words[i].directive;
    return DIRECTIVE_NONE;
}

struct line gj_source_rest(const struct source *source, int index)
{
    struct line rest = {NULL, 0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].directive == (enum directive)source->directives[index] &&
            gj_line_starts_with(source->lines[index], words[i].word, &rest))
            break;
    return rest;
}

bool gj_source_cut(struct source *source, const struct gj_asset *asset)
{
    const char *const end = asset->text + asset->length;
    size_t most = 1; /* the last line needs no newline */
    for (const char *at = asset->text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        most++;
    *source = (struct source){.asset = asset};
    source->lines = malloc(most * (sizeof *source->lines + 1));
    if (source->lines == NULL)
        return false;
    source->directives = (unsigned char *)(source->lines + most);
    for (const char *at = asset->text; at < end;) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const struct line line = {at, (size_t)((newline ? newline : end) - at)};
        source->directives[source->count] = (unsigned char)classify(line);
        source->lines[source->count++] = line;
        at += line.length + 1;
    }
    return true;
}

void gj_source_free(struct source *source)
{
    free(source->lines);
    *source = (struct source){0};
}
