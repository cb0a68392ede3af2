/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a result to stdout or to a file. A file is written beside its place and renamed, so that it is whole
 * or as it was; what is no regular file (a device, a pipe) is written in place. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* The result cannot be written: that is the work that failed, not the input. */
static enum gj_status fail_write(const char *path, int code, gj_error **error)
{
    return gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_NONE, code, strerrorname_np(code),
                         "%s cannot be written: %s", path, strerror(code));
}

/* Returns 0 or an errno. */
static int write_all(int file, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(file, data, bytes);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            data += written;
            bytes -= (size_t)written;
        }
    }
    return 0;
}

/* Writes in place and closes. Returns 0 or an errno. */
static int write_and_close(int file, const char *data, size_t bytes, bool sync)
{
    int code = write_all(file, data, bytes);
    if (code == 0 && sync && fsync(file) != 0)
        code = errno;
    if (close(file) != 0 && code == 0)
        code = errno;
    return code;
}

/* Makes a new file beside `path`, readable as any new file of this user is. Returns -1 with errno. */
static int open_temporary(const char *path, char *temporary, size_t capacity)
{
    const char *const slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path + 1) : 0;
    for (int attempt = 0; attempt < 100; attempt++) {
        const int length = snprintf(temporary, capacity, "%.*s.%s.%ld.%d", folder, path, path + folder,
                                    (long)getpid(), attempt);
        if (length < 0 || (size_t)length >= capacity) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Returns 0 or an errno. `existing` is the file that is replaced, or NULL. */
static int replace_file(const char *path, const struct stat *existing, const char *data, size_t bytes)
{
    char temporary[PATH_MAX];
    const int file = open_temporary(path, temporary, sizeof(temporary));
    if (file < 0)
        return errno;
    int code = 0;
    if (existing && fchmod(file, existing->st_mode & 0777) != 0)
        code = errno;
    const int written = write_and_close(file, data, bytes, true);
    if (code == 0)
        code = written;
    if (code == 0 && rename(temporary, path) != 0)
        code = errno;
    if (code != 0)
        unlink(temporary);
    return code;
}

enum gj_status cli_output_file(const char *path, const struct gj_strbuf *text, gj_error **error)
{
    const char *const data = text->text;
    const size_t bytes = text->length;
    struct stat status;
    if (text->failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for what goes into %s", path);
    if (stat(path, &status) != 0) {
        const int code = errno == ENOENT ? replace_file(path, NULL, data, bytes) : errno;
        return code == 0 ? GJ_OK : fail_write(path, code, error);
    }
    int code = 0;
    if (S_ISREG(status.st_mode)) {
        char target[PATH_MAX]; /* a link stays and what it names is replaced */
        code = realpath(path, target) ? replace_file(target, &status, data, bytes) : errno;
    } else {
        const int file = open(path, O_WRONLY | O_CLOEXEC);
        code = file < 0 ? errno : write_and_close(file, data, bytes, false);
    }
    return code == 0 ? GJ_OK : fail_write(path, code, error);
}

enum gj_status cli_output_write(struct cli *cli, gj_error **error)
{
    const struct gj_strbuf *const out = &cli->out;
    if (out->failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the output");
    if (cli->options.text[CLI_OUTPUT])
        return cli_output_file(cli->options.text[CLI_OUTPUT], out, error);
    const int code = write_all(STDOUT_FILENO, out->text, out->length);
    return code == 0 ? GJ_OK : fail_write("standard output", code, error);
}
