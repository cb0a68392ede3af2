/* SPDX-License-Identifier: Apache-2.0 */
/* The own functions that a context knows. Entries stay until the context is closed, so what was found may be
 * used without the lock. */
#ifndef GJ_API_OWN_LIST_H
#define GJ_API_OWN_LIST_H

#include "generate/own_source.h"

struct gj_own_entry;
struct gj_own_list {
    struct gj_own_entry *first;
};

/* The function of this id, or NULL. The caller holds the lock. */
const struct gj_own_source *gj_own_list_find(const struct gj_own_list *list, struct gj_own_id id);

/* Adds a copy unless the id is there. The caller holds the lock. Returns GJ_OK; GJ_ERR_NO_MEMORY. */
enum gj_status gj_own_list_add(struct gj_own_list *list, const struct gj_own *own, struct gj_own_id id,
                               gj_error **error);

void gj_own_list_free(struct gj_own_list *list);

#endif
