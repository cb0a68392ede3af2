/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit tune: for each shape a race of the model's choice and the configs that rank behind it; those that
 * win become entries of a tuning table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tune.h"

#define CANDIDATES 24

#define FAIL_USAGE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

/* -- What is asked ------------------------------------------------------------------------------------- */

/* Takes the file of -o away from cli_output_write: what goes to stdout is the report. */
static enum gj_status take_path(struct cli *cli, const char **path, gj_error **error)
{
    *path = cli->options.text[CLI_OUTPUT];
    cli->options.text[CLI_OUTPUT] = NULL;
    if (*path == NULL)
        FAIL_USAGE(error, "-o is needed: the table that is written");
    return GJ_OK;
}

/* The first of the first `count` shapes that would be the same entry as this one; count: there is none. */
static size_t find_same_place(const struct bench *bench, size_t count, const struct bench_shape *shape)
{
    for (size_t i = 0; i < count; i++) {
        const struct bench_shape *const other = &bench->shapes[i];
        if (other->n == shape->n && other->k == shape->k && other->batch == shape->batch &&
            gj_tuning_m_class(other->m) == gj_tuning_m_class(shape->m))
            return i;
    }
    return count;
}

/* Equal shapes are measured once; different ones must not be of one class. */
static enum gj_status merge_shapes(struct bench *bench, gj_error **error)
{
    size_t kept = 0;
    for (size_t i = 0; i < bench->num_shapes; i++) {
        const struct bench_shape shape = bench->shapes[i];
        const size_t same = find_same_place(bench, kept, &shape);
        if (same == kept)
            bench->shapes[kept++] = shape;
        else if (bench->shapes[same].m != shape.m)
            FAIL_USAGE(error, "m = %lld and %lld with n = %lld, k = %lld are of one class, that of m = %lld",
                       (long long)bench->shapes[same].m, (long long)shape.m, (long long)shape.n,
                       (long long)shape.k, (long long)gj_tuning_m_class(shape.m));
    }
    bench->num_shapes = kept;
    return GJ_OK;
}

static enum gj_status read_options(struct tune *tune, gj_error **error)
{
    struct bench *const bench = &tune->bench;
    tune->writes_all = bench->cli->options.count[CLI_ALL] > 0;
    bench->tuned = &tune->table;
    bench->drop = tune_drop;
    GJ_TRY(bench_options_read(bench, CANDIDATES, error));
    GJ_TRY(merge_shapes(bench, error));
    return tune_table_read(tune->path, &tune->table, error);
}

/* -- Work ---------------------------------------------------------------------------------------------- */

static struct tune_row make_row(const struct bench_result *result)
{
    const struct bench_arm *const base = &result->arms[0], *const best = &result->arms[tune_winner(result)];
    return (struct tune_row){
        .shape = result->shape,
        .chosen = base->key,
        .best = best->key,
        .chosen_us = bench_quantile(base->us, result->rounds, 0.5),
        .best_us = bench_quantile(best->us, result->rounds, 0.5),
        .ratio = bench_ratio(base->us, best->us, result->rounds, 0.5),
        .ratio_low = bench_ratio(base->us, best->us, result->rounds, 0.25),
        .ratio_high = bench_ratio(base->us, best->us, result->rounds, 0.75),
        .num_arms = result->num_arms,
        .rounds = result->rounds,
        .num_different = base->num_different,
    };
}

/* The place has what was measured now: the winner, or nothing where the model's choice is as good. */
static enum gj_status update_table(struct tune *tune, struct tune_row *row, gj_error **error)
{
    struct gj_tuning_entry entry = {
        .place = bench_place(&tune->bench, &row->shape),
        .key = row->best,
        .us = bench_rounded(row->best_us),
        .default_us = bench_rounded(row->chosen_us),
    };
    bench_date(entry.measured);
    if (row->num_different != 0)
        return GJ_OK;
    row->is_written = tune->writes_all || memcmp(&row->best, &row->chosen, sizeof(row->best)) != 0;
    if (row->is_written)
        GJ_TRY(tune_table_put(&tune->table, &entry, error));
    else
        tune_table_remove(&tune->table, &entry.place);
    return tune_table_write(tune->bench.cli, tune->path, &tune->table, error);
}

static void tell_progress(struct cli *cli, const struct tune_row *row)
{
    char label[96], config[GJ_KEY_TEXT_MAX], outcome[GJ_KEY_TEXT_MAX + 96];
    bench_shape_text(&row->shape, "x", label, sizeof(label));
    bench_config_text(&row->best, config);
    if (row->num_different != 0)
        snprintf(outcome, sizeof(outcome), "results differ");
    else if (row->ratio >= TUNE_GAIN)
        snprintf(outcome, sizeof(outcome), "%.2f us instead of %.2f: %s", row->best_us, row->chosen_us,
                 config);
    else
        snprintf(outcome, sizeof(outcome), "%.2f us, the model's choice stays", row->chosen_us);
    cli_progress_step(cli, label, outcome);
}

static enum gj_status tune_shape(struct tune *tune, size_t i, struct bench_result *result, gj_error **error)
{
    struct tune_row *const row = &tune->rows[i];
    GJ_TRY(bench_run(&tune->bench, &tune->bench.shapes[i], result, error));
    bench_tell_wrong(&tune->bench, result);
    *row = make_row(result);
    GJ_TRY(update_table(tune, row, error));
    tell_progress(tune->bench.cli, row);
    return GJ_OK;
}

static enum gj_status tune_all(struct tune *tune, gj_error **error)
{
    struct bench *const bench = &tune->bench;
    struct bench_result *const result = calloc(1, sizeof(*result));
    enum gj_status status = GJ_OK;
    tune->rows = calloc(bench->num_shapes, sizeof(*tune->rows));
    if (result == NULL || tune->rows == NULL)
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "", "no memory for %zu shapes",
                               bench->num_shapes);
    cli_progress_begin(bench->cli, bench->num_shapes);
    for (size_t i = 0; status == GJ_OK && i < bench->num_shapes; i++)
        status = tune_shape(tune, i, result, error);
    cli_progress_end(bench->cli);
    free(result);
    return status == GJ_OK ? tune_report(tune, error) : status;
}

static enum gj_status measure(struct cli *cli, const char *path, gj_error **error)
{
    struct tune tune = {.bench = {.cli = cli}, .path = path};
    enum gj_status status = read_options(&tune, error);
    if (status == GJ_OK)
        status = bench_open(&tune.bench, error);
    if (status == GJ_OK)
        status = tune_all(&tune, error);
    free(tune.rows);
    free(tune.bench.shapes);
    gj_tuning_table_free(&tune.table);
    if (status != GJ_ERR_DRIVER)
        bench_close(&tune.bench);
    return status;
}

enum gj_status cli_tune(struct cli *cli, gj_error **error)
{
    const char *const action = cli->options.action;
    const char *path;
    if (action && strcmp(action, "merge") != 0)
        FAIL_USAGE(error, "unknown action \"%s\": tune has merge only",
                   gj_utf8_quote(action, strlen(action)).text);
    GJ_TRY(take_path(cli, &path, error));
    return action ? tune_merge(cli, path, error) : measure(cli, path, error);
}
