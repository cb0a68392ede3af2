/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, streams and timing for the command and the GPU tests; the library itself allocates nothing.
 */
#ifndef GJ_CUDA_DEVICE_H
#define GJ_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/gpu.h"

/* A device in use: its primary context, current on the opening thread, and one non-blocking stream. */
typedef struct gj_device gj_device;

enum gj_status gj_device_open(const gj_driver *driver, int ordinal, gj_device **device, gj_error **error);
void gj_device_close(gj_device **device);
void *gj_device_stream(const gj_device *device);

enum gj_status gj_device_alloc(gj_device *device, size_t bytes, void **memory, gj_error **error);
void gj_device_free(gj_device *device, void *memory);
/* Synchronous copies. */
enum gj_status gj_device_write(gj_device *device, void *target, const void *source, size_t bytes,
                               gj_error **error);
enum gj_status gj_device_read(gj_device *device, void *target, const void *source, size_t bytes,
                              gj_error **error);
/* Fills with a byte, on the device's stream. */
enum gj_status gj_device_fill(gj_device *device, void *memory, int byte, size_t bytes, gj_error **error);
/* Waits for the device's stream. timeout_ms 0: for ever; otherwise GJ_ERR_DRIVER once it has passed. */
enum gj_status gj_device_sync(gj_device *device, int timeout_ms, gj_error **error);

/* Two events around work on the stream. */
enum gj_status gj_device_timer_start(gj_device *device, gj_error **error);
/* Ends the timed span, waits for it and gives its milliseconds. */
enum gj_status gj_device_timer_stop(gj_device *device, float *ms, gj_error **error);

#endif
