/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the tests of fused epilogues run, and neighbours of refused ones. */
#ifndef GJ_TESTS_GPU_EPILOGUES_KEYS_H
#define GJ_TESTS_GPU_EPILOGUES_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gemmjit/key.h>

/* Accepted keys of the functions none, relu, relu_sq and reglu: for each operation every pair of values of
 * all other fields that can occur together does. Random, by seed. Returns the number; at most capacity are
 * written. */
size_t epilogues_covering(uint32_t seed, struct gj_key *keys, size_t capacity);

/* Makes a refused key the accepted one of the same problem whose config is nearest. Returns false when there
 * is none; *moved tells whether the config changed. */
bool epilogues_nearest(struct gj_key *key, bool *moved);

#endif
