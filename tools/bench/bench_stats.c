/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles, paired ratios, geometric means, and the summary of a shape. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static int compare_floats(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

double bench_quantile(const float *values, int count, double q)
{
    float sorted[BENCH_ROUNDS_MAX];
    assert(count >= 1 && count <= BENCH_ROUNDS_MAX);
    memcpy(sorted, values, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_floats);
    const double at = q * (count - 1);
    const int below = (int)at;
    const int above = below + 1 < count ? below + 1 : below;
    return (double)sorted[below] + (at - below) * ((double)sorted[above] - (double)sorted[below]);
}

double bench_ratio(const float *base, const float *arm, int count, double q)
{
    float ratios[BENCH_ROUNDS_MAX];
    assert(count <= BENCH_ROUNDS_MAX);
    for (int i = 0; i < count; i++)
        ratios[i] = base[i] / arm[i];
    return bench_quantile(ratios, count, q);
}

double bench_geomean(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += log(values[i]);
    return count > 0 ? exp(sum / (double)count) : 0;
}

struct bench_summary bench_summarise(const struct bench_result *result)
{
    struct bench_summary summary = {.shape = result->shape, .best = result->chosen, .right = true};
    const struct bench_arm *const arms = result->arms;
    for (int i = 0; i < result->num_arms; i++) {
        const double ratio = bench_ratio(arms[0].us, arms[i].us, result->rounds, 0.5);
        double *const best = i < result->num_algos ? &summary.reference_ratio : &summary.best_ratio;
        summary.right = summary.right && arms[i].num_different == 0;
        if (ratio > *best) {
            *best = ratio;
            summary.best = i < result->num_algos ? summary.best : i;
        }
    }
    const float *const chosen = arms[result->chosen].us;
    summary.base_us = bench_quantile(arms[0].us, result->rounds, 0.5);
    summary.chosen_us = bench_quantile(chosen, result->rounds, 0.5);
    summary.chosen_ratio = bench_ratio(arms[0].us, chosen, result->rounds, 0.5);
    summary.chosen_low = bench_ratio(arms[0].us, chosen, result->rounds, 0.25);
    summary.chosen_high = bench_ratio(arms[0].us, chosen, result->rounds, 0.75);
    return summary;
}
