/* SPDX-License-Identifier: Apache-2.0 */
/* What TMA asks of addresses and strides, and what keeps batches of D apart. */
#include "cuda/args.h"

#include "base/error_build.h"

#include <inttypes.h>
#include <stdbool.h>

#define TMA_ALIGNMENT 16
#define TMA_STRIDE_MAX (INT64_C(1) << 40) /* bytes; cuTensorMapEncodeTiled */

#define REFUSE(...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH, __VA_ARGS__)

/* One operand as the checks see it: `rows` rows of `columns` contiguous elements, whichever matrix dimensions
 * those are. */
struct view {
    char name;
    const struct gj_tensor *tensor;
    int64_t rows, columns, batches;
    int64_t element_bytes;
};

static enum gj_status check_extent(const char *name, int64_t value, gj_error **error)
{
    if (value < 0 || value > GJ_EXTENT_MAX)
        REFUSE("%s = %" PRId64 ": an extent is from 0 to %d", name, value, GJ_EXTENT_MAX);
    return GJ_OK;
}

static enum gj_status check_stride(char operand, const char *name, int64_t elements, int64_t element_bytes,
                                   gj_error **error)
{
    int64_t bytes;
    if (elements < 0 || __builtin_mul_overflow(elements, element_bytes, &bytes) || bytes >= TMA_STRIDE_MAX)
        REFUSE("%c: %s = %" PRId64 " elements: a stride is from 0 to less than 2^40 bytes", operand, name,
               elements);
    if (bytes % TMA_ALIGNMENT != 0)
        REFUSE("%c: %s = %" PRId64 " elements of %" PRId64 " bytes = %" PRId64
               " bytes: TMA needs a multiple of %d",
               operand, name, elements, element_bytes, bytes, TMA_ALIGNMENT);
    return GJ_OK;
}

/* Elements from the first to the last of `count` runs of `length`, or INT64_MAX if there are more. */
static int64_t extent_of(int64_t count, int64_t stride, int64_t length)
{
    int64_t elements;
    if (__builtin_mul_overflow(count - 1, stride, &elements) ||
        __builtin_add_overflow(elements, length, &elements))
        return INT64_MAX;
    return elements;
}

static enum gj_status check_batches(const struct view *view, gj_error **error)
{
    if (view->batches <= 1)
        return GJ_OK;
    const int64_t stride = view->tensor->batch_stride;
    GJ_TRY(check_stride(view->name, "batch_stride", stride, view->element_bytes, error));
    if (view->name != 'D' && view->name != 'P')
        return GJ_OK;
    /* Strides are below 2^40 by now, so a span of 2^63 and more is longer than any. */
    const int64_t span = extent_of(view->rows, view->tensor->ld, view->columns);
    const bool behind = stride >= span;
    const bool between =
        stride >= view->columns && view->tensor->ld >= extent_of(view->batches, stride, view->columns);
    if (!behind && !between)
        REFUSE("%c: batch_stride = %" PRId64 ": batches overlap (one spans %" PRId64
               " elements, its rows are %" PRId64 " apart)",
               view->name, stride, span, view->tensor->ld);
    return GJ_OK;
}

static enum gj_status check_view(const struct view *view, gj_error **error)
{
    const struct gj_tensor *const tensor = view->tensor;
    if (tensor->data == NULL)
        REFUSE("%c: data is NULL", view->name);
    if ((uintptr_t)tensor->data % TMA_ALIGNMENT != 0)
        REFUSE("%c: data = 0x%" PRIxPTR ": TMA needs an address that is a multiple of %d", view->name,
               (uintptr_t)tensor->data, TMA_ALIGNMENT);
    if (tensor->ld < view->columns)
        REFUSE("%c: ld = %" PRId64 ": must be at least the contiguous extent, %" PRId64, view->name,
               tensor->ld, view->columns);
    GJ_TRY(check_stride(view->name, "ld", tensor->ld, view->element_bytes, error));
    return check_batches(view, error);
}

/* A view of an operand whose usual major (k for A and B, n for C and D) makes `rows` rows of `columns`. */
static struct view view_of(char name, const struct gj_tensor *tensor, struct gj_format format,
                           enum gj_major usual, int64_t rows, int64_t columns, int64_t batches)
{
    const int64_t bytes = (int64_t)gj_dtype_bytes(format.dtype);
    if (format.major == usual)
        return (struct view){name, tensor, rows, columns, batches, bytes};
    return (struct view){name, tensor, columns, rows, batches, bytes};
}

/* Whether the kernel may read C. */
static bool reads_c(const struct gj_key *key, const struct gj_gemm_args *args)
{
    return key->c.dtype != GJ_DTYPE_NONE && !(key->beta == GJ_SCALAR_HOST && args->beta == 0);
}

/* gate=halves: the ups of a row of C or D start where TMA can. */
static enum gj_status check_halves(char operand, enum gj_dtype dtype, int64_t columns, gj_error **error)
{
    const int64_t bytes = columns / 2 * (int64_t)gj_dtype_bytes(dtype);
    if (bytes % TMA_ALIGNMENT != 0)
        REFUSE("%c: with gate=halves the ups start %" PRId64 " elements = %" PRId64
               " bytes behind the gates: TMA needs a multiple of %d",
               operand, columns / 2, bytes, TMA_ALIGNMENT);
    return GJ_OK;
}

static enum gj_status check_outputs(const struct gj_key *key, const struct gj_gemm_args *args,
                                    gj_error **error)
{
    const int64_t m = args->m, n = args->n, batch = args->batch;
    const int64_t pre_n = key->op == GJ_OP_DGATED ? 2 * n : n, post_n = key->op == GJ_OP_GATED ? n / 2 : n;
    const struct view c = view_of('C', &args->c, key->c, GJ_MAJOR_N, m, pre_n, batch);
    const struct view d = view_of('D', &args->d, key->d, GJ_MAJOR_N, m, pre_n, batch);
    const struct view p = view_of('P', &args->p, key->p, GJ_MAJOR_N, m, post_n, batch);
    if (key->op == GJ_OP_GATED && n % 2 != 0)
        REFUSE("n = %" PRId64 ": op=gated needs pairs of a gate and an up column", n);
    if (key->gate == GJ_GATE_HALVES) {
        GJ_TRY(check_halves('C', reads_c(key, args) ? key->c.dtype : GJ_DTYPE_NONE, pre_n, error));
        GJ_TRY(check_halves('D', key->d.dtype, pre_n, error));
    }
    if (reads_c(key, args))
        GJ_TRY(check_view(&c, error));
    if (key->d.dtype != GJ_DTYPE_NONE)
        GJ_TRY(check_view(&d, error));
    if (key->p.dtype != GJ_DTYPE_NONE)
        GJ_TRY(check_view(&p, error));
    if (key->d.dtype != GJ_DTYPE_NONE && key->p.dtype != GJ_DTYPE_NONE && args->d.data == args->p.data)
        REFUSE("P: data = 0x%" PRIxPTR " is that of D: the outputs must not overlap",
               (uintptr_t)args->p.data);
    return GJ_OK;
}

static enum gj_status check_operands(const struct gj_plan *plan, const struct gj_gemm_args *args,
                                     gj_error **error)
{
    const struct gj_key *const key = &plan->key;
    const struct view a = view_of('A', &args->a, key->a, GJ_MAJOR_K, args->m, args->k, args->batch);
    const struct view b = view_of('B', &args->b, key->b, GJ_MAJOR_K, args->n, args->k, args->batch);
    if (args->k > 0) {
        GJ_TRY(check_view(&a, error));
        GJ_TRY(check_view(&b, error));
    }
    return check_outputs(key, args, error);
}

static enum gj_status check_pointer(const char *name, const void *pointer, bool needed, gj_error **error)
{
    if (needed && pointer == NULL)
        REFUSE("%s is NULL, but the kernel's key says device", name);
    if ((uintptr_t)pointer % 4 != 0)
        REFUSE("%s = 0x%" PRIxPTR ": must be a multiple of 4", name, (uintptr_t)pointer);
    return GJ_OK;
}

/* A vector or scalar that a field of the key asks for. */
static enum gj_status check_vector(const char *name, const void *pointer, const char *field, int64_t bytes,
                                   int64_t batch_stride, gj_error **error)
{
    if (field == NULL && pointer != NULL)
        REFUSE("%s is given, but the kernel's key does not ask for it", name);
    if (field == NULL)
        return GJ_OK;
    if (pointer == NULL)
        REFUSE("%s is NULL, but the kernel's key has %s", name, field);
    if ((uintptr_t)pointer % (uintptr_t)bytes != 0)
        REFUSE("%s = 0x%" PRIxPTR ": must be a multiple of %" PRId64, name, (uintptr_t)pointer, bytes);
    if (batch_stride < 0)
        REFUSE("%s_batch_stride = %" PRId64 ": must not be negative", name, batch_stride);
    return GJ_OK;
}

static enum gj_status check_fused(const struct gj_key *key, const struct gj_gemm_args *args, gj_error **error)
{
    const bool f32 = key->bias == GJ_BIAS_ROW_F32 || key->bias == GJ_BIAS_COL_F32;
    const bool both = key->scale == GJ_SCALE_TENSOR || key->scale == GJ_SCALE_ROW_COL;
    GJ_TRY(check_vector("bias", args->bias, key->bias != GJ_BIAS_NONE ? "bias" : NULL, f32 ? 4 : 2,
                        args->bias_batch_stride, error));
    GJ_TRY(check_vector("scale_a", args->scale_a, both || key->scale == GJ_SCALE_ROW ? "scale" : NULL, 4,
                        args->scale_a_batch_stride, error));
    GJ_TRY(check_vector("scale_b", args->scale_b, both || key->scale == GJ_SCALE_COL ? "scale" : NULL, 4,
                        args->scale_b_batch_stride, error));
    GJ_TRY(check_vector("quant_scale", args->quant_scale, key->quant != GJ_QUANT_NONE ? "quant" : NULL, 4, 0,
                        error));
    return check_vector("amax", args->amax, key->quant == GJ_QUANT_AMAX ? "quant=amax" : NULL, 4, 0, error);
}

static enum gj_status check_pointers(const struct gj_key *key, const struct gj_gemm_args *args,
                                     gj_error **error)
{
    GJ_TRY(check_pointer("alpha_device", args->alpha_device, key->alpha == GJ_SCALAR_DEVICE, error));
    GJ_TRY(check_pointer("beta_device", args->beta_device, key->beta == GJ_SCALAR_DEVICE, error));
    GJ_TRY(check_pointer("batch_order", args->batch_order, false, error));
    GJ_TRY(check_pointer("tile_counter", args->tile_counter, false, error));
    if (args->tile_counter != NULL && key->tiles != GJ_TILES_DYNAMIC)
        REFUSE("tile_counter is given, but the kernel's key does not have tiles=dynamic");
    return GJ_OK;
}

enum gj_status gj_args_check(const struct gj_plan *plan, const struct gj_gemm_args *args, gj_error **error)
{
    const int cluster_size = plan->cluster_size / (plan->kernel.ctas_per_sm == GJ_CTAS_PER_SM_2 ? 2 : 1);
    GJ_TRY(check_extent("m", args->m, error));
    GJ_TRY(check_extent("n", args->n, error));
    GJ_TRY(check_extent("k", args->k, error));
    GJ_TRY(check_extent("batch", args->batch, error));
    if ((int)args->raster < GJ_RASTER_HEURISTIC || (int)args->raster > GJ_RASTER_ALONG_N)
        REFUSE("raster = %d: not one of enum gj_raster", (int)args->raster);
    if (args->flags & ~(GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT))
        REFUSE("flags = 0x%x: known are GJ_LAUNCH_OVERLAP (0x%x) and GJ_LAUNCH_B_CONSTANT (0x%x)",
               args->flags, GJ_LAUNCH_OVERLAP, GJ_LAUNCH_B_CONSTANT);
    if (args->flags == GJ_LAUNCH_B_CONSTANT)
        REFUSE("flags = GJ_LAUNCH_B_CONSTANT without GJ_LAUNCH_OVERLAP: nothing is loaded ahead then");
    if (args->group_size < 0)
        REFUSE("group_size = %d: must not be negative", args->group_size);
    if (args->max_sms < 0 || (args->max_sms > 0 && args->max_sms < cluster_size))
        REFUSE("max_sms = %d: must be 0, or at least the cluster's %d CTAs", args->max_sms, cluster_size);
    if (args->c.data != NULL && plan->key.c.dtype == GJ_DTYPE_NONE)
        REFUSE("C is given, but the kernel's key has c=none");
    if (args->p.data != NULL && plan->key.p.dtype == GJ_DTYPE_NONE)
        REFUSE("P is given, but the kernel's key has no PostAct");
    if (args->d.data != NULL && plan->key.d.dtype == GJ_DTYPE_NONE)
        REFUSE("D is given, but the kernel's key has d=none");
    if (args->m == 0 || args->n == 0 || args->batch == 0)
        return GJ_OK;
    GJ_TRY(check_pointers(&plan->key, args, error));
    GJ_TRY(check_fused(&plan->key, args, error));
    return check_operands(plan, args, error);
}
