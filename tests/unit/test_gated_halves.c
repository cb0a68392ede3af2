/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gate=halves: where a generated unit puts each fragment of D, and from where it takes those of C.
 * Read from the text of the unit: which accumulators a fragment is, and at which part and column it is
 * stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMNS_MAX 256

/* The number behind `mark`, which comes next before `end`; *at moves behind it. */
static int number_after(const char **at, const char *end, const char *mark)
{
    const char *const found = strstr(*at, mark);
    char *stop;
    if (found == NULL || found >= end)
        fail_msg("no %s in %.80s", mark, *at);
    const long number = strtol(found + strlen(mark), &stop, 10);
    assert_true(stop > found + strlen(mark));
    *at = stop;
    return (int)number;
}

/* The part, 0 for gates and 1 for ups, of an address that ends "+ 0 * D_SLAB_PART", "+ 1 * ..." or "+
 * D_SLAB_PART". */
static int part_of(const char *line, const char *end)
{
    const char *const plus = strstr(line, ") + ");
    assert_true(plus != NULL && plus < end);
    return plus[4] == '0' ? 0 : 1;
}

struct slab {
    const char *name; /* SLAB or TAIL */
    int first;        /* its first column of A B^T */
    int width;
};

/* One line of a slab's code: checks that the 16 columns of fragment `q` go to, or come from, their place. */
static void check_place(const struct gj_plan *plan, const struct slab *slab, const char *line,
                        const char *end, int q, int first_column, int element, bool is_second)
{
    const bool gated = plan->key.op == GJ_OP_GATED;
    const int part = gated ? q % 2 : is_second;
    const int in_part = gated ? first_column - part * plan->mma_n / 2 : first_column;
    const int slab_first = gated ? slab->first / 2 : slab->first;
    const char *at = line;
    const int step = number_after(&at, end, ", ");
    if (step != (in_part - slab_first) * element || part_of(at, end) != part)
        fail_msg("%s: fragment %d of the slab at %d, column %d: %.*s", plan->entry_name, q, slab->first,
                 first_column, (int)(end - line), line);
}

static const char *end_of_line(const char *at)
{
    return at + strcspn(at, "\n");
}

/* Follows all fragments of one slab; seen counts the columns of A B^T. */
static void follow_slab(const struct gj_plan *plan, const struct slab *slab, const char *text,
                        const char *end, int seen[COLUMNS_MAX])
{
    const bool gated = plan->key.op == GJ_OP_GATED;
    const int element_d = plan->d_element / (gated ? 1 : 2), element_c = plan->c_element / (gated ? 1 : 2);
    const char *at = text;
    for (int q = 0; q < slab->width / 16; q++) {
        char mark[48];
        snprintf(mark, sizeof mark, "fragment f%d = take_fragment(", q);
        const int first_column = 2 * number_after(&at, end, "acc.d");
        assert_int_equal(first_column % 16, 0);
        for (int i = 0; i < 16; i++)
            seen[first_column + i]++;
        const int loads = plan->c_element == 0 ? 0
                          : gated              ? 1
                                               : 2,
                  stores = plan->d_element == 0 ? 0
                           : gated              ? 1
                                                : 2;
        for (int i = 0; i < loads + stores; i++) {
            const char *const line = strstr(at, i < loads ? "load_16x16(c_" : "(d_");
            assert_true(line != NULL && line < end);
            check_place(plan, slab, line, end_of_line(line), q, first_column,
                        i < loads ? element_c : element_d, (i < loads ? i : i - loads) == 1);
            at = end_of_line(line);
        }
    }
}

static void follow_unit(const struct gj_plan *plan, const char *text)
{
    int seen[COLUMNS_MAX] = {0};
    const char *at = strstr(text, "DEVICE void store_block(");
    assert_non_null(at);
    const char *const function_end = strstr(at, "\n}\n");
    for (int first = 0; first < plan->mma_n;) {
        const bool is_tail = plan->mma_n - first < plan->slab_n;
        const struct slab slab = {is_tail ? "TAIL" : "SLAB", first, is_tail ? plan->tail_n : plan->slab_n};
        assert_int_equal(number_after(&at, function_end, "    if (column + "), first);
        const char *const end = strstr(at, "slab_end(out");
        assert_true(end != NULL && end < function_end);
        follow_slab(plan, &slab, at, end, seen);
        at = end;
        first += slab.width;
    }
    for (int column = 0; column < plan->mma_n; column++)
        assert_int_equal(seen[column], 1);
}

/* A fragment's columns lie in the part of the tile of B that its kind is: gates first, ups behind them. */
static void fragments_go_to_their_part(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "op=gated,act=swiglu,gate=halves,tile=128x192",
        "op=gated,act=swiglu,gate=halves,tile=128x160,c=bf16.n",
        "op=gated,act=glu,gate=halves,tile=128x96,c=f32.n,d=e4m3.n",
        "op=gated,act=glu,gate=halves,tile=128x128,c=e5m2.n,d=f32.n,sched=coop",
        "op=gated,act=geglu,gate=halves,tile=64x224,cluster=1x1,sched=coop,bias=col.bf16",
        "op=gated,act=reglu,gate=halves,tile=256x96,sched=coop,d=none,c=f16.n",
        "op=dgated,act=swiglu,gate=halves,c=bf16.n,tile=128x128",
        "op=dgated,act=swiglu,gate=halves,c=f16.n,d=bf16.n,p=f32.m,tile=128x112,cluster=1x1",
        "op=dgated,act=glu,gate=halves,c=bf16.n,tile=192x192,sched=coop,cluster=1x1",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct gj_key key;
        struct gj_plan plan;
        struct gj_unit unit;
        gj_error *error = NULL;
        assert_int_equal(gj_key_parse(texts[i], &key, NULL), GJ_OK);
        if (gj_key_check(&key, &error) != GJ_OK)
            fail_msg("%s: %s", texts[i], error->reasons[0]);
        gj_plan_make(&key, &plan);
        assert_int_equal(gj_unit_make(&plan, NULL, NULL, &unit, NULL), GJ_OK);
        follow_unit(&plan, unit.text);
        gj_unit_free(&unit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fragments_go_to_their_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
