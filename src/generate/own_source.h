/* SPDX-License-Identifier: Apache-2.0 */
/* A user's own function as the generator takes it. */
#ifndef GJ_GENERATE_OWN_SOURCE_H
#define GJ_GENERATE_OWN_SOURCE_H

#include <gemmjit/own.h>

#include "generate/assets.h"

struct gj_own_source {
    struct gj_asset asset; /* the source, under the name of its file */
    const char *name;      /* of the function */
    int line;              /* where it is defined, as far as can be told; else 1 */
};

/* Borrows the strings of *own. */
struct gj_own_source gj_own_source_make(const struct gj_own *own);

#endif
