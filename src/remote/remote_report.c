/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in words, once a kind, and the pauses that keep a dead server from costing anything. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "remote/remote_impl.h"

enum effect {
    NO_EFFECT,
    PAUSES,     /* asking again would not help */
    ENDS_PAUSE, /* the server is there and does its work */
};

/* is_shared: the same for both ways, so one warning is enough. */
static const struct {
    const char *text;
    enum effect effect;
    bool is_shared;
} kinds[] = {
    [GJ_FAULT_NONE] = {"no fault", ENDS_PAUSE, false},
    [GJ_FAULT_CONNECT] = {"there is no connection", PAUSES, true},
    [GJ_FAULT_TIMEOUT] = {"it takes too long", PAUSES, true},
    [GJ_FAULT_TLS] = {"there is no TLS connection that can be trusted", PAUSES, true},
    [GJ_FAULT_SERVER] = {"the server has an error", PAUSES, false},
    [GJ_FAULT_STATUS] = {"the server refused", PAUSES, false},
    [GJ_FAULT_PROTOCOL] = {"the answer cannot be used", PAUSES, false},
    [GJ_FAULT_FORBIDDEN] = {"access is refused, which counts as a miss because some stores answer so for an "
                            "entry that they lack",
                            ENDS_PAUSE, false},
    [GJ_FAULT_TOO_LARGE] = {"the answer is larger than an entry may be", ENDS_PAUSE, false},
    [GJ_FAULT_CUT] = {"the answer was cut short", ENDS_PAUSE, false},
    [GJ_FAULT_MEMORY] = {"memory ran out", NO_EFFECT, true},
    [GJ_FAULT_NAME] = {"this is no name of an entry", NO_EFFECT, false},
    [GJ_FAULT_QUEUE] = {"too much waits to be sent", NO_EFFECT, false},
    [GJ_FAULT_CLOSED] = {"the time for sending at the end is over", NO_EFFECT, false},
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == GJ_FAULT_COUNT, "every kind has its row");

/* Whether the kind is new, and what it does to the pause. */
static bool note(gj_remote *remote, enum gj_remote_way way, enum gj_remote_fault_kind kind)
{
    unsigned *const warned = &remote->warned[kinds[kind].is_shared ? GJ_REMOTE_DOWN : way];
    pthread_mutex_lock(&remote->mutex);
    const bool is_new = (*warned >> kind & 1) == 0;
    *warned |= 1u << kind;
    if (kinds[kind].effect == PAUSES)
        remote->paused_until_ms[way] = gj_clock_ms() + remote->retry_ms;
    else if (kinds[kind].effect == ENDS_PAUSE)
        remote->paused_until_ms[way] = 0;
    pthread_mutex_unlock(&remote->mutex);
    return is_new;
}

void gj_remote_report(gj_remote *remote, enum gj_remote_way way, const char *name,
                      const struct gj_remote_fault *fault)
{
    struct gj_strbuf text = {0};
    const struct gj_quote quote = gj_utf8_quote(name, strlen(name));
    gj_strbuf_printf(&text, "remote cache %s: ", remote->url.base);
    gj_utf8_escape(&text, quote.text, false);
    gj_strbuf_printf(&text, " was not %s: %s", way == GJ_REMOTE_DOWN ? "fetched" : "sent",
                     kinds[fault->kind].text);
    if (fault->status >= 300)
        gj_strbuf_printf(&text, " (status %ld)", fault->status);
    /* libcurl quotes a proxy with its password when it cannot use it. */
    if (fault->detail[0] && !strchr(fault->detail, '@')) {
        gj_strbuf_puts(&text, ": ");
        gj_utf8_escape(&text, fault->detail, false);
    }
    if (kinds[fault->kind].effect == PAUSES)
        gj_strbuf_printf(&text, "; not asked again for %g s", remote->retry_ms / 1e3);
    const bool is_new = note(remote, way, fault->kind);
    gj_log_printf(&remote->log, is_new ? GJ_LOG_WARNING : GJ_LOG_DEBUG, "%s",
                  text.failed ? "remote cache: a fault, and no memory to tell it" : text.text);
    gj_strbuf_free(&text);
}

bool gj_remote_may_ask(gj_remote *remote, enum gj_remote_way way)
{
    double *const until_ms = &remote->paused_until_ms[way];
    pthread_mutex_lock(&remote->mutex);
    const double now_ms = gj_clock_ms();
    const bool is_paused = *until_ms > now_ms;
    if (*until_ms > 0 && !is_paused)
        *until_ms = now_ms + remote->retry_ms;
    pthread_mutex_unlock(&remote->mutex);
    return !is_paused;
}

void gj_remote_has_answered(gj_remote *remote, enum gj_remote_way way)
{
    pthread_mutex_lock(&remote->mutex);
    remote->paused_until_ms[way] = 0;
    pthread_mutex_unlock(&remote->mutex);
}
