/* SPDX-License-Identifier: Apache-2.0 */
/* A whole table: its head, its entries in order, and no place twice. */
#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "base/file_text.h"
#include "base/utf8.h"
#include "tuning/tuning_impl.h"

#define TABLE_BYTES_MAX ((size_t)64 << 20)
#define FORMAT "gemmjit-tuning"
#define VERSION 1

#define FAIL_TABLE(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

enum member { MEMBER_FORMAT, MEMBER_VERSION, MEMBER_ENTRIES, NUM_MEMBERS };
static const char *const names[NUM_MEMBERS] = {"format", "version", "entries"};

static enum gj_status find_members(const char *name, const cJSON *document, const cJSON *members[NUM_MEMBERS],
                                   gj_error **error)
{
    if (!cJSON_IsObject(document))
        FAIL_TABLE(error, "%s: the document is not an object", name);
    for (const cJSON *member = document->child; member != NULL; member = member->next) {
        int i = 0;
        while (i < NUM_MEMBERS && strcmp(member->string, names[i]) != 0)
            i++;
        if (i == NUM_MEMBERS)
            FAIL_TABLE(error, "%s: unknown member \"%s\": the members are format, version, entries", name,
                       gj_utf8_quote(member->string, strlen(member->string)).text);
        if (members[i] != NULL)
            FAIL_TABLE(error, "%s: member %s is given twice", name, names[i]);
        members[i] = member;
    }
    for (int i = 0; i < NUM_MEMBERS; i++)
        if (members[i] == NULL)
            FAIL_TABLE(error, "%s: member %s is missing", name, names[i]);
    return GJ_OK;
}

static enum gj_status check_head(const char *name, const cJSON *const members[NUM_MEMBERS], gj_error **error)
{
    const cJSON *const format = members[MEMBER_FORMAT], *const version = members[MEMBER_VERSION];
    if (!cJSON_IsString(format) || strcmp(format->valuestring, FORMAT) != 0)
        FAIL_TABLE(error, "%s: format is not \"" FORMAT "\"", name);
    if (!cJSON_IsNumber(version) || !(version->valuedouble >= VERSION && version->valuedouble <= VERSION))
        FAIL_TABLE(error, "%s: version is not %d, the only one that this gemmjit reads", name, VERSION);
    if (!cJSON_IsArray(members[MEMBER_ENTRIES]))
        FAIL_TABLE(error, "%s: entries is not an array", name);
    return GJ_OK;
}

static int compare_entries(const void *x, const void *y)
{
    const struct gj_tuning_entry *const a = x, *const b = y;
    const int order = gj_tuning_compare(&a->place, &b->place);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static enum gj_status sort_entries(const char *name, struct gj_tuning_table *table, gj_error **error)
{
    if (table->count == 0)
        return GJ_OK;
    qsort(table->entries, table->count, sizeof *table->entries, compare_entries);
    for (size_t i = 1; i < table->count; i++)
        if (gj_tuning_compare(&table->entries[i - 1].place, &table->entries[i].place) == 0)
            FAIL_TABLE(
                error,
                "%s: entries[%d]: gpu, num_sms, problem, n, k, batch and m_class are those of entries[%d]",
                name, table->entries[i].index, table->entries[i - 1].index);
    return GJ_OK;
}

static enum gj_status read_entries(const char *name, const cJSON *entries, struct gj_tuning_table *table,
                                   gj_error **error)
{
    const size_t count = (size_t)cJSON_GetArraySize(entries);
    table->entries = calloc(count ? count : 1, sizeof *table->entries);
    if (table->entries == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a tuning table of %zu entries", count);
    for (const cJSON *item = entries->child; item != NULL; item = item->next) {
        struct gj_tuning_entry *const entry = &table->entries[table->count];
        entry->index = (int)table->count++;
        GJ_TRY(gj_tuning_entry_read(name, item, entry, error));
    }
    return sort_entries(name, table, error);
}

static enum gj_status take_document(const char *name, const cJSON *document, struct gj_tuning_table *table,
                                    gj_error **error)
{
    const cJSON *members[NUM_MEMBERS] = {0};
    struct gj_tuning_table read = {0};
    GJ_TRY(find_members(name, document, members, error));
    GJ_TRY(check_head(name, members, error));
    const enum gj_status status = read_entries(name, members[MEMBER_ENTRIES], &read, error);
    if (status == GJ_OK)
        *table = read;
    else
        gj_tuning_table_free(&read);
    return status;
}

enum gj_status gj_tuning_parse(const char *name, const struct gj_strbuf *text, struct gj_tuning_table *table,
                               gj_error **error)
{
    cJSON *document = NULL;
    GJ_TRY(gj_json_parse(name, text, &document, error));
    const enum gj_status status = take_document(name, document, table, error);
    cJSON_Delete(document);
    return status;
}

enum gj_status gj_tuning_read(const char *path, struct gj_tuning_table *table, gj_error **error)
{
    struct gj_strbuf text = {0};
    enum gj_status status = gj_file_text_read(path, TABLE_BYTES_MAX, &text, error);
    if (status == GJ_OK)
        status = gj_tuning_parse(path, &text, table, error);
    gj_strbuf_free(&text);
    return status;
}

void gj_tuning_table_free(struct gj_tuning_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free((char *)table->entries[i].place.gpu);
    free(table->entries);
    *table = (struct gj_tuning_table){0};
}
