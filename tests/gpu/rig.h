/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU programs share: a device, the reference kernels, and failing with a sentence. */
#ifndef GJ_TESTS_GPU_RIG_H
#define GJ_TESTS_GPU_RIG_H

#include <stdint.h>

#include <gemmjit/gemmjit.h>

#include "cuda/device.h"
#include "cuda/driver.h"

#define EXIT_SKIP 77
#define WATCHDOG_MS 10000

struct rig {
    gj_driver *driver;
    gj_device *device;
    struct gj_gpu_info gpu;
    gj_context *context;
    const char *reference; /* path of reference.cu */
    CUlibrary library;
    CUkernel fill, fill_matrix, multiply, compare, distance, make_positive, exact_error, differing_words;
    CUstream stream;
};

/* Opens everything or exits: 77 when there is no GPU, 1 on any other failure. reference: path of
 * reference.cu; cache_dir may be NULL. */
void rig_open(struct rig *rig, const char *reference, const char *cache_dir);
void rig_close(struct rig *rig);
/* Compiles and loads further kernels: the text of path behind that of reference.cu, whose functions it may
 * call; NULL: reference.cu alone. first_entry: one of its kernels. Exits when something fails. */
CUlibrary rig_load(struct rig *rig, const char *path, const char *first_entry);
CUkernel rig_kernel(struct rig *rig, CUlibrary library, const char *name);

/* Exits with the error's sentence when status is not GJ_OK. */
void must_status(enum gj_status status, gj_error *error, const char *what);
/* must(call(..., &error), error, what): the call comes before its error is looked at. */
#define must(call, error, what)                     \
    do {                                            \
        const enum gj_status must_status_ = (call); \
        must_status(must_status_, error, what);     \
    } while (0)
void must_cuda(const struct rig *rig, CUresult result, const char *what);

void *rig_alloc(struct rig *rig, size_t bytes);
/* A packed array. kind 0: small integers, 1: standard normal. */
void rig_fill(struct rig *rig, void *data, uint64_t count, enum gj_dtype dtype, int kind, uint32_t seed);
/* Launches one of the reference kernels with blocks of x * y threads. */
void rig_launch(struct rig *rig, CUkernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, void **arguments);

/* Prints "GPU, driver, date, commit" as a line of Markdown. */
void rig_print_setting(const struct rig *rig, const char *commit);

#endif
