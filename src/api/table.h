/* SPDX-License-Identifier: Apache-2.0 */
/* Hash table from keys to kernels: lookups take no lock, insertions are serialised by the caller. */
#ifndef GJ_API_TABLE_H
#define GJ_API_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gemmjit/context.h>

uint64_t gj_key_hash(const struct gj_key *key);

/* What an entry of the table must start with. */
struct gj_table_entry {
    struct gj_key key;
    uint64_t hash;
};

struct gj_table_slots;

struct gj_table {
    _Atomic(struct gj_table_slots *) slots;
    size_t count;
};

/* The entry of a key, or NULL. Safe from any thread beside an insertion. */
void *gj_table_find(const struct gj_table *table, const struct gj_key *key, uint64_t hash);

/* Adds an entry whose key is not in the table. Not safe beside another insertion. False: no memory. */
bool gj_table_add(struct gj_table *table, struct gj_table_entry *entry);

/* Calls release for each entry and frees the table. */
void gj_table_fini(struct gj_table *table, void (*release)(void *entry));

#endif
