/* SPDX-License-Identifier: Apache-2.0 */
/* More for programs that measure: kernels of their own, graphs, and marks in the stream's time. */
#ifndef GJ_CUDA_DEVICE_WORK_H
#define GJ_CUDA_DEVICE_WORK_H

#include "cuda/device.h"

/* A loaded cubin. */
enum gj_status gj_device_load(gj_device *device, const void *cubin, void **library, gj_error **error);
void gj_device_unload(gj_device *device, void *library);
/* Launches a kernel of it on the device's stream, in one dimension. arguments: as cuLaunchKernel takes them.
 */
enum gj_status gj_device_run(gj_device *device, void *library, const char *kernel, int blocks, int threads,
                             void **arguments, gj_error **error);

/* What is launched on the device's stream between the two calls becomes a graph. The second call ends the
 * capture whatever happened meanwhile. GJ_ERR_DRIVER: also when the driver has no graphs. */
enum gj_status gj_device_capture(gj_device *device, gj_error **error);
enum gj_status gj_device_captured(gj_device *device, void **graph, gj_error **error);
enum gj_status gj_device_graph_launch(gj_device *device, void *graph, gj_error **error);
void gj_device_graph_free(gj_device *device, void *graph);

/* A mark is a point in the stream's time, to be set as often as one likes. */
enum gj_status gj_device_mark_make(gj_device *device, void **mark, gj_error **error);
enum gj_status gj_device_mark_set(gj_device *device, void *mark, gj_error **error);
/* Milliseconds between two marks that the stream has passed. */
enum gj_status gj_device_mark_span(gj_device *device, void *from, void *to, float *ms, gj_error **error);
void gj_device_mark_free(gj_device *device, void *mark);

#endif
