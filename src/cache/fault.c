/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong below the root, in words. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cache/cache_impl.h"

struct gj_fault gj_fault_errno(const char *where, const char *what)
{
    return (struct gj_fault){.where = where, .what = what, .error = errno};
}

void gj_fault_describe(const struct gj_fault *fault, struct gj_strbuf *text)
{
    gj_strbuf_printf(text, "%s %s", fault->where, fault->what);
    if (fault->has_stat)
        gj_strbuf_printf(text, " (owner %u, mode %04o; this process is user %u)", (unsigned)fault->owner,
                         (unsigned)fault->mode & 07777, (unsigned)geteuid());
    if (fault->error != 0) {
        /* %m, because strerror is not thread-safe and strerror_r has two forms; formatted here, because an
         * allocation on the way may change errno. */
        char words[128];
        errno = fault->error;
        snprintf(words, sizeof words, "%m");
        gj_strbuf_printf(text, ": %s", words);
    }
}

bool gj_fault_is_shortage(const struct gj_fault *fault)
{
    return fault->error == EMFILE || fault->error == ENFILE || fault->error == ENOMEM;
}
