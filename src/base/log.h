/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's log callback, as the modules use it. */
#ifndef GJ_BASE_LOG_H
#define GJ_BASE_LOG_H

#include <gemmjit/context.h>

/* NULL function: silent. */
struct gj_log {
    gj_log_fn fn;
    void *user;
};

void gj_log_printf(const struct gj_log *log, enum gj_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
