/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gj_key_choose: always an accepted key of the problem, always the same, and few per weight matrix.
 */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "key/config.h"
#include "plan/choose.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EXTENT_MAX INT64_C(2147479551) /* cuda/args.h */

static const int64_t extents[] = {
    0,
    1,
    2,
    15,
    16,
    17,
    63,
    64,
    65,
    127,
    128,
    129,
    192,
    255,
    256,
    257,
    1000,
    2048,
    4095,
    4096,
    7168,
    28672,
    65536,
    INT64_C(1) << 24,
    INT64_C(1) << 30,
    EXTENT_MAX,
};

static const char *const problems[] = {
    "",
    "a=f16.k,b=f16.k,d=f16.n",
    "d=f32.n",
    "a=f16.k,b=f16.k,d=bf16.n",
};

static struct gj_key problem_of(const char *text)
{
    struct gj_key key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_OK);
    return key;
}

static struct gj_key choose(const struct gj_key *problem, int64_t m, int64_t n, int64_t k, int64_t batch,
                            int num_sms)
{
    struct gj_key key;
    gj_error *error = NULL;
    memset(&key, 0xa5, sizeof key);
    if (gj_key_choose(problem, m, n, k, batch, num_sms, &key, &error) != GJ_OK)
        fail_msg("%s", error ? error->message : "no memory");
    assert_null(error);
    return key;
}

/* Accepted, and the problem fields are the caller's. */
static void check_chosen(const struct gj_key *problem, const struct gj_key *key)
{
    struct gj_key with_problem = *key;
    gj_error *error = NULL;
    if (gj_key_check(key, &error) != GJ_OK)
        fail_msg("%s", error ? error->message : "no memory");
    gj_key_take_config(&with_problem, problem);
    assert_memory_equal(&with_problem, problem, sizeof *problem);
}

static void every_extent_gives_an_accepted_key(void **state)
{
    (void)state;
    static const int64_t ks[] = {0, 1, 64, 65, 512, 7168, EXTENT_MAX};
    for (size_t p = 0; p < COUNT(problems); p++) {
        const struct gj_key problem = problem_of(problems[p]);
        for (size_t m = 0; m < COUNT(extents); m += 1 + p) {
            for (size_t n = 0; n < COUNT(extents); n += 1 + p) {
                const int64_t k = ks[(m + n) % COUNT(ks)], batch = m % 3 == 2 ? EXTENT_MAX : (int64_t)(m % 3);
                const struct gj_key key = choose(&problem, extents[m], extents[n], k, batch, 0);
                check_chosen(&problem, &key);
            }
        }
    }
}

/* Whatever was chosen before, and whatever config the problem came with. */
static void the_choice_depends_on_its_arguments_only(void **state)
{
    (void)state;
    const struct gj_key problem = problem_of("");
    const struct gj_key other_config = problem_of("tile=64x16,cluster=1x1,sched=coop,tiles=dynamic");
    struct gj_key first[COUNT(extents)];
    for (size_t i = 0; i < COUNT(extents); i++)
        first[i] = choose(&problem, extents[i], 4096, 4096, 1, 132);
    for (size_t i = COUNT(extents); i-- > 0;) {
        const struct gj_key again = choose(&other_config, extents[i], 4096, 4096, 1, 132);
        assert_memory_equal(&again, &first[i], sizeof again);
    }
}

/* The ranking begins with the choice, and holds every candidate once. */
static void the_choice_ranks_first(void **state)
{
    (void)state;
    const struct gj_key problem = gj_key_default();
    static struct gj_key ranked[GJ_CANDIDATES_MAX];
    for (int64_t m = 1; m <= 8192; m = 3 * m + 1) {
        struct gj_key chosen;
        const size_t count = gj_keys_rank(&problem, m, 4096, 1024, 1, 132, ranked, GJ_CANDIDATES_MAX);
        assert_in_range(count, 100, GJ_CANDIDATES_MAX);
        assert_int_equal(gj_key_choose(&problem, m, 4096, 1024, 1, 132, &chosen, NULL), GJ_OK);
        assert_memory_equal(&ranked[0], &chosen, sizeof chosen);
        for (size_t i = 1; i < count; i++)
            assert_memory_not_equal(&ranked[i], &chosen, sizeof chosen);
        struct gj_key few[3];
        assert_int_equal(gj_keys_rank(&problem, m, 4096, 1024, 1, 132, few, 3), count);
        assert_memory_equal(few, ranked, sizeof few);
    }
    struct gj_key refused = problem;
    refused.batch = GJ_BATCH_VARLEN_M;
    assert_int_equal(gj_keys_rank(&refused, 1, 8, 8, 1, 132, ranked, GJ_CANDIDATES_MAX), 0);
}

static void no_number_of_sms_means_132(void **state)
{
    (void)state;
    const struct gj_key problem = problem_of("");
    for (size_t i = 0; i < COUNT(extents); i++) {
        const struct gj_key given = choose(&problem, extents[i], 7168, 2048, 1, 132);
        const struct gj_key unknown = choose(&problem, extents[i], 7168, 2048, 1, 0);
        const struct gj_key negative = choose(&problem, extents[i], 7168, 2048, 1, -5);
        assert_memory_equal(&given, &unknown, sizeof given);
        assert_memory_equal(&given, &negative, sizeof given);
    }
}

static void any_number_of_sms_will_do(void **state)
{
    (void)state;
    static const int sms[] = {2, 3, 16, 66, 78, 114, 131, 132, 144, 1000, INT32_MAX};
    const struct gj_key problem = problem_of("");
    for (size_t s = 0; s < COUNT(sms); s++) {
        for (size_t i = 0; i < COUNT(extents); i++) {
            const struct gj_key key = choose(&problem, extents[i], 4096, 4096, 1, sms[s]);
            check_chosen(&problem, &key);
            /* A cluster needs as many SMs as it has CTAs, or it never runs. */
            assert_true(key.cluster_m * key.cluster_n <= sms[s]);
        }
    }
    /* It is a number that counts: 78 SMs (H20) have other waves than 132. */
    int num_different = 0;
    for (int64_t m = 128; m <= 16384; m += 128) {
        const struct gj_key few = choose(&problem, m, 4096, 4096, 1, 78);
        const struct gj_key many = choose(&problem, m, 4096, 4096, 1, 132);
        num_different += memcmp(&few, &many, sizeof few) != 0;
    }
    assert_true(num_different > 0);
}

/* How many keys are chosen over 1 .. most_rows rows: each one is a compile for a server that sees them all.
 */
static size_t count_configs(const struct gj_key *problem, int64_t most_rows, int64_t n, int64_t k)
{
    enum { MOST = 256 };
    struct gj_key seen[MOST];
    size_t num_seen = 0;
    for (int64_t m = 1; m <= most_rows; m += m < 256 ? 1 : m / 32) {
        const struct gj_key key = choose(problem, m, n, k, 1, 132);
        size_t i = 0;
        while (i < num_seen && memcmp(&seen[i], &key, sizeof key) != 0)
            i++;
        if (i == num_seen) {
            assert_true(num_seen < MOST);
            seen[num_seen++] = key;
        }
    }
    return num_seen;
}

static void few_configs_per_weight_matrix(void **state)
{
    (void)state;
    static const int64_t weights[][2] = {
        {4096, 7168}, {7168, 2048}, {1536, 7168}, {28672, 4096}, {576, 7168}};
    const struct gj_key problem = problem_of("");
    for (size_t w = 0; w < COUNT(weights); w++) {
        const size_t decode = count_configs(&problem, 64, weights[w][0], weights[w][1]);
        const size_t all = count_configs(&problem, 65536, weights[w][0], weights[w][1]);
        print_message("N = %d, K = %d: %zu keys up to M = 64, %zu up to 65536\n", (int)weights[w][0],
                      (int)weights[w][1], decode, all);
        assert_in_range(decode, 1, 8);
        assert_in_range(all, 1, 48); /* 19 to 41 when this was written, of 528 */
    }
}

/* Not a test of speed: a choice that wastes most of a tile cannot be meant. */
static void tiles_fit_the_problem(void **state)
{
    (void)state;
    const struct gj_key problem = problem_of("");
    const struct gj_key one_row = choose(&problem, 1, 4096, 4096, 1, 132);
    assert_int_equal(one_row.tile_m * one_row.cluster_m, 64);
    const struct gj_key large = choose(&problem, 8192, 8192, 8192, 1, 132);
    assert_true(large.tile_m * large.tile_n >= 128 * 192);
}

static void a_refused_problem_has_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *reason;
    } cases[] = {
        {"a=bf16.m", "a is m-major"}, {"b=bf16.n", "b is n-major"},           {"d=none", "d=none"},
        {"a=f16.k", "differ"},        {"acc=f16,a=f16.k,b=f16.k", "acc=f16"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_key problem = problem_of(cases[i].problem);
        struct gj_key key, untouched;
        gj_error *error = NULL;
        if (gj_key_check(&problem, NULL) == GJ_OK)
            continue; /* no longer refused */
        memset(&key, 0x5a, sizeof key);
        untouched = key;
        assert_int_equal(gj_key_choose(&problem, 128, 128, 128, 1, 0, &key, &error), GJ_ERR_UNSUPPORTED);
        assert_memory_equal(&key, &untouched, sizeof key);
        assert_non_null(error);
        assert_true(error->num_reasons > 0);
        int num_found = 0;
        for (size_t r = 0; r < error->num_reasons; r++) {
            num_found += strstr(error->reasons[r], cases[i].reason) != NULL;
            assert_null(strstr(error->reasons[r], "tile")); /* no config is to blame */
        }
        assert_int_equal(num_found, 1);
        gj_error_free(&error);
        assert_int_equal(gj_key_choose(&problem, 128, 128, 128, 1, 0, &key, NULL), GJ_ERR_UNSUPPORTED);
    }
}

static void a_struct_that_is_no_key(void **state)
{
    (void)state;
    struct gj_key key, problem = problem_of("");
    gj_error *error = NULL;
    problem.op = (enum gj_op)77;
    assert_int_equal(gj_key_choose(&problem, 128, 128, 128, 1, 0, &key, &error), GJ_ERR_ARGUMENT);
    assert_non_null(strstr(error->message, "op"));
    gj_error_free(&error);
    memset(&problem, 0xff, sizeof problem);
    assert_int_equal(gj_key_choose(&problem, 128, 128, 128, 1, 0, &key, NULL), GJ_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_extent_gives_an_accepted_key),
        cmocka_unit_test(the_choice_depends_on_its_arguments_only),
        cmocka_unit_test(the_choice_ranks_first),
        cmocka_unit_test(no_number_of_sms_means_132),
        cmocka_unit_test(any_number_of_sms_will_do),
        cmocka_unit_test(few_configs_per_weight_matrix),
        cmocka_unit_test(tiles_fit_the_problem),
        cmocka_unit_test(a_refused_problem_has_reasons),
        cmocka_unit_test(a_struct_that_is_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
