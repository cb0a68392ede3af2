/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit cache: what is in the disk cache, and emptying it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "cache_verb.h"

enum gj_status cache_fail(const gj_cache *cache, const char *what, int code, gj_error **error)
{
    return gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_CACHE, code, strerrorname_np(code),
                         "the cache in %s cannot be %s: %s", gj_cache_root(cache), what, strerror(code));
}

/* -- What could not be read --------------------------------------------------------------------------------
 */

/* What was listed stands, but is not all: told in one line, in the exit status, and in the document. */
void cache_report_scan(struct cli *cli, const gj_cache *cache, cJSON *document, struct gj_cache_scan *scan)
{
    const char *const first = scan->first_unread.text ? scan->first_unread.text : "no memory to say which";
    if (scan->unread > 0) {
        cli->exit_status = CLI_EXIT_FAILED;
        cli_say(cli, "gemmjit: warning: the cache in %s is not listed in full: %s%s", gj_cache_root(cache),
                first, scan->unread > 1 ? "; and others" : "");
    }
    if (document) {
        cli_json_number(cli, document, "unread", (double)scan->unread);
        if (scan->unread > 0)
            cli_json_text(cli, document, "unread_reason", first);
    }
    gj_strbuf_free(&scan->first_unread);
}

/* -- stat ---------------------------------------------------------------------------------------------- */

struct totals {
    uint64_t entries, bytes, damaged;
};

static bool count_entry(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                        const char *reason)
{
    (void)path, (void)reason;
    struct totals *const totals = user;
    if (entry)
        totals->entries++;
    else
        totals->damaged++;
    totals->bytes += file_bytes;
    return true;
}

static enum gj_status do_stat(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct totals totals = {0};
    struct gj_cache_scan scan = {0};
    if (gj_cache_list(cache, count_entry, &totals, &scan) < 0) {
        const int code = errno;
        gj_strbuf_free(&scan.first_unread);
        return cache_fail(cache, "read", code, error);
    }
    if (cli->json) {
        cJSON *const document = cli_json_object(cli);
        cli_json_text(cli, document, "root", gj_cache_root(cache));
        cli_json_number(cli, document, "entries", (double)totals.entries);
        cli_json_number(cli, document, "bytes", (double)totals.bytes);
        cli_json_number(cli, document, "damaged", (double)totals.damaged);
        cli_json_number(cli, document, "temporary", (double)scan.temporary);
        cache_report_scan(cli, cache, document, &scan);
        return cli_json_finish(cli, document, error);
    }
    gj_strbuf_printf(&cli->out,
                     "root       %s\nentries    %" PRIu64 "\nbytes      %" PRIu64 "\ndamaged    %" PRIu64
                     "\ntemporary  %" PRIu64 "\n",
                     gj_cache_root(cache), totals.entries, totals.bytes, totals.damaged, scan.temporary);
    cache_report_scan(cli, cache, NULL, &scan);
    return GJ_OK;
}

/* -- verify -------------------------------------------------------------------------------------------- */

struct verifying {
    struct cli *cli;
    cJSON *damaged; /* NULL: lines */
    struct totals totals;
};

static bool verify_entry(void *user, const char *path, uint64_t file_bytes,
                         const struct gj_cache_entry *entry, const char *reason)
{
    struct verifying *const verifying = user;
    struct cli *const cli = verifying->cli;
    count_entry(&verifying->totals, path, file_bytes, entry, reason);
    if (entry)
        return true;
    if (!verifying->damaged) {
        gj_strbuf_printf(&cli->out, "%s: %s\n", path, reason);
        return true;
    }
    cJSON *const object = cli_json_object(cli);
    cli_json_text(cli, object, "file", path);
    cli_json_text(cli, object, "damaged", reason);
    cli_json_append(cli, verifying->damaged, object);
    return !cli->no_memory;
}

/* Every entry is read in full, as a lookup would, and its name checked. */
static enum gj_status do_verify(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct verifying verifying = {.cli = cli};
    struct gj_cache_scan scan = {0};
    cJSON *const document = cli->json ? cli_json_object(cli) : NULL;
    verifying.damaged = document ? cli_json_array(cli, document, "damaged") : NULL;
    if (gj_cache_list(cache, verify_entry, &verifying, &scan) < 0) {
        const int code = errno;
        gj_strbuf_free(&scan.first_unread);
        cJSON_Delete(document);
        return cache_fail(cache, "read", code, error);
    }
    const struct totals *const totals = &verifying.totals;
    if (totals->damaged > 0)
        cli->exit_status = CLI_EXIT_FAILED;
    if (!document)
        gj_strbuf_printf(&cli->out, "sound    %" PRIu64 "\ndamaged  %" PRIu64 "\n", totals->entries,
                         totals->damaged);
    else
        cli_json_number(cli, document, "sound", (double)totals->entries);
    cache_report_scan(cli, cache, document, &scan);
    return document ? cli_json_finish(cli, document, error) : GJ_OK;
}

/* -- list ---------------------------------------------------------------------------------------------- */

struct listing {
    struct cli *cli;
    cJSON *entries; /* NULL: lines */
};

static bool add_entry_object(struct listing *listing, const char *path, uint64_t file_bytes,
                             const struct gj_cache_entry *entry, const char *reason)
{
    struct cli *const cli = listing->cli;
    cJSON *const object = cli_json_object(cli);
    cli_json_text(cli, object, "file", path);
    cli_json_number(cli, object, "file_bytes", (double)file_bytes);
    if (entry) {
        cli_json_text(cli, object, "key", entry->key_text);
        cli_json_text(cli, object, "compiler", entry->compiler);
        cli_json_text(cli, object, "arch", entry->arch);
        cli_json_text(cli, object, "options", entry->options);
        cli_json_text(cli, object, "entry_name", entry->entry_name);
        cli_json_number(cli, object, "registers", entry->registers);
        cli_json_number(cli, object, "threads", entry->threads);
        cli_json_number(cli, object, "smem_bytes", entry->smem_bytes);
        cli_json_number(cli, object, "stages", entry->stages);
        cli_json_number(cli, object, "spill_bytes", entry->spill_bytes);
        cli_json_number(cli, object, "cubin_bytes", (double)entry->cubin_bytes);
    } else {
        cli_json_text(cli, object, "damaged", reason);
    }
    cli_json_append(cli, listing->entries, object);
    return !cli->no_memory;
}

static bool add_entry(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                      const char *reason)
{
    struct listing *const listing = user;
    if (listing->entries)
        return add_entry_object(listing, path, file_bytes, entry, reason);
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    if (entry)
        gj_strbuf_printf(&listing->cli->out, "%s %8" PRIu64 "  %-12s %s\n", name, file_bytes, entry->compiler,
                         entry->key_text);
    else
        gj_strbuf_printf(&listing->cli->out, "%s %8" PRIu64 "  %-12s %s\n", name, file_bytes, "damaged",
                         reason);
    return true;
}

static enum gj_status do_list(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct listing listing = {.cli = cli};
    cJSON *const document = cli->json ? cli_json_object(cli) : NULL;
    if (document) {
        cli_json_text(cli, document, "root", gj_cache_root(cache));
        listing.entries = cli_json_array(cli, document, "entries");
    }
    struct gj_cache_scan scan = {0};
    if (gj_cache_list(cache, add_entry, &listing, &scan) < 0) {
        const int code = errno;
        gj_strbuf_free(&scan.first_unread);
        cJSON_Delete(document);
        return cache_fail(cache, "read", code, error);
    }
    cache_report_scan(cli, cache, document, &scan);
    return document ? cli_json_finish(cli, document, error) : GJ_OK;
}

/* -- clear --------------------------------------------------------------------------------------------- */

static enum gj_status do_clear(struct cli *cli, gj_cache *cache, gj_error **error)
{
    const int64_t removed = gj_cache_clear(cache);
    if (removed < 0)
        return cache_fail(cache, "emptied", errno, error);
    if (cli->json) {
        cJSON *const document = cli_json_object(cli);
        cli_json_text(cli, document, "root", gj_cache_root(cache));
        cli_json_number(cli, document, "removed", (double)removed);
        return cli_json_finish(cli, document, error);
    }
    gj_strbuf_printf(&cli->out, "removed  %" PRId64 "\n", removed);
    return GJ_OK;
}

/* -- The verb ------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    enum gj_status (*act)(struct cli *cli, gj_cache *cache, gj_error **error);
    unsigned options; /* that only some actions take */
    bool has_file;    /* a FILE follows */
} actions[] = {{"stat", do_stat, 0, false},
               {"list", do_list, 0, false},
               {"verify", do_verify, 0, false},
               {"trim", cache_trim, CLI_BIT(CLI_MAX_SIZE) | CLI_BIT(CLI_DRY_RUN), false},
               {"why", cache_why, CLI_BIT(CLI_KEY) | CLI_BIT(CLI_ACT_SOURCE) | CLI_BIT(CLI_ACT_NAME), false},
               {"pack", cache_pack, 0, true},
               {"unpack", cache_unpack, 0, true},
               {"clear", do_clear, 0, false}};

/* Refuses the options of other actions, and a FILE too few or too many. */
static enum gj_status check_options(const struct cli *cli, size_t action, gj_error **error)
{
    static const enum cli_option some[] = {CLI_MAX_SIZE, CLI_DRY_RUN, CLI_KEY, CLI_ACT_SOURCE, CLI_ACT_NAME};
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        if (cli->options.count[some[i]] > 0 && !(actions[action].options & CLI_BIT(some[i])))
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "cache %s takes no %s", actions[action].name,
                    cli_option_rows[some[i]].name);
    const char *const file = cli->options.file;
    if (actions[action].has_file && (file == NULL || *file == '\0'))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "cache %s needs a FILE", actions[action].name);
    if (file && !actions[action].has_file)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "unexpected argument \"%s\"; gemmjit cache --help says how to use it",
                gj_utf8_quote(file, strlen(file)).text);
    return GJ_OK;
}

enum gj_status cli_cache(struct cli *cli, gj_error **error)
{
    const char *const action = cli->options.action;
    size_t i = 0;
    while (action && i < sizeof(actions) / sizeof(actions[0]) && strcmp(actions[i].name, action) != 0)
        i++;
    if (action == NULL || i == sizeof(actions) / sizeof(actions[0]))
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "cache %s: allowed is stat, list, verify, trim, why, pack, unpack, clear",
                action ? gj_utf8_quote(action, strlen(action)).text : "needs an action");
    if (cli->options.count[CLI_NO_CACHE])
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "cache %s contradicts --no-cache", action);
    GJ_TRY(check_options(cli, i, error));
    GJ_TRY(cli_cache_usable(cli, error));
    const struct gj_log log = {cli_log, cli};
    gj_cache *cache = gj_cache_open(cli->options.text[CLI_CACHE_DIR], &log);
    if (cache == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_CACHE, "no memory for the cache");
    const enum gj_status status = actions[i].act(cli, cache, error);
    gj_cache_close(&cache);
    return status;
}
