/* SPDX-License-Identifier: Apache-2.0 */
/* gj_kernel_get for many keys, with several threads. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "api/context_private.h"
#include "base/error_build.h"

enum { MOST_THREADS = 64, DEFAULT_THREADS = 8 };

struct preload {
    gj_context *context;
    const struct gj_key *keys;
    size_t num_keys;
    unsigned flags;
    gj_kernel **kernels; /* may be NULL */
    atomic_size_t next;
    pthread_mutex_t lock; /* of what follows: the failure of the least index */
    size_t failed_index;
    enum gj_status status;
    gj_error *error;
};

static void note_failure(struct preload *preload, size_t index, enum gj_status status, gj_error *error)
{
    pthread_mutex_lock(&preload->lock);
    if (preload->status == GJ_OK || index < preload->failed_index) {
        gj_error_free(&preload->error);
        preload->error = error;
        preload->status = status;
        preload->failed_index = index;
        error = NULL;
    }
    pthread_mutex_unlock(&preload->lock);
    gj_error_free(&error);
}

static void *get_kernels(void *user)
{
    struct preload *const preload = user;
    size_t i;
    while ((i = atomic_fetch_add(&preload->next, 1)) < preload->num_keys) {
        gj_kernel *kernel = NULL;
        gj_error *error = NULL;
        const enum gj_status status =
            gj_kernel_get(preload->context, &preload->keys[i], preload->flags, &kernel, &error);
        if (preload->kernels != NULL)
            preload->kernels[i] = kernel;
        if (status != GJ_OK)
            note_failure(preload, i, status, error);
    }
    return NULL;
}

/* The processors that this process may use: a container's are fewer than the machine's. */
static int choose_threads(int asked, size_t num_keys)
{
    cpu_set_t set;
    const int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : DEFAULT_THREADS;
    int threads = asked > 0 ? asked : processors < DEFAULT_THREADS ? processors : DEFAULT_THREADS;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    return (size_t)threads < num_keys ? threads : num_keys > 0 ? (int)num_keys : 1;
}

/* The calling thread is one of them, so a process that gets no further thread does the work all the same. */
static void run(struct preload *preload, int num_threads)
{
    pthread_t threads[MOST_THREADS];
    int started = 0;
    while (started + 1 < num_threads && pthread_create(&threads[started], NULL, get_kernels, preload) == 0)
        started++;
    get_kernels(preload);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

enum gj_status gj_kernels_get(gj_context *context, const struct gj_key *keys, size_t num_keys, unsigned flags,
                              int num_threads, gj_kernel **kernels, gj_error **error)
{
    struct preload preload = {
        .context = context, .keys = keys, .num_keys = num_keys, .flags = flags, .kernels = kernels};
    if (num_threads < 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "num_threads = %d: must be 0 or more", num_threads);
    pthread_mutex_init(&preload.lock, NULL);
    run(&preload, choose_threads(num_threads, num_keys));
    pthread_mutex_destroy(&preload.lock);
    if (preload.status != GJ_OK)
        gj_error_copy(error, preload.error);
    gj_error_free(&preload.error);
    return preload.status;
}
