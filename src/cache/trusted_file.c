/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that may have been damaged, replaced or planted, into memory of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/cache_impl.h"

static const char where_file[] = "the file";

enum { STALE_RETRIES = 3 };

int gj_open_at(int dir, const char *name, int flags, mode_t mode)
{
    int file = -1;
    int retries = STALE_RETRIES;
    do {
        file = openat(dir, name, flags | O_CLOEXEC, mode);
    } while (file < 0 && (errno == EINTR || (errno == ESTALE && retries-- > 0)));
    return file;
}

/* Reads up to `bytes` bytes; returns how many there were, or -1. */
static ssize_t read_all(int file, unsigned char *data, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t count = read(file, data + done, bytes - done);
        if (count == 0)
            break;
        if (count > 0)
            done += (size_t)count;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)done;
}

/* The file is read, not mapped: a file that shrinks under a mapping kills the process. */
static bool read_open_file(int descriptor, size_t max_bytes, struct gj_file *file, struct gj_fault *fault)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        *fault = gj_fault_errno(where_file, "cannot be examined");
        return false;
    }
    if (!gj_trust_check(&status, false, where_file, fault))
        return false;
    if (status.st_size < 0 || (uintmax_t)status.st_size > max_bytes) {
        *fault = (struct gj_fault){.where = where_file, .what = "is too large"};
        return false;
    }
    const size_t size = (size_t)status.st_size;
    unsigned char *data = malloc(size ? size : 1);
    if (!data) {
        errno = ENOMEM;
        *fault = gj_fault_errno(where_file, "does not fit into memory");
        return false;
    }
    const ssize_t count = read_all(descriptor, data, size);
    if (count >= 0 && (size_t)count == size) {
        *file = (struct gj_file){.data = data, .bytes = size, .modified = status.st_mtime};
        return true;
    }
    *fault = count < 0 ? gj_fault_errno(where_file, "cannot be read")
                       : (struct gj_fault){.where = where_file, .what = "shrank while it was read"};
    free(data);
    return false;
}

/* O_NONBLOCK: a FIFO must not make us wait for its writer. */
static bool read_name(int dir, const char *name, size_t max_bytes, struct gj_file *file,
                      struct gj_fault *fault)
{
    const int descriptor = gj_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (descriptor < 0) {
        *fault = errno == ELOOP ? (struct gj_fault){.where = where_file, .what = "is a symbolic link"}
                                : gj_fault_errno(where_file, "cannot be opened");
        return false;
    }
    const bool done = read_open_file(descriptor, max_bytes, file, fault);
    close(descriptor);
    return done;
}

/* A file that another host replaces while it is open here goes stale; its name then has the new one. */
bool gj_file_read(int dir, const char *name, size_t max_bytes, struct gj_file *file, struct gj_fault *fault)
{
    bool done = read_name(dir, name, max_bytes, file, fault);
    for (int i = 0; i < STALE_RETRIES && !done && fault->error == ESTALE; i++)
        done = read_name(dir, name, max_bytes, file, fault);
    return done;
}
