/* SPDX-License-Identifier: Apache-2.0 */
/* The unit: one flat CUDA text for one plan, and the map from its lines back to the templates.
 *
 * Deterministic: same plan and same templates, same bytes. */
#ifndef GJ_GENERATE_UNIT_H
#define GJ_GENERATE_UNIT_H

#include <stdbool.h>
#include <stddef.h>

#include <gemmjit/error.h>

#include "generate/assets.h"
#include "generate/own_source.h"
#include "plan/plan.h"

/* Where a line of the unit came from; asset NULL for lines that the generator wrote itself. */
struct gj_unit_line {
    const struct gj_asset *asset;
    int line;      /* 1-based */
    bool verbatim; /* a user's own text, of which nothing is left out */
};

struct gj_unit {
    char *text; /* zero-terminated */
    size_t length;
    struct gj_unit_line *lines;
    size_t num_lines;
};

/* Expands the templates for a plan of an accepted key. assets NULL: the built-in ones, which must outlive the
 * unit in any case. own: the function of a key with act=own, which must outlive the unit too; else NULL.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: the key has act=own and own is NULL; GJ_ERR_GENERATE: a template breaks a
 * rule (locations[0] says where); GJ_ERR_NO_MEMORY. */
enum gj_status gj_unit_make(const struct gj_plan *plan, const struct gj_assets *assets,
                            const struct gj_own_source *own, struct gj_unit *unit, gj_error **error);
void gj_unit_free(struct gj_unit *unit);

/* Fills location->file and ->line for a 1-based line of the unit; false when it has no template line.
 * The signature is that of a compile request's line lookup. */
bool gj_unit_find_line(const void *unit, int unit_line, struct gj_location *location);

#endif
