/* SPDX-License-Identifier: Apache-2.0 */
/* One launch: tensor maps, parameters, grid. No allocation and no lock once the kernel is prepared. */
#include "cuda/loaded.h"

#include "base/error_build.h"
#include "cuda/schedule.h"

#define DEFAULT_GROUP_SIZE 8 /* quack 0.2.0; between 2 and 16 nothing is lost (H200, 2026-11-30) */

/* A matrix per batch, as a tensor map sees it: rows of `columns` contiguous elements, whichever matrix
 * dimensions those are. */
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

/* The swizzle whose width is one line of a slab. */
static CUtensorMapSwizzle line_swizzle(int line_bytes)
{
    return line_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : line_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : line_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                              : CU_TENSOR_MAP_SWIZZLE_NONE;
}

struct maps {
    CUtensorMap a, b, d, d_tail, c, c_tail;
};

/* Encodes A or B: `extent` is M or N. k = 0 leaves one element of D in its place, which k_start keeps from
 * being read. */
static enum gj_status encode_input(const struct gj_driver *driver, const struct gj_plan *plan,
                                   const struct gj_gemm_args *args, char operand, CUtensorMap *map,
                                   gj_error **error)
{
    const bool is_a = operand == 'A';
    const struct gj_format format = is_a ? plan->kernel.a : plan->kernel.b;
    const struct gj_tensor *const tensor = is_a ? &args->a : &args->b;
    const int64_t extent = is_a ? args->m : args->n;
    const int box_rows = is_a ? plan->box_a_rows : plan->box_b_rows;
    const int atom = GJ_STAGE_ROW_BYTES / (int)gj_dtype_bytes(format.dtype);
    const struct gj_tensor stand_in = {args->d.data, 16, 0};
    struct mapped mapped = {.tensor = tensor,
                            .dtype = format.dtype,
                            .columns = args->k,
                            .rows = extent,
                            .batches = tensor->batch_stride ? args->batch : 1,
                            .box_columns = atom,
                            .box_rows = box_rows,
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

/* Encodes the slab map and the tail map of C or D. */
static enum gj_status encode_output(const struct gj_driver *driver, const struct gj_plan *plan,
                                    const struct gj_gemm_args *args, char operand, CUtensorMap *slab,
                                    CUtensorMap *tail, gj_error **error)
{
    const bool is_d = operand == 'D';
    const struct gj_format format = is_d ? plan->kernel.d : plan->kernel.c;
    const struct gj_tensor *const tensor = is_d ? &args->d : &args->c;
    const int line_bytes = is_d ? plan->d_line_bytes : plan->c_line_bytes;
    const bool n_major = format.major == GJ_MAJOR_N;
    struct mapped mapped = {.tensor = tensor,
                            .dtype = format.dtype,
                            .columns = n_major ? args->n : args->m,
                            .rows = n_major ? args->m : args->n,
                            .batches = is_d || tensor->batch_stride ? args->batch : 1,
                            .box_columns = line_bytes / (int)gj_dtype_bytes(format.dtype),
                            .box_rows = n_major ? GJ_MMA_M : plan->slab_n,
                            .swizzle = line_swizzle(line_bytes)};
    GJ_TRY(encode(driver, &mapped, operand, slab, error));
    *tail = *slab;
    if (plan->tail_n == 0)
        return GJ_OK;
    if (n_major) {
        mapped.box_columns = plan->tail_n;
        mapped.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    } else {
        mapped.box_rows = plan->tail_n;
    }
    return encode(driver, &mapped, operand, tail, error);
}

static enum gj_status encode_maps(const struct gj_driver *driver, const struct gj_plan *plan,
                                  const struct gj_gemm_args *args, struct maps *maps, gj_error **error)
{
    const struct gj_key *const key = &plan->kernel;
    GJ_TRY(encode_input(driver, plan, args, 'A', &maps->a, error));
    GJ_TRY(encode_input(driver, plan, args, 'B', &maps->b, error));
    GJ_TRY(encode_output(driver, plan, args, 'D', &maps->d, &maps->d_tail, error));
    if (key->c.dtype == GJ_DTYPE_NONE)
        return GJ_OK;
    if (key->beta == GJ_SCALAR_HOST && args->beta == 0) {
        maps->c = maps->d; /* never used */
        maps->c_tail = maps->d;
        return GJ_OK;
    }
    return encode_output(driver, plan, args, 'C', &maps->c, &maps->c_tail, error);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static enum gj_status make_params(const struct gj_plan *plan, const struct gj_gemm_args *args,
                                  struct gemm_params *params, gj_error **error)
{
    const struct gj_key *const key = &plan->kernel;
    const int64_t d_columns = key->d.major == GJ_MAJOR_N ? args->n : args->m;
    *params = (struct gemm_params){
        .m = (int)args->m,
        .n = (int)args->n,
        .k_tiles = args->k == 0 ? 1 : (int)ceil_div(args->k, plan->tile_k),
        .k_start = args->k == 0 ? plan->tile_k : 0,
        .a_batch_step = args->a.batch_stride != 0 && args->k != 0,
        .b_batch_step = args->b.batch_stride != 0 && args->k != 0,
        .c_batch_step = args->c.batch_stride != 0,
        .cut = d_columns * (int64_t)gj_dtype_bytes(key->d.dtype) % 16 != 0,
        .alpha = args->alpha,
        .beta = args->beta,
        .alpha_pointer = args->alpha_device,
        .beta_pointer = args->beta_device,
        .batch_order = args->batch_order,
        .tile_counter = args->tile_counter,
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

/* A counter of the library's own for a launch with dynamic tiles. */
static enum gj_status take_counter(struct gj_loaded *loaded, int device, CUstream stream,
                                   unsigned int **counter, gj_error **error)
{
    struct gj_on_device *const on = &loaded->devices[device];
    bool is_capturing = false;
    GJ_TRY(gj_stream_is_capturing(loaded->driver, stream, &is_capturing, error));
    const unsigned half = GJ_COUNTERS / 2;
    unsigned index;
    if (!is_capturing) {
        index = atomic_fetch_add_explicit(&on->eager, 1, memory_order_relaxed) % half;
    } else {
        index = atomic_fetch_add_explicit(&on->captured, 1, memory_order_relaxed);
        if (index >= half) {
            atomic_store_explicit(&on->captured, half, memory_order_relaxed);
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                    "tile_counter is NULL and %u launches of this kernel have been captured: give a counter",
                    half);
        }
        index += half;
    }
    *counter = (unsigned int *)on->counters + index;
    return GJ_OK;
}

/* Prepares on the stream's device unless that is done; refuses to while the stream captures, where older
 * drivers would invalidate the capture. */
static enum gj_status prepare_for(struct gj_loaded *loaded, int device, CUstream stream, gj_error **error)
{
    if (device >= 0 && device < GJ_DEVICES_MAX &&
        atomic_load_explicit(&loaded->devices[device].ready, memory_order_acquire))
        return GJ_OK;
    GJ_TRY(gj_stream_may_prepare(loaded->driver, stream, device, error));
    return gj_loaded_prepare(loaded, device, error);
}

/* How many clusters to launch: one per cluster tile, but persistent kernels at most as many as fit. */
static int grid_clusters(const struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                         const struct gj_gemm_args *args, unsigned num_tiles)
{
    if (plan->kernel.tiles == GJ_TILES_ONCE)
        return (int)num_tiles;
    int clusters = loaded->devices[device].max_clusters;
    if (args->max_sms > 0 && args->max_sms / loaded->cluster_size < clusters)
        clusters = args->max_sms / loaded->cluster_size;
    return num_tiles < (unsigned)clusters ? (int)num_tiles : clusters;
}

static enum gj_status launch_kernel(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                                    const struct gj_gemm_args *args, CUstream stream, gj_error **error)
{
    const struct gj_driver *const driver = loaded->driver;
    struct gemm_params params;
    struct maps maps;
    GJ_TRY(make_params(plan, args, &params, error));
    GJ_TRY(encode_maps(driver, plan, args, &maps, error));
    if (loaded->counts_tiles && params.tile_counter == NULL)
        GJ_TRY(take_counter(loaded, device, stream, &params.tile_counter, error));
    const int clusters = grid_clusters(loaded, device, plan, args, params.schedule.num_tiles);
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
    gj_loaded_config(loaded, clusters, stream, &attribute, &config);
    void *plain[] = {&maps.a, &maps.b, &maps.d, &maps.d_tail, &params};
    void *with_c[] = {&maps.a, &maps.b, &maps.d, &maps.d_tail, &maps.c, &maps.c_tail, &params};
    const CUresult result = driver->cuLaunchKernelEx_fn(
        &config, (CUfunction)loaded->kernel, plan->kernel.c.dtype == GJ_DTYPE_NONE ? plain : with_c, NULL);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(
            driver, result, GJ_STAGE_LAUNCH, error,
            "%s cannot be launched (%d clusters of %d, %d threads, %d bytes of shared memory)",
            plan->entry_name, clusters, loaded->cluster_size, loaded->threads, loaded->smem_bytes);
    return GJ_OK;
}

/* The arguments as the kernel sees them: with swap_ab A and B, and M and N, change places. */
static struct gj_gemm_args kernel_args(const struct gj_plan *plan, const struct gj_gemm_args *args)
{
    struct gj_gemm_args swapped = *args;
    if (plan->key.swap_ab == GJ_SWAP_AB_NO)
        return swapped;
    swapped.m = args->n;
    swapped.n = args->m;
    swapped.a = args->b;
    swapped.b = args->a;
    if (args->raster != GJ_RASTER_HEURISTIC)
        swapped.raster = args->raster == GJ_RASTER_ALONG_M ? GJ_RASTER_ALONG_N : GJ_RASTER_ALONG_M;
    return swapped;
}

enum gj_status gj_loaded_launch(gj_loaded *loaded, const struct gj_plan *plan,
                                const struct gj_gemm_args *args, void *stream, gj_error **error)
{
    int device;
    GJ_TRY(gj_gpu_of_stream(loaded->driver, stream, &device, error));
    GJ_TRY(prepare_for(loaded, device, (CUstream)stream, error));
    const struct gj_gemm_args effective = kernel_args(plan, args);
    return launch_kernel(loaded, device, plan, &effective, (CUstream)stream, error);
}
