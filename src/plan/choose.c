/* SPDX-License-Identifier: Apache-2.0 */
/* gj_key_choose: the config with the fewest modelled cycles.
 *
 * Model and constants: H200, 2026-11-30, fitted to interleaved runs of 25 configs on 16 shapes within about 1
 * % in cycles: cycles = waves * (max(tensor, load) + per_tile) + per_launch waves  = ceil(cluster tiles /
 * clusters that fit) tensor = 2 * TILE_M * TILE_N * K / 4096          (4096 FLOP per clock and SM, 16-bit
 * operands) load   = bytes of A and B per tile over L2 / 64   (64 bytes per clock and SM) per_tile is the
 * epilogue that nothing overlaps: all of it when cooperative (2570 clocks for 128x256, 1560 for 128x128),
 * little when pingpong. */
#include <stdlib.h>

#include "base/error_build.h"
#include "plan/check.h"
#include "plan/choose.h"
#include "plan/few_rows.h"

#define DEFAULT_SMS 132

static double ceil_div(double a, double b)
{
    const double q = (double)(int64_t)(a / b);
    return q * b < a ? q + 1 : q;
}

/* Special function instructions per element of A B^T: of gated operations half as many as of the function. */
static int specials_per_element(const struct gj_key *key)
{
    const bool none = key->act == GJ_ACT_NONE || key->act == GJ_ACT_RELU || key->act == GJ_ACT_RELU_SQ ||
                      key->act == GJ_ACT_REGLU;
    return none ? 0 : key->op == GJ_OP_GATED ? 1 : 2;
}

/* Clocks per tile that the main loop does not hide. A function adds its special function instructions, 16 per
 * clock and SM: gelu on 128 x 224 cooperative costs 3700 (H200, 2026-12-01). */
static double exposed_per_tile(const struct gj_key *key)
{
    const double elements = (double)key->tile_m * key->tile_n;
    if (key->sched == GJ_SCHED_COOP)
        return 550 + elements * ((2570.0 - 550.0) / (128 * 256) + specials_per_element(key) / 16.0);
    return key->tile_n % 64 == 0 ? 400 : 500;
}

static double modelled_cycles(const struct gj_key *key, int64_t m, int64_t n, int64_t k, int64_t batch,
                              int num_sms)
{
    const double element = (double)gj_dtype_bytes(key->a.dtype), tile_k = 128 / element;
    const double k_padded = ceil_div((double)k, tile_k) * tile_k;
    const double tiles = ceil_div((double)m, (double)key->tile_m * key->cluster_m) *
                         ceil_div((double)n, (double)key->tile_n * key->cluster_n) * (double)batch;
    const int cluster_size = key->cluster_m * key->cluster_n;
    const double slots = num_sms >= cluster_size ? num_sms / cluster_size : 1;
    const double tensor = 2.0 * key->tile_m * key->tile_n * k_padded / (8192 / element);
    const double bytes =
        element * k_padded * ((double)key->tile_m / key->cluster_n + (double)key->tile_n / key->cluster_m);
    const double load = bytes / 54;
    const double per_launch = key->sched == GJ_SCHED_COOP ? 3600 : 6000;
    return ceil_div(tiles, slots) * ((tensor > load ? tensor : load) + exposed_per_tile(key)) + per_launch;
}

double gj_key_cycles(const struct gj_key *key, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms)
{
    return modelled_cycles(key, m, n, k, batch, num_sms > 0 ? num_sms : DEFAULT_SMS);
}

/* A candidate and what the model says of it. */
struct ranked {
    double cycles;
    size_t index; /* decides between equals */
};

static int compare_ranked(const void *x, const void *y)
{
    const struct ranked *const a = x, *const b = y;
    if (a->cycles < b->cycles || a->cycles > b->cycles)
        return a->cycles < b->cycles ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void gj_candidates_list(const struct gj_key *problem, int num_sms, struct gj_candidates *candidates)
{
    struct gj_key plain = *problem;
    struct gj_key *const keys = candidates->keys;
    plain.tiles = GJ_TILES_STATIC;
    plain.swap_ab = GJ_SWAP_AB_NO;
    plain.split_k = GJ_SPLIT_K_NONE;
    plain.ctas_per_sm = GJ_CTAS_PER_SM_1;
    size_t count = gj_keys_enumerate(&plain, keys, GJ_CANDIDATES_MAX);
    if (count > GJ_CANDIDATES_MAX)
        count = GJ_CANDIDATES_MAX;
    candidates->num_sms = num_sms > 0 ? num_sms : DEFAULT_SMS;
    candidates->count = 0;
    for (size_t i = 0; i < count; i++) {
        /* Clusters of 4 fit 120 of 132 SMs only (cuOccupancyMaxActiveClusters, H200, 2026-11-30). */
        const int cluster_size = keys[i].cluster_m * keys[i].cluster_n;
        if (cluster_size <= 2 && cluster_size <= candidates->num_sms && keys[i].sched != GJ_SCHED_SINGLE)
            keys[candidates->count++] = keys[i];
    }
}

const struct gj_key *gj_candidates_choose(const struct gj_candidates *candidates, int64_t m, int64_t n,
                                          int64_t k, int64_t batch)
{
    size_t best = 0;
    double best_cycles = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        const double cycles = modelled_cycles(&candidates->keys[i], m, n, k, batch, candidates->num_sms);
        if (i == 0 || cycles < best_cycles) {
            best = i;
            best_cycles = cycles;
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
    if (gj_few_rows_choose(problem, m, n, k, batch, num_sms > 0 ? num_sms : DEFAULT_SMS, key))
        return GJ_OK;
    gj_candidates_list(problem, num_sms, &candidates);
    if (candidates.count == 0)
        return gj_candidates_fail(problem, error);
    *key = *gj_candidates_choose(&candidates, m, n, k, batch);
    return GJ_OK;
}

size_t gj_keys_rank(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch, int num_sms,
                    struct gj_key *keys, size_t capacity)
{
    struct gj_candidates candidates;
    struct ranked ranked[GJ_CANDIDATES_MAX];
    gj_candidates_list(problem, num_sms, &candidates);
    for (size_t i = 0; i < candidates.count; i++)
        ranked[i] =
            (struct ranked){modelled_cycles(&candidates.keys[i], m, n, k, batch, candidates.num_sms), i};
    qsort(ranked, candidates.count, sizeof *ranked, compare_ranked);
    struct gj_key few[GJ_FEW_ROWS_CANDIDATES];
    const size_t num_few =
        gj_few_rows_list(problem, m, n, k, batch, candidates.num_sms, few, GJ_FEW_ROWS_CANDIDATES);
    for (size_t i = 0; i < num_few && i < capacity; i++)
        keys[i] = few[i];
    for (size_t i = 0; i < candidates.count && num_few + i < capacity; i++)
        keys[num_few + i] = candidates.keys[ranked[i].index];
    return num_few + candidates.count;
}
