/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch directory with template files, for tests of the generator. */
#ifndef GJ_TESTS_TEMPLATE_FIXTURE_H
#define GJ_TESTS_TEMPLATE_FIXTURE_H

#include <stddef.h>

/* Makes a directory with copies of all built-in template files. Free the path with scratch_remove. */
char *scratch_create(void);

/* Makes such a directory in which every file is empty. */
char *scratch_create_empty(void);

/* Replaces one file, e.g. "templates/load.cuh". */
void scratch_write(const char *directory, const char *path, const char *text, size_t length);

void scratch_delete_file(const char *directory, const char *path);
void scratch_remove(char *directory);

#endif
