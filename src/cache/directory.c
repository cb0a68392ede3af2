/* SPDX-License-Identifier: Apache-2.0 */
/* The private directories below the root, each checked every time it is opened. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cache/cache_impl.h"

bool gj_trust_owner(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

bool gj_trust_check(const struct stat *status, bool directory, const char *where, struct gj_fault *fault)
{
    const char *what = NULL;
    if (directory ? !S_ISDIR(status->st_mode) : !S_ISREG(status->st_mode))
        what = directory ? "is not a directory" : "is not a regular file";
    else if (!gj_trust_owner(status->st_uid))
        what = "belongs to another user";
    else if (status->st_mode & (S_IWGRP | S_IWOTH))
        what = "is writable by its group or by others";
    if (!what)
        return true;
    *fault = (struct gj_fault){.where = where,
                               .what = what,
                               .has_stat = directory ? S_ISDIR(status->st_mode) : S_ISREG(status->st_mode),
                               .owner = status->st_uid,
                               .mode = status->st_mode};
    return false;
}

int gj_dir_make_private(int parent, const char *name)
{
    if (mkdirat(parent, name, 0700) != 0)
        return errno == EEXIST ? 0 : -1;
    /* The umask can only have taken bits away. A name that is no longer ours is left as it is. */
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
        status.st_uid == geteuid() && (status.st_mode & 0700) != 0700)
        return fchmodat(parent, name, 0700, 0);
    return 0;
}

static int open_no_follow(int parent, const char *name)
{
    return gj_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Why open_no_follow failed, by errno. To the kernel a link is "not a directory" too. */
static struct gj_fault fault_open(int parent, const char *name, const char *where)
{
    const struct gj_fault fault = gj_fault_errno(where, "cannot be opened");
    struct stat status;
    if ((fault.error == ENOTDIR || fault.error == ELOOP) &&
        fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return (struct gj_fault){
            .where = where, .what = S_ISLNK(status.st_mode) ? "is a symbolic link" : "is not a directory"};
    return fault;
}

/* Opens `name`, making it when it is missing and `make` says so. */
static int open_or_make(int parent, const char *name, const char *where, bool make, struct gj_fault *fault)
{
    int dir = open_no_follow(parent, name);
    if (dir >= 0)
        return dir;
    if (errno != ENOENT || !make) {
        *fault = fault_open(parent, name, where);
        return -1;
    }
    if (gj_dir_make_private(parent, name) == 0)
        dir = open_no_follow(parent, name);
    if (dir < 0)
        *fault = gj_fault_errno(where, "cannot be made");
    return dir;
}

/* Opens a directory below an open one, which is closed. */
static int descend(int parent, const char *name, const char *where, bool make, struct gj_fault *fault)
{
    if (parent < 0)
        return -1;
    const int dir = open_or_make(parent, name, where, make, fault);
    close(parent);
    if (dir < 0)
        return -1;
    struct stat status;
    if (fstat(dir, &status) != 0)
        *fault = gj_fault_errno(where, "cannot be examined");
    else if (gj_trust_check(&status, true, where, fault))
        return dir;
    close(dir);
    return -1;
}

int gj_dir_open_in(const char *path, const char *sub, bool make, struct gj_fault *fault)
{
    const int root = gj_root_open(path, make, fault);
    const int version = descend(root, GJ_CACHE_VERSION_DIR, "the directory v1", make, fault);
    return sub ? descend(version, sub, "the directory of the file", make, fault) : version;
}

int gj_dir_open(const gj_cache *cache, const char *sub, bool make, struct gj_fault *fault)
{
    return gj_dir_open_in(cache->root, sub, make, fault);
}
