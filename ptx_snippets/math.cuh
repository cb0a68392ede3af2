// SPDX-License-Identifier: Apache-2.0
// Arithmetic for which C++ has no word, and conversions of single values. sm_90, PTX 7.8. One thread each.
#pragma once

// 2^x to 2 ulp; denormal results are 0.
DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 1 / x to 1 ulp; 0 for infinity.
DEVICE float reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The larger value; NaN if either is.
DEVICE float max_nan(float x, float y)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
    return larger;
}

DEVICE float bf16_value(u16 bits)
{
    return __uint_as_float((u32)bits << 16);
}

DEVICE float f16_value(u16 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Two values rounded to bf16, the first in the lower half.
DEVICE u32 pair_bf16(float low, float high)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
    return pair;
}

// Two values rounded to f16, the first in the lower half.
DEVICE u32 pair_f16(float low, float high)
{
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
    return pair;
}
