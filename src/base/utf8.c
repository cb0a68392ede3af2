/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: one table of the valid sequences, used for checking, escaping and cutting. */
#include "base/utf8.h"

#include <string.h>

size_t gj_utf8_length(const char *at)
{
    static const struct {
        unsigned char low, high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *const bytes = (const unsigned char *)at;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (bytes[0] < forms[i].low || bytes[0] > forms[i].high)
            continue;
        if (forms[i].length > 1 && (bytes[1] < forms[i].second_low || bytes[1] > forms[i].second_high))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((bytes[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

bool gj_utf8_is_control(const char *at, size_t length)
{
    const unsigned char first = (unsigned char)at[0];
    if (length == 1)
        return first < 0x20 || first == 0x7f;
    return length == 2 && first == 0xc2 && (unsigned char)at[1] < 0xa0; /* U+0080 to U+009F */
}

void gj_utf8_escape(struct gj_strbuf *out, const char *text, bool lines)
{
    for (const char *at = text; *at;) {
        const size_t length = gj_utf8_length(at);
        const bool is_layout = lines && (*at == '\n' || *at == '\t');
        if (length > 0 && (is_layout || !gj_utf8_is_control(at, length))) {
            gj_strbuf_add(out, at, length);
            at += length;
            continue;
        }
        for (const char *const end = at + (length ? length : 1); at < end; at++)
            gj_strbuf_printf(out, "\\x%02x", (unsigned)(unsigned char)*at);
    }
}

struct gj_quote gj_utf8_quote(const char *text, size_t length)
{
    struct gj_quote quote;
    const size_t whole = strnlen(text, length);
    size_t kept = whole < GJ_UTF8_QUOTE_BYTES ? whole : GJ_UTF8_QUOTE_BYTES;
    /* Back to the start of the character that the cut is in; other bytes may be cut anywhere. */
    for (size_t back = 1; kept < whole && back <= 3 && back <= kept; back++) {
        const size_t character = gj_utf8_length(text + kept - back);
        if (character > back)
            kept -= back;
        if (character > 0)
            break;
    }
    memcpy(quote.text, text, kept);
    memcpy(quote.text + kept, kept < whole ? "..." : "", kept < whole ? sizeof("...") : 1);
    return quote;
}
