/* SPDX-License-Identifier: Apache-2.0 */
/* How shapes, configs and dates are told, and what must not stay unsaid. */
#include <stdio.h>
#include <time.h>

#include "bench.h"
#include "key/config.h"

void bench_shape_text(const struct bench_shape *shape, const char *times, char *text, size_t capacity)
{
    char batch[32] = "";
    if (shape->batch > 1)
        snprintf(batch, sizeof(batch), "%s%lld", times, (long long)shape->batch);
    snprintf(text, capacity, "%lld%s%lld%s%lld%s", (long long)shape->m, times, (long long)shape->n, times,
             (long long)shape->k, batch);
}

void bench_config_text(const struct gj_key *key, char text[GJ_KEY_TEXT_MAX])
{
    struct gj_key shown = gj_key_default();
    gj_key_take_config(&shown, key);
    cli_key_short(&shown, text);
}

void bench_problem_text(const struct gj_key *problem, char text[GJ_KEY_TEXT_MAX])
{
    gj_key_format_part(problem, GJ_KEY_PROBLEM, text, GJ_KEY_TEXT_MAX);
}

void bench_date(char text[BENCH_DATE_MAX])
{
    const time_t now = time(NULL);
    struct tm utc;
    strftime(text, BENCH_DATE_MAX, "%Y-%m-%d", gmtime_r(&now, &utc));
}

double bench_rounded(double value)
{
    return (double)(int64_t)(value * 10000 + 0.5) / 10000;
}

void bench_tell_wrong(const struct bench *bench, const struct bench_result *result)
{
    for (int i = 0; i < result->num_arms; i++) {
        const struct bench_arm *const arm = &result->arms[i];
        char text[GJ_KEY_TEXT_MAX];
        if (arm->num_different == 0)
            continue;
        bench->cli->exit_status = CLI_EXIT_FAILED;
        snprintf(text, sizeof(text), "algorithm %d of cuBLASLt", arm->algo);
        if (arm->kernel)
            gj_key_format(&arm->key, text, sizeof(text));
        cli_say(bench->cli, "gemmjit: m = %lld, n = %lld, k = %lld: %lld elements of D differ: %s",
                (long long)result->shape.m, (long long)result->shape.n, (long long)result->shape.k,
                (long long)arm->num_different, text);
    }
}
