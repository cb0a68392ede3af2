/* SPDX-License-Identifier: Apache-2.0 */
/* prewarm --dry-run: what would be compiled, and where it comes from. */
#include <stdio.h>

#include "prewarm.h"

static cJSON *problem_object(struct cli *cli, const struct model_problem *problem)
{
    cJSON *const object = cli_json_object(cli);
    const struct gj_key *const key = &problem->problem;
    char text[64];
    snprintf(text, sizeof(text), "a=%s.k,b=%s.k,d=%s.n", gj_dtype_name(key->a.dtype),
             gj_dtype_name(key->b.dtype), gj_dtype_name(key->d.dtype));
    cli_json_text(cli, object, "weight", problem->weight);
    cli_json_text(cli, object, "place", problem->place);
    cli_json_text(cli, object, "problem", text);
    cli_json_number(cli, object, "n", (double)problem->n);
    cli_json_number(cli, object, "k", (double)problem->k);
    cli_json_text(cli, object, "n_formula", problem->n_formula);
    cli_json_text(cli, object, "k_formula", problem->k_formula);
    cli_json_number(cli, object, "num_keys", (double)problem->num_keys);
    return object;
}

static cJSON *model_object(struct cli *cli, const struct model *model)
{
    cJSON *const object = cli_json_object(cli);
    cli_json_text(cli, object, "file", model->path);
    cli_json_text(cli, object, "architecture", model->architecture->name);
    cli_json_number(cli, object, "tp", (double)model->tp);
    cli_json_text(cli, object, "dtype", gj_dtype_name(model->dtype));
    cli_json_bool(cli, object, "fp8", model->fp8);
    cli_json_number(cli, object, "m_max", (double)model->m_max);
    cli_json_number(cli, object, "sms", (double)model->num_sms);
    cJSON *const problems = cli_json_array(cli, object, "problems");
    for (size_t i = 0; i < model->num_problems; i++)
        cli_json_append(cli, problems, problem_object(cli, &model->problems[i]));
    return object;
}

void prewarm_add_source(const struct prewarm *prewarm, cJSON *document)
{
    struct cli *const cli = prewarm->cli;
    if (prewarm->model.path)
        cli_json_add(cli, document, "model", model_object(cli, &prewarm->model));
    cJSON *const shard = cli_json_object(cli);
    cli_json_number(cli, shard, "number", (double)prewarm->shard.number);
    cli_json_number(cli, shard, "count", (double)prewarm->shard.count);
    cli_json_add(cli, document, "shard", shard);
    cli_json_number(cli, document, "num_all", (double)prewarm->num_all);
}

static enum gj_status print_document(const struct prewarm *prewarm, gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    cJSON *const document = cli_json_object(cli);
    prewarm_add_source(prewarm, document);
    cJSON *const keys = cli_json_array(cli, document, "keys");
    for (size_t i = 0; i < prewarm->num_items; i++)
        cli_json_append_text(cli, keys, prewarm->items[i].text);
    return cli_json_finish(cli, document, error);
}

static void print_problems(struct gj_strbuf *out, const struct model *model)
{
    gj_strbuf_printf(out, "%s, --tp %lld, M from 1 to %lld, %lld SMs\n", model->architecture->name,
                     (long long)model->tp, (long long)model->m_max, (long long)model->num_sms);
    gj_strbuf_puts(out, "       N        K  A, B  D     keys  weight\n");
    for (size_t i = 0; i < model->num_problems; i++) {
        const struct model_problem *const problem = &model->problems[i];
        gj_strbuf_printf(out, "%8lld %8lld  %-4s  %-4s  %4zu  %s, %s: N = %s, K = %s\n",
                         (long long)problem->n, (long long)problem->k,
                         gj_dtype_name(problem->problem.a.dtype), gj_dtype_name(problem->problem.d.dtype),
                         problem->num_keys, problem->weight, problem->place, problem->n_formula,
                         problem->k_formula);
    }
    gj_strbuf_puts(out, "\n");
}

enum gj_status prewarm_print_plan(const struct prewarm *prewarm, gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    if (cli->json)
        return print_document(prewarm, error);
    if (prewarm->model.path)
        print_problems(&cli->out, &prewarm->model);
    for (size_t i = 0; i < prewarm->num_items; i++)
        gj_strbuf_printf(&cli->out, "%s\n", prewarm->items[i].text);
    return GJ_OK;
}
