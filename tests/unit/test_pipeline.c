/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of templates/pipeline.h as host C: the ring of stages and who shares what in a cluster. Built once
 * for each set of STAGES, CLUSTER_M and CLUSTER_N. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

typedef uint16_t u16;
typedef uint32_t u32;
#define DEVICE static inline
#include "templates/pipeline.h"

#define CLUSTER_SIZE (CLUSTER_M * CLUSTER_N)

/* -- the ring -------------------------------------------------------------------------------------------- */

/* After n steps from the start: stage n mod STAGES, and the parity tells whether the pass is an odd one. */
static void assert_position(struct ring_position at, u32 n)
{
    assert_int_equal(at.stage, n % STAGES);
    assert_int_equal(at.parity, n / STAGES % 2);
}

static void next_walks_the_ring(void **state)
{
    (void)state;
    struct ring_position at = {0, 0};
    for (u32 n = 0; n < 10 * STAGES; n++) {
        assert_position(at, n);
        at = ring_next(at);
    }
}

static void advance_is_next_repeated(void **state)
{
    (void)state;
    struct ring_position start = {0, 0};
    for (u32 offset = 0; offset < 4 * STAGES; offset++) {
        struct ring_position walked = start;
        for (u32 steps = 0; steps < 6 * STAGES + 3; steps++) {
            const struct ring_position jumped = ring_advance(start, steps);
            assert_int_equal(jumped.stage, walked.stage);
            assert_int_equal(jumped.parity, walked.parity);
            walked = ring_next(walked);
        }
        start = ring_next(start);
    }
}

/* K up to 2^31 elements is 2^25 stages; the sum with a stage index must not wrap either. */
static void advance_takes_large_steps(void **state)
{
    (void)state;
    static const u32 steps[] = {1u << 16, (1u << 25) - 1, 1u << 25, (1u << 25) + 1, 0x7fffffff};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (u32 start = 0; start < 2 * STAGES; start++) {
            const struct ring_position from = {start % STAGES, start / STAGES};
            const struct ring_position to = ring_advance(from, steps[i]);
            assert_int_equal(to.stage, (start + (uint64_t)steps[i]) % STAGES);
            assert_int_equal(to.parity, (start + (uint64_t)steps[i]) / STAGES % 2);
        }
    }
}

/* Two warp groups that take tiles in turn, each skipping the other's stages, cover every stage once. */
static void skipping_covers_all_stages(void **state)
{
    (void)state;
    for (u32 k_tiles = 1; k_tiles < 3 * STAGES + 2; k_tiles++) {
        struct ring_position all = {0, 0}, group[2] = {{0, 0}, {0, 0}};
        group[1] = ring_advance(group[1], k_tiles);
        for (u32 tile = 0; tile < 9; tile++) {
            struct ring_position *const own = &group[tile % 2];
            for (u32 k = 0; k < k_tiles; k++) {
                assert_memory_equal(own, &all, sizeof all);
                *own = ring_next(*own);
                all = ring_next(all);
            }
            *own = ring_advance(*own, k_tiles);
        }
    }
}

/* An mbarrier: counts completed phases; a wait passes when the phase of that parity has completed. */
static bool wait_passes(u32 completed_phases, u32 parity)
{
    return (completed_phases & 1) != parity;
}

/* Producer and consumer in every legal interleaving of one being ahead: the producer's wait for parity ^ 1
 * passes exactly when the stage is free, the consumer's for parity exactly when the stage is full. */
static void parities_open_at_the_right_time(void **state)
{
    (void)state;
    enum { STEPS = 6 * STAGES };
    for (u32 lag = 0; lag <= STAGES; lag++) {
        u32 full[STAGES] = {0}, empty[STAGES] = {0};
        struct ring_position producer = {0, 0}, consumer = {0, 0};
        u32 filled = 0, emptied = 0;
        while (emptied < STEPS) {
            const bool may_fill = filled - emptied < STAGES, may_empty = emptied < filled;
            assert_int_equal(wait_passes(empty[producer.stage], producer.parity ^ 1), may_fill);
            assert_int_equal(wait_passes(full[consumer.stage], consumer.parity), may_empty);
            if (may_fill && (!may_empty || filled - emptied < lag)) {
                full[producer.stage]++;
                filled++;
                producer = ring_next(producer);
            } else {
                empty[consumer.stage]++;
                emptied++;
                consumer = ring_next(consumer);
            }
        }
    }
}

/* -- the cluster ----------------------------------------------------------------------------------------- */

static int bits(u32 mask)
{
    return __builtin_popcount(mask);
}

static void ranks_number_the_cluster(void **state)
{
    (void)state;
    u32 seen = 0;
    for (u32 n = 0; n < CLUSTER_N; n++) {
        for (u32 m = 0; m < CLUSTER_M; m++) {
            const u32 rank = cta_rank(m, n);
            assert_true(rank < CLUSTER_SIZE);
            assert_int_equal(rank % CLUSTER_M, m);
            assert_int_equal(rank / CLUSTER_M, n);
            seen |= 1u << rank;
        }
    }
    assert_int_equal(seen, (1u << CLUSTER_SIZE) - 1);
}

static void masks_hold_those_that_share(void **state)
{
    (void)state;
    for (u32 n = 0; n < CLUSTER_N; n++) {
        for (u32 m = 0; m < CLUSTER_M; m++) {
            const u32 a = sharers_of_a(m), b = sharers_of_b(n), self = 1u << cta_rank(m, n);
            assert_true(a < 1u << CLUSTER_SIZE);
            assert_true(b < 1u << CLUSTER_SIZE);
            assert_int_equal(a & self, self);
            assert_int_equal(b & self, self);
            assert_int_equal(a & b, self);
            assert_int_equal(bits(a), CLUSTER_N);
            assert_int_equal(bits(b), CLUSTER_M);
            for (u32 rank = 0; rank < CLUSTER_SIZE; rank++) {
                assert_int_equal(a >> rank & 1, rank % CLUSTER_M == m);
                assert_int_equal(b >> rank & 1, rank / CLUSTER_M == n);
            }
        }
    }
}

/* CTA (m, n) sends slice n of A's tile to the CTAs of its row and slice m of B's to those of its column: each
 * CTA gets each slice once. */
static void slices_cover_every_tile_once(void **state)
{
    (void)state;
    u32 a_slices[CLUSTER_SIZE] = {0}, b_slices[CLUSTER_SIZE] = {0};
    for (u32 n = 0; n < CLUSTER_N; n++) {
        for (u32 m = 0; m < CLUSTER_M; m++) {
            for (u32 rank = 0; rank < CLUSTER_SIZE; rank++) {
                if (sharers_of_a(m) >> rank & 1) {
                    assert_int_equal(a_slices[rank] >> n & 1, 0);
                    a_slices[rank] |= 1u << n;
                }
                if (sharers_of_b(n) >> rank & 1) {
                    assert_int_equal(b_slices[rank] >> m & 1, 0);
                    b_slices[rank] |= 1u << m;
                }
            }
        }
    }
    for (u32 rank = 0; rank < CLUSTER_SIZE; rank++) {
        assert_int_equal(a_slices[rank], (1u << CLUSTER_N) - 1);
        assert_int_equal(b_slices[rank], (1u << CLUSTER_M) - 1);
    }
}

static void exchange_is_mutual_and_counted(void **state)
{
    (void)state;
    for (u32 rank = 0; rank < CLUSTER_SIZE; rank++) {
        const u32 m = rank % CLUSTER_M, n = rank / CLUSTER_M;
        u32 partners = 0;
        assert_true(exchanges_with(m, n, rank));
        for (u32 other = 0; other < CLUSTER_SIZE; other++) {
            const bool exchanges = exchanges_with(m, n, other);
            assert_int_equal(exchanges, exchanges_with(other % CLUSTER_M, other / CLUSTER_M, rank));
            partners |= (u32)exchanges << other;
        }
        assert_int_equal(partners, sharers_of_a(m) | sharers_of_b(n));
        assert_int_equal(bits(partners), CLUSTER_M + CLUSTER_N - 1);
        /* every thread of a warp group asks, with its index as the rank */
        for (u32 thread = CLUSTER_SIZE; thread < 128; thread++)
            assert_false(exchanges_with(m, n, thread));
    }
}

/* The arrivals that really come are those that the plan initialises the empty barriers with. */
static void arrivals_agree_with_the_plan(void **state)
{
    (void)state;
    static const struct {
        int tile_m, tile_n;
        enum gj_sched sched;
        int readers;
    } cases[] = {{128, 192, GJ_SCHED_PINGPONG, 1},
                 {256, 128, GJ_SCHED_COOP, 2},
                 {192, 128, GJ_SCHED_COOP, 3},
                 {64, 128, GJ_SCHED_COOP, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gj_key key = gj_key_default();
        key.tile_m = cases[i].tile_m;
        key.tile_n = cases[i].tile_n;
        key.sched = cases[i].sched;
        key.cluster_m = CLUSTER_M;
        key.cluster_n = CLUSTER_N;
        struct gj_plan plan;
        gj_plan_make(&key, &plan);
        for (u32 rank = 0; rank < CLUSTER_SIZE; rank++) {
            int arrivals = 0; /* at this CTA's barrier */
            for (u32 n = 0; n < CLUSTER_N; n++)
                for (u32 m = 0; m < CLUSTER_M; m++)
                    arrivals += cases[i].readers * exchanges_with(m, n, rank);
            assert_int_equal(plan.empty_arrivals, arrivals);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_walks_the_ring),
        cmocka_unit_test(advance_is_next_repeated),
        cmocka_unit_test(advance_takes_large_steps),
        cmocka_unit_test(skipping_covers_all_stages),
        cmocka_unit_test(parities_open_at_the_right_time),
        cmocka_unit_test(ranks_number_the_cluster),
        cmocka_unit_test(masks_hold_those_that_share),
        cmocka_unit_test(slices_cover_every_tile_once),
        cmocka_unit_test(exchange_is_mutual_and_counted),
        cmocka_unit_test(arrivals_agree_with_the_plan),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
