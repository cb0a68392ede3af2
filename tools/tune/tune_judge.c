/* SPDX-License-Identifier: Apache-2.0 */
/* Which arms of a race can still win, and which has won. */
#include "tune.h"

static double ratio_of(const struct bench_result *result, int arm, double quantile)
{
    return bench_ratio(result->arms[0].us, result->arms[arm].us, result->rounds, quantile);
}

static bool has_won(const struct bench_result *result, int arm)
{
    return ratio_of(result, arm, 0.5) >= TUNE_GAIN && ratio_of(result, arm, 0.25) > 1;
}

/* What the upper quartile of an arm must reach for it to stay. */
static double threshold(const struct bench_result *result, const int *order, int count)
{
    double best = 0, low = TUNE_GAIN;
    for (int i = 0; i < count; i++) {
        const double median = order[i] == 0 ? 0 : ratio_of(result, order[i], 0.5);
        if (median <= best)
            continue;
        best = median;
        low = ratio_of(result, order[i], 0.25);
    }
    return low > TUNE_GAIN ? low : TUNE_GAIN;
}

/* Keeps arm 0 and those that pass. */
static int keep_right(const struct bench_result *result, int *order, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (order[i] == 0 || result->arms[order[i]].num_different == 0)
            order[kept++] = order[i];
    return kept;
}

static int keep_fast(const struct bench_result *result, int *order, int count)
{
    const double least = threshold(result, order, count);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (order[i] == 0 || ratio_of(result, order[i], 0.75) >= least)
            order[kept++] = order[i];
    return kept;
}

int tune_drop(const struct bench_result *result, int *order, int count)
{
    count = keep_right(result, order, count);
    if (result->rounds == 0)
        return count;
    count = keep_fast(result, order, count);
    if (count == 1)
        return 0;
    const int other = order[0] == 0 ? order[1] : order[0];
    const bool is_decided = count == 2 && result->rounds >= BENCH_ROUNDS_MIN && has_won(result, other);
    return is_decided ? 0 : count;
}

int tune_winner(const struct bench_result *result)
{
    int winner = 0;
    double best = 0;
    for (int i = 1; i < result->num_arms; i++) {
        const struct bench_arm *const arm = &result->arms[i];
        if (arm->num_different != 0 || arm->rounds != result->rounds || !has_won(result, i))
            continue;
        const double ratio = ratio_of(result, i, 0.5);
        winner = ratio > best ? i : winner;
        best = ratio > best ? ratio : best;
    }
    return winner;
}
