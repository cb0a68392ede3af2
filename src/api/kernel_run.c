/* SPDX-License-Identifier: Apache-2.0 */
/* What one does with a kernel: ask about it, prepare it, launch it. */
#include <gemmjit/launch.h>

#include "api/context_private.h"
#include "base/error_build.h"
#include "cuda/args.h"
#include "key/config.h"
#include "plan/few_rows.h"

void gj_kernel_info(const gj_kernel *kernel, struct gj_kernel_info *info)
{
    *info = kernel->info;
}

enum gj_status gj_kernel_loaded(gj_kernel *kernel, gj_loaded **loaded, gj_error **error)
{
    *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
    if (*loaded != NULL)
        return GJ_OK;
    gj_driver *driver;
    GJ_TRY(gj_context_driver(kernel->context, &driver, error));
    pthread_mutex_lock(&kernel->lock);
    enum gj_status status = GJ_OK;
    *loaded = atomic_load_explicit(&kernel->loaded, memory_order_relaxed);
    if (*loaded == NULL) {
        status = gj_loaded_open(driver, &kernel->plan, kernel->info.cubin, loaded, error);
        if (status == GJ_OK)
            atomic_store_explicit(&kernel->loaded, *loaded, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

enum gj_status gj_kernel_prepare(gj_kernel *kernel, int device, gj_error **error)
{
    gj_loaded *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
    if (loaded == NULL) {
        gj_driver *driver;
        struct gj_gpu_info info;
        GJ_TRY(gj_context_driver(kernel->context, &driver, error));
        GJ_TRY(gj_gpu_require(driver, device, &info, error));
        GJ_TRY(gj_kernel_loaded(kernel, &loaded, error));
    }
    return gj_loaded_prepare(loaded, device, error);
}

/* The cubin loaded for a launch on a stream. */
static enum gj_status loaded_for(gj_kernel *kernel, void *stream, gj_loaded **loaded, gj_error **error)
{
    gj_driver *driver;
    *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
    if (*loaded != NULL)
        return GJ_OK;
    GJ_TRY(gj_context_driver(kernel->context, &driver, error));
    GJ_TRY(gj_stream_may_load(driver, stream, error));
    return gj_kernel_loaded(kernel, loaded, error);
}

static bool is_empty(const struct gj_gemm_args *args)
{
    return args->m == 0 || args->n == 0 || args->batch == 0;
}

/* gj_launch on a stream that is known to be of this device. */
static enum gj_status launch_on(gj_kernel *kernel, const struct gj_gemm_args *args, int device, void *stream,
                                gj_error **error)
{
    gj_loaded *loaded;
    GJ_TRY(gj_args_check(&kernel->plan, args, error));
    GJ_TRY(loaded_for(kernel, stream, &loaded, error));
    return gj_loaded_launch(loaded, &kernel->plan, args, device, stream, error);
}

enum gj_status gj_launch(gj_kernel *kernel, const struct gj_gemm_args *args, void *stream, gj_error **error)
{
    gj_driver *driver;
    gj_loaded *loaded;
    int device;
    GJ_TRY(gj_args_check(&kernel->plan, args, error));
    if (is_empty(args))
        return GJ_OK;
    GJ_TRY(gj_context_driver(kernel->context, &driver, error));
    GJ_TRY(loaded_for(kernel, stream, &loaded, error));
    GJ_TRY(gj_gpu_of_stream(driver, stream, &device, error));
    return gj_loaded_launch(loaded, &kernel->plan, args, device, stream, error);
}

enum gj_status gj_launch_prepare(gj_kernel *kernel, const struct gj_gemm_args *args, int device,
                                 gj_prepared **prepared, gj_error **error)
{
    gj_loaded *loaded;
    GJ_TRY(gj_args_check(&kernel->plan, args, error));
    if (is_empty(args))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "m = %lld, n = %lld, batch = %lld: there is no launch to prepare", (long long)args->m,
                (long long)args->n, (long long)args->batch);
    GJ_TRY(gj_kernel_prepare(kernel, device, error));
    GJ_TRY(gj_kernel_loaded(kernel, &loaded, error));
    return gj_loaded_launch_prepare(loaded, &kernel->plan, args, device, prepared, error);
}

/* The problem with a config that every problem has, for what does not depend on the config. */
static struct gj_key with_small_config(const struct gj_key *problem)
{
    struct gj_key key = gj_key_problem(problem);
    key.tile_m = 64;
    key.tile_n = 64;
    key.cluster_m = 1;
    key.cluster_n = 1;
    key.sched = GJ_SCHED_COOP;
    return key;
}

/* The question of a call on a stream: what its device is is a part of it. */
static enum gj_status make_question(gj_driver *driver, const struct gj_key *problem,
                                    const struct gj_gemm_args *args, void *stream,
                                    struct gj_question *question, int *device, gj_error **error)
{
    int gpu;
    GJ_TRY(gj_gpu_of_stream(driver, stream, device, error));
    GJ_TRY(gj_gpu_kind(driver, *device, &gpu, error));
    if (args->max_sms > 0 && args->max_sms < gj_gpu_kind_sms(gpu))
        gpu = args->max_sms;
    const int overlaps = (args->flags & GJ_LAUNCH_OVERLAP) != 0;
    *question = (struct gj_question){*problem, gpu, overlaps, 0, args->m, args->n, args->k, args->batch};
    return GJ_OK;
}

/* A call like an earlier one: its kernel is known. NULL: there was none, or the stream is not as it must be,
 * which gj_gemm tells after it has judged the arguments. */
static gj_kernel *find_choice(gj_context *context, const struct gj_key *problem,
                              const struct gj_gemm_args *args, void *stream, int *device)
{
    struct gj_question question;
    gj_driver *const driver = atomic_load_explicit(&context->driver, memory_order_acquire);
    if (driver == NULL || make_question(driver, problem, args, stream, &question, device, NULL) != GJ_OK)
        return NULL;
    gj_kernel *const kernel = gj_choices_find(&context->choices, &question);
    gj_count(context, GJ_COUNT_MEMORY_HITS, kernel != NULL);
    return kernel;
}

/* Arguments are judged before the driver is touched. */
static enum gj_status check_problem(const struct gj_key *problem, const struct gj_gemm_args *args,
                                    gj_error **error)
{
    struct gj_plan plan;
    const struct gj_key key = with_small_config(problem);
    GJ_TRY(gj_key_check(&key, error));
    gj_plan_make_numbers(&key, &plan);
    return gj_args_check(&plan, args, error);
}

/* The config for a question of this device. What was measured counts for the whole device only, and for
 * launches that do not overlap; with few rows of A that is worth more than a few per cent. */
static enum gj_status choose(const gj_context *context, const gj_driver *driver,
                             const struct gj_question *question, int device, struct gj_key *key,
                             gj_error **error)
{
    struct gj_gpu_info info = {0};
    const int num_sms = gj_gpu_kind_sms(question->gpu);
    const bool is_whole = num_sms < question->gpu;
    if (question->overlaps && gj_few_rows_choose(&question->problem, question->m, question->n, question->k,
                                                 question->batch, num_sms, key))
        return GJ_OK;
    if (is_whole && context->tuning.num_tables > 0)
        GJ_TRY(gj_gpu_info_get(driver, device, &info, error));
    return gj_context_choose(context, &question->problem, question->m, question->n, question->k,
                             question->batch, is_whole ? info.name : NULL, num_sms, key, error);
}

enum gj_status gj_gemm(gj_context *context, const struct gj_key *problem, const struct gj_gemm_args *args,
                       void *stream, gj_error **error)
{
    gj_driver *driver;
    struct gj_key key;
    struct gj_question question;
    int device;
    gj_kernel *kernel = find_choice(context, problem, args, stream, &device);
    if (kernel != NULL)
        return launch_on(kernel, args, device, stream, error);
    GJ_TRY(check_problem(problem, args, error));
    if (is_empty(args))
        return GJ_OK; /* needs neither a driver nor a kernel */
    GJ_TRY(gj_context_driver(context, &driver, error));
    GJ_TRY(make_question(driver, problem, args, stream, &question, &device, error));
    GJ_TRY(choose(context, driver, &question, device, &key, error));
    GJ_TRY(gj_kernel_get(context, &key, 0, &kernel, error));
    gj_choices_put(&context->choices, &question, kernel);
    return launch_on(kernel, args, device, stream, error);
}
