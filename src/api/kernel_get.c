/* SPDX-License-Identifier: Apache-2.0 */
/* gj_kernel_get: memory without a lock, else one flight per key that everyone who asks waits for. */
#include <stdlib.h>
#include <string.h>

#include "api/context_private.h"
#include "base/error_build.h"

/* A key being loaded or compiled. Lives on the stack of the thread that does it; waiters hold it up by count.
 */
struct gj_flight {
    struct gj_flight *next;
    struct gj_key key;
    bool landed;
    int waiters;
    enum gj_status status;
    gj_kernel *kernel;
    gj_error *error;
};

static struct gj_flight *find_flight(gj_context *context, const struct gj_key *key)
{
    for (struct gj_flight *f = context->flights; f != NULL; f = f->next)
        if (memcmp(&f->key, key, sizeof *key) == 0)
            return f;
    return NULL;
}

static void remove_flight(gj_context *context, const struct gj_flight *flight)
{
    struct gj_flight **at = &context->flights;
    while (*at != flight)
        at = &(*at)->next;
    *at = flight->next;
}

/* Waits for someone else's flight and takes its kernel, or a copy of its error. The lock is held. */
static enum gj_status join_flight(gj_context *context, struct gj_flight *flight, gj_kernel **kernel,
                                  gj_error **error)
{
    gj_count(context, GJ_COUNT_WAITS, 1);
    flight->waiters++;
    while (!flight->landed)
        pthread_cond_wait(&context->landed, &context->lock);
    const enum gj_status status = flight->status;
    if (status == GJ_OK)
        *kernel = flight->kernel;
    else
        gj_error_copy(error, flight->error);
    flight->waiters--;
    pthread_cond_broadcast(&context->landed);
    return status;
}

/* Publishes the result of a flight and waits until every waiter has taken it. The lock is held. */
static void land(gj_context *context, struct gj_flight *flight)
{
    if (flight->status == GJ_OK && !gj_table_add(&context->kernels, &flight->kernel->entry)) {
        gj_kernel_destroy(flight->kernel);
        flight->kernel = NULL;
        flight->status = gj_error_make(&flight->error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "",
                                       "no memory for the table of kernels");
    }
    remove_flight(context, flight);
    flight->landed = true;
    pthread_cond_broadcast(&context->landed);
    while (flight->waiters > 0)
        pthread_cond_wait(&context->landed, &context->lock);
}

/* Flies, without the lock, and lands. The lock is held on entry and on return. */
static enum gj_status fly(gj_context *context, const struct gj_key *key, int no_compile, gj_kernel **kernel,
                          gj_error **error)
{
    struct gj_flight flight = {.next = context->flights, .key = *key};
    context->flights = &flight;
    pthread_mutex_unlock(&context->lock);
    flight.status = gj_kernel_make(context, key, no_compile, &flight.kernel, &flight.error);
    pthread_mutex_lock(&context->lock);
    land(context, &flight);
    if (flight.status == GJ_OK)
        *kernel = flight.kernel;
    else
        gj_error_copy(error, flight.error);
    gj_error_free(&flight.error);
    return flight.status;
}

static enum gj_status get_slowly(gj_context *context, const struct gj_key *key, uint64_t hash, int no_compile,
                                 gj_kernel **kernel, gj_error **error)
{
    enum gj_status status;
    pthread_mutex_lock(&context->lock);
    gj_kernel *const found = gj_table_find(&context->kernels, key, hash);
    struct gj_flight *const flight = found ? NULL : find_flight(context, key);
    if (found != NULL) {
        gj_count(context, GJ_COUNT_MEMORY_HITS, 1);
        *kernel = found;
        status = GJ_OK;
    } else if (flight != NULL && no_compile) {
        status = gj_error_make(
            error, GJ_ERR_NOT_CACHED, GJ_STAGE_CACHE, 0, "",
            "the kernel is being made by another thread and this call must not wait for a compile");
    } else if (flight != NULL) {
        status = join_flight(context, flight, kernel, error);
    } else {
        status = fly(context, key, no_compile, kernel, error);
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

enum gj_status gj_kernel_get(gj_context *context, const struct gj_key *key, unsigned flags,
                             gj_kernel **kernel, gj_error **error)
{
    const uint64_t hash = gj_key_hash(key);
    gj_kernel *const found = gj_table_find(&context->kernels, key, hash);
    if (found != NULL) {
        gj_count(context, GJ_COUNT_MEMORY_HITS, 1);
        *kernel = found;
        return GJ_OK;
    }
    if (flags & ~GJ_NO_COMPILE)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "flags = 0x%x: the flags are GJ_NO_COMPILE", flags);
    GJ_TRY(gj_key_check(key, error));
    const int no_compile = context->no_compile || (flags & GJ_NO_COMPILE);
    return get_slowly(context, key, hash, no_compile, kernel, error);
}
