/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a device share. */
#ifndef GJ_CUDA_DEVICE_IMPL_H
#define GJ_CUDA_DEVICE_IMPL_H

#include "cuda/device.h"
#include "cuda/driver.h"

struct gj_device {
    const struct gj_driver *driver;
    CUdevice handle;
    bool retained, pushed;
    CUstream stream;
    CUevent start, stop;
};

/* GJ_OK, or a failure that says what was being done. */
enum gj_status gj_device_checked(const gj_device *device, CUresult result, const char *what,
                                 gj_error **error);

#endif
