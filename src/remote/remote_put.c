/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of uploads and the one thread that sends them. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "remote/remote_impl.h"

static void report(gj_remote *remote, const char *name, enum gj_remote_fault_kind kind)
{
    gj_remote_count(remote, GJ_REMOTE_UPLOAD_FAILURES, 1);
    gj_remote_report(remote, GJ_REMOTE_UP, name, &(struct gj_remote_fault){.kind = kind});
}

/* -- The thread -------------------------------------------------------------------------------------- */

/* Takes the next upload, waiting for one. NULL when the remote is closing and nothing is left. *limit_ms is
 * how long it may take. */
static struct gj_upload *take_next(gj_remote *remote, int *limit_ms)
{
    pthread_mutex_lock(&remote->mutex);
    while (!remote->first && !remote->closing)
        pthread_cond_wait(&remote->changed, &remote->mutex);
    struct gj_upload *const upload = remote->first;
    if (upload) {
        remote->first = upload->next;
        if (!remote->first)
            remote->last = NULL;
    }
    *limit_ms = remote->total_ms;
    if (remote->closing) {
        const double left_ms = remote->deadline_ms - gj_clock_ms();
        if (left_ms < *limit_ms)
            *limit_ms = left_ms < 1 ? 0 : (int)left_ms;
    }
    pthread_mutex_unlock(&remote->mutex);
    return upload;
}

static void send_upload(gj_remote *remote, const struct gj_upload *upload, int limit_ms)
{
    struct gj_remote_fault fault;
    gj_transfer_put(remote, upload, limit_ms, &fault);
    if (fault.kind == GJ_FAULT_NONE) {
        gj_remote_has_answered(remote, GJ_REMOTE_UP);
        gj_remote_count(remote, GJ_REMOTE_UPLOADS, 1);
        gj_remote_count(remote, GJ_REMOTE_BYTES_UP, upload->bytes);
        return;
    }
    /* That a shortened limit was too short says nothing of the server. */
    if (fault.kind == GJ_FAULT_TIMEOUT && limit_ms < remote->total_ms)
        fault = (struct gj_remote_fault){.kind = GJ_FAULT_CLOSED};
    gj_remote_count(remote, GJ_REMOTE_UPLOAD_FAILURES, 1);
    gj_remote_report(remote, GJ_REMOTE_UP, upload->name, &fault);
}

static void *send_all(void *user)
{
    gj_remote *const remote = user;
    int limit_ms = 0;
    struct gj_upload *upload;
    while ((upload = take_next(remote, &limit_ms)) != NULL) {
        if (limit_ms == 0)
            report(remote, upload->name, GJ_FAULT_CLOSED);
        else if (gj_remote_may_ask(remote, GJ_REMOTE_UP))
            send_upload(remote, upload, limit_ms);
        else
            gj_remote_count(remote, GJ_REMOTE_UPLOAD_FAILURES, 1);
        pthread_mutex_lock(&remote->mutex);
        remote->queued_bytes -= sizeof *upload + upload->bytes;
        if (remote->queued_bytes == 0)
            pthread_cond_broadcast(&remote->drained);
        pthread_mutex_unlock(&remote->mutex);
        free(upload);
    }
    return NULL;
}

/* With the mutex held. The thread gets none of the program's signals. */
static bool start_uploader(gj_remote *remote)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0)
        return false;
    remote->has_uploader = pthread_create(&remote->uploader, NULL, send_all, remote) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return remote->has_uploader;
}

void gj_uploads_end(gj_remote *remote)
{
    pthread_mutex_lock(&remote->mutex);
    remote->closing = true;
    remote->deadline_ms = gj_clock_ms() + remote->total_ms;
    pthread_cond_signal(&remote->changed);
    pthread_mutex_unlock(&remote->mutex);
    /* The transfer that goes on now began before the deadline was set, so it ends before it. */
    if (remote->has_uploader)
        pthread_join(remote->uploader, NULL);
    assert(!remote->first);
}

bool gj_remote_flush(gj_remote *remote, int most_ms)
{
    if (!gj_remote_is_ours(remote))
        return true; /* in a child nothing is sent */
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += most_ms / 1000;
    until.tv_nsec += most_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&remote->mutex);
    int result = 0;
    while (remote->queued_bytes > 0 && result == 0)
        result = pthread_cond_timedwait(&remote->drained, &remote->mutex, &until);
    const bool is_done = remote->queued_bytes == 0;
    pthread_mutex_unlock(&remote->mutex);
    return is_done;
}

/* -- Queueing ---------------------------------------------------------------------------------------- */

static struct gj_upload *make_upload(const char *name, const void *data, size_t bytes)
{
    struct gj_upload *const upload = malloc(sizeof *upload + bytes);
    if (!upload)
        return NULL;
    upload->next = NULL;
    upload->bytes = bytes;
    snprintf(upload->name, sizeof upload->name, "%s", name);
    if (bytes > 0)
        memcpy(upload->data, data, bytes);
    return upload;
}

/* Appends the upload. Returns what kept it from that. */
static enum gj_remote_fault_kind append(gj_remote *remote, struct gj_upload *upload)
{
    const size_t cost = sizeof *upload + upload->bytes;
    enum gj_remote_fault_kind kind = GJ_FAULT_NONE;
    pthread_mutex_lock(&remote->mutex);
    if (cost > GJ_REMOTE_QUEUE_BYTES - remote->queued_bytes) {
        kind = GJ_FAULT_QUEUE;
    } else if (!remote->has_uploader && !start_uploader(remote)) {
        kind = GJ_FAULT_MEMORY;
    } else {
        *(remote->last ? &remote->last->next : &remote->first) = upload;
        remote->last = upload;
        remote->queued_bytes += cost;
        pthread_cond_signal(&remote->changed);
    }
    pthread_mutex_unlock(&remote->mutex);
    return kind;
}

void gj_remote_put(gj_remote *remote, const char *name, const void *data, size_t bytes)
{
    if (!remote->upload)
        return;
    if (!gj_remote_is_ours(remote)) {
        gj_remote_count(remote, GJ_REMOTE_UPLOAD_FAILURES, 1);
        return;
    }
    if (!gj_remote_name_is_good(name)) {
        report(remote, name, GJ_FAULT_NAME);
        return;
    }
    struct gj_upload *upload = NULL;
    enum gj_remote_fault_kind kind = GJ_FAULT_QUEUE;
    if (bytes < GJ_REMOTE_QUEUE_BYTES) {
        upload = make_upload(name, data, bytes);
        kind = upload ? append(remote, upload) : GJ_FAULT_MEMORY;
    }
    if (kind != GJ_FAULT_NONE) {
        free(upload);
        report(remote, name, kind);
    }
}
