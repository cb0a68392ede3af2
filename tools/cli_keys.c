/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit keys: every key that the library accepts for a problem. */
#include <stdlib.h>

#include "cli.h"

/* A manifest, so that the document can be given to prewarm as it is; one key a line, for people and diffs. */
static enum gj_status print_manifest(struct cli *cli, const struct gj_key *keys, size_t count,
                                     gj_error **error)
{
    struct gj_strbuf *const out = &cli->out;
    gj_strbuf_puts(out, "{\n\t\"version\":\t1,\n\t\"keys\":\t[");
    for (size_t i = 0; i < count; i++) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&keys[i], text, sizeof(text));
        cJSON *const item = cJSON_CreateString(text);
        char *const quoted = cJSON_PrintUnformatted(item);
        cJSON_Delete(item);
        if (quoted == NULL)
            GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the JSON document");
        gj_strbuf_printf(out, "%s\n\t\t%s", i ? "," : "", quoted);
        cJSON_free(quoted);
    }
    gj_strbuf_puts(out, "\n\t]\n}\n");
    return GJ_OK;
}

static void print_lines(struct cli *cli, const struct gj_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&keys[i], text, sizeof(text));
        gj_strbuf_printf(&cli->out, "%s\n", text);
    }
}

enum gj_status cli_keys(struct cli *cli, gj_error **error)
{
    struct gj_key problem;
    GJ_TRY(cli_key_read(cli, &problem, error));
    const size_t count = gj_keys_enumerate(&problem, NULL, 0);
    if (count == 0) { /* the reasons are those of any config */
        GJ_TRY(gj_key_check(&problem, error));
        GJ_FAIL(error, GJ_ERR_UNSUPPORTED, GJ_STAGE_PLAN, "no config is accepted for this problem");
    }
    struct gj_key *const keys = calloc(count, sizeof(*keys));
    if (keys == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_PLAN, "no memory for %zu keys", count);
    gj_keys_enumerate(&problem, keys, count);
    enum gj_status status = GJ_OK;
    if (cli->json)
        status = print_manifest(cli, keys, count, error);
    else
        print_lines(cli, keys, count);
    free(keys);
    return status;
}
