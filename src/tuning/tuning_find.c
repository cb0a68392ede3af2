/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a table's entries, and looking one up. */
#include <stdlib.h>
#include <string.h>

#include "key/config.h"
#include "tuning/tuning.h"

static int compare_numbers(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

/* As numbers, so that the order is that of the enums on every machine: a key is ints and has no padding
 * (src/api/table.c). */
static int compare_keys(const struct gj_key *x, const struct gj_key *y)
{
    int a[sizeof *x / sizeof(int)], b[sizeof *y / sizeof(int)];
    memcpy(a, x, sizeof a);
    memcpy(b, y, sizeof b);
    int order = 0;
    for (size_t i = 0; order == 0 && i < sizeof a / sizeof a[0]; i++)
        order = compare_numbers(a[i], b[i]);
    return order;
}

int gj_tuning_compare(const struct gj_tuning_place *x, const struct gj_tuning_place *y)
{
    int order = strcmp(x->gpu, y->gpu);
    order = order != 0 ? order : compare_numbers(x->num_sms, y->num_sms);
    order = order != 0 ? order : compare_keys(&x->problem, &y->problem);
    order = order != 0 ? order : compare_numbers(x->n, y->n);
    order = order != 0 ? order : compare_numbers(x->k, y->k);
    order = order != 0 ? order : compare_numbers(x->batch, y->batch);
    return order != 0 ? order : compare_numbers(x->m_class, y->m_class);
}

static int compare_with_entry(const void *place, const void *entry)
{
    return gj_tuning_compare(place, &((const struct gj_tuning_entry *)entry)->place);
}

const struct gj_tuning_entry *gj_tuning_table_find(const struct gj_tuning_table *table,
                                                   const struct gj_tuning_place *place)
{
    if (table->count == 0)
        return NULL;
    return bsearch(place, table->entries, table->count, sizeof *table->entries, compare_with_entry);
}

const struct gj_key *gj_tuning_find(const struct gj_tuning *tuning, const char *gpu, int num_sms,
                                    const struct gj_key *problem, int64_t m, int64_t n, int64_t k,
                                    int64_t batch)
{
    const struct gj_tuning_place place = {gpu, num_sms, gj_key_problem(problem), n,
                                          k,   batch,   gj_tuning_m_class(m)};
    for (size_t i = 0; i < tuning->num_tables; i++) {
        const struct gj_tuning_entry *const entry = gj_tuning_table_find(&tuning->tables[i], &place);
        if (entry != NULL)
            return &entry->key;
    }
    return NULL;
}

bool gj_tuning_entry_applies(const struct gj_tuning_entry *entry, int num_sms, const struct gj_key *problem,
                             int64_t m_max, int64_t n, int64_t k, int64_t batch)
{
    struct gj_tuning_place wanted = entry->place;
    wanted.num_sms = num_sms;
    wanted.problem = gj_key_problem(problem);
    wanted.n = n;
    wanted.k = k;
    wanted.batch = batch;
    return gj_tuning_compare(&wanted, &entry->place) == 0 && entry->place.m_class <= gj_tuning_m_class(m_max);
}
