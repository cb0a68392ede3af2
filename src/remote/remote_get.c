/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches an entry. */
#include <stdlib.h>

#include "remote/remote_impl.h"

static enum gj_remote_result fail(gj_remote *remote)
{
    gj_remote_count(remote, GJ_REMOTE_FAILURES, 1);
    return GJ_REMOTE_FAILED;
}

static enum gj_remote_result hit(gj_remote *remote, struct gj_body *body, void **data, size_t *bytes)
{
    gj_remote_count(remote, GJ_REMOTE_HITS, 1);
    gj_remote_count(remote, GJ_REMOTE_BYTES_DOWN, body->bytes);
    *data = body->data;
    *bytes = body->bytes;
    body->data = NULL;
    return GJ_REMOTE_HIT;
}

/* What the answer means. */
static enum gj_remote_result judge(gj_remote *remote, const char *name, struct gj_body *body,
                                   struct gj_remote_fault *fault, void **data, size_t *bytes)
{
    if (fault->kind == GJ_FAULT_NONE && fault->status == 200 && !body->data) {
        body->data = malloc(1); /* an empty body is a hit too */
        if (!body->data)
            fault->kind = GJ_FAULT_MEMORY;
    }
    /* The order matters: a fault pauses, an answer ends a pause. */
    if (fault->kind == GJ_FAULT_NONE)
        gj_remote_has_answered(remote, GJ_REMOTE_DOWN);
    if (fault->kind == GJ_FAULT_NONE && fault->status == 200)
        return hit(remote, body, data, bytes);
    if (fault->kind == GJ_FAULT_NONE && fault->status == 403)
        fault->kind = GJ_FAULT_FORBIDDEN;
    if (fault->kind != GJ_FAULT_NONE)
        gj_remote_report(remote, GJ_REMOTE_DOWN, name, fault);
    if (fault->kind != GJ_FAULT_NONE && fault->kind != GJ_FAULT_FORBIDDEN)
        return fail(remote);
    gj_remote_count(remote, GJ_REMOTE_MISSES, 1);
    return GJ_REMOTE_MISS;
}

enum gj_remote_result gj_remote_get(gj_remote *remote, const char *name, size_t max_bytes, void **data,
                                    size_t *bytes)
{
    if (!gj_remote_is_ours(remote))
        return fail(remote);
    if (!gj_remote_name_is_good(name)) {
        gj_remote_report(remote, GJ_REMOTE_DOWN, name, &(struct gj_remote_fault){.kind = GJ_FAULT_NAME});
        return fail(remote);
    }
    if (!gj_remote_may_ask(remote, GJ_REMOTE_DOWN))
        return fail(remote);
    struct gj_body body = {.max_bytes = max_bytes};
    struct gj_remote_fault fault;
    gj_transfer_get(remote, name, &body, &fault);
    const enum gj_remote_result result = judge(remote, name, &body, &fault, data, bytes);
    free(body.data);
    return result;
}
