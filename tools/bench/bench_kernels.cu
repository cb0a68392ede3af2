// SPDX-License-Identifier: Apache-2.0
// Kernels of benchmarks and tests: random operands, and comparing two results. Compiled where they run, with NVRTC.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

// Element types, numbered as enum gj_dtype.
#define F16 1
#define BF16 2
#define F32 3
#define E4M3 4
#define E5M2 5

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
    else if (dtype == BF16)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    else if (dtype == E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(value));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(value));
    return bits;
}

__device__ float decode(u32 bits, int dtype)
{
    u32 halves;
    u16 low = (u16)bits;
    float value;
    if (dtype == F32)
        return __uint_as_float(bits);
    if (dtype == BF16)
        return __uint_as_float(bits << 16);
    if (dtype == E4M3) {
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(low));
        low = (u16)halves;
    } else if (dtype == E5M2) {
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(low));
        low = (u16)halves;
    }
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(low));
    return value;
}

__device__ int bytes_of(int dtype)
{
    return dtype == F32 ? 4 : dtype >= E4M3 ? 1 : 2;
}

__device__ u32 get(const void *data, u64 i, int dtype)
{
    const int bytes = bytes_of(dtype);
    return bytes == 4 ? ((const u32 *)data)[i] : bytes == 2 ? ((const u16 *)data)[i] : ((const u8 *)data)[i];
}

__device__ void put(void *data, u64 i, int dtype, u32 bits)
{
    const int bytes = bytes_of(dtype);
    if (bytes == 4)
        ((u32 *)data)[i] = bits;
    else if (bytes == 2)
        ((u16 *)data)[i] = (u16)bits;
    else
        ((u8 *)data)[i] = (u8)bits;
}

// Value of element i of a logical matrix. kind 0: integers from -2 to 2, so that every sum is exact; kind 1: standard
// normal.
__device__ float value_of(u64 i, int kind, u32 seed)
{
    const u32 a = hash(i, seed), b = hash(i, seed ^ 0x9e3779b9u);
    if (kind == 1)
        return sqrtf(-2 * logf(((a >> 8) + 0.5f) / 16777216)) * cospif((b >> 8) / 8388608.0f);
    return (float)(int)(a % 5) - 2;
}

// data[i] for a packed array.
extern "C" __global__ void fill(void *data, u64 count, int dtype, int kind, u32 seed)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        put(data, i, dtype, encode(value_of(i, kind, seed), dtype));
}

// Adds to *out the number of elements of x that are further from those of y than tolerance times the value of y or the
// scale, whichever is larger; a NaN is.
extern "C" __global__ void count_different(const void *x, const void *y, u64 count, int dtype, float tolerance,
                                           float scale, u64 *out)
{
    u64 different = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const float a = decode(get(x, i, dtype), dtype), b = decode(get(y, i, dtype), dtype);
        different += !(fabsf(a - b) <= tolerance * fmaxf(fabsf(b), scale));
    }
    if (different != 0)
        atomicAdd(out, different);
}
