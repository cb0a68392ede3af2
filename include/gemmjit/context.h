/* SPDX-License-Identifier: Apache-2.0 */
/* A context turns keys into kernels: it owns the in-memory table, the disk cache and the open libraries.
 *
 * All calls are safe from any thread. Opening a context calls nothing of CUDA and loads no library:
 * libnvrtc is opened by the first compile, libcuda by the first prepare or launch. */
#ifndef GEMMJIT_CONTEXT_H
#define GEMMJIT_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include <gemmjit/error.h>
#include <gemmjit/key.h>
#include <gemmjit/own.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gj_context gj_context;
typedef struct gj_kernel gj_kernel;

enum gj_log_level { GJ_LOG_ERROR, GJ_LOG_WARNING, GJ_LOG_INFO, GJ_LOG_DEBUG };

/* Called from the thread at work, possibly from several at once; message is one line without newline and
 * lives only during the call. */
typedef void (*gj_log_fn)(void *user, enum gj_log_level level, const char *message);

/* Parameters of gj_context_open. Zero everything, then set what should differ. Strings are copied. */
struct gj_context_params {
    /* Root of the disk cache. NULL: $GEMMJIT_CACHE_DIR, else $XDG_CACHE_HOME/gemmjit, else
     * $HOME/.cache/gemmjit. A root that cannot be used, as "" cannot, leaves the cache in memory only, with
     * one warning. */
    const char *cache_dir;
    /* Further places of entries, searched in this order after cache_dir and never written: packs (gemmjit
     * cache pack) and directories of the cache's layout, such as an image ships. One that cannot be used is
     * left out with a warning. NULL: those that $GEMMJIT_CACHE_LAYERS names, separated by ':'. */
    const char *const *cache_layers;
    size_t num_cache_layers;
    /* URL of a remote store (docs/remote_cache.md), which is asked after a miss on disk and before a compile;
     * what it has is checked and kept on disk. With cache_upload what is compiled is sent there, in the
     * background. NULL: $GEMMJIT_CACHE_REMOTE, and cache_upload is then $GEMMJIT_CACHE_UPLOAD. "": none. One
     * that cannot be used is left out with a warning. */
    const char *cache_remote;
    int cache_upload;
    /* Bytes that the entries below cache_dir may have together. When a kernel is stored those go that were
     * used least recently; a lookup never removes anything. 0: $GEMMJIT_CACHE_MAX_SIZE (such as 2G), else no
     * bound. */
    uint64_t cache_max_bytes;
    int no_disk_cache; /* non-zero: keep kernels in memory only; neither layers nor a remote store are read */
    int read_only;  /* non-zero: read the disk cache, write nothing into it; what is compiled stays in memory
                     */
    int no_compile; /* non-zero: every gj_kernel_get behaves as with GJ_NO_COMPILE */
    gj_log_fn log;  /* NULL: silent */
    void *log_user;
    /* Tuning tables (docs/tuning.md), paths separated by ':', which gj_gemm asks in this order before its
     * model; behind them come the built-in ones. NULL: those of $GEMMJIT_TUNING. "", also as the value of the
     * variable: none, not even the built-in ones. One that cannot be used is left out with a warning, as are
     * entries whose config this version has no kernel for. */
    const char *tuning;
    /* Directory that holds templates/ and ptx_snippets/, used instead of the built-in ones. The text of the
     * unit decides the cache entry, so edited templates never meet entries of others. NULL: built-in. */
    const char *template_dir;
};

/* Opens a context. params may be NULL (all defaults).
 * Returns GJ_OK; GJ_ERR_SYSTEM: template_dir cannot be read; GJ_ERR_NO_MEMORY. */
GJ_API enum gj_status gj_context_open(const struct gj_context_params *params, gj_context **context,
                                      gj_error **error);

/* Closes *context, frees its kernels and sets *context to NULL. NULL is legal. No other thread may use the
 * context any more, and no launch of its kernels may be pending in a graph that will still be replayed. */
GJ_API void gj_context_close(gj_context **context);

/* Flags of gj_kernel_get. */
#define GJ_NO_COMPILE 1u /* give GJ_ERR_NOT_CACHED instead of compiling */

/* Finds the kernel of a key: in memory, else in the disk cache, else by compiling it. One compile per key is
 * in flight; other callers of the same key wait for it and share its result or its error. The kernel belongs
 * to the context and lives until gj_context_close. Needs no GPU.
 * Returns GJ_OK; GJ_ERR_UNSUPPORTED as gj_key_check; GJ_ERR_ARGUMENT: the key's own function was not added
 * with gj_own_add; GJ_ERR_NOT_CACHED; GJ_ERR_NO_COMPILER: no libnvrtc, or too old; GJ_ERR_GENERATE;
 * GJ_ERR_COMPILE (detail has the log, locations the template lines); GJ_ERR_NO_MEMORY. *kernel is untouched
 * on failure. */
GJ_API enum gj_status gj_kernel_get(gj_context *context, const struct gj_key *key, unsigned flags,
                                    gj_kernel **kernel, gj_error **error);

/* gj_kernel_get for num_keys keys, with several threads: fills a server's table at its start. kernels[i]
 * becomes the kernel of keys[i], or NULL where that failed; kernels may be NULL. All keys are tried.
 * num_threads 0: as many as the process has processors, at most 8; more than 64 count as 64. Returns GJ_OK;
 * GJ_ERR_ARGUMENT: num_threads is negative; else status and error of the first key, by index, that failed, as
 * gj_kernel_get. */
GJ_API enum gj_status gj_kernels_get(gj_context *context, const struct gj_key *keys, size_t num_keys,
                                     unsigned flags, int num_threads, gj_kernel **kernels, gj_error **error);

enum gj_origin { GJ_ORIGIN_COMPILED, GJ_ORIGIN_DISK, GJ_ORIGIN_REMOTE };

/* What is known of a kernel. Strings live as long as the kernel. */
struct gj_kernel_info {
    const char *key_text;   /* canonical key text */
    const char *entry_name; /* name of the __global__ function, as a profiler shows it */
    const char *plan_text;  /* the plan as a table, several lines */
    int registers;          /* per thread at launch */
    int threads;            /* per CTA */
    int smem_bytes;         /* dynamic shared memory per CTA */
    int stages;             /* depth of the A/B pipeline */
    int spill_bytes;        /* local memory per thread; 0 for every accepted key */
    size_t cubin_bytes;
    const void *cubin;
    enum gj_origin origin;
    double generate_ms, compile_ms, load_ms; /* load: reading and checking the disk entry */
    const char *compiler;                    /* e.g. "nvrtc 13.0" */
    int stored;                              /* non-zero: loaded from disk, or published there */
};

/* Fills *info. Never fails. */
GJ_API void gj_kernel_info(const gj_kernel *kernel, struct gj_kernel_info *info);

/* Loads the kernel on a device (CUdevice ordinal) and sets its attributes, so that later launches there only
 * encode tensor maps and launch, which is legal while a stream captures. Needs a current context of that
 * device, or none (then the device's primary context is retained until gj_context_close). Idempotent.
 * Returns GJ_OK; GJ_ERR_NO_DRIVER; GJ_ERR_NO_DEVICE: no such device, or not compute capability 9.0;
 * GJ_ERR_DRIVER; GJ_ERR_NO_MEMORY. */
GJ_API enum gj_status gj_kernel_prepare(gj_kernel *kernel, int device, gj_error **error);

/* Counters since the context was opened. Names are permanent. */
struct gj_stats {
    uint64_t compiles;            /* NVRTC compiles that succeeded */
    uint64_t compile_failures;    /* NVRTC compiles or their checks that failed */
    uint64_t memory_hits;         /* gj_kernel_get answered from memory */
    uint64_t disk_hits;           /* entries loaded from disk, layers included */
    uint64_t disk_misses;         /* no entry on disk */
    uint64_t damaged_entries;     /* entries refused: truncated, altered, foreign, or of another key */
    uint64_t waits;               /* callers that waited for another caller's compile */
    uint64_t disk_bytes_read;     /* bytes of entries read */
    uint64_t disk_bytes_written;  /* bytes of entries published */
    uint64_t disk_write_failures; /* entries that could not be published */
    uint64_t nvrtc_opens;         /* 1 once libnvrtc has been opened, else 0 */
    uint64_t lock_waits;          /* times that another process was at the same kernel and was waited for */
    uint64_t layer_hits;          /* entries loaded from a layer: a part of disk_hits */
    uint64_t remote_hits;         /* entries fetched from the remote store */
    uint64_t remote_misses;       /* entries that it did not have */
    uint64_t remote_failures;     /* times that it did not answer, or was not asked because it was dead */
    uint64_t uploads;             /* entries sent to it */
    uint64_t upload_failures;     /* entries that could not be sent */
    uint64_t warm_compiles;       /* compiles, also failed ones, after gj_context_mark_warm */
};

GJ_API void gj_stats(const gj_context *context, struct gj_stats *stats);

/* Waits until what is queued for the remote store has been sent or dropped, at most timeout_ms. Returns
 * non-zero when nothing is left. gj_context_close waits too, but for 3 s at most. */
GJ_API int gj_context_flush(gj_context *context, int timeout_ms);

/* A compile in a context that should need none. The text lives only during the call. */
struct gj_compile_event {
    const char *key_text;  /* canonical key text */
    enum gj_status status; /* GJ_OK, or why it failed, as gj_kernel_get returns it */
    double compile_ms;
};

/* Called from the thread that compiled, before its gj_kernel_get returns, possibly from several threads at
 * once. It may call anything but gj_kernel_get for the same key and gj_context_close. */
typedef void (*gj_compile_fn)(void *user, const struct gj_compile_event *event);

/* Declares that the context has every kernel it should need. From now on each compile is counted in
 * gj_stats.warm_compiles, told to compiled, and logged as a warning; kernels come from memory and disk as
 * before. A later call takes the place of an earlier one. compiled may be NULL. */
GJ_API void gj_context_mark_warm(gj_context *context, gj_compile_fn compiled, void *user);

/* The generated unit of a key, with the built-in templates. *source is a zero-terminated text that the
 * caller frees with gj_free; *bytes is its length and may be NULL.
 * Returns GJ_OK; GJ_ERR_UNSUPPORTED; GJ_ERR_GENERATE; GJ_ERR_NO_MEMORY. */
GJ_API enum gj_status gj_source(const struct gj_key *key, char **source, size_t *bytes, gj_error **error);

enum gj_image { GJ_IMAGE_PTX, GJ_IMAGE_CUBIN };

/* Compiles a key without a context, a cache or a GPU. *image is freed by the caller with gj_free. PTX is
 * zero-terminated text (the zero is not counted in *bytes).
 * Returns as gj_kernel_get. */
GJ_API enum gj_status gj_compile(const struct gj_key *key, enum gj_image kind, void **image, size_t *bytes,
                                 gj_error **error);

/* Makes a function known to a context, which copies it: kernels with act=own and its id can be made from now
 * on. The same function may be added again. *id may be NULL. Returns GJ_OK; GJ_ERR_ARGUMENT as
 * gj_own_identify; GJ_ERR_NO_MEMORY. */
GJ_API enum gj_status gj_own_add(gj_context *context, const struct gj_own *own, struct gj_own_id *id,
                                 gj_error **error);

/* The unit of a key as gj_source gives it, but with the context's templates and own functions.
 * Returns as gj_source; GJ_ERR_ARGUMENT: the key's function was not added. */
GJ_API enum gj_status gj_context_source(gj_context *context, const struct gj_key *key, char **source,
                                        size_t *bytes, gj_error **error);

/* Compiles a key as gj_compile does, but with the context's templates, own functions and libnvrtc. Neither
 * reads nor writes a cache. Returns as gj_compile; GJ_ERR_ARGUMENT: the key's function was not added. */
GJ_API enum gj_status gj_context_compile(gj_context *context, const struct gj_key *key, enum gj_image kind,
                                         void **image, size_t *bytes, gj_error **error);

/* Frees what gj_source, gj_compile and their like return. NULL is legal. */
GJ_API void gj_free(void *memory);

/* Version of the library as "MAJOR.MINOR.PATCH". Static storage. */
GJ_API const char *gj_version(void);

#define GJ_VERSION "0.1.0"

#ifdef __cplusplus
}
#endif

#endif
