/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of generated units: the same bytes always, nothing of the generator's language left, nothing unused,
 * and each line traced to its template. What the code does is for the nvrtc and gpu tests to say. */
#include <locale.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "generate/unit.h"
#include "template_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS_MAX 8192

/* Every accepted key of these problems. */
static const char *const problems[] = {"",
                                       "a=f16.k,b=f16.k,d=f16.n",
                                       "d=f32.n",
                                       "a=f16.k,b=f16.k,d=bf16.n",
                                       "op=act,act=gelu_tanh,d=none,bias=col.bf16",
                                       "op=dact,act=gelu_erf,c=f16.m,d=f32.n,p=e4m3.m,quant=amax",
                                       "op=gated,act=swiglu,c=bf16.n,beta=host,bias=row.f32",
                                       "op=gated,act=glu,gate=halves,d=none,p=f32.n,scale=row_col",
                                       "op=dgated,act=swiglu_oai,c=bf16.n,d=f16.n",
                                       "a=e4m3.k,b=e5m2.k,d=e4m3.m,alpha=device,scale=tensor,quant=scale"};
static struct gj_key *keys;
static size_t num_keys;

static int collect_keys(void **state)
{
    (void)state;
    keys = calloc(KEYS_MAX, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < COUNT(problems); i++) {
        struct gj_key problem;
        if (gj_key_parse(problems[i], &problem, NULL) != GJ_OK)
            return 1;
        num_keys += gj_keys_enumerate(&problem, keys + num_keys, KEYS_MAX - num_keys);
    }
    return keys == NULL || num_keys == 0 || num_keys > KEYS_MAX;
}

static int free_keys(void **state)
{
    (void)state;
    free(keys);
    return 0;
}

static struct gj_unit unit_of(const struct gj_key *key, const struct gj_assets *assets)
{
    struct gj_plan plan;
    struct gj_unit unit;
    gj_error *error = NULL;
    gj_plan_make(key, &plan);
    if (gj_unit_make(&plan, assets, NULL, &unit, &error) != GJ_OK)
        fail_msg("%s: %s", plan.entry_name, error ? error->message : "no message");
    assert_int_equal(strlen(unit.text), unit.length);
    return unit;
}

/* Calls check with the unit of every 7th key: by turns all clusters, all over the tiles. */
static void for_units(void (*check)(const struct gj_key *, const struct gj_unit *))
{
    for (size_t i = 0; i < num_keys; i += 7) {
        struct gj_unit unit = unit_of(&keys[i], NULL);
        check(&keys[i], &unit);
        gj_unit_free(&unit);
    }
}

/* -- determinism ----------------------------------------------------------------------------------------- */

static void assert_same_units(char *const *texts, const struct gj_assets *assets)
{
    for (size_t i = num_keys; i-- > 0;) {
        struct gj_unit unit = unit_of(&keys[i], assets);
        assert_string_equal(unit.text, texts[i]);
        gj_unit_free(&unit);
    }
}

/* The other way round, in other locales, from another directory, with the same templates from elsewhere. */
static void units_are_the_same_bytes(void **state)
{
    (void)state;
    static const char *const locales[] = {"C.UTF-8",     "de_DE.UTF-8", "tr_TR.UTF-8",
                                          "hi_IN.UTF-8", "en_US.UTF-8", "fr_FR.ISO-8859-1"};
    char **const texts = calloc(num_keys, sizeof *texts);
    assert_non_null(texts);
    for (size_t i = 0; i < num_keys; i++) {
        struct gj_unit unit = unit_of(&keys[i], NULL);
        texts[i] = strdup(unit.text);
        gj_unit_free(&unit);
    }
    for (size_t i = 0; i < COUNT(locales); i++)
        if (setlocale(LC_ALL, locales[i]) != NULL)
            assert_same_units(texts, NULL);
    setlocale(LC_ALL, "C");

    char directory[4096];
    assert_non_null(getcwd(directory, sizeof directory));
    assert_int_equal(chdir("/"), 0);
    char *const scratch = scratch_create();
    struct gj_assets *assets = NULL;
    assert_int_equal(gj_assets_read(scratch, &assets, NULL), GJ_OK);
    assert_same_units(texts, assets);
    gj_assets_free(&assets);
    scratch_remove(scratch);
    assert_int_equal(chdir(directory), 0);
    for (size_t i = 0; i < num_keys; i++)
        free(texts[i]);
    free(texts);
}

/* -- what must not be there ------------------------------------------------------------------------------ */

static void assert_no_match(const char *pattern, const char *text)
{
    regex_t regex;
    regmatch_t match;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE), 0);
    if (regexec(&regex, text, 1, &match, 0) == 0)
        fail_msg("\"%s\" matches: %.80s", pattern, text + match.rm_so);
    regfree(&regex);
}

static void check_leftovers(const struct gj_key *key, const struct gj_unit *unit)
{
    (void)key;
    assert_no_match("^[ \t]*#[ \t]*(include|if|ifdef|ifndef|elif|else|endif|error|line)", unit->text);
    assert_no_match("^[ \t]*@(for|each|join|if|end)([^A-Za-z0-9_]|$)", unit->text);
    assert_null(strstr(unit->text, "${"));
    assert_null(strstr(unit->text, "#pragma once"));
    assert_null(strstr(unit->text, "SPDX"));
    assert_no_match("[ \t]$", unit->text);
    assert_no_match("\t", unit->text);
    assert_null(strstr(unit->text, "\n\n\n"));
    assert_int_equal(unit->text[unit->length - 1], '\n');
    for (size_t i = 0; i < unit->length; i++)
        assert_true(unit->text[i] == '\n' || (unit->text[i] >= ' ' && unit->text[i] <= '~'));
}

static void nothing_of_the_templates_language_is_left(void **state)
{
    (void)state;
    for_units(check_leftovers);
}

/* Templates may cite a date for a measurement; the generator itself writes none, nor anything of this run. */
static void check_traces(const struct gj_key *key, const struct gj_unit *unit)
{
    (void)key;
    assert_no_match("(^|[^A-Za-z0-9_.*/<])/[A-Za-z0-9_.-]+/", unit->text); /* absolute path */
    assert_no_match("0x[0-9a-fA-F]{9,}", unit->text);                      /* pointer */
    assert_no_match("[0-9]{1,2}:[0-9]{2}:[0-9]{2}", unit->text);           /* time */
    const char *at = unit->text;
    for (size_t i = 0; i < unit->num_lines; i++) {
        const size_t length = strcspn(at, "\n");
        if (unit->lines[i].asset == NULL) {
            char line[512];
            assert_true(length < sizeof line);
            snprintf(line, sizeof line, "%.*s", (int)length, at);
            assert_no_match("20[0-9]{2}-[0-9]{2}|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ", line);
        }
        at += length + 1;
    }
    assert_int_equal(*at, '\0');
}

static void units_say_nothing_of_where_and_when(void **state)
{
    (void)state;
    for_units(check_traces);
}

/* -- what must be there ---------------------------------------------------------------------------------- */

/* The text with comments blanked. */
static char *without_comments(const char *text)
{
    char *const code = strdup(text);
    assert_non_null(code);
    for (char *at = code; *at != '\0'; at++) {
        if (at[0] == '/' && at[1] == '/') {
            while (*at != '\n')
                *at++ = ' ';
        } else if (at[0] == '/' && at[1] == '*') {
            for (; at[0] != '*' || at[1] != '/'; at++)
                if (*at != '\n')
                    *at = ' ';
            at[0] = at[1] = ' ';
        }
    }
    return code;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int count_word(const char *text, const char *word, size_t length)
{
    int count = 0;
    for (const char *at = text; (at = memmem(at, strlen(at), word, length)) != NULL; at += length)
        count += (at == text || !is_name_char(at[-1])) && !is_name_char(at[length]);
    return count;
}

static void check_balance(const struct gj_key *key, const struct gj_unit *unit)
{
    (void)key;
    char *const code = without_comments(unit->text);
    static const char pairs[][3] = {"{}", "()", "[]"};
    for (size_t i = 0; i < COUNT(pairs); i++) {
        int depth = 0;
        for (const char *c = code; *c != '\0'; c++) {
            depth += (*c == pairs[i][0]) - (*c == pairs[i][1]);
            assert_true(depth >= 0);
        }
        assert_int_equal(depth, 0);
    }
    free(code);
}

static void brackets_balance(void **state)
{
    (void)state;
    for_units(check_balance);
}

/* A name that a pattern's first group finds is in the code at least twice: where it is defined and used. */
static int assert_names_used(const char *code, const char *pattern)
{
    regex_t regex;
    regmatch_t matches[3];
    int found = 0;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE), 0);
    for (const char *at = code; regexec(&regex, at, 3, matches, at == code ? 0 : REG_NOTBOL) == 0;) {
        const char *const name = at + matches[2].rm_so;
        const size_t length = (size_t)(matches[2].rm_eo - matches[2].rm_so);
        if (count_word(code, name, length) < 2)
            fail_msg("%.*s is not used", (int)length, name);
        found++;
        at = name + length;
    }
    regfree(&regex);
    return found;
}

static void check_use(const struct gj_key *key, const struct gj_unit *unit)
{
    (void)key;
    char *const code = without_comments(unit->text);
    assert_true(assert_names_used(code, "^(constexpr int |#define )([A-Za-z_0-9]+)") > 10);
    assert_true(assert_names_used(code, "^(struct |struct alignas\\([0-9]+\\) )([A-Za-z_0-9]+)") > 2);
    assert_true(assert_names_used(code, "^(template <.*> DEVICE|DEVICE)[^(]*[ *]([A-Za-z_0-9]+)\\(") > 10);
    /* and every UPPER_CASE name is defined */
    for (const char *at = code; *at != '\0'; at++) {
        if (!(*at >= 'A' && *at <= 'Z') || (at > code && is_name_char(at[-1])))
            continue;
        size_t length = 0;
        while (is_name_char(at[length]))
            length++;
        if (strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length && length > 1) {
            char constant[96], word[96];
            snprintf(constant, sizeof constant, "constexpr int %.*s =", (int)length, at);
            snprintf(word, sizeof word, "#define %.*s ", (int)length, at);
            char label[96];
            snprintf(label, sizeof label, "%.*s:", (int)length, at); /* of PTX */
            if (!strstr(code, constant) && !strstr(code, word) && !strstr(code, label))
                fail_msg("%.*s is not defined", (int)length, at);
        }
        at += length - 1;
    }
    free(code);
}

static void all_is_used_and_defined(void **state)
{
    (void)state;
    for_units(check_use);
}

static void check_header(const struct gj_key *key, const struct gj_unit *unit)
{
    struct gj_plan plan;
    char text[GJ_KEY_TEXT_MAX];
    gj_plan_make(key, &plan);
    gj_key_format(key, text, sizeof text);
    const size_t header = (size_t)(strstr(unit->text, "\n\n") - unit->text);
    const char *const key_at = strstr(unit->text, text);
    assert_true(strncmp(unit->text, "//", 2) == 0);
    assert_true(key_at != NULL && (size_t)(key_at - unit->text) < header);
    struct gj_strbuf table = {0};
    gj_plan_format(&plan, &table);
    for (char *rest = table.text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        const char *const at = strstr(unit->text, line);
        assert_true(at != NULL && (*line == '\0' || (size_t)(at - unit->text) < header));
    }
    gj_strbuf_free(&table);
    char definition[sizeof plan.entry_name + 32];
    snprintf(definition, sizeof definition, "#define KERNEL_NAME %s\n", plan.entry_name);
    assert_non_null(strstr(unit->text, definition));
    assert_non_null(strstr(unit->text, "extern \"C\" __global__"));
    /* a person reads it */
    assert_true(unit->num_lines > 250 && unit->num_lines < 2400);
}

static void the_unit_opens_with_key_and_plan(void **state)
{
    (void)state;
    for_units(check_header);
}

/* -- the line map ---------------------------------------------------------------------------------------- */

/* What stands before the first expansion of a template line, without its indentation. */
static void fixed_part(const char *line, size_t length, char *part, size_t capacity)
{
    const size_t indent = strspn(line, " ");
    const char *const open = memmem(line, length, "${", 2);
    const size_t end = open ? (size_t)(open - line) : length;
    snprintf(part, capacity, "%.*s", indent < end ? (int)(end - indent) : 0, line + indent);
}

static void check_line(const struct gj_unit *unit, int number, const char *line, size_t length)
{
    struct gj_location location = {.file = "untouched", .line = -1};
    const struct gj_unit_line *const from = &unit->lines[number - 1];
    const bool found = gj_unit_find_line(unit, number, &location);
    assert_int_equal(found, from->asset != NULL);
    if (!found) {
        assert_string_equal(location.file, "untouched");
        return;
    }
    assert_int_equal(location.unit_line, number);
    const struct gj_asset *const asset =
        gj_assets_find(gj_assets_builtin(), location.file, strlen(location.file));
    assert_non_null(asset);
    const char *source = asset->text;
    for (int i = 1; i < location.line; i++) {
        source = strchr(source, '\n');
        assert_non_null(source);
        source++;
    }
    const size_t source_length = strcspn(source, "\n");
    if (memmem(source, source_length, "${", 2) == NULL) {
        assert_int_equal(source_length, length);
        assert_memory_equal(source, line, length);
    } else {
        char part[256];
        fixed_part(source, source_length, part, sizeof part);
        if (memmem(line, length, part, strlen(part)) == NULL)
            fail_msg("line %d \"%.*s\" is not of %s:%d", number, (int)length, line, location.file,
                     location.line);
    }
}

static void check_line_map(const struct gj_key *key, const struct gj_unit *unit)
{
    (void)key;
    struct gj_location location;
    const char *at = unit->text;
    int traced = 0;
    for (size_t i = 0; i < unit->num_lines; i++) {
        const size_t length = strcspn(at, "\n");
        check_line(unit, (int)i + 1, at, length);
        traced += unit->lines[i].asset != NULL;
        at += length + 1;
    }
    assert_int_equal((size_t)(at - unit->text), unit->length);
    assert_true(traced > 200);
    assert_false(gj_unit_find_line(unit, 0, &location));
    assert_false(gj_unit_find_line(unit, -1, &location));
    assert_false(gj_unit_find_line(unit, (int)unit->num_lines + 1, &location));
}

static void lines_are_traced_to_templates(void **state)
{
    (void)state;
    for_units(check_line_map);
}

/* -- different keys -------------------------------------------------------------------------------------- */

static int compare_texts(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void assert_distinct(char **texts, size_t count)
{
    qsort(texts, count, sizeof *texts, compare_texts);
    for (size_t i = 1; i < count; i++)
        if (strcmp(texts[i - 1], texts[i]) == 0)
            fail_msg("two keys have the same text:\n%.200s", texts[i]);
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
}

/* Units, entry names and the code below the opening comment: no two keys have the same. */
static void different_keys_have_different_units(void **state)
{
    (void)state;
    char **const texts = calloc(num_keys, sizeof *texts), **const names = calloc(num_keys, sizeof *names);
    assert_true(texts != NULL && names != NULL);
    for (size_t i = 0; i < num_keys; i++) {
        struct gj_plan plan;
        gj_plan_make(&keys[i], &plan);
        struct gj_unit unit = unit_of(&keys[i], NULL);
        texts[i] = strdup(strstr(unit.text, "\n\n"));
        names[i] = strdup(plan.entry_name);
        gj_unit_free(&unit);
    }
    assert_distinct(texts, num_keys);
    assert_distinct(names, num_keys);
    free(texts);
    free(names);
}

/* -- templates from elsewhere ---------------------------------------------------------------------------- */

/* Texts that an unfinished edit may leave behind: a unit or an error, never a crash. */
static void odd_templates_are_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n",
        "}}}}\n\n{{{{\n",
        "struct\n\nstruct \n\nstruct alignas(\n\nstruct alignas(64\n\nstruct alignas(64)\n",
        "DEVICE\n\nDEVICE \n\nDEVICE (\n\nDEVICE x\n\ntemplate <\n\ntemplate <int a> DEVICE (\n",
        "/* never closed\n\nint a;\n",
        "// { \n\nint a; /* } */\n",
        "int TILE_M2, _TILE_M, TILE_M;",
    };
    const struct gj_key key = gj_key_default();
    struct gj_plan plan;
    gj_plan_make(&key, &plan);
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct gj_asset asset = {"templates/gemm_sm90.cu", texts[i], strlen(texts[i])};
        const struct gj_assets assets = {&asset, 1};
        struct gj_unit unit = {0};
        const enum gj_status status = gj_unit_make(&plan, &assets, NULL, &unit, NULL);
        assert_true(status == GJ_OK || status == GJ_ERR_GENERATE);
        gj_unit_free(&unit);
    }
}

/* -- speed ----------------------------------------------------------------------------------------------- */

static void a_unit_takes(void **state)
{
    (void)state;
    size_t bytes = 0, lines = 0;
    const double start = gj_clock_ms();
    for (size_t i = 0; i < num_keys; i++) {
        struct gj_unit unit = unit_of(&keys[i], NULL);
        bytes += unit.length;
        lines += unit.num_lines;
        gj_unit_free(&unit);
    }
    const double ms = (gj_clock_ms() - start) / (double)num_keys;
    print_message("%zu keys: %.3f ms, %zu bytes, %zu lines per unit\n", num_keys, ms, bytes / num_keys,
                  lines / num_keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_the_same_bytes),
        cmocka_unit_test(nothing_of_the_templates_language_is_left),
        cmocka_unit_test(units_say_nothing_of_where_and_when),
        cmocka_unit_test(brackets_balance),
        cmocka_unit_test(all_is_used_and_defined),
        cmocka_unit_test(the_unit_opens_with_key_and_plan),
        cmocka_unit_test(lines_are_traced_to_templates),
        cmocka_unit_test(different_keys_have_different_units),
        cmocka_unit_test(odd_templates_are_survived),
        cmocka_unit_test(a_unit_takes),
    };
    return cmocka_run_group_tests_name("generate", tests, collect_keys, free_keys);
}
