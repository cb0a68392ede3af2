/* SPDX-License-Identifier: Apache-2.0 */
/* A unit becomes PTX or a cubin: libnvrtc by dlopen, its log kept, its result checked. */
#ifndef GJ_COMPILE_COMPILE_H
#define GJ_COMPILE_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

#include <gemmjit/context.h>
#include <gemmjit/error.h>

/* Oldest NVRTC whose sm_90a support this library relies on (wgmma, setmaxnreg, __grid_constant__); see
 * docs/architecture.md. */
#define GJ_NVRTC_MIN_MAJOR 12
#define GJ_NVRTC_MIN_MINOR 3

/* The options of every compile, in order, as one text separated by single spaces: part of the cache name. */
#define GJ_COMPILE_ARCH "sm_90a"
const char *gj_compile_options(void);

/* Where libnvrtc was found without opening it. Changes when the library is replaced. */
struct gj_compiler_identity {
    char path[4096]; /* "" when no file was found in the documented places */
    char text[4352]; /* "path|size|mtime_ns|inode": names this very file */
};

/* Looks for libnvrtc in the documented order, by stat only:
 *   1. $GEMMJIT_NVRTC, a file: if set, nothing else is tried;
 *   2. each directory of $LD_LIBRARY_PATH; 3. $CUDA_HOME/lib64, $CUDA_PATH/lib64; 4. the directory given at
 *   build time; 5. /usr/local/cuda/lib64, the multiarch directory, /usr/lib64, /usr/lib;
 *   in each, libnvrtc.so.13, libnvrtc.so.12, libnvrtc.so.
 * Returns whether a file was found; identity->path is "" otherwise. */
bool gj_compiler_locate(struct gj_compiler_identity *identity);

typedef struct gj_compiler gj_compiler;

/* Opens libnvrtc: the located file, else whatever the loader finds under those names.
 * Returns GJ_OK; GJ_ERR_NO_COMPILER: not found (the message lists where), not loadable (dlerror), a symbol is
 * missing, or too old (path, version found, version needed); GJ_ERR_NO_MEMORY. */
enum gj_status gj_compiler_open(gj_compiler **compiler, gj_error **error);
/* The library itself stays mapped until the process ends: NVRTC does not support being unloaded. */
void gj_compiler_close(gj_compiler **compiler);
const char *gj_compiler_version(const gj_compiler *compiler); /* "nvrtc 13.0" */
const char *gj_compiler_path(const gj_compiler *compiler);

/* Maps a line of the unit to the template line it came from. Implemented by the caller, which has the map:
 * returns false when the line has none. Pointers in *location live as long as the map. */
struct gj_line_lookup {
    bool (*find)(const void *map, int unit_line, struct gj_location *location);
    const void *map;
};

struct gj_compile_request {
    const char *unit; /* zero-terminated source */
    const char *name; /* program name for messages, e.g. the entry name */
    const char *entry_name;
    enum gj_image kind;
    int max_spill_bytes; /* what the plan allows; more is a failure */
    int mma_per_tile;    /* not used when 0: least number of wgmma instructions the cubin must hold */
    struct gj_line_lookup lines;
};

/* What a compile gave. image is freed with free. */
struct gj_compile_result {
    void *image;
    size_t bytes;
    char *log; /* NVRTC's log, "" if empty; freed with free */
    double compile_ms;
    int registers, spill_bytes, max_threads; /* read from the cubin; 0 for PTX */
};

/* Compiles. Fails with GJ_ERR_COMPILE (detail: options and full log; locations: template positions) when
 * NVRTC refuses the unit, when the log has a message of docs/errors.md's list (wgmma serialised, setmaxnreg
 * ignored, wait or arrive injected), when the cubin is empty, is not an sm_90 ELF, lacks the entry, or spills
 * more than allowed. Thread-safe: one compiler may serve several threads at once. */
enum gj_status gj_compiler_run(gj_compiler *compiler, const struct gj_compile_request *request,
                               struct gj_compile_result *result, gj_error **error);

#endif
