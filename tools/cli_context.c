/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a verb, as the common options say, and its log on stderr. */
#include "base/log.h"
#include "cache/cache.h"
#include "cli.h"

static const char *const level_words[] = {
    [GJ_LOG_ERROR] = "",
    [GJ_LOG_WARNING] = "warning: ",
    [GJ_LOG_INFO] = "",
    [GJ_LOG_DEBUG] = "",
};

/* -q: errors; else warnings; -v: what is done; -v -v: all. */
void cli_log(void *user, enum gj_log_level level, const char *message)
{
    struct cli *const cli = user;
    const int most =
        cli->options.count[CLI_QUIET] ? GJ_LOG_ERROR : GJ_LOG_WARNING + cli->options.count[CLI_VERBOSE];
    if ((int)level <= most)
        cli_say(cli, "gemmjit: %s%s", level_words[level], message);
}

enum gj_status cli_context_open(struct cli *cli, gj_context **context, gj_error **error)
{
    const struct gj_context_params params = {
        .cache_dir = cli->options.text[CLI_CACHE_DIR],
        .no_disk_cache = cli->options.count[CLI_NO_CACHE] > 0,
        .log = cli_log,
        .log_user = cli,
    };
    gj_context *opened = NULL;
    GJ_TRY(gj_context_open(&params, &opened, error));
    const enum gj_status status = cli_own_add(cli, opened, error);
    if (status == GJ_OK)
        *context = opened;
    else
        gj_context_close(&opened);
    return status;
}

enum gj_status cli_cache_writable(struct cli *cli, gj_error **error)
{
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open(cli->options.text[CLI_CACHE_DIR], &silent);
    if (cache == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_CACHE, "no memory for the cache");
    struct gj_strbuf reason = {0};
    enum gj_status status = GJ_OK;
    if (!gj_cache_is_writable(cache, &reason))
        status =
            gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_CACHE, 0, "", "the disk cache cannot be written: %s",
                          reason.text ? reason.text : "no memory");
    gj_strbuf_free(&reason);
    gj_cache_close(&cache);
    return status;
}

enum gj_status cli_cache_usable(struct cli *cli, gj_error **error)
{
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open(cli->options.text[CLI_CACHE_DIR], &silent);
    if (cache == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_CACHE, "no memory for the cache");
    enum gj_status status = GJ_OK;
    const char *const reason = gj_cache_off_reason(cache);
    if (reason != NULL)
        status = gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_CACHE, 0, "",
                               "the disk cache cannot be used: %s", reason);
    gj_cache_close(&cache);
    return status;
}
