/* SPDX-License-Identifier: Apache-2.0 */
/* Compile keys: defaults, canonical text, element types. */
#include <gemmjit/key.h>

#include "base/strbuf.h"
#include "key/config.h"
#include "key/key_tables.h"

#include <stdio.h>
#include <string.h>

struct gj_key gj_key_default(void)
{
    return (struct gj_key){
        .op = GJ_OP_GEMM,
        .a = {GJ_DTYPE_BF16, GJ_MAJOR_K},
        .b = {GJ_DTYPE_BF16, GJ_MAJOR_K},
        .d = {GJ_DTYPE_BF16, GJ_MAJOR_N},
        .acc = GJ_DTYPE_F32,
        .alpha = GJ_SCALAR_ONE,
        .tile_m = 128,
        .tile_n = 192,
        .cluster_m = 2,
        .cluster_n = 1,
        .sched = GJ_SCHED_PINGPONG,
        .tiles = GJ_TILES_STATIC,
    };
}

const char *gj_dtype_name(enum gj_dtype dtype)
{
    if ((int)dtype < 0 || (int)dtype >= gj_dtype_words.count)
        return "?";
    return gj_dtype_words.names[dtype];
}

size_t gj_dtype_bytes(enum gj_dtype dtype)
{
    switch (dtype) {
    case GJ_DTYPE_F32:
        return 4;
    case GJ_DTYPE_F16:
    case GJ_DTYPE_BF16:
        return 2;
    case GJ_DTYPE_E4M3:
    case GJ_DTYPE_E5M2:
        return 1;
    case GJ_DTYPE_NONE:
        return 0;
    }
    return 0;
}

static const char *word_of(struct gj_words words, int value)
{
    if (value < 0 || value >= words.count || words.names[value] == NULL)
        return "?";
    return words.names[value];
}

static void format_value(const struct gj_key *key, const struct gj_field *field, char *text, size_t capacity)
{
    const char *const base = (const char *)key + field->offset;
    switch (field->kind) {
    case GJ_FIELD_WORD: {
        int value; /* every enum of struct gj_key has the size of int: asserted below */
        memcpy(&value, base, sizeof value);
        snprintf(text, capacity, "%s", word_of(field->words, value));
        return;
    }
    case GJ_FIELD_FORMAT: {
        struct gj_format format;
        memcpy(&format, base, sizeof format);
        if (format.dtype == GJ_DTYPE_NONE)
            snprintf(text, capacity, "none");
        else
            snprintf(text, capacity, "%s.%s", gj_dtype_name(format.dtype),
                     word_of(gj_major_words, (int)format.major));
        return;
    }
    case GJ_FIELD_PAIR: {
        int pair[2];
        memcpy(pair, base, sizeof pair);
        snprintf(text, capacity, "%dx%d", pair[0], pair[1]);
        return;
    }
    case GJ_FIELD_ID: {
        struct gj_own_id id;
        memcpy(&id, base, sizeof id);
        snprintf(text, capacity, "%08x%08x", id.high, id.low);
        return;
    }
    }
}

_Static_assert(sizeof(enum gj_op) == sizeof(int) && sizeof(enum gj_tiles) == sizeof(int), "enums are ints");
_Static_assert(offsetof(struct gj_key, tile_n) == offsetof(struct gj_key, tile_m) + sizeof(int) &&
                   offsetof(struct gj_key, cluster_n) == offsetof(struct gj_key, cluster_m) + sizeof(int),
               "pairs are adjacent");

/* A quiet field that holds none. */
static bool is_silent(const struct gj_key *key, const struct gj_field *field)
{
    int value;
    memcpy(&value, (const char *)key + field->offset, sizeof value);
    return field->quiet && field->kind == GJ_FIELD_WORD && value == 0;
}

/* Adds one field behind `length` characters; returns the length with it. */
static size_t add_field(const struct gj_key *key, const struct gj_field *field, size_t length, char *text,
                        size_t capacity)
{
    char value[48];
    format_value(key, field, value, sizeof value);
    const size_t room = length < capacity ? capacity - length : 0;
    return length + (size_t)snprintf(room ? text + length : NULL, room, "%s%s=%s", length ? "," : "",
                                     field->name, value);
}

size_t gj_key_format_part(const struct gj_key *key, unsigned parts, char *text, size_t capacity)
{
    size_t length = 0;
    if (capacity > 0)
        text[0] = '\0';
    for (int i = 0; i < gj_num_fields; i++) {
        const struct gj_field *const field = &gj_fields[i];
        if ((parts & (field->is_config ? GJ_KEY_CONFIG : GJ_KEY_PROBLEM)) != 0 &&
            gj_key_has_field(key, field) && !is_silent(key, field))
            length = add_field(key, field, length, text, capacity);
    }
    return length;
}

size_t gj_key_format(const struct gj_key *key, char *text, size_t capacity)
{
    return gj_key_format_part(key, GJ_KEY_PROBLEM | GJ_KEY_CONFIG, text, capacity);
}

void gj_key_take_config(struct gj_key *key, const struct gj_key *config)
{
    for (int i = 0; i < gj_num_fields; i++)
        if (gj_fields[i].is_config)
            memcpy((char *)key + gj_fields[i].offset, (const char *)config + gj_fields[i].offset,
                   gj_field_bytes(&gj_fields[i]));
}

struct gj_key gj_key_problem(const struct gj_key *key)
{
    const struct gj_key config = gj_key_default();
    struct gj_key problem = *key;
    gj_key_take_config(&problem, &config);
    return problem;
}
