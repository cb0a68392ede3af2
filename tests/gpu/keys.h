/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys the GPU tests run. */
#ifndef GJ_TESTS_GPU_KEYS_H
#define GJ_TESTS_GPU_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include <gemmjit/key.h>

/* Every accepted key of: tile, cluster, schedule, tile scheduler, and the classes of A and B (16-bit in four
 * layouts, 8-bit), with bf16 D and nothing else. Returns the number; at most capacity are written. */
size_t keys_product(struct gj_key *keys, size_t capacity);

/* Accepted keys in which every triple of values of all fields that can occur together does. Random, by seed.
 */
size_t keys_covering(uint32_t seed, struct gj_key *keys, size_t capacity);

/* The f16 and bf16 keys with k-major operands, an n-major D of f16, bf16 or f32, and clusters of at most two.
 */
size_t keys_basic(struct gj_key *keys, size_t capacity);

/* sched=single: as keys_covering, and every accepted config of bf16 and of e4m3 with either kind of sums. */
size_t keys_single(uint32_t seed, struct gj_key *keys, size_t capacity);

#endif
