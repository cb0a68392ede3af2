/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 in texts that come from outside: what is valid, how the rest is shown, and cutting what is quoted. */
#ifndef GJ_BASE_UTF8_H
#define GJ_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/* Bytes of the UTF-8 sequence at `at`; 0 when there is none, also at the terminating zero. Never reads past a
 * terminating zero. */
size_t gj_utf8_length(const char *at);

/* Whether the sequence at `at`, `length` bytes long, is a control character (C0, DEL, C1). */
bool gj_utf8_is_control(const char *at, size_t length);

/* Appends the text with \xNN for each byte of a control character and each byte that is not UTF-8. With
 * `lines` newlines and tabs stay. What it appends is stable under a second call. */
void gj_utf8_escape(struct gj_strbuf *out, const char *text, bool lines);

/* The start of a text for quoting in a message: at most GJ_UTF8_QUOTE_BYTES, cut between characters, with
 * "..." when something was cut. */
#define GJ_UTF8_QUOTE_BYTES 100
struct gj_quote {
    char text[GJ_UTF8_QUOTE_BYTES + sizeof("...")];
};
struct gj_quote gj_utf8_quote(const char *text, size_t length);

#endif
