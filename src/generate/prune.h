/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves out of a unit what its kernel does not use: functions and structs that nothing kept refers to. */
#ifndef GJ_GENERATE_PRUNE_H
#define GJ_GENERATE_PRUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "generate/expand.h"

/* A set of identifiers. Zero-initialise; the strings stay owned by whoever gave them. */
struct gj_name_set {
    struct gj_name {
        const char *at;
        size_t length;
    } * slots;
    size_t capacity, count;
    bool failed;
};

bool gj_name_set_has(const struct gj_name_set *names, const char *at, size_t length);
void gj_name_set_free(struct gj_name_set *names);

/* A run of lines that ends at a blank line outside braces. */
struct gj_paragraph {
    size_t first_line, end_line;
    const char *at, *end;   /* its text, with the last newline */
    struct gj_name defines; /* at NULL: nothing that could be left out */
    bool comment_only, kept;
};

struct gj_paragraphs {
    struct gj_paragraph *items;
    size_t count;
};

/* Cuts lines into paragraphs, which point into them, and marks those to keep; the identifiers that these use
 * go to *used, which points into lines->text. Lines of an asset marked verbatim are somebody else's: kept,
 * and their braces don't count. Returns false when memory runs out; *paragraphs is to be freed either way. */
bool gj_prune(const struct gj_lines *lines, struct gj_paragraphs *paragraphs, struct gj_name_set *used);
void gj_paragraphs_free(struct gj_paragraphs *paragraphs);

#endif
