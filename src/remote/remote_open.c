/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a remote. */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "remote/remote_impl.h"

enum { CONNECT_MS = 500, TOTAL_MS = 3000, RETRY_MS = 60000 };

static int or_default(int given, int usual)
{
    return given > 0 ? given : usual;
}

/* The lines that a PUT has beyond libcurl's own. An empty Expect keeps libcurl from waiting a second for the
 * leave of servers that do not know that header. */
static struct curl_slist *make_put_headers(const struct gj_curl_api *curl)
{
    static const char *const lines[] = {"Expect:", "Content-Type: application/octet-stream"};
    struct curl_slist *headers = NULL;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct curl_slist *const longer = curl->curl_slist_append(headers, lines[i]);
        if (!longer) {
            curl->curl_slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

static gj_remote *make_remote(const struct gj_remote_params *params, const struct gj_log *log,
                              const struct gj_curl_api *curl)
{
    gj_remote *const remote = calloc(1, sizeof *remote);
    struct curl_slist *const headers = remote ? make_put_headers(curl) : NULL;
    if (!headers) {
        free(remote);
        return NULL;
    }
    remote->curl = curl;
    remote->put_headers = headers;
    if (log)
        remote->log = *log;
    remote->connect_ms = or_default(params->connect_ms, CONNECT_MS);
    remote->total_ms = or_default(params->total_ms, TOTAL_MS);
    remote->retry_ms = or_default(params->retry_ms, RETRY_MS);
    remote->upload = params->upload;
    remote->trust_environment = getauxval(AT_SECURE) == 0;
    remote->owner = getpid();
    pthread_mutex_init(&remote->mutex, NULL);
    pthread_cond_init(&remote->changed, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&remote->drained, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return remote;
}

gj_remote *gj_remote_open(const struct gj_remote_params *params, const struct gj_log *log, char **reason)
{
    struct gj_remote_url url;
    *reason = NULL;
    if (!gj_remote_url_parse(params->url ? params->url : "", &url, reason))
        return NULL;
    const struct gj_curl_api *const curl = gj_curl_open(reason);
    gj_remote *const remote = curl ? make_remote(params, log, curl) : NULL;
    if (remote)
        remote->url = url;
    else
        gj_remote_url_free(&url);
    return remote;
}

void gj_remote_close(gj_remote **remote)
{
    gj_remote *const closed = remote ? *remote : NULL;
    if (!closed)
        return;
    *remote = NULL;
    /* A child has neither the uploader nor connections of its own: closing them would tell the parent's peer.
     * It keeps the memory. */
    if (!gj_remote_is_ours(closed))
        return;
    gj_uploads_end(closed);
    gj_transfer_end(closed);
    closed->curl->curl_slist_free_all(closed->put_headers);
    pthread_cond_destroy(&closed->drained);
    pthread_cond_destroy(&closed->changed);
    pthread_mutex_destroy(&closed->mutex);
    gj_remote_url_free(&closed->url);
    free(closed);
}

const char *gj_remote_url(const gj_remote *remote)
{
    return remote->url.base;
}

bool gj_remote_is_ours(const gj_remote *remote)
{
    return remote->owner == getpid();
}

void gj_remote_count(gj_remote *remote, enum gj_remote_counter counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&remote->counters[counter], amount, memory_order_relaxed);
}

static uint64_t counted(const gj_remote *remote, enum gj_remote_counter counter)
{
    return atomic_load_explicit(&remote->counters[counter], memory_order_relaxed);
}

void gj_remote_counts(const gj_remote *remote, struct gj_remote_counts *counts)
{
    *counts = (struct gj_remote_counts){.hits = counted(remote, GJ_REMOTE_HITS),
                                        .misses = counted(remote, GJ_REMOTE_MISSES),
                                        .failures = counted(remote, GJ_REMOTE_FAILURES),
                                        .uploads = counted(remote, GJ_REMOTE_UPLOADS),
                                        .upload_failures = counted(remote, GJ_REMOTE_UPLOAD_FAILURES),
                                        .bytes_down = counted(remote, GJ_REMOTE_BYTES_DOWN),
                                        .bytes_up = counted(remote, GJ_REMOTE_BYTES_UP)};
}
