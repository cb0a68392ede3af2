/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of templates/tile_scheduler.h as host C, with the parameters that src/cuda/schedule.c makes: exact
 * division, the published orders, and that every tile is visited once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/schedule.h"

typedef uint32_t u32;
typedef uint64_t u64;
#define DEVICE static inline
#include "templates/tile_scheduler.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t random_state = 1;

static uint32_t random_u32(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(random_state >> 32);
}

/* -- fast division --------------------------------------------------------------------------------------- */

static void assert_divides(struct fast_divisor by, uint64_t n)
{
    if (n < UINT64_C(1) << 31 && fast_divide((u32)n, by) != n / by.divisor)
        fail_msg("%llu / %u gives %u", (unsigned long long)n, by.divisor, fast_divide((u32)n, by));
}

/* Errors of a rounded-up reciprocal show first just below a multiple of the divisor, and most for large
 * quotients: all quotients when there are few, else the first, the last and random ones. */
static void assert_divisor_is_exact(uint32_t divisor)
{
    const struct fast_divisor by = gj_fast_divisor_make(divisor);
    const uint64_t last = (UINT64_C(1) << 31) - 1, quotients = last / divisor;
    assert_int_equal(by.divisor, divisor);
    assert_true(by.shift < 64);
    assert_divides(by, 0);
    assert_divides(by, 1);
    assert_divides(by, last);
    for (uint64_t i = 0; i <= quotients && i < 300; i++) {
        const uint64_t some[] = {i, quotients - i, quotients ? random_u32() % quotients : 0};
        for (size_t s = 0; s < COUNT(some); s++) {
            const uint64_t product = some[s] * divisor;
            assert_divides(by, product == 0 ? 0 : product - 1);
            assert_divides(by, product);
            assert_divides(by, product + 1);
        }
    }
}

static void division_is_exact_for_structured_divisors(void **state)
{
    (void)state;
    for (int bit = 0; bit < 31; bit++) {
        for (int delta = -3; delta <= 3; delta++) {
            const int64_t divisor = (INT64_C(1) << bit) + delta;
            if (divisor >= 1)
                assert_divisor_is_exact((uint32_t)divisor);
        }
    }
    static const uint32_t divisors[] = {641,        6700417,    2147483647, 2147483646, 1431655765,
                                        715827882,  1073741823, 1610612736, 1000000007, 46341,
                                        2147395600, 65535,      65537,      1000,       2146959360};
    for (size_t i = 0; i < COUNT(divisors); i++)
        assert_divisor_is_exact(divisors[i]);
}

static void division_is_exact_for_small_and_random_divisors(void **state)
{
    (void)state;
    for (uint32_t divisor = 1; divisor <= 5000; divisor++)
        assert_divisor_is_exact(divisor);
    for (int i = 0; i < 5000; i++)
        assert_divisor_is_exact(1 + random_u32() % 2147483647u);
}

static void division_is_exact_for_every_small_dividend(void **state)
{
    (void)state;
    for (uint32_t divisor = 1; divisor <= 300; divisor++) {
        const struct fast_divisor by = gj_fast_divisor_make(divisor);
        for (u32 n = 0; n < 3000; n++)
            assert_divides(by, n);
    }
}

/* Values from the specification: the reciprocal, and the shift of its upper 32 bits. */
static void reciprocals_are_the_published_ones(void **state)
{
    (void)state;
    static const uint32_t cases[][3] = {{2, 2147483648u, 0},   {3, 2863311531u, 1},  {5, 3435973837u, 2},
                                        {7, 2454267027u, 2},   {10, 3435973837u, 3}, {641, 3430613504u, 9},
                                        {1000, 2199023256u, 9}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct fast_divisor by = gj_fast_divisor_make(cases[i][0]);
        assert_int_equal(by.multiplier, cases[i][1]);
        assert_int_equal(by.shift, cases[i][2] + 32);
    }
}

/* -- order ----------------------------------------------------------------------------------------------- */

/* The formulas of the specification, sections 3.2 and 3.3, in plain divisions. */
static struct tile_index reference_tile(uint32_t extent_m, uint32_t extent_n, enum gj_raster raster,
                                        uint32_t group_size, uint32_t work)
{
    const uint32_t rounded_m = (extent_m + group_size - 1) / group_size * group_size;
    const uint32_t rounded_n = (extent_n + group_size - 1) / group_size * group_size;
    const bool along_m = raster == GJ_RASTER_HEURISTIC ? rounded_n > rounded_m : raster == GJ_RASTER_ALONG_M;
    const uint32_t fast_extent = along_m ? extent_m : extent_n, slow_extent = along_m ? extent_n : extent_m;
    const uint32_t width = group_size < fast_extent ? group_size : fast_extent;
    const uint32_t in_batch = work % (extent_m * extent_n);
    const uint32_t group = in_batch / (width * slow_extent), in_group = in_batch % (width * slow_extent);
    const uint32_t own_width = group < fast_extent / width ? width : fast_extent % width;
    uint32_t slow = in_group / own_width;
    if (group % 2 == 1)
        slow = slow_extent - 1 - slow;
    const uint32_t fast = group * width + in_group % own_width;
    return (struct tile_index){along_m ? fast : slow, along_m ? slow : fast, work / (extent_m * extent_n)};
}

static struct tile_schedule schedule_of(int64_t m, int64_t n, int64_t batches, enum gj_raster raster,
                                        int group)
{
    struct tile_schedule schedule;
    memset(&schedule, 0xa5, sizeof schedule);
    assert_true(gj_schedule_make(m, n, batches, raster, group, &schedule));
    assert_int_equal(schedule.num_tiles, m * n * batches);
    return schedule;
}

/* Appendix B: extents in cluster tiles, raster, then tiles "m,n" by work index from `first` on. */
static const struct vector {
    int m, n;
    enum gj_raster raster;
    uint32_t first;
    const char *tiles;
} vectors[] = {
    {1, 1, GJ_RASTER_HEURISTIC, 0, "0,0"},
    {3, 20, GJ_RASTER_HEURISTIC, 0, "0,0 1,0 2,0 0,1 1,1 2,1 0,2 1,2 2,2 0,3"},
    {3, 20, GJ_RASTER_HEURISTIC, 57, "0,19 1,19 2,19"},
    {20, 3, GJ_RASTER_HEURISTIC, 0, "0,0 0,1 0,2 1,0 1,1 1,2 2,0"},
    {5, 6, GJ_RASTER_HEURISTIC, 0, "0,0 0,1 0,2 0,3 0,4 0,5 1,0 1,1"},
    {5, 11, GJ_RASTER_HEURISTIC, 0, "0,0 1,0 2,0 3,0 4,0 0,1 1,1"},
    {16, 16, GJ_RASTER_HEURISTIC, 0, "0,0 0,1 0,2 0,3 0,4 0,5 0,6 0,7 1,0 1,1 1,2 1,3 1,4 1,5 1,6 1,7 2,0"},
    {16, 16, GJ_RASTER_HEURISTIC, 126, "15,6 15,7 15,8 15,9 15,10 15,11 15,12 15,13 15,14 15,15 14,8 14,9"},
    {16, 16, GJ_RASTER_HEURISTIC, 255, "0,15"},
    {8, 9, GJ_RASTER_HEURISTIC, 0, "0,0 1,0 2,0 3,0 4,0 5,0 6,0 7,0 0,1 1,1"},
    {9, 8, GJ_RASTER_HEURISTIC, 0, "0,0 0,1 0,2 0,3 0,4 0,5 0,6 0,7 1,0 1,1"},
    {20, 9, GJ_RASTER_ALONG_N, 0, "0,0 0,1 0,2 0,3 0,4 0,5 0,6 0,7 1,0"},
    {20, 9, GJ_RASTER_ALONG_N, 159, "19,7 19,8 18,8 17,8 16,8 15,8 14,8 13,8 12,8 11,8 10,8 9,8 8,8"},
    {20, 9, GJ_RASTER_ALONG_N, 178, "1,8 0,8"},
    {9, 20, GJ_RASTER_ALONG_M, 159, "7,19 8,19 8,18 8,17"},
};

static void published_orders_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(vectors); i++) {
        const struct vector *const v = &vectors[i];
        const struct tile_schedule schedule = schedule_of(v->m, v->n, 3, v->raster, 8);
        for (uint32_t batch = 0; batch < 3; batch++) {
            uint32_t work = batch * (uint32_t)(v->m * v->n) + v->first;
            for (const char *at = v->tiles; *at != '\0'; work++) {
                char *end;
                const u32 m = (u32)strtoul(at, &end, 10), n = (u32)strtoul(end + 1, &end, 10);
                const struct tile_index tile = tile_at(&schedule, work);
                if (tile.m != m || tile.n != n || tile.batch != batch)
                    fail_msg("%dx%d, work %u: (%u,%u) of batch %u, not (%u,%u) of %u", v->m, v->n, work,
                             tile.m, tile.n, tile.batch, m, n, batch);
                at = *end == ' ' ? end + 1 : end;
            }
        }
    }
}

/* Every tile once; neighbours in time are neighbours in space inside a batch: the serpentine never jumps
 * along the slow direction by more than one line. */
static void assert_bijection(int m, int n, int batches, enum gj_raster raster, int group, unsigned char *seen)
{
    const struct tile_schedule schedule = schedule_of(m, n, batches, raster, group);
    const uint32_t total = (uint32_t)(m * n * batches);
    memset(seen, 0, total);
    struct tile_index before = {0, 0, 0};
    for (uint32_t work = 0; work < total; work++) {
        const struct tile_index tile = tile_at(&schedule, work);
        const struct tile_index expected =
            reference_tile((uint32_t)m, (uint32_t)n, raster, (uint32_t)group, work);
        assert_memory_equal(&tile, &expected, sizeof tile);
        assert_true(tile.m < (uint32_t)m && tile.n < (uint32_t)n && tile.batch < (uint32_t)batches);
        unsigned char *const place = &seen[((int)tile.batch * m + (int)tile.m) * n + (int)tile.n];
        assert_int_equal(*place, 0);
        *place = 1;
        if (work > 0 && tile.batch == before.batch) {
            const int slow = schedule.along_m ? (int)tile.n : (int)tile.m;
            const int slow_before = schedule.along_m ? (int)before.n : (int)before.m;
            assert_true(abs(slow - slow_before) <= 1);
        }
        before = tile;
    }
}

static void every_tile_is_visited_once(void **state)
{
    (void)state;
    static const enum gj_raster rasters[] = {GJ_RASTER_HEURISTIC, GJ_RASTER_ALONG_M, GJ_RASTER_ALONG_N};
    static const int groups[] = {1, 2, 3, 4, 8, 16, 100};
    unsigned char *const seen = malloc(1 << 20);
    assert_non_null(seen);
    for (size_t r = 0; r < COUNT(rasters); r++) {
        for (size_t g = 0; g < COUNT(groups); g++) {
            for (int m = 1; m <= 20; m++)
                for (int n = 1; n <= 20; n++)
                    assert_bijection(m, n, 1 + (m + n) % 3, rasters[r], groups[g], seen);
            assert_bijection(1, 1000, 2, rasters[r], groups[g], seen);
            assert_bijection(1000, 1, 2, rasters[r], groups[g], seen);
            assert_bijection(257, 63, 1, rasters[r], groups[g], seen);
            assert_bijection(2, 3, 1000, rasters[r], groups[g], seen);
        }
        for (int i = 0; i < 200; i++)
            assert_bijection(1 + (int)(random_u32() % 100), 1 + (int)(random_u32() % 100), 1, rasters[r],
                             1 + (int)(random_u32() % 40), seen);
    }
    free(seen);
}

/* Near the limit of the work index: too many tiles to visit, so the last ones and random ones. */
static void largest_extents_follow_the_formulas(void **state)
{
    (void)state;
    static const int64_t cases[][3] = {{2147483647, 1, 1}, {1, 2147483647, 1}, {1, 1, 2147483647},
                                       {46340, 46340, 1},  {3, 5, 143165576},  {32767, 2, 32767},
                                       {65536, 32767, 1},  {1290, 1290, 1290}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const uint32_t m = (uint32_t)cases[i][0], n = (uint32_t)cases[i][1];
        const struct tile_schedule schedule =
            schedule_of(cases[i][0], cases[i][1], cases[i][2], GJ_RASTER_HEURISTIC, 8);
        for (uint32_t k = 0; k < 20000; k++) {
            const uint32_t work = k < 1000 ? schedule.num_tiles - 1 - k % schedule.num_tiles
                                           : random_u32() % schedule.num_tiles;
            const struct tile_index tile = tile_at(&schedule, work);
            const struct tile_index expected = reference_tile(m, n, GJ_RASTER_HEURISTIC, 8, work);
            assert_memory_equal(&tile, &expected, sizeof tile);
        }
    }
}

static void too_many_tiles_are_refused(void **state)
{
    (void)state;
    static const int64_t cases[][3] = {
        {2147483647, 2, 1},          {2147483648, 1, 1}, {1, 2147483648, 1},
        {1, 1, 2147483648},          {46341, 46341, 1},  {65536, 65536, 65536},
        {INT64_MAX, INT64_MAX, 1},   {INT64_MAX, 1, 1},  {4294967296, 4294967296, 1},
        {4294967296, 1, 4294967296}, {1, 1, INT64_MAX},  {1291, 1291, 1291},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tile_schedule schedule, before;
        memset(&schedule, 0x5a, sizeof schedule);
        before = schedule;
        assert_false(
            gj_schedule_make(cases[i][0], cases[i][1], cases[i][2], GJ_RASTER_HEURISTIC, 8, &schedule));
        assert_memory_equal(&schedule, &before, sizeof schedule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(division_is_exact_for_structured_divisors),
        cmocka_unit_test(division_is_exact_for_small_and_random_divisors),
        cmocka_unit_test(division_is_exact_for_every_small_dividend),
        cmocka_unit_test(reciprocals_are_the_published_ones),
        cmocka_unit_test(published_orders_hold),
        cmocka_unit_test(every_tile_is_visited_once),
        cmocka_unit_test(largest_extents_follow_the_formulas),
        cmocka_unit_test(too_many_tiles_are_refused),
    };
    return cmocka_run_group_tests_name("tile_scheduler", tests, NULL, NULL);
}
