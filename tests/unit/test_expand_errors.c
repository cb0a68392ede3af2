/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of mistakes in templates: each is an error that names file and line and shows the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/expand.h"
#include "template_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAIN "templates/gemm_sm90.cu"
#define OTHER "templates/load.cuh"

static const struct gj_constants constants = {
    .items = {{"TWO", NULL, 2, NULL}, {"ZERO", NULL, 0, NULL}, {"D_TYPE", "bf16", 0, NULL}}, .count = 3};

/* Line `number` of a text, without its newline. */
static void copy_line(const char *text, int number, char *line, size_t capacity)
{
    for (int i = 1; i < number; i++)
        text = strchr(text, '\n') + 1;
    snprintf(line, capacity, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Asserts that the main template (or, if `in` says so, the file it includes) fails at a line. */
static void assert_fails_in(const char *in, const char *text, const char *other, int line, const char *part)
{
    char *const directory = scratch_create_empty();
    scratch_write(directory, MAIN, text, strlen(text));
    scratch_write(directory, OTHER, other, strlen(other));
    struct gj_assets *assets = NULL;
    assert_int_equal(gj_assets_read(directory, &assets, NULL), GJ_OK);
    scratch_remove(directory);
    gj_error *error = NULL;
    struct gj_lines lines = {0};
    const enum gj_status status = gj_expand(assets, MAIN, &constants, NULL, &lines, &error);
    if (status != GJ_ERR_GENERATE)
        fail_msg("status %s of template:\n%s--- text:\n%s", gj_status_name(status), text,
                 lines.text.text ? lines.text.text : "");
    gj_lines_free(&lines);
    assert_int_equal(gj_expand(assets, MAIN, &constants, NULL, &lines, NULL), GJ_ERR_GENERATE);
    gj_lines_free(&lines);
    gj_assets_free(&assets);

    char place[64], excerpt[160];
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_GENERATE);
    assert_int_equal(error->stage, GJ_STAGE_GENERATE);
    snprintf(place, sizeof place, "%s:%d: ", in, line);
    if (strstr(error->message, place) == NULL || strstr(error->message, part) == NULL)
        fail_msg("template:\n%s--- \"%s\" has not %s%s", text, error->message, place, part);
    assert_int_equal(error->num_locations, 1);
    assert_string_equal(error->locations[0].file, in);
    assert_int_equal(error->locations[0].line, line);
    copy_line(strcmp(in, MAIN) == 0 ? text : other, line, excerpt, sizeof excerpt);
    assert_string_equal(error->locations[0].excerpt, excerpt);
    gj_error_free(&error);
}

static void assert_fails(const char *text, int line, const char *part)
{
    assert_fails_in(MAIN, text, "", line, part);
}

static void directives_come_in_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
    } cases[] = {
        {"a\n@for i in 0 .. 1\nb\n", 2},
        {"@if 1\n", 1},
        {"\n\n@join i in 0 .. 1 sep \",\"\n${i}\n", 3},
        {"a\n@end\n", 2},
        {"@if 1\n@end\n@end\n", 3},
        {"a\n#if 1\nb\n", 2},
        {"#if 1\n#if 1\n#endif\n", 1},
        {"#endif\n", 1},
        {"a\n#else\n", 2},
        {"a\nb\n#elif 1\n", 3},
        {"#ifdef TWO\n#endif\n", 1},
        {"a\n#ifndef TWO\n#endif\n", 2},
        {"@for i in 0 .. 1\n#if 1\n@end\n#endif\n", 2},
        {"#if 1\n@if 1\n#endif\n@end\n", 2},
        {"@if 1\n#else\n@end\n", 2},
        {"#if 1\n@end\n#endif\n", 2},
        {"#if 0\na\n#else\nb\n#else\nc\n#endif\n", 5},
        {"#if 1\na\n#else\nb\n#elif 1\nc\n#endif\n", 5},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(cases[i].text, cases[i].line, "");
}

static void expressions_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *part;
    } cases[] = {
        {"a\n  x ${UNKNOWN};\n", 2, "\"UNKNOWN\""},
        {"${1 / ZERO}\n", 1, "division by zero"},
        {"${TWO\n", 1, "\"}\""},
        {"a ${TWO} b ${\n", 1, "\"}\""},
        {"${}\n", 1, "ends early"},
        {"${D_TYPE + 1}\n", 1, "D_TYPE"},
        {"${TWO TWO}\n", 1, "TWO"},
        {"a\nb\n#if UNKNOWN\n#endif\n", 3, "\"UNKNOWN\""},
        {"#if\n#endif\n", 1, "ends early"},
        {"#if 0\n#elif UNKNOWN\n#endif\n", 2, "\"UNKNOWN\""},
        {"#if defined(TWO)\n#endif\n", 1, "defined"},
        {"@if UNKNOWN\n@end\n", 1, "\"UNKNOWN\""},
        {"@if\n@end\n", 1, "ends early"},
        {"@if TWO ==\n@end\n", 1, "ends early"},
        {"@for i in 0 .. 3\na\n${i / (i - 2)}\n@end\n", 3, "division by zero"},
        {"@for i in 0 .. 1\n@end\n${i}\n", 3, "\"i\""},
        {"@join i in 0 .. 3 sep \",\"\n  ${UNKNOWN}\n@end\n", 2, "\"UNKNOWN\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(cases[i].text, cases[i].line, cases[i].part);
}

static void loops_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *head, *part;
    } cases[] = {
        {"@for", "VARIABLE"},
        {"@for i", "VARIABLE"},
        {"@for i in", "VARIABLE"},
        {"@for i in 3", "VARIABLE"},
        {"@for i 0 .. 3", "VARIABLE"},
        {"@for i in 0 ..", "ends early"},
        {"@for i in .. 3", "ends early"},
        {"@for i in 0 .. UNKNOWN", "\"UNKNOWN\""},
        {"@for i in UNKNOWN .. 3", "\"UNKNOWN\""},
        {"@for i in 0 .. 3 3", "3"},
        {"@for i in 0 .. 100000", "1024"},
        {"@for i in 0 .. 1024", "1024"},
        {"@for i in -9000000000000000000 .. 9000000000000000000", "1024"},
        {"@for in 0 .. 1", "VARIABLE"},
        {"@for  in 0 .. 1", "VARIABLE"},
        {"@for 2i in 0 .. 1", "variable"},
        {"@for i j in 0 .. 1", "variable"},
        {"@for i+ in 0 .. 1", "variable"},
        {"@for a_name_that_is_much_longer_than_any_variable_should_be in 0 .. 1", "variable"},
        {"@for i in 0 .. 1 sep \",\"", "sep"},
        {"@for i in 0 .. 1 per 2", "per"},
        {"@join i in 0 .. 3 separator \",\"", "separator"},
        {"@join i in 0 .. 3 sep ,", "sep \"TEXT\""},
        {"@join i in 0 .. 3 sep \",", "sep \"TEXT\""},
        {"@join i in 0 .. 3 sep \",\" per", "per N"},
        {"@join i in 0 .. 3 sep \",\" per 0", "per N"},
        {"@join i in 0 .. 3 sep \",\" per -1", "per N"},
        {"@join i in 0 .. 3 sep \",\" per x", "per N"},
        {"@join i in 0 .. 3 sep \",\" end", "end \"TEXT\""},
        {"@join i in 0 .. 3 sep \",\" begin x", "begin \"TEXT\""},
        {"@join i in 0 .. 3 sep \",\" else \"x\"", "sep \"TEXT\""},
        {"@join i in 0 .. 3 sep \",\" \"x\"", "sep \"TEXT\""},
        {"@join 3", "VARIABLE"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        /* the line after the head begins with a number: it must not be read as part of the head */
        snprintf(text, sizeof text, "a\n%s\n12 x\n@end\n", cases[i].head);
        assert_fails(text, 2, cases[i].part);
    }
    assert_fails("@join i in 0 .. 3 sep \",\"\n@end\n", 1, "one line");
    assert_fails("\n@join i in 0 .. 3 sep \",\"\n${i}\n${i}\n@end\n", 2, "one line");
}

static void each_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *head, *part;
    } cases[] = {
        {"@each", "expected VARIABLE of WORDS"},
        {"@each x", "expected VARIABLE of WORDS"},
        {"@each x of", "expected VARIABLE of WORDS"},
        {"@each of a b", "expected VARIABLE of WORDS"},
        {"@each x in a b", "expected VARIABLE of WORDS"},
        {"@each x yof a b", "expected VARIABLE of WORDS"},
        {"@each w x y z of a b c d", "more than three variables"},
        {"@each 2x of a", "bad loop variable"},
        {"@each x, y of a b", "bad loop variable"},
        {"@each x ${D_TYPE} of a b", "bad loop variable"},
        {"@each a_name_of_thirty_two_characters_ of a", "bad loop variable"},
        {"@each x y of a", "a word is missing or too long"},
        {"@each x y of a b c", "a word is missing or too long"},
        {"@each x y z of a b c d e", "a word is missing or too long"},
        {"@each x of a_word_of_thirty_two_characters_", "a word is missing or too long"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "a\n%s\n12 x\n@end\n", cases[i].head);
        assert_fails(text, 2, cases[i].part);
    }
    assert_fails("\n@each x of a b\n${x}\n", 2, "no @end");
    assert_fails("@each x of a b\n@end\n${x}\n", 3, "\"x\"");
    assert_fails("@each x of a b\n${y}\n@end\n", 2, "\"y\"");
    assert_fails("@each x of TWO D\n-\n@if ${x}\n@end\n@end\n", 3, "\"D\"");
    assert_fails("@each x of TWO ZERO\n${1 / ${x}}\n@end\n", 2, "division by zero");
    assert_fails("@each x of a\n#if ${x}_N\n#endif\n@end\n", 2, "\"a_N\"");
    assert_fails("@each x of a\n@for i in 0 .. ${x}_N\n@end\n@end\n", 2, "\"a_N\"");
    assert_fails("@each x of a\n@join i in 0 .. 1 sep \",\"\n${${x}_N}\n@end\n@end\n", 3, "\"a_N\"");
}

static void nested_braces_are_checked(void **state)
{
    (void)state;
    assert_fails("a\n${${TWO}\n", 2, "\"${\" without \"}\"");
    assert_fails("#if ${TWO\n#endif\n", 1, "\"${\" without \"}\"");
    assert_fails("@if ${${TWO}\n@end\n", 1, "\"${\" without \"}\"");
    assert_fails("${ {TWO} }\n", 1, "{");
    assert_fails("${${}}\n", 1, "ends early");
    assert_fails("${${UNKNOWN} + 1}\n", 1, "\"UNKNOWN\"");
    assert_fails("${${D_TYPE}}\n", 1, "\"bf16\"");
    assert_fails("${TWO $ TWO}\n", 1, "$");
}

static void own_needs_a_function(void **state)
{
    (void)state;
    assert_fails("a\n  @own\nb\n", 2, "there is no own function");
    assert_fails_in(OTHER, "#include \"" OTHER "\"\n", "@if TWO\n@own\n@end\n", 2,
                    "there is no own function");
}

/* The last value of long: counting up to it must not overflow. */
static void largest_bound_ends(void **state)
{
    (void)state;
    struct gj_constants large = constants;
    large.items[large.count++] = (struct gj_constant){"LARGE", NULL, INT64_MAX, NULL};
    static const char text[] =
        "@for i in LARGE - 1 .. LARGE\nx\n@end\n@join i in LARGE .. LARGE sep \",\"\ny\n@end\n";
    const struct gj_asset asset = {MAIN, text, sizeof text - 1};
    const struct gj_assets assets = {&asset, 1};
    struct gj_lines lines = {0};
    assert_int_equal(gj_expand(&assets, MAIN, &large, NULL, &lines, NULL), GJ_OK);
    assert_string_equal(lines.text.text, "x\nx\ny\n");
    gj_lines_free(&lines);
}

static void includes_are_checked(void **state)
{
    (void)state;
    assert_fails("a\n#include \"templates/none.cuh\"\n", 2, "no such template");
    assert_fails("#include \"../" OTHER "\"\n", 1, "no such template");
    assert_fails("#include <cuda.h>\n", 1, "#include \"PATH\"");
    assert_fails("#include\n", 1, "#include \"PATH\"");
    assert_fails("#include \"\"\n", 1, "no such template");
    assert_fails("#include \"" OTHER "\n", 1, "#include \"PATH\"");
}

static void the_included_file_is_named(void **state)
{
    (void)state;
    assert_fails_in(OTHER, "a\n#include \"" OTHER "\"\n", "b\nc\n${UNKNOWN}\n", 3, "\"UNKNOWN\"");
    assert_fails_in(OTHER, "#if TWO\n#include \"" OTHER "\"\n#endif\n", "#if 1\n", 1, "#endif");
    /* a block does not reach over the end of its file */
    assert_fails_in(OTHER, "#include \"" OTHER "\"\n@end\n", "x\n@for i in 0 .. 1\n", 2, "@end");
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    struct gj_strbuf text = {0};
    for (int i = 0; i < 1000; i++)
        gj_strbuf_puts(&text, "@if 1\n");
    for (int i = 0; i < 1000; i++)
        gj_strbuf_puts(&text, "@end\n");
    const struct gj_asset asset = {MAIN, text.text, text.length};
    const struct gj_assets assets = {&asset, 1};
    struct gj_lines lines = {0};
    gj_error *error = NULL;
    assert_int_equal(gj_expand(&assets, MAIN, &constants, NULL, &lines, &error), GJ_ERR_GENERATE);
    assert_non_null(strstr(error->message, "nested"));
    gj_error_free(&error);
    gj_lines_free(&lines);
    gj_strbuf_free(&text);
}

/* An editor's accident must give an error or text, never a crash. */
static void zero_bytes_are_survived(void **state)
{
    (void)state;
    static const char texts[][32] = {"int a;\0\nint b;\n", "\0\n\n\n", "${\0TWO}\nx\n",
                                     "@for \0 in\nx\n@end\n", "#if \0\n#endif\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct gj_asset asset = {MAIN, texts[i], sizeof texts[i] - 1};
        const struct gj_assets assets = {&asset, 1};
        struct gj_lines lines = {0};
        const enum gj_status status = gj_expand(&assets, MAIN, &constants, NULL, &lines, NULL);
        assert_true(status == GJ_OK || status == GJ_ERR_GENERATE);
        gj_lines_free(&lines);
    }
}

static void a_missing_root_is_an_error(void **state)
{
    (void)state;
    const struct gj_assets none = {NULL, 0};
    struct gj_lines lines = {0};
    gj_error *error = NULL;
    assert_int_equal(gj_expand(&none, MAIN, &constants, NULL, &lines, &error), GJ_ERR_GENERATE);
    assert_non_null(strstr(error->message, MAIN));
    gj_error_free(&error);
    gj_lines_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directives_come_in_pairs),
        cmocka_unit_test(expressions_are_checked),
        cmocka_unit_test(each_is_checked),
        cmocka_unit_test(nested_braces_are_checked),
        cmocka_unit_test(own_needs_a_function),
        cmocka_unit_test(loops_are_checked),
        cmocka_unit_test(largest_bound_ends),
        cmocka_unit_test(includes_are_checked),
        cmocka_unit_test(the_included_file_is_named),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(zero_bytes_are_survived),
        cmocka_unit_test(a_missing_root_is_an_error),
    };
    return cmocka_run_group_tests_name("expand_errors", tests, NULL, NULL);
}
