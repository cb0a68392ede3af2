/* SPDX-License-Identifier: Apache-2.0 */
/* Line-wise reading of NVRTC logs and of the PTX they refer to. */
#include "compile/log_scan.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#define CODE_LENGTH 5 /* "C7510" */

/* Messages of ptxas that cost the kernel its speed or its register split (seen with NVRTC 12.3, 12.8 and
 * 13.0). They come while nvrtcCompileProgram says success, so nothing but the log tells. */
static const struct gj_log_code codes[] = {
    {"C7504", "setmaxnreg ignored: the unit was compiled as relocatable or with -Ofast-compile"},
    {"C7505", "setmaxnreg ignored: the unit was compiled for debugging"},
    {"C7507", "setmaxnreg ignored: the raised register count is below what the code needs"},
    {"C7508", "setmaxnreg ignored: the kernel has no launch bounds"},
    {"C7509", "wgmma serialised: the kernel calls an external function"},
    {"C7510", "wgmma serialised: the kernel calls a function (printf or assert, in any branch)"},
    {"C7511", "wgmma serialised: too few registers for the wgmma pipeline"},
    {"C7512", "wgmma serialised: too few registers for the function"},
    {"C7514", "wgmma serialised: accumulators are read while wgmma is in flight, or indexed at run time"},
    {"C7515", "wgmma serialised: accumulators are written while wgmma is in flight"},
    {"C7517", "wgmma wait injected: accumulators are used without wgmma.wait_group"},
    {"C7519", "wgmma arrive injected: wgmma.fence is missing"},
    {"C7520", "wgmma serialised: an injected arrive stands in a divergent path"},
    {"C7602", "too few registers for one wgmma instruction: use fewer threads or a narrower tile"},
};

const struct gj_log_code *gj_log_scan_codes(size_t *count)
{
    *count = sizeof(codes) / sizeof(codes[0]);
    return codes;
}

/* -- Reading pieces of a line, never past `end` ---------------------------------------------------------- */

static bool take_text(const char **at, const char *end, const char *text)
{
    const size_t length = strlen(text);
    if ((size_t)(end - *at) < length || memcmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool take_number(const char **at, const char *end, int *number)
{
    const char *const start = *at;
    int value = 0;
    while (*at < end && isdigit((unsigned char)**at)) {
        const int digit = **at - '0';
        if (value > (INT_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
        ++*at;
    }
    *number = value;
    return *at > start;
}

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && (**at == ' ' || **at == '\t'))
        ++*at;
}

static const char *find_text(const char *at, const char *end, const char *text)
{
    return at < end ? memmem(at, (size_t)(end - at), text, strlen(text)) : NULL;
}

/* Reads "error : ", "fatal   : " and so on; the front end adds words before "error". */
static bool take_severity(const char **at, const char *end)
{
    static const char *const words[] = {"error", "fatal", "catastrophic error", "internal error"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const char *after = *at;
        if (!take_text(&after, end, words[i]))
            continue;
        skip_blanks(&after, end);
        /* "error #20-D: ..." is how the front end writes an error that can be suppressed. */
        if (after < end && *after == '#')
            while (after < end && *after != ':')
                after++;
        if (!take_text(&after, end, ":"))
            continue;
        skip_blanks(&after, end);
        *at = after;
        return true;
    }
    return false;
}

/* -- One line of a log ----------------------------------------------------------------------------------- */

static void set_text(struct gj_log_finding *finding, const char *at, const char *end)
{
    finding->text = at;
    finding->text_length = (size_t)(end - at);
}

static const char *meaning_of(const char *code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (memcmp(code, codes[i].code, CODE_LENGTH) == 0)
            return codes[i].meaning;
    /* The whole family is about nothing else, so an unknown member of it counts too. */
    return memcmp(code, "C75", 3) == 0 ? "wgmma or setmaxnreg changed, in a way this version does not know"
                                       : NULL;
}

/* Looks up "(Cdddd)". */
static bool find_code(const char *at, const char *end, struct gj_log_finding *finding)
{
    for (; (at = find_text(at, end, "(C7")) != NULL; at++) {
        const char *const code = at + 1;
        if (end - code <= CODE_LENGTH || code[CODE_LENGTH] != ')')
            continue;
        const char *const meaning = meaning_of(code);
        if (!meaning)
            continue;
        memcpy(finding->code, code, CODE_LENGTH);
        finding->code[CODE_LENGTH] = '\0';
        finding->meaning = meaning;
        return true;
    }
    return false;
}

/* "NAME(LINE): error: TEXT" */
static bool read_source_line(const char *line, const char *end, struct gj_log_finding *finding)
{
    for (const char *open = line; (open = memchr(open, '(', (size_t)(end - open))) != NULL; open++) {
        const char *at = open + 1;
        int number;
        if (!take_number(&at, end, &number) || !take_text(&at, end, "): ") || !take_severity(&at, end))
            continue;
        finding->kind = GJ_LOG_SOURCE;
        finding->line = number;
        finding->file = line;
        finding->file_length = (size_t)(open - line);
        set_text(finding, at, end);
        return true;
    }
    return false;
}

/* "ptxas application ptx input, line N; error   : TEXT", "ptxas info    : (C7517) TEXT", "ptxas fatal   :
 * TEXT" */
static bool read_ptxas_line(const char *line, const char *end, struct gj_log_finding *finding)
{
    const char *at = line;
    if (!take_text(&at, end, "ptxas "))
        return false;
    const char *place = find_text(at, end, ", line ");
    if (place) {
        place += strlen(", line ");
        int number;
        if (take_number(&place, end, &number) && take_text(&place, end, "; ") && take_severity(&place, end)) {
            finding->kind = GJ_LOG_PTX;
            finding->line = number;
            find_code(place, end, finding);
            set_text(finding, place, end);
            return true;
        }
    }
    skip_blanks(&at, end);
    if (take_severity(&at, end)) {
        if (find_text(at, end, "aborted due to errors"))
            return false; /* the sum of the errors above it */
        finding->kind = GJ_LOG_OTHER;
        find_code(at, end, finding);
        set_text(finding, at, end);
        return true;
    }
    if (!find_code(at, end, finding))
        return false;
    finding->kind = GJ_LOG_REMARK;
    const char *const text = find_text(at, end, ") ");
    set_text(finding, text ? text + 2 : at, end);
    place = find_text(at, end, "around line ");
    if (place) {
        place += strlen("around line ");
        int number;
        if (take_number(&place, end, &number))
            finding->line = number;
    }
    return true;
}

/* "nvrtc: error: TEXT", and whatever else says error at the start of a line. */
static bool read_other_line(const char *line, const char *end, struct gj_log_finding *finding)
{
    const char *at = line;
    if (!take_severity(&at, end)) {
        at = find_text(line, end, ": ");
        if (!at)
            return false;
        at += 2;
        if (!take_severity(&at, end))
            return false;
    }
    finding->kind = GJ_LOG_OTHER;
    set_text(finding, at, end);
    return true;
}

bool gj_log_scan_next(const char **rest, struct gj_log_finding *finding)
{
    while (**rest) {
        const char *const line = *rest;
        const char *const end = line + strcspn(line, "\r\n");
        *rest = *end ? end + 1 : end;
        /* Indented lines quote the source or continue a message. */
        if (end == line || *line == ' ' || *line == '\t')
            continue;
        *finding = (struct gj_log_finding){.file = "", .text = "", .meaning = ""};
        if (read_ptxas_line(line, end, finding))
            return true;
        if (strncmp(line, "ptxas ", 6) == 0)
            continue;
        if (read_source_line(line, end, finding) || read_other_line(line, end, finding))
            return true;
    }
    return false;
}

/* -- PTX ------------------------------------------------------------------------------------------------- */

/* Start of the text and end of the line at `line`, both without blanks around. */
static const char *trimmed(const char *line, size_t *length)
{
    const char *end = line + strcspn(line, "\r\n");
    skip_blanks(&line, end);
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *length = (size_t)(end - line);
    return line;
}

static const char *next_line(const char *line)
{
    const char *const newline = strchr(line, '\n');
    return newline ? newline + 1 : NULL;
}

/* "// FILE FUNCTION", where FILE has a slash and a dot: no comment that NVRTC writes looks like this. */
static bool read_signature(const char *line, struct gj_ptx_place *place)
{
    size_t length;
    const char *const text = trimmed(line, &length);
    const char *const end = text + length;
    const char *at = text;
    if (!take_text(&at, end, "//"))
        return false;
    skip_blanks(&at, end);
    const char *const file = at;
    while (at < end && *at != ' ' && *at != '\t')
        at++;
    if (at == end || !memchr(file, '/', (size_t)(at - file)) || !memchr(file, '.', (size_t)(at - file)))
        return false;
    place->signature = text;
    place->signature_length = length;
    place->file = file;
    place->file_length = (size_t)(at - file);
    return true;
}

bool gj_log_scan_ptx(const char *ptx, int number, struct gj_ptx_place *place)
{
    static const char begin[] = "// begin inline asm", end[] = "// end inline asm";
    *place = (struct gj_ptx_place){.line = ""};
    bool awaited = false; /* between the start of an asm block and its first line with text */
    bool inside = false;
    int signed_at = 0, last_inside = 0;
    int line_number = 1;
    const char *line = ptx;
    for (; line && line_number <= number; line = next_line(line), line_number++) {
        place->line = trimmed(line, &place->line_length);
        if (strncmp(place->line, begin, strlen(begin)) == 0) {
            awaited = inside = true;
            place->signature = NULL;
            continue;
        }
        if (strncmp(place->line, end, strlen(end)) == 0)
            awaited = inside = false;
        if (inside)
            last_inside = line_number;
        if (awaited && place->line_length > 0) {
            awaited = false;
            if (read_signature(line, place))
                signed_at = line_number;
        }
    }
    if (number < 1 || line_number <= number)
        return false;
    /* A missing semicolon shows on the first instruction after the block: then blame the block's last line.
     */
    if (place->signature)
        place->lines_below = (last_inside < number ? last_inside : number) - signed_at;
    return true;
}
