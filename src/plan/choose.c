/* SPDX-License-Identifier: Apache-2.0 */
/* gj_key_choose: for few rows of A by rule, else the config of a menu with the least modelled time. The menu
 * bounds what a server has to prewarm, for all extents of a problem together. */
#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "key/config.h"
#include "plan/check.h"
#include "plan/choose.h"
#include "plan/cost_model.h"
#include "plan/few_rows.h"

#define DEFAULT_SMS 132

/* Of 150 configs that were measured on 46 shapes with M from 128 on (tests/bench/measured/h200_bf16.json) the
 * best of these is within 0.1 % of the best of all, in the geometric mean; chosen greedily, then filled up
 * with the widths between. A cluster of two along M halves what an SM loads of B. */
static const struct {
    enum gj_sched sched;
    int tile_m, tile_n, cluster_m, cluster_n;
} menu[GJ_MENU_MAX] = {
    {GJ_SCHED_PINGPONG, 128, 112, 2, 1}, {GJ_SCHED_PINGPONG, 128, 128, 2, 1},
    {GJ_SCHED_PINGPONG, 128, 128, 1, 2}, {GJ_SCHED_PINGPONG, 128, 144, 2, 1},
    {GJ_SCHED_PINGPONG, 128, 160, 2, 1}, {GJ_SCHED_PINGPONG, 128, 176, 2, 1},
    {GJ_SCHED_PINGPONG, 128, 176, 1, 2}, {GJ_SCHED_PINGPONG, 128, 192, 2, 1},
    {GJ_SCHED_PINGPONG, 128, 208, 2, 1}, {GJ_SCHED_PINGPONG, 64, 192, 2, 1},
    {GJ_SCHED_PINGPONG, 64, 224, 2, 1},  {GJ_SCHED_COOP, 64, 32, 2, 1},
    {GJ_SCHED_COOP, 64, 64, 2, 1},       {GJ_SCHED_COOP, 64, 96, 2, 1},
    {GJ_SCHED_COOP, 64, 112, 2, 1},      {GJ_SCHED_COOP, 64, 128, 2, 1},
    {GJ_SCHED_COOP, 64, 176, 2, 1},      {GJ_SCHED_COOP, 128, 64, 2, 1},
    {GJ_SCHED_COOP, 128, 96, 2, 1},      {GJ_SCHED_COOP, 128, 128, 2, 1},
    {GJ_SCHED_COOP, 128, 192, 2, 1},     {GJ_SCHED_COOP, 128, 224, 2, 1},
    {GJ_SCHED_COOP, 128, 256, 2, 1},     {GJ_SCHED_COOP, 128, 64, 1, 2},
};

static int sms_or_default(int num_sms)
{
    return num_sms > 0 ? num_sms : DEFAULT_SMS;
}

/* The problem with a config of the default scheduler. */
static struct gj_key plain(const struct gj_key *problem)
{
    struct gj_key key = gj_key_problem(problem);
    key.tiles = GJ_TILES_STATIC;
    key.swap_ab = GJ_SWAP_AB_NO;
    return key;
}

double gj_key_us(const struct gj_key *key, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms)
{
    return gj_cost_us(&gj_cost_h200, key, m, n, k, batch, sms_or_default(num_sms));
}

/* A candidate and what the model says of it. */
struct ranked {
    double us;
    size_t index; /* decides between equals */
};

static int compare_ranked(const void *x, const void *y)
{
    const struct ranked *const a = x, *const b = y;
    if (a->us < b->us || a->us > b->us)
        return a->us < b->us ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Clusters of 4 fit 120 of 132 SMs only (cuOccupancyMaxActiveClusters, H200, 2026-11-30); sched=single has a
 * rule of its own. */
static bool is_candidate(const struct gj_key *key, int num_sms)
{
    const int cluster_size = key->cluster_m * key->cluster_n;
    return cluster_size <= 2 && cluster_size <= num_sms && key->sched != GJ_SCHED_SINGLE;
}

/* All that may be ranked. */
static void list_all(const struct gj_key *problem, struct gj_candidates *candidates)
{
    struct gj_key *const keys = candidates->keys;
    const struct gj_key key = plain(problem);
    size_t count = gj_keys_enumerate(&key, keys, GJ_CANDIDATES_MAX);
    if (count > GJ_CANDIDATES_MAX)
        count = GJ_CANDIDATES_MAX;
    candidates->count = 0;
    for (size_t i = 0; i < count; i++)
        if (is_candidate(&keys[i], candidates->num_sms))
            keys[candidates->count++] = keys[i];
}

void gj_candidates_list(const struct gj_key *problem, int num_sms, struct gj_candidates *candidates)
{
    struct gj_key key = plain(problem);
    candidates->num_sms = sms_or_default(num_sms);
    candidates->count = 0;
    for (size_t i = 0; i < GJ_MENU_MAX; i++) {
        key.sched = menu[i].sched;
        key.tile_m = menu[i].tile_m;
        key.tile_n = menu[i].tile_n;
        key.cluster_m = menu[i].cluster_m;
        key.cluster_n = menu[i].cluster_n;
        if (is_candidate(&key, candidates->num_sms) && gj_key_check(&key, NULL) == GJ_OK)
            candidates->keys[candidates->count++] = key;
    }
    if (candidates->count == 0)
        list_all(problem, candidates);
}

const struct gj_key *gj_candidates_choose(const struct gj_candidates *candidates, int64_t m, int64_t n,
                                          int64_t k, int64_t batch)
{
    size_t best = 0;
    double best_us = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        const double us = gj_key_us(&candidates->keys[i], m, n, k, batch, candidates->num_sms);
        if (i == 0 || us < best_us) {
            best = i;
            best_us = us;
        }
    }
    return &candidates->keys[best];
}

enum gj_status gj_candidates_fail(const struct gj_key *problem, gj_error **error)
{
    const struct gj_key config = gj_key_default();
    struct gj_key refused = *problem;
    refused.tile_m = config.tile_m;
    refused.tile_n = config.tile_n;
    refused.cluster_m = config.cluster_m;
    refused.cluster_n = config.cluster_n;
    refused.sched = config.sched;
    refused.tiles = config.tiles;
    refused.split_k = config.split_k;
    refused.ctas_per_sm = config.ctas_per_sm;
    GJ_TRY(gj_key_check(&refused, error));
    GJ_FAIL(error, GJ_ERR_INTERNAL, GJ_STAGE_PLAN, "no config is enumerated for an accepted problem");
}

enum gj_status gj_key_choose(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                             int num_sms, struct gj_key *key, gj_error **error)
{
    struct gj_candidates candidates;
    if (gj_few_rows_choose(problem, m, n, k, batch, sms_or_default(num_sms), key))
        return GJ_OK;
    gj_candidates_list(problem, num_sms, &candidates);
    if (candidates.count == 0)
        return gj_candidates_fail(problem, error);
    *key = *gj_candidates_choose(&candidates, m, n, k, batch);
    return GJ_OK;
}

/* The choice comes first, and the others keep their order. */
static void move_to_front(struct gj_key *keys, size_t count, const struct gj_key *chosen)
{
    size_t i = 0;
    while (i < count && memcmp(&keys[i], chosen, sizeof *chosen) != 0)
        i++;
    if (i == count)
        return;
    memmove(&keys[1], &keys[0], i * sizeof *keys);
    keys[0] = *chosen;
}

size_t gj_keys_rank(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms,
                    struct gj_key *keys, size_t capacity)
{
    struct gj_candidates candidates;
    struct ranked ranked[GJ_CANDIDATES_MAX];
    struct gj_key all[GJ_FEW_ROWS_CANDIDATES + GJ_CANDIDATES_MAX], chosen;
    if (gj_key_choose(problem, m, n, k, batch, num_sms, &chosen, NULL) != GJ_OK)
        return 0;
    candidates.num_sms = sms_or_default(num_sms);
    list_all(problem, &candidates);
    for (size_t i = 0; i < candidates.count; i++)
        ranked[i] = (struct ranked){gj_key_us(&candidates.keys[i], m, n, k, batch, num_sms), i};
    qsort(ranked, candidates.count, sizeof *ranked, compare_ranked);
    size_t count = gj_few_rows_list(problem, m, n, k, batch, candidates.num_sms, all, GJ_FEW_ROWS_CANDIDATES);
    for (size_t i = 0; i < candidates.count; i++)
        all[count++] = candidates.keys[ranked[i].index];
    move_to_front(all, count, &chosen);
    memcpy(keys, all, (count < capacity ? count : capacity) * sizeof *keys);
    return count;
}
