/* SPDX-License-Identifier: Apache-2.0 */
/* Compares plans and units with the files of tests/golden, byte for byte. With the argument --write it
 * rewrites those files instead; tests/golden/update_goldens.sh does that. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/unit.h"

#define NAME_MAX_LENGTH 63
#define GOLDENS_MAX 64

struct golden {
    char name[NAME_MAX_LENGTH + 1];
    struct gj_key key;
};

static struct golden goldens[GOLDENS_MAX];
static size_t num_goldens;

static void golden_path(char *path, size_t capacity, const char *name, const char *suffix)
{
    assert_true((size_t)snprintf(path, capacity, "%s/%s%s", GOLDEN_DIR, name, suffix) < capacity);
}

/* Reads keys.txt: one NAME KEY per line, # begins a comment line. */
static int read_keys(void **state)
{
    (void)state;
    char path[4096], line[512];
    golden_path(path, sizeof path, "keys", ".txt");
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        struct golden *const golden = &goldens[num_goldens];
        char key[400];
        if (line[0] == '#')
            continue;
        assert_true(num_goldens < GOLDENS_MAX);
        assert_int_equal(sscanf(line, "%63s %399s", golden->name, key), 2);
        gj_error *error = NULL;
        if (gj_key_parse(key, &golden->key, &error) != GJ_OK || gj_key_check(&golden->key, &error) != GJ_OK)
            fail_msg("%s: %s", line, error ? error->message : "no message");
        num_goldens++;
    }
    assert_int_equal(fclose(file), 0);
    return 0;
}

/* The text of a golden's plan or unit. Free it with free. */
static char *make_text(const struct golden *golden, const char *suffix)
{
    struct gj_plan plan;
    gj_plan_make(&golden->key, &plan);
    if (strcmp(suffix, ".plan") == 0) {
        struct gj_strbuf text = {0};
        gj_plan_format(&plan, &text);
        return gj_strbuf_take(&text);
    }
    struct gj_unit unit;
    gj_error *error = NULL;
    if (gj_unit_make(&plan, NULL, NULL, &unit, &error) != GJ_OK)
        fail_msg("%s: %s", golden->name, error ? error->message : "no message");
    char *const text = strdup(unit.text);
    gj_unit_free(&unit);
    return text;
}

static char *read_text(const char *path)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    struct gj_strbuf text = {0};
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        gj_strbuf_add(&text, block, got);
    fclose(file);
    return gj_strbuf_take(&text);
}

/* Prints the first line in which two texts differ. */
static void print_difference(const char *path, const char *expected, const char *got)
{
    int line = 1;
    while (*expected != '\0' && *got != '\0') {
        const size_t length = strcspn(expected, "\n");
        if (strcspn(got, "\n") != length || memcmp(expected, got, length) != 0)
            break;
        expected += length + (expected[length] == '\n');
        got += length + (got[length] == '\n');
        line++;
    }
    print_error("%s:%d\n  golden:    %.*s\n  generated: %.*s\n", path, line, (int)strcspn(expected, "\n"),
                expected, (int)strcspn(got, "\n"), got);
}

static void compare(const char *suffix)
{
    int different = 0;
    for (size_t i = 0; i < num_goldens; i++) {
        char path[4096];
        golden_path(path, sizeof path, goldens[i].name, suffix);
        char *const expected = read_text(path), *const got = make_text(&goldens[i], suffix);
        assert_non_null(got);
        if (expected == NULL) {
            print_error("%s is missing\n", path);
            different++;
        } else if (strcmp(expected, got) != 0) {
            print_difference(path, expected, got);
            different++;
        }
        free(expected);
        free(got);
    }
    if (different > 0)
        fail_msg(
            "%d files differ; if that is meant, run tests/golden/update_goldens.sh and commit the difference",
            different);
}

static void plans_are_golden(void **state)
{
    (void)state;
    compare(".plan");
}

static void units_are_golden(void **state)
{
    (void)state;
    compare(".cu");
}

/* Every .plan and .cu of the directory belongs to a line of keys.txt. */
static void no_file_is_left_over(void **state)
{
    (void)state;
    DIR *const directory = opendir(GOLDEN_DIR);
    assert_non_null(directory);
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *const dot = strrchr(entry->d_name, '.');
        if (dot == NULL || (strcmp(dot, ".plan") != 0 && strcmp(dot, ".cu") != 0))
            continue;
        const size_t length = (size_t)(dot - entry->d_name);
        size_t i = 0;
        while (i < num_goldens &&
               (strlen(goldens[i].name) != length || strncmp(goldens[i].name, entry->d_name, length) != 0))
            i++;
        if (i == num_goldens)
            fail_msg("%s is not in keys.txt", entry->d_name);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 2 * num_goldens);
}

static void write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_goldens(void **state)
{
    (void)state;
    static const char *const suffixes[] = {".plan", ".cu"};
    for (size_t i = 0; i < num_goldens; i++) {
        for (size_t s = 0; s < 2; s++) {
            char path[4096];
            golden_path(path, sizeof path, goldens[i].name, suffixes[s]);
            char *const text = make_text(&goldens[i], suffixes[s]);
            assert_non_null(text);
            write_file(path, text);
            free(text);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_golden),
        cmocka_unit_test(units_are_golden),
        cmocka_unit_test(no_file_is_left_over),
    };
    const struct CMUnitTest writes[] = {cmocka_unit_test(write_goldens)};
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return cmocka_run_group_tests_name("golden files", writes, read_keys, NULL);
    return cmocka_run_group_tests_name("golden", tests, read_keys, NULL);
}
