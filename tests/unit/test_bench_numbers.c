/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a benchmark, and with cublasLt.h at hand the binary interface that it is read by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../tools/bench/bench.h"

#ifdef HAS_CUBLASLT
#include <cublasLt.h>

#include "../../tools/bench/cublas_lt.h"

_Static_assert((int)LT_OP_N == (int)CUBLAS_OP_N && (int)LT_OP_T == (int)CUBLAS_OP_T, "operations");
_Static_assert((int)LT_COMPUTE_16F == (int)CUBLAS_COMPUTE_16F, "f16 sums");
_Static_assert((int)LT_COMPUTE_32F == (int)CUBLAS_COMPUTE_32F, "f32 sums");
_Static_assert((int)LT_F32 == (int)CUDA_R_32F && (int)LT_F16 == (int)CUDA_R_16F, "types");
_Static_assert((int)LT_BF16 == (int)CUDA_R_16BF && (int)LT_E4M3 == (int)CUDA_R_8F_E4M3, "types");
_Static_assert((int)LT_E5M2 == (int)CUDA_R_8F_E5M2, "types");
_Static_assert((int)LT_DESC_TRANSA == (int)CUBLASLT_MATMUL_DESC_TRANSA, "descriptor");
_Static_assert((int)LT_DESC_TRANSB == (int)CUBLASLT_MATMUL_DESC_TRANSB, "descriptor");
_Static_assert((int)LT_DESC_FAST_ACCUM == (int)CUBLASLT_MATMUL_DESC_FAST_ACCUM, "descriptor");
_Static_assert((int)LT_LAYOUT_BATCH_COUNT == (int)CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, "layout");
_Static_assert((int)LT_LAYOUT_BATCH_OFFSET == (int)CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, "layout");
_Static_assert((int)LT_PREFERENCE_WORKSPACE_BYTES == (int)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
               "preference");
_Static_assert(sizeof(struct lt_algo) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
_Static_assert(sizeof(struct lt_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "heuristic");
_Static_assert(offsetof(struct lt_heuristic, workspace_bytes) ==
                   offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize),
               "heuristic");
_Static_assert(offsetof(struct lt_heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state),
               "heuristic");
#endif

static void check_near(double value, double expected)
{
    assert_true(value > expected - 1e-6 && value < expected + 1e-6);
}

static void test_quantiles(void **state)
{
    const float values[] = {4, 1, 3, 2, 5};
    (void)state;
    check_near(bench_quantile(values, 5, 0), 1);
    check_near(bench_quantile(values, 5, 0.25), 2);
    check_near(bench_quantile(values, 5, 0.5), 3);
    check_near(bench_quantile(values, 5, 1), 5);
    check_near(bench_quantile(values, 4, 0.5), 2.5);
    check_near(bench_quantile(values, 1, 0.5), 4);
    assert_true(values[0] > 3.9f && values[4] > 4.9f); /* as they were */
}

/* Rounds are paired: what slows a whole round down does not count. */
static void test_ratio(void **state)
{
    const float base[] = {10, 20, 40}, arm[] = {5, 10, 20}, uneven[] = {10, 10, 10};
    (void)state;
    check_near(bench_ratio(base, arm, 3, 0), 2);
    check_near(bench_ratio(base, arm, 3, 0.5), 2);
    check_near(bench_ratio(base, arm, 3, 1), 2);
    check_near(bench_ratio(base, uneven, 3, 0.5), 2);
    check_near(bench_ratio(base, uneven, 3, 1), 4);
}

static void test_geomean(void **state)
{
    const double values[] = {2, 0.5, 8, 0.125};
    (void)state;
    check_near(bench_geomean(values, 4), 1);
    check_near(bench_geomean(values, 3), 2);
    check_near(bench_geomean(values, 0), 0);
}

/* The best of each side, and whether a result may be told. */
static void test_summary(void **state)
{
    static struct bench_result result = {.num_arms = 4, .num_algos = 2, .chosen = 2, .rounds = 3};
    const float us[] = {12, 10, 8, 6};
    (void)state;
    for (int arm = 0; arm < 4; arm++)
        for (int round = 0; round < 3; round++)
            result.arms[arm].us[round] = us[arm];
    struct bench_summary summary = bench_summarise(&result);
    check_near(summary.base_us, 12);
    check_near(summary.reference_ratio, 1.2);
    check_near(summary.chosen_ratio, 1.5);
    check_near(summary.best_ratio, 2);
    assert_int_equal(summary.best, 3);
    assert_true(summary.right);
    result.arms[1].num_different = 1;
    assert_false(bench_summarise(&result).right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_geomean),
        cmocka_unit_test(test_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
