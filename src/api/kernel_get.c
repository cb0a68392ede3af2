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
    int no_compile; /* it ends with GJ_ERR_NOT_CACHED rather than compile */
    bool compiles, landed;
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

void gj_flight_compiles(gj_context *context, struct gj_flight *flight)
{
    pthread_mutex_lock(&context->lock);
    flight->compiles = true;
    pthread_cond_broadcast(&context->landed);
    pthread_mutex_unlock(&context->lock);
}

/* Waits for someone else's flight and takes its kernel, or a copy of its error. A call that must not compile
 * does not wait for a compile either. False: the flight failed in a way that says nothing of a call with this
 * no_compile. The lock is held. */
static bool join_flight(gj_context *context, struct gj_flight *flight, int no_compile, enum gj_status *status,
                        gj_kernel **kernel, gj_error **error)
{
    gj_count(context, GJ_COUNT_WAITS, 1);
    flight->waiters++;
    while (!flight->landed && !(no_compile && flight->compiles))
        pthread_cond_wait(&context->landed, &context->lock);
    bool is_answer = true;
    if (!flight->landed) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&flight->key, text, sizeof text);
        *status = gj_error_make(error, GJ_ERR_NOT_CACHED, GJ_STAGE_CACHE, 0, "",
                                "no cached kernel for %s: another thread is compiling it, and this call must "
                                "not wait for that; fill the cache beforehand with gemmjit prewarm --key %s",
                                text, text);
    } else if (flight->status == GJ_OK) {
        *kernel = flight->kernel;
        *status = GJ_OK;
    } else if (!flight->no_compile == !no_compile) {
        gj_error_copy(error, flight->error);
        *status = flight->status;
    } else {
        is_answer = false;
    }
    flight->waiters--;
    pthread_cond_broadcast(&context->landed);
    return is_answer;
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
    struct gj_flight flight = {.next = context->flights, .key = *key, .no_compile = no_compile};
    context->flights = &flight;
    pthread_mutex_unlock(&context->lock);
    flight.status = gj_kernel_make(context, key, &flight, no_compile, &flight.kernel, &flight.error);
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
    enum gj_status status = GJ_OK;
    bool is_answered = false;
    pthread_mutex_lock(&context->lock);
    while (!is_answered) {
        gj_kernel *const found = gj_table_find(&context->kernels, key, hash);
        struct gj_flight *const flight = found ? NULL : find_flight(context, key);
        is_answered = true;
        if (found != NULL) {
            gj_count(context, GJ_COUNT_MEMORY_HITS, 1);
            *kernel = found;
        } else if (flight != NULL) {
            is_answered = join_flight(context, flight, no_compile, &status, kernel, error);
        } else {
            status = fly(context, key, no_compile, kernel, error);
        }
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

enum gj_status gj_kernel_get(gj_context *context, const struct gj_key *key, unsigned flags,
                             gj_kernel **kernel, gj_error **error)
{
    if (flags & ~GJ_NO_COMPILE)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "flags = 0x%x: the flags are GJ_NO_COMPILE", flags);
    const uint64_t hash = gj_key_hash(key);
    gj_kernel *const found = gj_table_find(&context->kernels, key, hash);
    if (found != NULL) {
        gj_count(context, GJ_COUNT_MEMORY_HITS, 1);
        *kernel = found;
        return GJ_OK;
    }
    GJ_TRY(gj_key_check(key, error));
    const int no_compile = context->no_compile || (flags & GJ_NO_COMPILE);
    return get_slowly(context, key, hash, no_compile, kernel, error);
}
