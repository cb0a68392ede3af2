/* SPDX-License-Identifier: Apache-2.0 */
/* Users' own functions: ids, what is refused, the context's list, and their place in a unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gemmjit/gemmjit.h>

#include "generate/own_source.h"

static const char leaky[] = "// a comment with leaky\nfloat leaky (float x)\n{\n    return x;\n}\n";

static struct gj_own_id id_of(const char *name, const char *source, const char *file)
{
    const struct gj_own own = {name, source, file};
    struct gj_own_id id = {7, 7};
    assert_int_equal(gj_own_identify(&own, &id, NULL), GJ_OK);
    return id;
}

static bool equal(struct gj_own_id a, struct gj_own_id b)
{
    return a.high == b.high && a.low == b.low;
}

static void id_is_of_name_and_source(void **state)
{
    (void)state;
    const struct gj_own_id id = id_of("leaky", leaky, NULL);
    assert_true(equal(id, id_of("leaky", leaky, "/some/path/leaky.cu")));
    assert_false(equal(id, id_of("leak", leaky, NULL)));
    assert_false(equal(id, id_of("leaky", "float leaky(float x) { return x; }", NULL)));
    /* name and source cannot run together */
    assert_false(equal(id_of("ab", "c", NULL), id_of("a", "bc", NULL)));
    /* the same on every machine: it stands in cache entries */
    assert_int_equal(id.high, 0x1632a591);
}

static void assert_refused(const char *name, const char *source, const char *file, const char *message)
{
    const struct gj_own own = {name, source, file};
    struct gj_own_id id = {7, 7};
    gj_error *error = NULL;
    assert_int_equal(gj_own_identify(&own, &id, &error), GJ_ERR_ARGUMENT);
    assert_non_null(strstr(error->message, message));
    assert_int_equal(id.high, 7);
    gj_error_free(&error);
}

static void bad_input_is_named(void **state)
{
    (void)state;
    static char huge[65538];
    memset(huge, ' ', sizeof huge - 1);
    assert_refused(NULL, leaky, NULL, "name is missing");
    assert_refused("", leaky, NULL, "name is missing");
    assert_refused("a-b", leaky, NULL, "name \"a-b\"");
    assert_refused("__x", leaky, NULL, "name \"__x\"");
    assert_refused("f", NULL, NULL, "source is missing");
    assert_refused("f", huge, NULL, "own: more than 65536 bytes");
    assert_refused("f", "  # if 1", "x.cu", "x.cu:1: a preprocessor directive");
    assert_refused("f", "\n/* } */ %:define", "x.cu", "x.cu:2: a preprocessor directive");
    assert_refused("f", "/* a\n*/ // b\n/**/ #define x", "x.cu", "x.cu:3: a preprocessor directive");
    assert_refused("f", "\n%:define x", "x.cu", "x.cu:2: a preprocessor directive");
    assert_refused("f", "{\n{\n}\n", "x.cu", "x.cu:4: braces do not match");
    assert_refused("f", "char c = '{'; char d = '\\''; const char *s = \"}\\\"\"; // }\n/* {\n */ }", NULL,
                   "own:3: braces do not match");
    assert_refused("f", leaky, "", "name of its file");
    /* what a compiler sees otherwise than line by line */
    assert_refused("f", "// \\\n/*\n#define x 1\n// */", "x.cu", "x.cu:1: ends in a backslash");
    assert_refused("f", "\n%\\ \r\n:define x 1", "x.cu", "x.cu:2: ends in a backslash");
    assert_refused("f", "int x; // \\", "x.cu", "x.cu:1: ends in a backslash");
    assert_refused("f", "auto s = R\"(\"/*)\";\n#define x 1\n/* */", "x.cu",
                   "x.cu:2: a preprocessor directive");
    assert_refused("f", "int x = 1'0; } namespace y { // '", "x.cu", "x.cu:1: braces do not match");
    assert_refused("f", "int x;\n%> namespace y <%", "x.cu", "x.cu:2: braces do not match");
    assert_refused("f", "int x;\n/* } ", "x.cu", "x.cu:2: a comment or a raw text does not end");
    assert_refused("f", "int x;\nauto s = u8R\"a()b\";", "x.cu",
                   "x.cu:2: a comment or a raw text does not end");
}

static void texts_and_numbers_hide_nothing(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "float f(float x) { return 1'000.0f * x + 0x1'0p-1'0f; }",
        "auto s = R\"x(}\n#\" )\" )x\"; auto t = LR\"()\"; auto u = xR\"(\"; auto v = .5e+1'0;",
        "auto s = /**/\"{\"\"{\" u8\"{\";",
        "float f(float x) <% return x % 2 <1%>",
    };
    struct gj_own_id id;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        assert_int_equal(gj_own_identify(&(struct gj_own){"f", sources[i], NULL}, &id, NULL), GJ_OK);
}

static void definition_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *name, *source;
        int line;
    } cases[] = {{"leaky", leaky, 2},
                 {"f", "float g(float f);\nfloat xf(float x);\nfloat f(float x);", 3},
                 {"f", "nothing", 1},
                 {"f", "", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct gj_own own = {cases[i].name, cases[i].source, "a.cu"};
        const struct gj_own_source source = gj_own_source_make(&own);
        assert_int_equal(source.line, cases[i].line);
        assert_string_equal(source.asset.path, "a.cu");
    }
}

static void context_knows_what_was_added(void **state)
{
    (void)state;
    const struct gj_context_params params = {.no_disk_cache = 1, .no_compile = 1};
    gj_context *context = NULL;
    gj_error *error = NULL;
    gj_kernel *kernel = NULL;
    char *source = NULL;
    char name[] = "leaky", text[] = "float leaky(float x) { return x; }";
    struct gj_own_id id, again;
    assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
    struct gj_key key;
    assert_int_equal(gj_key_parse("op=act,d=none,act=own,own=0123456789abcdef", &key, NULL), GJ_OK);
    assert_int_equal(gj_context_source(context, &key, &source, NULL, &error), GJ_ERR_ARGUMENT);
    assert_non_null(strstr(error->message, "own=0123456789abcdef"));
    gj_error_free(&error);
    assert_int_equal(gj_kernel_get(context, &key, 0, &kernel, NULL), GJ_ERR_ARGUMENT);
    assert_int_equal(gj_source(&key, &source, NULL, NULL), GJ_ERR_ARGUMENT);

    assert_int_equal(gj_own_add(context, &(struct gj_own){name, text, NULL}, &id, NULL), GJ_OK);
    assert_int_equal(gj_own_add(context, &(struct gj_own){name, text, "other.cu"}, &again, NULL), GJ_OK);
    assert_true(equal(id, again));
    memset(name, 'x', sizeof name - 1); /* the context has copies */
    memset(text, 'x', sizeof text - 1);
    key.own = id;
    assert_int_equal(gj_context_source(context, &key, &source, NULL, NULL), GJ_OK);
    assert_non_null(strstr(source, "float leaky(float x) { return x; }\n} // namespace own\n"));
    assert_null(strstr(source, "other.cu"));
    gj_free(source);
    assert_int_equal(gj_kernel_get(context, &key, 0, &kernel, NULL), GJ_ERR_NOT_CACHED);
    gj_context_close(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_is_of_name_and_source),       cmocka_unit_test(bad_input_is_named),
        cmocka_unit_test(texts_and_numbers_hide_nothing), cmocka_unit_test(definition_is_found),
        cmocka_unit_test(context_knows_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
