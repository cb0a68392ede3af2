/* SPDX-License-Identifier: Apache-2.0 */
/* One entry of a table, member by member. */
#include <stdlib.h>
#include <string.h>

#include "base/error_build.h"
#include "base/utf8.h"
#include "key/config.h"
#include "tuning/tuning_impl.h"

#define SMS_MAX 65535
#define EXTENT_MAX 2147479551.0    /* GJ_EXTENT_MAX of cuda/args.h */
#define M_CLASS_MAX 2147483648.0   /* its class */
#define MICROSECONDS_MAX 1000000e6 /* more than any launch takes */
#define GPU_BYTES_MAX 255

enum member { GPU, NUM_SMS, PROBLEM, N, K, BATCH, M_CLASS, CONFIG, US, DEFAULT_US, MEASURED, NUM_MEMBERS };
static const char *const names[NUM_MEMBERS] = {
    "gpu", "num_sms", "problem", "n", "k", "batch", "m_class", "config", "us", "default_us", "measured"};

/* An entry that is being read. */
struct reading {
    const char *name; /* of the table */
    int index;
    const cJSON *members[NUM_MEMBERS];
};

#define FAIL_ENTRY(reading, error, format, ...)                                                 \
    GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s: entries[%d]: " format, (reading)->name, \
            (reading)->index, __VA_ARGS__)

#define QUOTE(input) gj_utf8_quote((input), strlen(input)).text

static enum gj_status find_members(struct reading *reading, const cJSON *item, gj_error **error)
{
    if (!cJSON_IsObject(item))
        FAIL_ENTRY(reading, error, "%s", "this is not an object");
    for (const cJSON *member = item->child; member != NULL; member = member->next) {
        int i = 0;
        while (i < NUM_MEMBERS && strcmp(member->string, names[i]) != 0)
            i++;
        if (i == NUM_MEMBERS)
            FAIL_ENTRY(reading, error, "unknown member \"%s\"", QUOTE(member->string));
        if (reading->members[i] != NULL)
            FAIL_ENTRY(reading, error, "member %s is given twice", names[i]);
        reading->members[i] = member;
    }
    for (int i = 0; i < NUM_MEMBERS; i++)
        if (reading->members[i] == NULL)
            FAIL_ENTRY(reading, error, "member %s is missing", names[i]);
    return GJ_OK;
}

static enum gj_status read_text(const struct reading *reading, enum member member, const char **text,
                                gj_error **error)
{
    const cJSON *const item = reading->members[member];
    if (!cJSON_IsString(item))
        FAIL_ENTRY(reading, error, "%s is not a text", names[member]);
    *text = item->valuestring;
    return GJ_OK;
}

static enum gj_status read_count(const struct reading *reading, enum member member, double most,
                                 int64_t *count, gj_error **error)
{
    const cJSON *const item = reading->members[member];
    const double value = item->valuedouble;
    if (!cJSON_IsNumber(item) || !(value >= 1 && value <= most) || (double)(int64_t)value < value)
        FAIL_ENTRY(reading, error, "%s is not a whole number from 1 to %.0f", names[member], most);
    *count = (int64_t)value;
    return GJ_OK;
}

static enum gj_status read_us(const struct reading *reading, enum member member, double *us, gj_error **error)
{
    const cJSON *const item = reading->members[member];
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0 && item->valuedouble <= MICROSECONDS_MAX))
        FAIL_ENTRY(reading, error, "%s is not a number of microseconds above 0 and up to %.0f", names[member],
                   MICROSECONDS_MAX);
    *us = item->valuedouble;
    return GJ_OK;
}

static enum gj_status read_gpu(const struct reading *reading, struct gj_tuning_place *place, gj_error **error)
{
    const char *text = NULL;
    int64_t num_sms = 0;
    GJ_TRY(read_text(reading, GPU, &text, error));
    if (*text == '\0' || strlen(text) > GPU_BYTES_MAX)
        FAIL_ENTRY(reading, error, "gpu \"%s\" is not a name of 1 to %d bytes", QUOTE(text), GPU_BYTES_MAX);
    GJ_TRY(read_count(reading, NUM_SMS, SMS_MAX, &num_sms, error));
    place->num_sms = (int)num_sms;
    place->gpu = strdup(text);
    if (place->gpu == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for a tuning table");
    return GJ_OK;
}

/* The sentence of a text that is no key, as one of the entry. */
static enum gj_status fail_key(const struct reading *reading, enum member member, enum gj_status status,
                               gj_error *cause, gj_error **error)
{
    if (status != GJ_ERR_NO_MEMORY)
        status = gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, 0, "", "%s: entries[%d]: %s: %s",
                               reading->name, reading->index, names[member],
                               cause != NULL ? cause->message : "this is not key text");
    gj_error_free(&cause);
    return status;
}

static enum gj_status parse_key(const struct reading *reading, enum member member, const char *text,
                                struct gj_key *key, gj_error **error)
{
    gj_error *cause = NULL;
    const enum gj_status status = gj_key_parse(text, key, &cause);
    return status == GJ_OK ? GJ_OK : fail_key(reading, member, status, cause, error);
}

/* The problem in its one canonical spelling, so that equal problems are equal texts. */
static enum gj_status read_problem(const struct reading *reading, struct gj_key *problem, gj_error **error)
{
    const char *text = NULL;
    char canonical[GJ_KEY_TEXT_MAX];
    GJ_TRY(read_text(reading, PROBLEM, &text, error));
    GJ_TRY(parse_key(reading, PROBLEM, text, problem, error));
    gj_key_format_part(problem, GJ_KEY_PROBLEM, canonical, sizeof canonical);
    if (strcmp(text, canonical) != 0)
        FAIL_ENTRY(reading, error, "problem \"%s\" is not spelt as \"%s\"", QUOTE(text), canonical);
    return GJ_OK;
}

/* The fields of a config behind those of the problem. */
static enum gj_status read_config(const struct reading *reading, const struct gj_key *problem,
                                  struct gj_key *key, gj_error **error)
{
    const char *config = NULL;
    GJ_TRY(read_text(reading, CONFIG, &config, error));
    struct gj_strbuf text = {0};
    gj_strbuf_printf(&text, "%s,%s", reading->members[PROBLEM]->valuestring, config);
    enum gj_status status = GJ_ERR_NO_MEMORY;
    if (!text.failed)
        status = parse_key(reading, CONFIG, text.text, key, error);
    gj_strbuf_free(&text);
    GJ_TRY(status);
    const struct gj_key other = gj_key_problem(key);
    if (memcmp(&other, problem, sizeof other) != 0)
        FAIL_ENTRY(reading, error, "config \"%s\" has a field of the problem", QUOTE(config));
    const int num_sms = (int)reading->members[NUM_SMS]->valuedouble; /* read_gpu has judged it */
    if (key->cluster_m * key->cluster_n > num_sms)
        FAIL_ENTRY(reading, error, "config \"%s\" needs more SMs than num_sms, %d", QUOTE(config), num_sms);
    return GJ_OK;
}

static enum gj_status read_shape(const struct reading *reading, struct gj_tuning_place *place,
                                 gj_error **error)
{
    GJ_TRY(read_count(reading, N, EXTENT_MAX, &place->n, error));
    GJ_TRY(read_count(reading, K, EXTENT_MAX, &place->k, error));
    GJ_TRY(read_count(reading, BATCH, EXTENT_MAX, &place->batch, error));
    GJ_TRY(read_count(reading, M_CLASS, M_CLASS_MAX, &place->m_class, error));
    if (gj_tuning_m_class(place->m_class) != place->m_class)
        FAIL_ENTRY(reading, error, "m_class %lld is no class: the next one is %lld",
                   (long long)place->m_class, (long long)gj_tuning_m_class(place->m_class));
    return GJ_OK;
}

static enum gj_status read_date(const struct reading *reading, char date[GJ_TUNING_DATE_MAX],
                                gj_error **error)
{
    static const char form[] = "0000-00-00";
    const char *text = NULL;
    GJ_TRY(read_text(reading, MEASURED, &text, error));
    bool sound = strlen(text) == strlen(form);
    for (size_t i = 0; sound && form[i] != '\0'; i++)
        sound = form[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
    if (!sound)
        FAIL_ENTRY(reading, error, "measured \"%s\" is not a date as 2026-12-31", QUOTE(text));
    memcpy(date, text, sizeof form);
    return GJ_OK;
}

enum gj_status gj_tuning_entry_read(const char *name, const cJSON *item, struct gj_tuning_entry *entry,
                                    gj_error **error)
{
    struct reading reading = {.name = name, .index = entry->index};
    GJ_TRY(find_members(&reading, item, error));
    GJ_TRY(read_gpu(&reading, &entry->place, error));
    GJ_TRY(read_problem(&reading, &entry->place.problem, error));
    GJ_TRY(read_config(&reading, &entry->place.problem, &entry->key, error));
    GJ_TRY(read_shape(&reading, &entry->place, error));
    GJ_TRY(read_us(&reading, US, &entry->us, error));
    GJ_TRY(read_us(&reading, DEFAULT_US, &entry->default_us, error));
    return read_date(&reading, entry->measured, error);
}
