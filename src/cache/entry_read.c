/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an entry's file in full and holds it to its name, for the command's verbs; a lookup compares what it
 * expects instead. */
#include <stdlib.h>
#include <string.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"

const char *gj_entry_name_problem(const char *name, const struct gj_cache_entry *entry)
{
    const struct gj_cache_name right =
        gj_cache_name_make(&entry->unit_hash, entry->compiler, entry->arch, entry->options);
    return strcmp(name, right.text) == 0 ? NULL : "has a name that is not the hash of its inputs";
}

bool gj_entry_read(int dir, const char *name, struct gj_cache_entry *entry, size_t *bytes,
                   struct gj_fault *fault)
{
    struct gj_file file;
    if (!gj_file_read(dir, name, GJ_CACHE_FILE_MAX, &file, fault))
        return false;
    *fault = (struct gj_fault){.where = "the entry"};
    if (!gj_entry_adopt(file.data, file.bytes, entry, &fault->what)) {
        free(file.data);
        return false;
    }
    *bytes = file.bytes;
    fault->what = gj_entry_name_problem(name, entry);
    if (!fault->what)
        return true;
    gj_cache_entry_free(entry);
    return false;
}
