/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take a name: opening, examining, making, renaming, removing. */
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define INT_WRAP(kind, dir, name, symbol, params, args) \
    SHIM_WRAP(int, -1, kind, dir, name, symbol, params, args)

/* -- Opening ----------------------------------------------------------------------------------------- */

static mode_t mode_argument(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN_WRAP(symbol, dir, first, args)                                \
    int symbol first                                                       \
    {                                                                      \
        va_list list;                                                      \
        va_start(list, flags);                                             \
        const mode_t mode = mode_argument(flags, list);                    \
        va_end(list);                                                      \
        const struct shim_verdict verdict = shim_judge("open", dir, name); \
        if (verdict.action == SHIM_FAIL)                                   \
            return (errno = verdict.error, -1);                            \
        int(*next) first;                                                  \
        shim_find(#symbol, &next);                                         \
        return next args;                                                  \
    }

OPEN_WRAP(open, AT_FDCWD, (const char *name, int flags, ...), (name, flags, mode))
OPEN_WRAP(open64, AT_FDCWD, (const char *name, int flags, ...), (name, flags, mode))
OPEN_WRAP(openat, dir, (int dir, const char *name, int flags, ...), (dir, name, flags, mode))
OPEN_WRAP(openat64, dir, (int dir, const char *name, int flags, ...), (dir, name, flags, mode))

/* What fortified code calls when there is no mode. */
int __open_2(const char *name, int flags);
int __open64_2(const char *name, int flags);
int __openat_2(int dir, const char *name, int flags);
int __openat64_2(int dir, const char *name, int flags);
INT_WRAP("open", AT_FDCWD, name, __open_2, (const char *name, int flags), (name, flags))
INT_WRAP("open", AT_FDCWD, name, __open64_2, (const char *name, int flags), (name, flags))
INT_WRAP("open", dir, name, __openat_2, (int dir, const char *name, int flags), (dir, name, flags))
INT_WRAP("open", dir, name, __openat64_2, (int dir, const char *name, int flags), (dir, name, flags))

/* -- Examining --------------------------------------------------------------------------------------- */

INT_WRAP("stat", AT_FDCWD, name, stat, (const char *name, struct stat *status), (name, status))
INT_WRAP("stat", AT_FDCWD, name, stat64, (const char *name, struct stat64 *status), (name, status))
INT_WRAP("stat", AT_FDCWD, name, lstat, (const char *name, struct stat *status), (name, status))
INT_WRAP("stat", AT_FDCWD, name, lstat64, (const char *name, struct stat64 *status), (name, status))
INT_WRAP("stat", dir, name, fstatat, (int dir, const char *name, struct stat *status, int flags),
         (dir, name, status, flags))
INT_WRAP("stat", dir, name, fstatat64, (int dir, const char *name, struct stat64 *status, int flags),
         (dir, name, status, flags))
INT_WRAP("stat", dir, name, statx,
         (int dir, const char *name, int flags, unsigned mask, struct statx *status),
         (dir, name, flags, mask, status))
INT_WRAP("access", AT_FDCWD, name, access, (const char *name, int mode), (name, mode))
INT_WRAP("access", dir, name, faccessat, (int dir, const char *name, int mode, int flags),
         (dir, name, mode, flags))
SHIM_WRAP(ssize_t, -1, "readlink", AT_FDCWD, name, readlink, (const char *name, char *to, size_t bytes),
          (name, to, bytes))
SHIM_WRAP(ssize_t, -1, "readlink", dir, name, readlinkat, (int dir, const char *name, char *to, size_t bytes),
          (dir, name, to, bytes))

char *__realpath_chk(const char *name, char *resolved, size_t room);
SHIM_WRAP(char *, NULL, "realpath", AT_FDCWD, name, realpath, (const char *name, char *resolved),
          (name, resolved))
SHIM_WRAP(char *, NULL, "realpath", AT_FDCWD, name, __realpath_chk,
          (const char *name, char *resolved, size_t room), (name, resolved, room))

/* -- Making and changing ----------------------------------------------------------------------------- */

INT_WRAP("mkdir", AT_FDCWD, name, mkdir, (const char *name, mode_t mode), (name, mode))
INT_WRAP("mkdir", dir, name, mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode))
INT_WRAP("chmod", AT_FDCWD, name, chmod, (const char *name, mode_t mode), (name, mode))
INT_WRAP("chmod", dir, name, fchmodat, (int dir, const char *name, mode_t mode, int flags),
         (dir, name, mode, flags))
INT_WRAP("utime", dir, name, utimensat,
         (int dir, const char *name, const struct timespec times[2], int flags), (dir, name, times, flags))
INT_WRAP("link", AT_FDCWD, to, link, (const char *from, const char *to), (from, to))
INT_WRAP("link", dir, to, linkat, (int from_dir, const char *from, int dir, const char *to, int flags),
         (from_dir, from, dir, to, flags))
INT_WRAP("rename", AT_FDCWD, to, rename, (const char *from, const char *to), (from, to))
INT_WRAP("rename", dir, to, renameat, (int from_dir, const char *from, int dir, const char *to),
         (from_dir, from, dir, to))
INT_WRAP("renameat2", dir, to, renameat2,
         (int from_dir, const char *from, int dir, const char *to, unsigned flags),
         (from_dir, from, dir, to, flags))

/* -- Removing ---------------------------------------------------------------------------------------- */

/* The client of a network file system renames what is open elsewhere instead of removing it. */
static int remove_silly(int dir, const char *name)
{
    static atomic_uint counter;
    char silly[PATH_MAX];
    const char *const slash = strrchr(name, '/');
    int (*next)(int, const char *, int, const char *);
    shim_find("renameat", &next);
    snprintf(silly, sizeof silly, "%.*s.nfs%016x%08x", slash ? (int)(slash + 1 - name) : 0, name,
             (unsigned)getpid(), atomic_fetch_add(&counter, 1));
    return next(dir, name, dir, silly);
}

#define REMOVE_WRAP(symbol, dir, is_file, params, args)                            \
    int symbol params                                                              \
    {                                                                              \
        const struct shim_verdict verdict = shim_judge("unlink", dir, name);       \
        if (verdict.action == SHIM_FAIL)                                           \
            return (errno = verdict.error, -1);                                    \
        if (verdict.action == SHIM_SILLY && (is_file))                             \
            return remove_silly(dir, name);                                        \
        int(*next) params;                                                         \
        shim_find(#symbol, &next);                                                 \
        const int result = next args;                                              \
        return verdict.action == SHIM_LATE ? (errno = verdict.error, -1) : result; \
    }

REMOVE_WRAP(unlink, AT_FDCWD, 1, (const char *name), (name))
REMOVE_WRAP(rmdir, AT_FDCWD, 0, (const char *name), (name))
REMOVE_WRAP(unlinkat, dir, !(flags & AT_REMOVEDIR), (int dir, const char *name, int flags),
            (dir, name, flags))
