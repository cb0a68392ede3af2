/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds, and random mutations of them that repeat for the same number. */
#ifndef GJ_TESTS_FUZZ_MUTATE_H
#define GJ_TESTS_FUZZ_MUTATE_H

#include "fuzz.h"

enum { MUTATE_MAX = 8192 }; /* bytes of an input */

struct seed {
    char *name;
    uint8_t *data;
    size_t size;
};
struct seeds {
    struct seed *items;
    size_t count;
};
/* Copies the bytes. False when memory runs out. */
bool seeds_add(struct seeds *seeds, const char *name, const uint8_t *data, size_t size);
void seeds_free(struct seeds *seeds);

struct random {
    uint64_t state;
};
/* Writes a mutation of a seed, of which there is one at least; returns its bytes. */
size_t mutate(struct random *random, const struct seeds *seeds, uint8_t data[MUTATE_MAX]);

#endif
