/* SPDX-License-Identifier: Apache-2.0 */
/* Formats one message and hands it to the caller's log callback as one line. */
#include "base/log.h"

#include <stdarg.h>

#include "base/strbuf.h"

void gj_log_printf(const struct gj_log *log, enum gj_log_level level, const char *format, ...)
{
    if (!log || !log->fn)
        return;
    struct gj_strbuf text = {0};
    va_list args;
    va_start(args, format);
    gj_strbuf_vprintf(&text, format, args);
    va_end(args);
    if (text.failed) {
        log->fn(log->user, level, "(out of memory while formatting a message)");
    } else {
        /* The callback is promised one line; texts of the loader or the compiler may hold several. */
        while (text.length > 0 && text.text[text.length - 1] == '\n')
            text.text[--text.length] = '\0';
        for (size_t i = 0; i < text.length; i++)
            if (text.text[i] == '\n' || text.text[i] == '\r')
                text.text[i] = ' ';
        log->fn(log->user, level, text.text);
    }
    gj_strbuf_free(&text);
}
