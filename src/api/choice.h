/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers which config was chosen for a problem and its extents: choosing compares hundreds of configs,
 * gj_gemm asks on every call. */
#ifndef GJ_API_CHOICE_H
#define GJ_API_CHOICE_H

#include <pthread.h>
#include <stdbool.h>

#include <gemmjit/launch.h>

/* What a choice depends on. */
struct gj_question {
    struct gj_key problem;
    int num_sms;
    int64_t m, n, k, batch;
};

#define GJ_CHOICES 256

/* A table in which each question has one place, and the latest asked there stays. */
struct gj_choices {
    pthread_mutex_t lock;
    struct gj_choice {
        bool used;
        struct gj_question question;
        struct gj_key answer;
    } items[GJ_CHOICES];
};

/* As gj_key_choose. Thread-safe. */
enum gj_status gj_choices_get(struct gj_choices *choices, const struct gj_question *question,
                              struct gj_key *key, gj_error **error);

#endif
