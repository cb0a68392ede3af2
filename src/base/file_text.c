/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a whole file of bounded size. */
#include "base/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/error_build.h"

static enum gj_status fail_read(const char *path, int code, gj_error **error)
{
    return gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, code, strerrorname_np(code),
                         "%s cannot be read: %s", path, strerror(code));
}

enum gj_status gj_file_text_read(const char *path, size_t most, struct gj_strbuf *text, gj_error **error)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail_read(path, errno, error);
    int code = 0;
    char piece[16384];
    for (;;) {
        const ssize_t got = read(file, piece, sizeof(piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            code = errno;
        if (got <= 0 || text->length > most)
            break;
        gj_strbuf_add(text, piece, (size_t)got);
    }
    close(file);
    gj_strbuf_puts(text, ""); /* an empty file is an empty text */
    if (code != 0)
        return fail_read(path, code, error);
    if (text->length > most)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s is larger than %zu bytes", path, most);
    if (text->failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %s", path);
    return GJ_OK;
}
