/* SPDX-License-Identifier: Apache-2.0 */
/* What launches cost the host: launch_cost [--cache-dir DIR]. Nanoseconds of a bare cuLaunchKernelEx of the
 * same kernel, of gj_gemm, gj_launch and gj_prepared_launch, each the median over rounds of trains of calls,
 * and how much more than the bare one; then of the driver's calls that those are made of. The GPU's work is
 * small (512 x 512 x 64), and is waited for between trains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gemmjit/gemmjit.h>

#include "api/context_private.h"
#include "base/clock.h"
#include "cuda/device.h"
#include "cuda/work.h"

enum { CALLS = 200, ROUNDS = 101, EXIT_SKIP = 77 };
enum { M = 512, N = 512, K = 64 };

enum way {
    BARE,
    LAUNCH,
    GEMM,
    PREPARED,
    FIRST_PART,
    GET_CURRENT = FIRST_PART,
    GET_CONTEXT,
    GET_DEVICE,
    ENCODE,
    REPLACE,
    NUM_WAYS
};
static const char *const way_names[] = {
    "cuLaunchKernelEx",         "gj_launch",      "gj_gemm",        "gj_prepared_launch",
    "cuCtxGetCurrent",          "cuStreamGetCtx", "cuCtxGetDevice", "cuTensorMapEncodeTiled, all operands",
    "cuTensorMapReplaceAddress"};

struct cost {
    gj_driver *driver;
    gj_device *device;
    gj_context *context;
    gj_kernel *kernel;
    gj_prepared *prepared;
    struct gj_key problem;
    struct gj_gemm_args args;
    void *stream;
    gj_loaded *loaded;
    struct gj_work work;
    double ns[NUM_WAYS][ROUNDS];
};

static void must_status(enum gj_status status, gj_error *error)
{
    if (status == GJ_OK)
        return;
    fprintf(stderr, "launch_cost: %s\n", error ? error->message : gj_status_name(status));
    exit(status == GJ_ERR_NO_DRIVER || status == GJ_ERR_NO_DEVICE ? EXIT_SKIP : 1);
}

#define must(call)                             \
    do {                                       \
        gj_error *error = NULL;                \
        const enum gj_status status_ = (call); \
        must_status(status_, error);           \
    } while (0)

static void open_all(struct cost *cost, const char *cache_dir)
{
    const struct gj_context_params params = {.cache_dir = cache_dir};
    struct gj_key key;
    must(gj_driver_open(&cost->driver, &error));
    must(gj_device_open(cost->driver, 0, &cost->device, &error));
    must(gj_context_open(&params, &cost->context, &error));
    cost->stream = gj_device_stream(cost->device);
    cost->args = (struct gj_gemm_args){.m = M, .n = N, .k = K, .batch = 1};
    must(gj_device_alloc(cost->device, (size_t)M * K * 2, &cost->args.a.data, &error));
    must(gj_device_alloc(cost->device, (size_t)N * K * 2, &cost->args.b.data, &error));
    must(gj_device_alloc(cost->device, (size_t)M * N * 2, &cost->args.d.data, &error));
    cost->args.a.ld = cost->args.b.ld = K;
    cost->args.d.ld = N;
    cost->problem = gj_key_default();
    must(gj_key_choose(&cost->problem, M, N, K, 1, 0, &key, &error));
    must(gj_kernel_get(cost->context, &key, 0, &cost->kernel, &error));
    must(gj_launch_prepare(cost->kernel, &cost->args, 0, &cost->prepared, &error));
    must(gj_kernel_loaded(cost->kernel, &cost->loaded, &error));
    must(gj_work_make(cost->loaded, 0, &cost->kernel->plan, &cost->args, &cost->work, &error));
}

static void close_all(struct cost *cost)
{
    gj_prepared_free(&cost->prepared);
    gj_context_close(&cost->context);
    gj_device_free(cost->device, cost->args.a.data);
    gj_device_free(cost->device, cost->args.b.data);
    gj_device_free(cost->device, cost->args.d.data);
    gj_device_close(&cost->device);
    gj_driver_close(&cost->driver);
}

/* The least that a launch of this kernel takes: its arguments lie ready. */
static void launch_bare(struct cost *cost, int calls)
{
    struct gj_config config;
    struct gj_work *const work = &cost->work;
    void *arguments[] = {&work->maps.a, &work->maps.b, &work->maps.d, &work->maps.d_tail, &work->params};
    gj_loaded_config(cost->loaded, work->clusters, cost->stream, false, &config);
    for (int i = 0; i < calls; i++)
        if (cost->driver->cuLaunchKernelEx_fn(&config.config, (CUfunction)cost->loaded->kernel, arguments,
                                              NULL) != CUDA_SUCCESS)
            exit(1);
}

/* One of the driver's calls that a launch is made of. */
static CUresult call_part(struct cost *cost, enum way way)
{
    const struct gj_driver *const driver = cost->driver;
    CUcontext context;
    CUdevice device;
    if (way == GET_CURRENT)
        return driver->cuCtxGetCurrent_fn(&context);
    if (way == GET_CONTEXT)
        return driver->cuStreamGetCtx_fn((CUstream)cost->stream, &context);
    if (way == GET_DEVICE)
        return driver->cuCtxGetDevice_fn(&device);
    if (way == REPLACE)
        return driver->cuTensorMapReplaceAddress_fn(&cost->work.maps.a, cost->args.a.data);
    return gj_tensor_maps_encode(driver, &cost->kernel->plan, &cost->args, &cost->work.maps, NULL) == GJ_OK
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static void call(struct cost *cost, enum way way, int calls)
{
    if (way >= FIRST_PART) {
        for (int i = 0; i < calls; i++)
            if (call_part(cost, way) != CUDA_SUCCESS)
                exit(1);
        return;
    }
    const struct gj_gemm_args *const args = &cost->args;
    const struct gj_pointers pointers = {.a = args->a.data, .b = args->b.data, .d = args->d.data};
    if (way == BARE)
        launch_bare(cost, calls);
    for (int i = 0; i < calls && way != BARE; i++) {
        gj_error *error = NULL;
        must_status(way == LAUNCH ? gj_launch(cost->kernel, args, cost->stream, &error)
                    : way == GEMM ? gj_gemm(cost->context, &cost->problem, args, cost->stream, &error)
                                  : gj_prepared_launch(cost->prepared, &pointers, cost->stream, &error),
                    error);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_rounds(struct cost *cost)
{
    for (int round = -2; round < ROUNDS; round++) {
        for (int i = 0; i < NUM_WAYS; i++) {
            const int way = (i + round + 2) % NUM_WAYS; /* each way follows each other */
            const double start = gj_clock_ms();
            call(cost, (enum way)way, CALLS);
            if (round >= 0)
                cost->ns[way][round] = (gj_clock_ms() - start) * 1e6 / CALLS;
            must(gj_device_sync(cost->device, 10000, &error));
        }
    }
}

int main(int argc, char **argv)
{
    static struct cost cost;
    double bare = 0;
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--cache-dir") != 0)) {
        fprintf(stderr, "usage: launch_cost [--cache-dir DIR]\n");
        return 2;
    }
    open_all(&cost, argc == 3 ? argv[2] : NULL);
    time_rounds(&cost);
    printf("| call | ns, median | quartiles | above the bare launch |\n|---|---|---|---|\n");
    for (int way = 0; way < NUM_WAYS; way++) {
        double *const ns = cost.ns[way];
        qsort(ns, ROUNDS, sizeof *ns, compare);
        const double median = ns[ROUNDS / 2];
        bare = way == BARE ? median : bare;
        printf("| %s | %.0f | %.0f to %.0f | ", way_names[way], median, ns[ROUNDS / 4], ns[3 * ROUNDS / 4]);
        if (way < FIRST_PART)
            printf("%.0f", median - bare);
        printf(" |\n");
    }
    close_all(&cost);
    return 0;
}
