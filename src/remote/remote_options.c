/* SPDX-License-Identifier: Apache-2.0 */
/* What libcurl is asked for: the request, its limits, and what the server may do with it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "remote/remote_transfer.h"

enum {
    MAX_REDIRECTS = 3,
    MAX_HEADERS = 64 << 10,
    MAX_IGNORED = 64 << 10, /* bytes of an answer that is no entry; keeping the connection is worth as much */
    FIRST_CAPACITY = 64 << 10,
    LOW_SPEED_BYTES = 1000, /* a second, over half of total_ms but at least 2 seconds */
};

/* -- Callbacks --------------------------------------------------------------------------------------- */

/* A program that this process starts must not inherit the connection, and what the process says on a standard
 * stream that was closed must not go to the server. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)user, (void)purpose;
    const int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (opened < 0 || opened > STDERR_FILENO)
        return opened;
    const int moved = fcntl(opened, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(opened);
    return moved < 0 ? CURL_SOCKET_BAD : moved;
}

/* Makes room by what arrived, whatever the server announced. */
static bool reserve(struct gj_body *body, size_t extra)
{
    if (extra > body->max_bytes - body->bytes) {
        body->is_too_large = true;
        return false;
    }
    if (extra <= body->capacity - body->bytes)
        return true;
    size_t capacity = body->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : body->capacity;
    while (capacity - body->bytes < extra)
        capacity = capacity <= body->max_bytes / 2 ? capacity * 2 : body->max_bytes;
    if (capacity > body->max_bytes)
        capacity = body->max_bytes;
    unsigned char *const data = realloc(body->data, capacity);
    if (!data) {
        body->no_memory = true;
        return false;
    }
    body->data = data;
    body->capacity = capacity;
    return true;
}

/* Called for each line, also for the empty one at the end: libcurl takes an answer for whole that ends amid
 * its headers. */
static size_t receive_header(char *line, size_t one, size_t bytes, void *user)
{
    struct gj_transfer *const transfer = user;
    (void)one; /* is 1 */
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0)
        transfer->has_all_headers = false;
    else if (bytes > 0 && (line[0] == '\r' || line[0] == '\n'))
        transfer->has_all_headers = true;
    transfer->header_bytes += bytes;
    return transfer->header_bytes <= MAX_HEADERS ? bytes : 0;
}

static size_t receive(char *data, size_t one, size_t bytes, void *user)
{
    struct gj_transfer *const transfer = user;
    (void)one; /* is 1 */
    if (!transfer->body || gj_transfer_status(transfer) != 200) {
        transfer->ignored += bytes;
        return transfer->ignored <= MAX_IGNORED ? bytes : 0;
    }
    if (bytes == 0 || !reserve(transfer->body, bytes))
        return 0;
    memcpy(transfer->body->data + transfer->body->bytes, data, bytes);
    transfer->body->bytes += bytes;
    return bytes;
}

static size_t send_more(char *data, size_t one, size_t capacity, void *user)
{
    struct gj_transfer *const transfer = user;
    const size_t left = transfer->upload->bytes - transfer->sent;
    const size_t bytes = left < one * capacity ? left : one * capacity;
    memcpy(data, transfer->upload->data + transfer->sent, bytes);
    transfer->sent += bytes;
    return bytes;
}

/* libcurl begins anew when a kept connection turns out to be closed. */
static int seek_upload(void *user, curl_off_t offset, int origin)
{
    struct gj_transfer *const transfer = user;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->upload->bytes)
        return CURL_SEEKFUNC_CANTSEEK;
    transfer->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* -- Options ----------------------------------------------------------------------------------------- */

static void set_number(struct gj_transfer *transfer, CURLoption option, long value)
{
    if (transfer->curl->curl_easy_setopt(transfer->handle, option, value) != CURLE_OK)
        transfer->ok = false;
}

/* Texts are copied by libcurl, other objects are not. */
static void set_object(struct gj_transfer *transfer, CURLoption option, const void *value)
{
    if (transfer->curl->curl_easy_setopt(transfer->handle, option, value) != CURLE_OK)
        transfer->ok = false;
}

static void set_size(struct gj_transfer *transfer, CURLoption option, size_t value)
{
    const curl_off_t size = value > INT64_MAX ? INT64_MAX : (curl_off_t)value;
    if (transfer->curl->curl_easy_setopt(transfer->handle, option, size) != CURLE_OK)
        transfer->ok = false;
}

static void set_limits(struct gj_transfer *transfer, int limit_ms)
{
    const gj_remote *const remote = transfer->remote;
    set_number(transfer, CURLOPT_NOSIGNAL, 1);
    set_number(transfer, CURLOPT_CONNECTTIMEOUT_MS, remote->connect_ms);
    set_number(transfer, CURLOPT_TIMEOUT_MS, limit_ms);
    set_number(transfer, CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED_BYTES);
    set_number(transfer, CURLOPT_LOW_SPEED_TIME, remote->total_ms < 4000 ? 2 : remote->total_ms / 2000);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A name server that is silent would hold libcurl beyond every limit. Older ones do not know this. */
    (void)transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_QUICK_EXIT, 1L);
#endif
}

static void set_safety(struct gj_transfer *transfer)
{
    const gj_remote *const remote = transfer->remote;
    const long redirect = remote->url.is_tls ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS;
    set_number(transfer, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    set_number(transfer, CURLOPT_REDIR_PROTOCOLS, redirect);
    set_number(transfer, CURLOPT_MAXREDIRS, MAX_REDIRECTS);
    set_number(transfer, CURLOPT_DISALLOW_USERNAME_IN_URL, 1);
    set_number(transfer, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    set_number(transfer, CURLOPT_HTTP09_ALLOWED, 0);
    set_number(transfer, CURLOPT_SSL_VERIFYPEER, 1);
    set_number(transfer, CURLOPT_SSL_VERIFYHOST, 2);
    set_number(transfer, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    if (transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_OPENSOCKETFUNCTION, open_socket) !=
        CURLE_OK)
        transfer->ok = false;
}

static void set_identity(struct gj_transfer *transfer)
{
    const gj_remote *const remote = transfer->remote;
    set_object(transfer, CURLOPT_USERAGENT, "gemmjit/" GJ_VERSION);
    if (remote->url.user) {
        set_object(transfer, CURLOPT_USERNAME, remote->url.user);
        set_object(transfer, CURLOPT_PASSWORD, remote->url.password ? remote->url.password : "");
    } else if (remote->trust_environment) {
        set_number(transfer, CURLOPT_NETRC, CURL_NETRC_OPTIONAL);
    }
    if (!remote->trust_environment)
        set_object(transfer, CURLOPT_PROXY, "");
}

static void set_target(struct gj_transfer *transfer, const char *name)
{
    struct gj_strbuf url = {0};
    gj_strbuf_printf(&url, "%s/%s", transfer->remote->url.base, name);
    if (url.failed)
        transfer->ok = false;
    else
        set_object(transfer, CURLOPT_URL, url.text);
    gj_strbuf_free(&url);
}

static void set_get(struct gj_transfer *transfer)
{
    set_number(transfer, CURLOPT_FOLLOWLOCATION, 1);
    if (transfer->body->max_bytes > 0) /* 0 would mean no limit */
        set_size(transfer, CURLOPT_MAXFILESIZE_LARGE, transfer->body->max_bytes);
}

static void set_put(struct gj_transfer *transfer)
{
    set_number(transfer, CURLOPT_UPLOAD, 1);
    set_number(transfer, CURLOPT_FOLLOWLOCATION, 0); /* 303 would make a GET of it */
    set_size(transfer, CURLOPT_INFILESIZE_LARGE, transfer->upload->bytes);
    set_object(transfer, CURLOPT_HTTPHEADER, transfer->remote->put_headers);
    set_object(transfer, CURLOPT_READDATA, transfer);
    set_object(transfer, CURLOPT_SEEKDATA, transfer);
    if (transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_READFUNCTION, send_more) != CURLE_OK ||
        transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_SEEKFUNCTION, seek_upload) != CURLE_OK)
        transfer->ok = false;
}

void gj_transfer_prepare(struct gj_transfer *transfer, const char *name, int limit_ms)
{
    transfer->ok = true;
    set_object(transfer, CURLOPT_ERRORBUFFER, transfer->fault->detail);
    set_limits(transfer, limit_ms);
    set_safety(transfer);
    set_identity(transfer);
    set_target(transfer, name);
    set_object(transfer, CURLOPT_WRITEDATA, transfer);
    set_object(transfer, CURLOPT_HEADERDATA, transfer);
    if (transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_WRITEFUNCTION, receive) != CURLE_OK ||
        transfer->curl->curl_easy_setopt(transfer->handle, CURLOPT_HEADERFUNCTION, receive_header) !=
            CURLE_OK)
        transfer->ok = false;
    if (transfer->body)
        set_get(transfer);
    else
        set_put(transfer);
}
