/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a model's problems: the model's choice is made for every single M, so nothing needs to be known
 * of how it chooses; what tuning tables choose is added. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "plan/choose.h"
#include "plan/few_rows.h"

struct choosing {
    struct model *model;
    atomic_size_t next; /* index of the next problem to take */
};

static bool is_same_key(const struct gj_key *a, const struct gj_key *b)
{
    return memcmp(a, b, sizeof(*a)) == 0; /* keys have no padding (src/api/choice.c) */
}

static bool is_same_problem(const struct model_problem *a, const struct model_problem *b)
{
    return a->n == b->n && a->k == b->k && is_same_key(&a->problem, &b->problem);
}

/* Adds a key unless it is there. */
static enum gj_status add_key(struct model_problem *problem, const struct gj_key *key, size_t *capacity,
                              gj_error **error)
{
    for (size_t i = problem->num_keys; i-- > 0;)
        if (is_same_key(&problem->keys[i], key))
            return GJ_OK;
    if (problem->num_keys == *capacity) {
        const size_t more = *capacity ? 2 * *capacity : 64;
        struct gj_key *const keys = realloc(problem->keys, more * sizeof(*keys));
        if (keys == NULL)
            GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %zu keys", more);
        problem->keys = keys;
        *capacity = more;
    }
    problem->keys[problem->num_keys++] = *key;
    return GJ_OK;
}

/* What the tables have for any GPU with as many SMs. */
static enum gj_status add_tuned_keys(const struct model *model, struct model_problem *problem,
                                     size_t *capacity, gj_error **error)
{
    for (size_t t = 0; t < model->tuning.num_tables; t++) {
        const struct gj_tuning_table *const table = &model->tuning.tables[t];
        for (size_t i = 0; i < table->count; i++)
            if (gj_tuning_entry_applies(&table->entries[i], (int)model->num_sms, &problem->problem,
                                        model->m_max, problem->n, problem->k, 1))
                GJ_TRY(add_key(problem, &table->entries[i].key, capacity, error));
    }
    return GJ_OK;
}

static enum gj_status choose_keys(const struct model *model, struct model_problem *problem, gj_error **error)
{
    size_t capacity = 0;
    const struct gj_key *last = NULL;
    struct gj_candidates candidates;
    gj_candidates_list(&problem->problem, (int)model->num_sms, &candidates);
    if (candidates.count == 0)
        return gj_candidates_fail(&problem->problem, error);
    for (int64_t m = 1; m <= model->m_max; m++) {
        struct gj_key few;
        const bool is_few =
            gj_few_rows_choose(&problem->problem, m, problem->n, problem->k, 1, (int)model->num_sms, &few);
        const struct gj_key *const key =
            is_few ? &few : gj_candidates_choose(&candidates, m, problem->n, problem->k, 1);
        if (is_few || key != last)
            GJ_TRY(add_key(problem, key, &capacity, error));
        last = key;
    }
    return add_tuned_keys(model, problem, &capacity, error);
}

static void *choose_some(void *user)
{
    struct choosing *const choosing = user;
    struct model *const model = choosing->model;
    size_t i;
    while ((i = atomic_fetch_add(&choosing->next, 1)) < model->num_problems) {
        struct model_problem *const problem = &model->problems[i];
        if (problem->is_owner)
            problem->status = choose_keys(model, problem, &problem->error);
    }
    return NULL;
}

/* The index of the first problem that is equal to problem i. */
static size_t find_first(const struct model *model, size_t i)
{
    size_t first = 0;
    while (!is_same_problem(&model->problems[first], &model->problems[i]))
        first++;
    return first;
}

/* The failure of one problem as that of the whole. */
static enum gj_status fail_problem(const struct model *model, const struct model_problem *problem,
                                   gj_error **error)
{
    const gj_error *const cause = problem->error;
    gj_error_make(error, problem->status, cause ? cause->stage : GJ_STAGE_PLAN, 0, "", "%s: %s: %s",
                  model->path, problem->weight, cause ? cause->message : "no memory");
    for (size_t i = 0; cause && i < cause->num_reasons; i++)
        gj_error_add_reason(error, "%s", cause->reasons[i]);
    return problem->status;
}

enum gj_status model_choose(struct model *model, int num_threads, gj_error **error)
{
    struct choosing choosing = {.model = model};
    for (size_t i = 0; i < model->num_problems; i++)
        model->problems[i].is_owner = find_first(model, i) == i;
    pthread_t *const threads = calloc((size_t)num_threads, sizeof(*threads));
    int started = 0;
    while (threads && started + 1 < num_threads &&
           pthread_create(&threads[started], NULL, choose_some, &choosing) == 0)
        started++;
    choose_some(&choosing);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    for (size_t i = 0; i < model->num_problems; i++) {
        struct model_problem *const problem = &model->problems[i];
        if (problem->status != GJ_OK)
            return fail_problem(model, problem, error);
        const struct model_problem *const owner = &model->problems[find_first(model, i)];
        problem->keys = owner->keys;
        problem->num_keys = owner->num_keys;
    }
    return GJ_OK;
}

void model_free(struct model *model)
{
    for (size_t i = 0; i < model->num_problems; i++) {
        gj_error_free(&model->problems[i].error);
        if (model->problems[i].is_owner)
            free(model->problems[i].keys);
    }
    free(model->problems);
    gj_tuning_free(&model->tuning);
    model->problems = NULL;
    model->num_problems = 0;
}
