/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: opening, closing, counters, and the libraries that are opened on first need. */
#include <stdlib.h>

#include "api/context_private.h"
#include "base/error_build.h"

static enum gj_status open_parts(gj_context *context, const struct gj_context_params *params,
                                 gj_error **error)
{
    if (params->template_dir != NULL)
        GJ_TRY(gj_assets_read(params->template_dir, &context->assets, error));
    if (!gj_tuning_open(&context->tuning, params->tuning, &context->log))
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the tuning tables");
    if (!params->no_disk_cache) {
        const struct gj_cache_params cache = {
            .root = params->cache_dir,
            .read_only = params->read_only != 0,
            .layers = params->cache_layers,
            .num_layers = params->num_cache_layers,
            .remote = params->cache_remote,
            .upload = params->cache_upload != 0,
            .max_bytes = params->cache_max_bytes,
        };
        context->cache = gj_cache_open_as(&cache, &context->log);
        if (context->cache == NULL)
            GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_CACHE, "no memory to open the cache");
    }
    return GJ_OK;
}

enum gj_status gj_context_open(const struct gj_context_params *params, gj_context **context, gj_error **error)
{
    static const struct gj_context_params defaults = {0};
    if (params == NULL)
        params = &defaults;
    gj_context *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a context");
    opened->log = (struct gj_log){params->log, params->log_user};
    opened->no_compile = params->no_compile;
    pthread_mutex_init(&opened->lock, NULL);
    pthread_cond_init(&opened->landed, NULL);
    const enum gj_status status = open_parts(opened, params, error);
    if (status != GJ_OK) {
        gj_context_close(&opened);
        return status;
    }
    *context = opened;
    return GJ_OK;
}

void gj_context_close(gj_context **context)
{
    if (context == NULL || *context == NULL)
        return;
    gj_context *const closing = *context;
    gj_table_fini(&closing->kernels, gj_kernel_destroy);
    gj_compiler_close(&closing->compiler);
    gj_driver *driver = atomic_load(&closing->driver);
    gj_driver_close(&driver);
    gj_cache_close(&closing->cache);
    gj_assets_free(&closing->assets);
    gj_own_list_free(&closing->owns);
    gj_tuning_free(&closing->tuning);
    pthread_cond_destroy(&closing->landed);
    pthread_mutex_destroy(&closing->lock);
    free(closing);
    *context = NULL;
}

enum gj_status gj_context_compiler(gj_context *context, gj_compiler **compiler, gj_error **error)
{
    pthread_mutex_lock(&context->lock);
    enum gj_status status = GJ_OK;
    if (context->compiler == NULL) {
        status = gj_compiler_open(&context->compiler, error);
        if (status == GJ_OK) {
            gj_count(context, GJ_COUNT_NVRTC_OPENS, 1);
            gj_log_printf(&context->log, GJ_LOG_INFO, "compiling with %s, %s",
                          gj_compiler_version(context->compiler), gj_compiler_path(context->compiler));
        }
    }
    *compiler = context->compiler;
    pthread_mutex_unlock(&context->lock);
    return status;
}

enum gj_status gj_context_driver(gj_context *context, gj_driver **driver, gj_error **error)
{
    *driver = atomic_load_explicit(&context->driver, memory_order_acquire);
    if (*driver != NULL)
        return GJ_OK;
    pthread_mutex_lock(&context->lock);
    enum gj_status status = GJ_OK;
    *driver = atomic_load_explicit(&context->driver, memory_order_relaxed);
    if (*driver == NULL) {
        status = gj_driver_open(driver, error);
        if (status == GJ_OK)
            atomic_store_explicit(&context->driver, *driver, memory_order_release);
    }
    pthread_mutex_unlock(&context->lock);
    return status;
}

enum gj_status gj_own_add(gj_context *context, const struct gj_own *own, struct gj_own_id *id,
                          gj_error **error)
{
    struct gj_own_id found;
    GJ_TRY(gj_own_identify(own, &found, error));
    pthread_mutex_lock(&context->lock);
    const enum gj_status status = gj_own_list_add(&context->owns, own, found, error);
    pthread_mutex_unlock(&context->lock);
    if (status == GJ_OK && id != NULL)
        *id = found;
    return status;
}

enum gj_status gj_context_unit(gj_context *context, const struct gj_plan *plan, struct gj_unit *unit,
                               gj_error **error)
{
    if (context == NULL)
        return gj_unit_make(plan, NULL, NULL, unit, error);
    const struct gj_own_source *own = NULL;
    if (plan->key.act == GJ_ACT_OWN) {
        pthread_mutex_lock(&context->lock);
        own = gj_own_list_find(&context->owns, plan->key.own);
        pthread_mutex_unlock(&context->lock);
    }
    return gj_unit_make(plan, context->assets, own, unit, error);
}

int gj_context_flush(gj_context *context, int timeout_ms)
{
    return gj_cache_flush(context->cache, timeout_ms > 0 ? timeout_ms : 0);
}

void gj_stats(const gj_context *context, struct gj_stats *stats)
{
    struct gj_remote_counts remote;
    gj_cache_remote_counts(context->cache, &remote);
#define READ(counter) atomic_load_explicit(&context->counters[counter], memory_order_relaxed)
    *stats = (struct gj_stats){
        .compiles = READ(GJ_COUNT_COMPILES),
        .compile_failures = READ(GJ_COUNT_COMPILE_FAILURES),
        .memory_hits = READ(GJ_COUNT_MEMORY_HITS),
        .disk_hits = READ(GJ_COUNT_DISK_HITS),
        .disk_misses = READ(GJ_COUNT_DISK_MISSES),
        .damaged_entries = READ(GJ_COUNT_DAMAGED_ENTRIES),
        .waits = READ(GJ_COUNT_WAITS),
        .disk_bytes_read = READ(GJ_COUNT_DISK_BYTES_READ),
        .disk_bytes_written = READ(GJ_COUNT_DISK_BYTES_WRITTEN),
        .disk_write_failures = READ(GJ_COUNT_DISK_WRITE_FAILURES),
        .nvrtc_opens = READ(GJ_COUNT_NVRTC_OPENS),
        .lock_waits = READ(GJ_COUNT_LOCK_WAITS),
        .layer_hits = READ(GJ_COUNT_LAYER_HITS),
        .remote_hits = READ(GJ_COUNT_REMOTE_HITS),
        .remote_misses = remote.misses,
        .remote_failures = remote.failures,
        .uploads = remote.uploads,
        .upload_failures = remote.upload_failures,
        .warm_compiles = READ(GJ_COUNT_WARM_COMPILES),
    };
#undef READ
}

void gj_context_mark_warm(gj_context *context, gj_compile_fn compiled, void *user)
{
    pthread_mutex_lock(&context->lock);
    context->is_warm = true;
    context->compiled = compiled;
    context->compiled_user = user;
    pthread_mutex_unlock(&context->lock);
}

const char *gj_version(void)
{
    return GJ_VERSION;
}

void gj_free(void *memory)
{
    free(memory);
}
