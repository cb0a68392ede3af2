/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a base URL more strictly than libcurl does, and takes the credentials out of it. */
#include "remote/remote_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/strbuf.h"
#include "base/utf8.h"

enum { MAX_URL_BYTES = 2000, MAX_PORT = 65535 };

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_CHARACTERS DIGITS LETTERS ".-_"
#define ADDRESS_CHARACTERS DIGITS "abcdefABCDEF:."

/* A piece of the text. */
struct span {
    const char *at;
    size_t length;
};

bool gj_remote_name_is_good(const char *name)
{
    const size_t length = strspn(name, DIGITS "abcdefghijklmnopqrstuvwxyz._-");
    return length > 0 && length < GJ_REMOTE_NAME_BYTES && name[length] == '\0' && name[0] != '.';
}

/* Appends the URL for a message. Up to the last @ all may be credentials, whatever the rest is; so may be
 * what is behind a ? or a #. */
static void show(struct gj_strbuf *out, const char *text)
{
    const char *const scheme_end = strstr(text, "://");
    const char *const rest = strrchr(text, '@');
    struct gj_strbuf shown = {0};
    if (rest) {
        if (scheme_end && scheme_end < rest)
            gj_strbuf_add(&shown, text, (size_t)(scheme_end - text) + 3);
        gj_strbuf_puts(&shown, "...");
        text = rest;
    }
    gj_strbuf_add(&shown, text, strcspn(text, "?#"));
    if (text[strcspn(text, "?#")] != '\0')
        gj_strbuf_puts(&shown, "?...");
    const struct gj_quote quote = gj_utf8_quote(shown.text ? shown.text : "", shown.length);
    gj_utf8_escape(out, quote.text, false);
    gj_strbuf_free(&shown);
}

/* What is wrong with the characters of a URL, or NULL. */
static const char *check_characters(const char *text)
{
    if (strlen(text) > MAX_URL_BYTES)
        return "is longer than 2000 characters";
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("\"<>\\^`{|}", *at))
            return "has a character that must be percent-encoded";
    if (strpbrk(text, "?#"))
        return "may have no ? and no #: the names of entries are appended to it";
    return NULL;
}

/* Whether a port, with its colon, is 1 to 65535; none is good too. */
static bool is_port(struct span port)
{
    if (port.length == 0)
        return true;
    unsigned value = 0;
    for (size_t i = 1; i < port.length; i++) {
        if (!strchr(DIGITS, port.at[i]) || value > MAX_PORT)
            return false;
        value = value * 10 + (unsigned)(port.at[i] - '0');
    }
    return port.at[0] == ':' && value >= 1 && value <= MAX_PORT;
}

static const char *check_host(struct span host)
{
    size_t length = 0;
    if (host.length > 0 && host.at[0] == '[') {
        length = 1 + strspn(host.at + 1, ADDRESS_CHARACTERS);
        if (length == 1 || host.at[length] != ']')
            return "has no address between [ and ]";
        length++;
    } else {
        length = strspn(host.at, HOST_CHARACTERS);
        if (length == 0)
            return "has no host";
    }
    if (length < host.length && host.at[length] != ':')
        return "has a host that is neither a name nor an address";
    if (!is_port((struct span){host.at + length, host.length - length}))
        return "has a port that is not a number from 1 to 65535";
    return NULL;
}

static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *const at = digit ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes %XX into a malloc'ed text; NULL with *failed when memory runs out, else when the text is bad. */
static char *decode(struct span text, bool *failed)
{
    char *const decoded = malloc(text.length + 1);
    *failed = !decoded;
    size_t length = 0;
    for (size_t i = 0; decoded && i < text.length; i++) {
        int value = (unsigned char)text.at[i];
        if (value == '%') {
            const int high = i + 2 < text.length ? hex_value(text.at[i + 1]) : -1;
            const int low = high >= 0 ? hex_value(text.at[i + 2]) : -1;
            value = low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (value < ' ' || value == 0x7f) {
            free(decoded);
            return NULL;
        }
        decoded[length++] = (char)value;
    }
    if (decoded)
        decoded[length] = '\0';
    return decoded;
}

/* Splits and decodes user:password. Returns what is wrong, or NULL. */
static const char *take_credentials(struct span text, struct gj_remote_url *url, bool *failed)
{
    static const char bad[] = "has a user or password with a % that is no code of a printable character";
    const char *const colon = memchr(text.at, ':', text.length);
    const size_t user_length = colon ? (size_t)(colon - text.at) : text.length;
    url->user = decode((struct span){text.at, user_length}, failed);
    if (!url->user)
        return bad;
    if (strchr(url->user, ':'))
        return "has a user with a colon in it, which HTTP cannot carry";
    if (!colon)
        return NULL;
    url->password = decode((struct span){colon + 1, text.length - user_length - 1}, failed);
    return url->password ? NULL : bad;
}

/* Fills *url. Returns what is wrong, or NULL; *failed when memory ran out. */
static const char *take_apart(const char *text, struct gj_remote_url *url, bool *failed)
{
    url->is_tls = strncasecmp(text, "https://", 8) == 0;
    if (!url->is_tls && strncasecmp(text, "http://", 7) != 0)
        return "does not begin with http:// or https://";
    const char *wrong = check_characters(text);
    if (wrong)
        return wrong;
    const char *const start = text + (url->is_tls ? 8 : 7);
    struct span host = {start, strcspn(start, "/")};
    const char *const at = memrchr(host.at, '@', host.length);
    if (at) {
        wrong = take_credentials((struct span){start, (size_t)(at - start)}, url, failed);
        host = (struct span){at + 1, host.length - (size_t)(at + 1 - start)};
    }
    if (!wrong)
        wrong = check_host(host);
    if (wrong)
        return wrong;
    struct gj_strbuf base = {0};
    gj_strbuf_printf(&base, "%s://%s", url->is_tls ? "https" : "http", host.at);
    while (base.length > 0 && base.text[base.length - 1] == '/')
        base.text[--base.length] = '\0';
    url->base = gj_strbuf_take(&base);
    *failed = !url->base;
    return NULL;
}

bool gj_remote_url_parse(const char *text, struct gj_remote_url *url, char **reason)
{
    bool failed = false;
    *url = (struct gj_remote_url){0};
    const char *const wrong = take_apart(text, url, &failed);
    if (!wrong && !failed)
        return true;
    gj_remote_url_free(url);
    *reason = NULL;
    if (failed)
        return false;
    struct gj_strbuf sentence = {0};
    gj_strbuf_puts(&sentence, "the URL '");
    show(&sentence, text);
    gj_strbuf_printf(&sentence, "' of the remote cache %s", wrong);
    *reason = gj_strbuf_take(&sentence);
    return false;
}

static void free_secret(char **secret)
{
    if (*secret)
        explicit_bzero(*secret, strlen(*secret));
    free(*secret);
    *secret = NULL;
}

void gj_remote_url_free(struct gj_remote_url *url)
{
    free(url->base);
    url->base = NULL;
    free_secret(&url->user);
    free_secret(&url->password);
}
