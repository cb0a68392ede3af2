/* SPDX-License-Identifier: Apache-2.0 */
/* The words of key text: one table per enum and one table of fields, in the order in which they are printed.
 */
#ifndef GJ_KEY_KEY_TABLES_H
#define GJ_KEY_KEY_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include <gemmjit/key.h>

/* Names of an enum's values, indexed by value; NULL for a value that has no word in key text. */
struct gj_words {
    const char *const *names;
    int count;
};

enum gj_field_kind {
    GJ_FIELD_WORD,   /* an enum by its words */
    GJ_FIELD_FORMAT, /* TYPE.MAJOR, or none where allowed */
    GJ_FIELD_PAIR,   /* MxN */
    GJ_FIELD_ID,     /* 16 hexadecimal digits */
};

struct gj_field {
    const char *name;
    enum gj_field_kind kind;
    size_t offset;         /* of the value in struct gj_key; for a pair, of its first int */
    struct gj_words words; /* WORD: values; FORMAT: unused */
    unsigned dtypes;       /* FORMAT: bit set of enum gj_dtype; bit NONE: may be absent */
    enum gj_major majors[2];
    bool quiet;     /* not printed while it holds 0: none, or 1 CTA */
    bool is_config; /* says how to compute, not what */
};

extern const struct gj_field gj_fields[];
extern const int gj_num_fields;

extern const struct gj_words gj_dtype_words, gj_major_words;

/* Index of word in words, or -1. */
int gj_words_find(struct gj_words words, const char *word, size_t length);

/* Fields that only some keys have: p needs an operation with PostAct, fp8acc 8-bit A and B, gate a gated
 * operation, own act=own. */
bool gj_key_has_field(const struct gj_key *key, const struct gj_field *field);

/* Bytes that the value of a field has in struct gj_key. */
size_t gj_field_bytes(const struct gj_field *field);

/* Whether an operation takes functions of a gate and an up value. */
bool gj_op_is_gated(enum gj_op op);

#endif
