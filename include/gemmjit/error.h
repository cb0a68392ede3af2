/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the error object that every fallible call can fill. */
#ifndef GEMMJIT_ERROR_H
#define GEMMJIT_ERROR_H

#include <stddef.h>

#include <gemmjit/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Outcome of a call. Values are permanent: new ones are appended. The groups say what to do about it:
 * correct the call, install something, report a defect, or free resources. */
enum gj_status {
    GJ_OK = 0,

    /* The caller's input is at fault: correct the call. */
    GJ_ERR_ARGUMENT = 1,    /* pointer, stride, extent or flag breaks a rule named in the message */
    GJ_ERR_KEY = 2,         /* key text: unknown, repeated, contradictory or malformed field */
    GJ_ERR_UNSUPPORTED = 3, /* a well-formed key that is refused; reasons[] lists every reason */

    /* Something is missing on this machine. */
    GJ_ERR_NO_COMPILER = 10,  /* no libnvrtc, or one that is too old */
    GJ_ERR_NO_DRIVER = 11,    /* no libcuda.so.1, or one that is too old */
    GJ_ERR_NO_DEVICE = 12,    /* no GPU, no current context, or a GPU that is not compute capability 9.0 */
    GJ_ERR_NOT_CACHED = 13,   /* GJ_NO_COMPILE was given and no layer of the cache has the key */
    GJ_ERR_NOT_PREPARED = 14, /* the stream is capturing and the kernel is not loaded on its device yet */

    /* A stage failed. */
    GJ_ERR_GENERATE = 20, /* template error: detail has file, line and excerpt */
    GJ_ERR_COMPILE = 21,  /* NVRTC refused the unit, or its cubin broke a rule: detail has the log */
    GJ_ERR_DRIVER = 22,   /* a CUDA driver call failed: origin_code is the CUresult */
    GJ_ERR_SYSTEM = 23,   /* a system call failed: origin_code is errno */

    GJ_ERR_NO_MEMORY = 30,
    GJ_ERR_INTERNAL = 31, /* a defect of this library */
};

/* Pipeline stage in which an error arose. */
enum gj_stage {
    GJ_STAGE_NONE = 0,
    GJ_STAGE_KEY,
    GJ_STAGE_PLAN,
    GJ_STAGE_GENERATE,
    GJ_STAGE_COMPILE,
    GJ_STAGE_CACHE,
    GJ_STAGE_LOAD,
    GJ_STAGE_LAUNCH,
};

/* A place in a template or snippet that a compiler message points at. */
struct gj_location {
    const char *file;    /* path below the repository root, e.g. "templates/gemm.cuh" */
    int line;            /* 1-based line in that file */
    int unit_line;       /* 1-based line in the generated unit */
    const char *message; /* the compiler's message */
    const char *excerpt; /* the source line, or "" */
};

/* Everything known about one failure. Created by the library, read-only for the caller, freed with
 * gj_error_free. All strings are UTF-8, never NULL, and owned by the error. */
struct gj_error {
    enum gj_status status;
    enum gj_stage stage;
    int origin_code;         /* nvrtcResult, CUresult or errno; 0 when the library itself refused */
    const char *origin_name; /* symbolic name of origin_code, e.g. "CUDA_ERROR_INVALID_VALUE", or "" */
    const char *message;     /* one sentence with the offending values and the rule */
    const char *detail;      /* full compiler log or further lines, or "" */
    size_t num_reasons;      /* GJ_ERR_UNSUPPORTED: every reason, each one sentence with numbers */
    const char *const *reasons;
    size_t num_locations;
    const struct gj_location *locations;
};
typedef struct gj_error gj_error;

/* Frees *error and sets it to NULL. NULL and a pointer to NULL are legal. */
GJ_API void gj_error_free(gj_error **error);

/* Symbolic name of a status, e.g. "GJ_ERR_KEY"; "GJ_ERR_?" for a value outside the enum. Static storage. */
GJ_API const char *gj_status_name(enum gj_status status);

/* Name of a stage, e.g. "compile". Static storage. */
GJ_API const char *gj_stage_name(enum gj_stage stage);

#ifdef __cplusplus
}
#endif

#endif
