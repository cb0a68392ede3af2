/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over atomic pointers. A table that grows is replaced as a whole; readers may still be in
 * the old one, so it is kept until the end (together at most as large as the newest). */
#include "api/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_CAPACITY 64

struct gj_table_slots {
    struct gj_table_slots *previous; /* replaced, kept for readers */
    size_t capacity;                 /* a power of two */
    _Atomic(struct gj_table_entry *) items[];
};

/* A key is 33 ints and enums and nothing between them, so its bytes can be hashed and compared as they are.
 * (Only in memory: names on disk hash text.) */
_Static_assert(sizeof(struct gj_key) == 33 * sizeof(int) && sizeof(enum gj_op) == sizeof(int),
               "struct gj_key has no padding");

uint64_t gj_key_hash(const struct gj_key *key)
{
    return gj_hash64(key, sizeof *key);
}

void *gj_table_find(const struct gj_table *table, const struct gj_key *key, uint64_t hash)
{
    struct gj_table_slots *const slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    if (slots == NULL)
        return NULL;
    for (size_t i = hash & (slots->capacity - 1);; i = (i + 1) & (slots->capacity - 1)) {
        struct gj_table_entry *const entry = atomic_load_explicit(&slots->items[i], memory_order_acquire);
        if (entry == NULL)
            return NULL;
        if (entry->hash == hash && memcmp(&entry->key, key, sizeof *key) == 0)
            return entry;
    }
}

static void place(struct gj_table_slots *slots, struct gj_table_entry *entry)
{
    size_t i = entry->hash & (slots->capacity - 1);
    while (atomic_load_explicit(&slots->items[i], memory_order_relaxed) != NULL)
        i = (i + 1) & (slots->capacity - 1);
    atomic_store_explicit(&slots->items[i], entry, memory_order_release);
}

static struct gj_table_slots *grow(struct gj_table *table)
{
    struct gj_table_slots *const old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    const size_t capacity = old ? 2 * old->capacity : FIRST_CAPACITY;
    struct gj_table_slots *const slots = calloc(1, sizeof *slots + capacity * sizeof slots->items[0]);
    if (slots == NULL)
        return NULL;
    slots->previous = old;
    slots->capacity = capacity;
    for (size_t i = 0; old != NULL && i < old->capacity; i++) {
        struct gj_table_entry *const entry = atomic_load_explicit(&old->items[i], memory_order_relaxed);
        if (entry != NULL)
            place(slots, entry);
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return slots;
}

bool gj_table_add(struct gj_table *table, struct gj_table_entry *entry)
{
    struct gj_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (slots == NULL || 2 * table->count >= slots->capacity)
        slots = grow(table);
    if (slots == NULL)
        return false;
    place(slots, entry);
    table->count++;
    return true;
}

void gj_table_fini(struct gj_table *table, void (*release)(void *entry))
{
    struct gj_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    for (size_t i = 0; slots != NULL && i < slots->capacity; i++) {
        struct gj_table_entry *const entry = atomic_load_explicit(&slots->items[i], memory_order_relaxed);
        if (entry != NULL)
            release(entry);
    }
    while (slots != NULL) {
        struct gj_table_slots *const previous = slots->previous;
        free(slots);
        slots = previous;
    }
    atomic_store_explicit(&table->slots, NULL, memory_order_relaxed);
}
