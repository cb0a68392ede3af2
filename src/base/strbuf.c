/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text whose failure is latched, so that a sequence of appends is checked once. */
#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY ((size_t)64)

/* Makes room for `extra` more bytes and the terminating zero. */
static bool reserve(struct gj_strbuf *buf, size_t extra)
{
    if (buf->failed)
        return false;
    if (extra >= SIZE_MAX / 2 - buf->length) {
        buf->failed = true;
        return false;
    }
    const size_t needed = buf->length + extra + 1;
    if (needed <= buf->capacity)
        return true;
    size_t capacity = buf->capacity > MIN_CAPACITY ? buf->capacity : MIN_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    char *const text = realloc(buf->text, capacity);
    if (!text) {
        buf->failed = true;
        return false;
    }
    buf->text = text;
    buf->capacity = capacity;
    return true;
}

void gj_strbuf_reserve(struct gj_strbuf *buf, size_t length)
{
    (void)reserve(buf, length);
}

void gj_strbuf_add(struct gj_strbuf *buf, const char *text, size_t length)
{
    if (!reserve(buf, length))
        return;
    if (length > 0)
        memcpy(buf->text + buf->length, text, length);
    buf->length += length;
    buf->text[buf->length] = '\0';
}

void gj_strbuf_add_line(struct gj_strbuf *buf, const char *text, size_t length)
{
    if (length == SIZE_MAX || !reserve(buf, length + 1)) {
        buf->failed = true;
        return;
    }
    if (length > 0)
        memcpy(buf->text + buf->length, text, length);
    buf->length += length + 1;
    buf->text[buf->length - 1] = '\n';
    buf->text[buf->length] = '\0';
}

void gj_strbuf_puts(struct gj_strbuf *buf, const char *text)
{
    gj_strbuf_add(buf, text, strlen(text));
}

void gj_strbuf_printf(struct gj_strbuf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gj_strbuf_vprintf(buf, format, args);
    va_end(args);
}

void gj_strbuf_vprintf(struct gj_strbuf *buf, const char *format, va_list args)
{
    va_list measuring;
    va_copy(measuring, args);
    const int length = vsnprintf(NULL, 0, format, measuring);
    va_end(measuring);
    if (length < 0) {
        buf->failed = true;
        return;
    }
    if (!reserve(buf, (size_t)length))
        return;
    vsnprintf(buf->text + buf->length, (size_t)length + 1, format, args);
    buf->length += (size_t)length;
}

char *gj_strbuf_take(struct gj_strbuf *buf)
{
    if (!buf->text)
        reserve(buf, 0);
    if (buf->failed) {
        gj_strbuf_free(buf);
        return NULL;
    }
    buf->text[buf->length] = '\0';
    char *const text = buf->text;
    *buf = (struct gj_strbuf){0};
    return text;
}

void gj_strbuf_free(struct gj_strbuf *buf)
{
    free(buf->text);
    *buf = (struct gj_strbuf){0};
}
