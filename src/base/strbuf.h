/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text with a latched failure: appending after an allocation failed does nothing, so a sequence of
 * appends is checked once at its end. */
#ifndef GJ_BASE_STRBUF_H
#define GJ_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise before use. text is zero-terminated once anything was appended, else NULL. */
struct gj_strbuf {
    char *text;
    size_t length, capacity;
    bool failed; /* an allocation failed; the text is incomplete */
};

/* Room for `length` more bytes, so that appending them moves nothing. */
void gj_strbuf_reserve(struct gj_strbuf *buf, size_t length);
void gj_strbuf_add(struct gj_strbuf *buf, const char *text, size_t length);
/* The text and a newline. */
void gj_strbuf_add_line(struct gj_strbuf *buf, const char *text, size_t length);
void gj_strbuf_puts(struct gj_strbuf *buf, const char *text);
void gj_strbuf_printf(struct gj_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gj_strbuf_vprintf(struct gj_strbuf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Hands the text to the caller (free it with free) and empties the buffer. NULL if an allocation failed.
 * An empty buffer gives "". */
char *gj_strbuf_take(struct gj_strbuf *buf);
void gj_strbuf_free(struct gj_strbuf *buf);

#endif
