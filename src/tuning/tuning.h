/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning tables: configs that were measured, by GPU, problem and class of shapes (docs/tuning.md).
 *
 * A table is plain data that does not change once it has been read, so any thread may look into it. */
#ifndef GJ_TUNING_TUNING_H
#define GJ_TUNING_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gemmjit/error.h>
#include <gemmjit/key.h>

#include "base/log.h"
#include "base/strbuf.h"

/* Largest M that the class of M rows stands for: multiples of 8 up to 64, and above 64 the multiples of an
 * eighth of the power of two that is not below M, and of 64. M below 1 is in the first class. Never less than
 * M, monotone, and its own class. */
int64_t gj_tuning_m_class(int64_t m);

/* What an entry is found by. */
struct gj_tuning_place {
    const char *gpu; /* as the driver names it */
    int num_sms;
    struct gj_key problem; /* gj_key_problem */
    int64_t n, k, batch, m_class;
};

#define GJ_TUNING_DATE_MAX 11

struct gj_tuning_entry {
    struct gj_tuning_place place; /* gpu is owned */
    struct gj_key key;            /* the problem with the config that was fastest */
    double us, default_us;        /* of one launch, and with the model's choice in the same run */
    char measured[GJ_TUNING_DATE_MAX];
    int index; /* in its file, from 0 */
};

/* Entries in the order of gj_tuning_compare, each place once. */
struct gj_tuning_table {
    struct gj_tuning_entry *entries;
    size_t count;
};

/* Orders places by GPU, SMs, problem, N, K, batch and class: below, equal to or above 0. */
int gj_tuning_compare(const struct gj_tuning_place *x, const struct gj_tuning_place *y);

/* Reads a table; name is what messages call it. Entries are well formed, not necessarily accepted by
 * gj_key_check. The caller frees it with gj_tuning_table_free; *table is untouched on failure.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: the message names file, entry, member and rule; GJ_ERR_NO_MEMORY. */
enum gj_status gj_tuning_parse(const char *name, const struct gj_strbuf *text, struct gj_tuning_table *table,
                               gj_error **error);
/* The same of a file of at most 64 MiB. */
enum gj_status gj_tuning_read(const char *path, struct gj_tuning_table *table, gj_error **error);
void gj_tuning_table_free(struct gj_tuning_table *table);

/* The entry of a place, or NULL. */
const struct gj_tuning_entry *gj_tuning_table_find(const struct gj_tuning_table *table,
                                                   const struct gj_tuning_place *place);

/* The tables of a context, in the order in which they are asked. */
struct gj_tuning {
    struct gj_tuning_table *tables;
    size_t num_tables;
};

/* Opens the tables that list names, paths separated by ':' (NULL: those of $GEMMJIT_TUNING), and behind them
 * the built-in ones; with an empty list, or an empty variable, none. A table that cannot be used is left out
 * with a warning, and so are entries that this version has no kernel for. False when memory runs out; free
 * it all the same. */
bool gj_tuning_open(struct gj_tuning *tuning, const char *list, const struct gj_log *log);
void gj_tuning_free(struct gj_tuning *tuning);

/* The key of the first table that has one for M rows on this GPU, or NULL. problem may have any config. */
const struct gj_key *gj_tuning_find(const struct gj_tuning *tuning, const char *gpu, int num_sms,
                                    const struct gj_key *problem, int64_t m, int64_t n, int64_t k,
                                    int64_t batch);

/* Whether gj_tuning_find may give an entry for some M from 1 to m_max on some GPU with num_sms SMs. */
bool gj_tuning_entry_applies(const struct gj_tuning_entry *entry, int num_sms, const struct gj_key *problem,
                             int64_t m_max, int64_t n, int64_t k, int64_t batch);

#endif
