/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning tables that change, and how they are written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "key/config.h"
#include "tune.h"

enum gj_status tune_table_read(const char *path, struct gj_tuning_table *table, gj_error **error)
{
    *table = (struct gj_tuning_table){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return GJ_OK;
    return gj_tuning_read(path, table, error);
}

static int compare_entries(const void *x, const void *y)
{
    const struct gj_tuning_entry *const a = x, *const b = y;
    const int order = gj_tuning_compare(&a->place, &b->place);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static void sort(struct gj_tuning_table *table)
{
    if (table->count > 0)
        qsort(table->entries, table->count, sizeof(*table->entries), compare_entries);
}

static enum gj_status reserve(struct gj_tuning_table *table, size_t more, gj_error **error)
{
    const size_t count = table->count + more;
    struct gj_tuning_entry *const grown = realloc(table->entries, (count ? count : 1) * sizeof(*grown));
    if (grown == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a tuning table of %zu entries", count);
    table->entries = grown;
    return GJ_OK;
}

static void free_entry(struct gj_tuning_entry *entry)
{
    free((char *)entry->place.gpu);
}

void tune_table_remove(struct gj_tuning_table *table, const struct gj_tuning_place *place)
{
    const struct gj_tuning_entry *const found = gj_tuning_table_find(table, place);
    if (found == NULL)
        return;
    struct gj_tuning_entry *const entry = &table->entries[found - table->entries];
    free_entry(entry);
    table->count--;
    memmove(entry, entry + 1, (size_t)(table->entries + table->count - entry) * sizeof(*entry));
}

enum gj_status tune_table_put(struct gj_tuning_table *table, const struct gj_tuning_entry *entry,
                              gj_error **error)
{
    struct gj_tuning_entry copy = *entry;
    copy.place.gpu = strdup(entry->place.gpu);
    if (copy.place.gpu == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for an entry of a tuning table");
    const enum gj_status status = reserve(table, 1, error);
    if (status != GJ_OK) {
        free_entry(&copy);
        return status;
    }
    tune_table_remove(table, &copy.place);
    table->entries[table->count++] = copy;
    sort(table);
    return GJ_OK;
}

/* Keeps the first of equal places; returns how many went. */
static size_t drop_doubles(struct gj_tuning_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct gj_tuning_entry *const entry = &table->entries[i];
        if (kept > 0 && gj_tuning_compare(&table->entries[kept - 1].place, &entry->place) == 0)
            free_entry(entry);
        else
            table->entries[kept++] = *entry;
    }
    const size_t dropped = table->count - kept;
    table->count = kept;
    return dropped;
}

enum gj_status tune_table_merge(struct gj_tuning_table *table, struct gj_tuning_table *more,
                                size_t *num_left_out, gj_error **error)
{
    GJ_TRY(reserve(table, more->count, error));
    for (size_t i = 0; i < table->count; i++)
        table->entries[i].index = 0;
    for (size_t i = 0; i < more->count; i++) {
        more->entries[i].index = 1;
        table->entries[table->count++] = more->entries[i];
    }
    more->count = 0;
    sort(table);
    *num_left_out = drop_doubles(table);
    return GJ_OK;
}

static cJSON *entry_object(struct cli *cli, const struct gj_tuning_entry *entry)
{
    const struct gj_tuning_place *const place = &entry->place;
    cJSON *const object = cli_json_object(cli);
    char problem[GJ_KEY_TEXT_MAX], config[GJ_KEY_TEXT_MAX];
    bench_problem_text(&place->problem, problem);
    gj_key_format_part(&entry->key, GJ_KEY_CONFIG, config, sizeof(config));
    cli_json_text(cli, object, "gpu", place->gpu);
    cli_json_number(cli, object, "num_sms", place->num_sms);
    cli_json_text(cli, object, "problem", problem);
    cli_json_number(cli, object, "n", (double)place->n);
    cli_json_number(cli, object, "k", (double)place->k);
    cli_json_number(cli, object, "batch", (double)place->batch);
    cli_json_number(cli, object, "m_class", (double)place->m_class);
    cli_json_text(cli, object, "config", config);
    cli_json_number(cli, object, "us", entry->us);
    cli_json_number(cli, object, "default_us", entry->default_us);
    cli_json_text(cli, object, "measured", entry->measured);
    return object;
}

static void add_entry(struct cli *cli, const struct gj_tuning_entry *entry, struct gj_strbuf *text)
{
    cJSON *const object = entry_object(cli, entry);
    char *const line = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    cli->no_memory |= line == NULL;
    gj_strbuf_puts(text, line ? line : "");
    cJSON_free(line);
}

enum gj_status tune_table_write(struct cli *cli, const char *path, const struct gj_tuning_table *table,
                                gj_error **error)
{
    struct gj_strbuf text = {0};
    gj_strbuf_puts(&text, "{\n  \"format\": \"gemmjit-tuning\",\n  \"version\": 1,\n  \"entries\": [");
    for (size_t i = 0; i < table->count; i++) {
        gj_strbuf_puts(&text, i ? ",\n    " : "\n    ");
        add_entry(cli, &table->entries[i], &text);
    }
    gj_strbuf_puts(&text, table->count ? "\n  ]\n}\n" : "]\n}\n");
    text.failed |= cli->no_memory;
    const enum gj_status status = cli_output_file(path, &text, error);
    gj_strbuf_free(&text);
    return status;
}
