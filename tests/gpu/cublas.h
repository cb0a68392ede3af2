/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt by dlopen, as the reference of benchmarks. */
#ifndef GJ_TESTS_GPU_CUBLAS_H
#define GJ_TESTS_GPU_CUBLAS_H

#include <stdbool.h>

#include <cublasLt.h>

#define CUBLAS_ALGOS 8

struct cublas {
    cublasLtHandle_t handle;
    void *workspace;
    size_t workspace_bytes;
    size_t version;
};

/* One GEMM, D = A B^T with k-major 16-bit A (m, k) and B (n, k), n-major D (m, n), and the algorithms that
 * the heuristic offers, best first by its own estimate. */
struct cublas_gemm {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulHeuristicResult_t algos[CUBLAS_ALGOS];
    int num_algos;
};

/* Opens libcublasLt in the current context; exits with a sentence when it cannot. workspace: device memory.
 */
void cublas_open(struct cublas *cublas, void *workspace, size_t workspace_bytes);
/* epilogue: CUBLASLT_EPILOGUE_DEFAULT, or what cuBLASLt applies to D. */
void cublas_gemm_make(const struct cublas *cublas, cudaDataType_t type, cublasLtEpilogue_t epilogue, int m,
                      int n, int k, struct cublas_gemm *gemm);
void cublas_gemm_free(struct cublas_gemm *gemm);
/* Launches algorithm `algo`; exits with a sentence when cuBLAS refuses. */
void cublas_gemm_run(const struct cublas *cublas, const struct cublas_gemm *gemm, int algo, const void *a,
                     const void *b, void *d, void *stream);

#endif
