/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that compile: a cache directory, template directories, and threads that start together. */
#ifndef GJ_TESTS_CONTEXT_FIXTURE_H
#define GJ_TESTS_CONTEXT_FIXTURE_H

#include <gemmjit/context.h>

#include "../unit/cache_fixture.h"
#include "forward_nvrtc.h"

/* Finds the machine's libnvrtc; exits with 77 when there is none. Argument: the forwarding libnvrtc. */
void fixture_open(const char *forwarding_library);
const char *real_nvrtc(void);
/* Makes the forwarding libnvrtc the one to use, as the version given; reset to hold nothing. */
struct forward_nvrtc *use_forwarding(int major, int minor);
/* Makes the machine's libnvrtc the one to use. */
void use_real(void);
/* Lets held compiles go. */
void release(struct forward_nvrtc *forward);
/* Waits until so many compiles have begun. */
void await_compiles(struct forward_nvrtc *forward, int count);

/* The scratch directory with a log that counts. */
gj_context *context_on(struct scratch *scratch, const char *template_dir, int no_compile);
struct gj_stats stats_of(const gj_context *context);

struct gj_key key_of(const char *text);
/* Gets a kernel; fails the test with the message if that fails. */
gj_kernel *kernel_of(gj_context *context, const char *key_text);
/* Gets no kernel: checks the status and hands out the error. */
gj_error *refusal_of(gj_context *context, const char *key_text, unsigned flags, enum gj_status status);
void check_words(gj_error *error, const char *first, const char *second); /* in the message */

int count_entries(const struct scratch *scratch);
/* The only entry's file. */
struct path only_entry(const struct scratch *scratch);

/* Writes the built-in templates below a directory, which is made. */
void write_templates(const char *directory);
/* Appends a text to one of them; returns the 1-based number of its first line. */
int append_template(const char *directory, const char *path, const char *text);

/* One call of gj_kernel_get by each of `count` threads, at once. */
struct asker {
    gj_context *context;
    const struct gj_key *keys; /* asked for in order, starting at `first` */
    size_t num_keys, first;
    unsigned flags;
    gj_kernel **kernels;    /* one for each key, by its index */
    enum gj_status *status; /* the same */
    gj_error **errors;      /* the same */
};
void ask_at_once(struct asker *askers, size_t count);

#endif
