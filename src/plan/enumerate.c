/* SPDX-License-Identifier: Apache-2.0 */
/* All accepted configs of a problem, in a fixed order. */
#include "plan/check.h"

static const enum gj_sched scheds[] = {GJ_SCHED_PINGPONG, GJ_SCHED_COOP, GJ_SCHED_SINGLE};
static const int tile_rows[] = {64, 128, 192, 256, 320};
static const int clusters[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Appends the key when it is accepted; counts it either way past the capacity. */
static void consider(const struct gj_key *key, struct gj_key *keys, size_t capacity, size_t *count)
{
    struct gj_plan plan;
    gj_plan_make_numbers(key, &plan);
    if (!gj_plan_accepts(&plan))
        return;
    if (*count < capacity)
        keys[*count] = *key;
    (*count)++;
}

/* What else a config has: splits of K and CTAs per SM, of sched=single only. */
static void consider_all(struct gj_key key, struct gj_key *keys, size_t capacity, size_t *count)
{
    const bool single = key.sched == GJ_SCHED_SINGLE;
    const int splits = single ? GJ_SPLIT_K_4 : GJ_SPLIT_K_NONE,
              ctas = single ? GJ_CTAS_PER_SM_2 : GJ_CTAS_PER_SM_1;
    for (int split = GJ_SPLIT_K_NONE; split <= splits; split++) {
        for (int per_sm = GJ_CTAS_PER_SM_1; per_sm <= ctas; per_sm++) {
            key.split_k = (enum gj_split_k)split;
            key.ctas_per_sm = (enum gj_ctas_per_sm)per_sm;
            consider(&key, keys, capacity, count);
        }
    }
}

size_t gj_keys_enumerate(const struct gj_key *problem, struct gj_key *keys, size_t capacity)
{
    size_t count = 0;
    struct gj_key key = *problem;
    key.sched = scheds[0];
    key.tile_m = key.tile_n = 64;
    key.cluster_m = key.cluster_n = 1;
    key.split_k = GJ_SPLIT_K_NONE;
    key.ctas_per_sm = GJ_CTAS_PER_SM_1;
    if (gj_key_check(&key, NULL) == GJ_ERR_ARGUMENT)
        return 0; /* a struct that is no key has no plan either */
    for (size_t s = 0; s < COUNT(scheds); s++) {
        for (size_t m = 0; m < COUNT(tile_rows); m++) {
            for (int n = 16; n <= GJ_MMA_N_MAX; n += 16) {
                for (size_t c = 0; c < COUNT(clusters); c++) {
                    key.sched = scheds[s];
                    key.tile_m = tile_rows[m];
                    key.tile_n = n;
                    key.cluster_m = clusters[c][0];
                    key.cluster_n = clusters[c][1];
                    consider_all(key, keys, capacity, &count);
                }
            }
        }
    }
    return count;
}
