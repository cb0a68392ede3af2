/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured, as a table in Markdown and as JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static double tflops(const struct bench_shape *shape, double us)
{
    return 2e-6 * (double)shape->m * (double)shape->n * (double)shape->k * (double)shape->batch / us;
}

/* -- Table --------------------------------------------------------------------------------------------- */

static void add_row(const struct bench *bench, const struct bench_result *result,
                    const struct bench_summary *summary, struct gj_strbuf *out)
{
    char shape[96], chosen[GJ_KEY_TEXT_MAX], best[GJ_KEY_TEXT_MAX];
    bench_config_text(&result->arms[result->chosen].key, chosen);
    bench_config_text(&result->arms[summary->best].key, best);
    bench_shape_text(&result->shape, " x ", shape, sizeof(shape));
    gj_strbuf_printf(out, "| %s", shape);
    if (!summary->right) {
        gj_strbuf_puts(out,
                       bench->vs_cublas ? " | results differ | | | | | |\n" : " | results differ | | | |\n");
        return;
    }
    gj_strbuf_printf(out, " | %.2f (%.0f)", summary->base_us, tflops(&result->shape, summary->base_us));
    if (bench->vs_cublas)
        gj_strbuf_printf(out, " | %.3f | **%.3f** (%.3f to %.3f)", summary->reference_ratio,
                         summary->chosen_ratio, summary->chosen_low, summary->chosen_high);
    gj_strbuf_printf(out, " | %s | %.3f | %s |\n", chosen, summary->best_ratio, best);
}

static void add_means(const struct bench *bench, const struct bench_summary *summaries, size_t count,
                      struct gj_strbuf *out)
{
    double *const values = calloc(3 * count, sizeof(*values));
    size_t right = 0, worst = 0;
    for (size_t i = 0; values && i < count; i++) {
        if (!summaries[i].right)
            continue;
        values[right] = summaries[i].chosen_ratio;
        values[count + right] = summaries[i].best_ratio;
        values[2 * count + right] = summaries[i].reference_ratio;
        worst = values[right] < values[worst] ? right : worst;
        right++;
    }
    if (right > 0 && bench->vs_cublas)
        gj_strbuf_printf(
            out,
            "\nGeometric mean of %zu: chosen %.3f, worst %.3f; best of the configs measured %.3f; "
            "cuBLASLt's best %.3f.\n",
            right, bench_geomean(values, right), values[worst], bench_geomean(values + count, right),
            bench_geomean(values + 2 * count, right));
    free(values);
}

static void print_table(struct bench *bench, const struct bench_result *results,
                        const struct bench_summary *summaries, size_t count)
{
    struct gj_strbuf *const out = &bench->cli->out;
    char problem[GJ_KEY_TEXT_MAX], date[BENCH_DATE_MAX];
    bench_problem_text(&bench->problem, problem);
    bench_date(date);
    const int version = gj_driver_version(bench->driver);
    gj_strbuf_printf(out, "%s, %s (%d SMs), driver for CUDA %d.%d, gemmjit %s, %s", date, bench->gpu.name,
                     bench->gpu.num_sms, version / 1000, version % 1000 / 10, GJ_VERSION,
                     gj_dtype_name(bench->problem.a.dtype));
    if (bench->vs_cublas)
        gj_strbuf_printf(
            out,
            ", cuBLASLt %zu. Ratios are to cuBLASLt's first algorithm; above 1 is faster.\n\n"
            "| M x N x K | cuBLASLt, us (TFLOP/s) | its best of %d | chosen (quartiles) | config | "
            "best | config |\n|---|---|---|---|---|---|---|\n",
            bench_cublas_version(bench->cublas), BENCH_ALGOS);
    else
        gj_strbuf_puts(out, ". Ratios are to the chosen config; above 1 is faster.\n\n"
                            "| M x N x K | us (TFLOP/s) | chosen | best | config |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++)
        add_row(bench, &results[i], &summaries[i], out);
    add_means(bench, summaries, count, out);
}

/* -- JSON ---------------------------------------------------------------------------------------------- */

static cJSON *arm_object(const struct bench *bench, const struct bench_result *result, int i)
{
    struct cli *const cli = bench->cli;
    const struct bench_arm *const arm = &result->arms[i];
    cJSON *const object = cli_json_object(cli);
    char text[GJ_KEY_TEXT_MAX];
    if (i < result->num_algos) {
        cli_json_number(cli, object, "cublaslt", arm->algo);
    } else {
        gj_key_format(&arm->key, text, sizeof(text));
        cli_json_text(cli, object, "key", text);
        cli_json_bool(cli, object, "chosen", i == result->chosen);
    }
    cli_json_number(cli, object, "different", (double)arm->num_different);
    cli_json_number(cli, object, "us", bench_rounded(bench_quantile(arm->us, result->rounds, 0.5)));
    cli_json_number(cli, object, "us_low", bench_rounded(bench_quantile(arm->us, result->rounds, 0.25)));
    cli_json_number(cli, object, "us_high", bench_rounded(bench_quantile(arm->us, result->rounds, 0.75)));
    if (arm->num_different == 0 && result->arms[0].num_different == 0)
        cli_json_number(cli, object, "ratio",
                        bench_rounded(bench_ratio(result->arms[0].us, arm->us, result->rounds, 0.5)));
    return object;
}

static cJSON *shape_object(const struct bench *bench, const struct bench_result *result)
{
    struct cli *const cli = bench->cli;
    cJSON *const object = cli_json_object(cli);
    cli_json_number(cli, object, "m", (double)result->shape.m);
    cli_json_number(cli, object, "n", (double)result->shape.n);
    cli_json_number(cli, object, "k", (double)result->shape.k);
    cli_json_number(cli, object, "batch", (double)result->shape.batch);
    cli_json_number(cli, object, "rounds", result->rounds);
    cli_json_number(cli, object, "launches", result->launches * result->repeats);
    cJSON *const arms = cli_json_array(cli, object, "arms");
    for (int i = 0; i < result->num_arms; i++)
        cli_json_append(cli, arms, arm_object(bench, result, i));
    return object;
}

static enum gj_status print_document(struct bench *bench, const struct bench_result *results, size_t count,
                                     gj_error **error)
{
    struct cli *const cli = bench->cli;
    cJSON *const document = cli_json_object(cli);
    char problem[GJ_KEY_TEXT_MAX], date[BENCH_DATE_MAX];
    bench_problem_text(&bench->problem, problem);
    bench_date(date);
    cli_json_text(cli, document, "date", date);
    cli_json_text(cli, document, "gpu", bench->gpu.name);
    cli_json_number(cli, document, "sms", bench->gpu.num_sms);
    cli_json_number(cli, document, "driver", gj_driver_version(bench->driver));
    cli_json_text(cli, document, "gemmjit", GJ_VERSION);
    cli_json_number(cli, document, "cublaslt",
                    bench->cublas ? (double)bench_cublas_version(bench->cublas) : 0);
    cli_json_text(cli, document, "problem", problem);
    cli_json_number(cli, document, "train_ms", (double)bench->train_ms);
    cli_json_number(cli, document, "flags", (double)bench->flags);
    cJSON *const shapes = cli_json_array(cli, document, "shapes");
    for (size_t i = 0; i < count; i++)
        cli_json_append(cli, shapes, shape_object(bench, &results[i]));
    return cli_json_finish(cli, document, error);
}

/* -- Both ---------------------------------------------------------------------------------------------- */

enum gj_status bench_report(struct bench *bench, const struct bench_result *results,
                            const struct bench_summary *summaries, size_t count, gj_error **error)
{
    for (size_t i = 0; i < count; i++)
        bench_tell_wrong(bench, &results[i]);
    if (bench->cli->json)
        return print_document(bench, results, count, error);
    print_table(bench, results, summaries, count);
    return GJ_OK;
}
