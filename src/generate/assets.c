/* SPDX-License-Identifier: Apache-2.0 */
/* Template files: lookup, and reading them from a directory. */
#include "generate/assets.h"

#include "base/error_build.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct gj_asset *gj_assets_find(const struct gj_assets *assets, const char *path, size_t length)
{
    for (size_t i = 0; i < assets->count; i++)
        if (strlen(assets->items[i].path) == length && memcmp(assets->items[i].path, path, length) == 0)
            return &assets->items[i];
    return NULL;
}

/* Reads a whole file; errno tells why it failed. */
static char *read_file(const char *path, size_t *length)
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL)
        return NULL;
    struct gj_strbuf text = {0};
    char block[16384];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        gj_strbuf_add(&text, block, got);
    const int failure = ferror(file) ? (errno ? errno : EIO) : 0;
    fclose(file);
    if (failure) {
        gj_strbuf_free(&text);
        errno = failure;
        return NULL;
    }
    *length = text.length;
    char *const taken = gj_strbuf_take(&text);
    if (taken == NULL)
        errno = ENOMEM;
    return taken;
}

void gj_assets_free(struct gj_assets **assets)
{
    if (assets == NULL || *assets == NULL)
        return;
    struct gj_asset *const items = (struct gj_asset *)(void *)(*assets + 1);
    for (size_t i = 0; i < (*assets)->count; i++)
        free((char *)(size_t)items[i].text);
    free(*assets);
    *assets = NULL;
}

enum gj_status gj_assets_read(const char *directory, struct gj_assets **assets, gj_error **error)
{
    const struct gj_assets *const builtin = gj_assets_builtin();
    struct gj_assets *read = calloc(1, sizeof *read + builtin->count * sizeof(struct gj_asset));
    if (read == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_GENERATE, "no memory for the templates of %s", directory);
    struct gj_asset *const items = (struct gj_asset *)(void *)(read + 1);
    read->items = items;
    for (size_t i = 0; i < builtin->count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, builtin->items[i].path);
        items[i].path = builtin->items[i].path;
        items[i].text = read_file(path, &items[i].length);
        if (items[i].text == NULL) {
            const int failure = errno;
            gj_assets_free(&read);
            return gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_GENERATE, failure, strerrorname_np(failure),
                                 "template %s cannot be read: %s", path, strerror(failure));
        }
        read->count++;
    }
    *assets = read;
    return GJ_OK;
}
