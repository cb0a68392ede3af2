/* SPDX-License-Identifier: Apache-2.0 */
/* The partial preprocessor: resolves `#include`, `#if` on plan constants, and the directives of *.in files;
 * everything else passes as written. docs/templates.md is the reference. */
#ifndef GJ_GENERATE_EXPAND_H
#define GJ_GENERATE_EXPAND_H

#include "generate/assets.h"
#include "generate/constants.h"
#include "generate/lines.h"
#include "generate/own_source.h"

/* Appends the expansion of the file at `path`. `@own` becomes the lines of own, as written, which may be NULL
 * where no template has it; what follows it in its file counts as the line where own's function is defined.
 */
enum gj_status gj_expand(const struct gj_assets *assets, const char *path,
                         const struct gj_constants *constants, const struct gj_own_source *own,
                         struct gj_lines *lines, gj_error **error);

#endif
