/* SPDX-License-Identifier: Apache-2.0 */
/* Making one kernel: unit, disk cache, compile, publish. */
#include <stdlib.h>
#include <string.h>

#include "api/making.h"
#include "base/clock.h"
#include "base/error_build.h"

void gj_kernel_destroy(void *pointer)
{
    gj_kernel *const kernel = pointer;
    if (kernel == NULL)
        return;
    gj_loaded *loaded = atomic_load(&kernel->loaded);
    gj_loaded_close(&loaded);
    gj_cache_entry_free(&kernel->from_disk);
    free(kernel->cubin);
    free(kernel->plan_text);
    free(kernel->compiler);
    pthread_mutex_destroy(&kernel->lock);
    free(kernel);
}

static enum gj_status fail_memory(const gj_kernel *kernel, gj_error **error)
{
    GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the kernel %s", kernel->plan.entry_name);
}

/* What follows from the key alone. */
static enum gj_status start_kernel(gj_context *context, const struct gj_key *key, gj_kernel **kernel,
                                   gj_error **error)
{
    gj_kernel *const started = calloc(1, sizeof *started);
    if (started == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a kernel");
    *kernel = started;
    pthread_mutex_init(&started->lock, NULL);
    started->entry = (struct gj_table_entry){*key, gj_key_hash(key)};
    started->context = context;
    gj_plan_make(key, &started->plan);
    gj_key_format(key, started->key_text, sizeof started->key_text);
    struct gj_strbuf plan_text = {0};
    gj_plan_format(&started->plan, &plan_text);
    started->plan_text = gj_strbuf_take(&plan_text);
    if (started->plan_text == NULL)
        return fail_memory(started, error);
    started->info = (struct gj_kernel_info){
        .key_text = started->key_text,
        .entry_name = started->plan.entry_name,
        .plan_text = started->plan_text,
        .threads = started->plan.threads,
        .smem_bytes = started->plan.smem_bytes,
        .stages = started->plan.stages,
    };
    return GJ_OK;
}

static void publish(const struct making *making)
{
    gj_context *const context = making->context;
    if (context->cache == NULL || gj_cache_is_read_only(context->cache))
        return;
    const struct gj_cache_entry entry = gj_making_entry(making);
    const struct gj_cache_name name = gj_making_name(making);
    const size_t bytes = gj_cache_store(context->cache, &name, &entry);
    if (bytes == 0) {
        gj_count(context, GJ_COUNT_DISK_WRITE_FAILURES, 1);
        return;
    }
    making->kernel->info.stored = 1;
    gj_count(context, GJ_COUNT_DISK_BYTES_WRITTEN, bytes);
    gj_cache_compiler_put(context->cache, context->identity.text, making->version);
}

enum gj_status gj_unit_compile(gj_compiler *compiler, const struct gj_plan *plan, const struct gj_unit *unit,
                               enum gj_image kind, struct gj_compile_result *result, gj_error **error)
{
    const struct gj_compile_request request = {
        .unit = unit->text,
        .name = plan->entry_name,
        .entry_name = plan->entry_name,
        .kind = kind,
        .mma_per_tile = GJ_MMA_PER_ATOM * plan->atoms * plan->m_blocks,
        .lines = {gj_unit_find_line, unit},
    };
    return gj_compiler_run(compiler, &request, result, error);
}

/* Whoever declared the context warm is told of a compile. */
static void alarm_compile(struct making *making, enum gj_status status, double compile_ms)
{
    gj_context *const context = making->context;
    pthread_mutex_lock(&context->lock);
    const bool is_warm = context->is_warm;
    const gj_compile_fn compiled = context->compiled;
    void *const user = context->compiled_user;
    pthread_mutex_unlock(&context->lock);
    if (!is_warm)
        return;
    gj_count(context, GJ_COUNT_WARM_COMPILES, 1);
    gj_log_printf(&context->log, GJ_LOG_WARNING, "compiled %s, though the context was declared warm",
                  making->kernel->key_text);
    const struct gj_compile_event event = {making->kernel->key_text, status, compile_ms};
    if (compiled != NULL)
        compiled(user, &event);
}

static enum gj_status compile(struct making *making, gj_compiler *compiler, gj_error **error)
{
    gj_context *const context = making->context;
    gj_kernel *const kernel = making->kernel;
    struct gj_compile_result result = {0};
    const double start = gj_clock_ms();
    const enum gj_status status =
        gj_unit_compile(compiler, &kernel->plan, &making->unit, GJ_IMAGE_CUBIN, &result, error);
    alarm_compile(making, status, gj_clock_ms() - start);
    if (status != GJ_OK) {
        gj_count(context, GJ_COUNT_COMPILE_FAILURES, 1);
        return status;
    }
    gj_count(context, GJ_COUNT_COMPILES, 1);
    free(result.log);
    kernel->cubin = result.image;
    kernel->info.cubin = result.image;
    kernel->info.cubin_bytes = result.bytes;
    kernel->info.registers = result.registers;
    kernel->info.spill_bytes = result.spill_bytes;
    kernel->info.compile_ms = result.compile_ms;
    kernel->info.origin = GJ_ORIGIN_COMPILED;
    kernel->compiler = strdup(making->version);
    kernel->info.compiler = kernel->compiler;
    if (kernel->compiler == NULL)
        return fail_memory(kernel, error);
    gj_log_printf(&context->log, GJ_LOG_INFO, "compiled %s in %.0f ms", kernel->key_text, result.compile_ms);
    return GJ_OK;
}

/* Fetches or compiles under the entry's lock, so that of several processes one does and the others load what
 * it has. */
static enum gj_status compile_once(struct making *making, gj_compiler *compiler, gj_error **error)
{
    gj_context *const context = making->context;
    const struct gj_cache_name name = gj_making_name(making);
    struct gj_cache_lock lock = gj_cache_lock(context->cache, &name);
    if (lock.waited)
        gj_count(context, GJ_COUNT_LOCK_WAITS, 1);
    enum gj_status status = GJ_OK;
    const bool may_be_there = lock.file >= 0 || lock.waited;
    if (!(may_be_there && gj_making_load(making)) && !gj_making_fetch(making)) {
        status = compile(making, compiler, error);
        if (status == GJ_OK)
            publish(making);
    }
    gj_cache_unlock(&lock);
    return status;
}

/* Disk with the version known so far; else the compiler, whose version may name another entry. */
static enum gj_status find_or_compile(struct making *making, int no_compile, gj_error **error)
{
    gj_context *const context = making->context;
    gj_making_find_version(making);
    if (gj_making_load(making))
        return GJ_OK;
    const bool is_last_chance = no_compile || !making->can_compile;
    if (is_last_chance && (gj_making_load_other(making) || gj_making_fetch(making)))
        return GJ_OK;
    if (no_compile)
        GJ_FAIL(error, GJ_ERR_NOT_CACHED, GJ_STAGE_CACHE,
                "no cached kernel for %s and compiling is not allowed: fill the cache with gemmjit prewarm "
                "--key %s",
                making->kernel->key_text, making->kernel->key_text);
    gj_compiler *compiler;
    GJ_TRY(gj_context_compiler(context, &compiler, error));
    if (strcmp(making->version, gj_compiler_version(compiler)) != 0) {
        gj_making_find_version(making);
        if (gj_making_load(making)) {
            gj_cache_compiler_put(context->cache, context->identity.text, making->version);
            return GJ_OK;
        }
    }
    gj_flight_compiles(context, making->flight);
    return compile_once(making, compiler, error);
}

enum gj_status gj_kernel_make(gj_context *context, const struct gj_key *key, struct gj_flight *flight,
                              int no_compile, gj_kernel **kernel, gj_error **error)
{
    struct making making = {.context = context, .flight = flight};
    enum gj_status status = start_kernel(context, key, &making.kernel, error);
    if (status == GJ_OK) {
        const double start = gj_clock_ms();
        status = gj_context_unit(context, &making.kernel->plan, &making.unit, error);
        making.kernel->info.generate_ms = gj_clock_ms() - start;
    }
    if (status == GJ_OK) {
        making.unit_hash = gj_hash_bytes(making.unit.text, making.unit.length);
        status = find_or_compile(&making, no_compile, error);
        if (context->cache != NULL && making.kernel->info.origin != GJ_ORIGIN_DISK && !making.is_damaged)
            gj_count(context, GJ_COUNT_DISK_MISSES, 1);
    }
    gj_unit_free(&making.unit);
    if (status != GJ_OK) {
        gj_kernel_destroy(making.kernel);
        return status;
    }
    *kernel = making.kernel;
    return GJ_OK;
}
