/* SPDX-License-Identifier: Apache-2.0 */
/* The own functions that a context knows. */
#include "api/own_list.h"

#include "base/error_build.h"

#include <stdlib.h>
#include <string.h>

struct gj_own_entry {
    struct gj_own_entry *next;
    struct gj_own_id id;
    struct gj_own_source source;
    char text[]; /* name, file and source, each with its zero */
};

const struct gj_own_source *gj_own_list_find(const struct gj_own_list *list, struct gj_own_id id)
{
    for (const struct gj_own_entry *entry = list->first; entry != NULL; entry = entry->next)
        if (entry->id.high == id.high && entry->id.low == id.low)
            return &entry->source;
    return NULL;
}

static char *append(char *at, const char *text)
{
    const size_t size = strlen(text) + 1;
    memcpy(at, text, size);
    return at + size;
}

enum gj_status gj_own_list_add(struct gj_own_list *list, const struct gj_own *own, struct gj_own_id id,
                               gj_error **error)
{
    const char *const file = own->file ? own->file : "own";
    if (gj_own_list_find(list, id) != NULL)
        return GJ_OK;
    struct gj_own_entry *const entry =
        malloc(sizeof *entry + strlen(own->name) + strlen(file) + strlen(own->source) + 3);
    if (entry == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the own function %s", own->name);
    char *const name_at = entry->text, *const file_at = append(name_at, own->name);
    char *const source_at = append(file_at, file);
    append(source_at, own->source);
    const struct gj_own copy = {name_at, source_at, file_at};
    entry->source = gj_own_source_make(&copy);
    entry->id = id;
    entry->next = list->first;
    list->first = entry;
    return GJ_OK;
}

void gj_own_list_free(struct gj_own_list *list)
{
    while (list->first != NULL) {
        struct gj_own_entry *const entry = list->first;
        list->first = entry->next;
        free(entry);
    }
}
