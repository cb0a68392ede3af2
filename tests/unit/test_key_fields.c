/* SPDX-License-Identifier: Apache-2.0 */
/* Each field of a key changed alone: the code that is compiled changes with it, so no two keys ever share an
 * entry of the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "generate/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Keys from which one field is changed; together they let every field have a second value. */
static const char *const bases[] = {
    "tile=128x192,cluster=2x1",
    "c=bf16.n,beta=host,alpha=host,tile=128x128,cluster=1x1",
    "a=e4m3.k,b=e4m3.k,d=e4m3.n,scale=tensor,quant=scale,tile=128x64,cluster=1x1",
    "op=act,act=relu,bias=col.bf16,tile=128x128,cluster=1x1",
    "op=dact,act=silu,c=bf16.n,tile=128x128,cluster=1x1",
    "op=gated,act=swiglu,bias=row.f32,tile=128x128,cluster=1x1",
    "op=gated,act=swiglu,d=none,tile=128x256,cluster=2x1,sched=coop",
    "op=dgated,act=swiglu,c=bf16.n,tile=128x128,cluster=1x1",
};

/* What a field may be: the words of all fields, which most fields refuse, and a few numbers. */
static const char *const values[] = {
    "none",     "gemm",     "act",         "dact",     "gated",   "dgated",  "f16.k",      "bf16.k",
    "e4m3.k",   "e5m2.k",   "f16.m",       "bf16.m",   "f16.n",   "bf16.n",  "f32.n",      "e4m3.n",
    "e5m2.n",   "f32.m",    "e4m3.m",      "f32",      "f16",     "relu",    "relu_sq",    "gelu_tanh",
    "gelu_erf", "silu",     "quick_gelu",  "sigmoid",  "tanh",    "swiglu",  "swiglu_oai", "geglu",
    "reglu",    "glu",      "one",         "host",     "device",  "dense",   "varlen_m",   "varlen_k",
    "a",        "promoted", "fast",        "64x64",    "128x64",  "128x128", "128x192",    "256x128",
    "1x1",      "1x2",      "2x1",         "pingpong", "coop",    "static",  "dynamic",    "once",
    "no",       "yes",      "interleaved", "halves",   "row.f32", "row.f16", "row.bf16",   "col.f32",
    "col.f16",  "col.bf16", "tensor",      "row",      "col",     "row_col", "scale",      "amax",
};

/* Fields that have but one accepted value today, or none but what others make them. */
static const char *const fixed[] = {"acc", "batch", "gather"};

enum { FIELDS_MAX = 32, NAME_MAX_BYTES = 16 };
static char names[FIELDS_MAX][NAME_MAX_BYTES]; /* fields met */
static int num_changes[FIELDS_MAX];            /* accepted changes of each */
static size_t num_names;

static size_t index_of(const char *name, size_t length)
{
    for (size_t i = 0; i < num_names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    assert_true(num_names < FIELDS_MAX && length < NAME_MAX_BYTES);
    memcpy(names[num_names], name, length);
    return num_names++;
}

/* The code below the opening comment, which names the key. NULL: the key is refused. */
static char *code_of(const char *text, char entry_name[256])
{
    struct gj_key key;
    struct gj_plan plan;
    struct gj_unit unit;
    if (gj_key_parse(text, &key, NULL) != GJ_OK || gj_key_check(&key, NULL) != GJ_OK)
        return NULL;
    gj_plan_make(&key, &plan);
    assert_int_equal(gj_unit_make(&plan, NULL, NULL, &unit, NULL), GJ_OK);
    char *const code = strdup(strstr(unit.text, "\n\n"));
    assert_non_null(code);
    snprintf(entry_name, 256, "%s", plan.entry_name);
    gj_unit_free(&unit);
    return code;
}

/* The key's text with the value from `at` to `end` replaced. */
static void change_one(const char *text, const char *at, const char *end, const char *value, char *changed)
{
    const int length = snprintf(changed, GJ_KEY_TEXT_MAX, "%.*s%s%s", (int)(at - text), text, value, end);
    assert_in_range(length, 1, GJ_KEY_TEXT_MAX - 1);
}

static void change_each_field(const char *base)
{
    struct gj_key key;
    char text[GJ_KEY_TEXT_MAX], changed[GJ_KEY_TEXT_MAX], name[256], other_name[256];
    assert_int_equal(gj_key_parse(base, &key, NULL), GJ_OK);
    gj_key_format(&key, text, sizeof text);
    char *const code = code_of(text, name);
    if (code == NULL)
        fail_msg("%s is refused", text);
    for (const char *field = text; *field != '\0';) {
        const char *const at = strchr(field, '=') + 1, *const end = at + strcspn(at, ",");
        const size_t idx = index_of(field, (size_t)(at - 1 - field));
        for (size_t i = 0; i < COUNT(values); i++) {
            const bool is_same =
                strlen(values[i]) == (size_t)(end - at) && memcmp(values[i], at, (size_t)(end - at)) == 0;
            change_one(text, at, end, values[i], changed);
            char *const other = is_same ? NULL : code_of(changed, other_name);
            if (other == NULL)
                continue;
            if (strcmp(code, other) == 0 || strcmp(name, other_name) == 0)
                fail_msg("%s\n%s\nhave the same code or name", text, changed);
            num_changes[idx]++;
            free(other);
        }
        field = *end == ',' ? end + 1 : end;
    }
    free(code);
}

static bool is_fixed(const char *name)
{
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (strcmp(name, fixed[i]) == 0)
            return true;
    return false;
}

static void each_field_alone_changes_the_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++)
        change_each_field(bases[i]);
    assert_true(num_names > 15);
    for (size_t i = 0; i < num_names; i++) {
        print_message("%-8s %d accepted changes\n", names[i], num_changes[i]);
        assert_int_equal(num_changes[i] == 0, is_fixed(names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_alone_changes_the_code),
    };
    return cmocka_run_group_tests_name("key fields", tests, NULL, NULL);
}
