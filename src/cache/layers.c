/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: further places of entries, which are read and never written. Each is a directory of the cache's
 * layout or a pack, told apart by what stands at the path when the cache is opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "cache/cache_impl.h"

/* Whether a directory can be read as a cache. An empty one is most likely a wrong path. */
static bool check_directory(const char *path, struct gj_fault *fault)
{
    const int dir = gj_dir_open_in(path, NULL, false, fault);
    if (dir >= 0)
        close(dir);
    return dir >= 0;
}

static bool open_place(struct gj_layer *layer, struct gj_fault *fault)
{
    struct stat status;
    if (stat(layer->path, &status) != 0) {
        *fault = gj_fault_errno("the layer", "cannot be examined");
        return false;
    }
    if (S_ISDIR(status.st_mode))
        return check_directory(layer->path, fault);
    layer->pack = gj_pack_open(layer->path, fault);
    return layer->pack != NULL;
}

/* Opens the layer at a path, or notes and logs why it cannot be used. False when memory runs out. */
static bool open_layer(gj_cache *cache, struct gj_layer *layer, const char *path)
{
    const char *reason = NULL;
    struct gj_fault fault = {0};
    struct gj_strbuf text = {0};
    layer->path = path[0] != '\0' ? gj_path_absolute(path, &reason) : strdup("");
    if (path[0] == '\0') {
        gj_strbuf_puts(&text, "an empty path names none");
    } else if (!layer->path && reason) {
        layer->path = strdup(path);
        gj_strbuf_puts(&text, reason);
    } else if (layer->path && !open_place(layer, &fault)) {
        gj_fault_describe(&fault, &text);
    }
    if (!layer->path || text.failed) {
        gj_strbuf_free(&text);
        return false;
    }
    if (text.text) {
        gj_log_printf(&cache->log, GJ_LOG_WARNING, "cache layer %s left out: %s", layer->path, text.text);
        layer->off_reason = gj_strbuf_take(&text);
    }
    return true;
}

static bool add_layer(gj_cache *cache, const char *path)
{
    struct gj_layer *const grown = realloc(cache->layers, (cache->num_layers + 1) * sizeof *cache->layers);
    if (!grown)
        return false;
    cache->layers = grown;
    grown[cache->num_layers] = (struct gj_layer){0};
    return open_layer(cache, &grown[cache->num_layers++], path);
}

/* Paths separated by ':'; empty ones are none. */
static bool add_list(gj_cache *cache, const char *list)
{
    char *const copy = strdup(list);
    char *rest = copy;
    bool done = copy != NULL;
    for (const char *path; done && (path = strsep(&rest, ":")) != NULL;)
        done = path[0] == '\0' || add_layer(cache, path);
    free(copy);
    return done;
}

bool gj_layers_open(gj_cache *cache, const char *const *paths, size_t count)
{
    const char *const list = paths ? NULL : gj_env_get(GJ_ENV_CACHE_LAYERS);
    bool done = !list || add_list(cache, list);
    for (size_t i = 0; paths && i < count && done; i++)
        done = add_layer(cache, paths[i]);
    return done;
}

void gj_layers_close(gj_cache *cache)
{
    for (size_t i = 0; i < cache->num_layers; i++) {
        gj_pack_close(&cache->layers[i].pack);
        free(cache->layers[i].off_reason);
        free(cache->layers[i].path);
    }
    free(cache->layers);
}

size_t gj_cache_num_layers(const gj_cache *cache)
{
    return cache ? cache->num_layers : 0;
}

const char *gj_cache_layer(const gj_cache *cache, size_t index, const char **off_reason)
{
    *off_reason = cache->layers[index].off_reason;
    return cache->layers[index].path;
}
