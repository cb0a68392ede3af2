/* SPDX-License-Identifier: Apache-2.0 */
/* What tune found, as a table in Markdown and as JSON. */
#include <string.h>

#include "tune.h"

/* -- Table --------------------------------------------------------------------------------------------- */

static void add_row(const struct tune_row *row, struct gj_strbuf *out)
{
    char shape[96], chosen[GJ_KEY_TEXT_MAX], best[GJ_KEY_TEXT_MAX];
    bench_shape_text(&row->shape, " x ", shape, sizeof(shape));
    bench_config_text(&row->chosen, chosen);
    bench_config_text(&row->best, best);
    gj_strbuf_printf(out, "| %s | %lld | %s | ", shape, (long long)gj_tuning_m_class(row->shape.m), chosen);
    if (row->num_different != 0)
        gj_strbuf_puts(out, "results differ | | | | |\n");
    else if (memcmp(&row->best, &row->chosen, sizeof(row->best)) != 0)
        gj_strbuf_printf(out, "%.2f | %s | %.2f | %.3f (%.3f to %.3f) | %s |\n", row->chosen_us, best,
                         row->best_us, row->ratio, row->ratio_low, row->ratio_high,
                         row->is_written ? "yes" : "no");
    else
        gj_strbuf_printf(out, "%.2f | stays | | | %s |\n", row->chosen_us, row->is_written ? "yes" : "no");
}

static void print_table(struct tune *tune)
{
    const struct bench *const bench = &tune->bench;
    struct gj_strbuf *const out = &bench->cli->out;
    char problem[GJ_KEY_TEXT_MAX], date[BENCH_DATE_MAX];
    bench_problem_text(&bench->problem, problem);
    bench_date(date);
    gj_strbuf_printf(
        out,
        "%s, %s (%d SMs), gemmjit %s, %s. Ratios are to the model's choice; above 1 is "
        "faster.\n\n| M x N x K | class | model's choice | us | fastest | us | ratio (quartiles) | "
        "entry |\n|---|---|---|---|---|---|---|---|\n",
        date, bench->gpu.name, bench->gpu.num_sms, GJ_VERSION, problem);
    for (size_t i = 0; i < bench->num_shapes; i++)
        add_row(&tune->rows[i], out);
    gj_strbuf_printf(out, "\n%s has %zu entries.\n", tune->path, tune->table.count);
}

/* -- JSON ---------------------------------------------------------------------------------------------- */

static cJSON *row_object(struct cli *cli, const struct tune_row *row)
{
    cJSON *const object = cli_json_object(cli);
    char text[GJ_KEY_TEXT_MAX];
    cli_json_number(cli, object, "m", (double)row->shape.m);
    cli_json_number(cli, object, "n", (double)row->shape.n);
    cli_json_number(cli, object, "k", (double)row->shape.k);
    cli_json_number(cli, object, "batch", (double)row->shape.batch);
    cli_json_number(cli, object, "m_class", (double)gj_tuning_m_class(row->shape.m));
    cli_json_number(cli, object, "configs", row->num_arms);
    cli_json_number(cli, object, "rounds", row->rounds);
    gj_key_format(&row->chosen, text, sizeof(text));
    cli_json_text(cli, object, "chosen", text);
    cli_json_bool(cli, object, "written", row->is_written);
    cli_json_number(cli, object, "different", (double)row->num_different);
    if (row->num_different != 0)
        return object;
    cli_json_number(cli, object, "chosen_us", bench_rounded(row->chosen_us));
    gj_key_format(&row->best, text, sizeof(text));
    cli_json_text(cli, object, "best", text);
    cli_json_number(cli, object, "best_us", bench_rounded(row->best_us));
    cli_json_number(cli, object, "ratio", bench_rounded(row->ratio));
    cli_json_number(cli, object, "ratio_low", bench_rounded(row->ratio_low));
    cli_json_number(cli, object, "ratio_high", bench_rounded(row->ratio_high));
    return object;
}

static enum gj_status print_document(struct tune *tune, gj_error **error)
{
    const struct bench *const bench = &tune->bench;
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
    cli_json_text(cli, document, "problem", problem);
    cli_json_text(cli, document, "table", tune->path);
    cli_json_number(cli, document, "entries", (double)tune->table.count);
    cJSON *const shapes = cli_json_array(cli, document, "shapes");
    for (size_t i = 0; i < bench->num_shapes; i++)
        cli_json_append(cli, shapes, row_object(cli, &tune->rows[i]));
    return cli_json_finish(cli, document, error);
}

enum gj_status tune_report(struct tune *tune, gj_error **error)
{
    if (tune->bench.cli->json)
        return print_document(tune, error);
    print_table(tune);
    return GJ_OK;
}
