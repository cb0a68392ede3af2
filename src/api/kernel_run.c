/* SPDX-License-Identifier: Apache-2.0 */
/* What one does with a kernel: ask about it, prepare it, launch it. */
#include <gemmjit/launch.h>

#include "api/context_private.h"
#include "base/error_build.h"
#include "cuda/args.h"

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

enum gj_status gj_launch(gj_kernel *kernel, const struct gj_gemm_args *args, void *stream, gj_error **error)
{
    GJ_TRY(gj_args_check(&kernel->plan, args, error));
    if (args->m == 0 || args->n == 0 || args->batch == 0)
        return GJ_OK;
    gj_loaded *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
    if (loaded == NULL) {
        gj_driver *driver;
        GJ_TRY(gj_context_driver(kernel->context, &driver, error));
        GJ_TRY(gj_stream_may_load(driver, stream, error));
        GJ_TRY(gj_kernel_loaded(kernel, &loaded, error));
    }
    return gj_loaded_launch(loaded, &kernel->plan, args, stream, error);
}

/* A config that every problem has, for what does not depend on the config. */
static void set_small_config(struct gj_key *key)
{
    key->tile_m = 64;
    key->tile_n = 64;
    key->cluster_m = 1;
    key->cluster_n = 1;
    key->sched = GJ_SCHED_COOP;
    key->tiles = GJ_TILES_STATIC;
    key->swap_ab = GJ_SWAP_AB_NO;
}

enum gj_status gj_gemm(gj_context *context, const struct gj_key *problem, const struct gj_gemm_args *args,
                       void *stream, gj_error **error)
{
    gj_driver *driver;
    struct gj_key key;
    struct gj_gpu_info info;
    int device;
    gj_kernel *kernel;
    /* Arguments are judged before the driver is touched, and an empty problem needs neither it nor a kernel.
     */
    struct gj_plan plan;
    key = *problem;
    set_small_config(&key);
    GJ_TRY(gj_key_check(&key, error));
    gj_plan_make_numbers(&key, &plan);
    GJ_TRY(gj_args_check(&plan, args, error));
    if (args->m == 0 || args->n == 0 || args->batch == 0)
        return GJ_OK;
    GJ_TRY(gj_context_driver(context, &driver, error));
    GJ_TRY(gj_gpu_of_stream(driver, stream, &device, error));
    GJ_TRY(gj_gpu_require(driver, device, &info, error)); /* before anything is compiled for it */
    const int num_sms = args->max_sms > 0 && args->max_sms < info.num_sms ? args->max_sms : info.num_sms;
    const struct gj_question question = {*problem, num_sms, args->m, args->n, args->k, args->batch};
    GJ_TRY(gj_choices_get(&context->choices, &question, &key, error));
    GJ_TRY(gj_kernel_get(context, &key, 0, &kernel, error));
    return gj_launch(kernel, args, stream, error);
}
