/* SPDX-License-Identifier: Apache-2.0 */
/* A first GEMM: D = A B^T of ones in bf16, so every element of D is k. Needs an H100 or H200, and for its
 * memory the CUDA runtime of a toolkit. inspect.c needs neither. */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>
#include <gemmjit/gemmjit.h>

/* Says what a call of the CUDA runtime answered; true when it failed. */
static int failed(const char *call, cudaError_t result)
{
    if (result != cudaSuccess)
        fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
    return result != cudaSuccess;
}

int main(void)
{
    enum { m = 512, n = 1024, k = 256 };
    static uint16_t ones[n * k], result[m * n];
    for (int i = 0; i < n * k; i++)
        ones[i] = 0x3f80; /* 1.0 in bf16 */
    void *a, *b, *d;
    if (failed("cudaMalloc of A", cudaMalloc(&a, m * k * 2)) ||
        failed("cudaMalloc of B", cudaMalloc(&b, n * k * 2)) ||
        failed("cudaMalloc of D", cudaMalloc(&d, m * n * 2)) ||
        failed("cudaMemcpy to A", cudaMemcpy(a, ones, m * k * 2, cudaMemcpyHostToDevice)) ||
        failed("cudaMemcpy to B", cudaMemcpy(b, ones, n * k * 2, cudaMemcpyHostToDevice)))
        return EXIT_FAILURE;

    gj_context *context = NULL;
    gj_error *error = NULL;
    const struct gj_key problem = gj_key_default(); /* bf16, A (m, k), B (n, k), D (m, n), rows contiguous */
    const struct gj_gemm_args args = {
        .m = m, .n = n, .k = k, .batch = 1, .a = {a, k, 0}, .b = {b, k, 0}, .d = {d, n, 0}};
    if (gj_context_open(NULL, &context, &error) || gj_gemm(context, &problem, &args, NULL, &error)) {
        fprintf(stderr, "%s\n", error ? error->message : "out of memory");
        return EXIT_FAILURE;
    }
    if (failed("cudaMemcpy from D", cudaMemcpy(result, d, m * n * 2, cudaMemcpyDeviceToHost)))
        return EXIT_FAILURE;
    printf("D[0][0] = 0x%04x, expected 0x4380 (256.0 in bf16)\n", result[0]);
    gj_context_close(&context);
    return result[0] == 0x4380 ? EXIT_SUCCESS : EXIT_FAILURE;
}
