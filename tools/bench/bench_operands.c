/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of operands with standard normal values that take turns, and the comparison of two results. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "bench_kernels.h"
#include "compile/compile.h"

/* Bytes of all sets together, more than three times the 60 MB of L2 of an H200. */
#define ROTATED_BYTES INT64_C(200000000)
#define ALIGNMENT 256 /* of each operand, as cudaMalloc gives */
#define BETA 0.5f     /* with a C and beta from the host */

enum { FILL_NORMAL = 1, BLOCKS = 1056, THREADS = 256 };

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t bytes_of(struct gj_format format, int64_t elements)
{
    return aligned(elements * (int64_t)gj_dtype_bytes(format.dtype));
}

enum gj_status bench_kernels_load(struct bench *bench, gj_error **error)
{
    gj_compiler *compiler = NULL;
    struct gj_compile_result result = {0};
    const struct gj_compile_request request = {
        .unit = bench_kernels_text, .name = "bench_kernels", .entry_name = "fill", .kind = GJ_IMAGE_CUBIN};
    GJ_TRY(gj_compiler_open(&compiler, error));
    enum gj_status status = gj_compiler_run(compiler, &request, &result, error);
    if (status == GJ_OK)
        status = gj_device_load(bench->device, result.image, &bench->library, error);
    free(result.image);
    free(result.log);
    gj_compiler_close(&compiler);
    return status;
}

/* -- Operands ------------------------------------------------------------------------------------------ */

static enum gj_status fill(struct bench *bench, void *data, int64_t elements, enum gj_dtype dtype,
                           unsigned seed, gj_error **error)
{
    uint64_t count = (uint64_t)elements;
    int type = (int)dtype, kind = FILL_NORMAL;
    void *arguments[] = {&data, &count, &type, &kind, &seed};
    return gj_device_run(bench->device, bench->library, "fill", BLOCKS, THREADS, arguments, error);
}

static enum gj_status fill_set(struct bench *bench, const struct bench_shape *shape,
                               const struct bench_operands *operands, int set, gj_error **error)
{
    const struct gj_key *const key = &bench->problem;
    const int64_t m = shape->m, n = shape->n, k = shape->k, batch = shape->batch;
    char *const memory = operands->memory[set];
    const unsigned seed = 3u * (unsigned)set;
    GJ_TRY(fill(bench, memory, m * k * batch, key->a.dtype, seed + 1, error));
    GJ_TRY(fill(bench, memory + operands->offset_b, n * k * batch, key->b.dtype, seed + 2, error));
    if (key->c.dtype != GJ_DTYPE_NONE)
        GJ_TRY(fill(bench, memory + operands->offset_c, m * n * batch, key->c.dtype, seed + 3, error));
    return GJ_OK;
}

enum gj_status bench_operands_make(struct bench *bench, const struct bench_shape *shape,
                                   struct bench_operands *operands, gj_error **error)
{
    const struct gj_key *const key = &bench->problem;
    const int64_t m = shape->m, n = shape->n, k = shape->k, batch = shape->batch;
    *operands = (struct bench_operands){.offset_b = bytes_of(key->a, m * k * batch)};
    operands->offset_c = operands->offset_b + bytes_of(key->b, n * k * batch);
    operands->offset_d = operands->offset_c + bytes_of(key->c, m * n * batch);
    operands->bytes = operands->offset_d + bytes_of(key->d, m * n * batch);
    const int64_t sets = ROTATED_BYTES / operands->bytes + 2;
    const int wanted = sets < BENCH_SETS_MAX ? (int)sets : BENCH_SETS_MAX;
    for (; operands->num_sets < wanted; operands->num_sets++) {
        void **const memory = &operands->memory[operands->num_sets];
        GJ_TRY(gj_device_alloc(bench->device, (size_t)operands->bytes, memory, error));
        GJ_TRY(fill_set(bench, shape, operands, operands->num_sets, error));
    }
    return gj_device_sync(bench->device, BENCH_TIMEOUT_MS, error);
}

void bench_operands_free(struct bench *bench, struct bench_operands *operands)
{
    for (int i = 0; i < BENCH_SETS_MAX; i++)
        gj_device_free(bench->device, operands->memory[i]);
    *operands = (struct bench_operands){0};
}

/* A packed operand whose usual major makes `rows` rows of `columns`. */
static struct gj_tensor tensor(void *memory, bool usual, int64_t rows, int64_t columns)
{
    return (struct gj_tensor){.data = memory, .ld = usual ? columns : rows, .batch_stride = rows * columns};
}

struct gj_gemm_args bench_operands_args(const struct bench *bench, const struct bench_shape *shape,
                                        const struct bench_operands *operands, int set)
{
    const struct gj_key *const key = &bench->problem;
    const int64_t m = shape->m, n = shape->n, k = shape->k;
    char *const memory = operands->memory[set];
    struct gj_gemm_args args = {
        .m = m,
        .n = n,
        .k = k,
        .batch = shape->batch,
        .a = tensor(memory, key->a.major == GJ_MAJOR_K, m, k),
        .b = tensor(memory + operands->offset_b, key->b.major == GJ_MAJOR_K, n, k),
        .d = tensor(memory + operands->offset_d, key->d.major == GJ_MAJOR_N, m, n),
        .flags = bench->flags,
    };
    if (key->c.dtype != GJ_DTYPE_NONE) {
        args.c = tensor(memory + operands->offset_c, key->c.major == GJ_MAJOR_N, m, n);
        args.beta = key->beta == GJ_SCALAR_HOST ? BETA : 1;
    }
    return args;
}

/* -- Comparison ---------------------------------------------------------------------------------------- */

enum gj_status bench_compare(struct bench *bench, const struct bench_shape *shape,
                             const struct bench_operands *operands, int set_x, int set_y,
                             int64_t *num_different, gj_error **error)
{
    const enum gj_dtype dtype = bench->problem.d.dtype;
    uint64_t found = 0, count = (uint64_t)(shape->m * shape->n * shape->batch);
    float tolerance = gj_dtype_bytes(dtype) == 1 ? 0x1p-2f : 0x1p-6f, scale = sqrtf((float)shape->k);
    int type = (int)dtype;
    void *sum = NULL;
    void *x = (char *)operands->memory[set_x] + operands->offset_d;
    void *y = (char *)operands->memory[set_y] + operands->offset_d;
    void *arguments[] = {&x, &y, &count, &type, &tolerance, &scale, &sum};
    GJ_TRY(gj_device_alloc(bench->device, sizeof(found), &sum, error));
    enum gj_status status = gj_device_fill(bench->device, sum, 0, sizeof(found), error);
    if (status == GJ_OK)
        status = gj_device_run(bench->device, bench->library, "count_different", BLOCKS, THREADS, arguments,
                               error);
    if (status == GJ_OK)
        status = gj_device_sync(bench->device, BENCH_TIMEOUT_MS, error);
    if (status == GJ_OK)
        status = gj_device_read(bench->device, &found, sum, sizeof(found), error);
    if (status == GJ_OK)
        gj_device_free(bench->device, sum);
    *num_different = (int64_t)found;
    return status;
}
