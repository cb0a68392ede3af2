/* SPDX-License-Identifier: Apache-2.0 */
/* Failing, copies, files without a name, and what every error keeps to. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

_Noreturn void fuzz_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);
    REQUIRE(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    const size_t length = size > 0 ? strnlen((const char *)data, size) : 0;
    char *const text = malloc(length + 1);
    REQUIRE(text != NULL);
    if (length > 0)
        memcpy(text, data, length);
    text[length] = '\0';
    return text;
}

void fuzz_check_error(const gj_error *error, enum gj_status status)
{
    REQUIRE(error != NULL && error->status == status);
    REQUIRE(error->message[0] != '\0' && strchr(error->message, '\n') == NULL);
    for (const char *at = error->message; *at != '\0';) {
        const size_t length = gj_utf8_length(at);
        REQUIRE(length > 0);
        at += length;
    }
}

long fuzz_number(const char **at)
{
    char *end;
    const long number = strtol(*at, &end, 10);
    *at = end;
    return number;
}

/* -- Files ------------------------------------------------------------------------------------------------
 */

struct fuzz_file fuzz_file_make(const void *data, size_t size)
{
    struct fuzz_file made = {.file = memfd_create("fuzz", MFD_CLOEXEC)};
    REQUIRE(made.file >= 0 && fchmod(made.file, 0600) == 0);
    REQUIRE(size == 0 || write(made.file, data, size) == (ssize_t)size);
    snprintf(made.path, sizeof made.path, "/proc/self/fd/%d", made.file);
    return made;
}

void fuzz_file_close(struct fuzz_file *file)
{
    close(file->file);
    file->file = -1;
}

void fuzz_check_json_error(const gj_error *error, const char *path, const uint8_t *data, size_t size)
{
    fuzz_check_error(error, GJ_ERR_ARGUMENT);
    const size_t length = strlen(path);
    REQUIRE(strncmp(error->message, path, length) == 0 && error->message[length] == ':');
    const char *at = error->message + length + 1;
    if (*at < '0' || *at > '9')
        return; /* a rule of a member, which has no line */
    const long line = fuzz_number(&at);
    REQUIRE(*at == ':');
    at++;
    const long column = fuzz_number(&at);
    REQUIRE(line >= 1 && column >= 1 && *at == ':');
    const uint8_t *start = data, *const end = data + size;
    for (long i = 1; i < line; i++) {
        const uint8_t *const newline = start < end ? memchr(start, '\n', (size_t)(end - start)) : NULL;
        REQUIRE(newline != NULL);
        start = newline + 1;
    }
    const uint8_t *const newline = start < end ? memchr(start, '\n', (size_t)(end - start)) : NULL;
    REQUIRE(column <= (newline ? newline : end) - start + 1);
}
