/* SPDX-License-Identifier: Apache-2.0 */
/* From a line of a log to a line of a template, through the unit or through the PTX. */
#include "compile/diagnose.h"

#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "base/strbuf.h"
#include "compile/log_scan.h"

static bool names_unit(const struct gj_log_finding *finding, const char *program)
{
    return finding->file_length == strlen(program) &&
           memcmp(finding->file, program, finding->file_length) == 0;
}

struct gj_diagnosis gj_diagnose_log(const char *log, const char *program)
{
    struct gj_diagnosis diagnosis = {0};
    struct gj_strbuf sentence = {0};
    struct gj_log_finding finding;
    while (gj_log_scan_next(&log, &finding)) {
        if (finding.kind == GJ_LOG_REMARK)
            diagnosis.num_remarks++;
        else
            diagnosis.num_errors++;
        if (sentence.length > 0)
            continue;
        if (*finding.code)
            gj_strbuf_printf(&sentence, "%s (%s): ", finding.code, finding.meaning);
        if (finding.kind == GJ_LOG_SOURCE && !names_unit(&finding, program))
            gj_strbuf_printf(&sentence, "%.*s:%d: ", (int)finding.file_length, finding.file, finding.line);
        else if (finding.kind == GJ_LOG_SOURCE)
            gj_strbuf_printf(&sentence, "unit line %d: ", finding.line);
        else if (finding.line > 0)
            gj_strbuf_printf(&sentence, "PTX line %d: ", finding.line);
        gj_strbuf_add(&sentence, finding.text, finding.text_length);
    }
    diagnosis.sentence = gj_strbuf_take(&sentence);
    return diagnosis;
}

/* The text of a line of the unit, without indentation; "" when there is no such line. Freed with free. */
static char *copy_unit_line(const char *unit, int number)
{
    for (; number > 1 && unit; number--) {
        unit = strchr(unit, '\n');
        unit = unit ? unit + 1 : NULL;
    }
    if (!unit || number < 1)
        return strdup("");
    unit += strspn(unit, " \t");
    return strndup(unit, strcspn(unit, "\r\n"));
}

/* Asks the caller's map. The map may know the line but not its text. */
static bool look_up(const struct gj_line_lookup *lines, int unit_line, struct gj_location *location)
{
    struct gj_location found = {0};
    if (!lines->find || unit_line < 1 || !lines->find(lines->map, unit_line, &found))
        return false;
    location->file = found.file;
    location->line = found.line;
    if (found.excerpt && *found.excerpt)
        location->excerpt = found.excerpt;
    return true;
}

static void add_source_location(const struct gj_compile_request *request, const char *program,
                                const struct gj_log_finding *finding, const char *message, gj_error **error)
{
    char *const file = strndup(finding->file, finding->file_length);
    char *const excerpt = copy_unit_line(request->unit, finding->line);
    struct gj_location location = {.file = file, .line = finding->line, .message = message};
    /* Another name than the unit's comes from a #line directive: it is the template's already. */
    if (names_unit(finding, program)) {
        location.unit_line = finding->line;
        location.excerpt = excerpt;
        look_up(&request->lines, finding->line, &location);
    }
    gj_error_add_location(error, &location);
    free(file);
    free(excerpt);
}

/* Line of the unit that holds the signature, or 0. A raw string keeps its lines on the way into the PTX, so
 * the message is as far below the signature there as it is in the unit. */
static int find_signature(const char *unit, const struct gj_ptx_place *place)
{
    const char *const at = memmem(unit, strlen(unit), place->signature, place->signature_length);
    if (!at)
        return 0;
    int line = 1;
    for (const char *c = unit; c < at; c++)
        line += *c == '\n';
    return line;
}

static void add_ptx_location(const struct gj_compile_request *request, const struct gj_log_finding *finding,
                             const char *message, const char *ptx, gj_error **error)
{
    struct gj_ptx_place place;
    if (!ptx || !gj_log_scan_ptx(ptx, finding->line, &place) || !place.signature)
        return;
    char *const file = strndup(place.file, place.file_length);
    char *const excerpt = strndup(place.line, place.line_length);
    struct gj_location location = {.file = file, .message = message, .excerpt = excerpt};
    const int signature_line = find_signature(request->unit, &place);
    if (signature_line > 0) {
        location.unit_line = signature_line + place.lines_below;
        look_up(&request->lines, location.unit_line, &location);
    }
    /* What ptxas saw, with its register names, says more than the template's operand numbers. */
    location.excerpt = excerpt;
    gj_error_add_location(error, &location);
    free(file);
    free(excerpt);
}

void gj_diagnose_locations(const struct gj_compile_request *request, const char *program, const char *log,
                           const char *ptx, gj_error **error)
{
    struct gj_log_finding finding;
    while (gj_log_scan_next(&log, &finding)) {
        if (finding.line <= 0)
            continue;
        char *const message = strndup(finding.text, finding.text_length);
        if (finding.kind == GJ_LOG_SOURCE)
            add_source_location(request, program, &finding, message, error);
        else
            add_ptx_location(request, &finding, message, ptx, error);
        free(message);
    }
}
