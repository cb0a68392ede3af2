/* SPDX-License-Identifier: Apache-2.0 */
/* The root of the cache: which directory it is, how it is made, and when it is trusted. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "cache/cache_impl.h"

static const char where_root[] = "the root";
static const char dangling[] = "is a symbolic link to what does not exist";

/* -- Which directory --------------------------------------------------------------------------------- */

/* base + "/" + path + tail without trailing slashes; base is put before a relative path only. */
static char *join(const char *base, const char *path, const char *tail)
{
    struct gj_strbuf text = {0};
    if (path[0] != '/') {
        gj_strbuf_puts(&text, base);
        gj_strbuf_puts(&text, "/");
    }
    gj_strbuf_puts(&text, path);
    if (tail[0] != '\0') {
        gj_strbuf_puts(&text, "/");
        gj_strbuf_puts(&text, tail);
    }
    char *joined = gj_strbuf_take(&text);
    if (!joined)
        return NULL;
    /* A trailing slash would make lstat follow a link. */
    for (size_t length = strlen(joined); length > 1 && joined[length - 1] == '/'; length--)
        joined[length - 1] = '\0';
    return joined;
}

/* Relative paths are fixed now: the process may change its directory later. */
char *gj_path_absolute(const char *path, const char **reason)
{
    if (path[0] == '/')
        return join("", path, "");
    char *base = getcwd(NULL, 0);
    if (!base) {
        *reason = errno == ENOMEM ? NULL : "its path is relative and there is no working directory";
        return NULL;
    }
    char *joined = join(base, path, "");
    free(base);
    return joined;
}

char *gj_root_choose(const char *given, const char **reason)
{
    *reason = NULL;
    if (given && given[0] == '\0') {
        *reason = "the cache directory that was given is an empty text";
        return NULL;
    }
    if (!given)
        given = gj_env_get(GJ_ENV_CACHE_DIR);
    if (given)
        return gj_path_absolute(given, reason);
    const char *xdg = gj_env_get(GJ_ENV_XDG_CACHE_HOME);
    if (xdg && xdg[0] == '/') /* the XDG specification has relative ones ignored */
        return join("", xdg, "gemmjit");
    const char *home = gj_env_get(GJ_ENV_HOME);
    if (home && home[0] == '/')
        return join("", home, ".cache/gemmjit");
    *reason = "no cache directory: GEMMJIT_CACHE_DIR is not set, and neither XDG_CACHE_HOME nor HOME is an "
              "absolute path";
    return NULL;
}

/* -- Making it --------------------------------------------------------------------------------------- */

/* End of the path of `path`'s parent, `path` being `length` long: 1 for "/x", 0 when there is none. */
static size_t parent_length(const char *path, size_t length)
{
    if (length <= 1)
        return 0;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

/* Makes the directory that the first `length` bytes of path name, and the parents it lacks. Parents that
 * exist are not touched: they need not be writable, and may not even answer mkdir with EEXIST. Restores path.
 */
static int make_with_parents(char *path, size_t length)
{
    const char saved = path[length];
    path[length] = '\0';
    int result = gj_dir_make_private(AT_FDCWD, path);
    const size_t parent = parent_length(path, length);
    if (result != 0 && errno == ENOENT && parent > 0 && make_with_parents(path, parent) == 0)
        result = gj_dir_make_private(AT_FDCWD, path);
    path[length] = saved;
    return result;
}

bool gj_root_can_make(const char *root, struct gj_fault *fault)
{
    struct stat status;
    bool can = false;
    char *path = strdup(root);
    if (path && lstat(path, &status) == 0) {
        if (S_ISLNK(status.st_mode)) { /* mkdir would refuse */
            *fault = (struct gj_fault){.where = where_root, .what = dangling};
            free(path);
            return false;
        }
        /* Another process has made it since, or this host sees it only now. */
        can = faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
    }
    for (size_t length = path ? strlen(path) : 0; path && !can && errno == ENOENT && length > 0;) {
        length = parent_length(path, length);
        path[length] = '\0';
        if (length > 0 && stat(path, &status) == 0) {
            can = faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
            break;
        }
    }
    if (!can)
        *fault = gj_fault_errno(where_root, "does not exist and cannot be made");
    free(path);
    return can;
}

/* -- Opening it -------------------------------------------------------------------------------------- */

/* A root that is a link of ours is followed. Whoever may rename what is above the root is trusted: see
 * docs/cache_format.md. */
static int open_existing(const char *root, struct gj_fault *fault)
{
    struct stat status;
    if (lstat(root, &status) != 0) {
        *fault = gj_fault_errno(where_root, "cannot be examined");
        return -1;
    }
    const bool is_link = S_ISLNK(status.st_mode);
    if (is_link && !gj_trust_owner(status.st_uid)) {
        *fault = (struct gj_fault){.where = where_root,
                                   .what = "is a symbolic link of another user",
                                   .has_stat = true,
                                   .owner = status.st_uid,
                                   .mode = status.st_mode};
        return -1;
    }
    const int dir = gj_open_at(AT_FDCWD, root, O_RDONLY | O_DIRECTORY | (is_link ? 0 : O_NOFOLLOW), 0);
    if (dir < 0) {
        *fault = gj_fault_errno(where_root, is_link && errno == ENOENT ? dangling : "cannot be opened");
        return -1;
    }
    if (fstat(dir, &status) != 0)
        *fault = gj_fault_errno(where_root, "cannot be examined");
    else if (gj_trust_check(&status, true, where_root, fault))
        return dir;
    close(dir);
    return -1;
}

int gj_root_open(const char *root, bool make, struct gj_fault *fault)
{
    const int dir = open_existing(root, fault);
    if (dir >= 0 || !make || fault->error != ENOENT)
        return dir;
    char *path = strdup(root);
    const int made = path ? make_with_parents(path, strlen(path)) : -1;
    if (made != 0)
        *fault = gj_fault_errno(where_root, "cannot be made");
    free(path);
    return made == 0 ? open_existing(root, fault) : -1;
}
