/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and launching cubins, without a type of cuda.h. A driver may be shared by threads; so may a loaded
 * kernel. */
#ifndef GJ_CUDA_GPU_H
#define GJ_CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include <gemmjit/error.h>
#include <gemmjit/launch.h>

#include "plan/plan.h"

typedef struct gj_driver gj_driver;

/* Opens libcuda ($GEMMJIT_CUDA, and no other if set; else libcuda.so.1) and initialises it.
 * Returns GJ_OK; GJ_ERR_NO_DRIVER: not found, or older than CUDA 12.0 (the message has the version);
 * GJ_ERR_NO_DEVICE: the driver sees no GPU; GJ_ERR_DRIVER; GJ_ERR_NO_MEMORY. */
enum gj_status gj_driver_open(gj_driver **driver, gj_error **error);
/* libcuda stays mapped until the process ends. */
void gj_driver_close(gj_driver **driver);
int gj_driver_version(const gj_driver *driver);

struct gj_gpu_info {
    char name[256];
    int major, minor; /* compute capability */
    int num_sms;
    size_t memory_bytes;
};
/* Returns GJ_OK; GJ_ERR_NO_DEVICE: no device of that ordinal; GJ_ERR_DRIVER. */
enum gj_status gj_gpu_info_get(const gj_driver *driver, int device, struct gj_gpu_info *info,
                               gj_error **error);
int gj_gpu_count(const gj_driver *driver);
/* The same, and GJ_ERR_NO_DEVICE unless the device has compute capability 9.0. */
enum gj_status gj_gpu_require(const gj_driver *driver, int device, struct gj_gpu_info *info,
                              gj_error **error);
/* A number for what a device with compute capability 9.0 is: equal for devices of one name and number of SMs,
 * different for others, above any number of SMs. Asks the driver once. Statuses as gj_gpu_require. */
enum gj_status gj_gpu_kind(gj_driver *driver, int device, int *kind, gj_error **error);
/* The SMs of a device of this kind. */
int gj_gpu_kind_sms(int kind);
/* Device of a stream, or of the calling thread's current context when stream is NULL.
 * Returns GJ_OK; GJ_ERR_NO_DEVICE: no context is current; GJ_ERR_DRIVER. */
enum gj_status gj_gpu_of_stream(const gj_driver *driver, void *stream, int *device, gj_error **error);

/* Whether the stream is being captured into a graph. Returns GJ_OK; GJ_ERR_DRIVER. */
enum gj_status gj_stream_is_capturing(const gj_driver *driver, void *stream, bool *is_capturing,
                                      gj_error **error);
/* Whether a kernel may be prepared on the stream's device, which is `device`, for a launch on it now.
 * Returns GJ_OK; GJ_ERR_NOT_PREPARED: the stream is capturing; GJ_ERR_DRIVER. */
enum gj_status gj_stream_may_prepare(const gj_driver *driver, void *stream, int device, gj_error **error);
/* Whether a cubin may be loaded for a launch on the stream now.
 * Returns GJ_OK; GJ_ERR_NOT_PREPARED: the stream is capturing, and loading would invalidate that on some
 * drivers; GJ_ERR_NO_DEVICE: no context, or not compute capability 9.0; GJ_ERR_DRIVER. */
enum gj_status gj_stream_may_load(const gj_driver *driver, void *stream, gj_error **error);

/* A cubin loaded into the process. */
typedef struct gj_loaded gj_loaded;

/* Loads a cubin; the image and the driver must outlive it. Needs no context. */
enum gj_status gj_loaded_open(const gj_driver *driver, const struct gj_plan *plan, const void *cubin,
                              gj_loaded **loaded, gj_error **error);
void gj_loaded_close(gj_loaded **loaded);

/* Sets the kernel up on a device: see gj_kernel_prepare. Idempotent. */
enum gj_status gj_loaded_prepare(gj_loaded *loaded, int device, gj_error **error);

/* Launches after gj_args_check on a stream of this device: see gj_launch. */
enum gj_status gj_loaded_launch(gj_loaded *loaded, const struct gj_plan *plan,
                                const struct gj_gemm_args *args, int device, void *stream, gj_error **error);

/* After gj_args_check: see gj_launch_prepare. Prepares the kernel on the device. */
enum gj_status gj_loaded_launch_prepare(gj_loaded *loaded, const struct gj_plan *plan,
                                        const struct gj_gemm_args *args, int device, gj_prepared **prepared,
                                        gj_error **error);

#endif
