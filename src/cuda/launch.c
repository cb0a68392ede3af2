/* SPDX-License-Identifier: Apache-2.0 */
/* One launch: tensor maps, parameters, grid. No allocation and no lock once the kernel is prepared. */
#include "cuda/loaded.h"

#include "base/error_build.h"
#include "cuda/schedule.h"

#define DEFAULT_GROUP_SIZE 8 /* quack 0.2.0; between 2 and 16 nothing is lost (H200, 2026-11-30) */

/* A matrix per batch, as a tensor map sees it: `columns` contiguous elements per row. */
struct mapped {
    const struct gj_tensor *tensor;
    enum gj_dtype dtype;
    int64_t columns, rows, batches;
    int box_columns, box_rows;
    CUtensorMapSwizzle swizzle;
};

static CUtensorMapDataType map_type(enum gj_dtype dtype)
{
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
    const cuuint64_t extents[3] = {(cuuint64_t)mapped->columns, (cuuint64_t)mapped->rows,
                                   (cuuint64_t)mapped->batches};
    const cuuint64_t strides[2] = {row, batch};
    const cuuint32_t box[3] = {(cuuint32_t)mapped->box_columns, (cuuint32_t)mapped->box_rows, 1};
    const cuuint32_t steps[3] = {1, 1, 1};
    const CUresult result = driver->cuTensorMapEncodeTiled_fn(
        map, map_type(mapped->dtype), 3, mapped->tensor->data, extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, mapped->swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error,
                              "the tensor map of %c (%lld x %lld x %lld, row stride %llu bytes) is refused",
                              operand, (long long)mapped->batches, (long long)mapped->rows,
                              (long long)mapped->columns, (unsigned long long)row);
    return GJ_OK;
}

/* The swizzle whose width is one row of a slab. */
static CUtensorMapSwizzle slab_swizzle(int row_bytes)
{
    return row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                             : CU_TENSOR_MAP_SWIZZLE_32B;
}

struct maps {
    CUtensorMap a, b, d, d_tail;
};

static enum gj_status encode_maps(const struct gj_driver *driver, const struct gj_plan *plan,
                                  const struct gj_gemm_args *args, struct maps *maps, gj_error **error)
{
    const struct gj_key *const key = &plan->key;
    const int64_t batches_a = args->a.batch_stride ? args->batch : 1;
    const int64_t batches_b = args->b.batch_stride ? args->batch : 1;
    const struct mapped a = {&args->a,  key->a.dtype, args->k,          args->m,
                             batches_a, plan->tile_k, plan->box_a_rows, CU_TENSOR_MAP_SWIZZLE_128B};
    const struct mapped b = {&args->b,  key->b.dtype, args->k,          args->n,
                             batches_b, plan->tile_k, plan->box_b_rows, CU_TENSOR_MAP_SWIZZLE_128B};
    struct mapped d = {
        &args->d,    key->d.dtype, args->n,  args->m,
        args->batch, plan->slab_n, GJ_MMA_M, slab_swizzle(plan->slab_n * (int)gj_dtype_bytes(key->d.dtype))};
    GJ_TRY(encode(driver, &a, 'A', &maps->a, error));
    GJ_TRY(encode(driver, &b, 'B', &maps->b, error));
    GJ_TRY(encode(driver, &d, 'D', &maps->d, error));
    maps->d_tail = maps->d;
    if (plan->tail_n > 0) {
        d.box_columns = plan->tail_n;
        d.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
        GJ_TRY(encode(driver, &d, 'D', &maps->d_tail, error));
    }
    return GJ_OK;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static enum gj_status make_params(const struct gj_plan *plan, const struct gj_gemm_args *args,
                                  struct gemm_params *params, gj_error **error)
{
    const struct gj_key *const key = &plan->key;
    *params = (struct gemm_params){
        .m = (int)args->m,
        .n = (int)args->n,
        .k_tiles = (int)ceil_div(args->k, plan->tile_k),
        .a_batch_step = args->a.batch_stride != 0,
        .b_batch_step = args->b.batch_stride != 0,
        .cut_columns = args->n * (int64_t)gj_dtype_bytes(key->d.dtype) % 16 != 0,
        .d_ld = args->d.ld,
        .d_batch_stride = args->d.batch_stride,
        .d = args->d.data,
    };
    const int group_size = args->group_size ? args->group_size : DEFAULT_GROUP_SIZE;
    if (!gj_schedule_make(ceil_div(args->m, (int64_t)key->tile_m * key->cluster_m),
                          ceil_div(args->n, (int64_t)key->tile_n * key->cluster_n), args->batch, args->raster,
                          group_size, &params->schedule))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "m = %lld, n = %lld, batch = %lld make 2^31 or more tiles of %d x %d", (long long)args->m,
                (long long)args->n, (long long)args->batch, key->tile_m, key->tile_n);
    return GJ_OK;
}

/* k = 0: D is zero, the same bits in every element type. */
static enum gj_status write_zeros(const struct gj_driver *driver, const struct gj_plan *plan,
                                  const struct gj_gemm_args *args, CUstream stream, gj_error **error)
{
    const size_t bytes = gj_dtype_bytes(plan->key.d.dtype);
    for (int64_t l = 0; l < args->batch; l++) {
        const CUdeviceptr d = (CUdeviceptr)args->d.data + (CUdeviceptr)(l * args->d.batch_stride) * bytes;
        const size_t row_bytes = (size_t)args->n * bytes;
        const CUresult result = args->m == 1
                                    ? driver->cuMemsetD8Async_fn(d, 0, row_bytes, stream)
                                    : driver->cuMemsetD2D8Async_fn(d, (size_t)args->d.ld * bytes, 0,
                                                                   row_bytes, (size_t)args->m, stream);
        if (result != CUDA_SUCCESS)
            return gj_driver_fail(driver, result, GJ_STAGE_LAUNCH, error, "D cannot be set to zero");
    }
    return GJ_OK;
}

/* Prepares on the stream's device unless that is done; refuses to while the stream captures, where older
 * drivers would invalidate the capture. */
static enum gj_status prepare_for(struct gj_loaded *loaded, int device, CUstream stream, gj_error **error)
{
    if (device >= 0 && device < GJ_DEVICES_MAX &&
        atomic_load_explicit(&loaded->devices[device].ready, memory_order_acquire))
        return GJ_OK;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = loaded->driver->cuStreamIsCapturing_fn(stream, &capture);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(loaded->driver, result, GJ_STAGE_LAUNCH, error, "the stream cannot be queried");
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
        GJ_FAIL(error, GJ_ERR_NOT_PREPARED, GJ_STAGE_LAUNCH,
                "the stream is capturing and the kernel is not prepared on device %d: call gj_kernel_prepare "
                "first",
                device);
    return gj_loaded_prepare(loaded, device, error);
}

static enum gj_status launch_kernel(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                                    const struct gj_gemm_args *args, CUstream stream, gj_error **error)
{
    const struct gj_driver *const driver = loaded->driver;
    struct gemm_params params;
    struct maps maps;
    GJ_TRY(make_params(plan, args, &params, error));
    GJ_TRY(encode_maps(driver, plan, args, &maps, error));
    int clusters = loaded->devices[device].max_clusters;
    if (args->max_sms > 0 && args->max_sms / loaded->cluster_size < clusters)
        clusters = args->max_sms / loaded->cluster_size;
    if ((int64_t)params.schedule.num_tiles < clusters)
        clusters = (int)params.schedule.num_tiles;
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
    gj_loaded_config(loaded, clusters, stream, &attribute, &config);
    void *arguments[] = {&maps.a, &maps.b, &maps.d, &maps.d_tail, &params};
    const CUresult result = driver->cuLaunchKernelEx_fn(&config, (CUfunction)loaded->kernel, arguments, NULL);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(
            driver, result, GJ_STAGE_LAUNCH, error,
            "%s cannot be launched (%d clusters of %d, %d threads, %d bytes of shared memory)",
            plan->entry_name, clusters, loaded->cluster_size, loaded->threads, loaded->smem_bytes);
    return GJ_OK;
}

enum gj_status gj_loaded_launch(gj_loaded *loaded, const struct gj_plan *plan,
                                const struct gj_gemm_args *args, void *stream, gj_error **error)
{
    int device;
    GJ_TRY(gj_gpu_of_stream(loaded->driver, stream, &device, error));
    if (args->k == 0)
        return write_zeros(loaded->driver, plan, args, (CUstream)stream, error);
    GJ_TRY(prepare_for(loaded, device, (CUstream)stream, error));
    return launch_kernel(loaded, device, plan, args, (CUstream)stream, error);
}
