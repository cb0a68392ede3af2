/* SPDX-License-Identifier: Apache-2.0 */
/* One launch: tensor maps, parameters, grid. No allocation and no lock once the kernel is prepared. */
#include "cuda/work.h"

#include <string.h>

#include "base/error_build.h"
#include "cuda/recent.h"
#include "cuda/schedule.h"

#define DEFAULT_GROUP_SIZE 8 /* quack 0.2.0; between 2 and 16 nothing is lost (H200, 2026-11-30) */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Stages along K: at least one for each CTA of a split, what lies behind K reads as zeros. */
static int count_k_tiles(const struct gj_plan *plan, int64_t k)
{
    const int tiles = (int)ceil_div(k, plan->tile_k);
    return tiles > plan->split_k ? tiles : plan->split_k;
}

/* What arrives of A or B for a stage of sched=single, from all CTAs that share the tile. */
static unsigned stage_bytes(const struct gj_plan *plan, bool is_a, int64_t extent)
{
    const int boxes = is_a ? plan->a_boxes * plan->kernel.cluster_n : plan->b_boxes * plan->kernel.cluster_m;
    return (unsigned)(plan->atoms * boxes * gj_input_box_rows(plan, is_a, extent) * GJ_STAGE_ROW_BYTES);
}

static enum gj_status make_params(const struct gj_plan *plan, const struct gj_gemm_args *args,
                                  struct gemm_params *params, gj_error **error)
{
    const struct gj_key *const key = &plan->kernel;
    const int64_t d_columns = key->d.major == GJ_MAJOR_N ? args->n : args->m;
    const int pair = gj_plan_has_pairs(plan) ? 2 : 1; /* elements of D that the kernel takes as one */
    *params = (struct gemm_params){
        .m = (int)args->m,
        .n = (int)args->n,
        .k_tiles = count_k_tiles(plan, args->k),
        .k_start = args->k == 0 ? plan->tile_k : 0,
        .a_batch_step = args->a.batch_stride != 0 && args->k != 0,
        .b_batch_step = args->b.batch_stride != 0 && args->k != 0,
        .c_batch_step = args->c.batch_stride != 0,
        .d_cut = plan->parts == 1 && d_columns * plan->d_element % 16 != 0,
        .alpha = args->alpha,
        .beta = args->beta,
        .alpha_pointer = args->alpha_device,
        .beta_pointer = args->beta_device,
        .batch_order = args->batch_order,
        .tile_counter = args->tile_counter,
        .d_ld = args->d.ld / pair,
        .d_batch_stride = args->d.batch_stride / pair,
        .d = args->d.data,
        .a_bytes = stage_bytes(plan, true, args->m),
        .b_bytes = stage_bytes(plan, false, args->n),
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

static struct fused_params make_fused(const struct gj_plan *plan, const struct gj_gemm_args *args)
{
    const int64_t p_columns = plan->kernel.p.major == GJ_MAJOR_N ? args->n / plan->p_shrink : args->m;
    return (struct fused_params){
        .p = args->p.data,
        .p_ld = args->p.ld,
        .p_batch_stride = args->p.batch_stride,
        .p_cut = p_columns * plan->p_element % 16 != 0,
        .bias = args->bias,
        .bias_batch_stride = args->bias_batch_stride,
        .scale_row = args->scale_a,
        .scale_row_batch_stride = args->scale_a_batch_stride,
        .scale_col = args->scale_b,
        .scale_col_batch_stride = args->scale_b_batch_stride,
        .quant_scale = args->quant_scale,
        .amax = args->amax,
    };
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

/* A grid has at most 2^31 - 1 CTAs along x; num_tiles is below 2^31. */
static enum gj_status check_grid(const struct gj_plan *plan, const struct gj_gemm_args *args,
                                 unsigned num_tiles, gj_error **error)
{
    if (plan->kernel.tiles == GJ_TILES_ONCE && (int64_t)num_tiles * plan->cluster_size > INT32_MAX)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH,
                "m = %lld, n = %lld, batch = %lld make %u tiles, and with tiles=once 2^31 or more CTAs in "
                "clusters of %d",
                (long long)args->m, (long long)args->n, (long long)args->batch, num_tiles,
                plan->cluster_size);
    return GJ_OK;
}

/* How many clusters to launch: one per cluster tile, but persistent kernels at most as many as fit. */
static int grid_clusters(const struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                         const struct gj_gemm_args *args, unsigned num_tiles)
{
    if (plan->kernel.tiles == GJ_TILES_ONCE)
        return (int)num_tiles;
    int clusters = loaded->devices[device].max_clusters;
    const int64_t allowed = (int64_t)args->max_sms * loaded->ctas_per_sm / loaded->cluster_size;
    if (args->max_sms > 0 && allowed < clusters)
        clusters = (int)allowed;
    return num_tiles < (unsigned)clusters ? (int)num_tiles : clusters;
}

/* Tokens up to which the next launch may start early: for more of them its loads get in the way (0.6 us lost
 * at 64 where all its loads wait, 1.1 us at 128; H200, 2026-11-30). */
#define EARLY_TOKENS_MAX 64
/* Bytes of B up to which it may: for more of them nothing is left to be gained, and 62 us instead of 59 were
 * measured for 7168 x 16384 (H200, 2026-12-01). */
#define EARLY_B_BYTES_MAX (128 << 20)

/* Bits of enum gemm_overlap. The loads of B ahead read neither alpha nor the order of batches from device
 * memory, which the launch in front may write. */
static unsigned overlap_of(const struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                           const struct gj_gemm_args *args, int clusters)
{
    const bool swaps = plan->key.swap_ab == GJ_SWAP_AB_YES;
    const int64_t tokens = swaps ? args->n : args->m;
    const int tile = swaps ? plan->kernel.tile_n : plan->kernel.tile_m;
    const bool is_one_wave = clusters <= loaded->devices[device].max_clusters;
    const bool reads_ahead = plan->kernel.alpha != GJ_SCALAR_DEVICE && args->batch_order == NULL;
    const double b_rows = (double)(swaps ? args->m : args->n); /* their product may be past 2^63 */
    const double b_elements = b_rows * (double)args->k * (double)args->batch;
    const bool is_short = b_elements * (double)gj_dtype_bytes(plan->kernel.a.dtype) <= EARLY_B_BYTES_MAX;
    const bool shares_b = args->batch > 1 && (swaps ? args->a : args->b).batch_stride == 0;
    unsigned bits = tokens <= tile && !shares_b ? overlap_b_once : 0;
    if (args->flags & GJ_LAUNCH_OVERLAP && is_one_wave && is_short && tokens <= EARLY_TOKENS_MAX)
        bits |= overlap_early;
    if (args->flags & GJ_LAUNCH_OVERLAP && args->flags & GJ_LAUNCH_B_CONSTANT && reads_ahead)
        bits |= overlap_b_constant;
    return bits;
}

#define ARGUMENTS_MAX 10

/* In the order of the kernel's parameters: templates/gemm_sm90.cu. */
static void list_arguments(const struct gj_plan *plan, struct gj_work *work, void *arguments[ARGUMENTS_MAX])
{
    struct gj_tensor_maps *const maps = &work->maps;
    int count = 0;
    arguments[count++] = &maps->a;
    arguments[count++] = &maps->b;
    if (plan->d_element > 0) {
        arguments[count++] = &maps->d;
        arguments[count++] = &maps->d_tail;
    }
    if (plan->c_element > 0) {
        arguments[count++] = &maps->c;
        arguments[count++] = &maps->c_tail;
    }
    if (plan->p_element > 0) {
        arguments[count++] = &maps->p;
        arguments[count++] = &maps->p_tail;
    }
    if (gj_plan_is_fused(plan))
        arguments[count++] = &work->fused;
    arguments[count] = &work->params;
}

bool gj_work_reads_c(const struct gj_plan *plan, const struct gj_gemm_args *args)
{
    return plan->c_element > 0 && !(plan->kernel.beta == GJ_SCALAR_HOST && args->beta == 0);
}

static struct gj_pointers pointers_of(const struct gj_gemm_args *args)
{
    return (struct gj_pointers){args->a.data, args->b.data, args->c.data, args->d.data, args->p.data};
}

enum gj_status gj_work_make(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                            const struct gj_gemm_args *args, struct gj_work *work, gj_error **error)
{
    const struct gj_gemm_args effective = gj_kernel_args(plan, args);
    GJ_TRY(make_params(plan, &effective, &work->params, error));
    GJ_TRY(check_grid(plan, args, work->params.schedule.num_tiles, error));
    GJ_TRY(gj_tensor_maps_encode(loaded->driver, plan, &effective, &work->maps, error));
    work->fused = make_fused(plan, &effective);
    work->clusters = grid_clusters(loaded, device, plan, &effective, work->params.schedule.num_tiles);
    work->overlaps = plan->kernel.sched == GJ_SCHED_SINGLE && args->flags & GJ_LAUNCH_OVERLAP;
    work->params.overlap = overlap_of(loaded, device, plan, &effective, work->clusters);
    work->reads_a_b = args->k > 0;
    work->reads_c = gj_work_reads_c(plan, args);
    work->at = pointers_of(args);
    return GJ_OK;
}

/* The work of a launch of the same form, with these addresses, scalars and vectors. */
static enum gj_status remake_work(const struct gj_loaded *loaded, const struct gj_plan *plan,
                                  const struct gj_gemm_args *args, struct gj_work *work, gj_error **error)
{
    const struct gj_gemm_args effective = gj_kernel_args(plan, args);
    const struct gj_pointers to = pointers_of(args);
    struct gemm_params *const params = &work->params;
    params->alpha = args->alpha;
    params->beta = args->beta;
    params->alpha_pointer = args->alpha_device;
    params->beta_pointer = args->beta_device;
    params->batch_order = args->batch_order;
    params->tile_counter = args->tile_counter;
    work->fused = make_fused(plan, &effective);
    return gj_work_point(loaded->driver, plan, work, &to, error);
}

enum gj_status gj_work_launch(struct gj_loaded *loaded, int device, const struct gj_plan *plan,
                              struct gj_work *work, CUstream stream, gj_error **error)
{
    const struct gj_driver *const driver = loaded->driver;
    if (loaded->counts_tiles && work->params.tile_counter == NULL)
        GJ_TRY(take_counter(loaded, device, stream, &work->params.tile_counter, error));
    struct gj_config config;
    gj_loaded_config(loaded, work->clusters, stream, work->overlaps, &config);
    void *arguments[ARGUMENTS_MAX];
    list_arguments(plan, work, arguments);
    const CUresult result =
        driver->cuLaunchKernelEx_fn(&config.config, (CUfunction)loaded->kernel, arguments, NULL);
    if (result != CUDA_SUCCESS)
        return gj_driver_fail(
            driver, result, GJ_STAGE_LAUNCH, error,
            "%s cannot be launched (%d clusters of %d, %d threads, %d bytes of shared memory)",
            plan->entry_name, work->clusters, loaded->cluster_size, loaded->threads, loaded->smem_bytes);
    return GJ_OK;
}

struct gj_gemm_args gj_kernel_args(const struct gj_plan *plan, const struct gj_gemm_args *args)
{
    struct gj_gemm_args swapped = *args;
    if (plan->key.swap_ab == GJ_SWAP_AB_NO)
        return swapped;
    swapped.m = args->n;
    swapped.n = args->m;
    swapped.a = args->b;
    swapped.b = args->a;
    swapped.scale_a = args->scale_b;
    swapped.scale_b = args->scale_a;
    swapped.scale_a_batch_stride = args->scale_b_batch_stride;
    swapped.scale_b_batch_stride = args->scale_a_batch_stride;
    if (args->raster != GJ_RASTER_HEURISTIC)
        swapped.raster = args->raster == GJ_RASTER_ALONG_M ? GJ_RASTER_ALONG_N : GJ_RASTER_ALONG_M;
    return swapped;
}

enum gj_status gj_loaded_launch(gj_loaded *loaded, const struct gj_plan *plan,
                                const struct gj_gemm_args *args, int device, void *stream, gj_error **error)
{
    struct gj_recent_work recent;
    GJ_TRY(prepare_for(loaded, device, (CUstream)stream, error));
    struct gj_recent *const table = loaded->devices[device].recent;
    recent.form = gj_form_of(plan, args);
    if (gj_recent_find(table, &recent.form, &recent)) {
        GJ_TRY(remake_work(loaded, plan, args, &recent.work, error));
    } else {
        memset(&recent.work, 0, sizeof recent.work); /* it is kept whole, padding too */
        GJ_TRY(gj_work_make(loaded, device, plan, args, &recent.work, error));
        gj_recent_put(table, &recent);
    }
    return gj_work_launch(loaded, device, plan, &recent.work, (CUstream)stream, error);
}
