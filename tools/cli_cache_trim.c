/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit cache trim: removes what was used least recently. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/size_text.h"
#include "base/utf8.h"
#include "cache_verb.h"

static enum gj_status read_size(const struct cli *cli, uint64_t *bytes, gj_error **error)
{
    const char *const text = cli->options.text[CLI_MAX_SIZE];
    if (text == NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "cache trim needs --max-size SIZE");
    if (!gj_size_text_read(text, bytes))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "--max-size %s: allowed is " GJ_SIZE_TEXT_RULE,
                gj_utf8_quote(text, strlen(text)).text);
    return GJ_OK;
}

struct removals {
    struct cli *cli;
    cJSON *list; /* NULL: lines */
};

static void add_removal(void *user, const char *name, uint64_t bytes, int64_t used)
{
    const struct removals *const removals = user;
    const time_t seconds = (time_t)used;
    struct tm utc;
    char date[32] = "?";
    if (gmtime_r(&seconds, &utc))
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!removals->list) {
        gj_strbuf_printf(&removals->cli->out, "%s %8" PRIu64 "  last used %s\n", name, bytes, date);
        return;
    }
    cJSON *const object = cli_json_object(removals->cli);
    cli_json_text(removals->cli, object, "file", name);
    cli_json_number(removals->cli, object, "file_bytes", (double)bytes);
    cli_json_text(removals->cli, object, "last_used", date);
    cli_json_append(removals->cli, removals->list, object);
}

enum gj_status cache_trim(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct removals removals = {.cli = cli};
    struct gj_cache_trim trim = {
        .dry_run = cli->options.count[CLI_DRY_RUN] > 0, .visit = add_removal, .user = &removals};
    struct gj_cache_trimmed trimmed;
    GJ_TRY(read_size(cli, &trim.max_bytes, error));
    cJSON *const document = cli->json ? cli_json_object(cli) : NULL;
    removals.list = document ? cli_json_array(cli, document, "removed") : NULL;
    if (!gj_cache_trim(cache, &trim, &trimmed)) {
        const int code = errno;
        cJSON_Delete(document);
        return cache_fail(cache, "trimmed", code, error);
    }
    const uint64_t left = trimmed.entries - trimmed.removed,
                   left_bytes = trimmed.bytes - trimmed.removed_bytes;
    if (!document) {
        gj_strbuf_printf(
            &cli->out,
            "%s  %" PRIu64 " entries, %" PRIu64 " bytes\nleft     %" PRIu64 " entries, %" PRIu64 " bytes\n",
            trim.dry_run ? "would go" : "removed", trimmed.removed, trimmed.removed_bytes, left, left_bytes);
        return GJ_OK;
    }
    cli_json_text(cli, document, "root", gj_cache_root(cache));
    cli_json_bool(cli, document, "dry_run", trim.dry_run);
    cli_json_number(cli, document, "removed_bytes", (double)trimmed.removed_bytes);
    cli_json_number(cli, document, "entries_left", (double)left);
    cli_json_number(cli, document, "bytes_left", (double)left_bytes);
    return cli_json_finish(cli, document, error);
}
