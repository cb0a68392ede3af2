/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt by dlopen. */
#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define FUNCTIONS(X)                        \
    X(cublasLtCreate)                       \
    X(cublasLtGetVersion)                   \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)       \
    X(cublasLtMatmul)

static struct {
#define MEMBER(name) __typeof__(name) *name##_fn;
    FUNCTIONS(MEMBER)
} lt;

static void must_lt(cublasStatus_t status, const char *what)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuBLASLt: %s: status %d\n", what, (int)status);
        exit(1);
    }
}

void cublas_open(struct cublas *cublas, void *workspace, size_t workspace_bytes)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "libcublasLt cannot be loaded: %s\n", dlerror());
        exit(1);
    }
#define LOOK_UP(name)                                     \
    *(void **)&lt.name##_fn = dlsym(library, #name);      \
    if (lt.name##_fn == NULL) {                           \
        fprintf(stderr, "libcublasLt lacks %s\n", #name); \
        exit(1);                                          \
    }
    FUNCTIONS(LOOK_UP)
    must_lt(lt.cublasLtCreate_fn(&cublas->handle), "create");
    cublas->version = lt.cublasLtGetVersion_fn();
    cublas->workspace = workspace;
    cublas->workspace_bytes = workspace_bytes;
}

/* cuBLAS is column-major: D^T = B A^T there, with B transposed. */
void cublas_gemm_make(const struct cublas *cublas, cudaDataType_t type, cublasLtEpilogue_t epilogue, int m,
                      int n, int k, struct cublas_gemm *gemm)
{
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    must_lt(lt.cublasLtMatmulDescCreate_fn(&gemm->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "descriptor");
    must_lt(lt.cublasLtMatmulDescSetAttribute_fn(gemm->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                                 sizeof transposed),
            "transpose A");
    must_lt(lt.cublasLtMatmulDescSetAttribute_fn(gemm->operation, CUBLASLT_MATMUL_DESC_TRANSB, &plain,
                                                 sizeof plain),
            "transpose B");
    must_lt(lt.cublasLtMatmulDescSetAttribute_fn(gemm->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                 sizeof epilogue),
            "epilogue");
    must_lt(lt.cublasLtMatrixLayoutCreate_fn(&gemm->b, type, (uint64_t)k, (uint64_t)n, k), "layout of B");
    must_lt(lt.cublasLtMatrixLayoutCreate_fn(&gemm->a, type, (uint64_t)k, (uint64_t)m, k), "layout of A");
    must_lt(lt.cublasLtMatrixLayoutCreate_fn(&gemm->d, type, (uint64_t)n, (uint64_t)m, n), "layout of D");
    cublasLtMatmulPreference_t preference;
    must_lt(lt.cublasLtMatmulPreferenceCreate_fn(&preference), "preference");
    must_lt(lt.cublasLtMatmulPreferenceSetAttribute_fn(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                       &cublas->workspace_bytes,
                                                       sizeof cublas->workspace_bytes),
            "workspace");
    must_lt(lt.cublasLtMatmulAlgoGetHeuristic_fn(cublas->handle, gemm->operation, gemm->b, gemm->a, gemm->d,
                                                 gemm->d, preference, CUBLAS_ALGOS, gemm->algos,
                                                 &gemm->num_algos),
            "heuristic");
    lt.cublasLtMatmulPreferenceDestroy_fn(preference);
    if (gemm->num_algos == 0) {
        fprintf(stderr, "cuBLASLt offers no algorithm for %dx%dx%d\n", m, n, k);
        exit(1);
    }
}

void cublas_gemm_free(struct cublas_gemm *gemm)
{
    lt.cublasLtMatmulDescDestroy_fn(gemm->operation);
    lt.cublasLtMatrixLayoutDestroy_fn(gemm->a);
    lt.cublasLtMatrixLayoutDestroy_fn(gemm->b);
    lt.cublasLtMatrixLayoutDestroy_fn(gemm->d);
}

void cublas_gemm_run(const struct cublas *cublas, const struct cublas_gemm *gemm, int algo, const void *a,
                     const void *b, void *d, void *stream)
{
    const float one = 1, zero = 0;
    must_lt(lt.cublasLtMatmul_fn(cublas->handle, gemm->operation, &one, b, gemm->b, a, gemm->a, &zero, d,
                                 gemm->d, d, gemm->d, &gemm->algos[algo].algo, cublas->workspace,
                                 cublas->workspace_bytes, (cudaStream_t)stream),
            "matmul");
}
