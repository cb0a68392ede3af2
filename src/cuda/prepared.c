/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches: the work of one launch, kept, with its pointers replaced at each launch. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error_build.h"
#include "cuda/work.h"

#define TMA_ALIGNMENT 16

struct gj_prepared {
    gj_loaded *loaded;
    const struct gj_plan *plan;
    int device;
    bool reads_a_b; /* k > 0 */
    bool reads_c;   /* C has tensor maps */
    struct gj_work work;
};

enum gj_status gj_loaded_launch_prepare(gj_loaded *loaded, const struct gj_plan *plan,
                                        const struct gj_gemm_args *args, int device, gj_prepared **prepared,
                                        gj_error **error)
{
    const struct gj_gemm_args effective = gj_kernel_args(plan, args);
    /* A tensor map lies at a multiple of 64 bytes, which malloc does not promise. */
    struct gj_prepared *const made = aligned_alloc(_Alignof(struct gj_prepared), sizeof *made);
    if (made == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LAUNCH, "no memory for a prepared launch");
    *made = (struct gj_prepared){
        .loaded = loaded,
        .plan = plan,
        .device = device,
        .reads_a_b = args->k > 0,
        .reads_c = plan->c_element > 0 && !(plan->kernel.beta == GJ_SCALAR_HOST && args->beta == 0),
    };
    const enum gj_status status = gj_work_make(loaded, device, plan, &effective, &made->work, error);
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

/* -- Pointers ------------------------------------------------------------------------------------------ */

static enum gj_status replace(const struct gj_driver *driver, CUtensorMap *map, char operand,
                              const void *data, gj_error **error)
{
    if (data == NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH, "%c: data is NULL", operand);
    if ((uintptr_t)data % TMA_ALIGNMENT != 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "%c: data = 0x%" PRIxPTR ": TMA needs an address that is a multiple of %d", operand,
                (uintptr_t)data, TMA_ALIGNMENT);
    const CUresult result = driver->cuTensorMapReplaceAddress_fn(map, (void *)(uintptr_t)data);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error,
                              "the address of %c cannot be put into its tensor map", operand);
    return GJ_OK;
}

/* An output or C has a second map for the tail of a tile, or a copy of the first one. */
static enum gj_status replace_both(const struct gj_prepared *prepared, CUtensorMap *map, CUtensorMap *tail,
                                   char operand, const void *data, gj_error **error)
{
    GJ_TRY(replace(prepared->loaded->driver, map, operand, data, error));
    if (prepared->plan->tail_n == 0)
        return GJ_OK; /* never used */
    return replace(prepared->loaded->driver, tail, operand, data, error);
}

static enum gj_status replace_maps(const struct gj_prepared *prepared, const struct gj_pointers *pointers,
                                   struct gj_tensor_maps *maps, gj_error **error)
{
    const struct gj_plan *const plan = prepared->plan;
    const struct gj_driver *const driver = prepared->loaded->driver;
    const bool swaps = plan->key.swap_ab == GJ_SWAP_AB_YES;
    if (prepared->reads_a_b) {
        GJ_TRY(replace(driver, swaps ? &maps->b : &maps->a, 'A', pointers->a, error));
        GJ_TRY(replace(driver, swaps ? &maps->a : &maps->b, 'B', pointers->b, error));
    } else { /* stand-ins of the output, from which nothing is read */
        const void *const output = plan->d_element > 0 ? pointers->d : pointers->p;
        const char name = plan->d_element > 0 ? 'D' : 'P';
        GJ_TRY(replace(driver, &maps->a, name, output, error));
        GJ_TRY(replace(driver, &maps->b, name, output, error));
    }
    if (plan->d_element > 0)
        GJ_TRY(replace_both(prepared, &maps->d, &maps->d_tail, 'D', pointers->d, error));
    if (plan->p_element > 0)
        GJ_TRY(replace_both(prepared, &maps->p, &maps->p_tail, 'P', pointers->p, error));
    if (prepared->reads_c)
        GJ_TRY(replace_both(prepared, &maps->c, &maps->c_tail, 'C', pointers->c, error));
    if (plan->d_element > 0 && plan->p_element > 0 && pointers->d == pointers->p)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "P: data = 0x%" PRIxPTR " is that of D: the outputs must not overlap",
                (uintptr_t)pointers->p);
    return GJ_OK;
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
    GJ_TRY(replace_maps(prepared, pointers, &work.maps, error));
    work.params.d = pointers->d;
    work.fused.p = pointers->p;
    return gj_work_launch(prepared->loaded, prepared->device, prepared->plan, &work, (CUstream)stream, error);
}
