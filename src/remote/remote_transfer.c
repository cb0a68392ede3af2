/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one request through libcurl, and says what its end means. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "remote/remote_transfer.h"

/* -- Handles ----------------------------------------------------------------------------------------- */

static CURL *take_handle(gj_remote *remote)
{
    pthread_mutex_lock(&remote->mutex);
    CURL *const handle = remote->num_idle > 0 ? remote->idle[--remote->num_idle] : NULL;
    pthread_mutex_unlock(&remote->mutex);
    return handle ? handle : remote->curl->curl_easy_init();
}

/* Keeps the handle with its connections, or frees it. */
static void give_handle(gj_remote *remote, CURL *handle)
{
    remote->curl->curl_easy_reset(handle); /* forgets all but its connections */
    pthread_mutex_lock(&remote->mutex);
    const bool is_kept = remote->num_idle < GJ_REMOTE_MAX_IDLE;
    if (is_kept)
        remote->idle[remote->num_idle++] = handle;
    pthread_mutex_unlock(&remote->mutex);
    if (!is_kept)
        remote->curl->curl_easy_cleanup(handle);
}

/* Runs `act` with SIGPIPE kept from this thread: TLS libraries write to sockets with plain write(). */
static void without_sigpipe(void (*act)(void *user), void *user)
{
    sigset_t broken_pipe, before, pending;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    const bool was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    const bool is_blocked = pthread_sigmask(SIG_BLOCK, &broken_pipe, &before) == 0;
    act(user);
    if (!is_blocked)
        return;
    if (!was_pending && sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1) {
        static const struct timespec at_once = {0};
        while (sigtimedwait(&broken_pipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void free_idle(void *user)
{
    gj_remote *const remote = user;
    while (remote->num_idle > 0)
        remote->curl->curl_easy_cleanup(remote->idle[--remote->num_idle]);
}

void gj_transfer_end(gj_remote *remote)
{
    without_sigpipe(free_idle, remote);
}

/* -- The end ----------------------------------------------------------------------------------------- */

long gj_transfer_status(const struct gj_transfer *transfer)
{
    long status = 0;
    transfer->curl->curl_easy_getinfo(transfer->handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* What is not here is an answer that cannot be used. */
static const struct {
    CURLcode result;
    enum gj_remote_fault_kind kind;
} meanings[] = {
    {CURLE_OK, GJ_FAULT_NONE},
    {CURLE_COULDNT_RESOLVE_PROXY, GJ_FAULT_CONNECT},
    {CURLE_COULDNT_RESOLVE_HOST, GJ_FAULT_CONNECT},
    {CURLE_COULDNT_CONNECT, GJ_FAULT_CONNECT},
    {CURLE_GOT_NOTHING, GJ_FAULT_CONNECT},
    {CURLE_SEND_ERROR, GJ_FAULT_CONNECT},
    {CURLE_RECV_ERROR, GJ_FAULT_CONNECT},
    {CURLE_PROXY, GJ_FAULT_CONNECT},
    {CURLE_OPERATION_TIMEDOUT, GJ_FAULT_TIMEOUT},
    {CURLE_SSL_CONNECT_ERROR, GJ_FAULT_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, GJ_FAULT_TLS},
    {CURLE_SSL_CACERT_BADFILE, GJ_FAULT_TLS},
    {CURLE_SSL_CERTPROBLEM, GJ_FAULT_TLS},
    {CURLE_SSL_CIPHER, GJ_FAULT_TLS},
    {CURLE_SSL_CLIENTCERT, GJ_FAULT_TLS},
    {CURLE_SSL_INVALIDCERTSTATUS, GJ_FAULT_TLS},
    {CURLE_SSL_ISSUER_ERROR, GJ_FAULT_TLS},
    {CURLE_SSL_SHUTDOWN_FAILED, GJ_FAULT_TLS},
    {CURLE_FILESIZE_EXCEEDED, GJ_FAULT_TOO_LARGE},
    {CURLE_PARTIAL_FILE, GJ_FAULT_CUT},
    {CURLE_OUT_OF_MEMORY, GJ_FAULT_MEMORY},
};

static enum gj_remote_fault_kind judge_result(const struct gj_transfer *transfer, CURLcode result)
{
    if (transfer->body && transfer->body->is_too_large)
        return GJ_FAULT_TOO_LARGE;
    if (transfer->body && transfer->body->no_memory)
        return GJ_FAULT_MEMORY;
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].result == result)
            return meanings[i].kind;
    return GJ_FAULT_PROTOCOL;
}

/* Whether an error status says all, although the transfer of what followed it failed: a body that is not
 * wanted, or a server that hangs up on an upload it refuses. */
static bool is_by_status(CURLcode result, long status)
{
    return status >= 400 &&
           (result == CURLE_WRITE_ERROR || result == CURLE_FILESIZE_EXCEEDED ||
            result == CURLE_PARTIAL_FILE || result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR);
}

static enum gj_remote_fault_kind judge_status(const struct gj_transfer *transfer, long status)
{
    static const long answers[] = {200, 404, 410, 403}, taken[] = {200, 201, 204};
    const long *const good = transfer->body ? answers : taken;
    const size_t count = transfer->body ? sizeof answers / sizeof *answers : sizeof taken / sizeof *taken;
    for (size_t i = 0; i < count; i++)
        if (status == good[i])
            return GJ_FAULT_NONE;
    return status >= 500 ? GJ_FAULT_SERVER : GJ_FAULT_STATUS;
}

static void conclude(struct gj_transfer *transfer, CURLcode result)
{
    struct gj_remote_fault *const fault = transfer->fault;
    fault->status = gj_transfer_status(transfer);
    if (result == CURLE_OK && !transfer->has_all_headers)
        result = CURLE_PARTIAL_FILE;
    if (result == CURLE_OK || is_by_status(result, fault->status)) {
        fault->kind = judge_status(transfer, fault->status);
        fault->detail[0] = '\0';
        return;
    }
    fault->kind = judge_result(transfer, result);
    if (fault->kind != GJ_FAULT_TOO_LARGE && fault->detail[0] == '\0')
        snprintf(fault->detail, sizeof fault->detail, "%s", transfer->curl->curl_easy_strerror(result));
}

static void perform(void *user)
{
    struct gj_transfer *const transfer = user;
    const CURLcode result = transfer->curl->curl_easy_perform(transfer->handle);
    conclude(transfer, result);
    give_handle(transfer->remote, transfer->handle); /* may close connections */
}

/* Runs a transfer of which body or upload, remote and fault are set. */
static void run(struct gj_transfer *transfer, const char *name, int limit_ms)
{
    struct gj_remote_fault *const fault = transfer->fault;
    *fault = (struct gj_remote_fault){.kind = GJ_FAULT_MEMORY};
    transfer->curl = transfer->remote->curl;
    transfer->handle = take_handle(transfer->remote);
    if (!transfer->handle)
        return;
    gj_transfer_prepare(transfer, name, limit_ms);
    if (transfer->ok) {
        without_sigpipe(perform, transfer);
    } else {
        snprintf(fault->detail, sizeof fault->detail, "libcurl does not take an option that is needed");
        give_handle(transfer->remote, transfer->handle);
    }
}

void gj_transfer_get(gj_remote *remote, const char *name, struct gj_body *body, struct gj_remote_fault *fault)
{
    struct gj_transfer transfer = {.remote = remote, .body = body, .fault = fault};
    run(&transfer, name, remote->total_ms);
}

void gj_transfer_put(gj_remote *remote, const struct gj_upload *upload, int limit_ms,
                     struct gj_remote_fault *fault)
{
    struct gj_transfer transfer = {.remote = remote, .upload = upload, .fault = fault};
    run(&transfer, upload->name, limit_ms);
}
