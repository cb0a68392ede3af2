/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the choice for few rows of A: accepted, of the problem, few per (n, k), and what it says it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <gemmjit/launch.h>

#include "key/config.h"
#include "plan/few_rows.h"
#include "plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const problems[] = {
    "",
    "a=f16.k,b=f16.k,d=f32.n",
    "a=bf16.m,b=bf16.n",
    "c=f32.n,beta=host,alpha=device",
    "a=e4m3.k,b=e4m3.k,fp8acc=fast",
    "a=e4m3.k,b=e5m2.k,fp8acc=promoted,scale=row_col",
    "op=act,act=gelu_tanh,bias=col.bf16",
    "op=gated,act=swiglu,d=none",
    "a=f16.k,b=f16.k,acc=f16",
};
static const int extents[][2] = {{8, 8},        {64, 64},      {4096, 4096},  {2112, 7168},
                                 {6144, 4096},  {28672, 4096}, {4096, 14336}, {7168, 2048},
                                 {24576, 1536}, {32768, 512},  {7168, 16384}, {200000, 128}};

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_OK);
    return key;
}

/* The keys for all rows of one (n, k): each accepted and of the problem, and how many different ones. */
static size_t check_rows(const struct gj_key *problem, int n, int k, int num_sms)
{
    struct gj_key seen[GJ_FEW_ROWS_MAX], key;
    size_t count = 0;
    for (int m = 1; m <= GJ_FEW_ROWS_MAX; m++) {
        assert_true(gj_few_rows_choose(problem, m, n, k, 1, num_sms, &key));
        assert_int_equal(gj_key_check(&key, NULL), GJ_OK);
        assert_int_equal(key.sched, GJ_SCHED_SINGLE);
        const struct gj_key is = gj_key_problem(&key), wanted = gj_key_problem(problem);
        assert_memory_equal(&is, &wanted, sizeof is);
        struct gj_plan plan;
        gj_plan_make_numbers(&key, &plan);
        assert_true(plan.cluster_size <= num_sms);
        size_t i = 0;
        while (i < count && memcmp(&seen[i], &key, sizeof key) != 0)
            i++;
        if (i == count)
            seen[count++] = key;
    }
    return count;
}

static void few_accepted_keys(void **state)
{
    (void)state;
    static const int sms[] = {1, 2, 78, 114, 132, 144};
    for (size_t p = 0; p < COUNT(problems); p++) {
        const struct gj_key problem = parse(problems[p]);
        for (size_t e = 0; e < COUNT(extents); e++)
            for (size_t s = 0; s < COUNT(sms); s++)
                assert_true(check_rows(&problem, extents[e][0], extents[e][1], sms[s]) <= 7);
    }
}

static void others_are_not_for_it(void **state)
{
    (void)state;
    const struct gj_key problem = parse(""), halves = parse("op=gated,act=glu,gate=halves,d=none");
    struct gj_key key = parse("tile=64x64"), before = key;
    assert_false(gj_few_rows_choose(&problem, 65, 4096, 4096, 1, 132, &key));
    assert_false(gj_few_rows_choose(&problem, 0, 4096, 4096, 1, 132, &key));
    assert_false(gj_few_rows_choose(&problem, 1, INT64_C(1) << 62, 64, 4, 132, &key));
    assert_false(gj_few_rows_choose(&problem, 1, 64, INT64_C(1) << 62, 4, 132, &key));
    assert_false(gj_few_rows_choose(&problem, 1, 64, 64, INT64_MAX, 132, &key));
    assert_false(gj_few_rows_choose(&halves, 1, 4096, 4096, 1, 132, &key));
    assert_int_equal(gj_few_rows_list(&halves, 1, 4096, 4096, 1, 132, &key, 1), 0);
    assert_memory_equal(&key, &before, sizeof key);
}

static void the_rule(void **state)
{
    (void)state;
    static const struct {
        int m, n, k;
        const char *config;
    } cases[] = {
        {16, 4096, 4096, "tile=64x16,swap_ab=yes,tiles=once,split_k=2"},
        {16, 6144, 4096, "tile=64x16,swap_ab=yes,tiles=once"},
        {1, 28672, 4096, "tile=64x16,swap_ab=yes"},
        {1, 32768, 512, "tile=64x16,swap_ab=yes,ctas_per_sm=2"},
        {24, 6144, 4096, "tile=64x32,swap_ab=yes,tiles=once"},
        {25, 6144, 4096, "tile=64x32,swap_ab=yes,cluster=2x1"},
        {64, 6144, 4096, "tile=64x48,cluster=1x2,tiles=once"},
        {57, 28672, 4096, "tile=64x112,cluster=1x2"},
        {8, 512, 64, "tile=64x16,swap_ab=yes,tiles=once"},
    };
    const struct gj_key problem = parse("");
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        struct gj_key key, chosen;
        snprintf(text, sizeof text, "cluster=1x1,sched=single,%s", cases[i].config);
        if (strstr(cases[i].config, "cluster"))
            snprintf(text, sizeof text, "sched=single,%s", cases[i].config);
        const struct gj_key wanted = parse(text);
        assert_true(gj_few_rows_choose(&problem, cases[i].m, cases[i].n, cases[i].k, 1, 132, &key));
        assert_memory_equal(&key, &wanted, sizeof key);
        assert_int_equal(gj_key_choose(&problem, cases[i].m, cases[i].n, cases[i].k, 1, 0, &chosen, NULL),
                         GJ_OK);
        assert_memory_equal(&chosen, &wanted, sizeof key);
    }
}

static void candidates(void **state)
{
    (void)state;
    for (size_t p = 0; p < COUNT(problems); p++) {
        const struct gj_key problem = parse(problems[p]);
        for (size_t e = 0; e < COUNT(extents); e++) {
            struct gj_key keys[GJ_FEW_ROWS_CANDIDATES], chosen;
            const int n = extents[e][0], k = extents[e][1];
            const size_t count = gj_few_rows_list(&problem, 33, n, k, 1, 132, keys, GJ_FEW_ROWS_CANDIDATES);
            assert_true(count >= 1 && count <= GJ_FEW_ROWS_CANDIDATES);
            assert_true(gj_few_rows_choose(&problem, 33, n, k, 1, 132, &chosen));
            assert_memory_equal(&keys[0], &chosen, sizeof chosen);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(gj_key_check(&keys[i], NULL), GJ_OK);
            assert_int_equal(gj_few_rows_list(&problem, 33, n, k, 1, 132, keys, 1), 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_accepted_keys),
        cmocka_unit_test(others_are_not_for_it),
        cmocka_unit_test(the_rule),
        cmocka_unit_test(candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
