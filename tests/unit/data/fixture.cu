// SPDX-License-Identifier: Apache-2.0
// Source of the two cubins beside it: abi8.cubin by NVRTC 13.0, abi7.cubin by NVRTC 12.3, both with
// -arch=sm_90a -std=c++17. What test_cubin.c expects of them stands here.
typedef unsigned long long u64;

// 128 threads, 512 bytes of static shared memory, barriers 0 to 3, one wgmma, setmaxnreg, 24 parameter bytes.
extern "C" __global__ void __launch_bounds__(128, 1) fixture_mma(float *p, u64 a, u64 b)
{
    __shared__ float shared[128];
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 64;");
    asm volatile("bar.sync 3, 128;" ::: "memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;\n"
                 "wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "l"(a), "l"(b)
                 : "memory");
    shared[threadIdx.x] = d0 + d1 + d2 + d3;
    __syncthreads();
    p[threadIdx.x] = shared[threadIdx.x ^ 5];
}

// A local array indexed at run time: 256 bytes of local memory per thread, no launch bounds, 12 parameter bytes.
extern "C" __global__ void fixture_local(float *p, int i)
{
    float d[64];
#pragma unroll 1
    for (int j = 0; j < 64; j++)
        d[(j * i) & 63] = p[j];
    p[i] = d[i & 63];
}
