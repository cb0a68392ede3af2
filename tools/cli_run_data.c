/* SPDX-License-Identifier: Apache-2.0 */
/* Operands for the verb run: small integers for A and B, poison around every element and in D. */
#include <stdlib.h>
#include <string.h>

#include "gemm_run.h"

/* -2 to 2 in every input type. */
#define NUM_VALUES 5
static const uint16_t value_bits[][NUM_VALUES] = {
    [GJ_DTYPE_F16] = {0xc000, 0xbc00, 0x0000, 0x3c00, 0x4000},
    [GJ_DTYPE_BF16] = {0xc000, 0xbf80, 0x0000, 0x3f80, 0x4000},
    [GJ_DTYPE_E4M3] = {0xc0, 0xb8, 0x00, 0x38, 0x40},
    [GJ_DTYPE_E5M2] = {0xc0, 0xbc, 0x00, 0x3c, 0x40},
};

/* Lays a matrix out: lines padded to what TMA asks, 16 bytes. False when its size overflows. */
static bool lay_out(struct run_matrix *matrix)
{
    const int64_t element = (int64_t)gj_dtype_bytes(matrix->format.dtype);
    const int64_t step = 16 / element;
    matrix->ld = (matrix->length + step - 1) / step * step;
    if (matrix->ld == 0)
        matrix->ld = step;
    int64_t elements, bytes;
    if (__builtin_mul_overflow(matrix->ld, matrix->lines, &matrix->batch_stride) ||
        __builtin_mul_overflow(matrix->batch_stride, matrix->batches, &elements) ||
        __builtin_mul_overflow(elements, element, &bytes) || bytes > INT64_MAX - 2 * RUN_GUARD_BYTES)
        return false;
    matrix->bytes = (size_t)bytes + 2 * matrix->guard_bytes;
    return true;
}

/* A small integer per element, from a fixed sequence (xorshift): the same on every machine. */
static int8_t *make_values(int64_t count, uint64_t seed)
{
    int8_t *const values = malloc(count > 0 ? (size_t)count : 1);
    uint64_t state = seed;
    for (int64_t i = 0; values && i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values[i] = (int8_t)((state >> 33) % NUM_VALUES) - 2;
    }
    return values;
}

/* Writes one input; values are (batch, row, k) with k contiguous, and are transposed for the other major. */
static void encode(const struct run_matrix *matrix, const int8_t *values, unsigned char *bytes)
{
    const bool k_major = matrix->format.major == GJ_MAJOR_K;
    const size_t element = gj_dtype_bytes(matrix->format.dtype);
    const uint16_t *const bits = value_bits[matrix->format.dtype];
    for (int64_t batch = 0; batch < matrix->batches; batch++) {
        const int8_t *const from = values + batch * matrix->lines * matrix->length;
        for (int64_t line = 0; line < matrix->lines; line++) {
            const int64_t start = batch * matrix->batch_stride + line * matrix->ld;
            for (int64_t i = 0; i < matrix->length; i++) {
                const int8_t value =
                    k_major ? from[line * matrix->length + i] : from[i * matrix->lines + line];
                const uint16_t word = bits[value + 2];
                const unsigned char byte = (unsigned char)word;
                memcpy(bytes + (size_t)(start + i) * element, element == 2 ? (const void *)&word : &byte,
                       element);
            }
        }
    }
}

static enum gj_status upload(struct gemm_run *run, struct run_matrix *matrix, const int8_t *values,
                             gj_error **error)
{
    unsigned char *const bytes = malloc(matrix->bytes ? matrix->bytes : 1);
    if (bytes == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LAUNCH, "no memory for an operand of %zu bytes",
                matrix->bytes);
    memset(bytes, RUN_POISON, matrix->bytes); /* also behind each line: reading there shows as a NaN */
    encode(matrix, values, bytes);
    const enum gj_status status = gj_device_write(run->device, matrix->memory, bytes, matrix->bytes, error);
    free(bytes);
    return status;
}

/* rows and columns are those of the operand as it is written in D = A B^T. */
static struct run_matrix make_matrix(struct gj_format format, int64_t rows, int64_t columns, int64_t batches,
                                     enum gj_major row_major)
{
    const bool straight = format.major == row_major;
    return (struct run_matrix){.format = format,
                               .lines = straight ? rows : columns,
                               .length = straight ? columns : rows,
                               .batches = batches};
}

enum gj_status gemm_run_fill(struct gemm_run *run, gj_error **error)
{
    run->a = make_matrix(run->key.a, run->m, run->k, run->batch, GJ_MAJOR_K);
    run->b = make_matrix(run->key.b, run->n, run->k, run->batch, GJ_MAJOR_K);
    run->d = make_matrix(run->key.d, run->m, run->n, run->batch, GJ_MAJOR_N);
    run->d.guard_bytes = RUN_GUARD_BYTES;
    if (!lay_out(&run->a) || !lay_out(&run->b) || !lay_out(&run->d))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_LAUNCH, "the operands are larger than any memory");
    /* First the device's memory: what does not fit there must not cost minutes here. */
    GJ_TRY(gj_device_alloc(run->device, run->d.bytes, &run->d.memory, error));
    GJ_TRY(gj_device_alloc(run->device, run->a.bytes, &run->a.memory, error));
    GJ_TRY(gj_device_alloc(run->device, run->b.bytes, &run->b.memory, error));
    run->a_values = make_values(run->a.lines * run->a.length * run->batch, UINT64_C(0x9e3779b97f4a7c15));
    run->b_values = make_values(run->b.lines * run->b.length * run->batch, UINT64_C(0xd1b54a32d192ed03));
    if (run->a_values == NULL || run->b_values == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LAUNCH, "no memory for the values of A and B");
    GJ_TRY(upload(run, &run->a, run->a_values, error));
    GJ_TRY(upload(run, &run->b, run->b_values, error));
    return gj_device_fill(run->device, run->d.memory, RUN_POISON, run->d.bytes, error);
}

void gemm_run_empty(struct gemm_run *run)
{
    if (run->device) {
        gj_device_free(run->device, run->a.memory);
        gj_device_free(run->device, run->b.memory);
        gj_device_free(run->device, run->d.memory);
    }
    free(run->a_values);
    free(run->b_values);
}

struct gj_tensor gemm_run_tensor(const struct run_matrix *matrix)
{
    return (struct gj_tensor){.data = (char *)matrix->memory + matrix->guard_bytes,
                              .ld = matrix->ld,
                              .batch_stride = matrix->batch_stride};
}
