/* SPDX-License-Identifier: Apache-2.0 */
/* The table of an entry's fields, and the comparison of two entries that walks it. */
#include "cache/entry_format.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(tag, kind, expected, member, differs)                                   \
    {                                                                                 \
        (tag), (kind), (expected), offsetof(struct gj_cache_entry, member), (differs) \
    }

/* Tags are permanent within a format version. registers and spill_bytes are measured from the cubin, so
 * nobody can know them before the load. */
const struct gj_entry_field gj_entry_fields[GJ_ENTRY_NUM_FIELDS] = {
    FIELD(1, GJ_ENTRY_TEXT, true, key_text, "is of another key"),
    FIELD(2, GJ_ENTRY_HASH, true, unit_hash, "is of another unit"),
    FIELD(3, GJ_ENTRY_TEXT, true, compiler, "is of another compiler"),
    FIELD(4, GJ_ENTRY_TEXT, true, arch, "is of another architecture"),
    FIELD(5, GJ_ENTRY_TEXT, true, options, "is of other compiler options"),
    FIELD(6, GJ_ENTRY_TEXT, true, entry_name, "has another kernel entry name"),
    FIELD(7, GJ_ENTRY_INT, false, registers, ""),
    FIELD(8, GJ_ENTRY_INT, true, threads, "has another number of threads"),
    FIELD(9, GJ_ENTRY_INT, true, smem_bytes, "has another size of shared memory"),
    FIELD(10, GJ_ENTRY_INT, true, stages, "has another number of stages"),
    FIELD(11, GJ_ENTRY_INT, false, spill_bytes, ""),
};

static bool texts_equal(const void *a, const void *b)
{
    const char *text_a, *text_b;
    memcpy(&text_a, a, sizeof text_a);
    memcpy(&text_b, b, sizeof text_b);
    return text_a && text_b && strcmp(text_a, text_b) == 0;
}

static bool members_equal(enum gj_entry_kind kind, const void *a, const void *b)
{
    switch (kind) {
    case GJ_ENTRY_TEXT:
        return texts_equal(a, b);
    case GJ_ENTRY_HASH:
        return memcmp(a, b, sizeof(struct gj_hash)) == 0;
    case GJ_ENTRY_INT:
        return memcmp(a, b, sizeof(int32_t)) == 0;
    }
    return false;
}

const char *gj_entry_difference(const struct gj_cache_entry *entry, const struct gj_cache_entry *expected)
{
    for (size_t i = 0; i < GJ_ENTRY_NUM_FIELDS; i++) {
        const struct gj_entry_field *field = &gj_entry_fields[i];
        if (field->expected && !members_equal(field->kind, (const char *)entry + field->offset,
                                              (const char *)expected + field->offset))
            return field->differs;
    }
    return NULL;
}

void gj_cache_entry_free(struct gj_cache_entry *entry)
{
    if (!entry)
        return;
    free(entry->storage);
    *entry = (struct gj_cache_entry){0};
}
