/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how op=gated pairs gates with ups: what generated units do with the registers of an accumulator,
 * followed on a model of a warp from the columns of A B^T to those of PostAct. */
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

/* -- shuffles -------------------------------------------------------------------------------------------- */

/* A warp runs lane by lane, twice: the first run notes what each lane sends, the second one delivers it. That
 * is enough where no lane sends what it received. */
#define LANES 32
#define SHUFFLES_MAX 2

typedef uint32_t u32;

static struct {
    u32 x;
} threadIdx;

static struct {
    float sent[SHUFFLES_MAX][LANES];
    int at;
} shuffles;

static float __shfl_sync(u32 mask, float value, u32 lane, u32 width)
{
    assert_int_equal(mask, 0xffffffff);
    assert_true(lane < width && shuffles.at < SHUFFLES_MAX);
    const u32 source = threadIdx.x % LANES / width * width + lane;
    shuffles.sent[shuffles.at][threadIdx.x % LANES] = value;
    return shuffles.sent[shuffles.at++][source];
}

#define DEVICE static inline
#include <to_neighbours.h> /* cut out of templates/gated.cuh.in by the build */

/* to_neighbours on all lanes of the warp that begins with thread `warp`. */
static void exchange(u32 warp, float first[LANES], float second[LANES])
{
    float before[2][LANES];
    memcpy(before[0], first, sizeof before[0]);
    memcpy(before[1], second, sizeof before[1]);
    for (int run = 0; run < 2; run++) {
        for (u32 lane = 0; lane < LANES; lane++) {
            threadIdx.x = warp + lane;
            shuffles.at = 0;
            first[lane] = before[0][lane];
            second[lane] = before[1][lane];
            to_neighbours(&first[lane], &second[lane]);
        }
    }
}

/* Lane q of a quad has columns q and 4 + q of 8 and gets columns 2 q and 2 q + 1, of its own quad's rows. */
static void neighbours_meet(void **state)
{
    (void)state;
    for (u32 warp = 0; warp < 384; warp += LANES) {
        float first[LANES], second[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            first[lane] = (float)(100 * (lane / 4) + lane % 4);
            second[lane] = (float)(100 * (lane / 4) + 4 + lane % 4);
        }
        exchange(warp, first, second);
        for (int lane = 0; lane < LANES; lane++) {
            assert_int_equal((int)first[lane], 100 * (lane / 4) + 2 * (lane % 4));
            assert_int_equal((int)second[lane], 100 * (lane / 4) + 2 * (lane % 4) + 1);
        }
    }
}

/* -- reading a unit -------------------------------------------------------------------------------------- */

/* What the number after `mark` is, from *at on and before `end`; *at moves behind it. */
static int number_after(const char **at, const char *end, const char *mark)
{
    const char *const found = strstr(*at, mark);
    if (found == NULL || found >= end)
        fail_msg("no %s in %.60s", mark, *at);
    char *stop;
    const long number = strtol(found + strlen(mark), &stop, 10);
    assert_true(stop > found + strlen(mark));
    *at = stop;
    return (int)number;
}

/* From `head` to the closing brace in the first column. */
static const char *function_of(const char *text, const char *head, const char **end)
{
    const char *const at = strstr(text, head);
    assert_non_null(at);
    *end = strstr(at, "\n}\n");
    assert_non_null(*end);
    return at;
}

/* Which elements of its two fragments `gated` gives to its function, and which results it exchanges. */
struct pairing {
    struct {
        int fragment, element;
    } gates[8], ups[8];
    int exchanged[4][2], num_exchanged;
};

static struct pairing pairing_of(const char *text, char first_name, char second_name)
{
    const char *end;
    const char *at = function_of(text, "DEVICE fragment gated(", &end);
    struct pairing pairing = {.num_exchanged = 0};
    at = strchr(at, '{');
    assert_non_null(at);
    for (int i = 0; i < 16; i++) {
        const char *const before = at;
        const int element = number_after(&at, end, ".v");
        const char *const dot = strstr(before, ".v");
        assert_true(dot[-1] == first_name || dot[-1] == second_name);
        const int fragment = dot[-1] == second_name;
        if (i % 2 == 0) {
            pairing.gates[i / 2].fragment = fragment;
            pairing.gates[i / 2].element = element;
        } else {
            pairing.ups[i / 2].fragment = fragment;
            pairing.ups[i / 2].element = element;
        }
    }
    for (; (at = strstr(at, "to_neighbours(")) != NULL && at < end; pairing.num_exchanged++) {
        assert_true(pairing.num_exchanged < 4);
        for (int i = 0; i < 2; i++)
            pairing.exchanged[pairing.num_exchanged][i] = number_after(&at, end, "&y.v");
    }
    return pairing;
}

/* -- following values ------------------------------------------------------------------------------------ */

#define COLUMNS_MAX 256
#define ROWS 16 /* of one warp */

/* Row and column of register r of a lane: the layout of wgmma's accumulators. */
static int row_of(int lane, int r)
{
    return lane / 4 + r / 2 % 2 * 8;
}

static int column_of(int lane, int r)
{
    return r / 4 * 8 + lane % 4 * 2 + r % 2;
}

/* The column of PostAct that a gate and an up column of A B^T make. */
static int post_column(bool halves, int mma_n, int gate, int up)
{
    if (halves) {
        assert_true(gate < mma_n / 2);
        assert_int_equal(up, gate + mma_n / 2);
        return gate;
    }
    assert_int_equal(gate % 2, 0);
    assert_int_equal(up, gate + 1);
    return gate / 2;
}

/* Follows one block of 32 columns, whose two fragments are of these registers, to what a warp stores as
 * columns `to` and on of PostAct. */
static void follow(const struct pairing *pairing, bool halves, int mma_n, int registers[2][8], int to,
                   unsigned char stored[ROWS][COLUMNS_MAX])
{
    float y[8][LANES];
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < 8; i++) {
            const int gate = registers[pairing->gates[i].fragment][pairing->gates[i].element];
            const int up = registers[pairing->ups[i].fragment][pairing->ups[i].element];
            assert_int_equal(row_of(lane, gate), row_of(lane, up));
            const int column = post_column(halves, mma_n, column_of(lane, gate), column_of(lane, up));
            y[i][lane] = (float)(1000 * row_of(lane, gate) + column);
        }
    }
    for (int i = 0; i < pairing->num_exchanged; i++)
        exchange(128, y[pairing->exchanged[i][0]], y[pairing->exchanged[i][1]]);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < 8; i++) {
            const int row = row_of(lane, i), column = to + column_of(lane, i);
            assert_int_equal((int)y[i][lane], 1000 * row + column);
            stored[row][column]++;
        }
    }
}

/* The registers that fragment `index` takes from its line on: eight of one value, or four of two. */
static void read_fragment(const char *at, int registers[8])
{
    const char *const end = strstr(at, ");");
    assert_non_null(end);
    int count = 0, found[8];
    for (const char *next; (next = strstr(at, "acc.d")) != NULL && next < end;) {
        assert_true(count < 8);
        found[count++] = number_after(&at, end, "acc.d");
    }
    assert_true(count == 8 || count == 4);
    for (int i = 0; i < 8; i++)
        registers[i] = count == 8 ? found[i] : 2 * found[i / 2] + i % 2;
}

/* Follows every value of store_block. */
static void follow_unit(const struct gj_plan *plan, const char *text)
{
    const bool halves = plan->key.gate == GJ_GATE_HALVES;
    const struct pairing pairing =
        halves ? pairing_of(text, 'e', 'p') : pairing_of(text, 'a', 'b'); /* gate and up, or a and b */
    static unsigned char stored[ROWS][COLUMNS_MAX];
    memset(stored, 0, sizeof stored);
    int registers[16][8], first = 0, left = -1;
    const char *end;
    const char *at = function_of(text, "DEVICE void store_block(", &end);
    for (; at != NULL && at < end; at = strchr(at + 1, '\n')) {
        int q, second, y, from;
        if (sscanf(at, " if (column + %d < to->params->n) {", &from) == 1)
            first = from;
        if (sscanf(at, " fragment f%d = take_fragment(", &q) == 1) {
            assert_true(q < 16);
            read_fragment(at, registers[q]);
        }
        if (sscanf(at, " fragment y%d = gated(f%d, f%d);", &y, &q, &second) == 3) {
            assert_int_equal(second, q + 1);
            left = q;
        }
        const char *const line_end = strchr(at + 1, '\n');
        const char *stores = strstr(at, " store_");
        if (stores == NULL || line_end == NULL || stores > line_end)
            continue;
        stores = strstr(stores, "(p_");
        if (stores == NULL || stores > line_end)
            continue;
        const int step = number_after(&stores, line_end, ", ");
        assert_true(left >= 0 && step % plan->p_element == 0);
        follow(&pairing, halves, plan->mma_n, &registers[left], first / 2 + step / plan->p_element, stored);
        left = -1;
    }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS_MAX; column++)
            if (stored[row][column] != (column < plan->mma_n / 2))
                fail_msg("%s: column %d of PostAct is stored %d times", plan->entry_name, column,
                         stored[row][column]);
}

static void registers_become_columns_of_postact(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "op=gated,act=swiglu,d=none,tile=128x192",
        "op=gated,act=swiglu,d=none,tile=128x128",
        "op=gated,act=swiglu,tile=128x192",
        "op=gated,act=glu,c=bf16.n,d=f32.n,p=f32.n,tile=128x160,cluster=1x1",
        "op=gated,act=geglu,d=none,p=e4m3.n,tile=64x224,cluster=1x1,sched=coop,bias=col.bf16",
        "op=gated,act=reglu,d=none,tile=64x32,cluster=1x1",
        "op=gated,act=reglu,d=none,tile=192x256,sched=coop,cluster=1x1",
        "op=gated,act=glu,d=none,a=f16.k,b=f16.k,acc=f16,tile=128x96,cluster=1x1",
        "op=gated,act=swiglu,gate=halves,d=none,tile=128x192",
        "op=gated,act=swiglu,gate=halves,d=none,tile=128x128,quant=amax",
        "op=gated,act=swiglu,gate=halves,d=none,p=f32.n,tile=128x160,cluster=1x1",
        "op=gated,act=glu,gate=halves,d=none,p=e5m2.n,tile=64x224,cluster=1x1,sched=coop",
        "op=gated,act=glu,gate=halves,d=none,tile=64x32,cluster=1x1",
        "op=gated,act=glu,gate=halves,d=none,tile=256x96,cluster=1x1,sched=coop",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct gj_key key;
        struct gj_plan plan;
        struct gj_unit unit;
        assert_int_equal(gj_key_parse(texts[i], &key, NULL), GJ_OK);
        gj_error *error = NULL;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_meet),
        cmocka_unit_test(registers_become_columns_of_postact),
    };
    return cmocka_run_group_tests_name("gated_lanes", tests, NULL, NULL);
}
