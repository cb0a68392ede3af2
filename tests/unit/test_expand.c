/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of template directives, on templates read from a directory as an override is. */
#include <errno.h>
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
#define THIRD "ptx_snippets/tma.cuh"

static const struct gj_constants constants = {.items = {{"TWO", NULL, 2, NULL},
                                                        {"ZERO", NULL, 0, NULL},
                                                        {"D_TYPE", "bf16", 0, NULL},
                                                        {"WIDTH", NULL, 64, NULL},
                                                        {"SLAB_N", NULL, 64, NULL},
                                                        {"TAIL_N", NULL, 16, NULL},
                                                        {"HAS_C", NULL, 0, NULL},
                                                        {"HAS_D", NULL, 1, NULL}},
                                              .count = 8};

/* Expands the main template of that length; `other` and `third` are what it may include. */
static enum gj_status expand_bytes(const char *text, size_t length, const char *other, const char *third,
                                   struct gj_lines *lines, gj_error **error)
{
    char *const directory = scratch_create_empty();
    scratch_write(directory, MAIN, text, length);
    scratch_write(directory, OTHER, other, strlen(other));
    scratch_write(directory, THIRD, third, strlen(third));
    struct gj_assets *assets = NULL;
    assert_int_equal(gj_assets_read(directory, &assets, error), GJ_OK);
    scratch_remove(directory);
    const enum gj_status status = gj_expand(assets, MAIN, &constants, NULL, lines, error);
    /* the lines' assets are freed: only their text may be looked at */
    gj_assets_free(&assets);
    assert_null(assets);
    return status;
}

static void assert_expands_with(const char *text, const char *other, const char *third, const char *expected)
{
    struct gj_lines lines = {0};
    gj_error *error = NULL;
    if (expand_bytes(text, strlen(text), other, third, &lines, &error) != GJ_OK)
        fail_msg("%s\n%s", text, error ? error->message : "no message");
    assert_false(lines.failed || lines.text.failed);
    const char *const got = lines.text.text ? lines.text.text : "";
    if (strcmp(got, expected) != 0)
        fail_msg("template:\n%s--- gives:\n%s--- expected:\n%s", text, got, expected);
    size_t newlines = 0;
    for (const char *c = got; *c != '\0'; c++)
        newlines += *c == '\n';
    assert_int_equal(lines.count, newlines);
    gj_lines_free(&lines);
}

static void assert_expands(const char *text, const char *expected)
{
    assert_expands_with(text, "", "", expected);
}

/* -- what stays ------------------------------------------------------------------------------------------ */

static void other_lines_stay_as_written(void **state)
{
    (void)state;
    assert_expands("", "");
    assert_expands("\n", "\n");
    assert_expands("int a; // text\n\n  \tb { $x } @c ${TWO}\n", "int a; // text\n\n  \tb { $x } @c 2\n");
    assert_expands("#pragma unroll 1\n#define A 1\n#undef A\n", "#pragma unroll 1\n#define A 1\n#undef A\n");
    assert_expands("    @p bra DONE;\n", "    @p bra DONE;\n"); /* a predicate in PTX */
    assert_expands("@done bra X;\n@format\n", "@done bra X;\n@format\n");
    assert_expands("a % b == 50%; \"%s%n\"\n", "a % b == 50%; \"%s%n\"\n");
    assert_expands("\xc3\xa4\xff\n", "\xc3\xa4\xff\n");
}

static void file_headers_go(void **state)
{
    (void)state;
    assert_expands("// SPDX-License-Identifier: Apache-2.0\n// What it is.\n#pragma once\nint a;\n",
                   "// What it is.\nint a;\n");
    assert_expands("/* SPDX-License-Identifier: Apache-2.0 */\nint a;\n", "int a;\n");
}

static void last_line_needs_no_newline(void **state)
{
    (void)state;
    assert_expands("int a;\nint b;", "int a;\nint b;\n");
    assert_expands("#if TWO\nint a;\n#endif", "int a;\n");
}

static void braces_hold_expressions_and_words(void **state)
{
    (void)state;
    assert_expands("${D_TYPE}x2.${ D_TYPE }\n", "bf16x2.bf16\n");
    assert_expands("d${TWO * 3 + 1}, ${-TWO}, ${ WIDTH/4 }\n", "d7, -2, 16\n");
    assert_expands("${TWO}${TWO}\n", "22\n");
    assert_expands("$ {TWO} $TWO } ${1 < 2}\n", "$ {TWO} $TWO } 1\n");
}

/* -- @for, @join, @if ------------------------------------------------------------------------------------ */

static void for_repeats_lines(void **state)
{
    (void)state;
    assert_expands("@for i in 0 .. 2\na${i}\n  b${i + TWO}\n@end\nc\n", "a0\n  b2\na1\n  b3\na2\n  b4\nc\n");
    assert_expands("@for i in TWO .. WIDTH / 16\n${i}\n@end\n", "2\n3\n4\n");
    assert_expands("@for i in 1..1\n${i}\n@end\n", "1\n");
    assert_expands("@for i in 0 .. TWO - 3\nnever ${UNKNOWN}\n@end\n", "");
    assert_expands("@for i in -1 .. 1\n${i}\n@end\n", "-1\n0\n1\n");
    assert_expands("@for i in 0 .. 1\n@end\n", "");
    assert_expands("  @for i in 0 .. 0\n  x\n  @end\n", "  x\n");
}

static void loops_nest(void **state)
{
    (void)state;
    assert_expands("@for i in 0 .. 1\n@for j in i .. 1\n${i}${j}\n@end\n-\n@end\n", "00\n01\n-\n11\n-\n");
    /* an inner variable hides an outer one, and a constant, only inside its loop */
    assert_expands("@for i in 0 .. 1\n@for i in 5 .. 6\n${i}\n@end\n${i}\n@end\n", "5\n6\n0\n5\n6\n1\n");
    assert_expands("${TWO}\n@for TWO in 7 .. 7\n${TWO}\n@end\n${TWO}\n", "2\n7\n2\n");
    assert_expands("@for D_TYPE in 7 .. 7\n${D_TYPE}\n@end\n${D_TYPE}\n", "7\nbf16\n");
}

static void join_makes_lists(void **state)
{
    (void)state;
    assert_expands("@join i in 0 .. 3 sep \", \"\n    d${i}\n@end\n", "    d0,\n    d1,\n    d2,\n    d3\n");
    assert_expands("@join i in 0 .. 3 sep \", \" per 2\n    d${i}\n@end\n", "    d0, d1,\n    d2, d3\n");
    assert_expands("@join i in 0 .. 2 sep \", \" per 2\n  d${i}\n@end\n", "  d0, d1,\n  d2\n");
    assert_expands("@join i in 0 .. 2 sep \" + \" per 8 begin \"x = \" end \";\"\n  d${i}\n@end\n",
                   "  x = d0 + d1 + d2;\n");
    assert_expands("@join i in 0 .. 2 sep \", \" end \");\" per 1\nf${i}\n@end\n", "f0,\nf1,\nf2);\n");
    assert_expands("@join i in 4 .. 4 sep \", \" begin \"(\" end \")\"\n${i}\n@end\n", "(4)\n");
    assert_expands("@join i in 0 .. 1 sep \"\" per 2\n${i}\n@end\n", "01\n");
    assert_expands("@for j in 1 .. 2\n@join i in 0 .. j sep \",\" per 9\n${i}${j}\n@end\n@end\n",
                   "01,11\n02,12,22\n");
    assert_expands("@join i in 0 .. -1 sep \", \"\n${i}\n@end\nx\n", "x\n");
}

static void at_if_keeps_or_drops(void **state)
{
    (void)state;
    assert_expands("@if TWO == 2\na\n@end\n@if ZERO\nb ${UNKNOWN}\n@end\nc\n", "a\nc\n");
    assert_expands("@for i in 0 .. 3\n@if i % 2 == 1\n${i}\n@if i > 1\nlarge\n@end\n@end\n@end\n",
                   "1\n3\nlarge\n");
}

/* -- @each ------------------------------------------------------------------------------------------------
 */

static void each_takes_words_in_groups(void **state)
{
    (void)state;
    assert_expands("@each x of a b c\n${x}\n@end\n", "a\nb\nc\n");
    assert_expands("@each o O of d D p P\n${o}_of ${O}\n@end\n-\n", "d_of D\np_of P\n-\n");
    assert_expands("@each o O from of d D params p P fused\nto->${from}->${o}: ${O}\n@end\n",
                   "to->params->d: D\nto->fused->p: P\n");
    assert_expands("  @each  x\ty  of  1\t2   3 4  \n${x}.${y}\n  @end\n", "1.2\n3.4\n");
    assert_expands("@each x of a.b ${TWO} \"c\"\n${x}\n@end\n", "a.b\n${TWO}\n\"c\"\n"); /* not read again */
    assert_expands("@each x of a of\n${x}\n@end\n", "a\nof\n");
    assert_expands("@each x of a b\n@end\n", "");
    assert_expands("@each x of word_of_thirty_one_characters__\n${x}\n@end\n",
                   "word_of_thirty_one_characters__\n");
}

static void each_nests_and_hides(void **state)
{
    (void)state;
    assert_expands("@each x of a b\n@each y of 1 2\n${x}${y}\n@end\n@end\n", "a1\na2\nb1\nb2\n");
    assert_expands("@each x of a b\n@each x of 1\n${x}\n@end\n${x}\n@end\n", "1\na\n1\nb\n");
    assert_expands("${TWO}\n@each TWO D_TYPE of x y\n${TWO}${D_TYPE}\n@end\n${TWO}${D_TYPE}\n",
                   "2\nxy\n2bf16\n");
    assert_expands("@each x of a b\n@for i in 0 .. 1\n${x}${i}\n@end\n@join i in 1 .. 2 sep \",\" per 2\n"
                   "${x}${i}\n@end\n@end\n",
                   "a0\na1\na1,a2\nb0\nb1\nb1,b2\n");
}

/* A word of @each is a part of a name in expressions, wherever those stand. */
static void words_make_names_in_expressions(void **state)
{
    (void)state;
    assert_expands("@each W w of SLAB slab TAIL tail\n${w}: ${${W}_N / 16}\n@end\n", "slab: 4\ntail: 1\n");
    assert_expands("@each O o of C c D d\n@if HAS_${O}\n${o}\n@end\n#if !HAS_${O}\nno ${o}\n#endif\n@end\n",
                   "no c\nd\n");
    assert_expands("@each W of TAIL\n@for i in ${W}_N - 1 .. ${W}_N / TWO * 2\n${W}${i}\n@end\n"
                   "@join i in 0 .. ${W}_N / 8 - 1 sep \" + \" per 8\n${i * ${W}_N}\n@end\n@end\n",
                   "TAIL15\nTAIL16\n0 + 16\n");
    assert_expands("@each W of SLAB TAIL\n#if ZERO\n#elif ${W}_N == 16\n${W}\n#else\nother\n#endif\n@end\n",
                   "other\nTAIL\n");
}

static void braces_nest(void **state)
{
    (void)state;
    assert_expands("${${TWO}}\n", "2\n");
    assert_expands("${${TWO} + ${WIDTH}} ${1 - ${-TWO}} ${3${TWO}}\n", "66 3 32\n");
    assert_expands("${(${${${TWO}} * 2} + 1) * ${ TWO }}\n", "10\n");
    assert_expands("{${TWO}} {${${TWO} + 1}}}\n", "{2} {3}}\n");
    assert_expands("#if ${TWO} == 2 && ${${TWO} - 2} == 0\na\n#endif\n", "a\n");
    assert_expands("@for i in ${ZERO} .. ${TWO - 1}\n${i}${${i} + ${TWO} * i}\n@end\n", "00\n13\n");
}

/* -- @own -------------------------------------------------------------------------------------------------
 */

static const char own_text[] =
    "float g(float x) { return ${x}; }\n@end\n#include \"none\"\n\nfloat f(float x)\n"
    "// SPDX-License-Identifier: x";

static void assert_line(const struct gj_lines *lines, size_t index, const struct gj_asset *asset, int line,
                        bool verbatim)
{
    assert_true(index < lines->count);
    assert_ptr_equal(lines->items[index].asset, asset);
    assert_int_equal(lines->items[index].line, line);
    assert_int_equal(lines->items[index].verbatim, verbatim);
}

/* The user's lines stay as they are, under the name of their file; what follows them in the template counts
 * as the line of the function. */
static void own_lines_stay_as_written(void **state)
{
    (void)state;
    static const char main_text[] = "before\n#include \"" OTHER "\"\nafter ${TWO}\n";
    static const char other_text[] =
        "{\n@if TWO\n  @own\n@end\n} ${TWO}\n@join i in 0 .. 1 sep \",\"\n${i}\n@end\n";
    const struct gj_asset assets[] = {{MAIN, main_text, sizeof main_text - 1},
                                      {OTHER, other_text, sizeof other_text - 1}};
    const struct gj_assets all = {assets, COUNT(assets)};
    const struct gj_own own = {"f", own_text, "mine.cu"};
    const struct gj_own_source source = gj_own_source_make(&own);
    assert_int_equal(source.line, 5);
    struct gj_lines lines = {0};
    assert_int_equal(gj_expand(&all, MAIN, &constants, &source, &lines, NULL), GJ_OK);
    char expected[512];
    snprintf(expected, sizeof expected, "before\n{\n%s\n} 2\n0,\n1\nafter 2\n", own_text);
    assert_string_equal(lines.text.text, expected);
    assert_int_equal(lines.count, 12);
    assert_line(&lines, 0, &assets[0], 1, false);
    assert_line(&lines, 1, &assets[1], 1, false);
    for (int i = 0; i < 6; i++)
        assert_line(&lines, 2 + (size_t)i, &source.asset, 1 + i, true);
    assert_line(&lines, 8, &source.asset, 5, false);
    assert_line(&lines, 11, &assets[0], 3, false);
    gj_lines_free(&lines);
}

static void an_empty_own_text_is_no_lines(void **state)
{
    (void)state;
    static const char text[] = "a\n@own\nb\n";
    const struct gj_asset asset = {MAIN, text, sizeof text - 1};
    const struct gj_assets all = {&asset, 1};
    const struct gj_own own = {"f", "", NULL};
    const struct gj_own_source source = gj_own_source_make(&own);
    struct gj_lines lines = {0};
    assert_int_equal(gj_expand(&all, MAIN, &constants, &source, &lines, NULL), GJ_OK);
    assert_string_equal(lines.text.text, "a\nb\n");
    assert_line(&lines, 0, &asset, 1, false);
    assert_line(&lines, 1, &source.asset, 1, false);
    gj_lines_free(&lines);
}

/* -- #if ------------------------------------------------------------------------------------------------- */

static void hash_if_takes_the_first_branch_that_holds(void **state)
{
    (void)state;
    static const char chain[] = "#if %d\na\n#elif %d\nb\n#elif %d\nc\n#else\nd\n#endif\n";
    for (int bits = 0; bits < 8; bits++) {
        char text[128];
        snprintf(text, sizeof text, chain, bits & 1, bits >> 1 & 1, bits >> 2 & 1);
        assert_expands(text, bits & 1 ? "a\n" : bits & 2 ? "b\n" : bits & 4 ? "c\n" : "d\n");
    }
    assert_expands("#if ZERO\na\n#endif\nb\n", "b\n");
    assert_expands("#if TWO - 2\na\n#elif WIDTH > 32 && TWO > 0\nb\n#endif\n", "b\n");
}

static void hash_ifs_nest(void **state)
{
    (void)state;
    static const char text[] = "#if %d\n1\n#if %d\n2\n#elif %d\n3\n#else\n4\n#endif\n5\n#else\n6\n#if %d\n7\n"
                               "#endif\n8\n#endif\n9\n";
    for (int bits = 0; bits < 16; bits++) {
        char source[256], expected[64];
        const bool a = bits & 1, b = bits & 2, c = bits & 4, d = bits & 8;
        snprintf(source, sizeof source, text, a, b, c, d);
        if (a)
            snprintf(expected, sizeof expected, "1\n%d\n5\n9\n", b ? 2 : c ? 3 : 4);
        else
            snprintf(expected, sizeof expected, "6\n%s8\n9\n", d ? "7\n" : "");
        assert_expands(source, expected);
    }
}

static void directives_mix(void **state)
{
    (void)state;
    assert_expands("@for i in 0 .. 2\n#if i == 1\none\n#elif i == 2\n@if TWO\ntwo\n@end\n#else\n"
                   "@join j in 0 .. 1 sep \",\" per 2\n${j}\n@end\n#endif\n@end\n",
                   "0,1\none\ntwo\n");
    /* what a branch not taken holds does not matter */
    assert_expands(
        "#if ZERO\n${UNKNOWN}\n@for i in 0 .. UNKNOWN\n@end\n#include \"none\"\n#if UNKNOWN\n#endif\n"
        "#endif\nx\n",
        "x\n");
}

/* -- #include -------------------------------------------------------------------------------------------- */

static void includes_come_once(void **state)
{
    (void)state;
    assert_expands_with("a\n#include \"" OTHER "\"\nb\n#include \"" OTHER "\"\nc\n", "other\n", "",
                        "a\nother\nb\nc\n");
    assert_expands_with("#include \"" OTHER "\"\n#include \"" THIRD "\"\n", "#include \"" THIRD "\"\nother\n",
                        "third ${TWO}\n", "third 2\nother\n");
    assert_expands_with("#if ZERO\n#include \"" OTHER "\"\n#else\n#include \"" THIRD "\"\n#endif\n",
                        "other\n", "third\n", "third\n");
    /* files that include each other end */
    assert_expands_with("#include \"" OTHER "\"\nmain\n", "#include \"" THIRD "\"\nother\n",
                        "#include \"" OTHER "\"\nthird\n", "third\nother\nmain\n");
    assert_expands_with("#pragma once\n#include \"" OTHER "\"\nmain\n", "#include \"" MAIN "\"\nother\n", "",
                        "other\nmain\n");
}

/* -- reading --------------------------------------------------------------------------------------------- */

static void a_missing_file_is_named(void **state)
{
    (void)state;
    char *const directory = scratch_create_empty();
    scratch_delete_file(directory, OTHER);
    struct gj_assets *assets = NULL;
    gj_error *error = NULL;
    assert_int_equal(gj_assets_read(directory, &assets, NULL), GJ_ERR_SYSTEM);
    assert_int_equal(gj_assets_read(directory, &assets, &error), GJ_ERR_SYSTEM);
    assert_null(assets);
    assert_int_equal(error->origin_code, ENOENT);
    assert_string_equal(error->origin_name, "ENOENT");
    assert_int_equal(error->stage, GJ_STAGE_GENERATE);
    assert_non_null(strstr(error->message, directory));
    assert_non_null(strstr(error->message, OTHER));
    gj_error_free(&error);
    scratch_remove(directory);
    gj_assets_free(NULL);
    gj_assets_free(&assets);
}

static void read_files_are_what_was_written(void **state)
{
    (void)state;
    const struct gj_assets *const builtin = gj_assets_builtin();
    char *const directory = scratch_create();
    struct gj_assets *assets = NULL;
    assert_int_equal(gj_assets_read(directory, &assets, NULL), GJ_OK);
    assert_int_equal(assets->count, builtin->count);
    for (size_t i = 0; i < builtin->count; i++) {
        const struct gj_asset *const file = &assets->items[i];
        assert_string_equal(file->path, builtin->items[i].path);
        assert_int_equal(file->length, builtin->items[i].length);
        assert_int_equal(file->length, strlen(file->text));
        assert_memory_equal(file->text, builtin->items[i].text, file->length);
        assert_ptr_equal(gj_assets_find(assets, file->path, strlen(file->path)), file);
        assert_null(gj_assets_find(assets, file->path, strlen(file->path) - 1));
        if (i > 0)
            assert_true(strcmp(builtin->items[i - 1].path, file->path) < 0); /* path order */
    }
    assert_null(gj_assets_find(assets, "templates/none.cuh", strlen("templates/none.cuh")));
    gj_assets_free(&assets);
    scratch_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_lines_stay_as_written),
        cmocka_unit_test(file_headers_go),
        cmocka_unit_test(last_line_needs_no_newline),
        cmocka_unit_test(braces_hold_expressions_and_words),
        cmocka_unit_test(for_repeats_lines),
        cmocka_unit_test(loops_nest),
        cmocka_unit_test(join_makes_lists),
        cmocka_unit_test(at_if_keeps_or_drops),
        cmocka_unit_test(each_takes_words_in_groups),
        cmocka_unit_test(each_nests_and_hides),
        cmocka_unit_test(words_make_names_in_expressions),
        cmocka_unit_test(braces_nest),
        cmocka_unit_test(own_lines_stay_as_written),
        cmocka_unit_test(an_empty_own_text_is_no_lines),
        cmocka_unit_test(hash_if_takes_the_first_branch_that_holds),
        cmocka_unit_test(hash_ifs_nest),
        cmocka_unit_test(directives_mix),
        cmocka_unit_test(includes_come_once),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(read_files_are_what_was_written),
    };
    return cmocka_run_group_tests_name("expand", tests, NULL, NULL);
}
