/* SPDX-License-Identifier: Apache-2.0 */
/* The model: waves of cluster tiles, each as long as its tensor instructions or its loads take, whichever is
 * longer, and what of its epilogue is exposed; and the time in which the matrices arrive. */
#include "plan/cost_model.h"

#include "plan/plan.h"

/* fit_model --search 4 (2026-12-01, H200, 45 shapes with M from 128 to 16384, 20 to 30 configs each). */
const struct gj_cost_constants gj_cost_h200 = {
    .clocks_per_us = 1650,
    .load_bytes = 56.96,
    .coop_tile = 517.6,
    .coop_block = 2746,
    .pingpong_tile = 983.1,
    .pingpong_ragged = 335.8,
    .pingpong_64 = 93.75,
    .coop_launch = 3884,
    .pingpong_launch = 4373,
    .last_wave = 0,
    .hidden = 0.131,
    .cold_bytes = 3.5e+06,
    .memory_bytes = 4.2e+06,
};

#define FLOP_PER_CLOCK 8192.0 /* of an SM, with 8-bit operands; half of it with 16-bit ones */

static double ceil_div(double a, double b)
{
    const double q = (double)(int64_t)(a / b);
    return q * b < a ? q + 1 : q;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
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
static double exposed_per_tile(const struct gj_cost_constants *c, const struct gj_key *key)
{
    const double elements = (double)key->tile_m * key->tile_n;
    if (key->sched == GJ_SCHED_COOP)
        return c->coop_tile + elements / gj_key_mma_warp_groups(key) * c->coop_block / 16384 +
               elements * specials_per_element(key) / 16.0;
    return c->pingpong_tile + (key->tile_n % 64 == 0 ? 0 : c->pingpong_ragged) +
           (key->tile_m == 64 ? c->pingpong_64 : 0);
}

/* Waves of cluster tiles over the places for clusters. */
static double count_waves(const struct gj_cost_constants *c, double tiles, double slots)
{
    const double waves = ceil_div(tiles, slots), full = (double)(int64_t)(tiles / slots);
    return waves == full ? waves : full + 1 - c->last_wave * (1 - (tiles - full * slots) / slots);
}

double gj_cost_us(const struct gj_cost_constants *c, const struct gj_key *key, int64_t m, int64_t n,
                  int64_t k, int64_t batch, int num_sms)
{
    const double element = (double)gj_dtype_bytes(key->a.dtype), tile_k = GJ_STAGE_ROW_BYTES / element;
    const double k_padded = ceil_div((double)k, tile_k) * tile_k, batches = (double)batch;
    const double tiles_m = ceil_div((double)m, (double)key->tile_m * key->cluster_m);
    const double tiles_n = ceil_div((double)n, (double)key->tile_n * key->cluster_n);
    const int cluster_size = key->cluster_m * key->cluster_n;
    const double slots = num_sms >= cluster_size ? num_sms / cluster_size : 1;
    const double tensor = 2.0 * key->tile_m * key->tile_n * k_padded / (FLOP_PER_CLOCK / element);
    const double load = element * k_padded / c->load_bytes *
                        ((double)key->tile_m / key->cluster_n + (double)key->tile_n / key->cluster_m);
    const double per_launch =
        (key->sched == GJ_SCHED_COOP ? c->coop_launch : c->pingpong_launch) / c->clocks_per_us;
    const double compute = count_waves(c, tiles_m * tiles_n * batches, slots) *
                           (larger(tensor, load) + exposed_per_tile(c, key)) / c->clocks_per_us;
    /* Each cluster of the other direction asks for a matrix once; the first two find it cold. */
    const double a_bytes = element * (double)m * (double)k * batches,
                 b_bytes = element * (double)n * (double)k * batches;
    const double cold = a_bytes * (tiles_n > 1 ? 2 : 1) + b_bytes * (tiles_m > 1 ? 2 : 1);
    const double moved =
        a_bytes + b_bytes + (double)m * (double)n * batches * (double)gj_dtype_bytes(key->d.dtype);
    const double arrival = larger(cold / c->cold_bytes, moved / c->memory_bytes);
    const double longer = larger(compute, arrival);
    return per_launch + longer + c->hidden * (compute + arrival - longer);
}
