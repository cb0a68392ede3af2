/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/remote share: the remote object, faults and pauses, one transfer, the queue. */
#ifndef GJ_REMOTE_REMOTE_IMPL_H
#define GJ_REMOTE_REMOTE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "remote/curl_api.h"
#include "remote/remote.h"
#include "remote/remote_url.h"

/* -- Faults ------------------------------------------------------------------------------------------ */

enum gj_remote_way { GJ_REMOTE_DOWN, GJ_REMOTE_UP, GJ_REMOTE_NUM_WAYS };

enum gj_remote_fault_kind {
    GJ_FAULT_NONE,
    GJ_FAULT_CONNECT,   /* no connection, or it was lost */
    GJ_FAULT_TIMEOUT,   /* one of the limits of time */
    GJ_FAULT_TLS,       /* no TLS, or a certificate that is not trusted */
    GJ_FAULT_SERVER,    /* status 5xx */
    GJ_FAULT_STATUS,    /* any other status that is no answer to the question */
    GJ_FAULT_PROTOCOL,  /* no HTTP, or a redirect that is not followed */
    GJ_FAULT_FORBIDDEN, /* status 403 of a GET: a miss, but worth a word */
    GJ_FAULT_TOO_LARGE,
    GJ_FAULT_CUT, /* the body ended early */
    GJ_FAULT_MEMORY,
    GJ_FAULT_NAME,
    GJ_FAULT_QUEUE,  /* full */
    GJ_FAULT_CLOSED, /* the remote was closed before the upload was sent */
    GJ_FAULT_COUNT
};

struct gj_remote_fault {
    enum gj_remote_fault_kind kind;
    long status;                  /* of HTTP; 0: none was received */
    char detail[CURL_ERROR_SIZE]; /* may be "" */
};

/* Logs that an entry was not fetched or sent: a warning when the kind is new to this remote and way, else a
 * debug message. Kinds for which asking again would not help pause the way for retry_ms. */
void gj_remote_report(gj_remote *remote, enum gj_remote_way way, const char *name,
                      const struct gj_remote_fault *fault);
/* Whether the server may be asked: false during a pause. The first call after a pause opens a new one, which
 * ends at once when that call is answered: one caller tries, the others go on without the remote. */
bool gj_remote_may_ask(gj_remote *remote, enum gj_remote_way way);
/* The server answered: ends the pause. */
void gj_remote_has_answered(gj_remote *remote, enum gj_remote_way way);

/* -- The remote object ------------------------------------------------------------------------------- */

enum { GJ_REMOTE_MAX_IDLE = 16 };
#define GJ_REMOTE_QUEUE_BYTES ((size_t)64 << 20)

enum gj_remote_counter {
    GJ_REMOTE_HITS,
    GJ_REMOTE_MISSES,
    GJ_REMOTE_FAILURES,
    GJ_REMOTE_UPLOADS,
    GJ_REMOTE_UPLOAD_FAILURES,
    GJ_REMOTE_BYTES_DOWN,
    GJ_REMOTE_BYTES_UP,
    GJ_REMOTE_NUM_COUNTERS
};

struct gj_upload {
    struct gj_upload *next;
    size_t bytes;
    char name[GJ_REMOTE_NAME_BYTES];
    unsigned char data[]; /* bytes */
};

struct gj_remote {
    /* Constant once opened. */
    const struct gj_curl_api *curl;
    struct gj_log log;
    struct gj_remote_url url;
    struct curl_slist *put_headers;
    int connect_ms, total_ms, retry_ms;
    bool upload;
    bool trust_environment; /* false in a set-user-ID process: neither proxies nor ~/.netrc */
    pid_t owner;

    atomic_uint_least64_t counters[GJ_REMOTE_NUM_COUNTERS];

    pthread_mutex_t mutex;          /* guards what follows; never held while logging or in a transfer */
    CURL *idle[GJ_REMOTE_MAX_IDLE]; /* handles that keep their connections */
    size_t num_idle;
    double paused_until_ms[GJ_REMOTE_NUM_WAYS]; /* 0: not paused */
    unsigned warned[GJ_REMOTE_NUM_WAYS];        /* a bit a kind */

    struct gj_upload *first, *last;
    size_t queued_bytes;    /* also of what is being sent */
    pthread_cond_t changed; /* something was queued, or closing was set */
    pthread_cond_t drained; /* queued_bytes became 0 */
    pthread_t uploader;
    bool has_uploader, closing;
    double deadline_ms; /* of closing */
};

void gj_remote_count(gj_remote *remote, enum gj_remote_counter counter, uint64_t amount);
/* False in a child made by fork. */
bool gj_remote_is_ours(const gj_remote *remote);

/* -- Transfers --------------------------------------------------------------------------------------- */

/* A body that arrives; data is malloc'ed. Set max_bytes, zero the rest. */
struct gj_body {
    unsigned char *data;
    size_t bytes, capacity, max_bytes;
    bool is_too_large, no_memory;
};

/* One GET: *body is filled when the answer was 200. fault->kind is NONE when there is an answer, and
 * fault->status says which: 200, 404, 410 or 403. */
void gj_transfer_get(gj_remote *remote, const char *name, struct gj_body *body,
                     struct gj_remote_fault *fault);
/* One PUT that may take limit_ms. fault->kind is NONE when the entry was taken. */
void gj_transfer_put(gj_remote *remote, const struct gj_upload *upload, int limit_ms,
                     struct gj_remote_fault *fault);
/* Frees the idle handles, with their connections. */
void gj_transfer_end(gj_remote *remote);

/* -- The queue of uploads ---------------------------------------------------------------------------- */

/* Sends what is queued until the deadline, drops the rest, ends the thread. */
void gj_uploads_end(gj_remote *remote);

#endif
