/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cuBLASLt's binary interface that a benchmark needs, so that building needs no header of it.
 * Numbers and layouts: cublasLt.h, cublas_api.h and library_types.h of CUDA 13.0, which keep them over
 * versions; tests/unit/test_cublas_abi.c compares them where those headers are installed. */
#ifndef GJ_TOOLS_CUBLAS_LT_H
#define GJ_TOOLS_CUBLAS_LT_H

#include <stddef.h>
#include <stdint.h>

enum { /* cublasOperation_t */ LT_OP_N = 0, LT_OP_T = 1 };
enum { /* cublasComputeType_t */ LT_COMPUTE_16F = 64, LT_COMPUTE_32F = 68 };
enum { /* cudaDataType */ LT_F32 = 0, LT_F16 = 2, LT_BF16 = 14, LT_E4M3 = 28, LT_E5M2 = 29 };
enum { /* cublasLtMatmulDescAttributes_t */ LT_DESC_TRANSA = 3, LT_DESC_TRANSB = 4, LT_DESC_FAST_ACCUM = 25 };
enum { /* cublasLtMatrixLayoutAttribute_t */ LT_LAYOUT_BATCH_COUNT = 5, LT_LAYOUT_BATCH_OFFSET = 6 };
enum { /* cublasLtMatmulPreferenceAttributes_t */ LT_PREFERENCE_WORKSPACE_BYTES = 1 };

struct lt_algo { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
};

struct lt_heuristic { /* cublasLtMatmulHeuristicResult_t */
    struct lt_algo algo;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

/* name, parameters; all return a cublasStatus_t, 0 for success. Handles are opaque pointers. */
#define LT_FUNCTIONS(X)                                                                                   \
    X(cublasLtCreate, (void **handle))                                                                    \
    X(cublasLtDestroy, (void *handle))                                                                    \
    X(cublasLtMatmulDescCreate, (void **descriptor, int compute, int scale_type))                         \
    X(cublasLtMatmulDescDestroy, (void *descriptor))                                                      \
    X(cublasLtMatmulDescSetAttribute, (void *descriptor, int attribute, const void *value, size_t bytes)) \
    X(cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
    X(cublasLtMatrixLayoutDestroy, (void *layout))                                                        \
    X(cublasLtMatrixLayoutSetAttribute, (void *layout, int attribute, const void *value, size_t bytes))   \
    X(cublasLtMatmulPreferenceCreate, (void **preference))                                                \
    X(cublasLtMatmulPreferenceDestroy, (void *preference))                                                \
    X(cublasLtMatmulPreferenceSetAttribute,                                                               \
      (void *preference, int attribute, const void *value, size_t bytes))                                 \
    X(cublasLtMatmulAlgoGetHeuristic,                                                                     \
      (void *handle, void *descriptor, void *a, void *b, void *c, void *d, void *preference, int asked,   \
       struct lt_heuristic *results, int *found))                                                         \
    X(cublasLtMatmul,                                                                                     \
      (void *handle, void *descriptor, const void *alpha, const void *a, void *layout_a, const void *b,   \
       void *layout_b, const void *beta, const void *c, void *layout_c, void *d, void *layout_d,          \
       const struct lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream))

#endif
