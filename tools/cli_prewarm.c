/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit prewarm: fills the cache with several threads on one context. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "prewarm.h"

/* What was compiled meanwhile waits in a queue of 64 MiB at most; a dead store ends the wait at once. */
enum { FLUSH_MS = 120000 };

struct work {
    struct prewarm *prewarm;
    atomic_size_t next;      /* index of the next item to take */
    atomic_bool no_compiler; /* the missing libnvrtc has been told in full */
    atomic_bool read_only;   /* so has why the cache cannot be written */
};

static void report_failure(struct work *work, const struct prewarm_item *item)
{
    struct cli *const cli = work->prewarm->cli;
    /* Where libnvrtc was looked for is the same for every key, and so is the cache: once is enough. */
    if (item->status == GJ_ERR_NO_COMPILER && atomic_exchange(&work->no_compiler, true))
        cli_say(cli, "gemmjit: %s: no libnvrtc, as above", item->label);
    else if (item->is_barred && atomic_exchange(&work->read_only, true))
        cli_say(cli, "gemmjit: %s: not compiled, as above", item->label);
    else
        cli_report_line(cli, item->label, item->status, item->error);
}

/* A compile whose cubin cannot be kept is not begun; what is in the cache already is found all the same. */
static void get_kernel(struct prewarm *prewarm, struct prewarm_item *item, gj_kernel **kernel)
{
    const unsigned flags = prewarm->read_only ? GJ_NO_COMPILE : 0;
    item->status = gj_kernel_get(prewarm->context, &item->key, flags, kernel, &item->error);
    item->is_barred = prewarm->read_only && item->status == GJ_ERR_NOT_CACHED;
    if (!item->is_barred)
        return;
    gj_error_free(&item->error);
    item->status = prewarm->read_only->status;
    gj_error_make(&item->error, item->status, GJ_STAGE_CACHE, 0, "", "not compiled: %s",
                  prewarm->read_only->message);
}

static void do_item(struct work *work, struct prewarm_item *item)
{
    struct prewarm *const prewarm = work->prewarm;
    gj_kernel *kernel = NULL;
    get_kernel(prewarm, item, &kernel);
    char outcome[64] = "failed";
    if (item->status != GJ_OK) {
        report_failure(work, item);
    } else {
        gj_kernel_info(kernel, &item->info);
        const char *const stored = item->info.stored ? "" : ", not stored";
        if (item->info.origin == GJ_ORIGIN_COMPILED)
            snprintf(outcome, sizeof(outcome), "compiled in %.0f ms%s", item->info.compile_ms, stored);
        else
            snprintf(outcome, sizeof(outcome), "%s%s",
                     item->info.origin == GJ_ORIGIN_REMOTE ? "fetched" : "on disk", stored);
    }
    cli_progress_step(prewarm->cli, item->label, outcome);
}

static void *do_items(void *user)
{
    struct work *const work = user;
    size_t i;
    while ((i = atomic_fetch_add(&work->next, 1)) < work->prewarm->num_items)
        do_item(work, &work->prewarm->items[i]);
    return NULL;
}

/* This thread is one of the workers, so a machine that gives no further thread does the work all the same. */
static void do_all(struct prewarm *prewarm)
{
    struct work work = {.prewarm = prewarm};
    pthread_t *const threads = calloc((size_t)prewarm->num_workers, sizeof(*threads));
    int started = 0;
    const double start_ms = gj_clock_ms();
    cli_progress_begin(prewarm->cli, prewarm->num_items);
    while (threads && started + 1 < prewarm->num_workers &&
           pthread_create(&threads[started], NULL, do_items, &work) == 0)
        started++;
    do_items(&work);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    cli_progress_end(prewarm->cli);
    prewarm->wall_ms = gj_clock_ms() - start_ms;
    prewarm->num_workers = started + 1;
    free(threads);
}

/* Rather now than after the compiles: whether the cache can be used, and written. */
static enum gj_status check_cache(struct prewarm *prewarm, gj_error **error)
{
    GJ_TRY(cli_cache_usable(prewarm->cli, error));
    gj_error *reason = NULL;
    const enum gj_status status = cli_cache_writable(prewarm->cli, &reason);
    if (status == GJ_ERR_SYSTEM && reason != NULL) {
        prewarm->read_only = reason;
        return GJ_OK;
    }
    gj_error_copy(error, reason);
    gj_error_free(&reason);
    return status;
}

static enum gj_status compile_all(struct prewarm *prewarm, gj_error **error)
{
    GJ_TRY(check_cache(prewarm, error));
    GJ_TRY(cli_context_open(prewarm->cli, &prewarm->context, error));
    do_all(prewarm);
    prewarm->is_unsent = !gj_context_flush(prewarm->context, FLUSH_MS); /* the close tells of what is left */
    gj_stats(prewarm->context, &prewarm->stats);
    return prewarm_report(prewarm, error);
}

enum gj_status cli_prewarm(struct cli *cli, gj_error **error)
{
    struct prewarm prewarm = {.cli = cli};
    if (cli->options.count[CLI_NO_CACHE])
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "prewarm contradicts --no-cache: it fills the disk cache");
    enum gj_status status = prewarm_read(&prewarm, error);
    if (status == GJ_OK)
        status = prewarm_choose_workers(&prewarm, prewarm.num_items, error);
    if (status == GJ_OK && cli->options.count[CLI_DRY_RUN])
        status = prewarm_print_plan(&prewarm, error);
    else if (status == GJ_OK)
        status = compile_all(&prewarm, error);
    for (size_t i = 0; i < prewarm.num_items; i++)
        gj_error_free(&prewarm.items[i].error);
    free(prewarm.items);
    model_free(&prewarm.model);
    gj_error_free(&prewarm.read_only);
    gj_context_close(&prewarm.context);
    return status;
}
