/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a whole file under its name or leaves the name as it was: temporary file, fsync, rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "cache/cache_impl.h"
#include "cache/temp_file.h"

static const char where_temp[] = "the temporary file";
static const char where_file[] = "the file";

/* Fills the file and checks that it is one we would load: on a share that maps users we might not own what we
 * made, and only what was written here may be in it. */
static bool fill_temp(int file, const void *data, size_t bytes, struct gj_fault *fault)
{
    /* Held until the rename is done, so that gj_cache_clear can tell a live file from a dead writer's. Where
     * there are no locks the file is told by its age. */
    while (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EINTR)
        ;
    struct stat status;
    if (fchmod(file, 0600) != 0 && errno != EPERM && errno != ENOTSUP && errno != ENOSYS)
        *fault = gj_fault_errno(where_temp, "cannot be made private");
    else if (!gj_temp_write(file, data, bytes))
        *fault = gj_fault_errno(where_temp, "cannot be written");
    else if (!gj_temp_finish(file))
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
    struct gj_temp_name temp;
    const int file = gj_temp_create(cache, dir, 0600, &temp, fault);
    if (file < 0)
        return false;
    const bool done = fill_temp(file, data, bytes, fault) && rename_over(dir, temp.text, name, fault);
    if (!done)
        (void)unlinkat(dir, temp.text, 0);
    close(file); /* nothing to learn from: the file was finished */
    /* The file is in place whatever this says; a crash before the directory is written is only a miss. */
    if (done)
        (void)gj_temp_sync(dir);
    return done;
}
