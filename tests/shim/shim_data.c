/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take a descriptor: examining, reading, writing, syncing, locking, listing, mapping, closing. */
#include "shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_WRAP(type, kind, symbol, params, args) SHIM_WRAP(type, -1, kind, file, "", symbol, params, args)

FILE_WRAP(int, "fstat", fstat, (int file, struct stat *status), (file, status))
FILE_WRAP(int, "fstat", fstat64, (int file, struct stat64 *status), (file, status))
FILE_WRAP(int, "chmod", fchmod, (int file, mode_t mode), (file, mode))
FILE_WRAP(int, "utime", futimens, (int file, const struct timespec times[2]), (file, times))
FILE_WRAP(int, "truncate", ftruncate, (int file, off_t bytes), (file, bytes))
FILE_WRAP(int, "truncate", ftruncate64, (int file, off64_t bytes), (file, bytes))
FILE_WRAP(off_t, "seek", lseek, (int file, off_t offset, int whence), (file, offset, whence))
FILE_WRAP(off64_t, "seek", lseek64, (int file, off64_t offset, int whence), (file, offset, whence))
FILE_WRAP(int, "fsync", fsync, (int file), (file))
FILE_WRAP(int, "fsync", fdatasync, (int file), (file))
FILE_WRAP(int, "dup", dup, (int file), (file))

/* -- Reading and writing ----------------------------------------------------------------------------- */

/* What a short transfer moves: all kinds of lengths in a file of some KiB, without a call for each byte. */
static size_t shorten(size_t bytes)
{
    return bytes > 3000 ? 1009 : (bytes + 1) / 2;
}

#define MOVE_WRAP(kind, symbol, params, args)                           \
    ssize_t symbol params                                               \
    {                                                                   \
        const struct shim_verdict verdict = shim_judge(kind, file, ""); \
        if (verdict.action == SHIM_FAIL)                                \
            return (errno = verdict.error, -1);                         \
        if (verdict.action == SHIM_SHORT)                               \
            bytes = shorten(bytes);                                     \
        ssize_t(*next) params;                                          \
        shim_find(#symbol, &next);                                      \
        return next args;                                               \
    }

ssize_t __read_chk(int file, void *data, size_t bytes, size_t room);
ssize_t __pread_chk(int file, void *data, size_t bytes, off_t offset, size_t room);
ssize_t __pread64_chk(int file, void *data, size_t bytes, off64_t offset, size_t room);
MOVE_WRAP("read", read, (int file, void *data, size_t bytes), (file, data, bytes))
MOVE_WRAP("read", __read_chk, (int file, void *data, size_t bytes, size_t room), (file, data, bytes, room))
MOVE_WRAP("read", pread, (int file, void *data, size_t bytes, off_t offset), (file, data, bytes, offset))
MOVE_WRAP("read", pread64, (int file, void *data, size_t bytes, off64_t offset), (file, data, bytes, offset))
MOVE_WRAP("read", __pread_chk, (int file, void *data, size_t bytes, off_t offset, size_t room),
          (file, data, bytes, offset, room))
MOVE_WRAP("read", __pread64_chk, (int file, void *data, size_t bytes, off64_t offset, size_t room),
          (file, data, bytes, offset, room))
MOVE_WRAP("write", write, (int file, const void *data, size_t bytes), (file, data, bytes))
MOVE_WRAP("write", pwrite, (int file, const void *data, size_t bytes, off_t offset),
          (file, data, bytes, offset))
MOVE_WRAP("write", pwrite64, (int file, const void *data, size_t bytes, off64_t offset),
          (file, data, bytes, offset))
FILE_WRAP(ssize_t, "read", readv, (int file, const struct iovec *parts, int count), (file, parts, count))
FILE_WRAP(ssize_t, "write", writev, (int file, const struct iovec *parts, int count), (file, parts, count))

#define MAP_WRAP(symbol, offset_type)                                                          \
    void *symbol(void *at, size_t bytes, int access, int flags, int file, offset_type offset)  \
    {                                                                                          \
        const struct shim_verdict verdict = shim_judge("mmap", file, "");                      \
        const int is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;                               \
        if (verdict.action == SHIM_FAIL || (verdict.action == SHIM_UNSHARED && is_shared))     \
            return (errno = verdict.action == SHIM_FAIL ? verdict.error : ENODEV, MAP_FAILED); \
        void *(*next)(void *, size_t, int, int, int, offset_type);                             \
        shim_find(#symbol, &next);                                                             \
        return next(at, bytes, access, flags, file, offset);                                   \
    }
MAP_WRAP(mmap, off_t)
MAP_WRAP(mmap64, off64_t)

/* -- Locking ----------------------------------------------------------------------------------------- */

static const char *control_kind(int command, const void *argument)
{
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW)
        return ((const struct flock *)argument)->l_type == F_UNLCK ? "unlock" : "lock";
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? "dup" : "control";
}

/* Every third argument that there is passes as a pointer. */
#define CONTROL_WRAP(symbol)                                                                       \
    int symbol(int file, int command, ...)                                                         \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, command);                                                                   \
        void *const argument = va_arg(list, void *);                                               \
        va_end(list);                                                                              \
        const struct shim_verdict verdict = shim_judge(control_kind(command, argument), file, ""); \
        if (verdict.action == SHIM_FAIL)                                                           \
            return (errno = verdict.error, -1);                                                    \
        int (*next)(int, int, ...);                                                                \
        shim_find(#symbol, &next);                                                                 \
        return next(file, command, argument);                                                      \
    }
CONTROL_WRAP(fcntl)
CONTROL_WRAP(fcntl64)

int flock(int file, int operation)
{
    const struct shim_verdict verdict = shim_judge("flock", file, "");
    if (verdict.action == SHIM_FAIL)
        return (errno = verdict.error, -1);
    int (*control)(int, int, ...);
    shim_find("fcntl", &control);
    if (verdict.action == SHIM_NFS && (operation & LOCK_EX) &&
        (control(file, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return (errno = EBADF, -1);
    int (*next)(int, int);
    shim_find("flock", &next);
    return next(file, operation);
}

/* -- Listing ----------------------------------------------------------------------------------------- */

SHIM_WRAP(DIR *, NULL, "opendir", AT_FDCWD, name, opendir, (const char *name), (name))
SHIM_WRAP(DIR *, NULL, "opendir", file, "", fdopendir, (int file), (file))

#define LIST_WRAP(symbol, item)                                                     \
    struct item *symbol(DIR *list)                                                  \
    {                                                                               \
        const struct shim_verdict verdict = shim_judge("readdir", dirfd(list), ""); \
        if (verdict.action == SHIM_FAIL)                                            \
            return (errno = verdict.error, NULL);                                   \
        struct item *(*next)(DIR *);                                                \
        shim_find(#symbol, &next);                                                  \
        struct item *const found = next(list);                                      \
        if (found && verdict.action == SHIM_UNKNOWN)                                \
            found->d_type = DT_UNKNOWN;                                             \
        return found;                                                               \
    }
LIST_WRAP(readdir, dirent)
LIST_WRAP(readdir64, dirent64)

/* -- Closing: the descriptor is gone whatever the answer --------------------------------------------- */

#define CLOSE_WRAP(kind, symbol, type, of)                                         \
    int symbol(type object)                                                        \
    {                                                                              \
        const struct shim_verdict verdict = shim_judge(kind, of, "");              \
        int (*next)(type);                                                         \
        shim_find(#symbol, &next);                                                 \
        const int result = next(object);                                           \
        return verdict.action == SHIM_FAIL ? (errno = verdict.error, -1) : result; \
    }
CLOSE_WRAP("close", close, int, object)
CLOSE_WRAP("closedir", closedir, DIR *, dirfd(object))
