/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a whole file under its name or leaves the name as it was: temporary file, fsync, rename. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache_impl.h"

static const char where_temp[] = "the temporary file";
static const char where_file[] = "the file";

/* ".tmp-" pid "-" counter "-" random number, in hexadecimal. */
struct temp_name {
    char text[sizeof GJ_TEMP_PREFIX + 8 + 1 + 8 + 1 + 16];
};

enum { NAME_ATTEMPTS = 16 };

/* Names need not be secret: O_EXCL decides. The random part is for pids that several hosts or containers
 * share; without random numbers it is 0. */
static struct temp_name make_temp_name(gj_cache *cache)
{
    unsigned long long number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = 0;
    const unsigned counter = atomic_fetch_add(&cache->temp_counter, 1);
    struct temp_name name;
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

static int create_temp(gj_cache *cache, int dir, struct temp_name *name, struct gj_fault *fault)
{
    for (int attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
        *name = make_temp_name(cache);
        const int opened =
            openat(dir, name->text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        const int file = opened < 0 ? -1 : gj_descriptor_move(opened);
        if (file >= 0)
            return file;
        if (opened >= 0) {
            *fault = gj_fault_errno(where_temp, "cannot be made");
            (void)unlinkat(dir, name->text, 0);
            return -1;
        }
        if (errno != EEXIST && errno != EINTR)
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
static bool write_all(int file, const void *data, size_t bytes)
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
static bool sync_descriptor(int descriptor)
{
    int result;
    do {
        result = fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS;
}

/* Fills the file and checks that it is one we would load: on a share that maps users we might not own what we
 * made, and only what was written here may be in it. */
static bool fill_temp(int file, const void *data, size_t bytes, struct gj_fault *fault)
{
    /* Held until the rename is done, so that gj_cache_clear can tell a live file from a dead writer's. Where
     * there are no locks the file is told by its age. */
    (void)flock(file, LOCK_EX | LOCK_NB);
    struct stat status;
    if (fchmod(file, 0600) != 0 && errno != EPERM && errno != ENOTSUP)
        *fault = gj_fault_errno(where_temp, "cannot be made private");
    else if (!write_all(file, data, bytes))
        *fault = gj_fault_errno(where_temp, "cannot be written");
    else if (!sync_descriptor(file))
        *fault = gj_fault_errno(where_temp, "cannot be synced");
    else if (fstat(file, &status) != 0)
        *fault = gj_fault_errno(where_temp, "cannot be examined");
    else if (status.st_size < 0 || (uintmax_t)status.st_size != bytes)
        *fault = (struct gj_fault){.where = where_temp, .what = "is not as long as what was written into it"};
    else
        return gj_trust_check(&status, false, where_temp, fault);
    return false;
}

/* rename replaces every kind of file but a directory; one of ours that is empty is removed for it. */
static bool rename_over(int dir, const char *temp, const char *name, struct gj_fault *fault)
{
    if (renameat(dir, temp, dir, name) == 0)
        return true;
    struct stat status;
    const bool is_blocked = errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST;
    if (!is_blocked || fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_uid != geteuid()) {
        *fault = gj_fault_errno(where_file, "cannot be renamed to its name");
        return false;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) != 0 || renameat(dir, temp, dir, name) != 0) {
        *fault = gj_fault_errno(where_file, "cannot take the place of a directory");
        return false;
    }
    return true;
}

bool gj_publish(gj_cache *cache, int dir, const char *name, const void *data, size_t bytes,
                struct gj_fault *fault)
{
    struct temp_name temp;
    const int file = create_temp(cache, dir, &temp, fault);
    if (file < 0)
        return false;
    const bool done = fill_temp(file, data, bytes, fault) && rename_over(dir, temp.text, name, fault);
    if (!done)
        (void)unlinkat(dir, temp.text, 0);
    close(file); /* nothing to learn from: the data were synced */
    /* The file is in place whatever this says; a crash before the directory is written is only a miss. */
    if (done)
        (void)sync_descriptor(dir);
    return done;
}
