// SPDX-License-Identifier: Apache-2.0
// Types and keywords of every unit. There is no #include: the text compiles where there is no CUDA header.
#pragma once

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A CUtensorMap: opaque, encoded by the host, passed by value as a kernel parameter.
struct alignas(64) tensor_map {
    u64 opaque[16];
};

#define DEVICE static __device__ __forceinline__
