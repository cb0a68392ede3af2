/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit bench: keys against each other and against cuBLASLt, interleaved in one run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cuda/args.h"

#define FAIL_USAGE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

/* -- What is asked ------------------------------------------------------------------------------------- */

static enum gj_status read_shapes(struct bench *bench, gj_error **error)
{
    struct cli *const cli = bench->cli;
    static const enum cli_option extents[] = {CLI_M, CLI_N, CLI_K};
    const bool is_listed = cli->options.count[CLI_SHAPES] > 0;
    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        const bool is_given = cli->options.count[extents[i]] > 0;
        if (is_given && is_listed)
            FAIL_USAGE(error, "%s contradicts --shapes", cli_option_rows[extents[i]].name);
        if (!is_given && !is_listed)
            FAIL_USAGE(error, "%s is needed, or --shapes", cli_option_rows[extents[i]].name);
    }
    if (is_listed && cli->options.count[CLI_BATCH] > 0)
        FAIL_USAGE(error, "--batch contradicts --shapes");
    if (is_listed)
        return bench_shapes_read(cli->options.text[CLI_SHAPES], &bench->shapes, &bench->num_shapes, error);
    bench->shapes = calloc(1, sizeof(*bench->shapes));
    if (bench->shapes == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a shape");
    bench->num_shapes = 1;
    struct bench_shape *const shape = bench->shapes;
    shape->batch = 1;
    GJ_TRY(cli_option_int(cli, CLI_M, 1, GJ_EXTENT_MAX, &shape->m, error));
    GJ_TRY(cli_option_int(cli, CLI_N, 1, GJ_EXTENT_MAX, &shape->n, error));
    GJ_TRY(cli_option_int(cli, CLI_K, 1, GJ_EXTENT_MAX, &shape->k, error));
    return cli_option_int(cli, CLI_BATCH, 1, GJ_EXTENT_MAX, &shape->batch, error);
}

/* The problem is that of the flags; configs come from the model and from --key. */
static enum gj_status read_problem(struct bench *bench, gj_error **error)
{
    const char *const fields = bench->cli->options.fields.text;
    GJ_TRY(gj_key_parse(fields ? fields : "", &bench->problem, error));
    const struct gj_key *const problem = &bench->problem;
    if (problem->op != GJ_OP_GEMM)
        FAIL_USAGE(error, "bench measures op=gemm only");
    if (problem->alpha != GJ_SCALAR_ONE || problem->beta == GJ_SCALAR_DEVICE)
        FAIL_USAGE(error, "bench has no scalars in device memory: only alpha=one, and beta=one or host");
    if (problem->bias != GJ_BIAS_NONE || problem->scale != GJ_SCALE_NONE || problem->quant != GJ_QUANT_NONE)
        FAIL_USAGE(error, "bench has no vectors: only bias=none, scale=none and quant=none");
    if (problem->d.dtype == GJ_DTYPE_NONE)
        FAIL_USAGE(error, "bench compares D: d=none has none");
    if (bench->vs_cublas && (problem->d.major != GJ_MAJOR_N || problem->c.major == GJ_MAJOR_M))
        FAIL_USAGE(error, "--vs cublas needs an n-major D, and an n-major C if there is one");
    return GJ_OK;
}

/* A config of --key: its text behind that of the problem's flags. */
static enum gj_status read_config(const struct bench *bench, const char *config, struct gj_key *key,
                                  gj_error **error)
{
    struct gj_strbuf text = {0};
    const char *const fields = bench->cli->options.fields.text;
    gj_strbuf_printf(&text, "%s%s%s", fields ? fields : "", fields && *config ? "," : "", config);
    enum gj_status status = GJ_OK;
    if (text.failed)
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "", "no memory for a key");
    if (status == GJ_OK)
        status = gj_key_parse(text.text, key, error);
    if (status == GJ_OK)
        status = gj_key_check(key, error);
    gj_strbuf_free(&text);
    return status;
}

/* Whether two keys compute the same. */
static bool is_same_problem(const struct gj_key *x, const struct gj_key *y)
{
    struct gj_key config = *x;
    config.tile_m = y->tile_m;
    config.tile_n = y->tile_n;
    config.cluster_m = y->cluster_m;
    config.cluster_n = y->cluster_n;
    config.sched = y->sched;
    config.tiles = y->tiles;
    config.swap_ab = y->swap_ab;
    config.split_k = y->split_k;
    config.ctas_per_sm = y->ctas_per_sm;
    return memcmp(&config, y, sizeof(config)) == 0;
}

static enum gj_status read_configs(struct bench *bench, gj_error **error)
{
    const struct cli_options *const options = &bench->cli->options;
    if (options->num_keys > BENCH_GIVEN_MAX)
        FAIL_USAGE(error, "--key is given %zu times: at most %d configs are measured", options->num_keys,
                   BENCH_GIVEN_MAX);
    for (size_t i = 0; i < options->num_keys; i++) {
        struct gj_key *const key = &bench->given[bench->num_given++];
        GJ_TRY(read_config(bench, options->keys[i], key, error));
        if (!is_same_problem(key, &bench->problem))
            FAIL_USAGE(error,
                       "--key %s: is of another problem than the flags; a config has the fields tile, "
                       "cluster, sched, tiles, swap_ab, split_k and ctas_per_sm",
                       options->keys[i]);
    }
    return GJ_OK;
}

static enum gj_status read_options(struct bench *bench, gj_error **error)
{
    struct cli *const cli = bench->cli;
    const char *const vs = cli->options.text[CLI_VS];
    bench->vs_cublas = vs != NULL;
    if (vs && strcmp(vs, "cublas") != 0)
        FAIL_USAGE(error, "--vs %s: allowed is cublas", vs);
    bench->num_candidates = 1;
    bench->seconds = 2;
    bench->train_ms = 3;
    GJ_TRY(cli_option_int(cli, CLI_CANDIDATES, 1, BENCH_CANDIDATES_MAX, &bench->num_candidates, error));
    GJ_TRY(cli_option_int(cli, CLI_SECONDS, 1, 600, &bench->seconds, error));
    GJ_TRY(cli_option_int(cli, CLI_TRAIN, 1, 10000, &bench->train_ms, error));
    if (cli->options.count[CLI_B_CONSTANT] && !cli->options.count[CLI_OVERLAP])
        FAIL_USAGE(error, "--b-constant needs --overlap");
    bench->flags = (cli->options.count[CLI_OVERLAP] ? GJ_LAUNCH_OVERLAP : 0) |
                   (cli->options.count[CLI_B_CONSTANT] ? GJ_LAUNCH_B_CONSTANT : 0);
    GJ_TRY(read_problem(bench, error));
    GJ_TRY(read_configs(bench, error));
    return read_shapes(bench, error);
}

/* -- Work ---------------------------------------------------------------------------------------------- */

static enum gj_status open_all(struct bench *bench, gj_error **error)
{
    GJ_TRY(gj_driver_open(&bench->driver, error));
    GJ_TRY(gj_gpu_require(bench->driver, 0, &bench->gpu, error));
    GJ_TRY(gj_device_open(bench->driver, 0, &bench->device, error));
    GJ_TRY(cli_context_open(bench->cli, &bench->context, error));
    GJ_TRY(bench_kernels_load(bench, error));
    return bench->vs_cublas ? bench_cublas_open(bench->device, &bench->cublas, error) : GJ_OK;
}

static void close_all(struct bench *bench)
{
    bench_cublas_close(&bench->cublas);
    if (bench->device)
        gj_device_unload(bench->device, bench->library);
    gj_context_close(&bench->context);
    gj_device_close(&bench->device);
    gj_driver_close(&bench->driver);
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
        snprintf(label, sizeof(label), "%lldx%lldx%lld", (long long)shape->m, (long long)shape->n,
                 (long long)shape->k);
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
        status = open_all(&bench, error);
    if (status == GJ_OK)
        status = run_all(&bench, error);
    free(bench.shapes);
    if (status != GJ_ERR_DRIVER) /* else a kernel may still be running, and closing would wait for it */
        close_all(&bench);
    return status;
}
