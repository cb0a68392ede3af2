/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/base: text buffer, error object, hash, environment, log. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error_build.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- strbuf ---------------------------------------------------------------------------------------------- */

static void strbuf_grows(void **state)
{
    (void)state;
    struct gj_strbuf buf = {0};
    for (int i = 0; i < 1000; i++) {
        gj_strbuf_printf(&buf, "%d,", i);
        assert_int_equal(strlen(buf.text), buf.length);
        assert_true(buf.length < buf.capacity);
    }
    assert_false(buf.failed);
    assert_int_equal(strncmp(buf.text, "0,1,2,3,", 8), 0);
    assert_string_equal(buf.text + buf.length - 8, "998,999,");
    gj_strbuf_free(&buf);
    assert_null(buf.text);
    assert_int_equal(buf.capacity, 0);
}

static void strbuf_takes_bytes_and_text(void **state)
{
    (void)state;
    struct gj_strbuf buf = {0};
    gj_strbuf_add(&buf, "abcdef", 3);
    gj_strbuf_puts(&buf, "");
    gj_strbuf_add(&buf, NULL, 0);
    gj_strbuf_puts(&buf, "xyz");
    char *const text = gj_strbuf_take(&buf);
    assert_string_equal(text, "abcxyz");
    assert_null(buf.text);
    assert_int_equal(buf.length, 0);
    free(text);
}

static void strbuf_takes_empty(void **state)
{
    (void)state;
    struct gj_strbuf buf = {0};
    char *const text = gj_strbuf_take(&buf);
    assert_string_equal(text, "");
    free(text);
}

/* No allocation of half the address space succeeds: that stands for memory running out. */
static void strbuf_latches_failure(void **state)
{
    (void)state;
    struct gj_strbuf buf = {0};
    gj_strbuf_puts(&buf, "before");
    gj_strbuf_add(&buf, "x", SIZE_MAX - 2);
    assert_true(buf.failed);
    gj_strbuf_puts(&buf, "after");
    gj_strbuf_printf(&buf, "%d", 1);
    assert_string_equal(buf.text, "before");
    assert_null(gj_strbuf_take(&buf));
    assert_null(buf.text);
    assert_false(buf.failed);
}

/* -- error ----------------------------------------------------------------------------------------------- */

static enum gj_status fails(gj_error **error)
{
    GJ_FAIL(error, GJ_ERR_KEY, GJ_STAGE_KEY, "tile=%dx%d is not allowed", 3, 4);
}

static enum gj_status forwards(int fail, gj_error **error)
{
    if (fail)
        GJ_TRY(fails(error));
    return GJ_OK;
}

static void error_holds_all(void **state)
{
    (void)state;
    gj_error *error = NULL;
    char detail[] = "log";
    assert_int_equal(
        gj_error_make(&error, GJ_ERR_DRIVER, GJ_STAGE_LAUNCH, 700, "CUDA_ERROR", "%s of %d", "launch", 5),
        GJ_ERR_DRIVER);
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_DRIVER);
    assert_int_equal(error->stage, GJ_STAGE_LAUNCH);
    assert_int_equal(error->origin_code, 700);
    assert_string_equal(error->origin_name, "CUDA_ERROR");
    assert_string_equal(error->message, "launch of 5");
    assert_string_equal(error->detail, "");
    gj_error_set_detail(&error, detail);
    detail[0] = 'X';
    assert_string_equal(error->detail, "log");
    gj_error_set_detail(&error, "");
    assert_string_equal(error->detail, "");

    for (int i = 0; i < 20; i++)
        gj_error_add_reason(&error, "reason %d", i);
    assert_int_equal(error->num_reasons, 20);
    assert_string_equal(error->reasons[0], "reason 0");
    assert_string_equal(error->reasons[19], "reason 19");

    const struct gj_location location = {
        .file = "templates/a.cuh", .line = 3, .unit_line = 7, .message = "m"};
    gj_error_add_location(&error, &location);
    gj_error_add_location(&error, &location);
    assert_int_equal(error->num_locations, 2);
    assert_string_equal(error->locations[1].file, "templates/a.cuh");
    assert_int_equal(error->locations[1].line, 3);
    assert_int_equal(error->locations[1].unit_line, 7);
    assert_string_equal(error->locations[1].message, "m");
    assert_string_equal(error->locations[1].excerpt, "");
    gj_error_free(&error);
    assert_null(error);
}

static void error_is_optional(void **state)
{
    (void)state;
    const struct gj_location location = {.file = "f"};
    gj_error *none = NULL;
    assert_int_equal(fails(NULL), GJ_ERR_KEY);
    gj_error_set_detail(NULL, "x");
    gj_error_add_reason(NULL, "x");
    gj_error_add_location(NULL, &location);
    gj_error_set_detail(&none, "x");
    gj_error_add_reason(&none, "x");
    gj_error_add_location(&none, &location);
    assert_null(none);
    gj_error_free(NULL);
    gj_error_free(&none);
}

static void error_keeps_the_first(void **state)
{
    (void)state;
    gj_error *error = NULL;
    assert_int_equal(forwards(0, &error), GJ_OK);
    assert_null(error);
    assert_int_equal(forwards(1, &error), GJ_ERR_KEY);
    assert_string_equal(error->message, "tile=3x4 is not allowed");
    gj_error *const first = error;
    assert_int_equal(gj_error_make(&error, GJ_ERR_INTERNAL, GJ_STAGE_NONE, 0, NULL, "later"),
                     GJ_ERR_INTERNAL);
    assert_ptr_equal(error, first);
    gj_error_free(&error);
}

static void error_names(void **state)
{
    (void)state;
    assert_string_equal(gj_status_name(GJ_OK), "GJ_OK");
    assert_string_equal(gj_status_name(GJ_ERR_KEY), "GJ_ERR_KEY");
    assert_string_equal(gj_status_name(GJ_ERR_INTERNAL), "GJ_ERR_INTERNAL");
    assert_string_equal(gj_status_name((enum gj_status)9999), "GJ_ERR_?");
    assert_string_equal(gj_stage_name(GJ_STAGE_NONE), "none");
    assert_string_equal(gj_stage_name(GJ_STAGE_LAUNCH), "launch");
    assert_string_equal(gj_stage_name((enum gj_stage)9999), "?");
}

/* -- hash ------------------------------------------------------------------------------------------------ */

static struct gj_hash hash_of(const struct gj_hash_field *fields, size_t count)
{
    int ok = 0;
    const struct gj_hash hash = gj_hash_fields(fields, count, &ok);
    assert_true(ok);
    return hash;
}

static void hash_is_the_published_one(void **state)
{
    (void)state;
    /* XXH3 of the empty string, from the xxHash specification. */
    const struct gj_hash hash = gj_hash_bytes(NULL, 0);
    char hex[33];
    gj_hash_hex(&hash, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    assert_true(gj_hash64(NULL, 0) == UINT64_C(0x2d06800538d394c2));
}

/* Every pair of these lists of fields must differ, although their bytes run together to the same text. */
static void hash_of_parts_is_that_of_the_whole(void **state)
{
    (void)state;
    unsigned char data[1000];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7);
    for (size_t cut = 0; cut <= sizeof(data); cut += 37) {
        const struct gj_hash_part parts[] = {{data, cut}, {NULL, 0}, {data + cut, sizeof(data) - cut}};
        const struct gj_hash hash = gj_hash_parts(parts, COUNT(parts)),
                             whole = gj_hash_bytes(data, sizeof(data));
        assert_memory_equal(hash.bytes, whole.bytes, sizeof(hash.bytes));
    }
}

static void hash_is_read_from_digits(void **state)
{
    (void)state;
    char hex[33];
    struct gj_hash hash = {{7}};
    assert_false(gj_hash_from_hex("", &hash));
    assert_false(gj_hash_from_hex("0123456789abcdef0123456789abcde", &hash));
    assert_false(gj_hash_from_hex("0123456789abcdef0123456789abcdeF", &hash));
    assert_int_equal(hash.bytes[0], 7); /* untouched */
    assert_true(gj_hash_from_hex("0123456789abcdef0123456789abcdef.gjc", &hash));
    gj_hash_hex(&hash, hex);
    assert_string_equal(hex, "0123456789abcdef0123456789abcdef");
}

static void hash_separates_fields(void **state)
{
    (void)state;
    static const struct {
        struct gj_hash_field fields[3];
        size_t count;
    } lists[] = {
        {{{"a", "bc", 2}}, 1},
        {{{"ab", "c", 1}}, 1},
        {{{"abc", "", 0}}, 1},
        {{{"", "abc", 3}}, 1},
        {{{"a", "b", 1}, {"c", "", 0}}, 2},
        {{{"a", "", 0}, {"b", "c", 1}}, 2},
        {{{"a", "", 0}, {"b", "", 0}, {"c", "", 0}}, 3},
        {{{"b", "c", 1}, {"a", "", 0}}, 2},
        {{{"abc", "", 0}, {"", "", 0}}, 2},
        {{{"", NULL, 0}}, 0},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        const struct gj_hash one = hash_of(lists[i].fields, lists[i].count);
        const struct gj_hash again = hash_of(lists[i].fields, lists[i].count);
        assert_memory_equal(&one, &again, sizeof(one));
        for (size_t j = 0; j < i; j++) {
            const struct gj_hash other = hash_of(lists[j].fields, lists[j].count);
            assert_memory_not_equal(&one, &other, sizeof(one));
        }
    }
}

/* Cache entries of one machine must be found by another: these values must never change. */
static void hash_is_stable(void **state)
{
    (void)state;
    const struct gj_hash_field fields[] = {{"unit", "text", 4}, {"arch", "sm_90a", 6}};
    const struct gj_hash hash = hash_of(fields, COUNT(fields));
    char hex[33];
    gj_hash_hex(&hash, hex);
    assert_string_equal(hex, "58f9750128cb8be8a931fbe8f05f66c2");
}

/* -- env ------------------------------------------------------------------------------------------------- */

static void env_reads(void **state)
{
    (void)state;
    const char *const name = gj_env_name(GJ_ENV_CACHE_DIR);
    assert_string_equal(name, "GEMMJIT_CACHE_DIR");
    unsetenv(name);
    assert_null(gj_env_get(GJ_ENV_CACHE_DIR));
    setenv(name, "", 1);
    assert_null(gj_env_get(GJ_ENV_CACHE_DIR));
    setenv(name, "/somewhere", 1);
    assert_string_equal(gj_env_get(GJ_ENV_CACHE_DIR), "/somewhere");
    unsetenv(name);
    for (int i = 0; i < GJ_ENV_COUNT; i++) {
        assert_true(strlen(gj_env_name((enum gj_env)i)) > 0);
        assert_true(strlen(gj_env_help((enum gj_env)i)) > 0);
    }
}

/* -- UTF-8 ----------------------------------------------------------------------------------------------- */

static void error_strings_are_utf8(void **state)
{
    (void)state;
    gj_error *error = NULL, *copy = NULL;
    gj_error_make(&error, GJ_ERR_KEY, GJ_STAGE_KEY, 1, "E\xff", "%s",
                  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d|\xff|\xc0\x80|"
                  "\xed\xa0\x80|\xc3|\033[2J\n\x7f\xc2\x9b\t");
    const char *const shown =
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8d|\\xff|\\xc0\\x80|\\xed\\xa0\\x80|\\xc3|\\x1b[2J"
        "\\x0a\\x7f\\xc2\\x9b\\x09";
    assert_string_equal(error->message, shown);
    assert_string_equal(error->origin_name, "E\\xff");
    gj_error_add_reason(&error, "%s", "r\x80\n");
    assert_string_equal(error->reasons[0], "r\\x80\\x0a");
    gj_error_set_detail(&error, "one\n\ttwo\r\n\xfe\n");
    assert_string_equal(error->detail, "one\n\ttwo\\x0d\n\\xfe\n");
    const struct gj_location location = {.file = "f\n", .message = "m\xff", .excerpt = "\tx\x01"};
    gj_error_add_location(&error, &location);
    assert_string_equal(error->locations[0].file, "f\\x0a");
    assert_string_equal(error->locations[0].message, "m\\xff");
    assert_string_equal(error->locations[0].excerpt, "\tx\\x01");
    gj_error_copy(&copy, error);
    assert_string_equal(copy->message, shown); /* once is enough */
    assert_string_equal(copy->detail, error->detail);
    gj_error_free(&copy);
    gj_error_free(&error);
}

static void quotes_are_short(void **state)
{
    (void)state;
    char text[300];
    memset(text, 'x', sizeof(text));
    assert_string_equal(gj_utf8_quote("abc", 2).text, "ab");
    assert_string_equal(gj_utf8_quote("", 0).text, "");
    assert_int_equal(strlen(gj_utf8_quote(text, GJ_UTF8_QUOTE_BYTES).text), GJ_UTF8_QUOTE_BYTES);
    const struct gj_quote cut = gj_utf8_quote(text, sizeof(text) - 1);
    assert_int_equal(strlen(cut.text), GJ_UTF8_QUOTE_BYTES + 3);
    assert_string_equal(cut.text + GJ_UTF8_QUOTE_BYTES, "...");
    for (size_t at = GJ_UTF8_QUOTE_BYTES - 4; at <= GJ_UTF8_QUOTE_BYTES; at++) { /* not through a character */
        memset(text, 'x', sizeof(text));
        memcpy(text + at, "\xf0\x9f\x8c\x8d", 4);
        text[sizeof(text) - 1] = '\0';
        const struct gj_quote quote = gj_utf8_quote(text, sizeof(text) - 1);
        const size_t kept = at + 4 <= GJ_UTF8_QUOTE_BYTES ? GJ_UTF8_QUOTE_BYTES : at;
        assert_int_equal(strlen(quote.text), kept + 3);
        for (const char *c = quote.text; *c; c += gj_utf8_length(c))
            assert_int_not_equal(gj_utf8_length(c), 0);
    }
    memset(text, 0x80, sizeof(text)); /* no characters at all */
    assert_int_equal(strlen(gj_utf8_quote(text, sizeof(text) - 1).text), GJ_UTF8_QUOTE_BYTES + 3);
}

/* -- log, clock ------------------------------------------------------------------------------------------ */

static char logged[256];
static enum gj_log_level logged_level;

static void keep(void *user, enum gj_log_level level, const char *message)
{
    ++*(int *)user;
    logged_level = level;
    assert_true(strlen(message) < sizeof(logged));
    strcpy(logged, message);
}

static void log_gives_one_line(void **state)
{
    (void)state;
    int calls = 0;
    const struct gj_log silent = {NULL, NULL}, log = {keep, &calls};
    gj_log_printf(NULL, GJ_LOG_ERROR, "%d", 1);
    gj_log_printf(&silent, GJ_LOG_ERROR, "%d", 1);
    assert_int_equal(calls, 0);
    gj_log_printf(&log, GJ_LOG_WARNING, "a %s\nb\n\n", "x");
    assert_int_equal(calls, 1);
    assert_int_equal(logged_level, GJ_LOG_WARNING);
    assert_string_equal(logged, "a x b");
    gj_log_printf(&log, GJ_LOG_DEBUG, "%s", "");
    assert_int_equal(calls, 2);
    assert_string_equal(logged, "");
}

static void clock_does_not_go_back(void **state)
{
    (void)state;
    double last = gj_clock_ms();
    for (int i = 0; i < 1000; i++) {
        const double now = gj_clock_ms();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strbuf_grows),
        cmocka_unit_test(strbuf_takes_bytes_and_text),
        cmocka_unit_test(strbuf_takes_empty),
        cmocka_unit_test(strbuf_latches_failure),
        cmocka_unit_test(error_holds_all),
        cmocka_unit_test(error_is_optional),
        cmocka_unit_test(error_keeps_the_first),
        cmocka_unit_test(error_names),
        cmocka_unit_test(error_strings_are_utf8),
        cmocka_unit_test(quotes_are_short),
        cmocka_unit_test(hash_is_the_published_one),
        cmocka_unit_test(hash_of_parts_is_that_of_the_whole),
        cmocka_unit_test(hash_is_read_from_digits),
        cmocka_unit_test(hash_separates_fields),
        cmocka_unit_test(hash_is_stable),
        cmocka_unit_test(env_reads),
        cmocka_unit_test(log_gives_one_line),
        cmocka_unit_test(clock_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
