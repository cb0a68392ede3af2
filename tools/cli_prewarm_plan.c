/* SPDX-License-Identifier: Apache-2.0 */
/* prewarm --dry-run: what would be compiled, and why. */
#include "prewarm.h"

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

void prewarm_add_source(const struct prewarm *prewarm, cJSON *document)
{
    struct cli *const cli = prewarm->cli;
    cJSON *const shard = cli_json_object(cli);
    cli_json_number(cli, shard, "number", (double)prewarm->shard.number);
    cli_json_number(cli, shard, "count", (double)prewarm->shard.count);
    cli_json_add(cli, document, "shard", shard);
    cli_json_number(cli, document, "num_all", (double)prewarm->num_all);
}

enum gj_status prewarm_print_plan(const struct prewarm *prewarm, gj_error **error)
{
    struct cli *const cli = prewarm->cli;
    if (cli->json)
        return print_document(prewarm, error);
    for (size_t i = 0; i < prewarm->num_items; i++)
        gj_strbuf_printf(&cli->out, "%s\n", prewarm->items[i].text);
    return GJ_OK;
}
