/* SPDX-License-Identifier: Apache-2.0 */
/* Operands, launches and comparisons of the key matrix. */
#include "problem.h"

#include <stdlib.h>
#include <string.h>

#define SEED_A 11u
#define SEED_B 23u

/* Pairs of alpha and beta with exact products; the zeros come with operands of NaN. */
static const float scalar_pairs[][2] = {{2, -1}, {1, 1}, {-1, 0}, {0.5f, 2}, {0, 1}, {1, 0}, {0, 0}};
#define NUM_PAIRS ((int)(sizeof scalar_pairs / sizeof scalar_pairs[0]))

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct layout layout_make(struct rig *rig, int batch, int rows, int columns, enum gj_dtype dtype, bool other,
                          uint32_t seed)
{
    const int64_t inner = other ? rows : columns, outer = other ? columns : rows;
    struct layout layout = {.ld = round_up(max64(inner, 1), 16) + 16};
    layout.batch_stride = max64(outer, 1) * layout.ld;
    const size_t bytes = (size_t)(batch * layout.batch_stride) * gj_dtype_bytes(dtype);
    gj_error *error = NULL;
    layout.data = rig_alloc(rig, bytes);
    must(gj_device_fill(rig->device, layout.data, 0xff, bytes, &error), error, "poison");
    if (rows == 0 || columns == 0)
        return layout;
    long long batch_stride = layout.batch_stride, row_stride = other ? 1 : layout.ld;
    long long column_stride = other ? layout.ld : 1;
    int type = (int)dtype;
    void *arguments[] = {&layout.data, &batch,         &rows, &columns, &batch_stride,
                         &row_stride,  &column_stride, &type, &seed};
    rig_launch(rig, rig->fill_matrix, 512, 1, 1, 256, 1, arguments);
    return layout;
}

static void make_operands(struct rig *rig, struct problem *problem)
{
    const struct shape *const s = &problem->shape;
    for (int t = GJ_DTYPE_F16; t < DTYPES; t++) {
        for (int other = 0; other < 2; other++) {
            problem->c[t][other] =
                layout_make(rig, s->batch, s->m, s->n, (enum gj_dtype)t, other, PROBLEM_SEED_C);
            if (t == GJ_DTYPE_F32 || (other && t >= GJ_DTYPE_E4M3))
                continue;
            problem->a[t][other] = layout_make(rig, s->batch, s->m, s->k, (enum gj_dtype)t, other, SEED_A);
            problem->b[t][other] =
                layout_make(rig, s->shared_b ? 1 : s->batch, s->n, s->k, (enum gj_dtype)t, other, SEED_B);
        }
    }
}

static void make_extras(struct rig *rig, struct problem *problem)
{
    const struct shape *const s = &problem->shape;
    gj_error *error = NULL;
    const int64_t largest = max64(max64(s->m, s->n), 1) + 64, other = max64(max64(s->n, s->k), 1) + 64;
    const size_t nan_bytes =
        (size_t)(s->batch * max64(largest * other, (int64_t)(s->m + 64) * (s->n + 64))) * 4;
    problem->nan = rig_alloc(rig, nan_bytes);
    must(gj_device_fill(rig->device, problem->nan, 0xff, nan_bytes, &error), error, "poison");
    problem->scalars = rig_alloc(rig, sizeof scalar_pairs);
    must(gj_device_write(rig->device, problem->scalars, scalar_pairs, sizeof scalar_pairs, &error), error,
         "scalars");
    int32_t order[64];
    for (int i = 0; i < s->batch; i++)
        order[i] = s->batch - 1 - i;
    problem->order = rig_alloc(rig, sizeof order);
    must(gj_device_write(rig->device, problem->order, order, (size_t)s->batch * 4, &error), error,
         "batch order");
    const int64_t n_major = s->m * (round_up(s->n, PAD) + 2 * PAD),
                  m_major = s->n * (round_up(s->m, PAD) + 2 * PAD);
    problem->d_bytes = (size_t)(s->batch * (max64(n_major, m_major) + 2 * PAD) + 2 * PAD) * 4;
    problem->d = rig_alloc(rig, problem->d_bytes);
}

void problem_make(struct rig *rig, const struct shape *shape, struct problem *problem)
{
    memset(problem, 0, sizeof *problem);
    problem->shape = *shape;
    make_operands(rig, problem);
    make_extras(rig, problem);
    int m = shape->m, n = shape->n, k = shape->k, shared = shape->shared_b;
    uint32_t seed_a = SEED_A, seed_b = SEED_B;
    problem->product = rig_alloc(rig, (size_t)shape->batch * (size_t)m * (size_t)n * 4);
    void *arguments[] = {&problem->product, &m, &n, &k, &shared, &seed_a, &seed_b};
    rig_launch(rig, rig->multiply, (unsigned)(n + 15) / 16, (unsigned)(m + 15) / 16, (unsigned)shape->batch,
               16, 16, arguments);
}

void problem_free(struct rig *rig, struct problem *problem)
{
    for (int t = 0; t < DTYPES; t++) {
        for (int other = 0; other < 2; other++) {
            gj_device_free(rig->device, problem->a[t][other].data);
            gj_device_free(rig->device, problem->b[t][other].data);
            gj_device_free(rig->device, problem->c[t][other].data);
        }
    }
    gj_device_free(rig->device, problem->nan);
    gj_device_free(rig->device, problem->product);
    gj_device_free(rig->device, problem->d);
    gj_device_free(rig->device, problem->scalars);
    gj_device_free(rig->device, problem->order);
}

struct place place_make(const struct shape *s, int columns, bool n_major)
{
    const int64_t inner = n_major ? columns : s->m, outer = n_major ? s->m : columns;
    struct place place = {.ld = round_up(inner, PAD) + 2 * PAD, .first = PAD};
    place.batch_stride = outer * place.ld + 2 * PAD;
    place.count = place.first + s->batch * place.batch_stride + PAD;
    return place;
}

static struct place place_of(const struct problem *problem, const struct gj_key *key)
{
    return place_make(&problem->shape, problem->shape.n, key->d.major == GJ_MAJOR_N);
}

const float *problem_pair(const struct gj_key *key, int variant, float effective[2])
{
    const float *const pair = scalar_pairs[variant % NUM_PAIRS];
    effective[0] = key->alpha == GJ_SCALAR_ONE ? 1 : pair[0];
    effective[1] = key->c.dtype == GJ_DTYPE_NONE ? 0 : key->beta == GJ_SCALAR_ONE ? 1 : pair[1];
    return pair;
}

void problem_set_scalars(struct rig *rig, const struct problem *problem, int variant, int from)
{
    gj_error *error = NULL;
    must(gj_device_write(rig->device, problem->scalars + 2 * (variant % NUM_PAIRS),
                         scalar_pairs[from % NUM_PAIRS], sizeof scalar_pairs[0], &error),
         error, "scalars");
}

static bool in_place(const struct gj_key *key, int variant)
{
    return variant % 2 == 1 && key->c.dtype == key->d.dtype && key->c.major == key->d.major;
}

static void *d_of(const struct problem *problem, const struct gj_key *key)
{
    return (char *)problem->d + (size_t)place_of(problem, key).first * gj_dtype_bytes(key->d.dtype);
}

void problem_prepare(struct rig *rig, const struct problem *problem, const struct gj_key *key, int variant)
{
    gj_error *error = NULL;
    const struct place place = place_of(problem, key);
    must(gj_device_fill(rig->device, problem->d, 0xff, (size_t)place.count * gj_dtype_bytes(key->d.dtype),
                        &error),
         error, "poison");
    float effective[2];
    problem_pair(key, variant, effective);
    if (!in_place(key, variant) || effective[1] == 0)
        return;
    void *d = d_of(problem, key);
    int batch = problem->shape.batch, m = problem->shape.m, n = problem->shape.n, type = (int)key->d.dtype;
    long long batch_stride = place.batch_stride;
    long long row_stride = key->d.major == GJ_MAJOR_N ? place.ld : 1,
              column_stride = row_stride == 1 ? place.ld : 1;
    uint32_t seed = PROBLEM_SEED_C;
    void *arguments[] = {&d, &batch, &m, &n, &batch_stride, &row_stride, &column_stride, &type, &seed};
    rig_launch(rig, rig->fill_matrix, 512, 1, 1, 256, 1, arguments);
}

static struct gj_tensor tensor_of(struct layout layout, bool shared)
{
    return (struct gj_tensor){layout.data, layout.ld, shared ? 0 : layout.batch_stride};
}

static struct gj_gemm_args make_args(const struct problem *problem, const struct gj_key *key, int variant)
{
    const struct shape *const s = &problem->shape;
    const struct place place = place_of(problem, key);
    static const unsigned flags[] = {0, GJ_LAUNCH_OVERLAP, GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT};
    float effective[2];
    const float *const pair = problem_pair(key, variant, effective);
    struct gj_gemm_args args = {
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .batch = s->batch,
        .a = tensor_of(problem->a[key->a.dtype][key->a.major != GJ_MAJOR_K], false),
        .b = tensor_of(problem->b[key->b.dtype][key->b.major != GJ_MAJOR_K], s->shared_b),
        .d = {d_of(problem, key), place.ld, place.batch_stride},
        .alpha = pair[0],
        .beta = pair[1],
        .alpha_device = problem->scalars + 2 * (variant % NUM_PAIRS),
        .beta_device = problem->scalars + 2 * (variant % NUM_PAIRS) + 1,
        .raster = (enum gj_raster)(variant % 3),
        .group_size = variant % 4 == 3 ? 3 : 0,
        .max_sms = variant % 5 == 4 ? 66 : 0,
        .batch_order = s->batch > 1 && variant % 2 ? problem->order : NULL,
        .flags = flags[variant / 2 % 3],
    };
    if (key->c.dtype != GJ_DTYPE_NONE)
        args.c = in_place(key, variant)
                     ? args.d
                     : tensor_of(problem->c[key->c.dtype][key->c.major != GJ_MAJOR_N], false);
    if (key->c.dtype != GJ_DTYPE_NONE && effective[1] == 0 && !in_place(key, variant))
        args.c.data = problem->nan;
    if (effective[0] == 0)
        args.a.data = problem->nan;
    if (s->k == 0)
        args.a = args.b = (struct gj_tensor){0};
    return args;
}

void problem_relaunch(struct rig *rig, const struct problem *problem, const struct gj_key *key,
                      gj_kernel *kernel, int variant, int times)
{
    gj_error *error = NULL;
    const struct gj_gemm_args args = make_args(problem, key, variant);
    for (int i = 0; i < times; i++)
        must(gj_launch(kernel, &args, rig->stream, &error), error, "gj_launch");
}

void problem_launch(struct rig *rig, const struct problem *problem, const struct gj_key *key,
                    gj_kernel *kernel, int variant)
{
    problem_prepare(rig, problem, key, variant);
    problem_relaunch(rig, problem, key, kernel, variant, 1);
}

void problem_compare(struct rig *rig, const struct problem *problem, const struct gj_key *key, int variant,
                     unsigned *wrong)
{
    const struct place place = place_of(problem, key);
    float effective[2];
    problem_pair(key, variant, effective);
    int m = problem->shape.m, n = problem->shape.n, batch = problem->shape.batch, type = (int)key->d.dtype;
    uint64_t count = (uint64_t)place.count, first = (uint64_t)place.first;
    long long batch_stride = place.batch_stride;
    long long row_stride = key->d.major == GJ_MAJOR_N ? place.ld : 1,
              column_stride = row_stride == 1 ? place.ld : 1;
    void *d = problem->d, *product = problem->product;
    uint32_t seed = PROBLEM_SEED_C;
    void *arguments[] = {&d,    &count,        &first,        &product,    &m,
                         &n,    &batch,        &batch_stride, &row_stride, &column_stride,
                         &type, &effective[0], &effective[1], &seed,       &wrong};
    rig_launch(rig, rig->compare, 264, 1, 1, 256, 1, arguments);
}
