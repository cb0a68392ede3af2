/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels without libnvrtc: a cache is filled with entries whose cubins are invented, and a context reads it.
 */
#ifndef GJ_TESTS_KERNEL_FIXTURE_H
#define GJ_TESTS_KERNEL_FIXTURE_H

#include <gemmjit/launch.h>

#include "cache_fixture.h"
#include "plan/plan.h"

#define FIXTURE_COMPILER "nvrtc 13.0"

/* A scratch cache directory and a context on it. libnvrtc is out of reach: no kernel is ever compiled. */
struct kernels {
    struct scratch scratch;
    gj_context *context;
};
void kernels_open(struct kernels *kernels);
void kernels_close(struct kernels *kernels);

struct gj_key key_of(const char *text);
struct gj_plan plan_of(const char *text);

/* Puts a cubin of the key into the cache. */
void kernels_add(struct kernels *kernels, const struct gj_key *key);
/* Adds the key and gets its kernel. */
gj_kernel *kernels_get(struct kernels *kernels, const char *key_text);

/* Checks status and that every word, up to a NULL, is in the message; then frees the error. */
void check_error(enum gj_status status, enum gj_status expected, gj_error **error, ...);

#endif
