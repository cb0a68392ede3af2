/* SPDX-License-Identifier: Apache-2.0 */
/* --act-source and --act-name: the user's own function, and the fields of a key that follow from it. */
#include <stdio.h>
#include <string.h>

#include "base/file_text.h"
#include "cli.h"

#define SOURCE_BYTES_MAX (1 << 20) /* gj_own_identify has the real limit, with a message of its own */

static bool is_given(const struct cli *cli)
{
    return cli->options.count[CLI_ACT_SOURCE] > 0;
}

/* Reads the file once. */
static enum gj_status read_source(struct cli *cli, gj_error **error)
{
    if (cli->own.source != NULL)
        return GJ_OK;
    const char *const path = cli->options.text[CLI_ACT_SOURCE];
    const char *const slash = strrchr(path, '/');
    GJ_TRY(gj_file_text_read(path, SOURCE_BYTES_MAX, &cli->own_text, error));
    if (strlen(cli->own_text.text) != cli->own_text.length)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s has a zero byte", path);
    cli->own.name = cli->options.count[CLI_ACT_NAME] ? cli->options.text[CLI_ACT_NAME] : "f";
    cli->own.file = slash ? slash + 1 : path;
    cli->own.source = cli->own_text.text;
    return gj_own_identify(&cli->own, &cli->own_id, error);
}

/* Whether a key text has a field of this name. */
static bool has_field(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = text; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return true;
    }
    return false;
}

enum gj_status cli_key_parse(struct cli *cli, const char *text, struct gj_key *key, gj_error **error)
{
    if (!is_given(cli)) {
        if (cli->options.count[CLI_ACT_NAME])
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--act-name needs --act-source");
        return gj_key_parse(text, key, error);
    }
    GJ_TRY(read_source(cli, error));
    struct gj_strbuf whole = {0};
    gj_strbuf_puts(&whole, text);
    if (!has_field(text, "act"))
        gj_strbuf_printf(&whole, "%sact=own", whole.length ? "," : "");
    if (!has_field(text, "own"))
        gj_strbuf_printf(&whole, ",own=%08x%08x", cli->own_id.high, cli->own_id.low);
    enum gj_status status = GJ_OK;
    if (whole.failed)
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, 0, "", "no memory for a key");
    if (status == GJ_OK)
        status = gj_key_parse(whole.text, key, error);
    gj_strbuf_free(&whole);
    if (status == GJ_OK && memcmp(&key->own, &cli->own_id, sizeof key->own) != 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "own=%08x%08x of the key is not the function %s of %s, which is own=%08x%08x", key->own.high,
                key->own.low, cli->own.name, cli->own.file, cli->own_id.high, cli->own_id.low);
    return status;
}

enum gj_status cli_own_add(struct cli *cli, gj_context *context, gj_error **error)
{
    if (!is_given(cli))
        return GJ_OK;
    GJ_TRY(read_source(cli, error));
    return gj_own_add(context, &cli->own, NULL, error);
}
