/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt by dlopen, the reference of benchmarks.
 *
 * cuBLAS is column-major, so it computes D^T (N, M) = B A^T: what it calls A is our B, what it calls B our A,
 * and a matrix whose rows in memory are our rows is transposed to it. */
#include <dlfcn.h>
#include <stdlib.h>

#include "bench.h"
#include "cublas_lt.h"

#define WORKSPACE_BYTES ((size_t)64 << 20)

struct bench_cublas {
    gj_device *device;
    void *library, *handle, *workspace;
    size_t version;
#define MEMBER(name, parameters) int(*name##_fn) parameters;
    LT_FUNCTIONS(MEMBER)
#undef MEMBER
};

struct bench_lt {
    struct bench_cublas *cublas;
    void *operation, *a, *b, *c, *d;
    bool reads_c;
    struct lt_heuristic algos[BENCH_ALGOS];
    int num_algos;
};

/* A refusal is one of the problem, unless said otherwise. */
#define TRY_LT_AS(failure, call, ...)                                                                    \
    do {                                                                                                 \
        const int status_ = (call);                                                                      \
        if (status_ != 0)                                                                                \
            return gj_error_make(error, failure, GJ_STAGE_NONE, status_, "cublasStatus_t", __VA_ARGS__); \
    } while (0)
#define TRY_LT(call, ...) TRY_LT_AS(GJ_ERR_UNSUPPORTED, call, __VA_ARGS__)

/* -- The library --------------------------------------------------------------------------------------- */

static void *open_library(struct gj_strbuf *tried)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *const library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        gj_strbuf_printf(tried, "%s%s", i ? "; " : "", dlerror());
    }
    return NULL;
}

static enum gj_status find_functions(struct bench_cublas *cublas, gj_error **error)
{
    size_t (*get_version)(void) = NULL;
#define LOOK_UP(name, parameters)                                 \
    *(void **)&cublas->name##_fn = dlsym(cublas->library, #name); \
    if (cublas->name##_fn == NULL)                                \
        GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_NONE, "libcublasLt has no function " #name);
    LT_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    *(void **)&get_version = dlsym(cublas->library, "cublasLtGetVersion");
    cublas->version = get_version ? get_version() : 0;
    return GJ_OK;
}

static enum gj_status open_cublas(struct bench_cublas *cublas, gj_error **error)
{
    struct gj_strbuf tried = {0};
    cublas->library = open_library(&tried);
    enum gj_status status = GJ_OK;
    if (cublas->library == NULL)
        status = gj_error_make(error, GJ_ERR_NO_COMPILER, GJ_STAGE_NONE, 0, "",
                               "libcublasLt cannot be loaded: %s; LD_LIBRARY_PATH may name its directory",
                               tried.text ? tried.text : "no memory");
    gj_strbuf_free(&tried);
    GJ_TRY(status);
    GJ_TRY(find_functions(cublas, error));
    TRY_LT_AS(GJ_ERR_NO_COMPILER, cublas->cublasLtCreate_fn(&cublas->handle), "cuBLASLt cannot be opened");
    return gj_device_alloc(cublas->device, WORKSPACE_BYTES, &cublas->workspace, error);
}

enum gj_status bench_cublas_open(gj_device *device, struct bench_cublas **cublas, gj_error **error)
{
    struct bench_cublas *opened = calloc(1, sizeof(*opened));
    if (opened == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for cuBLASLt");
    opened->device = device;
    const enum gj_status status = open_cublas(opened, error);
    if (status != GJ_OK)
        bench_cublas_close(&opened);
    else
        *cublas = opened;
    return status;
}

void bench_cublas_close(struct bench_cublas **cublas)
{
    if (*cublas == NULL)
        return;
    gj_device_free((*cublas)->device, (*cublas)->workspace);
    if ((*cublas)->handle)
        (*cublas)->cublasLtDestroy_fn((*cublas)->handle);
    free(*cublas); /* the library stays: CUDA's libraries do not support being unloaded */
    *cublas = NULL;
}

size_t bench_cublas_version(const struct bench_cublas *cublas)
{
    return cublas->version;
}

/* -- One shape ----------------------------------------------------------------------------------------- */

static int type_of(enum gj_dtype dtype)
{
    switch (dtype) {
    case GJ_DTYPE_F16:
        return LT_F16;
    case GJ_DTYPE_BF16:
        return LT_BF16;
    case GJ_DTYPE_E4M3:
        return LT_E4M3;
    case GJ_DTYPE_E5M2:
        return LT_E5M2;
    case GJ_DTYPE_F32:
    case GJ_DTYPE_NONE:
        return LT_F32;
    }
    return LT_F32;
}

/* A matrix of `rows` rows of `columns` contiguous elements is a column-major one of `columns` rows. */
static enum gj_status make_layout(const struct bench_cublas *cublas, enum gj_dtype dtype, int64_t rows,
                                  int64_t columns, int64_t batch, void **layout, gj_error **error)
{
    const int count = (int)batch;
    const int64_t offset = rows * columns;
    TRY_LT(cublas->cublasLtMatrixLayoutCreate_fn(layout, type_of(dtype), (uint64_t)columns, (uint64_t)rows,
                                                 columns),
           "cuBLASLt refuses a layout");
    if (batch == 1)
        return GJ_OK;
    TRY_LT(cublas->cublasLtMatrixLayoutSetAttribute_fn(*layout, LT_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
           "cuBLASLt refuses a batch");
    TRY_LT(
        cublas->cublasLtMatrixLayoutSetAttribute_fn(*layout, LT_LAYOUT_BATCH_OFFSET, &offset, sizeof(offset)),
        "cuBLASLt refuses a batch");
    return GJ_OK;
}

static enum gj_status make_operation(struct bench_lt *lt, const struct gj_key *problem, gj_error **error)
{
    const struct bench_cublas *const cublas = lt->cublas;
    const int compute = problem->acc == GJ_DTYPE_F16 ? LT_COMPUTE_16F : LT_COMPUTE_32F;
    const int scale = problem->acc == GJ_DTYPE_F16 ? LT_F16 : LT_F32;
    const int transpose_b = problem->b.major == GJ_MAJOR_K ? LT_OP_T : LT_OP_N;
    const int transpose_a = problem->a.major == GJ_MAJOR_K ? LT_OP_N : LT_OP_T;
    const int8_t fast = problem->fp8acc == GJ_FP8ACC_FAST;
    TRY_LT(cublas->cublasLtMatmulDescCreate_fn(&lt->operation, compute, scale), "cuBLASLt refuses the sums");
    TRY_LT(cublas->cublasLtMatmulDescSetAttribute_fn(lt->operation, LT_DESC_TRANSA, &transpose_b,
                                                     sizeof(transpose_b)),
           "cuBLASLt refuses the major of B");
    TRY_LT(cublas->cublasLtMatmulDescSetAttribute_fn(lt->operation, LT_DESC_TRANSB, &transpose_a,
                                                     sizeof(transpose_a)),
           "cuBLASLt refuses the major of A");
    if (fast)
        TRY_LT(
            cublas->cublasLtMatmulDescSetAttribute_fn(lt->operation, LT_DESC_FAST_ACCUM, &fast, sizeof(fast)),
            "cuBLASLt refuses fast accumulation");
    return GJ_OK;
}

static enum gj_status find_algos(struct bench_lt *lt, const struct bench_shape *shape, gj_error **error)
{
    const struct bench_cublas *const cublas = lt->cublas;
    const size_t bytes = WORKSPACE_BYTES;
    void *preference = NULL;
    TRY_LT(cublas->cublasLtMatmulPreferenceCreate_fn(&preference), "cuBLASLt makes no preference");
    int status = cublas->cublasLtMatmulPreferenceSetAttribute_fn(preference, LT_PREFERENCE_WORKSPACE_BYTES,
                                                                 &bytes, sizeof(bytes));
    if (status == 0)
        status = cublas->cublasLtMatmulAlgoGetHeuristic_fn(cublas->handle, lt->operation, lt->b, lt->a, lt->c,
                                                           lt->d, preference, BENCH_ALGOS, lt->algos,
                                                           &lt->num_algos);
    cublas->cublasLtMatmulPreferenceDestroy_fn(preference);
    TRY_LT(status == 0 && lt->num_algos == 0 ? -1 : status,
           "cuBLASLt offers no algorithm for m = %lld, n = %lld, k = %lld, batch = %lld", (long long)shape->m,
           (long long)shape->n, (long long)shape->k, (long long)shape->batch);
    return GJ_OK;
}

static enum gj_status make_lt(struct bench_lt *lt, const struct gj_key *problem,
                              const struct bench_shape *shape, gj_error **error)
{
    const struct bench_cublas *const cublas = lt->cublas;
    const int64_t m = shape->m, n = shape->n, k = shape->k, batch = shape->batch;
    const bool a_k = problem->a.major == GJ_MAJOR_K, b_k = problem->b.major == GJ_MAJOR_K;
    lt->reads_c = problem->c.dtype != GJ_DTYPE_NONE;
    GJ_TRY(make_operation(lt, problem, error));
    GJ_TRY(make_layout(cublas, problem->a.dtype, a_k ? m : k, a_k ? k : m, batch, &lt->a, error));
    GJ_TRY(make_layout(cublas, problem->b.dtype, b_k ? n : k, b_k ? k : n, batch, &lt->b, error));
    GJ_TRY(
        make_layout(cublas, lt->reads_c ? problem->c.dtype : problem->d.dtype, m, n, batch, &lt->c, error));
    GJ_TRY(make_layout(cublas, problem->d.dtype, m, n, batch, &lt->d, error));
    return find_algos(lt, shape, error);
}

enum gj_status bench_lt_make(struct bench_cublas *cublas, const struct gj_key *problem,
                             const struct bench_shape *shape, struct bench_lt **lt, gj_error **error)
{
    struct bench_lt *made = calloc(1, sizeof(*made));
    if (made == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for cuBLASLt");
    made->cublas = cublas;
    const enum gj_status status = make_lt(made, problem, shape, error);
    if (status != GJ_OK)
        bench_lt_free(&made);
    else
        *lt = made;
    return status;
}

void bench_lt_free(struct bench_lt **lt)
{
    if (*lt == NULL)
        return;
    const struct bench_cublas *const cublas = (*lt)->cublas;
    void *const layouts[] = {(*lt)->a, (*lt)->b, (*lt)->c, (*lt)->d};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i])
            cublas->cublasLtMatrixLayoutDestroy_fn(layouts[i]);
    if ((*lt)->operation)
        cublas->cublasLtMatmulDescDestroy_fn((*lt)->operation);
    free(*lt);
    *lt = NULL;
}

int bench_lt_num_algos(const struct bench_lt *lt)
{
    return lt->num_algos;
}

enum gj_status bench_lt_run(struct bench_lt *lt, int algo, const struct gj_gemm_args *args, gj_error **error)
{
    const struct bench_cublas *const cublas = lt->cublas;
    const float alpha = 1, beta = lt->reads_c ? args->beta : 0;
    const void *const c = lt->reads_c ? args->c.data : args->d.data;
    TRY_LT_AS(GJ_ERR_DRIVER,
              cublas->cublasLtMatmul_fn(cublas->handle, lt->operation, &alpha, args->b.data, lt->b,
                                        args->a.data, lt->a, &beta, c, lt->c, args->d.data, lt->d,
                                        &lt->algos[algo].algo, cublas->workspace, WORKSPACE_BYTES,
                                        gj_device_stream(cublas->device)),
              "algorithm %d of cuBLASLt cannot be launched", algo);
    return GJ_OK;
}
