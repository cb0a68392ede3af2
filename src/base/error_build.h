/* SPDX-License-Identifier: Apache-2.0 */
/* How the library's own code makes gj_error objects.
 *
 * A fallible function returns enum gj_status and takes a trailing `gj_error **error` that may be NULL; its
 * results go through out-pointers that stay untouched on failure. */
#ifndef GJ_BASE_ERROR_BUILD_H
#define GJ_BASE_ERROR_BUILD_H

#include <gemmjit/error.h>

/* Sets *error (when error is not NULL and *error is NULL) and returns status. When memory runs out *error
 * stays NULL and the status still tells. Bytes that are no UTF-8 and control characters become \xNN in every
 * string of an error (newlines and tabs stay in what may have lines); quote long input by gj_utf8_quote. */
enum gj_status gj_error_make(gj_error **error, enum gj_status status, enum gj_stage stage, int origin_code,
                             const char *origin_name, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Additions to *error; no-ops when there is none or memory runs out. Strings are copied. */
void gj_error_set_detail(gj_error **error, const char *detail);
void gj_error_add_reason(gj_error **error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gj_error_add_location(gj_error **error, const struct gj_location *location);

/* Sets *copy, as gj_error_make does, to a copy of error (nothing when that is NULL). */
void gj_error_copy(gj_error **copy, const gj_error *error);

/* Fails from the current function with a sentence; the sentence is mandatory. */
#define GJ_FAIL(error, status, stage, ...) \
    return gj_error_make((error), (status), (stage), 0, "", __VA_ARGS__)

/* Forwards a failure. */
#define GJ_TRY(expression)                                 \
    do {                                                   \
        const enum gj_status gj_try_status = (expression); \
        if (gj_try_status != GJ_OK)                        \
            return gj_try_status;                          \
    } while (0)

#endif
