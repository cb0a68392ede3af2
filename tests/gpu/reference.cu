// SPDX-License-Identifier: Apache-2.0
// Plain kernels that the GPU tests check the generated ones against. Compiled by the tests with NVRTC.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Element types, numbered as enum gj_dtype.
#define F16 1
#define BF16 2
#define F32 3

__device__ u32 hash(u64 index, u32 seed)
{
    u32 x = (u32)(index ^ (index >> 32)) * 2654435761u + seed;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

__device__ u32 encode(float value, int dtype)
{
    u16 bits = 0;
    if (dtype == F32)
        return __float_as_uint(value);
    if (dtype == F16)
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    else
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ float decode(u16 bits, int dtype)
{
    float value;
    if (dtype == BF16)
        return __uint_as_float((u32)bits << 16);
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// kind 0: integers from -2 to 2, so that every sum is exact in f32; kind 1: standard normal.
extern "C" __global__ void fill(u16 *data, u64 count, int dtype, int kind, u32 seed)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const u32 a = hash(i, seed), b = hash(i, seed ^ 0x9e3779b9u);
        float value = (float)(int)(a % 5) - 2;
        if (kind == 1)
            value = sqrtf(-2 * logf(((a >> 8) + 0.5f) / 16777216)) * cospif((b >> 8) / 8388608.0f);
        data[i] = (u16)encode(value, dtype);
    }
}

// result (batch, m, n), packed, f32 = A B^T. Blocks of 16 x 16 threads, grid (n / 16, m / 16, batch).
extern "C" __global__ void multiply(const u16 *a, const u16 *b, float *result, int m, int n, int k, long long a_ld,
                                    long long b_ld, long long a_batch, long long b_batch, int dtype)
{
    __shared__ float sa[16][17], sb[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    const int b_row = blockIdx.x * 16 + threadIdx.y;
    a += blockIdx.z * a_batch;
    b += blockIdx.z * b_batch;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        const int kk = k0 + threadIdx.x;
        sa[threadIdx.y][threadIdx.x] = row < m && kk < k ? decode(a[row * a_ld + kk], dtype) : 0;
        sb[threadIdx.y][threadIdx.x] = b_row < n && kk < k ? decode(b[b_row * b_ld + kk], dtype) : 0;
        __syncthreads();
        for (int q = 0; q < 16; q++)
            sum += sa[threadIdx.y][q] * sb[threadIdx.x][q];
        __syncthreads();
    }
    if (row < m && column < n)
        result[(u64)blockIdx.z * m * n + (u64)row * n + column] = sum;
}

// Compares a whole buffer of `count` elements: those of D (at element `first`, rows d_ld apart) with the
// reference rounded to D's type, all others with the poison 0xff. Adds the number of wrong ones to *wrong.
extern "C" __global__ void compare(const void *buffer, u64 count, u64 first, const float *reference, int m, int n,
                                   int batch, long long d_ld, long long d_batch, int dtype, u32 *wrong)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        u32 expected = dtype == F32 ? 0xffffffffu : 0xffffu;
        if (i >= first) {
            const u64 at = i - first, l = batch > 1 ? at / d_batch : 0, in_batch = at - l * d_batch;
            const u64 row = in_batch / d_ld, column = in_batch - row * d_ld;
            if (l < batch && row < m && column < n)
                expected = encode(reference[l * m * n + row * n + column], dtype);
        }
        const u32 got = dtype == F32 ? ((const u32 *)buffer)[i] : ((const u16 *)buffer)[i];
        if (got != expected)
            atomicAdd(wrong, 1u);
    }
}

// Sum of squares of the difference of two 16-bit tensors and of the second: out[0], out[1].
extern "C" __global__ void distance(const u16 *x, const u16 *y, u64 count, int dtype, double *out)
{
    double difference = 0, norm = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const double a = decode(x[i], dtype), b = decode(y[i], dtype);
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    atomicAdd(out, difference);
    atomicAdd(out + 1, norm);
}
