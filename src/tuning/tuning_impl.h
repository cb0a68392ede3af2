/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/tuning share. */
#ifndef GJ_TUNING_TUNING_IMPL_H
#define GJ_TUNING_TUNING_IMPL_H

#include "base/json.h"
#include "tuning/tuning.h"

/* Reads one entry of the table that messages call name; entry->index says which. What it allocated is in the
 * entry, also on failure. (tuning_entry.c) */
enum gj_status gj_tuning_entry_read(const char *name, const cJSON *item, struct gj_tuning_entry *entry,
                                    gj_error **error);

#endif
