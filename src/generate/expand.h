/* SPDX-License-Identifier: Apache-2.0 */
/* The partial preprocessor: resolves `#include`, `#if` on plan constants, and the directives of *.in files;
 * everything else passes as written. docs/templates.md is the reference. */
#ifndef GJ_GENERATE_EXPAND_H
#define GJ_GENERATE_EXPAND_H

#include "base/strbuf.h"
#include "generate/assets.h"
#include "generate/constants.h"
#include "generate/unit.h"

/* Expanded lines: text holds them one after the other, each ending in a newline. */
struct gj_lines {
    struct gj_strbuf text;
    struct gj_unit_line *items;
    size_t count, capacity;
    bool failed; /* memory ran out */
};

void gj_lines_add(struct gj_lines *lines, const char *text, size_t length, const struct gj_asset *asset,
                  int line);
void gj_lines_free(struct gj_lines *lines);

/* Appends the expansion of the file at `path`. */
enum gj_status gj_expand(const struct gj_assets *assets, const char *path,
                         const struct gj_constants *constants, struct gj_lines *lines, gj_error **error);

#endif
