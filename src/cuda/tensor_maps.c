/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps of a launch. */
#include "cuda/tensor_maps.h"

#include "base/error_build.h"

/* A matrix per batch, as a tensor map sees it: rows of `columns` contiguous elements, whichever matrix
 * dimensions those are. */
struct mapped {
    const struct gj_tensor *tensor;
    enum gj_dtype dtype;
    int pair; /* of the caller's elements make one of the map's */
    int64_t columns, rows, batches;
    int64_t part_stride; /* elements between gates and ups in a row; 0: a row has one part */
    int box_columns, box_rows;
    CUtensorMapSwizzle swizzle;
};

static CUtensorMapDataType map_type(enum gj_dtype dtype, int pair)
{
    if (pair == 2)
        return CU_TENSOR_MAP_DATA_TYPE_UINT32; /* two of 16 bits */
    switch (dtype) {
    case GJ_DTYPE_F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case GJ_DTYPE_BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case GJ_DTYPE_F32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case GJ_DTYPE_E4M3:
    case GJ_DTYPE_E5M2:
    case GJ_DTYPE_NONE:
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    }
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

static enum gj_status encode(const struct gj_driver *driver, const struct mapped *mapped, char operand,
                             CUtensorMap *map, gj_error **error)
{
    const cuuint64_t bytes = gj_dtype_bytes(mapped->dtype);
    const cuuint64_t row = (cuuint64_t)mapped->tensor->ld * bytes;
    const cuuint64_t batch =
        mapped->batches > 1 ? (cuuint64_t)mapped->tensor->batch_stride * bytes : 16; /* any legal stride */
    const cuuint32_t rank = mapped->part_stride ? 4 : 3;
    const cuuint64_t part = (cuuint64_t)mapped->part_stride * bytes, batches = (cuuint64_t)mapped->batches;
    const cuuint64_t extents[4] = {(cuuint64_t)mapped->columns, (cuuint64_t)mapped->rows, part ? 2 : batches,
                                   batches};
    const cuuint64_t strides[3] = {row, part ? part : batch, batch};
    const cuuint32_t box[4] = {(cuuint32_t)mapped->box_columns, (cuuint32_t)mapped->box_rows, 1, 1};
    const cuuint32_t steps[4] = {1, 1, 1, 1};
    const CUresult result = driver->cuTensorMapEncodeTiled_fn(
        map, map_type(mapped->dtype, mapped->pair), rank, mapped->tensor->data, extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, mapped->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error,
                              "the tensor map of %c (%lld x %lld x %lld, row stride %llu bytes) is refused",
                              operand, (long long)mapped->batches, (long long)mapped->rows,
                              (long long)mapped->columns, (unsigned long long)row);
    return GJ_OK;
}

/* The swizzle whose width is one line of a slab. */
static CUtensorMapSwizzle line_swizzle(int line_bytes)
{
    return line_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : line_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : line_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                              : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/* Rows (lines along K, if the operand is not k-major) of a box of A or B. sched=single loads what there is of
 * a matrix that is lower than its tile: TMA takes 20 clocks and more to fill a row with zeros (1 row of
 * 16: 72.7 us instead of 57.0 for 28672 x 4096; H200, 2026-12-01). What stays in shared memory behind them
 * meets columns of D that are not stored. */
int gj_input_box_rows(const struct gj_plan *plan, bool is_a, int64_t extent)
{
    const int rows = is_a ? plan->box_a_rows : plan->box_b_rows;
    const enum gj_major major = is_a ? plan->kernel.a.major : plan->kernel.b.major;
    const bool shares = plan->kernel.cluster_m * plan->kernel.cluster_n > 1;
    const bool cuts =
        plan->kernel.sched == GJ_SCHED_SINGLE && !shares && major == GJ_MAJOR_K && extent < rows;
    return cuts ? (int)extent : rows;
}

/* Encodes A or B: `extent` is M or N. k = 0 leaves one element of an output in its place, which k_start keeps
 * from being read. */
static enum gj_status encode_input(const struct gj_driver *driver, const struct gj_plan *plan,
                                   const struct gj_gemm_args *args, char operand, CUtensorMap *map,
                                   gj_error **error)
{
    const bool is_a = operand == 'A';
    const struct gj_format format = is_a ? plan->kernel.a : plan->kernel.b;
    const struct gj_tensor *const tensor = is_a ? &args->a : &args->b;
    const int64_t extent = is_a ? args->m : args->n;
    const int atom = GJ_STAGE_ROW_BYTES / (int)gj_dtype_bytes(format.dtype);
    const struct gj_tensor stand_in = {plan->d_element > 0 ? args->d.data : args->p.data, 16, 0};
    struct mapped mapped = {.tensor = tensor,
                            .dtype = format.dtype,
                            .pair = 1,
                            .columns = args->k,
                            .rows = extent,
                            .batches = tensor->batch_stride ? args->batch : 1,
                            .box_columns = atom,
                            .box_rows = gj_input_box_rows(plan, is_a, extent),
                            .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
    if (format.major != GJ_MAJOR_K) {
        mapped.columns = extent;
        mapped.rows = args->k;
    }
    if (args->k == 0) {
        mapped.tensor = &stand_in;
        mapped.columns = mapped.rows = mapped.batches = 1;
    }
    return encode(driver, &mapped, operand, map, error);
}

/* C, D or PostAct: `shrink` columns of A B^T make one of its own, or one of each of its two parts; `pair`
 * elements of the caller's make one of the kernel's. */
struct output {
    char name;
    const struct gj_tensor *tensor;
    struct gj_format format;
    int line_bytes, shrink, pair, parts;
    bool may_share; /* batch_stride 0: one matrix for all batches */
};

/* Encodes the slab map and the tail map. */
static enum gj_status encode_output(const struct gj_driver *driver, const struct gj_plan *plan,
                                    const struct gj_gemm_args *args, const struct output *output,
                                    CUtensorMap *slab, CUtensorMap *tail, gj_error **error)
{
    const bool n_major = output->format.major == GJ_MAJOR_N;
    const int64_t columns = args->n / output->shrink;
    const int element = output->pair * (int)gj_dtype_bytes(output->format.dtype);
    const int slab_n = plan->slab_n / output->shrink, tail_n = plan->tail_n / output->shrink;
    struct mapped mapped = {.tensor = output->tensor,
                            .dtype = output->format.dtype,
                            .pair = output->pair,
                            .columns = n_major ? columns : args->m,
                            .part_stride = output->parts == 2 ? columns : 0,
                            .rows = n_major ? args->m : columns,
                            .batches =
                                output->may_share && output->tensor->batch_stride == 0 ? 1 : args->batch,
                            .box_columns = output->line_bytes / element,
                            .box_rows = n_major ? GJ_MMA_M : slab_n,
                            .swizzle = line_swizzle(output->line_bytes)};
    GJ_TRY(encode(driver, &mapped, output->name, slab, error));
    *tail = *slab;
    if (tail_n == 0)
        return GJ_OK;
    if (n_major) {
        mapped.box_columns = tail_n;
        mapped.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    } else {
        mapped.box_rows = tail_n;
    }
    return encode(driver, &mapped, output->name, tail, error);
}

/* C, which is not needed where beta is 0 on the host. */
static enum gj_status encode_source(const struct gj_driver *driver, const struct gj_plan *plan,
                                    const struct gj_gemm_args *args, const struct output *c,
                                    struct gj_tensor_maps *maps, gj_error **error)
{
    if (plan->kernel.beta == GJ_SCALAR_HOST && args->beta == 0) {
        maps->c = maps->c_tail = maps->a; /* never used */
        return GJ_OK;
    }
    return encode_output(driver, plan, args, c, &maps->c, &maps->c_tail, error);
}

enum gj_status gj_tensor_maps_encode(const struct gj_driver *driver, const struct gj_plan *plan,
                                     const struct gj_gemm_args *args, struct gj_tensor_maps *maps,
                                     gj_error **error)
{
    const struct gj_key *const key = &plan->kernel;
    const int pair = gj_plan_has_pairs(plan) ? 2 : 1, shrink = gj_plan_has_b_halves(plan) ? 2 : 1;
    const struct output d = {'D', &args->d, key->d, plan->d_line_bytes, shrink, pair, plan->parts, false};
    const struct output p = {'P', &args->p, key->p, plan->p_line_bytes, plan->p_shrink, 1, 1, false};
    const struct output c = {'C', &args->c, key->c, plan->c_line_bytes, shrink, pair, plan->parts, true};
    GJ_TRY(encode_input(driver, plan, args, 'A', &maps->a, error));
    GJ_TRY(encode_input(driver, plan, args, 'B', &maps->b, error));
    if (plan->d_element > 0)
        GJ_TRY(encode_output(driver, plan, args, &d, &maps->d, &maps->d_tail, error));
    if (plan->p_element > 0)
        GJ_TRY(encode_output(driver, plan, args, &p, &maps->p, &maps->p_tail, error));
    if (plan->c_element > 0)
        GJ_TRY(encode_source(driver, plan, args, &c, maps, error));
    return GJ_OK;
}
