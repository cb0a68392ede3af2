/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling many keys at once. */
#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct work {
    struct rig *rig;
    const struct gj_key *keys;
    gj_kernel **kernels;
    size_t count;
    atomic_size_t next, failed;
};

static void *get_some(void *pointer)
{
    struct work *const work = pointer;
    size_t i;
    while ((i = atomic_fetch_add(&work->next, 1)) < work->count) {
        gj_error *error = NULL;
        char text[GJ_KEY_TEXT_MAX];
        work->kernels[i] = NULL;
        enum gj_status status =
            gj_kernel_get(work->rig->context, &work->keys[i], 0, &work->kernels[i], &error);
        if (status == GJ_OK)
            status = gj_kernel_prepare(work->kernels[i], 0, &error);
        if (status == GJ_OK)
            continue;
        work->kernels[i] = NULL;
        atomic_fetch_add(&work->failed, 1);
        gj_key_format(&work->keys[i], text, sizeof text);
        fprintf(stderr, "NO KERNEL %s: %s\n", text, error ? error->message : gj_status_name(status));
        gj_error_free(&error);
    }
    return NULL;
}

size_t kernels_get(struct rig *rig, const struct gj_key *keys, gj_kernel **kernels, size_t count, int jobs)
{
    struct work work = {.rig = rig, .keys = keys, .kernels = kernels, .count = count};
    pthread_t threads[64];
    for (int i = 0; i < jobs; i++)
        if (pthread_create(&threads[i], NULL, get_some, &work) != 0)
            exit(1);
    for (int i = 0; i < jobs; i++)
        pthread_join(threads[i], NULL);
    return work.failed;
}
