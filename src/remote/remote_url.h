/* SPDX-License-Identifier: Apache-2.0 */
/* The base URL of a remote, taken apart: what may be shown, and what must not. */
#ifndef GJ_REMOTE_REMOTE_URL_H
#define GJ_REMOTE_REMOTE_URL_H

#include <stdbool.h>

struct gj_remote_url {
    char *base;            /* without user, password and trailing slash; printable ASCII, fit for a log */
    char *user, *password; /* decoded; both NULL when the URL has none, password NULL when it has no colon */
    bool is_tls;
};

/* Takes a URL apart. False with *reason, a malloc'ed sentence without credentials (NULL: no memory), and an
 * empty *url. */
bool gj_remote_url_parse(const char *text, struct gj_remote_url *url, char **reason);
/* Overwrites the credentials and frees everything. */
void gj_remote_url_free(struct gj_remote_url *url);

enum { GJ_REMOTE_NAME_BYTES = 201 }; /* of a name, with its zero */
/* Whether a name may stand behind the base: 1 to 200 of [0-9a-z._-], no leading dot. */
bool gj_remote_name_is_good(const char *name);

#endif
