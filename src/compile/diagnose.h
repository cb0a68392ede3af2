/* SPDX-License-Identifier: Apache-2.0 */
/* Leads the messages of a log back to the templates and snippets that a person can edit. */
#ifndef GJ_COMPILE_DIAGNOSE_H
#define GJ_COMPILE_DIAGNOSE_H

#include "compile/compile.h"

/* What a log says in all. */
struct gj_diagnosis {
    int num_errors;  /* lines that say error */
    int num_remarks; /* C75xx messages of a compile that succeeded */
    char *
        sentence; /* the first of them, for the error's message; freed with free; NULL when memory runs out */
};

/* Reads a log; program is the name that NVRTC was given. */
struct gj_diagnosis gj_diagnose_log(const char *log, const char *program);

/* Adds a location to *error for each message of the log that has one. program as above. ptx is the PTX that
 * the log's ptxas lines speak of, or NULL. */
void gj_diagnose_locations(const struct gj_compile_request *request, const char *program, const char *log,
                           const char *ptx, gj_error **error);

#endif
