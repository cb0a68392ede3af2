/* SPDX-License-Identifier: Apache-2.0 */
/* The rule and its numbers: H200, 2026-12-01, 5 values of M on 9 (N, K) of bf16, 10 to 20 configs each, cold
 * weights, in graphs, with and without overlap; times below are with it.
 *
 * Swapped, a tile is 64 rows of B by the rows of A. Where two tiles or fewer fall on an SM pair, K is split
 * over two CTAs (4096 x 4096 at M = 16: 9.0 us, not 9.8). Otherwise two CTAs share the rows of A from 25 of
 * 32 rows on (6144 x 4096: 13.6 us, not 15.5); below that their boxes would be filled up with zeros, which
 * takes longer than it saves. From 57 rows on the 64 rows of wgmma are those of A, and the tile is as wide as
 * gives each SM one, or the same number (6144 x 4096: 13.7 us with 48 columns, not 18.7). */
#include "plan/few_rows.h"

#include <string.h>

#include "key/config.h"

/* Rows that a box may lack: filling them takes less than sharing saves. */
#define ROWS_LACKING 7
/* Bytes of K from which on a split leaves each CTA enough stages to hide what they wait for: four of 256
 * bytes. */
#define SPLIT_BYTES_MIN 2048

struct shape {
    int64_t m, n, k, batch;
    int num_sms;
};

/* What single configs differ in. */
struct config {
    int rows, columns, cluster_m, cluster_n;
    bool swaps;
    enum gj_tiles tiles;
    enum gj_split_k split_k;
    enum gj_ctas_per_sm ctas_per_sm;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The problem with a config; false: there is no such kernel. */
static bool make_key(const struct gj_key *problem, struct config config, struct gj_key *key)
{
    struct gj_key made = gj_key_problem(problem);
    made.tile_m = config.rows;
    made.tile_n = config.columns;
    made.cluster_m = config.cluster_m;
    made.cluster_n = config.cluster_n;
    made.sched = GJ_SCHED_SINGLE;
    made.tiles = config.tiles;
    made.swap_ab = config.swaps ? GJ_SWAP_AB_YES : GJ_SWAP_AB_NO;
    made.split_k = config.split_k;
    made.ctas_per_sm = config.ctas_per_sm;
    if (gj_key_check(&made, NULL) != GJ_OK)
        return false;
    *key = made;
    return true;
}

/* Columns of a swapped tile. */
static int columns_for(int64_t m)
{
    return m <= 16 ? 16 : m <= 32 ? 32 : m <= 48 ? 48 : 64;
}

static bool may_share(const struct shape *shape, int rows)
{
    return shape->num_sms >= 2 && shape->m >= rows - ROWS_LACKING;
}

/* B streams in rows of 64: the tiles of B, by the SMs there are for them. */
static struct config swapped(const struct gj_key *problem, const struct shape *shape)
{
    const int columns = columns_for(shape->m);
    const int64_t tiles = ceil_div(shape->n, 64) * shape->batch, sms = shape->num_sms;
    const int64_t row_bytes = shape->k * (int64_t)gj_dtype_bytes(problem->a.dtype);
    const bool shares = columns >= 32 && may_share(shape, columns);
    const bool is_long = shares && columns == 32 && row_bytes >= 16384 && tiles >= 56 * sms / 132;
    struct config config = {.rows = 64, .columns = columns, .cluster_m = 1, .cluster_n = 1, .swaps = true};
    if (2 * tiles <= sms && row_bytes >= SPLIT_BYTES_MIN && !is_long) {
        config.tiles = GJ_TILES_ONCE;
        config.split_k = GJ_SPLIT_K_2;
    } else if (shares) {
        config.cluster_m = 2;
        config.rows = tiles > sms && row_bytes < 2048 ? 128 : 64;
    } else if (tiles <= sms) {
        config.tiles = GJ_TILES_ONCE;
    } else if (row_bytes < 2048 && columns <= 32) {
        config.ctas_per_sm = GJ_CTAS_PER_SM_2;
    } else {
        config.rows = columns >= 32 ? 128 : 64;
    }
    return config;
}

/* The columns of D divided by the SMs, in as many turns as make tiles of at most 128. */
static struct config unswapped(const struct gj_key *problem, const struct shape *shape)
{
    const int64_t all = shape->n * shape->batch, sms = shape->num_sms, turns = ceil_div(all, 128 * sms);
    const int step = problem->op == GJ_OP_GATED ? 32 : 16;
    const int64_t wanted = ceil_div(ceil_div(all, sms * turns), step) * step,
                  columns = wanted < 32 ? 32 : wanted;
    return (struct config){.rows = 64,
                           .columns = (int)columns,
                           .cluster_m = 1,
                           .cluster_n = may_share(shape, 64) ? 2 : 1,
                           .tiles = turns == 1 ? GJ_TILES_ONCE : GJ_TILES_STATIC};
}

bool gj_few_rows_choose(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                        int num_sms, struct gj_key *key)
{
    const struct shape shape = {m, n, k, batch, num_sms};
    if (m < 1 || m > GJ_FEW_ROWS_MAX || n < 1 || batch < 1 || num_sms < 1)
        return false;
    if (n > INT32_MAX || k > INT32_MAX || batch > INT32_MAX)
        return false; /* no launch takes those, and their products might not fit */
    const struct config by_rows = swapped(problem, &shape), by_columns = unswapped(problem, &shape);
    const bool fills = may_share(&shape, 64);
    return make_key(problem, fills ? by_columns : by_rows, key) ||
           make_key(problem, fills ? by_rows : by_columns, key);
}

/* -- Candidates ---------------------------------------------------------------------------------------- */

struct list {
    const struct gj_key *problem;
    struct gj_key *keys;
    size_t capacity, count;
};

static void add(struct list *list, struct config config)
{
    struct gj_key key;
    if (list->count == list->capacity || !make_key(list->problem, config, &key))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(&list->keys[i], &key, sizeof key) == 0)
            return;
    list->keys[list->count++] = key;
}

/* Both heights, with and without splits and shares. */
static void add_swapped(struct list *list, const struct shape *shape)
{
    for (int rows = 64; rows <= 128; rows += 64) {
        struct config config = {
            .rows = rows, .columns = columns_for(shape->m), .cluster_m = 1, .cluster_n = 1, .swaps = true};
        add(list, config);
        config.ctas_per_sm = GJ_CTAS_PER_SM_2;
        add(list, config);
        config.ctas_per_sm = GJ_CTAS_PER_SM_1;
        config.cluster_m = 2;
        add(list, config);
        config.cluster_m = 1;
        config.tiles = GJ_TILES_ONCE;
        for (int split = GJ_SPLIT_K_NONE; split <= GJ_SPLIT_K_4; split++) {
            config.split_k = (enum gj_split_k)split;
            add(list, config);
        }
    }
}

/* One turn of tiles, two and three. */
static void add_unswapped(struct list *list, const struct shape *shape)
{
    for (int turns = 1; turns <= 3; turns++) {
        const int64_t columns =
            ceil_div(ceil_div(shape->n * shape->batch, (int64_t)shape->num_sms * turns), 16) * 16;
        struct config config = {.rows = 64,
                                .columns = columns < 512 ? (int)columns : 512,
                                .cluster_m = 1,
                                .cluster_n = may_share(shape, 64) ? 2 : 1,
                                .tiles = turns == 1 ? GJ_TILES_ONCE : GJ_TILES_STATIC};
        add(list, config);
        config.columns += 16;
        add(list, config);
    }
}

size_t gj_few_rows_list(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                        int num_sms, struct gj_key *keys, size_t capacity)
{
    const struct shape shape = {m, n, k, batch, num_sms};
    struct list list = {problem, keys, capacity, 0};
    if (capacity == 0 || !gj_few_rows_choose(problem, m, n, k, batch, num_sms, &keys[0]))
        return 0;
    list.count = 1;
    add_swapped(&list, &shape);
    add_unswapped(&list, &shape);
    return list.count;
}
