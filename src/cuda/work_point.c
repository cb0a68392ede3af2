/* SPDX-License-Identifier: Apache-2.0 */
/* Other matrices for the work of a launch: their addresses go into its tensor maps and parameters. */
#include <inttypes.h>

#include "base/error_build.h"
#include "cuda/work.h"

#define TMA_ALIGNMENT 16

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
static enum gj_status replace_both(const struct gj_driver *driver, const struct gj_plan *plan,
                                   CUtensorMap *map, CUtensorMap *tail, char operand, const void *data,
                                   gj_error **error)
{
    GJ_TRY(replace(driver, map, operand, data, error));
    if (plan->tail_n == 0)
        return GJ_OK; /* never used */
    return replace(driver, tail, operand, data, error);
}

/* A and B, or with k = 0 their stand-ins, an output from which nothing is read. */
static enum gj_status replace_inputs(const struct gj_driver *driver, const struct gj_plan *plan,
                                     struct gj_work *work, const struct gj_pointers *to, gj_error **error)
{
    const bool swaps = plan->key.swap_ab == GJ_SWAP_AB_YES;
    CUtensorMap *const a = swaps ? &work->maps.b : &work->maps.a, *const b =
                                                                      swaps ? &work->maps.a : &work->maps.b;
    const void *const output = plan->d_element > 0 ? to->d : to->p;
    const char name = plan->d_element > 0 ? 'D' : 'P';
    if (!work->reads_a_b) {
        GJ_TRY(replace(driver, a, name, output, error));
        return replace(driver, b, name, output, error);
    }
    if (to->a != work->at.a)
        GJ_TRY(replace(driver, a, 'A', to->a, error));
    return to->b != work->at.b ? replace(driver, b, 'B', to->b, error) : GJ_OK;
}

enum gj_status gj_work_point(const struct gj_driver *driver, const struct gj_plan *plan, struct gj_work *work,
                             const struct gj_pointers *to, gj_error **error)
{
    struct gj_tensor_maps *const maps = &work->maps;
    GJ_TRY(replace_inputs(driver, plan, work, to, error));
    if (plan->d_element > 0 && to->d != work->at.d)
        GJ_TRY(replace_both(driver, plan, &maps->d, &maps->d_tail, 'D', to->d, error));
    if (plan->p_element > 0 && to->p != work->at.p)
        GJ_TRY(replace_both(driver, plan, &maps->p, &maps->p_tail, 'P', to->p, error));
    if (work->reads_c && to->c != work->at.c)
        GJ_TRY(replace_both(driver, plan, &maps->c, &maps->c_tail, 'C', to->c, error));
    if (plan->d_element > 0 && plan->p_element > 0 && to->d == to->p)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "P: data = 0x%" PRIxPTR " is that of D: the outputs must not overlap", (uintptr_t)to->p);
    work->at = *to;
    work->params.d = to->d;
    work->fused.p = to->p;
    return GJ_OK;
}
