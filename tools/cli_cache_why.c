/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit cache why: whether a key is in the cache, and in what the nearest entry differs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache_verb.h"
#include "compile/compile.h"

/* What a lookup would ask for, and what was found. */
struct search {
    struct cli *cli;
    struct gj_hash unit_hash;
    char key[GJ_KEY_TEXT_MAX];
    char version[64]; /* of the compiler; "" when nothing tells */
    uint64_t entries;
    int least; /* differences of the nearest entry; -1: none */
    struct gj_strbuf file, differences;
};

/* Adds "field: asked A, there B" to a list. */
static void add_difference(struct gj_strbuf *list, int *count, const char *field, const char *asked,
                           const char *there)
{
    gj_strbuf_printf(list, "%s%s: asked %s, there %s", list->length ? "\n" : "", field, asked, there);
    ++*count;
}

/* The value of a field in a canonical key text, with its length; NULL when it is not there. */
static const char *field_value(const char *text, const char *name, size_t name_length, size_t *length)
{
    for (const char *at = text; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, name_length) == 0 && at[name_length] == '=') {
            *length = strcspn(at + name_length + 1, ",");
            return at + name_length + 1;
        }
    }
    return NULL;
}

/* Fields of `left` that `right` has otherwise or lacks. asked_left: which of them was asked for. */
static void compare_fields(const char *left, const char *right, bool asked_left, struct gj_strbuf *list,
                           int *count)
{
    for (const char *at = left; *at != '\0';) {
        const size_t name_length = strcspn(at, "=");
        const size_t length = strcspn(at, ",") - name_length - 1;
        size_t other_length = 0;
        const char *const other = field_value(right, at, name_length, &other_length);
        char name[32], mine[64], theirs[64];
        snprintf(name, sizeof(name), "%.*s", (int)name_length, at);
        snprintf(mine, sizeof(mine), "%.*s", (int)length, at + name_length + 1);
        snprintf(theirs, sizeof(theirs), "%.*s", other ? (int)other_length : 4, other ? other : "none");
        if (strcmp(mine, theirs) != 0 && (asked_left || other == NULL))
            add_difference(list, count, name, asked_left ? mine : theirs, asked_left ? theirs : mine);
        at += strcspn(at, ",");
        at += *at == ',';
    }
}

static bool compare_entry(void *user, const char *path, uint64_t file_bytes,
                          const struct gj_cache_entry *entry, const char *reason)
{
    struct search *const search = user;
    struct gj_strbuf list = {0};
    int count = 0;
    (void)file_bytes, (void)reason;
    if (entry == NULL)
        return true;
    search->entries++;
    compare_fields(search->key, entry->key_text, true, &list, &count);
    compare_fields(entry->key_text, search->key, false, &list, &count);
    if (count == 0 && memcmp(&entry->unit_hash, &search->unit_hash, sizeof(search->unit_hash)) != 0)
        add_difference(&list, &count, "unit", "that of this library",
                       "of other templates or another version");
    if (strcmp(entry->arch, GJ_COMPILE_ARCH) != 0)
        add_difference(&list, &count, "arch", GJ_COMPILE_ARCH, entry->arch);
    if (strcmp(entry->options, gj_compile_options()) != 0)
        add_difference(&list, &count, "options", gj_compile_options(), entry->options);
    if (search->version[0] != '\0' && strcmp(entry->compiler, search->version) != 0)
        add_difference(&list, &count, "compiler", search->version, entry->compiler);
    if (search->least < 0 || count < search->least) {
        search->least = count;
        gj_strbuf_free(&search->file);
        gj_strbuf_free(&search->differences);
        gj_strbuf_puts(&search->file, path);
        search->differences = list;
        list = (struct gj_strbuf){0};
    }
    gj_strbuf_free(&list);
    return count != 0;
}

/* The unit of the key, by its hash. */
static enum gj_status hash_unit(struct cli *cli, const struct gj_key *key, struct gj_hash *hash,
                                gj_error **error)
{
    const struct gj_context_params params = {.no_disk_cache = 1};
    gj_context *context = NULL;
    char *source = NULL;
    size_t bytes = 0;
    enum gj_status status = gj_context_open(&params, &context, error);
    if (status == GJ_OK)
        status = cli_own_add(cli, context, error);
    if (status == GJ_OK)
        status = gj_context_source(context, key, &source, &bytes, error);
    if (status == GJ_OK)
        *hash = gj_hash_bytes(source, bytes);
    gj_free(source);
    gj_context_close(&context);
    return status;
}

/* The version that a lookup here would ask for: that of the libnvrtc here, else the one that last published.
 */
static void find_version(gj_cache *cache, char *version, size_t capacity)
{
    struct gj_compiler_identity identity;
    version[0] = '\0';
    const bool is_here = gj_compiler_locate(&identity);
    if (!gj_cache_compiler_get(cache, is_here ? identity.text : "", version, capacity))
        version[0] = '\0';
}

static enum gj_status print_answer(struct search *search, gj_cache *cache, struct gj_cache_scan *scan,
                                   gj_error **error)
{
    struct cli *const cli = search->cli;
    const bool is_there = search->least == 0;
    const char *const file = search->file.text ? search->file.text : "";
    if (!is_there)
        cli->exit_status = CLI_EXIT_FAILED;
    if (!cli->json) {
        if (is_there)
            gj_strbuf_printf(&cli->out, "in the cache: %s\n", file);
        else if (search->entries == 0)
            gj_strbuf_puts(&cli->out, "not in the cache, which has no entry\n");
        else
            gj_strbuf_printf(&cli->out, "not in the cache; nearest: %s\n%s\n", file,
                             search->differences.text);
        cache_report_scan(cli, cache, NULL, scan);
        return GJ_OK;
    }
    cJSON *const document = cli_json_object(cli);
    cli_json_text(cli, document, "key", search->key);
    cli_json_bool(cli, document, "cached", is_there);
    if (search->entries > 0)
        cli_json_text(cli, document, is_there ? "file" : "nearest", file);
    cJSON *const list = cli_json_array(cli, document, "differences");
    for (char *rest = search->differences.text, *line; rest && (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            cli_json_append_text(cli, list, line);
    cache_report_scan(cli, cache, document, scan);
    return cli_json_finish(cli, document, error);
}

enum gj_status cache_why(struct cli *cli, gj_cache *cache, gj_error **error)
{
    struct search search = {.cli = cli, .least = -1};
    struct gj_cache_scan scan = {0};
    struct gj_key key;
    if (cli->options.num_keys != 1)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "cache why needs --key TEXT, once");
    GJ_TRY(cli_key_read(cli, &key, error));
    GJ_TRY(gj_key_check(&key, error));
    gj_key_format(&key, search.key, sizeof(search.key));
    GJ_TRY(hash_unit(cli, &key, &search.unit_hash, error));
    find_version(cache, search.version, sizeof(search.version));
    enum gj_status status = GJ_OK;
    if (gj_cache_list(cache, compare_entry, &search, &scan) < 0) {
        status = cache_fail(cache, "read", errno, error);
        gj_strbuf_free(&scan.first_unread);
    } else {
        status = print_answer(&search, cache, &scan, error);
    }
    gj_strbuf_free(&search.file);
    gj_strbuf_free(&search.differences);
    return status;
}
