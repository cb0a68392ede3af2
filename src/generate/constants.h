/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as named constants: what `#if`, `@for` and `${}` of a template may refer to. */
#ifndef GJ_GENERATE_CONSTANTS_H
#define GJ_GENERATE_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/plan.h"

struct gj_constant {
    const char *name;
    const char *text; /* NULL for a number */
    long value;
    const char *comment;
};

#define GJ_CONSTANTS_MAX 192
#define GJ_CONSTANTS_SLOTS 512

struct gj_constants {
    struct gj_constant items[GJ_CONSTANTS_MAX];
    int count;
    int num_indexed; /* the first of them, which are found through slots */
    unsigned char slots[GJ_CONSTANTS_SLOTS];
};

/* All constants of a plan; strings point into *plan or are static. */
void gj_constants_make(const struct gj_plan *plan, struct gj_constants *constants);

/* One more word; name and text are borrowed. */
void gj_constants_add_text(struct gj_constants *constants, const char *name, const char *text);

/* Makes finding the constants that are there now fast; those that are added later hide them. */
void gj_constants_index(struct gj_constants *constants);

/* The last constant of that name (loop variables hide others), or NULL. */
const struct gj_constant *gj_constants_find(const struct gj_constants *constants, const char *name,
                                            size_t length);

/* Value of an integer expression over constants: || && == != < > <= >= + - * / % ! - ( ). On failure returns
 * false with a reason in message. */
bool gj_expression_value(const char *text, size_t length, const struct gj_constants *constants, long *value,
                         char *message, size_t capacity);

#endif
