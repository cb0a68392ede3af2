/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a unit in the making, each with the template line that it is from. */
#ifndef GJ_GENERATE_LINES_H
#define GJ_GENERATE_LINES_H

#include "base/strbuf.h"
#include "generate/unit.h"

/* Expanded lines: text holds them one after the other, each ending in a newline. */
struct gj_lines {
    struct gj_strbuf text;
    struct gj_unit_line *items;
    size_t count, capacity;
    size_t num_blank; /* lines of no character */
    bool failed;      /* memory ran out */
};

void gj_lines_add(struct gj_lines *lines, const char *text, size_t length, const struct gj_asset *asset,
                  int line);
void gj_lines_free(struct gj_lines *lines);

#endif
