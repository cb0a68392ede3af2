/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, graphs and marks of a device in use. */
#include "cuda/device_work.h"

#include "base/error_build.h"
#include "cuda/device_impl.h"

enum gj_status gj_device_load(gj_device *device, const void *cubin, void **library, gj_error **error)
{
    CUlibrary loaded = NULL;
    GJ_TRY(gj_device_checked(
        device, device->driver->cuLibraryLoadData_fn(&loaded, cubin, NULL, NULL, 0, NULL, NULL, 0),
        "a cubin cannot be loaded", error));
    *library = loaded;
    return GJ_OK;
}

void gj_device_unload(gj_device *device, void *library)
{
    if (library != NULL)
        device->driver->cuLibraryUnload_fn(library);
}

enum gj_status gj_device_run(gj_device *device, void *library, const char *kernel, int blocks, int threads,
                             void **arguments, gj_error **error)
{
    const struct gj_driver *const driver = device->driver;
    CUkernel found = NULL;
    GJ_TRY(gj_device_checked(device, driver->cuLibraryGetKernel_fn(&found, library, kernel), kernel, error));
    const CUlaunchConfig config = {.gridDimX = (unsigned)blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = (unsigned)threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = device->stream};
    return gj_device_checked(device, driver->cuLaunchKernelEx_fn(&config, (CUfunction)found, arguments, NULL),
                             kernel, error);
}

/* -- Graphs -------------------------------------------------------------------------------------------- */

static bool has_graphs(const struct gj_driver *driver)
{
    return driver->cuStreamBeginCapture_fn != NULL && driver->cuStreamEndCapture_fn != NULL &&
           driver->cuGraphInstantiateWithFlags_fn != NULL && driver->cuGraphLaunch_fn != NULL &&
           driver->cuGraphExecDestroy_fn != NULL && driver->cuGraphDestroy_fn != NULL;
}

enum gj_status gj_device_capture(gj_device *device, gj_error **error)
{
    if (!has_graphs(device->driver))
        GJ_FAIL(error, GJ_ERR_DRIVER, GJ_STAGE_LAUNCH, "the driver lacks functions for graphs");
    return gj_device_checked(
        device, device->driver->cuStreamBeginCapture_fn(device->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "a capture cannot begin", error);
}

enum gj_status gj_device_captured(gj_device *device, void **graph, gj_error **error)
{
    const struct gj_driver *const driver = device->driver;
    CUgraph captured = NULL;
    CUgraphExec executable = NULL;
    CUresult result = driver->cuStreamEndCapture_fn(device->stream, &captured);
    if (result == CUDA_SUCCESS)
        result = driver->cuGraphInstantiateWithFlags_fn(&executable, captured, 0);
    if (captured != NULL)
        driver->cuGraphDestroy_fn(captured);
    GJ_TRY(gj_device_checked(device, result, "a graph cannot be made of what was captured", error));
    *graph = executable;
    return GJ_OK;
}

enum gj_status gj_device_graph_launch(gj_device *device, void *graph, gj_error **error)
{
    return gj_device_checked(device, device->driver->cuGraphLaunch_fn(graph, device->stream),
                             "a graph cannot be launched", error);
}

void gj_device_graph_free(gj_device *device, void *graph)
{
    if (graph != NULL)
        device->driver->cuGraphExecDestroy_fn(graph);
}

/* -- Marks --------------------------------------------------------------------------------------------- */

enum gj_status gj_device_mark_make(gj_device *device, void **mark, gj_error **error)
{
    CUevent event = NULL;
    GJ_TRY(gj_device_checked(device, device->driver->cuEventCreate_fn(&event, CU_EVENT_DEFAULT),
                             "an event cannot be made", error));
    *mark = event;
    return GJ_OK;
}

enum gj_status gj_device_mark_set(gj_device *device, void *mark, gj_error **error)
{
    return gj_device_checked(device, device->driver->cuEventRecord_fn(mark, device->stream),
                             "an event cannot be recorded", error);
}

enum gj_status gj_device_mark_span(gj_device *device, void *from, void *to, float *ms, gj_error **error)
{
    return gj_device_checked(device, device->driver->cuEventElapsedTime_fn(ms, from, to),
                             "the time between two events cannot be had", error);
}

void gj_device_mark_free(gj_device *device, void *mark)
{
    if (mark != NULL)
        device->driver->cuEventDestroy_fn(mark);
}
