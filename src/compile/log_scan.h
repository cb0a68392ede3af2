/* SPDX-License-Identifier: Apache-2.0 */
/* Finds in an NVRTC log what makes a compile fail: errors, and remarks that a kernel was pessimised. */
#ifndef GJ_COMPILE_LOG_SCAN_H
#define GJ_COMPILE_LOG_SCAN_H

#include <stdbool.h>
#include <stddef.h>

enum gj_log_kind {
    GJ_LOG_SOURCE, /* "NAME(LINE): error: ...": line is one of the unit */
    GJ_LOG_PTX,    /* "ptxas application ptx input, line N; error : ...": line is one of the PTX */
    GJ_LOG_OTHER,  /* an error without a line */
    GJ_LOG_REMARK, /* "ptxas info : (C75xx) ...": NVRTC succeeds, but the code is not what was asked for */
};

/* One finding. The texts lie in the scanned log and are not zero-terminated. */
struct gj_log_finding {
    enum gj_log_kind kind;
    int line;         /* 1-based; 0 when the message names none */
    const char *file; /* GJ_LOG_SOURCE: the NAME */
    size_t file_length;
    const char *text; /* the message without its prefix */
    size_t text_length;
    char code[6];        /* "C7510"; "" when the message has none */
    const char *meaning; /* what the code means; "" without a code. Static storage */
};

/* Reads the next finding at or after *rest, which starts as the zero-terminated log and moves on.
 * Returns false at the end. */
bool gj_log_scan_next(const char **rest, struct gj_log_finding *finding);

/* The codes that are known, in ascending order, for the documentation and its test. */
struct gj_log_code {
    const char *code, *meaning;
};
const struct gj_log_code *gj_log_scan_codes(size_t *count);

/* Where a line of PTX stands: snippets sign themselves with a comment as the first line of their asm text,
 * "// ptx_snippets/mbarrier.cuh mbarrier_wait", which NVRTC carries into the PTX. */
struct gj_ptx_place {
    const char *line; /* text of the line, without indentation or newline; not zero-terminated */
    size_t line_length;
    const char *signature; /* "// FILE FUNCTION"; NULL when the nearest asm block is not signed */
    size_t signature_length;
    const char *file; /* FILE */
    size_t file_length;
    int lines_below; /* how many lines the message is below the signature */
};

/* Finds line `number` (1-based) of a zero-terminated PTX text and the inline asm block at or before it.
 * Returns false when the text has no such line. */
bool gj_log_scan_ptx(const char *ptx, int number, struct gj_ptx_place *place);

#endif
