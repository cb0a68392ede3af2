/* SPDX-License-Identifier: Apache-2.0 */
/* The remote of a build without libcurl's header: it cannot be opened, and says why. */
#include <string.h>

#include "remote/remote.h"

gj_remote *gj_remote_open(const struct gj_remote_params *params, const struct gj_log *log, char **reason)
{
    (void)params, (void)log;
    *reason = strdup("this build has no remote cache: it was made without libcurl (-Dremote=enabled makes it "
                     "a must)");
    return NULL;
}

/* The others are never reached with a remote. */

void gj_remote_close(gj_remote **remote)
{
    (void)remote;
}

const char *gj_remote_url(const gj_remote *remote)
{
    (void)remote;
    return "";
}

enum gj_remote_result gj_remote_get(gj_remote *remote, const char *name, size_t max_bytes, void **data,
                                    size_t *bytes)
{
    (void)remote, (void)name, (void)max_bytes, (void)data, (void)bytes;
    return GJ_REMOTE_FAILED;
}

void gj_remote_put(gj_remote *remote, const char *name, const void *data, size_t bytes)
{
    (void)remote, (void)name, (void)data, (void)bytes;
}

bool gj_remote_flush(gj_remote *remote, int most_ms)
{
    (void)remote, (void)most_ms;
    return true;
}

void gj_remote_counts(const gj_remote *remote, struct gj_remote_counts *counts)
{
    (void)remote;
    *counts = (struct gj_remote_counts){0};
}
