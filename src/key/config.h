/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a key: the problem, what to compute, and the config, how. */
#ifndef GJ_KEY_CONFIG_H
#define GJ_KEY_CONFIG_H

#include <gemmjit/key.h>

#define GJ_KEY_PROBLEM 1u
#define GJ_KEY_CONFIG 2u

/* gj_key_format of the fields of these parts only. */
size_t gj_key_format_part(const struct gj_key *key, unsigned parts, char *text, size_t capacity);

/* Gives *key the config fields of *config. */
void gj_key_take_config(struct gj_key *key, const struct gj_key *config);

/* The key with the default config: equal, byte by byte, for keys of one problem. */
struct gj_key gj_key_problem(const struct gj_key *key);

#endif
