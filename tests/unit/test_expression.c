/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the integer expressions that template directives use. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/constants.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gj_constants constants = {.items = {{"TILE_M", NULL, 128, NULL},
                                                        {"TILE_N", NULL, 192, NULL},
                                                        {"PINGPONG", NULL, 1, NULL},
                                                        {"TILE", NULL, 7, NULL},
                                                        {"D_TYPE", "bf16", 0, NULL},
                                                        {"NEGATIVE", NULL, -5, NULL},
                                                        {"LARGE", NULL, LONG_MAX, NULL},
                                                        {"SMALL", NULL, LONG_MIN, NULL},
                                                        {"i", NULL, 3, NULL}},
                                              .count = 9};

static bool evaluate(const char *text, long *value, char message[160])
{
    return gj_expression_value(text, strlen(text), &constants, value, message, 160);
}

static void assert_value(const char *text, long expected)
{
    char message[160] = "";
    long value = -12345;
    if (!evaluate(text, &value, message))
        fail_msg("%s: %s", text, message);
    if (value != expected)
        fail_msg("%s gives %ld, not %ld", text, value, expected);
}

static void assert_fails(const char *text, const char *part)
{
    char message[160] = "";
    long value = 77;
    if (evaluate(text, &value, message))
        fail_msg("%.60s gives %ld", text, value);
    assert_int_equal(value, 77);
    if (strstr(message, part) == NULL)
        fail_msg("%.60s: \"%s\" does not mention \"%s\"", text, message, part);
}

static void values_and_names(void **state)
{
    (void)state;
    assert_value("0", 0);
    assert_value("  42\t", 42);
    assert_value("007", 7);
    assert_value("TILE_M", 128);
    assert_value("TILE", 7);
    assert_value("i", 3);
    assert_value("TILE_M / 2 * i", 192);
    assert_value("LARGE", LONG_MAX);
    assert_value("SMALL", LONG_MIN);
    assert_value("(((i)))", 3);
    /* the text ends at its length, not at a zero */
    char message[160];
    long value;
    assert_true(gj_expression_value("12345", 2, &constants, &value, message, sizeof message));
    assert_int_equal(value, 12);
    assert_true(gj_expression_value("TILE_M", 4, &constants, &value, message, sizeof message));
    assert_int_equal(value, 7);
}

static void operators_bind_as_in_c(void **state)
{
    (void)state;
    assert_value("2 + 3 * 4", 2 + 3 * 4);
    assert_value("(2 + 3) * 4", (2 + 3) * 4);
    assert_value("20 - 5 - 3", 20 - 5 - 3);
    assert_value("100 / 5 / 2", 100 / 5 / 2);
    assert_value("100 / 5 * 2", 100 / 5 * 2);
    assert_value("100 % 7 * 3", 100 % 7 * 3);
    assert_value("-7 / 2", -7 / 2);
    assert_value("-7 % 2", -7 % 2);
    assert_value("7 / -2", 7 / -2);
    assert_value("1 < 2 == 1", 1);
    assert_value("3 > 2 > 1", 0);
    assert_value("1 == 1 < 1", 0);
    assert_value("5 != 5 == 0", 1);
    assert_value("1 || 0 && 0", 1);
    assert_value("(1 || 0) && 0", 0);
    assert_value("1 + 1 == 2 && 2 * 2 >= 4", 1);
    assert_value("3 <= 3", 1);
    assert_value("4 <= 3", 0);
    assert_value("4 >= 5", 0);
    assert_value("5 && 7", 1);
    assert_value("0 || 9", 1);
    assert_value("!0", 1);
    assert_value("!5", 0);
    assert_value("!!5", 1);
    assert_value("--5", 5);
    assert_value("-!0", -1);
    assert_value("!0 + 1", 2);
    assert_value("!(0 + 1)", 0);
    assert_value("-2 * -3", 6);
    assert_value("2 - -3", 5);
    assert_value("2--3", 5);
    assert_value("i!=3", 0);
    assert_value("!i==0", 1);
    assert_value("!PINGPONG || TILE_N > 128", 1);
    assert_value("TILE_N%TILE_M==64", 1);
}

static void mistakes_have_messages(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "ends early"},
        {"   ", "ends early"},
        {"1 +", "ends early"},
        {"(", "ends early"},
        {"(1", "')'"},
        {"(1 + 2", "')'"},
        {"(1 2)", "')'"},
        {")", "')'"},
        {"1)", ")"},
        {"1 2", "2"},
        {"12abc", "abc"},
        {"UNKNOWN", "\"UNKNOWN\""},
        {"TILE_MM", "\"TILE_MM\""},
        {"TIL", "\"TIL\""},
        {"tile_m", "\"tile_m\""},
        {"1 + UNKNOWN * 2", "\"UNKNOWN\""},
        {"D_TYPE", "D_TYPE"},
        {"D_TYPE == 1", "word"},
        {"1 / 0", "division by zero"},
        {"1 % 0", "division by zero"},
        {"1 / (TILE_M - 128)", "division by zero"},
        {"LARGE + 1", "overflow"},
        {"SMALL - 1", "overflow"},
        {"LARGE * 2", "overflow"},
        {"-SMALL", "overflow"},
        {"SMALL / -1", "overflow"},
        {"SMALL % -1", "overflow"},
        {"99999999999999999999999999999999", "too large"},
        {"1 & 1", "&"},
        {"1 | 1", "|"},
        {"1 = 1", "="},
        {"1 ? 2 : 3", "?"},
        {"~1", "~"},
        {"1 << 2", "<"},
        {"0x10", "x10"},
        {"1.5", "."},
        {"'a'", "'"},
        {"\"a\"", "\""},
        {"1, 2", ","},
        {"#", "#"},
        {"+1", "+"},
        {"1 !", "!"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(cases[i].text, cases[i].part);
}

/* Templates may come from a directory that the user names, so no text may exhaust the stack. */
static void deep_nesting_is_refused(void **state)
{
    (void)state;
    assert_value("((((((((((((((((1))))))))))))))))", 1);
    assert_value("----------------1", 1);
    enum { LENGTH = 1000000 };
    char *const text = malloc(LENGTH + 1);
    assert_non_null(text);
    text[LENGTH] = '\0';
    static const char openers[] = "(-!";
    for (size_t i = 0; i < strlen(openers); i++) {
        memset(text, openers[i], LENGTH);
        assert_fails(text, "nested");
    }
    /* a long flat expression is fine */
    for (int i = 0; i < LENGTH; i++)
        text[i] = "1+"[i % 2];
    text[LENGTH - 1] = '\0';
    assert_value(text, LENGTH / 2);
    free(text);
}

/* -- random expressions against C's rules ---------------------------------------------------------------- */

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * bound) >> 32);
}

/* A value with how tightly the text that stands for it binds: 0 for ||, 6 for a primary. */
struct term {
    char text[400];
    long value;
    int level;
    bool valid;
};

static const struct {
    const char *text;
    int level;
} binary[] = {{"||", 0}, {"&&", 1}, {"==", 2}, {"!=", 2}, {"<", 3}, {">", 3}, {"<=", 3},
              {">=", 3}, {"+", 4},  {"-", 4},  {"*", 5},  {"/", 5}, {"%", 5}};

static long apply(int op, long a, long b, bool *valid)
{
    switch (op) {
    case 0:
        return a || b;
    case 1:
        return a && b;
    case 2:
        return a == b;
    case 3:
        return a != b;
    case 4:
        return a < b;
    case 5:
        return a > b;
    case 6:
        return a <= b;
    case 7:
        return a >= b;
    case 8:
        return a + b;
    case 9:
        return a - b;
    case 10:
        return a * b;
    default:
        *valid = *valid && b != 0;
        return b == 0 ? 0 : op == 11 ? a / b : a % b;
    }
}

/* A random expression in the fewest parentheses that C's precedence needs. Values stay small. */
static void random_term(struct term *term, int depth)
{
    static const char *const spaces[] = {"", " ", "  "};
    term->valid = true;
    if (depth == 0 || random_below(5) == 0) {
        term->level = 6;
        term->value = (long)random_below(10);
        snprintf(term->text, sizeof term->text, "%ld", term->value);
        return;
    }
    if (random_below(6) == 0) {
        struct term inner;
        random_term(&inner, depth - 1);
        const bool negate = random_below(2), group = inner.level < 6;
        snprintf(term->text, sizeof term->text, group ? "%c(%.380s)" : "%c%.380s", negate ? '-' : '!',
                 inner.text);
        term->value = negate ? -inner.value : !inner.value;
        term->valid = inner.valid;
        term->level = 6;
        return;
    }
    struct term left, right;
    random_term(&left, depth - 1);
    random_term(&right, depth - 1);
    const int op = (int)random_below(COUNT(binary));
    term->level = binary[op].level;
    term->valid = left.valid && right.valid;
    term->value = apply(op, left.value, right.value, &term->valid);
    const bool group_left = left.level < term->level, group_right = right.level <= term->level;
    const char *const space = spaces[random_below(COUNT(spaces))];
    snprintf(term->text, sizeof term->text, "%s%.150s%s%s%s%s%s%.150s%s", group_left ? "(" : "", left.text,
             group_left ? ")" : "", space, binary[op].text, space, group_right ? "(" : "", right.text,
             group_right ? ")" : "");
}

static void random_expressions_have_the_value_of_c(void **state)
{
    (void)state;
    int valid = 0;
    for (int round = 0; round < 100000; round++) {
        struct term term;
        random_term(&term, 4);
        if (term.valid) {
            assert_value(term.text, term.value);
            valid++;
        } else {
            assert_fails(term.text, "division by zero");
        }
    }
    assert_true(valid > 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_names),
        cmocka_unit_test(operators_bind_as_in_c),
        cmocka_unit_test(mistakes_have_messages),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(random_expressions_have_the_value_of_c),
    };
    return cmocka_run_group_tests_name("expression", tests, NULL, NULL);
}
