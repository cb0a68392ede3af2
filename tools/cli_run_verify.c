/* SPDX-License-Identifier: Apache-2.0 */
/* Compares D with a CPU reference, exactly: sums of small integers have one right value in every type. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_run.h"

/* Products are at most 4 in size, and integers to 2^24 are exact in f32. */
#define EXACT_K_MAX ((1 << 24) / 4)
/* Multiplications of the reference: about a second on one core. */
#define REFERENCE_COST_MAX (INT64_C(1) << 30)

/* -- Element types ------------------------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Rounds to the nearest float with `kept` bits of fraction, ties to even; subnormals do not occur. */
static float round_fraction(float value, int kept)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const int dropped = 23 - kept;
    const uint32_t half = UINT32_C(1) << (dropped - 1);
    bits += half - 1 + ((bits >> dropped) & 1);
    return float_of_bits(bits & ~((half << 1) - 1));
}

/* What a sum becomes in the type of D. */
static float expected_value(enum gj_dtype dtype, int32_t sum)
{
    const float value = (float)sum;
    if (dtype == GJ_DTYPE_BF16)
        return round_fraction(value, 7);
    if (dtype == GJ_DTYPE_F16) {
        const float rounded = round_fraction(value, 10);
        return fabsf(rounded) > 65504.0F ? copysignf(INFINITY, rounded) : rounded;
    }
    return value;
}

static float read_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31,
                   fraction = bits & 1023;
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0)
        return (sign ? -1.0F : 1.0F) * (float)fraction / 16777216.0F;
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static float read_element(enum gj_dtype dtype, const unsigned char *at)
{
    uint16_t half;
    float value;
    if (dtype == GJ_DTYPE_F32) {
        memcpy(&value, at, sizeof(value));
        return value;
    }
    memcpy(&half, at, sizeof(half));
    return dtype == GJ_DTYPE_F16 ? read_f16(half) : float_of_bits((uint32_t)half << 16);
}

/* -- What was written ---------------------------------------------------------------------------------- */

static int64_t count_changed(const unsigned char *bytes, size_t count)
{
    int64_t changed = 0;
    for (size_t i = 0; i < count; i++)
        changed += bytes[i] != RUN_POISON;
    return changed;
}

/* Counts what is written outside of D's elements, and elements that are not written. */
static void check_poison(const struct run_matrix *d, const unsigned char *bytes, struct gemm_check *check)
{
    const size_t element = gj_dtype_bytes(d->format.dtype);
    const size_t used = (size_t)d->length * element, pitch = (size_t)d->ld * element;
    const unsigned char *line = bytes + d->guard_bytes;
    check->outside_bytes = count_changed(bytes, d->guard_bytes);
    for (int64_t i = 0; i < d->lines * d->batches; i++, line += pitch) {
        for (size_t at = 0; at < used; at += element)
            check->unwritten += count_changed(line + at, element) == 0;
        check->outside_bytes += count_changed(line + used, pitch - used);
    }
    check->outside_bytes += count_changed(line, d->guard_bytes);
}

/* -- Values -------------------------------------------------------------------------------------------- */

static void compare(struct gemm_check *check, float got, float expected)
{
    check->elements++;
    if (got == expected)
        return;
    check->mismatches++;
    const double difference = isnan(got) ? INFINITY : fabs((double)got - (double)expected);
    if (difference > check->max_difference)
        check->max_difference = difference;
}

/* row counts over all batches. */
static void check_element(const struct gemm_run *run, const unsigned char *elements, int64_t row, int64_t n,
                          struct gemm_check *check)
{
    const struct run_matrix *const d = &run->d;
    const int64_t batch = row / run->m, m = row % run->m;
    const int8_t *const a = run->a_values + row * run->k;
    const int8_t *const b = run->b_values + (batch * run->n + n) * run->k;
    int32_t sum = 0;
    for (int64_t k = 0; k < run->k; k++)
        sum += a[k] * b[k];
    const bool n_major = d->format.major == GJ_MAJOR_N;
    const int64_t at = batch * d->batch_stride + (n_major ? m * d->ld + n : n * d->ld + m);
    compare(check, read_element(d->format.dtype, elements + (size_t)at * gj_dtype_bytes(d->format.dtype)),
            expected_value(d->format.dtype, sum));
}

static void check_row(const struct gemm_run *run, const unsigned char *elements, int64_t row,
                      struct gemm_check *check)
{
    for (int64_t n = 0; n < run->n; n++)
        check_element(run, elements, row, n, check);
    check->rows++;
}

/* The i-th of `count` samples of [0, total): at an irregular place in each of equal stretches, ending with
 * the last. */
static int64_t sample(int64_t i, int64_t count, int64_t total)
{
    const int64_t stretch = total / count;
    const int64_t offset = (int64_t)((uint64_t)i * UINT64_C(2654435761) % (uint64_t)stretch);
    return i == count - 1 ? total - 1 : i * stretch + offset;
}

/* All of D if that is cheap. Else whole rows, and as many single elements all over D, so that no tile of it
 * goes without. */
static void check_values(const struct gemm_run *run, const unsigned char *elements, struct gemm_check *check)
{
    const int64_t rows = run->m * run->batch;
    const int64_t affordable = REFERENCE_COST_MAX / (run->k + 1); /* elements */
    if (affordable / run->n >= rows) {
        for (int64_t row = 0; row < rows; row++)
            check_row(run, elements, row, check);
        return;
    }
    const int64_t num_rows = affordable / 2 / run->n;
    for (int64_t i = 0; i < num_rows; i++)
        check_row(run, elements, sample(i, num_rows, rows), check);
    const int64_t num_elements = affordable / 2 + 1;
    for (int64_t i = 0; i < num_elements; i++) {
        const int64_t element = sample(i, num_elements, rows * run->n);
        check_element(run, elements, element / run->n, element % run->n, check);
    }
}

enum gj_status gemm_run_check_reference(const struct gemm_run *run, gj_error **error)
{
    const enum gj_dtype dtype = run->key.d.dtype;
    if (run->k > EXACT_K_MAX)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "--check with --k %lld: sums are exact up to a k of %d only", (long long)run->k, EXACT_K_MAX);
    if (dtype != GJ_DTYPE_F32 && dtype != GJ_DTYPE_F16 && dtype != GJ_DTYPE_BF16)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--check knows no reference for d=%s",
                gj_dtype_name(dtype));
    return GJ_OK;
}

enum gj_status gemm_run_verify(struct gemm_run *run, struct gemm_check *check, gj_error **error)
{
    unsigned char *const bytes = malloc(run->d.bytes);
    if (bytes == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_LAUNCH, "no memory for D, %zu bytes", run->d.bytes);
    const enum gj_status status = gj_device_read(run->device, bytes, run->d.memory, run->d.bytes, error);
    if (status == GJ_OK) {
        *check = (struct gemm_check){0};
        check_poison(&run->d, bytes, check);
        check_values(run, bytes + run->d.guard_bytes, check);
    }
    free(bytes);
    return status;
}

bool gemm_check_passed(const struct gemm_check *check)
{
    return check->mismatches == 0 && check->unwritten == 0 && check->outside_bytes == 0;
}
