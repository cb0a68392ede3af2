/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the reading of NVRTC logs and PTX. The logs are those that NVRTC 12.3 to 13.0 wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error_build.h"
#include "compile/diagnose.h"
#include "compile/log_scan.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct expected {
    enum gj_log_kind kind;
    int line;
    const char *file, *code, *text;
};

static void check_log(const char *log, const struct expected *expected, size_t count)
{
    struct gj_log_finding finding;
    for (size_t i = 0; i < count; i++) {
        assert_true(gj_log_scan_next(&log, &finding));
        assert_int_equal(finding.kind, expected[i].kind);
        assert_int_equal(finding.line, expected[i].line);
        assert_int_equal(finding.file_length, strlen(expected[i].file));
        assert_memory_equal(finding.file, expected[i].file, finding.file_length);
        assert_string_equal(finding.code, expected[i].code);
        assert_int_equal(finding.text_length, strlen(expected[i].text));
        assert_memory_equal(finding.text, expected[i].text, finding.text_length);
        assert_int_equal(*finding.meaning != '\0', *finding.code != '\0');
    }
    assert_false(gj_log_scan_next(&log, &finding));
    assert_int_equal(*log, '\0');
}

static void front_end_errors(void **state)
{
    (void)state;
    static const char log[] =
        "unit(3): error: identifier \"nope\" is undefined\n"
        "    p[0]=nope; // error: quoted\n"
        "         ^\n"
        "\n"
        "unit(4): warning #177-D: variable \"error: x\" was declared but never referenced\n"
        "    int q = \"x\";\n"
        "templates/gemm(1).cuh(44): error: a \"(C7510)\" b\n"
        "unit(9): error #20-D: identifier \"z\" is undefined\n"
        "unit(1): catastrophic error: cannot open source file \"foo.h\"\n"
        "1 catastrophic error detected in the compilation of \"unit\".\n"
        "Compilation terminated.\n";
    static const struct expected expected[] = {
        {GJ_LOG_SOURCE, 3, "unit", "", "identifier \"nope\" is undefined"},
        {GJ_LOG_SOURCE, 44, "templates/gemm(1).cuh", "", "a \"(C7510)\" b"},
        {GJ_LOG_SOURCE, 9, "unit", "", "identifier \"z\" is undefined"},
        {GJ_LOG_SOURCE, 1, "unit", "", "cannot open source file \"foo.h\""},
    };
    check_log(log, expected, COUNT(expected));
}

static void ptxas_errors(void **state)
{
    (void)state;
    static const char log[] =
        "ptxas application ptx input, line 30; error   : Arguments mismatch for instruction 'mov'\n"
        "ptxas application ptx input, line 31; warning : nothing\n"
        "ptxas application ptx input, line 34; fatal   : Parsing error near 'mov': syntax error\r\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
        "ptxas fatal   : (C7602) Insufficient registers (128) for target 154\n"
        "ptxas error   : Entry function 'k' uses too much shared data\n"
        "nvrtc: error: unrecognized option --nonsense found";
    static const struct expected expected[] = {
        {GJ_LOG_PTX, 30, "", "", "Arguments mismatch for instruction 'mov'"},
        {GJ_LOG_PTX, 34, "", "", "Parsing error near 'mov': syntax error"},
        {GJ_LOG_OTHER, 0, "", "C7602", "(C7602) Insufficient registers (128) for target 154"},
        {GJ_LOG_OTHER, 0, "", "", "Entry function 'k' uses too much shared data"},
        {GJ_LOG_OTHER, 0, "", "", "unrecognized option --nonsense found"},
    };
    check_log(log, expected, COUNT(expected));
}

static void remarks(void **state)
{
    (void)state;
    static const char log[] =
        "ptxas info    : (C7517) warpgroup.wait is injected in around line 48 by compiler to allow use of "
        "registers "
        "defined by GMMA in function 'k'\n"
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : (C7599) something new\n"
        "ptxas info    : (C7400) something else\n"
        "ptxas info    : (C75\n"
        "ptxas info    : Used 30 registers, used 0 barriers\n";
    static const struct expected expected[] = {
        {GJ_LOG_REMARK, 48, "", "C7517",
         "warpgroup.wait is injected in around line 48 by compiler to allow use of registers defined by GMMA "
         "in "
         "function 'k'"},
        {GJ_LOG_REMARK, 0, "", "C7599", "something new"},
    };
    check_log(log, expected, COUNT(expected));
}

static void clean_logs(void **state)
{
    (void)state;
    check_log("", NULL, 0);
    check_log("\n\n\r\n", NULL, 0);
    check_log("ptxas info    : 0 bytes gmem\nptxas info    : Compile time = 1.2 ms\n", NULL, 0);
    check_log("unit(99999999999999999999): error: x\n",
              (const struct expected[]){{GJ_LOG_OTHER, 0, "", "", "x"}}, 1);
}

static void every_code_is_found(void **state)
{
    (void)state;
    size_t count = 0;
    const struct gj_log_code *const codes = gj_log_scan_codes(&count);
    assert_int_equal(count, 14);
    for (size_t i = 0; i < count; i++) {
        char log[64] = "ptxas info    : (Cnnnn) text";
        memcpy(strchr(log, 'C'), codes[i].code, 5);
        const char *rest = log;
        struct gj_log_finding finding;
        assert_true(gj_log_scan_next(&rest, &finding));
        assert_int_equal(finding.kind, GJ_LOG_REMARK);
        assert_string_equal(finding.code, codes[i].code);
        assert_string_equal(finding.meaning, codes[i].meaning);
        assert_true(i == 0 || strcmp(codes[i - 1].code, codes[i].code) < 0);
    }
}

/* -- PTX ------------------------------------------------------------------------------------------------- */

static const char ptx[] = "//\n"                                             /* 1 */
                          "// Based on NVVM 7.0.1\n"                         /* 2 */
                          "\tmov.u32 %r1, 0;\n"                              /* 3 */
                          "\t// begin inline asm\n"                          /* 4 */
                          "\t\n"                                             /* 5 */
                          "    // ptx_snippets/mbarrier.cuh mbarrier_wait\n" /* 6 */
                          "    mov.b32 %r1, nosuch;\n"                       /* 7 */
                          "    bogus.op %r1;\n"                              /* 8 */
                          "  \n"                                             /* 9 */
                          "\t// end inline asm\n"                            /* 10 */
                          "\tst.global.u32 \t[%rd2], %r1;\n"                 /* 11 */
                          "\t// begin inline asm\n"                          /* 12 */
                          "\tfence;\n"                                       /* 13 */
                          "\t// end inline asm\n";                           /* 14 */

static void ptx_places(void **state)
{
    (void)state;
    struct gj_ptx_place place;
    assert_false(gj_log_scan_ptx(ptx, 0, &place));
    assert_false(gj_log_scan_ptx(ptx, -5, &place));
    assert_false(gj_log_scan_ptx(ptx, 1000, &place));
    assert_false(gj_log_scan_ptx("", 2, &place));

    assert_true(gj_log_scan_ptx(ptx, 3, &place));
    assert_null(place.signature);

    assert_true(gj_log_scan_ptx(ptx, 8, &place));
    assert_int_equal(place.line_length, strlen("bogus.op %r1;"));
    assert_memory_equal(place.line, "bogus.op %r1;", place.line_length);
    assert_int_equal(place.file_length, strlen("ptx_snippets/mbarrier.cuh"));
    assert_memory_equal(place.file, "ptx_snippets/mbarrier.cuh", place.file_length);
    assert_memory_equal(place.signature, "// ptx_snippets/mbarrier.cuh mbarrier_wait",
                        place.signature_length);
    assert_int_equal(place.lines_below, 2);

    /* Behind the block: its last line is to blame. */
    assert_true(gj_log_scan_ptx(ptx, 11, &place));
    assert_non_null(place.signature);
    assert_int_equal(place.lines_below, 3);

    /* The nearest block is not signed: the one before it must not be blamed. */
    assert_true(gj_log_scan_ptx(ptx, 13, &place));
    assert_null(place.signature);
}

/* -- From the log to the template ------------------------------------------------------------------------ */

static bool find_line(const void *map, int unit_line, struct gj_location *location)
{
    (void)map;
    if (unit_line == 9)
        return false;
    location->file = unit_line < 4 ? "templates/gemm.cuh" : "ptx_snippets/mbarrier.cuh";
    location->line = unit_line + 100;
    return true;
}

static void check_location(const gj_error *error, size_t i, const char *file, int line, int unit_line,
                           const char *message, const char *excerpt)
{
    assert_true(i < error->num_locations);
    assert_string_equal(error->locations[i].file, file);
    assert_int_equal(error->locations[i].line, line);
    assert_int_equal(error->locations[i].unit_line, unit_line);
    assert_string_equal(error->locations[i].message, message);
    assert_string_equal(error->locations[i].excerpt, excerpt);
}

static void locations_are_mapped(void **state)
{
    (void)state;
    static const char log[] = "unit(2): error: bad\n"
                              "unit(9): error: unmapped\n"
                              "unit(77): error: past the end\n"
                              "templates/a.cuh(5): error: by #line\n"
                              "ptxas application ptx input, line 8; error   : worse\n"
                              "ptxas application ptx input, line 13; error   : unsigned\n";
    const struct gj_compile_request request = {
        .unit =
            "one\n  two;\nthree\nasm(R\"ptx(\n // ptx_snippets/mbarrier.cuh mbarrier_wait\n  six\n seven\n",
        .lines = {find_line, NULL},
    };
    gj_error *error = NULL;
    gj_error_make(&error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "", "x");
    gj_diagnose_locations(&request, "unit", log, ptx, &error);
    assert_int_equal(error->num_locations, 5);
    check_location(error, 0, "templates/gemm.cuh", 102, 2, "bad", "two;");
    check_location(error, 1, "unit", 9, 9, "unmapped", "");
    check_location(error, 2, "ptx_snippets/mbarrier.cuh", 177, 77, "past the end", "");
    check_location(error, 3, "templates/a.cuh", 5, 0, "by #line", "");
    check_location(error, 4, "ptx_snippets/mbarrier.cuh", 107, 7, "worse", "bogus.op %r1;");
    gj_error_free(&error);

    /* Without a map and without PTX. */
    const struct gj_compile_request bare = {.unit = "one\n"};
    gj_error_make(&error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "", "x");
    gj_diagnose_locations(&bare, "unit", log, NULL, &error);
    assert_int_equal(error->num_locations, 4);
    check_location(error, 0, "unit", 2, 2, "bad", "");
    gj_error_free(&error);

    /* A snippet that the unit does not spell: its file is known all the same. */
    gj_error_make(&error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "", "x");
    gj_diagnose_locations(&bare, "unit", strstr(log, "ptxas"), ptx, &error);
    assert_int_equal(error->num_locations, 1);
    check_location(error, 0, "ptx_snippets/mbarrier.cuh", 0, 0, "worse", "bogus.op %r1;");
    gj_error_free(&error);
}

static void sentences(void **state)
{
    (void)state;
    struct gj_diagnosis diagnosis = gj_diagnose_log("unit(2): error: bad\nunit(3): error: worse\n", "unit");
    assert_int_equal(diagnosis.num_errors, 2);
    assert_int_equal(diagnosis.num_remarks, 0);
    assert_string_equal(diagnosis.sentence, "unit line 2: bad");
    free(diagnosis.sentence);

    diagnosis = gj_diagnose_log("ptxas info    : (C7508) 'setmaxnreg' ignored.\n", "unit");
    assert_int_equal(diagnosis.num_errors, 0);
    assert_int_equal(diagnosis.num_remarks, 1);
    assert_string_equal(diagnosis.sentence,
                        "C7508 (setmaxnreg ignored: the kernel has no launch bounds): 'setmaxnreg' ignored.");
    free(diagnosis.sentence);

    diagnosis = gj_diagnose_log("all well\n", "unit");
    assert_int_equal(diagnosis.num_errors + diagnosis.num_remarks, 0);
    assert_string_equal(diagnosis.sentence, "");
    free(diagnosis.sentence);
}

/* Any text is safe input: pieces of real messages, cut and joined at random, each in a block of its own size
 * so that the sanitizer sees a read past its end. */
static void random_text(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "ptxas ",
        "application ptx input, line ",
        "12",
        "; ",
        "error",
        " : ",
        "info    ",
        "(C75",
        "17",
        ") ",
        "(",
        "): ",
        "fatal",
        "unit",
        "\n",
        "\r",
        " ",
        "around line ",
        "99999999999",
        "// begin inline asm",
        "// end inline asm",
        "// a/b.c d",
        "//",
        "catastrophic error",
        "#20-D",
        "\t",
        "(C7",
    };
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[512] = "";
        size_t length = 0;
        for (int i = 0; i < 12; i++) {
            seed = seed * 1664525u + 1013904223u;
            const char *const piece = pieces[(seed >> 16) % COUNT(pieces)];
            memcpy(text + length, piece, strlen(piece));
            length += strlen(piece);
        }
        char *const copy = strndup(text, length - (seed >> 8) % 4);
        const char *rest = copy;
        struct gj_log_finding finding;
        while (gj_log_scan_next(&rest, &finding)) {
            assert_true(finding.text >= copy && finding.text + finding.text_length <= copy + strlen(copy));
            assert_true(finding.line >= 0);
        }
        struct gj_ptx_place place;
        for (int line = 0; line < 8; line++)
            if (gj_log_scan_ptx(copy, line, &place) && place.signature)
                assert_true(place.lines_below >= 0);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(front_end_errors),
        cmocka_unit_test(ptxas_errors),
        cmocka_unit_test(remarks),
        cmocka_unit_test(clean_logs),
        cmocka_unit_test(every_code_is_found),
        cmocka_unit_test(ptx_places),
        cmocka_unit_test(locations_are_mapped),
        cmocka_unit_test(sentences),
        cmocka_unit_test(random_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
