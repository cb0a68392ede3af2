/* SPDX-License-Identifier: Apache-2.0 */
/* What a context and a kernel hold; for src/api only. */
#ifndef GJ_API_CONTEXT_PRIVATE_H
#define GJ_API_CONTEXT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <gemmjit/context.h>

#include "api/choice.h"
#include "api/own_list.h"
#include "api/table.h"
#include "base/log.h"
#include "cache/cache.h"
#include "compile/compile.h"
#include "cuda/gpu.h"
#include "generate/unit.h"
#include "plan/plan.h"
#include "tuning/tuning.h"

/* One counter for each member of struct gj_stats that the context counts itself. */
enum gj_counter {
    GJ_COUNT_COMPILES,
    GJ_COUNT_COMPILE_FAILURES,
    GJ_COUNT_MEMORY_HITS,
    GJ_COUNT_DISK_HITS,
    GJ_COUNT_DISK_MISSES,
    GJ_COUNT_DAMAGED_ENTRIES,
    GJ_COUNT_WAITS,
    GJ_COUNT_DISK_BYTES_READ,
    GJ_COUNT_DISK_BYTES_WRITTEN,
    GJ_COUNT_DISK_WRITE_FAILURES,
    GJ_COUNT_NVRTC_OPENS,
    GJ_COUNT_LOCK_WAITS,
    GJ_COUNT_LAYER_HITS,
    GJ_COUNT_REMOTE_HITS,
    GJ_COUNT_WARM_COMPILES,
    GJ_NUM_COUNTERS
};

struct gj_flight;

struct gj_context {
    struct gj_log log;
    int no_compile;
    struct gj_assets *assets; /* NULL: the built-in templates */
    gj_cache *cache;          /* NULL: no disk cache */
    struct gj_tuning tuning;  /* does not change once the context is open */
    struct gj_table kernels;
    struct gj_choices choices;
    struct gj_own_list owns; /* under lock */
    atomic_uint_least64_t counters[GJ_NUM_COUNTERS];

    pthread_mutex_t lock;        /* of kernels' insertions, flights, and of opening the libraries */
    pthread_cond_t landed;       /* a flight has ended */
    struct gj_flight *flights;   /* keys being loaded or compiled */
    gj_compiler *compiler;       /* opened by the first compile */
    _Atomic(gj_driver *) driver; /* opened by the first prepare or launch */
    int located;                 /* identity is filled */
    bool is_warm;                /* gj_context_mark_warm was called, with these: */
    gj_compile_fn compiled;
    void *compiled_user;
    struct gj_compiler_identity identity;
};

struct gj_kernel {
    struct gj_table_entry entry; /* first: the table's view */
    gj_context *context;
    struct gj_plan plan;
    struct gj_kernel_info info;
    char key_text[GJ_KEY_TEXT_MAX];
    char *plan_text, *compiler;
    void *cubin; /* owned; NULL when it is from_disk's */
    struct gj_cache_entry from_disk;
    pthread_mutex_t lock;
    _Atomic(gj_loaded *) loaded; /* opened by the first prepare or launch */
};

static inline void gj_count(gj_context *context, enum gj_counter counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&context->counters[counter], amount, memory_order_relaxed);
}

/* Makes the kernel of an accepted key from disk or by a compile; the caller has made sure that no one else
 * does, by the flight. Statuses as gj_kernel_get. */
enum gj_status gj_kernel_make(gj_context *context, const struct gj_key *key, struct gj_flight *flight,
                              int no_compile, gj_kernel **kernel, gj_error **error);
/* Tells those who wait that this flight was not served from disk. */
void gj_flight_compiles(gj_context *context, struct gj_flight *flight);
void gj_kernel_destroy(void *kernel);

/* Opens libnvrtc or libcuda once per context. */
enum gj_status gj_context_compiler(gj_context *context, gj_compiler **compiler, gj_error **error);
enum gj_status gj_context_driver(gj_context *context, gj_driver **driver, gj_error **error);

/* The kernel's loaded cubin, loading it on first need. */
enum gj_status gj_kernel_loaded(gj_kernel *kernel, gj_loaded **loaded, gj_error **error);

/* The unit of a plan with the context's templates and own functions; context NULL: the built-in ones, no
 * function. */
enum gj_status gj_context_unit(gj_context *context, const struct gj_plan *plan, struct gj_unit *unit,
                               gj_error **error);

/* Compiles a unit; shared with gj_compile. */
enum gj_status gj_unit_compile(gj_compiler *compiler, const struct gj_plan *plan, const struct gj_unit *unit,
                               enum gj_image kind, struct gj_compile_result *result, gj_error **error);

#endif
