/* SPDX-License-Identifier: Apache-2.0 */
/* What prewarm is to do: the keys, all of them checked before the first compile, and the number of threads.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "prewarm.h"

/* A compile in flight takes 71 to 91 MB (NVRTC 13.0, 2026-11-30). */
#define COMPILE_MB 90
#define WORKERS_MAX 256

/* -- Keys ---------------------------------------------------------------------------------------------- */

static int compare_items(const void *left, const void *right)
{
    const struct prewarm_item *const *const a = left, *const *const b = right;
    const int order = strcmp((*a)->text, (*b)->text);
    return order ? order : (*a > *b) - (*a < *b);
}

/* Keeps the first of equal keys, in the order in which they were given. */
static enum gj_status merge_doubles(struct prewarm *prewarm, gj_error **error)
{
    const size_t count = prewarm->num_items;
    struct prewarm_item **const sorted = calloc(count, sizeof(struct prewarm_item *));
    if (sorted == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %zu keys", count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &prewarm->items[i];
    qsort(sorted, count, sizeof(struct prewarm_item *), compare_items);
    for (size_t i = count - 1; i > 0; i--)
        if (strcmp(sorted[i]->text, sorted[i - 1]->text) == 0)
            sorted[i]->label[0] = '\0'; /* marks the double */
    free(sorted);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (prewarm->items[i].label[0] != '\0')
            prewarm->items[kept++] = prewarm->items[i];
    prewarm->num_items = kept;
    return GJ_OK;
}

/* A refused key as one reason of the whole: where it stands, and each of its own reasons. */
static void add_refusal(gj_error **all, const char *source, size_t idx, const char *text,
                        const gj_error *error)
{
    struct gj_strbuf line = {0};
    if (source)
        gj_strbuf_printf(&line, "%s: keys[%zu]: ", source, idx);
    else
        gj_strbuf_printf(&line, "--key %s: ", gj_utf8_quote(text, strlen(text)).text);
    if (error && error->num_reasons > 0)
        for (size_t i = 0; i < error->num_reasons; i++)
            gj_strbuf_printf(&line, "%s%s", i ? "; " : "", error->reasons[i]);
    else
        gj_strbuf_puts(&line, error ? error->message : "no memory");
    if (!line.failed)
        gj_error_add_reason(all, "%s", line.text);
    gj_strbuf_free(&line);
}

static enum gj_status check_key(struct cli *cli, const char *text, struct prewarm_item *item,
                                gj_error **error)
{
    GJ_TRY(cli_key_parse(cli, text, &item->key, error));
    GJ_TRY(gj_key_check(&item->key, error));
    gj_key_format(&item->key, item->text, sizeof(item->text));
    cli_key_short(&item->key, item->label);
    return GJ_OK;
}

/* Checks all keys; source is the manifest they are from, or NULL. */
static enum gj_status check_keys(struct prewarm *prewarm, const char *source, const char *const *texts,
                                 size_t count, gj_error **error)
{
    if (count == 1 && source == NULL)
        return check_key(prewarm->cli, texts[0], &prewarm->items[0], error);
    size_t refused = 0;
    for (size_t i = 0; i < count; i++) {
        gj_error *reason = NULL;
        const enum gj_status status = check_key(prewarm->cli, texts[i], &prewarm->items[i], &reason);
        if (status != GJ_OK) {
            if (refused++ == 0)
                gj_error_make(error, GJ_ERR_KEY, GJ_STAGE_KEY, 0, "",
                              "of %zu key%s these are refused:", count, count == 1 ? "" : "s");
            add_refusal(error, source, i, texts[i], reason);
        }
        gj_error_free(&reason);
    }
    return refused ? GJ_ERR_KEY : GJ_OK;
}

/* Each key comes from one kind of source. */
static enum gj_status check_sources(const struct cli *cli, gj_error **error)
{
    static const enum cli_option sources[] = {CLI_KEY, CLI_MANIFEST, CLI_MODEL};
    const char *given = NULL;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        if (cli->options.count[sources[i]] == 0)
            continue;
        const char *const name = cli_option_rows[sources[i]].name;
        if (given)
            GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s and %s are both given", given, name);
        given = name;
    }
    if (given == NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "no key is given: use --key TEXT, --manifest FILE or --model FILE");
    return GJ_OK;
}

static enum gj_status make_items(struct prewarm *prewarm, size_t count, gj_error **error)
{
    prewarm->items = calloc(count, sizeof(*prewarm->items));
    if (prewarm->items == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for %zu keys", count);
    prewarm->num_items = count;
    return GJ_OK;
}

static enum gj_status read_manifest(struct prewarm *prewarm, const char *path, gj_error **error)
{
    char **keys = NULL;
    size_t count = 0;
    GJ_TRY(cli_manifest_read(path, &keys, &count, error));
    enum gj_status status = make_items(prewarm, count, error);
    if (status == GJ_OK)
        status = check_keys(prewarm, path, (const char *const *)keys, count, error);
    for (size_t i = 0; i < count; i++)
        free(keys[i]);
    free(keys);
    return status;
}

static enum gj_status read_options(struct prewarm *prewarm, gj_error **error)
{
    const struct cli_options *const options = &prewarm->cli->options;
    GJ_TRY(make_items(prewarm, options->num_keys, error));
    return check_keys(prewarm, NULL, options->keys, options->num_keys, error);
}

enum gj_status prewarm_read(struct prewarm *prewarm, gj_error **error)
{
    const struct cli *const cli = prewarm->cli;
    GJ_TRY(check_sources(cli, error));
    GJ_TRY(prewarm_shard_read(cli, &prewarm->shard, error));
    GJ_TRY(prewarm_model_options(prewarm, error));
    if (cli->options.count[CLI_MODEL])
        GJ_TRY(prewarm_model_read(prewarm, error));
    else if (cli->options.count[CLI_MANIFEST])
        GJ_TRY(read_manifest(prewarm, cli->options.text[CLI_MANIFEST], error));
    else
        GJ_TRY(read_options(prewarm, error));
    GJ_TRY(merge_doubles(prewarm, error));
    prewarm_shard_cut(prewarm);
    return GJ_OK;
}

/* -- Threads ------------------------------------------------------------------------------------------- */

/* Memory that can be had without swapping, in MB; 0 when the kernel does not say. */
static int64_t available_mb(void)
{
    FILE *const file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return 0;
    char line[256];
    long long kb = 0;
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %lld kB", &kb) == 1)
            break;
    fclose(file);
    return kb / 1024;
}

enum gj_status prewarm_choose_workers(struct prewarm *prewarm, size_t num_tasks, gj_error **error)
{
    cpu_set_t processors;
    int64_t workers = sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : 1;
    const int64_t memory_mb = available_mb();
    if (memory_mb > 0 && workers > memory_mb / COMPILE_MB)
        workers = memory_mb / COMPILE_MB;
    GJ_TRY(cli_option_int(prewarm->cli, CLI_JOBS, 1, WORKERS_MAX, &workers, error));
    if (workers > WORKERS_MAX)
        workers = WORKERS_MAX;
    if (workers > (int64_t)num_tasks)
        workers = (int64_t)num_tasks;
    prewarm->num_workers = workers < 1 ? 1 : (int)workers;
    return GJ_OK;
}
