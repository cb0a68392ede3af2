/* SPDX-License-Identifier: Apache-2.0 */
/* What bench and tune are asked for, and what they open for it. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cuda/args.h"
#include "key/config.h"
#include "key/key_tables.h"

#define FAIL_USAGE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

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
    const char *const verb = bench->cli->verb->name;
    if (problem->op != GJ_OP_GEMM)
        FAIL_USAGE(error, "%s measures op=gemm only", verb);
    if (problem->alpha != GJ_SCALAR_ONE || problem->beta == GJ_SCALAR_DEVICE)
        FAIL_USAGE(error, "%s has no scalars in device memory: only alpha=one, and beta=one or host", verb);
    if (problem->bias != GJ_BIAS_NONE || problem->scale != GJ_SCALE_NONE || problem->quant != GJ_QUANT_NONE)
        FAIL_USAGE(error, "%s has no vectors: only bias=none, scale=none and quant=none", verb);
    if (problem->d.dtype == GJ_DTYPE_NONE)
        FAIL_USAGE(error, "%s compares D: d=none has none", verb);
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

static enum gj_status fail_problem(const char *config, gj_error **error)
{
    struct gj_strbuf names = {0};
    for (int i = 0; i < gj_num_fields; i++)
        if (gj_fields[i].is_config)
            gj_strbuf_printf(&names, "%s%s", names.length ? ", " : "", gj_fields[i].name);
    const enum gj_status status =
        gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, 0, "",
                      "--key %s: is of another problem than the flags; a config has the fields %s", config,
                      names.text ? names.text : "of a config");
    gj_strbuf_free(&names);
    return status;
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
        const struct gj_key problem = gj_key_problem(key);
        if (memcmp(&problem, &bench->problem, sizeof(problem)) != 0)
            return fail_problem(options->keys[i], error);
    }
    return GJ_OK;
}

enum gj_status bench_options_read(struct bench *bench, int64_t num_candidates, gj_error **error)
{
    struct cli *const cli = bench->cli;
    bench->num_candidates = num_candidates;
    bench->seconds = 2;
    bench->train_ms = 3;
    GJ_TRY(cli_option_int(cli, CLI_CANDIDATES, 1, BENCH_CANDIDATES_MAX, &bench->num_candidates, error));
    GJ_TRY(cli_option_int(cli, CLI_SECONDS, 1, 600, &bench->seconds, error));
    GJ_TRY(cli_option_int(cli, CLI_TRAIN, 1, 10000, &bench->train_ms, error));
    GJ_TRY(read_problem(bench, error));
    GJ_TRY(read_configs(bench, error));
    return read_shapes(bench, error);
}

enum gj_status bench_open(struct bench *bench, gj_error **error)
{
    GJ_TRY(gj_driver_open(&bench->driver, error));
    GJ_TRY(gj_gpu_require(bench->driver, 0, &bench->gpu, error));
    GJ_TRY(gj_device_open(bench->driver, 0, &bench->device, error));
    GJ_TRY(cli_context_open(bench->cli, &bench->context, error));
    GJ_TRY(bench_kernels_load(bench, error));
    return bench->vs_cublas ? bench_cublas_open(bench->device, &bench->cublas, error) : GJ_OK;
}

void bench_close(struct bench *bench)
{
    bench_cublas_close(&bench->cublas);
    if (bench->device)
        gj_device_unload(bench->device, bench->library);
    gj_context_close(&bench->context);
    gj_device_close(&bench->device);
    gj_driver_close(&bench->driver);
}
