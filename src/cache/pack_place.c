/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pack may be written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/pack_impl.h"

static const char where_pack[] = "the pack";
static const char where_dir[] = "the directory of the pack";

static bool refuse(struct gj_fault *fault, const char *what)
{
    *fault = (struct gj_fault){.where = where_pack, .what = what};
    return false;
}

static bool fail(struct gj_fault *fault, const char *where, const char *what)
{
    *fault = gj_fault_errno(where, what);
    return false;
}

/* The path that a rename is to replace, malloc'ed: a link stays and what it names is replaced. */
static bool find_target(const char *path, char **target, struct gj_fault *fault)
{
    struct stat status;
    const bool is_there = stat(path, &status) == 0;
    if (!is_there && errno != ENOENT)
        return fail(fault, where_pack, "cannot be examined");
    const size_t length = strlen(path);
    if (length == 0)
        return refuse(fault, "has no name");
    if (is_there ? S_ISDIR(status.st_mode) : path[length - 1] == '/')
        return refuse(fault, "is a directory; a pack is one file");
    if (is_there && !S_ISREG(status.st_mode))
        return refuse(fault, "is there and is not a regular file");
    *target = is_there ? realpath(path, NULL) : strdup(path);
    return *target || fail(fault, where_pack, "cannot be examined");
}

/* In there a pack would lie among the cache's own files. No v1 holds no pack. */
static bool is_within_cache(const gj_cache *cache, const char *directory, bool *is_within)
{
    struct gj_strbuf path = {0};
    gj_strbuf_printf(&path, "%s/" GJ_CACHE_VERSION_DIR, cache->root);
    char *const own = path.failed ? NULL : realpath(path.text, NULL);
    const bool is_absent = !path.failed && !own && errno == ENOENT;
    gj_strbuf_free(&path);
    char *const given = own ? realpath(directory, NULL) : NULL;
    if (given) {
        const size_t length = strlen(own);
        *is_within = strncmp(given, own, length) == 0 && (given[length] == '/' || given[length] == '\0');
    }
    const bool is_known = given || is_absent;
    free(given);
    free(own);
    return is_known;
}

static bool open_directory(const gj_cache *cache, const char *directory, int *dir, struct gj_fault *fault)
{
    bool is_within = false;
    *dir = gj_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    if (*dir < 0)
        return fail(fault, where_dir, "cannot be opened");
    if (!is_within_cache(cache, directory, &is_within))
        fail(fault, where_dir, "cannot be examined");
    else if (is_within)
        refuse(fault, "would lie within the v1 of the cache itself");
    else
        return true;
    close(*dir);
    return false;
}

bool gj_pack_place_open(const gj_cache *cache, const char *path, struct gj_pack_place *place,
                        struct gj_fault *fault)
{
    *place = (struct gj_pack_place){.dir = -1};
    char *target = NULL;
    if (!find_target(path, &target, fault))
        return false;
    char *const slash = strrchr(target, '/');
    place->name = strdup(slash ? slash + 1 : target);
    if (slash)
        slash[slash == target] = '\0'; /* the root keeps its slash */
    const bool done = place->name ? open_directory(cache, slash ? target : ".", &place->dir, fault)
                                  : fail(fault, where_pack, "cannot be examined");
    free(target);
    if (!done) {
        free(place->name);
        place->name = NULL;
    }
    return done;
}

void gj_pack_place_close(struct gj_pack_place *place)
{
    if (place->name)
        close(place->dir);
    free(place->name);
    *place = (struct gj_pack_place){.dir = -1};
}
