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

/* Writes the lines to keep to *kept and the identifiers that they use to *used, which points into
 * lines->text. Lines of an asset marked verbatim are somebody else's: kept, and their braces don't
 * count. Returns false when memory runs out. */
bool gj_prune(const struct gj_lines *lines, struct gj_lines *kept, struct gj_name_set *used);

#endif
