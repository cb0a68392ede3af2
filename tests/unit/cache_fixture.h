/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the disk cache share: a scratch directory, a sample entry, a log that counts, children.
 */
#ifndef GJ_TESTS_CACHE_FIXTURE_H
#define GJ_TESTS_CACHE_FIXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cache/cache.h"

struct cache_log {
    atomic_int warnings, others;
    char last_warning[16384];
};
/* A gj_log whose messages are counted, from any thread. */
struct gj_log cache_log_to(struct cache_log *log);

struct path {
    char text[4096];
};
struct path path_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct scratch {
    struct path dir;  /* mode 0700, ours, removed by scratch_remove */
    struct path root; /* dir + "/root", not made */
    struct cache_log log;
    gj_cache *cache; /* opened on root */
};
void scratch_make(struct scratch *scratch);
void scratch_remove(struct scratch *scratch);
/* Closes the cache and opens it again on `root`. */
void scratch_reopen(struct scratch *scratch, const char *root);

/* An entry that differs from those of other seeds in unit, key and cubin. Static storage in *sample. */
struct sample {
    char key_text[64], entry_name[64];
    unsigned char cubin[3000];
    struct gj_cache_entry entry;
    struct gj_cache_name name;
};
void sample_make(struct sample *sample, unsigned seed);
bool sample_equals(const struct sample *sample, const struct gj_cache_entry *entry);
struct path sample_path(const struct scratch *scratch, const struct sample *sample);

enum gj_cache_result load_sample(struct scratch *scratch, const struct sample *sample);

void write_file(const char *path, const void *data, size_t bytes, mode_t mode);
unsigned char *read_file(const char *path, size_t *bytes);
mode_t mode_of(const char *path);
/* Regular files below the directory whose names contain `part`. */
int count_files(const char *dir, const char *part);

/* Runs the function in a child and returns its result, or 1000 + signal. A child that hangs is killed. */
int run_child(int (*function)(void *), void *argument);
/* The same as a user that is not root: the tree of `scratch` is given to it for good. */
int run_child_unprivileged(struct scratch *scratch, int (*function)(void *), void *argument);

/* For children, where a failed cmocka assertion would run on with the parent's tests. */
#define CHILD_CHECK(condition)                                              \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                       \
        }                                                                   \
    } while (0)

#endif
