/* SPDX-License-Identifier: Apache-2.0 */
/* One request through libcurl, as the files that prepare and run it share it. */
#ifndef GJ_REMOTE_REMOTE_TRANSFER_H
#define GJ_REMOTE_REMOTE_TRANSFER_H

#include "remote/remote_impl.h"

struct gj_transfer {
    gj_remote *remote;
    const struct gj_curl_api *curl;
    CURL *handle;
    bool ok;              /* every option was taken */
    struct gj_body *body; /* NULL: of a PUT */
    size_t ignored;
    size_t header_bytes;  /* of all answers, redirects included */
    bool has_all_headers; /* of the last answer */
    const struct gj_upload *upload;
    size_t sent;
    struct gj_remote_fault *fault;
};

/* Sets every option of a fresh handle: what is asked, of whom, and all limits. Sets transfer->ok; libcurl
 * keeps pointers to the transfer until the handle is reset. */
void gj_transfer_prepare(struct gj_transfer *transfer, const char *name, int limit_ms);
/* HTTP status of the last answer; 0: none. */
long gj_transfer_status(const struct gj_transfer *transfer);

#endif
