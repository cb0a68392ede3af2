/* SPDX-License-Identifier: Apache-2.0 */
#include "template_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "generate/assets.h"

static const char *const folders[] = {"templates", "ptx_snippets"};
#define NUM_FOLDERS (sizeof folders / sizeof folders[0])

static void path_below(const char *directory, const char *path, char *full, size_t capacity)
{
    assert_true((size_t)snprintf(full, capacity, "%s/%s", directory, path) < capacity);
}

static char *create(int copy)
{
    const char *const base = getenv("TMPDIR");
    char pattern[1024], full[2048];
    path_below(base != NULL && *base != '\0' ? base : P_tmpdir, "gemmjit-test-XXXXXX", pattern,
               sizeof pattern);
    assert_non_null(mkdtemp(pattern));
    for (size_t i = 0; i < NUM_FOLDERS; i++) {
        path_below(pattern, folders[i], full, sizeof full);
        assert_int_equal(mkdir(full, 0700), 0);
    }
    const struct gj_assets *const builtin = gj_assets_builtin();
    for (size_t i = 0; i < builtin->count; i++)
        scratch_write(pattern, builtin->items[i].path, builtin->items[i].text,
                      copy ? builtin->items[i].length : 0);
    char *const directory = strdup(pattern);
    assert_non_null(directory);
    return directory;
}

char *scratch_create(void)
{
    return create(1);
}

char *scratch_create_empty(void)
{
    return create(0);
}

void scratch_write(const char *directory, const char *path, const char *text, size_t length)
{
    char full[2048];
    path_below(directory, path, full, sizeof full);
    FILE *const file = fopen(full, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void scratch_delete_file(const char *directory, const char *path)
{
    char full[2048];
    path_below(directory, path, full, sizeof full);
    unlink(full);
}

void scratch_remove(char *directory)
{
    const struct gj_assets *const builtin = gj_assets_builtin();
    for (size_t i = 0; i < builtin->count; i++)
        scratch_delete_file(directory, builtin->items[i].path);
    for (size_t i = 0; i < NUM_FOLDERS; i++) {
        char full[2048];
        path_below(directory, folders[i], full, sizeof full);
        rmdir(full);
    }
    rmdir(directory);
    free(directory);
}
