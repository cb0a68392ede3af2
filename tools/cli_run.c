/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit run: one GEMM on the GPU, timed, and with --check compared exactly. */
#include "cuda/args.h"
#include "gemm_run.h"

/* A launch that takes longer hangs. */
#define TIMEOUT_MS 10000
/* Launches are repeated until they take about this long together. */
#define TIMED_MS 50
#define REPEATS_MAX 100

struct timing {
    int repeats;
    double ms; /* of one launch */
};

static enum gj_status read_extents(struct gemm_run *run, gj_error **error)
{
    const struct cli *const cli = run->cli;
    static const enum cli_option needed[] = {CLI_M, CLI_N, CLI_K};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (cli->options.count[needed[i]] == 0)
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s is needed", cli_option_rows[needed[i]].name);
    run->batch = 1;
    GJ_TRY(cli_option_int(cli, CLI_M, 1, GJ_EXTENT_MAX, &run->m, error));
    GJ_TRY(cli_option_int(cli, CLI_N, 1, GJ_EXTENT_MAX, &run->n, error));
    GJ_TRY(cli_option_int(cli, CLI_K, 0, GJ_EXTENT_MAX, &run->k, error));
    return cli_option_int(cli, CLI_BATCH, 1, GJ_EXTENT_MAX, &run->batch, error);
}

/* The problem of the flags, or the key of --key. */
static enum gj_status read_problem(struct gemm_run *run, gj_error **error)
{
    GJ_TRY(cli_key_read(run->cli, &run->key, error));
    if (run->key.c.dtype != GJ_DTYPE_NONE)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "run has no operand C: only c=none");
    if (run->key.alpha != GJ_SCALAR_ONE)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "run has no scalars: only alpha=one");
    if (run->key.op != GJ_OP_GEMM)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "run has no PostAct: only op=gemm");
    if (run->key.bias != GJ_BIAS_NONE || run->key.scale != GJ_SCALE_NONE || run->key.quant != GJ_QUANT_NONE)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "run has no vectors: only bias=none, scale=none and quant=none");
    if (run->cli->options.num_keys > 0)
        return gj_key_check(&run->key, error);
    struct gj_key chosen; /* tells early whether any config is accepted */
    return gj_key_choose(&run->key, run->m, run->n, run->k, run->batch, 0, &chosen, error);
}

static struct gj_gemm_args make_args(const struct gemm_run *run)
{
    return (struct gj_gemm_args){
        .m = run->m,
        .n = run->n,
        .k = run->k,
        .batch = run->batch,
        .a = gemm_run_tensor(&run->a),
        .b = gemm_run_tensor(&run->b),
        .d = gemm_run_tensor(&run->d),
    };
}

/* The launch whose result is checked: through gj_gemm when that chooses the config. */
static enum gj_status launch_first(struct gemm_run *run, gj_context *context, const struct gj_key *problem,
                                   gj_kernel *kernel, gj_error **error)
{
    const struct gj_gemm_args args = make_args(run);
    void *const stream = gj_device_stream(run->device);
    if (problem)
        GJ_TRY(gj_gemm(context, problem, &args, stream, error));
    else
        GJ_TRY(gj_launch(kernel, &args, stream, error));
    return gj_device_sync(run->device, TIMEOUT_MS, error);
}

static enum gj_status time_launches(struct gemm_run *run, gj_kernel *kernel, int repeats, double *ms,
                                    gj_error **error)
{
    const struct gj_gemm_args args = make_args(run);
    void *const stream = gj_device_stream(run->device);
    float span_ms = 0;
    GJ_TRY(gj_device_timer_start(run->device, error));
    for (int i = 0; i < repeats; i++)
        GJ_TRY(gj_launch(kernel, &args, stream, error));
    GJ_TRY(gj_device_timer_stop(run->device, &span_ms, error));
    *ms = (double)span_ms / repeats;
    return GJ_OK;
}

static enum gj_status measure(struct gemm_run *run, gj_kernel *kernel, struct timing *timing,
                              gj_error **error)
{
    GJ_TRY(time_launches(run, kernel, 1, &timing->ms, error));
    const double wanted = timing->ms > 0 ? TIMED_MS / timing->ms : REPEATS_MAX;
    timing->repeats = wanted < 1 ? 1 : wanted > REPEATS_MAX ? REPEATS_MAX : (int)wanted;
    return time_launches(run, kernel, timing->repeats, &timing->ms, error);
}

/* -- Result -------------------------------------------------------------------------------------------- */

static void add_check(struct cli *cli, cJSON *document, const struct gemm_check *check)
{
    cJSON *const object = cli_json_object(cli);
    cli_json_bool(cli, object, "ok", gemm_check_passed(check));
    cli_json_number(cli, object, "rows", (double)check->rows);
    cli_json_number(cli, object, "elements", (double)check->elements);
    cli_json_number(cli, object, "mismatches", (double)check->mismatches);
    cli_json_number(cli, object, "max_difference", check->max_difference);
    cli_json_number(cli, object, "unwritten", (double)check->unwritten);
    cli_json_number(cli, object, "outside_bytes", (double)check->outside_bytes);
    cli_json_add(cli, document, "check", object);
}

static enum gj_status print_document(const struct gemm_run *run, const struct gj_gpu_info *gpu,
                                     const struct timing *timing, double tflops,
                                     const struct gemm_check *check, gj_error **error)
{
    struct cli *const cli = run->cli;
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(&run->key, text, sizeof(text));
    cJSON *const document = cli_json_object(cli);
    cli_json_text(cli, document, "key", text);
    cli_json_text(cli, document, "gpu", gpu->name);
    cli_json_number(cli, document, "m", (double)run->m);
    cli_json_number(cli, document, "n", (double)run->n);
    cli_json_number(cli, document, "k", (double)run->k);
    cli_json_number(cli, document, "batch", (double)run->batch);
    cli_json_number(cli, document, "launches", timing->repeats);
    cli_json_number(cli, document, "ms", timing->ms);
    cli_json_number(cli, document, "tflops", tflops);
    if (check)
        add_check(cli, document, check);
    return cli_json_finish(cli, document, error);
}

static void print_lines(const struct gemm_run *run, const struct gj_gpu_info *gpu,
                        const struct timing *timing, double tflops, const struct gemm_check *check)
{
    struct gj_strbuf *const out = &run->cli->out;
    char label[GJ_KEY_TEXT_MAX];
    cli_key_short(&run->key, label);
    gj_strbuf_printf(out, "key    %s\nGPU    %s\n", label, gpu->name);
    gj_strbuf_printf(out, "time   %.4f ms, mean of %d launch%s\nrate   %.1f TFLOP/s\n", timing->ms,
                     timing->repeats, timing->repeats == 1 ? "" : "es", tflops);
    if (check)
        gj_strbuf_printf(out,
                         "check  %s: %lld of %lld elements compared, %lld differ, max difference %g, "
                         "%lld not written, %lld bytes written outside of D\n",
                         gemm_check_passed(check) ? "exact" : "WRONG", (long long)check->elements,
                         (long long)(run->m * run->batch * run->n), (long long)check->mismatches,
                         check->max_difference, (long long)check->unwritten, (long long)check->outside_bytes);
}

/* -- The verb ------------------------------------------------------------------------------------------ */

static enum gj_status run_on_device(struct gemm_run *run, gj_context *context, gj_error **error)
{
    struct cli *const cli = run->cli;
    const struct gj_key problem = run->key;
    const bool choose = cli->options.num_keys == 0;
    struct gj_gpu_info gpu;
    gj_kernel *kernel = NULL;
    GJ_TRY(gj_gpu_info_get(run->driver, 0, &gpu, error));
    if (choose)
        GJ_TRY(gj_context_choose(context, &problem, run->m, run->n, run->k, run->batch, gpu.name, gpu.num_sms,
                                 &run->key, error));
    GJ_TRY(gj_kernel_get(context, &run->key, 0, &kernel, error));
    GJ_TRY(gj_kernel_prepare(kernel, 0, error));
    GJ_TRY(gemm_run_fill(run, error));
    GJ_TRY(launch_first(run, context, choose ? &problem : NULL, kernel, error));
    struct gemm_check check;
    const bool wants_check = cli->options.count[CLI_CHECK] > 0;
    if (wants_check)
        GJ_TRY(gemm_run_verify(run, &check, error));
    struct timing timing;
    GJ_TRY(measure(run, kernel, &timing, error));
    const double flops = 2.0 * (double)run->m * (double)run->n * (double)run->k * (double)run->batch;
    const double tflops = timing.ms > 0 ? flops / timing.ms / 1e9 : 0;
    if (wants_check && !gemm_check_passed(&check)) {
        cli->exit_status = CLI_EXIT_FAILED;
        cli_say(cli,
                "gemmjit: D is wrong: %lld of %lld compared elements differ, %lld were not written, "
                "%lld bytes outside of D were written",
                (long long)check.mismatches, (long long)check.elements, (long long)check.unwritten,
                (long long)check.outside_bytes);
    }
    if (cli->json)
        return print_document(run, &gpu, &timing, tflops, wants_check ? &check : NULL, error);
    print_lines(run, &gpu, &timing, tflops, wants_check ? &check : NULL);
    return GJ_OK;
}

enum gj_status cli_run(struct cli *cli, gj_error **error)
{
    struct gemm_run run = {.cli = cli};
    GJ_TRY(read_extents(&run, error));
    GJ_TRY(read_problem(&run, error));
    if (cli->options.count[CLI_CHECK])
        GJ_TRY(gemm_run_check_reference(&run, error));
    gj_context *context = NULL;
    enum gj_status status = gj_driver_open(&run.driver, error);
    if (status == GJ_OK)
        status = gj_device_open(run.driver, 0, &run.device, error);
    if (status == GJ_OK)
        status = cli_context_open(cli, &context, error);
    if (status == GJ_OK)
        status = run_on_device(&run, context, error);
    if (status == GJ_ERR_DRIVER)
        return status; /* a kernel may still be running: freeing would wait for it, the end of the process not
                        */
    gemm_run_empty(&run);
    gj_context_close(&context);
    gj_device_close(&run.device);
    gj_driver_close(&run.driver);
    return status;
}
