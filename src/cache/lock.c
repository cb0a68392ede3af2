/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time makes an entry: a byte of one lock file for each entry, locked by the kernel, which
 * lets go of it when its holder dies. The file is never removed, so nobody locks a file that others have
 * lost. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/cache_impl.h"
#include "cache/temp_file.h"

#define LOCK_FILE "lock"

/* How long a process waits for another one's compile, which takes below a second; a holder that was stopped
 * costs as much and then only the saving. */
enum { WAIT_MS = 10000, FIRST_SLEEP_MS = 1, LAST_SLEEP_MS = 16 };

/* The byte of an entry: 60 bits of its name. */
static off_t lock_offset(const char *name)
{
    off_t offset = 0;
    for (int i = 0; i < 15; i++)
        offset = offset * 16 + (name[i] <= '9' ? name[i] - '0' : name[i] - 'a' + 10);
    return offset;
}

static int open_lock_file(const gj_cache *cache)
{
    struct gj_fault fault = {0};
    const int dir = gj_dir_open(cache, NULL, true, &fault);
    if (dir < 0)
        return -1;
    const int opened =
        gj_open_at(dir, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    close(dir);
    const int file = opened < 0 ? -1 : gj_descriptor_move(opened);
    struct stat status;
    if (file >= 0 && fstat(file, &status) == 0 && gj_trust_check(&status, false, "the lock file", &fault)) {
        if ((status.st_mode & 07777) != 0600) /* made by this call under a umask that took more */
            (void)fchmod(file, 0600);
        return file;
    }
    if (file >= 0)
        close(file);
    return -1;
}

/* An open file description's lock: it is not lost when another descriptor of the file is closed, and threads
 * of one process exclude each other. */
static int set_lock(int file, short type, off_t offset)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
    int result;
    do {
        result = fcntl(file, F_OFD_SETLK, &lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

static bool is_held_elsewhere(void)
{
    return errno == EAGAIN || errno == EACCES;
}

struct gj_cache_lock gj_cache_lock(gj_cache *cache, const struct gj_cache_name *name)
{
    struct gj_cache_lock lock = {.file = -1};
    if (!cache || cache->off_reason || cache->read_only || !gj_name_is_entry(name->text))
        return lock;
    const int file = open_lock_file(cache);
    if (file < 0)
        return lock;
    lock.offset = lock_offset(name->text);
    const double start = gj_clock_ms();
    int sleep_ms = FIRST_SLEEP_MS;
    int result = set_lock(file, F_WRLCK, lock.offset);
    while (result != 0 && is_held_elsewhere() && gj_clock_ms() - start < WAIT_MS) {
        lock.waited = true;
        const struct timespec pause = {.tv_nsec = sleep_ms * 1000000L};
        (void)nanosleep(&pause, NULL);
        sleep_ms = sleep_ms < LAST_SLEEP_MS ? 2 * sleep_ms : sleep_ms;
        result = set_lock(file, F_WRLCK, lock.offset);
    }
    if (result == 0) {
        lock.file = file;
        return lock;
    }
    if (lock.waited && is_held_elsewhere())
        gj_log_printf(&cache->log, GJ_LOG_INFO,
                      "disk cache %s: another process has been making %s for %d s; not waiting longer",
                      cache->root, name->text, WAIT_MS / 1000);
    close(file);
    return lock;
}

void gj_cache_unlock(struct gj_cache_lock *lock)
{
    if (lock->file < 0)
        return;
    /* Closing is not enough where a child process has inherited the description. */
    (void)set_lock(lock->file, F_UNLCK, lock->offset);
    close(lock->file);
    lock->file = -1;
}
