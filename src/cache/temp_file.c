/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and fills the files that a rename puts in their place. */
#include "cache/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const char where_temp[] = "the temporary file";

enum { NAME_ATTEMPTS = 16 };

/* Names need not be secret: O_EXCL decides. The random part is for pids that several hosts or containers
 * share; without random numbers it is 0. */
static struct gj_temp_name make_temp_name(gj_cache *cache)
{
    unsigned long long number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = 0;
    const unsigned counter = atomic_fetch_add(&cache->temp_counter, 1);
    struct gj_temp_name name;
    snprintf(name.text, sizeof name.text, GJ_TEMP_PREFIX "%x-%x-%016llx", (unsigned)getpid(), counter,
             number);
    return name;
}

int gj_descriptor_move(int file)
{
    if (file > STDERR_FILENO)
        return file;
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    close(file);
    errno = error;
    return moved;
}

int gj_temp_create(gj_cache *cache, int dir, mode_t mode, struct gj_temp_name *name, struct gj_fault *fault)
{
    for (int attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
        *name = make_temp_name(cache);
        const int opened =
            openat(dir, name->text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        const int file = opened < 0 ? -1 : gj_descriptor_move(opened);
        if (file >= 0)
            return file;
        if (opened >= 0) {
            *fault = gj_fault_errno(where_temp, "cannot be made");
            (void)unlinkat(dir, name->text, 0);
            return -1;
        }
        if (errno != EEXIST && errno != EINTR && errno != ESTALE)
            break;
    }
    *fault = gj_fault_errno(where_temp, "cannot be made");
    return -1;
}

static bool write_bytes(int file, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    while (bytes > 0) {
        const ssize_t count = write(file, at, bytes);
        if (count > 0) {
            at += count;
            bytes -= (size_t)count;
        } else if (count == 0) {
            errno = ENOSPC; /* no progress and no reason: do not try for ever */
            return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Beyond the process's limit of file sizes a write fails, and by default kills the process too. The signal is
 * kept from this thread, which is the one that gets it, and taken away unless it was pending before. */
bool gj_temp_write(int file, const void *data, size_t bytes)
{
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    if (pthread_sigmask(SIG_BLOCK, &limit, &before) != 0)
        return write_bytes(file, data, bytes);
    const bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    const bool done = write_bytes(file, data, bytes);
    const int error = errno;
    if (!done && error == EFBIG && !was_pending) {
        static const struct timespec at_once = {0};
        while (sigtimedwait(&limit, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

/* Some file systems cannot sync and say so; there is nothing better to do there. */
bool gj_temp_sync(int descriptor)
{
    int result;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
}

/* Closing a copy lets the file system say what it says at a close, and the file's lock stays: it belongs to
 * the description. Without a copy nothing is learnt. */
bool gj_temp_finish(int file)
{
    if (!gj_temp_sync(file))
        return false;
    const int copy = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy < 0 || close(copy) == 0 || errno == EINTR;
}
