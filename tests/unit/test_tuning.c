/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning tables: classes of M, what the reader takes and refuses, the order of tables, and the choice of a
 * context. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "key/config.h"
#include "tuning/tuning.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PROBLEM                                                                                   \
    "op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,batch=dense," \
    "gather=none"
#define HEAD "{\"format\": \"gemmjit-tuning\", \"version\": 1, \"entries\": ["
#define TAIL "]}"
#define PLACE \
    "\"gpu\": \"G\", \"num_sms\": 132, \"problem\": \"" PROBLEM "\", \"n\": 512, \"k\": 256, \"batch\": 1, "
#define TIMES "\"us\": 9.5, \"default_us\": 10, \"measured\": \"2026-12-01\""
#define CONFIG "tile=64x64,cluster=1x1,sched=coop"
#define ENTRY "{" PLACE "\"m_class\": 64, \"config\": \"" CONFIG "\", " TIMES "}"

/* -- Classes ------------------------------------------------------------------------------------------- */

static void classes(void **state)
{
    (void)state;
    static const int64_t known[][2] = {{1, 8},       {8, 8},       {9, 16},      {17, 24},     {33, 40},
                                       {64, 64},     {65, 128},    {129, 192},   {193, 256},   {257, 320},
                                       {513, 640},   {2049, 2560}, {3584, 3584}, {3585, 4096}, {4096, 4096},
                                       {4097, 5120}, {-5, 8},      {0, 8}};
    for (size_t i = 0; i < COUNT(known); i++)
        assert_int_equal(gj_tuning_m_class(known[i][0]), known[i][1]);
    int64_t last = 0;
    int num_classes = 0;
    for (int64_t m = 1; m <= 1 << 20; m++) {
        const int64_t class = gj_tuning_m_class(m);
        assert_true(class >= m && class >= last && gj_tuning_m_class(class) == class);
        assert_true(m <= 64 || class - m < 64 || 4 * (class - m) < m); /* what a class wastes */
        num_classes += class != last;
        last = class;
    }
    assert_int_equal(num_classes, 8 + 3 + 4 * 12); /* up to 64, up to 256, then four to a doubling */
}

static void classes_of_huge_numbers(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int64_t m = 1; m < INT64_MAX / 3; m = 3 * m + 1) {
        const int64_t class = gj_tuning_m_class(m);
        assert_true(class >= m && class >= last && gj_tuning_m_class(class) == class);
        last = class;
    }
    assert_int_equal(gj_tuning_m_class(2147479551), INT64_C(1) << 31);
    assert_int_equal(gj_tuning_m_class(INT64_MAX), INT64_MAX);
    assert_int_equal(gj_tuning_m_class(INT64_MAX - 1), INT64_MAX);
    assert_int_equal(gj_tuning_m_class(INT64_MIN), 8);
}

/* -- Reader -------------------------------------------------------------------------------------------- */

static enum gj_status parse(const char *text, size_t bytes, struct gj_tuning_table *table, gj_error **error)
{
    struct gj_strbuf buffer = {0};
    gj_strbuf_add(&buffer, text, bytes);
    const enum gj_status status = gj_tuning_parse("T", &buffer, table, error);
    gj_strbuf_free(&buffer);
    return status;
}

static void a_good_table(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "{" PLACE "\"m_class\": 128, \"config\": \"tile=128x192\", " TIMES "}," ENTRY TAIL;
    struct gj_tuning_table table = {0};
    gj_error *error = NULL;
    if (parse(text, strlen(text), &table, &error) != GJ_OK)
        fail_msg("%s", error ? error->message : "no memory");
    assert_int_equal(table.count, 2);
    const struct gj_tuning_entry *const entry = &table.entries[0]; /* sorted */
    assert_int_equal(entry->index, 1);
    assert_string_equal(entry->place.gpu, "G");
    assert_int_equal(entry->place.num_sms, 132);
    assert_int_equal(entry->place.m_class, 64);
    assert_int_equal(entry->place.n, 512);
    assert_int_equal(entry->place.k, 256);
    assert_int_equal(entry->place.batch, 1);
    assert_string_equal(entry->measured, "2026-12-01");
    assert_true(entry->us > 9.4 && entry->us < 9.6 && entry->default_us > 9.9);
    struct gj_key key;
    assert_int_equal(gj_key_parse(CONFIG, &key, NULL), GJ_OK);
    assert_memory_equal(&entry->key, &key, sizeof key);
    const struct gj_key problem = gj_key_problem(&key);
    assert_memory_equal(&entry->place.problem, &problem, sizeof problem);
    assert_memory_equal(&table.entries[1].key, &problem, sizeof problem);
    assert_ptr_equal(gj_tuning_table_find(&table, &entry->place), entry);
    gj_tuning_table_free(&table);
    assert_int_equal(table.count, 0);
}

struct refusal {
    const char *text, *message;
};

static void check_refused(const char *text, size_t bytes, const char *message)
{
    struct gj_tuning_table table = {0};
    gj_error *error = NULL;
    assert_int_equal(parse(text, bytes, &table, &error), GJ_ERR_ARGUMENT);
    assert_non_null(error);
    if (strncmp(error->message, message, strlen(message)) != 0)
        fail_msg("%s\ninstead of %s", error->message, message);
    assert_null(table.entries);
    gj_error_free(&error);
    assert_int_equal(parse(text, bytes, &table, NULL), GJ_ERR_ARGUMENT);
}

static void broken_heads(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {"", "T:1:1: this is not JSON"},
        {"{\n}x", "T:2:2: this is not JSON"},
        {"[]", "T: the document is not an object"},
        {"{}", "T: member format is missing"},
        {"{\"format\": \"gemmjit-tuning\", \"version\": 1}", "T: member entries is missing"},
        {"{\"format\": \"x\", \"version\": 1, \"entries\": []}", "T: format is not \"gemmjit-tuning\""},
        {"{\"format\": 3, \"version\": 1, \"entries\": []}", "T: format is not \"gemmjit-tuning\""},
        {"{\"format\": \"gemmjit-tuning\", \"version\": 2, \"entries\": []}", "T: version is not 1"},
        {"{\"format\": \"gemmjit-tuning\", \"version\": 1e999, \"entries\": []}", "T: version is not 1"},
        {"{\"format\": \"gemmjit-tuning\", \"version\": 1, \"entries\": {}}", "T: entries is not an array"},
        {"{\"version\": 1, \"version\": 1}", "T: member version is given twice"},
        {"{\"name\": 1}", "T: unknown member \"name\": the members are format, version, entries"},
        {HEAD "\"\\u0000\"" TAIL, "T:1:"},
    };
    for (size_t i = 0; i < COUNT(refusals); i++)
        check_refused(refusals[i].text, strlen(refusals[i].text), refusals[i].message);
    check_refused(HEAD "\0" TAIL, sizeof(HEAD "\0" TAIL) - 1, "T:1:56: this is not JSON");
    static char deep[200001];
    memset(deep, '[', sizeof deep - 1);
    check_refused(deep, strlen(deep), "T:1:");
}

/* What replaces a piece of a good entry, and what is said then. */
static void broken_entries(void **state)
{
    (void)state;
    static const struct {
        const char *piece, *other, *message;
    } cases[] = {
        {ENTRY, "7", "this is not an object"},
        {"\"gpu\": \"G\", ", "", "member gpu is missing"},
        {"\"gpu\": \"G\", ", "\"gpu\": \"G\", \"gpu\": \"G\", ", "member gpu is given twice"},
        {"\"gpu\"", "\"gpus\"", "unknown member \"gpus\""},
        {"\"G\"", "\"\"", "gpu \"\" is not a name of 1 to 255 bytes"},
        {"\"G\"", "5", "gpu is not a text"},
        {"132", "0", "num_sms is not a whole number from 1 to 65535"},
        {"132", "1e999", "num_sms is not a whole number from 1 to 65535"},
        {"132", "\"132\"", "num_sms is not a whole number from 1 to 65535"},
        {"512", "512.5", "n is not a whole number from 1 to 2147479551"},
        {"512", "-512", "n is not a whole number from 1 to 2147479551"},
        {"256", "2147479552", "k is not a whole number from 1 to 2147479551"},
        {"\"batch\": 1", "\"batch\": null", "batch is not a whole number from 1 to 2147479551"},
        {"\"m_class\": 64", "\"m_class\": 63", "m_class 63 is no class: the next one is 64"},
        {"\"m_class\": 64", "\"m_class\": 1e300", "m_class is not a whole number from 1 to 2147483648"},
        {"op=gemm,", "op=gem,", "problem: op=gem: allowed is"},
        {"op=gemm,", "", "problem \"a=bf16.k"},
        {"gather=none", "gather=none,tile=64x64", "problem \"op=gemm"},
        {"\"" CONFIG, "\"tile=64", "config: tile=64: allowed is"},
        {"\"" CONFIG, "\"tile=64x64,tile=64x64", "config: field tile is given twice"},
        {"\"" CONFIG, "\"op=gemm", "config: field op is given twice"},
        {"\"" CONFIG, "\"bias=row.f32", "config \"bias=row.f32\" has a field of the problem"},
        {"\"" CONFIG, "\"cluster=200x1", "config \"cluster=200x1\" needs more SMs than num_sms, 132"},
        {"\"" CONFIG "\"", "[]", "config is not a text"},
        {"9.5", "0", "us is not a number of microseconds above 0"},
        {"9.5", "\"9.5\"", "us is not a number of microseconds above 0"},
        {"\"default_us\": 10", "\"default_us\": 1e999", "default_us is not a number of microseconds above 0"},
        {"2026-12-01", "today", "measured \"today\" is not a date as 2026-12-31"},
        {"2026-12-01", "2026-12-0x", "measured \"2026-12-0x\" is not a date"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char good[] = ENTRY;
        char text[4096], message[512];
        const char *const at = strstr(good, cases[i].piece);
        assert_non_null(at);
        snprintf(text, sizeof text, HEAD "%.*s%s%s" TAIL, (int)(at - good), good, cases[i].other,
                 at + strlen(cases[i].piece));
        snprintf(message, sizeof message, "T: entries[0]: %s", cases[i].message);
        check_refused(text, strlen(text), message);
    }
    static const char twice[] = HEAD ENTRY ", " ENTRY TAIL;
    check_refused(twice, strlen(twice),
                  "T: entries[1]: gpu, num_sms, problem, n, k, batch and m_class are those of entries[0]");
}

/* -- Contexts ------------------------------------------------------------------------------------------ */

struct messages {
    int count;
    char last[4096];
};

static void note(void *user, enum gj_log_level level, const char *message)
{
    struct messages *const messages = user;
    if (level != GJ_LOG_WARNING)
        return;
    messages->count++;
    snprintf(messages->last, sizeof messages->last, "%s", message);
}

static char folder[64], first[96], second[96], both[256];

static void write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gemmjit-tuning.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(first, sizeof first, "%s/first.json", folder);
    snprintf(second, sizeof second, "%s/second.json", folder);
    snprintf(both, sizeof both, ":%s::%s:", first, second);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(first);
    unlink(second);
    return rmdir(folder);
}

static gj_context *open_context(const char *tuning, struct messages *messages)
{
    const struct gj_context_params params = {
        .no_disk_cache = 1, .log = note, .log_user = messages, .tuning = tuning};
    gj_context *context = NULL;
    *messages = (struct messages){0};
    assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
    return context;
}

/* Whether a context chooses this config of the default problem; NULL: that of the model. */
static bool chooses(const gj_context *context, int64_t m, const char *gpu, int num_sms, const char *config)
{
    struct gj_key problem = gj_key_default(), wanted, key;
    problem.tile_m = 9999; /* of no meaning */
    if (config != NULL)
        assert_int_equal(gj_key_parse(config, &wanted, NULL), GJ_OK);
    else
        assert_int_equal(gj_key_choose(&problem, m, 512, 256, 1, num_sms, &wanted, NULL), GJ_OK);
    assert_int_equal(gj_context_choose(context, &problem, m, 512, 256, 1, gpu, num_sms, &key, NULL), GJ_OK);
    return memcmp(&key, &wanted, sizeof key) == 0;
}

static void the_first_table_wins(void **state)
{
    (void)state;
    struct messages messages;
    write_file(first, HEAD ENTRY TAIL);
    write_file(second,
               HEAD "{" PLACE "\"m_class\": 64, \"config\": \"tile=128x128,cluster=1x1\", " TIMES "},{" PLACE
                    "\"m_class\": 8, \"config\": \"tile=64x96,cluster=1x2\", " TIMES "}" TAIL);
    gj_context *context = open_context(both, &messages);
    assert_int_equal(messages.count, 0);
    assert_true(chooses(context, 64, "G", 132, CONFIG));
    assert_true(chooses(context, 57, "G", 0, CONFIG));
    assert_true(chooses(context, 8, "G", 132, "tile=64x96,cluster=1x2"));
    assert_true(chooses(context, 9, "G", 132, NULL));
    assert_true(chooses(context, 65, "G", 132, NULL));
    assert_true(chooses(context, 64, "H", 132, NULL));
    assert_true(chooses(context, 64, "G", 131, NULL));
    assert_true(chooses(context, 64, NULL, 132, NULL));
    struct gj_key key, problem = gj_key_default();
    const int64_t shapes[][3] = {{513, 256, 1}, {512, 255, 1}, {512, 256, 2}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct gj_key model;
        gj_key_choose(&problem, 64, shapes[i][0], shapes[i][1], shapes[i][2], 132, &model, NULL);
        gj_context_choose(context, &problem, 64, shapes[i][0], shapes[i][1], shapes[i][2], "G", 132, &key,
                          NULL);
        assert_memory_equal(&key, &model, sizeof key);
    }
    problem.batch = GJ_BATCH_VARLEN_M;
    gj_error *error = NULL;
    assert_int_equal(gj_context_choose(context, &problem, 64, 512, 256, 1, "G", 132, &key, &error),
                     GJ_ERR_UNSUPPORTED);
    gj_error_free(&error);
    gj_context_close(&context);
}

static void the_environment_names_tables(void **state)
{
    (void)state;
    struct messages messages;
    write_file(first, HEAD ENTRY TAIL);
    setenv("GEMMJIT_TUNING", first, 1);
    gj_context *context = open_context(NULL, &messages);
    assert_true(chooses(context, 64, "G", 132, CONFIG));
    gj_context_close(&context);
    context = open_context("", &messages);
    assert_true(chooses(context, 64, "G", 132, NULL));
    gj_context_close(&context);
    unsetenv("GEMMJIT_TUNING");
    context = open_context(NULL, &messages);
    assert_true(chooses(context, 64, "G", 132, NULL));
    gj_context_close(&context);
}

static void built_in_tables_come_last(void **state)
{
    (void)state;
    const struct gj_log silent = {0};
    struct gj_tuning tuning;
    write_file(first, HEAD ENTRY TAIL);
    assert_true(gj_tuning_open(&tuning, first, &silent));
    const size_t num_tables = tuning.num_tables;
    assert_true(num_tables > 1);
    assert_int_equal(tuning.tables[0].count, 1);
    gj_tuning_free(&tuning);
    setenv("GEMMJIT_TUNING", "", 1);
    assert_true(gj_tuning_open(&tuning, NULL, &silent));
    assert_int_equal(tuning.num_tables, 0);
    unsetenv("GEMMJIT_TUNING");
    assert_true(gj_tuning_open(&tuning, NULL, &silent));
    assert_int_equal(tuning.num_tables, num_tables - 1);
    gj_tuning_free(&tuning);
}

/* The table that ships is sound, and every config of it has a kernel. */
static void built_in_tables_are_whole(void **state)
{
    (void)state;
    struct messages messages;
    gj_context *context = open_context(":", &messages);
    if (messages.count != 0)
        fail_msg("%s", messages.last);
    gj_context_close(&context);
}

static void what_cannot_be_used_is_left_out(void **state)
{
    (void)state;
    struct messages messages;
    char wanted[256];
    write_file(first, HEAD "{}" TAIL);
    write_file(second, HEAD ENTRY TAIL);
    gj_context *context = open_context(both, &messages);
    assert_int_equal(messages.count, 1);
    snprintf(wanted, sizeof wanted, "tuning table left out: %s: entries[0]: member gpu is missing", first);
    assert_string_equal(messages.last, wanted);
    assert_true(chooses(context, 64, "G", 132, CONFIG));
    gj_context_close(&context);
    unlink(first);
    context = open_context(both, &messages);
    assert_int_equal(messages.count, 1);
    snprintf(wanted, sizeof wanted, "tuning table left out: %s cannot be read: No such file or directory",
             first);
    assert_string_equal(messages.last, wanted);
    assert_true(chooses(context, 64, "G", 132, CONFIG));
    gj_context_close(&context);
}

/* A config that is refused is as if it were not there; one warning tells of all. */
static void refused_configs_are_ignored(void **state)
{
    (void)state;
    struct messages messages;
    char wanted[256];
    write_file(first, HEAD "{" PLACE "\"m_class\": 128, \"config\": \"tile=512x512\", " TIMES "},{" PLACE
                           "\"m_class\": 64, \"config\": \"tile=1000x8\", " TIMES "},{" PLACE
                           "\"m_class\": 8, \"config\": \"" CONFIG "\", " TIMES "}" TAIL);
    write_file(second, HEAD ENTRY TAIL);
    gj_context *context = open_context(both, &messages);
    assert_int_equal(messages.count, 1);
    snprintf(wanted, sizeof wanted,
             "tuning table %s: 2 entries are ignored, first entries[0]: config is refused: tile=512x512",
             first);
    if (strncmp(messages.last, wanted, strlen(wanted)) != 0)
        fail_msg("%s", messages.last);
    assert_true(chooses(context, 128, "G", 132, NULL));
    assert_true(chooses(context, 64, "G", 132, CONFIG)); /* of the second table */
    assert_true(chooses(context, 8, "G", 132, CONFIG));
    gj_context_close(&context);
}

static void which_entries_apply_to_a_model(void **state)
{
    (void)state;
    static const char text[] = HEAD ENTRY TAIL;
    struct gj_tuning_table table = {0};
    const struct gj_key problem = gj_key_default();
    assert_int_equal(parse(text, strlen(text), &table, NULL), GJ_OK);
    const struct gj_tuning_entry *const entry = &table.entries[0];
    assert_true(gj_tuning_entry_applies(entry, 132, &problem, 57, 512, 256, 1));
    assert_false(gj_tuning_entry_applies(entry, 132, &problem, 56, 512, 256, 1));
    assert_false(gj_tuning_entry_applies(entry, 78, &problem, 64, 512, 256, 1));
    assert_false(gj_tuning_entry_applies(entry, 132, &problem, 64, 511, 256, 1));
    assert_false(gj_tuning_entry_applies(entry, 132, &problem, 64, 512, 255, 1));
    assert_false(gj_tuning_entry_applies(entry, 132, &problem, 64, 512, 256, 2));
    gj_tuning_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),
        cmocka_unit_test(classes_of_huge_numbers),
        cmocka_unit_test(a_good_table),
        cmocka_unit_test(broken_heads),
        cmocka_unit_test(broken_entries),
        cmocka_unit_test(the_first_table_wins),
        cmocka_unit_test(the_environment_names_tables),
        cmocka_unit_test(built_in_tables_come_last),
        cmocka_unit_test(built_in_tables_are_whole),
        cmocka_unit_test(what_cannot_be_used_is_left_out),
        cmocka_unit_test(refused_configs_are_ignored),
        cmocka_unit_test(which_entries_apply_to_a_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
