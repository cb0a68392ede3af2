/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the preprocessor share. */
#ifndef GJ_GENERATE_EXPAND_IMPL_H
#define GJ_GENERATE_EXPAND_IMPL_H

#include <stdbool.h>
#include <stddef.h>

#include "generate/expand.h"

#define INCLUDES_MAX 32 /* distinct files of one unit */
#define NESTING_MAX 16  /* includes and blocks inside each other */

struct line {
    const char *at;
    size_t length;
};

/* What the first word of a line says. */
enum directive {
    DIRECTIVE_NONE,
    DIRECTIVE_LEFT_OUT, /* not for the unit: #pragma once, the licence */
    DIRECTIVE_INCLUDE,
    DIRECTIVE_IF,
    DIRECTIVE_ELIF,
    DIRECTIVE_ELSE,
    DIRECTIVE_ENDIF,
    DIRECTIVE_UNKNOWN, /* #ifdef, #ifndef: templates don't have them */
    DIRECTIVE_FOR,
    DIRECTIVE_EACH,
    DIRECTIVE_JOIN,
    DIRECTIVE_AT_IF,
    DIRECTIVE_END,
    DIRECTIVE_OWN,
};

/* A file cut into lines. */
struct source {
    const struct gj_asset *asset;
    struct line *lines;
    unsigned char *directives; /* enum directive of each line */
    int count;
};

/* False when memory runs out. */
bool gj_source_cut(struct source *source, const struct gj_asset *asset);
void gj_source_free(struct source *source);
/* What follows the directive of a line, trimmed. */
struct line gj_source_rest(const struct source *source, int index);

struct expander {
    const struct gj_assets *assets;
    struct gj_constants constants; /* plan constants, then the loop variables in scope */
    const struct gj_own_source *own;
    const struct gj_asset *own_user; /* the template that has taken own in */
    const struct gj_asset *included[INCLUDES_MAX];
    int num_included;
    int nesting;
    struct gj_lines *out;
    gj_error **error;
};

/* Fails at a template line. */
enum gj_status gj_expand_fail(struct expander *expander, const struct source *source, int index,
                              const char *message);

struct line gj_line_trim(struct line line);
/* Whether a line starts with a word such as "#if" or "@for"; *rest is what follows it. */
bool gj_line_starts_with(struct line line, const char *word, struct line *rest);
/* Cuts a "quoted" text off the front. */
bool gj_line_take_quoted(struct line *text, struct line *value);

/* Value of an expression, in which ${WORD} may stand for a part of a name. */
enum gj_status gj_expand_value(struct expander *expander, const struct source *source, int index,
                               struct line text, long *value);
/* Replaces ${expression} and ${WORD} in a line. */
enum gj_status gj_expand_substitute(struct expander *expander, const struct source *source, int index,
                                    struct line line, struct gj_strbuf *out);
/* Expands lines. */
enum gj_status gj_expand_range(struct expander *expander, const struct source *source, int from, int to);

/* Blocks: `text` is what follows the word at line `index`, `end` the line of its @end. */
enum gj_status gj_expand_for(struct expander *expander, const struct source *source, int index,
                             struct line text, int end);
enum gj_status gj_expand_each(struct expander *expander, const struct source *source, int index,
                              struct line text, int end);
enum gj_status gj_expand_join(struct expander *expander, const struct source *source, int index,
                              struct line text, int end);

#endif
