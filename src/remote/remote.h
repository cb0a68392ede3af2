/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the cache in a store that machines share: GET and PUT of <base url>/<name> over HTTP or HTTPS.
 *
 * The store is never a reason to fail or to hang: whatever the network does, a GET ends within total_ms with
 * a hit, a miss or a failure, and a dead server is left alone for a while. What is fetched is opaque here:
 * the caller checks it as it checks a local file. libcurl is opened with dlopen by the first gj_remote_open,
 * so a process without a remote pays nothing. Rules, set-up and defences: docs/remote_cache.md.
 *
 * Thread-safe but for gj_remote_close. In a child made by fork a remote of the parent is off: its connections
 * are the parent's. */
#ifndef GJ_REMOTE_REMOTE_H
#define GJ_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

typedef struct gj_remote gj_remote;

/* Zero everything, then set what should differ. Strings are copied. */
struct gj_remote_params {
    /* http:// or https:// base, e.g. "https://user:password@cache.example:8443/gemmjit/v1". A trailing slash
     * is optional; user and password are percent-encoded and never logged. */
    const char *url;
    bool upload;    /* gj_remote_put sends; else it does nothing */
    int connect_ms; /* for name, connection and TLS together. 0: 500 */
    int total_ms;   /* for a whole GET, a whole PUT, and for closing. 0: 3000 */
    int retry_ms;   /* how long a dead server is left alone. 0: 60000 */
};

/* Opens a remote; talks to nobody. log may be NULL, else it is copied and its function must outlive the
 * remote. Returns NULL with *reason, one malloc'ed sentence without credentials, when the URL is none that
 * can be used, the build has no libcurl, or libcurl cannot be opened; *reason is NULL when memory ran out. */
gj_remote *gj_remote_open(const struct gj_remote_params *params, const struct gj_log *log, char **reason);

/* Sends what is queued, for at most total_ms altogether; the rest is dropped with one warning. Then frees the
 * remote and sets *remote to NULL. NULL is legal. No other thread may use the remote any more. */
void gj_remote_close(gj_remote **remote);

/* Base URL without user and password, for messages. Lives as long as the remote. */
const char *gj_remote_url(const gj_remote *remote);

enum gj_remote_result {
    GJ_REMOTE_HIT,
    GJ_REMOTE_MISS,   /* the server answered that there is no such entry: 404, 410, or 403 */
    GJ_REMOTE_FAILED, /* no answer, another answer, or not asked because the server was dead just now */
};

/* Fetches an entry: blocks for at most total_ms. name has 1 to 200 characters of [0-9a-z._-] and no leading
 * dot; any other is a failure. On a hit *data is malloc'ed and *bytes, at most max_bytes, may be 0; both stay
 * untouched otherwise. A larger body is refused while it arrives. Each kind of failure is one warning; when
 * it comes again, a debug message. */
enum gj_remote_result gj_remote_get(gj_remote *remote, const char *name, size_t max_bytes, void **data,
                                    size_t *bytes);

/* Queues a copy of an entry for the one thread that uploads, and returns at once. Uploads that do not fit
 * into the queue (64 MiB), fail, or meet a dead server are dropped and counted. */
void gj_remote_put(gj_remote *remote, const char *name, const void *data, size_t bytes);

/* Waits until nothing is queued or being sent, at most most_ms. False when something still is. */
bool gj_remote_flush(gj_remote *remote, int most_ms);

/* What was done since the remote was opened. hits + misses + failures are the calls of gj_remote_get. */
struct gj_remote_counts {
    uint64_t hits, misses, failures;   /* failures: also those that did not ask the server */
    uint64_t uploads, upload_failures; /* entries sent; entries dropped for any reason */
    uint64_t bytes_down, bytes_up;     /* of the entries of hits and uploads */
};
void gj_remote_counts(const gj_remote *remote, struct gj_remote_counts *counts);

#endif
