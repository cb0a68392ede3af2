/* SPDX-License-Identifier: Apache-2.0 */
/* The template and snippet files, by path: built into the library, or read from a directory. */
#ifndef GJ_GENERATE_ASSETS_H
#define GJ_GENERATE_ASSETS_H

#include <stddef.h>

#include <gemmjit/error.h>

struct gj_asset {
    const char *path; /* e.g. "templates/load.cuh" */
    const char *text; /* zero-terminated */
    size_t length;
};

struct gj_assets {
    const struct gj_asset *items;
    size_t count;
};

/* The built-in files, in path order. Static storage. */
const struct gj_assets *gj_assets_builtin(void);

/* Reads the same paths below a directory. Returns GJ_OK; GJ_ERR_SYSTEM: a file cannot be read (path, errno);
 * GJ_ERR_NO_MEMORY. Free with gj_assets_free. */
enum gj_status gj_assets_read(const char *directory, struct gj_assets **assets, gj_error **error);
void gj_assets_free(struct gj_assets **assets);

/* NULL when there is no such path. */
const struct gj_asset *gj_assets_find(const struct gj_assets *assets, const char *path, size_t length);

#endif
