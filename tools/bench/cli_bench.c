/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit bench: keys against each other and against cuBLASLt, interleaved in one run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static enum gj_status read_options(struct bench *bench, gj_error **error)
{
    const char *const vs = bench->cli->options.text[CLI_VS];
    bench->vs_cublas = vs != NULL;
    if (vs && strcmp(vs, "cublas") != 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--vs %s: allowed is cublas", vs);
    const struct cli_options *const options = &bench->cli->options;
    if (options->count[CLI_B_CONSTANT] && !options->count[CLI_OVERLAP])
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--b-constant needs --overlap");
    bench->flags = (options->count[CLI_OVERLAP] ? GJ_LAUNCH_OVERLAP : 0) |
                   (options->count[CLI_B_CONSTANT] ? GJ_LAUNCH_B_CONSTANT : 0);
    return bench_options_read(bench, 1, error);
}

static enum gj_status write_plot(const struct bench *bench, const struct bench_summary *summaries,
                                 gj_error **error)
{
    struct gj_strbuf svg = {0};
    bench_plot(bench, summaries, bench->num_shapes, &svg);
    const enum gj_status status = cli_output_file(bench->cli->options.text[CLI_PLOT], &svg, error);
    gj_strbuf_free(&svg);
    return status;
}

static enum gj_status run_shapes(struct bench *bench, struct bench_result *results,
                                 struct bench_summary *summaries, gj_error **error)
{
    struct cli *const cli = bench->cli;
    enum gj_status status = GJ_OK;
    cli_progress_begin(cli, bench->num_shapes);
    for (size_t i = 0; status == GJ_OK && i < bench->num_shapes; i++) {
        const struct bench_shape *const shape = &bench->shapes[i];
        char label[96], outcome[96];
        status = bench_run(bench, shape, &results[i], error);
        if (status != GJ_OK)
            break;
        summaries[i] = bench_summarise(&results[i]);
        bench_shape_text(shape, "x", label, sizeof(label));
        snprintf(outcome, sizeof(outcome), "%.2f us, ratio %.3f", summaries[i].chosen_us,
                 summaries[i].chosen_ratio);
        cli_progress_step(cli, label, summaries[i].right ? outcome : "results differ");
    }
    cli_progress_end(cli);
    GJ_TRY(status);
    GJ_TRY(bench_report(bench, results, summaries, bench->num_shapes, error));
    return cli->options.text[CLI_PLOT] ? write_plot(bench, summaries, error) : GJ_OK;
}

static enum gj_status run_all(struct bench *bench, gj_error **error)
{
    struct bench_result *const results = calloc(bench->num_shapes, sizeof(*results));
    struct bench_summary *const summaries = calloc(bench->num_shapes, sizeof(*summaries));
    enum gj_status status = GJ_OK;
    if (results == NULL || summaries == NULL)
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "", "no memory for %zu shapes",
                               bench->num_shapes);
    if (status == GJ_OK)
        status = run_shapes(bench, results, summaries, error);
    free(results);
    free(summaries);
    return status;
}

enum gj_status cli_bench(struct cli *cli, gj_error **error)
{
    struct bench bench = {.cli = cli};
    enum gj_status status = read_options(&bench, error);
    if (status == GJ_OK)
        status = bench_open(&bench, error);
    if (status == GJ_OK)
        status = run_all(&bench, error);
    free(bench.shapes);
    if (status != GJ_ERR_DRIVER) /* else a kernel may still be running, and closing would wait for it */
        bench_close(&bench);
    return status;
}
