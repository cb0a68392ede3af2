/* SPDX-License-Identifier: Apache-2.0 */
/* Operands, launches and comparisons of fused epilogues. */
#include "fused.h"

#include <string.h>

#define SEED_BIAS 51u
#define SEED_SCALE_A 63u
#define SEED_SCALE_B 77u

/* Elements before a vector of bias or factors: it is aligned as its elements are and no better. */
#define VECTOR_FIRST 3
/* Elements of poison between the vectors of two batches. */
#define VECTOR_GAP 5

static const float quant_factors[] = {0.5f, 2, 0.25f, 4};
#define NUM_FACTORS ((int)(sizeof quant_factors / sizeof quant_factors[0]))

/* The arguments of compare_output, laid out as in epilogues.cu. */
struct expected {
    const float *product;
    const void *buffer;
    uint64_t count, first;
    int64_t batch_stride, row_stride, column_stride;
    const float *quant_scale;
    uint32_t *amax;
    unsigned *wrong;
    int m, n, batch, op, act, gate, bias, scale, quant;
    int bias_shared, scale_a_shared, scale_b_shared;
    int dtype, columns, post, last;
    float alpha, beta;
    uint32_t seed_c, seed_bias, seed_a, seed_b;
};

void fused_open(struct rig *rig, const char *path, struct fused_kernels *kernels)
{
    kernels->library = rig_load(rig, path, "compare_output");
    kernels->fill_scales = rig_kernel(rig, kernels->library, "fill_scales");
    kernels->compare_output = rig_kernel(rig, kernels->library, "compare_output");
    kernels->compare_amax = rig_kernel(rig, kernels->library, "compare_amax");
}

void fused_close(struct rig *rig, struct fused_kernels *kernels)
{
    rig->driver->cuLibraryUnload_fn(kernels->library);
}

/* Room for `batch` vectors with poison around them; data is the first element. */
static struct layout make_room(struct rig *rig, int batch, int extent, enum gj_dtype dtype)
{
    struct layout layout = {.ld = extent, .batch_stride = extent + VECTOR_GAP};
    const size_t bytes = (size_t)(VECTOR_FIRST + batch * layout.batch_stride + 64) * gj_dtype_bytes(dtype);
    gj_error *error = NULL;
    void *const memory = rig_alloc(rig, bytes);
    must(gj_device_fill(rig->device, memory, 0xff, bytes, &error), error, "poison");
    layout.data = (char *)memory + VECTOR_FIRST * gj_dtype_bytes(dtype);
    return layout;
}

static void free_room(struct rig *rig, struct layout layout, enum gj_dtype dtype)
{
    if (layout.data != NULL)
        gj_device_free(rig->device, (char *)layout.data - VECTOR_FIRST * gj_dtype_bytes(dtype));
}

static struct layout make_bias(struct rig *rig, int batch, int extent, enum gj_dtype dtype)
{
    struct layout layout = make_room(rig, batch, extent, dtype);
    int rows = 1, type = (int)dtype;
    long long batch_stride = layout.batch_stride, row_stride = 0, column_stride = 1;
    uint32_t seed = SEED_BIAS;
    void *arguments[] = {&layout.data, &batch,         &rows, &extent, &batch_stride,
                         &row_stride,  &column_stride, &type, &seed};
    rig_launch(rig, rig->fill_matrix, 32, 1, 1, 256, 1, arguments);
    return layout;
}

static struct layout make_scales(struct rig *rig, const struct fused_kernels *kernels, int batch, int extent,
                                 uint32_t seed)
{
    struct layout layout = make_room(rig, batch, extent, GJ_DTYPE_F32);
    long long batch_stride = layout.batch_stride;
    void *arguments[] = {&layout.data, &batch, &extent, &batch_stride, &seed};
    rig_launch(rig, kernels->fill_scales, 32, 1, 1, 256, 1, arguments);
    return layout;
}

int fused_d_columns(const struct gj_key *key, int n)
{
    return key->op == GJ_OP_DGATED ? 2 * n : n;
}

int fused_p_columns(const struct gj_key *key, int n)
{
    return key->op == GJ_OP_GATED ? n / 2 : n;
}

bool fused_fits(const struct gj_key *key, const struct shape *shape)
{
    if (key->op == GJ_OP_GATED && shape->n % 2 != 0)
        return false;
    const size_t ups = (size_t)fused_d_columns(key, shape->n) / 2; /* where the ups begin in a row */
    return key->gate != GJ_GATE_HALVES ||
           (ups * gj_dtype_bytes(key->c.dtype) % 16 == 0 && ups * gj_dtype_bytes(key->d.dtype) % 16 == 0);
}

static void *alloc_output(struct rig *rig, const struct shape *shape, int columns)
{
    const int64_t n_major = place_make(shape, columns, true).count;
    const int64_t m_major = place_make(shape, columns, false).count;
    return rig_alloc(rig, (size_t)(n_major > m_major ? n_major : m_major) * 4);
}

void fused_make(struct rig *rig, const struct fused_kernels *kernels, const struct shape *shape,
                struct fused *fused)
{
    gj_error *error = NULL;
    memset(fused, 0, sizeof *fused);
    problem_make(rig, shape, &fused->base);
    const int batch = shape->batch;
    for (int t = GJ_DTYPE_F16; t < DTYPES; t++) {
        const enum gj_dtype dtype = (enum gj_dtype)t;
        for (int other = 0; other < 2; other++)
            fused->wide_c[t][other] =
                layout_make(rig, batch, shape->m, 2 * shape->n, dtype, other, PROBLEM_SEED_C);
        if (dtype > GJ_DTYPE_F32)
            continue;
        fused->bias_row[t] = make_bias(rig, batch, shape->m, dtype);
        fused->bias_col[t] = make_bias(rig, batch, shape->n, dtype);
    }
    fused->scale_a = make_scales(rig, kernels, batch, shape->m, SEED_SCALE_A);
    fused->scale_b = make_scales(rig, kernels, batch, shape->n, SEED_SCALE_B);
    fused->d = alloc_output(rig, shape, 2 * shape->n);
    fused->p = alloc_output(rig, shape, shape->n);
    fused->factors = rig_alloc(rig, sizeof quant_factors);
    must(gj_device_write(rig->device, fused->factors, quant_factors, sizeof quant_factors, &error), error,
         "factors");
    fused->amax = rig_alloc(rig, 2 * sizeof(uint32_t));
}

void fused_free(struct rig *rig, struct fused *fused)
{
    problem_free(rig, &fused->base);
    for (int t = 0; t < DTYPES; t++) {
        for (int other = 0; other < 2; other++)
            gj_device_free(rig->device, fused->wide_c[t][other].data);
        free_room(rig, fused->bias_row[t], (enum gj_dtype)t);
        free_room(rig, fused->bias_col[t], (enum gj_dtype)t);
    }
    free_room(rig, fused->scale_a, GJ_DTYPE_F32);
    free_room(rig, fused->scale_b, GJ_DTYPE_F32);
    gj_device_free(rig->device, fused->d);
    gj_device_free(rig->device, fused->p);
    gj_device_free(rig->device, fused->factors);
    gj_device_free(rig->device, fused->amax);
}

/* Whether C is PreAct: read as it is, never scaled, never D. */
static bool is_backward(const struct gj_key *key)
{
    return key->op == GJ_OP_DACT || key->op == GJ_OP_DGATED;
}

static bool in_place(const struct gj_key *key, int variant)
{
    return variant % 2 == 1 && !is_backward(key) && key->d.dtype != GJ_DTYPE_NONE &&
           key->c.dtype == key->d.dtype && key->c.major == key->d.major;
}

/* Whether all batches share a vector: which = 0 bias, 1 scale_a, 2 scale_b. */
static bool is_shared(int variant, int which)
{
    return (variant >> (which + 1) & 1) != 0;
}

static bool is_column_bias(const struct gj_key *key)
{
    return key->bias >= GJ_BIAS_COL_F32;
}

static enum gj_dtype bias_dtype(const struct gj_key *key)
{
    static const enum gj_dtype dtypes[] = {GJ_DTYPE_F32, GJ_DTYPE_F16, GJ_DTYPE_BF16};
    if (key->bias == GJ_BIAS_NONE)
        return GJ_DTYPE_NONE;
    return dtypes[((int)key->bias - (int)GJ_BIAS_ROW_F32) % 3];
}

/* One output of a key: where it lies, and what of it. */
struct output {
    struct gj_format format;
    int columns;
    void *buffer;
    struct place place;
};

static struct output output_of(const struct fused *fused, const struct gj_key *key, bool post)
{
    const struct shape *const s = &fused->base.shape;
    struct output output = {.format = post ? key->p : key->d, .buffer = post ? fused->p : fused->d};
    output.columns = post ? fused_p_columns(key, s->n) : fused_d_columns(key, s->n);
    output.place = place_make(s, output.columns, output.format.major == GJ_MAJOR_N);
    return output;
}

static void *data_of(const struct output *output)
{
    return (char *)output->buffer + (size_t)output->place.first * gj_dtype_bytes(output->format.dtype);
}

static struct gj_tensor tensor_of(const struct output *output)
{
    if (output->format.dtype == GJ_DTYPE_NONE)
        return (struct gj_tensor){0};
    return (struct gj_tensor){data_of(output), output->place.ld, output->place.batch_stride};
}

void fused_prepare(struct rig *rig, const struct fused *fused, const struct gj_key *key, int variant)
{
    gj_error *error = NULL;
    float effective[2];
    problem_pair(key, variant, effective);
    for (int post = 0; post < 2; post++) {
        const struct output output = output_of(fused, key, post);
        const size_t bytes = (size_t)output.place.count * gj_dtype_bytes(output.format.dtype);
        if (bytes > 0)
            must(gj_device_fill(rig->device, output.buffer, 0xff, bytes, &error), error, "poison");
    }
    /* 0x60606060 is an f32 above everything: amax must stay. */
    must(gj_device_fill(rig->device, fused->amax, variant % 3 == 2 ? 0x60 : 0, 2 * sizeof(uint32_t), &error),
         error, "amax");
    if (!in_place(key, variant) || effective[1] == 0)
        return;
    const struct output output = output_of(fused, key, false);
    void *d = data_of(&output);
    int batch = fused->base.shape.batch, m = fused->base.shape.m, n = output.columns,
        type = (int)key->d.dtype;
    long long batch_stride = output.place.batch_stride;
    long long row_stride = key->d.major == GJ_MAJOR_N ? output.place.ld : 1,
              column_stride = row_stride == 1 ? output.place.ld : 1;
    uint32_t seed = PROBLEM_SEED_C;
    void *arguments[] = {&d, &batch, &m, &n, &batch_stride, &row_stride, &column_stride, &type, &seed};
    rig_launch(rig, rig->fill_matrix, 512, 1, 1, 256, 1, arguments);
}

/* Bias, factors and amax: only those that the key names. */
static void set_vectors(const struct fused *fused, const struct gj_key *key, int variant,
                        struct gj_gemm_args *args)
{
    const bool tensor = key->scale == GJ_SCALE_TENSOR, both = key->scale == GJ_SCALE_ROW_COL;
    if (key->bias != GJ_BIAS_NONE) {
        const struct layout *const bias =
            &(is_column_bias(key) ? fused->bias_col : fused->bias_row)[bias_dtype(key)];
        args->bias = bias->data;
        args->bias_batch_stride = is_shared(variant, 0) ? 0 : bias->batch_stride;
    }
    if (tensor || both || key->scale == GJ_SCALE_ROW) {
        args->scale_a = fused->scale_a.data;
        args->scale_a_batch_stride = is_shared(variant, 1) ? 0 : fused->scale_a.batch_stride;
    }
    if (tensor || both || key->scale == GJ_SCALE_COL) {
        args->scale_b = fused->scale_b.data;
        args->scale_b_batch_stride = is_shared(variant, 2) ? 0 : fused->scale_b.batch_stride;
    }
    if (key->quant != GJ_QUANT_NONE)
        args->quant_scale = fused->factors + variant % NUM_FACTORS;
    if (key->quant == GJ_QUANT_AMAX)
        args->amax = (float *)fused->amax;
}

static struct gj_tensor operand(const struct layout layout, bool shared)
{
    return (struct gj_tensor){layout.data, layout.ld, shared ? 0 : layout.batch_stride};
}

static void set_c(const struct fused *fused, const struct gj_key *key, int variant, float beta,
                  struct gj_gemm_args *args)
{
    if (key->c.dtype == GJ_DTYPE_NONE)
        return;
    const bool other = key->c.major != GJ_MAJOR_N;
    if (key->op == GJ_OP_DGATED)
        args->c = operand(fused->wide_c[key->c.dtype][other], false);
    else
        args->c = operand(fused->base.c[key->c.dtype][other], false);
    if (in_place(key, variant))
        args->c = args->d;
    else if (beta == 0 && !is_backward(key))
        args->c.data = fused->base.nan;
}

static struct gj_gemm_args make_args(const struct fused *fused, const struct gj_key *key, int variant)
{
    const struct problem *const base = &fused->base;
    const struct shape *const s = &base->shape;
    const struct output d = output_of(fused, key, false), p = output_of(fused, key, true);
    float effective[2];
    const float *const pair = problem_pair(key, variant, effective);
    struct gj_gemm_args args = {
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .batch = s->batch,
        .a = operand(base->a[key->a.dtype][key->a.major != GJ_MAJOR_K], false),
        .b = operand(base->b[key->b.dtype][key->b.major != GJ_MAJOR_K], s->shared_b),
        .d = tensor_of(&d),
        .p = tensor_of(&p),
        .alpha = pair[0],
        .beta = pair[1],
        .alpha_device = base->scalars + (pair - problem_pair(key, 0, effective)),
        .raster = (enum gj_raster)(variant % 3),
        .group_size = variant % 4 == 3 ? 3 : 0,
        .max_sms = variant % 5 == 4 ? 66 : 0,
        .batch_order = s->batch > 1 && variant % 2 ? base->order : NULL,
    };
    args.beta_device = args.alpha_device + 1;
    problem_pair(key, variant, effective);
    set_c(fused, key, variant, effective[1], &args);
    set_vectors(fused, key, variant, &args);
    if (effective[0] == 0)
        args.a.data = base->nan;
    if (s->k == 0)
        args.a = args.b = (struct gj_tensor){0};
    return args;
}

enum gj_status fused_launch(struct rig *rig, const struct fused *fused, const struct gj_key *key,
                            gj_kernel *kernel, int variant, int times, gj_error **error)
{
    const struct gj_gemm_args args = make_args(fused, key, variant);
    enum gj_status status = GJ_OK;
    for (int i = 0; i < times && status == GJ_OK; i++)
        status = gj_launch(kernel, &args, rig->stream, error);
    return status;
}

static void compare_output(struct rig *rig, const struct fused_kernels *kernels, const struct fused *fused,
                           const struct gj_key *key, int variant, bool post, unsigned *wrong)
{
    const struct shape *const s = &fused->base.shape;
    const struct output output = output_of(fused, key, post);
    const struct place *const place = &output.place;
    const bool n_major = output.format.major == GJ_MAJOR_N;
    float effective[2];
    problem_pair(key, variant, effective);
    struct expected e = {.product = fused->base.product,
                         .buffer = output.buffer,
                         .count = (uint64_t)place->count,
                         .first = (uint64_t)place->first,
                         .batch_stride = place->batch_stride,
                         .row_stride = n_major ? place->ld : 1,
                         .column_stride = n_major ? 1 : place->ld,
                         .quant_scale = fused->factors + variant % NUM_FACTORS,
                         .amax = fused->amax + 1,
                         .wrong = wrong,
                         .m = s->m,
                         .n = s->n,
                         .batch = s->batch,
                         .op = (int)key->op,
                         .act = (int)key->act,
                         .gate = (int)key->gate,
                         .bias = (int)key->bias,
                         .scale = (int)key->scale,
                         .quant = (int)key->quant,
                         .bias_shared = is_shared(variant, 0),
                         .scale_a_shared = is_shared(variant, 1),
                         .scale_b_shared = is_shared(variant, 2),
                         .dtype = (int)output.format.dtype,
                         .columns = output.columns,
                         .post = post,
                         .last = post == (key->p.dtype != GJ_DTYPE_NONE),
                         .alpha = effective[0],
                         .beta = effective[1],
                         .seed_c = PROBLEM_SEED_C,
                         .seed_bias = SEED_BIAS,
                         .seed_a = SEED_SCALE_A,
                         .seed_b = SEED_SCALE_B};
    void *arguments[] = {&e};
    rig_launch(rig, kernels->compare_output, 264, 1, 1, 256, 1, arguments);
}

void fused_compare(struct rig *rig, const struct fused_kernels *kernels, const struct fused *fused,
                   const struct gj_key *key, int variant, unsigned *wrong)
{
    if (key->d.dtype != GJ_DTYPE_NONE)
        compare_output(rig, kernels, fused, key, variant, false, wrong);
    if (key->p.dtype != GJ_DTYPE_NONE)
        compare_output(rig, kernels, fused, key, variant, true, wrong);
    if (key->quant != GJ_QUANT_AMAX)
        return;
    const uint32_t *words = fused->amax;
    void *arguments[] = {&words, &wrong};
    rig_launch(rig, kernels->compare_amax, 1, 1, 1, 1, 1, arguments);
}
