/* SPDX-License-Identifier: Apache-2.0 */
/* The cache object: opening, closing, being off, and warning once of each cause. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_impl.h"

/* -- On or off --------------------------------------------------------------------------------------- */

/* A root without a version directory holds nothing to load, so it must be one that can be written. */
static bool is_empty_root_useful(const gj_cache *cache, struct gj_fault *fault)
{
    const int root = gj_root_open(cache->root, false, fault);
    if (root < 0 && gj_fault_is_shortage(fault))
        return true;
    if (root < 0)
        return fault->error == ENOENT && gj_root_can_make(cache->root, fault);
    close(root);
    if (faccessat(AT_FDCWD, cache->root, W_OK | X_OK, AT_EACCESS) == 0)
        return true;
    *fault = gj_fault_errno("the root", "is empty and cannot be written");
    return false;
}

/* Whether the cache can be used is decided once; what goes wrong later is reported where it does. One that
 * can only be read is used: it may have been filled beforehand. */
static bool is_usable(const gj_cache *cache, struct gj_fault *fault)
{
    const int dir = gj_dir_open(cache, NULL, false, fault);
    if (dir >= 0)
        close(dir);
    if (dir >= 0 || gj_fault_is_shortage(fault)) /* a shortage now says nothing of later */
        return true;
    return fault->error == ENOENT && !cache->read_only && is_empty_root_useful(cache, fault);
}

/* Sets off_reason. False when memory runs out. */
static bool turn_off(gj_cache *cache, const char *reason, int error)
{
    cache->off_reason = strdup(reason);
    cache->off_error = error;
    return cache->off_reason != NULL;
}

static bool decide(gj_cache *cache)
{
    struct gj_fault fault = {0};
    if (is_usable(cache, &fault))
        return true;
    struct gj_strbuf text = {0};
    gj_strbuf_printf(&text, "%s: ", cache->root);
    gj_fault_describe(&fault, &text);
    const bool done = !text.failed && turn_off(cache, text.text, fault.error ? fault.error : EPERM);
    gj_strbuf_free(&text);
    return done;
}

static bool set_root(gj_cache *cache, const char *given)
{
    const char *reason = NULL;
    cache->root = gj_root_choose(given, &reason);
    if (cache->root)
        return decide(cache);
    cache->root = reason ? strdup("") : NULL;
    return cache->root && turn_off(cache, reason, ENOENT);
}

gj_cache *gj_cache_open(const char *root, const struct gj_log *log)
{
    const struct gj_cache_params params = {.root = root};
    return gj_cache_open_as(&params, log);
}

gj_cache *gj_cache_open_as(const struct gj_cache_params *params, const struct gj_log *log)
{
    gj_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    if (pthread_mutex_init(&cache->mutex, NULL) != 0) {
        free(cache);
        return NULL;
    }
    if (log)
        cache->log = *log;
    atomic_init(&cache->off_warned, false);
    atomic_init(&cache->temp_counter, 0);
    cache->read_only = params->read_only;
    gj_cap_open(cache, params);
    if (!set_root(cache, params->root) || !gj_layers_open(cache, params->layers, params->num_layers) ||
        !gj_fetch_open(cache, params))
        gj_cache_close(&cache);
    return cache;
}

void gj_cache_close(gj_cache **cache)
{
    if (!cache || !*cache)
        return;
    gj_fetch_close(*cache);
    gj_layers_close(*cache);
    pthread_mutex_destroy(&(*cache)->mutex);
    free((*cache)->off_reason);
    free((*cache)->root);
    free(*cache);
    *cache = NULL;
}

const char *gj_cache_off_reason(const gj_cache *cache)
{
    return cache ? cache->off_reason : "no disk cache was asked for";
}

const char *gj_cache_root(const gj_cache *cache)
{
    return cache ? cache->root : "";
}

bool gj_cache_is_read_only(const gj_cache *cache)
{
    return cache && cache->read_only;
}

/* Where v1 is missing the root was found to be one that can be written, or made, at open. */
bool gj_cache_is_writable(const gj_cache *cache, struct gj_strbuf *reason)
{
    const char *const off = gj_cache_off_reason(cache);
    if (off) {
        gj_strbuf_puts(reason, off);
        return false;
    }
    if (cache->read_only) {
        gj_strbuf_printf(reason, "%s: it was opened to be read only", cache->root);
        return false;
    }
    struct gj_fault fault = {0};
    const int dir = gj_dir_open(cache, NULL, false, &fault);
    if (dir < 0 && fault.error == ENOENT && is_empty_root_useful(cache, &fault))
        return true;
    bool done = false;
    if (dir >= 0) {
        done = faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) == 0;
        if (!done)
            fault = gj_fault_errno("the directory v1", "cannot be written");
        close(dir);
    }
    if (!done) {
        gj_strbuf_printf(reason, "%s: ", cache->root);
        gj_fault_describe(&fault, reason);
    }
    return done;
}

bool gj_cache_is_on(gj_cache *cache)
{
    if (!cache)
        return false;
    if (!cache->off_reason)
        return true;
    if (!atomic_exchange(&cache->off_warned, true))
        gj_log_printf(&cache->log, GJ_LOG_WARNING, "disk cache off: %s", cache->off_reason);
    return false;
}

/* -- Warnings ---------------------------------------------------------------------------------------- */

static bool is_same_cause(const struct gj_cache_cause *a, const struct gj_cache_cause *b)
{
    return a->error == b->error && strcmp(a->action, b->action) == 0 && strcmp(a->where, b->where) == 0 &&
           strcmp(a->what, b->what) == 0;
}

/* Remembers the cause; true when it is new. A full table counts as known: causes are few. */
static bool remember_cause(gj_cache *cache, const struct gj_cache_cause *cause)
{
    bool is_new = true;
    pthread_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < cache->num_causes && is_new; i++)
        is_new = !is_same_cause(&cache->causes[i], cause);
    if (is_new && cache->num_causes == GJ_CACHE_MAX_CAUSES)
        is_new = false;
    if (is_new)
        cache->causes[cache->num_causes++] = *cause;
    pthread_mutex_unlock(&cache->mutex);
    return is_new;
}

void gj_cache_report(gj_cache *cache, const char *action, const char *subject, const struct gj_fault *fault)
{
    gj_cache_report_at(cache, cache->root, action, subject, fault);
}

void gj_cache_report_at(gj_cache *cache, const char *place, const char *action, const char *subject,
                        const struct gj_fault *fault)
{
    const struct gj_cache_cause cause = {action, fault->where, fault->what, fault->error};
    const bool is_new = remember_cause(cache, &cause);
    struct gj_strbuf text = {0};
    gj_fault_describe(fault, &text);
    if (!text.failed)
        gj_log_printf(&cache->log, is_new ? GJ_LOG_WARNING : GJ_LOG_DEBUG, "disk cache %s: %s %s: %s", place,
                      subject, action, text.text);
    gj_strbuf_free(&text);
}
