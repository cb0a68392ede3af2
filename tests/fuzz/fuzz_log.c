/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of NVRTC. What is found lies in the log, in order, and each line says the same alone. The input is a
 * log, PTX and a unit, separated by zero bytes; the log's messages are led through the other two. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "compile/diagnose.h"
#include "compile/log_scan.h"

static int count_newlines(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/* Whether a stretch lies in a text. */
static bool is_within(const char *at, size_t length, const char *text)
{
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)text, whole = strlen(text);
    return offset <= whole && length <= whole - offset;
}

static void check_finding(const struct gj_log_finding *finding, const char *log)
{
    REQUIRE(is_within(finding->text, finding->text_length, log));
    REQUIRE(memchr(finding->text, '\n', finding->text_length) == NULL);
    REQUIRE(finding->line >= 0);
    REQUIRE((finding->code[0] == '\0') == (finding->meaning[0] == '\0'));
    REQUIRE(finding->code[0] == '\0' || (strlen(finding->code) == 5 && strstr(log, finding->code)));
    switch (finding->kind) {
    case GJ_LOG_SOURCE:
        REQUIRE(is_within(finding->file, finding->file_length, log));
        REQUIRE(finding->file[finding->file_length] == '(');
        break;
    case GJ_LOG_OTHER:
        REQUIRE(finding->line == 0 && finding->file_length == 0);
        break;
    case GJ_LOG_REMARK:
        REQUIRE(finding->code[0] != '\0' && finding->file_length == 0);
        break;
    case GJ_LOG_PTX:
        REQUIRE(finding->file_length == 0);
        break;
    }
}

static void check_alone(const struct gj_log_finding *found, const char *line, size_t length)
{
    char *const alone = fuzz_text((const uint8_t *)line, length);
    const char *rest = alone;
    struct gj_log_finding finding = {0};
    REQUIRE(gj_log_scan_next(&rest, &finding));
    REQUIRE(finding.kind == found->kind && finding.line == found->line);
    REQUIRE(finding.text_length == found->text_length && strcmp(finding.code, found->code) == 0);
    REQUIRE(!gj_log_scan_next(&rest, &finding) && *rest == '\0');
    free(alone);
}

static int check_log(const char *log)
{
    int count = 0;
    struct gj_log_finding finding;
    for (const char *rest = log, *before = log; gj_log_scan_next(&rest, &finding); before = rest, count++) {
        REQUIRE(rest > before && finding.text >= before && finding.text <= rest);
        check_finding(&finding, log);
        const char *const end = finding.text + finding.text_length;
        const char *line = finding.text;
        while (line > log && line[-1] != '\n' && line[-1] != '\r')
            line--;
        check_alone(&finding, line, (size_t)(end - line));
    }
    return count;
}

static void check_place(const char *ptx, int number, int num_lines)
{
    struct gj_ptx_place place;
    REQUIRE(gj_log_scan_ptx(ptx, number, &place) == (number >= 1 && number <= num_lines));
    if (number < 1 || number > num_lines)
        return;
    REQUIRE(is_within(place.line, place.line_length, ptx));
    if (!place.signature)
        return;
    REQUIRE(is_within(place.signature, place.signature_length, ptx));
    REQUIRE(place.file > place.signature && place.file_length > 2);
    REQUIRE(place.file + place.file_length < place.signature + place.signature_length);
    REQUIRE(place.lines_below >= 0 && place.lines_below < num_lines);
}

static void check_diagnosis(const char *log, const char *ptx, const char *unit, int count)
{
    struct gj_diagnosis diagnosis = gj_diagnose_log(log, "unit");
    REQUIRE(diagnosis.num_errors + diagnosis.num_remarks == count && diagnosis.sentence != NULL);
    free(diagnosis.sentence);
    gj_error *error = NULL;
    gj_error_make(&error, GJ_ERR_COMPILE, GJ_STAGE_COMPILE, 0, "", "failed");
    const struct gj_compile_request request = {.unit = unit};
    gj_diagnose_locations(&request, "unit", log, ptx, &error);
    REQUIRE(error != NULL && error->num_locations <= (size_t)count);
    for (size_t i = 0; i < error->num_locations; i++) {
        const struct gj_location *const location = &error->locations[i];
        REQUIRE(location->line >= 0 && location->unit_line >= 0);
        REQUIRE(location->file && location->message && location->excerpt);
    }
    gj_error_free(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[3];
    size_t whole = 0;
    for (size_t i = 0; i < 3; i++) {
        texts[i] = fuzz_text(data, size);
        const size_t length = strlen(texts[i]), taken = length < size ? length + 1 : size;
        whole += length;
        data += taken;
        size -= taken;
    }
    fuzz_memory_begin();
    const int count = check_log(texts[0]);
    const int num_lines = count_newlines(texts[1]) + 1;
    for (int number = -1; number <= num_lines + 1; number += 1 + num_lines / 8)
        check_place(texts[1], number, num_lines);
    /* Each message may have an excerpt, in which a byte becomes four, of the one long line of PTX or unit. */
    check_diagnosis(texts[0], texts[1], texts[2], count);
    REQUIRE(fuzz_memory_end() <= 16 * whole * (size_t)(count + 1) + 4096 + 256 * (size_t)count);
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    return 0;
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    /* A log, PTX, a unit: one of each message, and what they point at. */
    static const char whole[] =
        "ptxas application ptx input, line 5; error   : Arguments mismatch for instruction 'mov'\n"
        "unit(2): error: identifier \"nope\" is undefined\r\n    p[0]=nope;\n"
        "ptxas info    : (C7510) Potential Performance Loss around line 7\n\0"
        ".version 8.0\n// begin inline asm\n\t// ptx_snippets/a.cuh b\n\tmov.b32 %r1;\n\tmov.u64 %r2;\n"
        "// end inline asm\nret;\n\0"
        "line 1\n    asm(R\"(\n// ptx_snippets/a.cuh b\nmov %0;\n)\");\n";
    if (idx > 0)
        return 0;
    memcpy(data, whole, sizeof whole);
    return sizeof whole;
}
