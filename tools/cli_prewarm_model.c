/* SPDX-License-Identifier: Apache-2.0 */
/* prewarm --model: the options that go with it, and the model's keys as items. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "prewarm.h"

#define TP_MAX 1024
#define SMS_MAX 1024
#define ROWS_MAX (1 << 20)

static enum gj_status check_options(const struct cli *cli, gj_error **error)
{
    static const enum cli_option options[] = {CLI_TP, CLI_DTYPE, CLI_FP8, CLI_M_MAX, CLI_SMS};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (cli->options.count[options[i]] > 0 && cli->options.count[CLI_MODEL] == 0)
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s goes with --model only",
                    cli_option_rows[options[i]].name);
    return GJ_OK;
}

static enum gj_status read_dtype(const struct cli *cli, enum gj_dtype *dtype, gj_error **error)
{
    const char *const text = cli->options.text[CLI_DTYPE];
    if (text == NULL)
        return GJ_OK;
    if (strcmp(text, "bf16") == 0)
        *dtype = GJ_DTYPE_BF16;
    else if (strcmp(text, "f16") == 0)
        *dtype = GJ_DTYPE_F16;
    else
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--dtype %s: allowed is bf16, f16",
                gj_utf8_quote(text, strlen(text)).text);
    return GJ_OK;
}

enum gj_status prewarm_model_options(struct prewarm *prewarm, gj_error **error)
{
    const struct cli *const cli = prewarm->cli;
    struct model *const model = &prewarm->model;
    *model = (struct model){.tp = 1, .m_max = 16384, .num_sms = 132, .path = cli->options.text[CLI_MODEL]};
    model->fp8 = cli->options.count[CLI_FP8] > 0;
    GJ_TRY(check_options(cli, error));
    GJ_TRY(read_dtype(cli, &model->dtype, error));
    GJ_TRY(cli_option_int(cli, CLI_TP, 1, TP_MAX, &model->tp, error));
    GJ_TRY(cli_option_int(cli, CLI_M_MAX, 1, ROWS_MAX, &model->m_max, error));
    return cli_option_int(cli, CLI_SMS, 1, SMS_MAX, &model->num_sms, error);
}

static void fill_item(struct prewarm_item *item, const struct gj_key *key)
{
    item->key = *key;
    gj_key_format(key, item->text, sizeof(item->text));
    cli_key_short(key, item->label);
}

static enum gj_status make_items(struct prewarm *prewarm, gj_error **error)
{
    const struct model *const model = &prewarm->model;
    size_t count = 0;
    for (size_t i = 0; i < model->num_problems; i++)
        count += model->problems[i].is_owner ? model->problems[i].num_keys : 0;
    prewarm->items = calloc(count, sizeof(*prewarm->items));
    if (prewarm->items == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %zu keys", count);
    for (size_t i = 0; i < model->num_problems; i++)
        for (size_t j = 0; model->problems[i].is_owner && j < model->problems[i].num_keys; j++)
            fill_item(&prewarm->items[prewarm->num_items++], &model->problems[i].keys[j]);
    return GJ_OK;
}

/* TMA takes rows that are multiples of 16 bytes; a server whose rows are not has to pad them. */
static void warn_of_rows(struct cli *cli, const struct model_problem *problem)
{
    const struct {
        const char *operands;
        int64_t extent;
        enum gj_dtype dtype;
    } rows[] = {{"A and B", problem->k, problem->problem.a.dtype},
                {"D", problem->n, problem->problem.d.dtype}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].extent * (int64_t)gj_dtype_bytes(rows[i].dtype) % 16 != 0)
            cli_say(
                cli,
                "gemmjit: warning: %s: a row of %s, %lld elements of %s, is no multiple of 16 bytes: it runs "
                "with padded rows only",
                problem->weight, rows[i].operands, (long long)rows[i].extent, gj_dtype_name(rows[i].dtype));
}

/* Opening the context will warn of what is wrong with a table; --dry-run opens none. */
static enum gj_status open_tuning(struct prewarm *prewarm, gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    const struct gj_log log = {cli->options.count[CLI_DRY_RUN] > 0 ? cli_log : NULL, cli};
    if (!gj_tuning_open(&prewarm->model.tuning, NULL, &log))
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the tuning tables");
    return GJ_OK;
}

enum gj_status prewarm_model_read(struct prewarm *prewarm, gj_error **error)
{
    struct model *const model = &prewarm->model;
    GJ_TRY(model_read(model, error));
    GJ_TRY(model_split(model, error));
    GJ_TRY(model_list(model, error));
    for (size_t i = 0; i < model->num_problems && !prewarm->cli->options.count[CLI_QUIET]; i++)
        warn_of_rows(prewarm->cli, &model->problems[i]);
    GJ_TRY(open_tuning(prewarm, error));
    GJ_TRY(prewarm_choose_workers(prewarm, model->num_problems, error));
    GJ_TRY(model_choose(model, prewarm->num_workers, error));
    return make_items(prewarm, error);
}
