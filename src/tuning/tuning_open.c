/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a context: those that its user names, then the built-in ones. */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error_build.h"
#include "tuning/tuning.h"

/* Texts of tuning/NAME.json, which the build embeds. */
extern const char gj_tuning_nvidia_h200_text[];

static const struct {
    const char *name, *text;
} builtin[] = {
    {"built-in nvidia_h200.json", gj_tuning_nvidia_h200_text},
};

/* What is wrong with the entries that are ignored. */
struct ignored {
    size_t count;
    int first;
    gj_error *reason; /* of the first */
};

/* Keeps the entries that this version has kernels for, in their order. */
static enum gj_status drop_refused(struct gj_tuning_table *table, struct ignored *ignored)
{
    size_t kept = 0;
    enum gj_status result = GJ_OK;
    for (size_t i = 0; i < table->count; i++) {
        struct gj_tuning_entry *const entry = &table->entries[i];
        gj_error *reason = NULL;
        const enum gj_status status = gj_key_check(&entry->key, &reason);
        if (status == GJ_OK || status == GJ_ERR_NO_MEMORY) {
            result = status == GJ_OK ? result : status;
            table->entries[kept++] = *entry;
            continue;
        }
        free((char *)entry->place.gpu);
        if (ignored->count++ == 0 || entry->index < ignored->first) {
            gj_error *const last = ignored->reason;
            ignored->first = entry->index;
            ignored->reason = reason;
            reason = last;
        }
        gj_error_free(&reason);
    }
    table->count = kept;
    return result;
}

static void warn_of_ignored(const char *name, const struct ignored *ignored, const struct gj_log *log)
{
    const gj_error *const reason = ignored->reason;
    if (ignored->count > 0)
        gj_log_printf(log, GJ_LOG_WARNING,
                      "tuning table %s: %zu entr%s ignored, first entries[%d]: config is refused: %s", name,
                      ignored->count, ignored->count == 1 ? "y is" : "ies are", ignored->first,
                      reason == NULL            ? "no memory for the reason"
                      : reason->num_reasons > 0 ? reason->reasons[0]
                                                : reason->message);
}

/* Adds a table that was read with this outcome; takes reason. False when memory runs out. */
static bool add_table(struct gj_tuning *tuning, const char *name, enum gj_status status,
                      struct gj_tuning_table *table, gj_error *reason, const struct gj_log *log)
{
    struct ignored ignored = {0};
    if (status != GJ_OK && status != GJ_ERR_NO_MEMORY)
        gj_log_printf(log, GJ_LOG_WARNING, "tuning table left out: %s",
                      reason != NULL ? reason->message : name);
    gj_error_free(&reason);
    if (status != GJ_OK)
        return status != GJ_ERR_NO_MEMORY;
    status = drop_refused(table, &ignored);
    warn_of_ignored(name, &ignored, log);
    gj_error_free(&ignored.reason);
    struct gj_tuning_table *const grown =
        status == GJ_OK ? realloc(tuning->tables, (tuning->num_tables + 1) * sizeof *grown) : NULL;
    if (grown == NULL) {
        gj_tuning_table_free(table);
        return false;
    }
    tuning->tables = grown;
    tuning->tables[tuning->num_tables++] = *table;
    return true;
}

static bool add_file(struct gj_tuning *tuning, const char *path, const struct gj_log *log)
{
    struct gj_tuning_table table = {0};
    gj_error *reason = NULL;
    const enum gj_status status = gj_tuning_read(path, &table, &reason);
    return add_table(tuning, path, status, &table, reason, log);
}

static bool add_builtin(struct gj_tuning *tuning, size_t i, const struct gj_log *log)
{
    struct gj_tuning_table table = {0};
    struct gj_strbuf text = {0};
    gj_error *reason = NULL;
    gj_strbuf_puts(&text, builtin[i].text);
    enum gj_status status = GJ_ERR_NO_MEMORY;
    if (!text.failed)
        status = gj_tuning_parse(builtin[i].name, &text, &table, &reason);
    gj_strbuf_free(&text);
    return add_table(tuning, builtin[i].name, status, &table, reason, log);
}

/* Paths separated by ':'; empty ones are none. */
static bool add_list(struct gj_tuning *tuning, const char *list, const struct gj_log *log)
{
    char *const copy = strdup(list);
    char *rest = copy;
    bool done = copy != NULL;
    for (const char *path; done && (path = strsep(&rest, ":")) != NULL;)
        done = path[0] == '\0' || add_file(tuning, path, log);
    free(copy);
    return done;
}

bool gj_tuning_open(struct gj_tuning *tuning, const char *list, const struct gj_log *log)
{
    *tuning = (struct gj_tuning){0};
    if (list == NULL && !gj_env_is_empty(GJ_ENV_TUNING)) {
        list = gj_env_get(GJ_ENV_TUNING);
        list = list != NULL ? list : ":";
    }
    if (list == NULL || list[0] == '\0')
        return true;
    bool done = add_list(tuning, list, log);
    for (size_t i = 0; done && i < sizeof builtin / sizeof builtin[0]; i++)
        done = add_builtin(tuning, i, log);
    return done;
}

void gj_tuning_free(struct gj_tuning *tuning)
{
    for (size_t i = 0; i < tuning->num_tables; i++)
        gj_tuning_table_free(&tuning->tables[i]);
    free(tuning->tables);
    *tuning = (struct gj_tuning){0};
}
