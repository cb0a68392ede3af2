/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of templates/k_range.cuh as host C: the stages of a tile over the CTAs that share its K. Built once
 * for each set of SPLIT_K and SCALED. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef uint32_t u32;
#define DEVICE static inline
#define TILE_K 128

#include "cuda/args.h"
#include "cuda/params_host.h"

/* What the template calls. */
static u32 rank_of_cta;

static inline u32 cluster_rank(void)
{
    return rank_of_cta;
}

struct scalars {
    float alpha, beta;
};

static inline struct scalars scalars_of(const struct gemm_params *params)
{
    return (struct scalars){params->alpha, params->beta};
}

#include <k_range_of.h> /* cut out of templates/k_range.cuh by the build */

enum { TILES_MAX = 200 };

static struct k_range range_of_rank(int rank, int tiles, int start, float alpha)
{
    const struct gemm_params params = {.k_tiles = tiles, .k_start = start, .alpha = alpha};
    rank_of_cta = (u32)rank;
    assert_true(cluster_rank() < SPLIT_K);
    assert_true(scalars_of(&params).alpha == alpha);
    return k_range_of(&params);
}

/* Each stage belongs to one CTA, the CTAs follow each other along K, none is without one, and they differ by
 * one at most. */
static void each_stage_once(void **state)
{
    (void)state;
    for (int tiles = SPLIT_K; tiles <= TILES_MAX; tiles++) {
        int times[TILES_MAX] = {0}, next = 0;
        for (int rank = 0; rank < SPLIT_K; rank++) {
            const struct k_range range = range_of_rank(rank, tiles, 0, 1);
            assert_true(range.tiles >= 1);
            assert_true(range.tiles == tiles / SPLIT_K || range.tiles == tiles / SPLIT_K + 1);
            assert_int_equal(range.start, next);
            next += range.tiles * TILE_K;
            assert_true(next <= tiles * TILE_K);
            for (int i = 0; i < range.tiles; i++)
                times[range.start / TILE_K + i]++;
        }
        for (int i = 0; i < tiles; i++)
            assert_int_equal(times[i], 1);
    }
}

/* Where fewer stages than CTAs are given, which the host never does, still none is taken twice. */
static void fewer_stages_than_ctas(void **state)
{
    (void)state;
    for (int tiles = 0; tiles < SPLIT_K; tiles++) {
        int sum = 0;
        for (int rank = 0; rank < SPLIT_K; rank++) {
            const struct k_range range = range_of_rank(rank, tiles, 0, 1);
            assert_int_equal(range.start, sum * TILE_K);
            sum += range.tiles;
        }
        assert_int_equal(sum, tiles);
    }
}

/* The largest K there is: nothing overflows on the way. */
static void largest_extent(void **state)
{
    (void)state;
    const int64_t k = GJ_EXTENT_MAX;
    const int tiles = (int)((k + TILE_K - 1) / TILE_K);
    int64_t next = 0;
    for (int rank = 0; rank < SPLIT_K; rank++) {
        const struct k_range range = range_of_rank(rank, tiles, 0, 1);
        assert_int_equal(range.start, next);
        next += (int64_t)range.tiles * TILE_K;
    }
    assert_int_equal(next, (int64_t)tiles * TILE_K);
}

/* K = 0: as many stages as CTAs, all of them where k_start says or behind it, which reads as zeros. */
static void k_zero(void **state)
{
    (void)state;
    for (int rank = 0; rank < SPLIT_K; rank++) {
        const struct k_range range = range_of_rank(rank, SPLIT_K, TILE_K, 1);
        assert_int_equal(range.tiles, 1);
        assert_int_equal(range.start, (1 + rank) * TILE_K);
    }
}

#if SCALED
/* alpha = 0: every CTA has one stage, and it lies behind K. */
static void alpha_zero(void **state)
{
    (void)state;
    for (int start = 0; start <= TILE_K; start += TILE_K) {
        for (int tiles = SPLIT_K; tiles <= TILES_MAX; tiles++) {
            for (int rank = 0; rank < SPLIT_K; rank++) {
                const struct k_range range = range_of_rank(rank, tiles, start, 0);
                assert_int_equal(range.tiles, 1);
                assert_int_equal(range.start, start + tiles * TILE_K);
            }
        }
    }
}

#else
/* Without a factor in the key nothing looks at alpha. */
static void alpha_zero(void **state)
{
    (void)state;
    for (int rank = 0; rank < SPLIT_K; rank++) {
        const struct k_range zero = range_of_rank(rank, 13, 0, 0), one = range_of_rank(rank, 13, 0, 1);
        assert_int_equal(zero.tiles, one.tiles);
        assert_int_equal(zero.start, one.start);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stage_once), cmocka_unit_test(fewer_stages_than_ctas),
        cmocka_unit_test(largest_extent),  cmocka_unit_test(k_zero),
        cmocka_unit_test(alpha_zero),
    };
    return cmocka_run_group_tests_name("k_range", tests, NULL, NULL);
}
