/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a unit in the making, each with the template line that it is from. */
#include "generate/lines.h"

#include <stdlib.h>

/* Most units have fewer lines and bytes. */
enum { FIRST_LINES = 2048, FIRST_BYTES = 96 << 10 };

void gj_lines_add(struct gj_lines *lines, const char *text, size_t length, const struct gj_asset *asset,
                  int line)
{
    if (lines->count == lines->capacity) {
        const size_t capacity = lines->capacity ? 2 * lines->capacity : FIRST_LINES;
        if (lines->capacity == 0)
            gj_strbuf_reserve(&lines->text, FIRST_BYTES);
        struct gj_unit_line *const grown = realloc(lines->items, capacity * sizeof *grown);
        if (grown == NULL) {
            lines->failed = true;
            return;
        }
        lines->items = grown;
        lines->capacity = capacity;
    }
    lines->items[lines->count++] = (struct gj_unit_line){asset, line, false};
    lines->num_blank += length == 0;
    gj_strbuf_add_line(&lines->text, text, length);
}

void gj_lines_free(struct gj_lines *lines)
{
    gj_strbuf_free(&lines->text);
    free(lines->items);
    *lines = (struct gj_lines){0};
}
