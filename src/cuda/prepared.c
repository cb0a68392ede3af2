/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches: the work of one launch, kept, with its pointers replaced at each launch. */
#include <stdlib.h>

#include "base/error_build.h"
#include "cuda/work.h"

struct gj_prepared {
    gj_loaded *loaded;
    const struct gj_plan *plan;
    int device;
    struct gj_work work;
};

enum gj_status gj_loaded_launch_prepare(gj_loaded *loaded, const struct gj_plan *plan,
                                        const struct gj_gemm_args *args, int device, gj_prepared **prepared,
                                        gj_error **error)
{
    /* A tensor map lies at a multiple of 64 bytes, which malloc does not promise. */
    struct gj_prepared *const made = aligned_alloc(_Alignof(struct gj_prepared), sizeof *made);
    if (made == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LAUNCH, "no memory for a prepared launch");
    *made = (struct gj_prepared){
        .loaded = loaded,
        .plan = plan,
        .device = device,
    };
    const enum gj_status status = gj_work_make(loaded, device, plan, args, &made->work, error);
    if (status != GJ_OK) {
        free(made);
        return status;
    }
    *prepared = made;
    return GJ_OK;
}

void gj_prepared_free(gj_prepared **prepared)
{
    if (prepared == NULL)
        return;
    free(*prepared);
    *prepared = NULL;
}

enum gj_status gj_prepared_launch(const gj_prepared *prepared, const struct gj_pointers *pointers,
                                  void *stream, gj_error **error)
{
    struct gj_work work = prepared->work;
    int device;
    GJ_TRY(gj_gpu_of_stream(prepared->loaded->driver, stream, &device, error));
    if (device != prepared->device)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "the stream is of device %d, the launch was prepared for device %d", device,
                prepared->device);
    GJ_TRY(gj_work_point(prepared->loaded->driver, prepared->plan, &work, pointers, error));
    return gj_work_launch(prepared->loaded, prepared->device, prepared->plan, &work, (CUstream)stream, error);
}
