/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit tune merge: tables into one, without a GPU. Of equal places the first one's entry stays, as the
 * library would choose with the same list. */
#include "tune.h"

#define FAIL_USAGE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

static enum gj_status check_usage(const struct cli *cli, gj_error **error)
{
    const uint64_t taken = CLI_COMMON | CLI_BIT(CLI_OUTPUT) | CLI_BIT(CLI_JSON);
    for (int i = 0; i < CLI_NUM_OPTIONS; i++)
        if (cli->options.count[i] > 0 && !(taken & CLI_BIT(i)))
            FAIL_USAGE(error, "%s does not go with tune merge", cli_option_rows[i].name);
    if (cli->options.fields.length > 0)
        FAIL_USAGE(error, "flags of a problem do not go with tune merge");
    if (cli->options.num_files == 0)
        FAIL_USAGE(error, "tune merge needs the names of tables");
    return GJ_OK;
}

static enum gj_status merge_file(struct gj_tuning_table *table, const char *path, size_t *num_left_out,
                                 gj_error **error)
{
    struct gj_tuning_table more = {0};
    size_t left_out = 0;
    GJ_TRY(gj_tuning_read(path, &more, error));
    const enum gj_status status = tune_table_merge(table, &more, &left_out, error);
    gj_tuning_table_free(&more);
    *num_left_out += left_out;
    return status;
}

static enum gj_status print(struct cli *cli, const char *path, size_t num_entries, size_t num_left_out,
                            gj_error **error)
{
    if (!cli->json) {
        gj_strbuf_printf(&cli->out,
                         "%s: %zu entries of %zu tables; left out, as an earlier table has them: %zu\n", path,
                         num_entries, cli->options.num_files, num_left_out);
        return GJ_OK;
    }
    cJSON *const document = cli_json_object(cli);
    cli_json_text(cli, document, "table", path);
    cli_json_number(cli, document, "entries", (double)num_entries);
    cli_json_number(cli, document, "tables", (double)cli->options.num_files);
    cli_json_number(cli, document, "left_out", (double)num_left_out);
    return cli_json_finish(cli, document, error);
}

enum gj_status tune_merge(struct cli *cli, const char *path, gj_error **error)
{
    struct gj_tuning_table table = {0};
    size_t num_left_out = 0;
    enum gj_status status = check_usage(cli, error);
    for (size_t i = 0; status == GJ_OK && i < cli->options.num_files; i++)
        status = merge_file(&table, cli->options.files[i], &num_left_out, error);
    if (status == GJ_OK)
        status = tune_table_write(cli, path, &table, error);
    if (status == GJ_OK)
        status = print(cli, path, table.count, num_left_out, error);
    gj_tuning_table_free(&table);
    return status;
}
