/* SPDX-License-Identifier: Apache-2.0 */
/* Who leaves a race of gemmjit tune, when it ends, and who has won. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/tune/tune.h"

static struct bench_result result;
static int order[BENCH_ARMS_MAX];

/* Arm 0 takes 10 us in every round, the others what `add` says. */
static void begin(int rounds)
{
    memset(&result, 0, sizeof result);
    result.rounds = rounds;
    result.num_arms = 1;
    result.arms[0].rounds = rounds;
    for (int i = 0; i < rounds; i++)
        result.arms[0].us[i] = 10;
    order[0] = 0;
}

/* An arm that takes us, in every third round `spread` more and in every third less. */
static int add(double us, double spread)
{
    struct bench_arm *const arm = &result.arms[result.num_arms];
    for (int i = 0; i < result.rounds; i++)
        arm->us[i] = (float)(us + spread * (i % 3 - 1));
    arm->rounds = result.rounds;
    order[result.num_arms] = result.num_arms;
    return result.num_arms++;
}

static bool is_left(int arm, int count)
{
    for (int i = 0; i < count; i++)
        if (order[i] == arm)
            return true;
    return false;
}

static void before_the_first_round(void **state)
{
    (void)state;
    begin(0);
    const int good = add(9, 0), wrong = add(8, 0);
    result.arms[wrong].num_different = 1;
    const int count = tune_drop(&result, order, result.num_arms);
    assert_int_equal(count, 2);
    assert_true(is_left(0, count) && is_left(good, count));
    begin(0);
    assert_int_equal(tune_drop(&result, order, 1), 1); /* it is measured all the same */
}

static void those_that_cannot_win_leave(void **state)
{
    (void)state;
    begin(5);
    const int slow = add(11, 0.2), equal = add(10, 0), fast = add(9, 0.1), close = add(9.15, 0.3),
              behind = add(9.5, 0.1);
    const int count = tune_drop(&result, order, result.num_arms);
    assert_int_equal(count, 3);
    assert_true(is_left(0, count) && is_left(fast, count) && is_left(close, count));
    assert_false(is_left(slow, count) || is_left(equal, count) || is_left(behind, count));
}

static void the_race_ends(void **state)
{
    (void)state;
    begin(5);
    add(11, 0.2);
    add(9.97, 0);                                                    /* faster, but by less than 0.5 % */
    assert_int_equal(tune_drop(&result, order, result.num_arms), 0); /* the model's choice stays */
    assert_int_equal(tune_winner(&result), 0);
    begin(5);
    add(9, 0);
    assert_int_equal(tune_drop(&result, order, 2), 2); /* too early to say */
    begin(15);
    assert_int_equal(add(9, 0), 1);
    assert_int_equal(tune_drop(&result, order, 2), 0);
    assert_int_equal(tune_winner(&result), 1);
    begin(15);
    add(9.9, 0.3); /* its quartiles are on both sides of 1 */
    assert_int_equal(tune_drop(&result, order, 2), 2);
    assert_int_equal(tune_winner(&result), 0);
    begin(15);
    add(9, 0);
    add(9, 0);
    assert_int_equal(tune_drop(&result, order, 3), 3);
}

static void the_best_of_those_left_wins(void **state)
{
    (void)state;
    begin(15);
    add(9.5, 0);
    const int best = add(9, 0.1), wrong = add(8, 0), dropped = add(8, 0);
    result.arms[wrong].num_different = 3;
    result.arms[dropped].rounds = 10;
    assert_int_equal(tune_winner(&result), best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_round),
        cmocka_unit_test(those_that_cannot_win_leave),
        cmocka_unit_test(the_race_ends),
        cmocka_unit_test(the_best_of_those_left_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
