// SPDX-License-Identifier: Apache-2.0
// Plain kernels that the GPU tests check the generated ones against. Compiled by the tests with NVRTC, behind
// tools/bench/bench_kernels.cu.
// Small integers for element (l, r, c) of a logical (batch, rows, columns) matrix, the same for every type and layout.
extern "C" __global__ void fill_matrix(void *data, int batch, int rows, int columns, s64 batch_stride, s64 row_stride,
                                       s64 column_stride, int dtype, u32 seed)
{
    const u64 count = (u64)batch * rows * columns;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const u64 l = i / ((u64)rows * columns), in_batch = i - l * rows * columns;
        const u64 r = in_batch / columns, c = in_batch - r * columns;
        put(data, l * batch_stride + r * row_stride + c * column_stride, dtype, encode(value_of(i, 0, seed), dtype));
    }
}

// result (batch, m, n), packed, f32 = A B^T of the matrices that fill_matrix makes from these seeds. Blocks of 16 x 16
// threads, grid (n / 16, m / 16, batch).
extern "C" __global__ void multiply(float *result, int m, int n, int k, int b_shared, u32 seed_a, u32 seed_b)
{
    __shared__ float sa[16][17], sb[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    const int b_row = blockIdx.x * 16 + threadIdx.y;
    const u64 l = blockIdx.z, b_l = b_shared ? 0 : l;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        const int kk = k0 + threadIdx.x;
        sa[threadIdx.y][threadIdx.x] = row < m && kk < k ? value_of((l * m + row) * k + kk, 0, seed_a) : 0;
        sb[threadIdx.y][threadIdx.x] = b_row < n && kk < k ? value_of((b_l * n + b_row) * k + kk, 0, seed_b) : 0;
        __syncthreads();
        for (int q = 0; q < 16; q++)
            sum += sa[threadIdx.y][q] * sb[threadIdx.x][q];
        __syncthreads();
    }
    if (row < m && column < n)
        result[(l * m + row) * n + column] = sum;
}

// Compares a whole buffer of `count` elements with what it must hold: at element `first` starts D, whose element
// (l, r, c) lies l * batch_stride + r * row_stride + c * column_stride further on and is alpha * product + beta * C rounded
// to D's type; everything else is the poison 0xff. C is what fill_matrix makes from seed_c. Adds the number of wrong
// elements to *wrong.
extern "C" __global__ void compare(const void *buffer, u64 count, u64 first, const float *product, int m, int n, int batch,
                                   s64 batch_stride, s64 row_stride, s64 column_stride, int dtype, float alpha, float beta,
                                   u32 seed_c, u32 *wrong)
{
    const s64 ld = row_stride == 1 ? column_stride : row_stride;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const int bytes = bytes_of(dtype);
        u32 expected = bytes == 4 ? 0xffffffffu : bytes == 2 ? 0xffffu : 0xffu;
        if (i >= first) {
            const u64 at = i - first, l = batch > 1 ? at / batch_stride : 0, in_batch = at - l * batch_stride;
            const u64 line = in_batch / ld, inner = in_batch - line * ld;
            const u64 r = row_stride == 1 ? inner : line, c = row_stride == 1 ? line : inner;
            if (l < batch && r < m && c < n) {
                const u64 logical = (l * m + r) * n + c;
                float value = alpha == 0 ? 0 : alpha * product[logical];
                if (beta != 0)
                    value += beta * value_of(logical, 0, seed_c);
                expected = encode(value, dtype);
            }
        }
        const u32 got = get(buffer, i, dtype);
        if (got != expected && !(decode(got, dtype) == 0 && decode(expected, dtype) == 0)) // the sign of a zero is free
            atomicAdd(wrong, 1u);
    }
}

// |normal| values: data of one sign, where lost bits of a sum do not cancel.
extern "C" __global__ void make_positive(void *data, u64 count, int dtype)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        put(data, i, dtype, encode(fabsf(decode(get(data, i, dtype), dtype)), dtype));
}

// Sums of squares of D - A B^T (in f64) and of A B^T over packed k-major operands and packed f32 D: out[0], out[1]; and the
// sum of the signed errors and of the values: out[2], out[3]. One thread per element of D.
extern "C" __global__ void exact_error(const void *a, const void *b, const float *d, int m, int n, int k, int dtype,
                                       double *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n)
        return;
    double sum = 0;
    for (int q = 0; q < k; q++)
        sum += (double)decode(get(a, (u64)(i / n) * k + q, dtype), dtype) * decode(get(b, (u64)(i % n) * k + q, dtype), dtype);
    atomicAdd(out, (d[i] - sum) * (d[i] - sum));
    atomicAdd(out + 1, sum * sum);
    atomicAdd(out + 2, d[i] - sum);
    atomicAdd(out + 3, sum);
}

// Number of 32-bit words in which two buffers differ, added to *wrong.
extern "C" __global__ void differing_words(const u32 *x, const u32 *y, u64 count, u32 *wrong)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        if (x[i] != y[i])
            atomicAdd(wrong, 1u);
}

// Reads `count` vectors of 16 bytes and does nothing with them: `never` is not given.
extern "C" __global__ void read_all(const uint4 *vectors, u64 count, u32 *never)
{
    u32 sum = 0;
    const u64 step = (u64)gridDim.x * blockDim.x;
#pragma unroll 8
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += step) {
        const uint4 v = vectors[i];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (never != 0)
        *never = sum;
}

// Sum of squares of the difference of two tensors and of the second: out[0], out[1].
extern "C" __global__ void distance(const void *x, const void *y, u64 count, int dtype, double *out)
{
    double difference = 0, norm = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const double a = decode(get(x, i, dtype), dtype), b = decode(get(y, i, dtype), dtype);
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    atomicAdd(out, difference);
    atomicAdd(out + 1, norm);
}

// What `judge` gets, laid out as in cases.c. Element (l, r, c) of an operand lies l * batch_stride + r * row_stride + c *
// column_stride elements from its data; c counts along K for A and B, along N for C and D.
struct operand {
    void *data;
    s64 batch_stride, row_stride, column_stride;
    int dtype;
};

struct judged {
    struct operand a, b, c, d;
    int m, n, k;
    float alpha, beta; // beta 0: C is not read
    u32 *worst;        // four words, see judge
};

__device__ float element(const operand &x, u64 l, s64 r, s64 c)
{
    return decode(get(x.data, l * x.batch_stride + r * x.row_stride + c * x.column_stride, x.dtype), x.dtype);
}

__device__ float rounded(float value, int dtype)
{
    return decode(encode(value, dtype), dtype);
}

// Standard normal times scale in lines of `inner` contiguous elements, ld apart. ignored: lines 3, 8, 13, ... are zero.
extern "C" __global__ void fill_lines(void *data, int lines, int inner, s64 ld, int dtype, float scale, u32 seed, int ignored)
{
    const u64 count = (u64)lines * inner;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const u64 line = i / inner;
        const float value = ignored && line % 5 == 3 ? 0 : scale * value_of(i, 1, seed);
        put(data, line * ld + (i - line * inner), dtype, encode(value, dtype));
    }
}

// 64 rows x 16 columns of an operand, zeros outside of it; transposed. Neighbouring threads take neighbouring elements.
__device__ void load_tile(float (*tile)[65], const operand &x, u64 l, int row0, int rows, int k0, int k)
{
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 1024; i += 256) {
        const int r = x.row_stride == 1 ? i % 64 : i / 16, q = x.row_stride == 1 ? i / 64 : i % 16;
        tile[q][r] = row0 + r < rows && k0 + q < k ? element(x, l, row0 + r, k0 + q) : 0;
    }
}

// |difference|; infinite when it is no number, as over memory that was never written.
__device__ float error_of(double x, double y)
{
    const float difference = (float)fabs(x - y);
    return difference <= 3e38f ? difference : __uint_as_float(0x7f800000);
}

// Judges D against ref = alpha A B^T + beta C in f64 and against pt, the same as separate operations in D's type would
// give it: the product accumulated in f32 and rounded once, then every further operation rounded. Raises, as bits of f32:
// worst[0] to the largest |D - ref|, worst[1] to the largest |pt - ref|, worst[2] to the largest |D - r| / (0.03 + 0.001 |r|)
// where r is ref rounded to D's type. Blocks of 16 x 16 threads, each for 64 x 64 elements; grid (n / 64, m / 64, batch).
extern "C" __global__ void judge(struct judged p)
{
    __shared__ float sa[16][65], sb[16][65];
    __shared__ u32 worst[3];
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const u64 l = blockIdx.z;
    double exact[4][4] = {};
    float plain[4][4] = {}, largest[3] = {};
    if (threadIdx.y == 0 && threadIdx.x < 3)
        worst[threadIdx.x] = 0;
    for (int k0 = 0; k0 < p.k; k0 += 16) {
        load_tile(sa, p.a, l, row0, p.m, k0, p.k);
        load_tile(sb, p.b, l, column0, p.n, k0, p.k);
        __syncthreads();
        for (int q = 0; q < 16; q++) {
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const float a = sa[q][threadIdx.y + i / 4 * 16], b = sb[q][threadIdx.x + i % 4 * 16];
                exact[i / 4][i % 4] += (double)a * b;
                plain[i / 4][i % 4] += a * b;
            }
        }
        __syncthreads();
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int row = row0 + threadIdx.y + i / 4 * 16, column = column0 + threadIdx.x + i % 4 * 16;
        if (row >= p.m || column >= p.n)
            continue;
        const float c = p.beta == 0 ? 0 : element(p.c, l, row, column), d = element(p.d, l, row, column);
        const double ref = p.alpha * exact[i / 4][i % 4] + (double)p.beta * c;
        float pt = rounded(p.alpha * rounded(plain[i / 4][i % 4], p.d.dtype), p.d.dtype);
        if (p.beta != 0)
            pt = rounded(pt + rounded(p.beta * c, p.d.dtype), p.d.dtype);
        const float r = rounded((float)ref, p.d.dtype);
        largest[0] = fmaxf(largest[0], error_of(d, ref));
        largest[1] = fmaxf(largest[1], error_of(pt, ref));
        largest[2] = fmaxf(largest[2], error_of(d, r) / (3e-2f + 1e-3f * fabsf(r)));
    }
    for (int i = 0; i < 3; i++)
        atomicMax(&worst[i], __float_as_uint(largest[i]));
    __syncthreads();
    if (threadIdx.y == 0 && threadIdx.x < 3)
        atomicMax(&p.worst[threadIdx.x], worst[threadIdx.x]);
}
