/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of refused key text: the message names the field, its value and what is allowed; the key stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gemmjit/key.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Asserts that a text is refused, that the message has all of `parts` (separated by '|') and that the key
 * stays as it was. */
static void assert_refused(const char *text, const char *parts)
{
    struct gj_key key, before;
    memset(&key, 0xa5, sizeof key);
    before = key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_ERR_KEY);
    gj_error *error = NULL;
    assert_int_equal(gj_key_parse(text, &key, &error), GJ_ERR_KEY);
    assert_memory_equal(&key, &before, sizeof key);
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_KEY);
    assert_int_equal(error->stage, GJ_STAGE_KEY);
    char *const copy = strdup(parts);
    for (char *rest = copy, *part; (part = strsep(&rest, "|")) != NULL;)
        if (strstr(error->message, part) == NULL)
            fail_msg("refusal of \"%s\" does not mention \"%s\": %s", text, part, error->message);
    free(copy);
    gj_error_free(&error);
}

#define NAMES                                                                                         \
    "the fields are op, a, b, c, d, p, acc, act, alpha, beta, batch, gather, fp8acc, tile, cluster, " \
    "sched, tiles, swap_ab, gate, bias, scale, quant, own"

static void unknown_repeated_and_malformed_fields_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *parts;
    } cases[] = {
        {"colour=red", "colour|" NAMES},
        {"OP=gemm", "\"OP\"|" NAMES},
        {"o=gemm", "\"o\"|" NAMES},
        {"opp=gemm", "opp|" NAMES},
        {"=gemm", "\"\"|" NAMES},
        {"op=gemm,beta2=one", "beta2|" NAMES},
        {"op=gemm,op=gemm", "op|twice|gemm"},
        {"tile=64x64,sched=coop,tile=128x128", "tile|twice|128x128"},
        {"op", "\"op\"|name=value"},
        {"op=gemm,a", "\"a\"|name=value"},
        {",", "name=value"},
        {",op=gemm", "name=value"},
        {"op=gemm,,a=bf16.k", "name=value"},
        {"op=gemm,", "comma"},
        {"op=gemm,a=bf16.k,", "comma"},
        {" ", "name=value"},
        {" op=gemm", "\" op\"|" NAMES},
        {"op =gemm", "\"op \"|" NAMES},
        {"op=gemm, a=bf16.k", "\" a\"|" NAMES},
        {"op=gemm\n", "op=gemm\\x0a|gemm|act|dact|gated|dgated"},
        {"\top=gemm", NAMES},
        {"op=gemm;a=bf16.k", "op=gemm;a=bf16.k|act"},
        {"op=\xff\xfe", "op=\\xff\\xfe|gemm"},
        {"\x01=\x02", NAMES},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].parts);
}

static void words_outside_their_enum_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *allowed;
    } fields[] = {
        {"op", "gemm|act|dact|gated|dgated"},
        {"acc", "f32|f16"},
        {"act", "none, relu, relu_sq, gelu_tanh, gelu_erf, silu, quick_gelu, sigmoid, tanh, swiglu, "
                "swiglu_oai, geglu, reglu, glu, own"},
        {"alpha", "one|host|device"},
        {"beta", "one|host|device|none"},
        {"batch", "dense|varlen_m|varlen_k"},
        {"gather", "none|a"},
        {"fp8acc", "promoted|fast"},
        {"sched", "pingpong|coop"},
        {"tiles", "static|dynamic|once"},
        {"swap_ab", "no|yes"},
        {"gate", "allowed is interleaved, halves"},
        {"bias", "allowed is none, row.f32, row.f16, row.bf16, col.f32, col.f16, col.bf16"},
        {"scale", "allowed is none, tensor, row, col, row_col"},
        {"quant", "allowed is none, scale, amax"},
        {"own", "allowed is 16 hexadecimal digits in lower case"},
    };
    static const char values[] = "|x|GEMM|none2|0| none|one |=none|stat|f3";
    for (size_t i = 0; i < COUNT(fields); i++) {
        char copy[sizeof values];
        memcpy(copy, values, sizeof copy);
        for (char *rest = copy, *value; (value = strsep(&rest, "|")) != NULL;) {
            char text[64], parts[256];
            snprintf(text, sizeof text, "%s=%s", fields[i].name, value);
            snprintf(parts, sizeof parts, "%s|%s", text, fields[i].allowed);
            assert_refused(text, parts);
        }
    }
    assert_refused("acc=bf16", "acc=bf16|f32|f16");
    assert_refused("acc=none", "acc=none|f32|f16");
    assert_refused("alpha=none", "alpha=none|one|host|device");
    assert_refused("fp8acc=none,a=e4m3.k,b=e4m3.k", "fp8acc=none|promoted|fast");
    assert_refused("op=gated,gate=none", "gate=none|interleaved, halves");
    static const char *const bad[] = {"bias=f32",      "bias=row",   "bias=col.e4m3",        "bias=n.f32",
                                      "scale=all",     "scale=rows", "scale=row.f32",        "quant=e4m3",
                                      "quant=scale.n", "act=gelu",   "act=gelu_tanh_approx", "act=swish"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char parts[64];
        snprintf(parts, sizeof parts, "%s: allowed is", bad[i]);
        assert_refused(bad[i], parts);
    }
}

static void ids_outside_their_rules_are_refused(void **state)
{
    (void)state;
    static const char *const ids[] = {"",
                                      "0",
                                      "0123456789abcde",
                                      "0123456789abcdef0",
                                      "0123456789ABCDEF",
                                      "0123456789abcdeg",
                                      "0x23456789abcdef",
                                      " 123456789abcdef",
                                      "0123456789abcde ",
                                      "-123456789abcdef",
                                      "0123456789abcd\xc3\xa4"};
    for (size_t i = 0; i < COUNT(ids); i++) {
        char text[64];
        snprintf(text, sizeof text, "act=own,own=%s", ids[i]);
        assert_refused(text, "own=|allowed is 16 hexadecimal digits in lower case");
    }
}

static void formats_outside_their_rules_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *allowed, *bad;
    } fields[] = {
        {"a", "f16|bf16|e4m3|e5m2|k m", "bf16.n bf16.N f32.k none"},
        {"b", "f16|bf16|e4m3|e5m2|k n", "bf16.m bf16.N f32.k none"},
        {"c", "f16|bf16|f32|e4m3|e5m2|none|n m", "bf16.k"},
        {"d", "f16|bf16|f32|e4m3|e5m2|none|n m", "bf16.k"},
        {"op=act,p", "f16|bf16|f32|e4m3|e5m2|none|n m", "bf16.k"},
    };
    static const char everywhere[] = "bf16 bf16. .k bf16.k.k bf16..k none.n none. BF16.k bf8.k bf1.k bf166.k "
                                     "bf16.kk bf16:k .  f64.n x";
    for (size_t i = 0; i < COUNT(fields); i++) {
        char list[256];
        snprintf(list, sizeof list, "%s %s", fields[i].bad, everywhere);
        for (char *rest = list, *value; (value = strsep(&rest, " ")) != NULL;) {
            char text[64], parts[128];
            snprintf(text, sizeof text, "%s=%s", fields[i].name, value);
            const char *const field = strrchr(text, ',') ? strrchr(text, ',') + 1 : text;
            snprintf(parts, sizeof parts, "%s|%s", field, fields[i].allowed);
            assert_refused(text, parts);
        }
    }
}

static void pairs_outside_their_rules_are_refused(void **state)
{
    (void)state;
    static const char values[] =
        "|128|128x|x192|x|0x192|128x0|0x0|-128x192|128x-192|+128x192|128X192|128*192|128 x192|128x 192| "
        "128x192|"
        "128x192 "
        "|128x192x64|128xx192|128.0x192|1e2x192|10000x64|64x10000|99999x1|2147483648x1|4294967424x192|"
        "128x18446744073709551808|128x00000000000000000000000000010000|ax192|128xb|128x192;";
    static const char *const names[] = {"tile", "cluster"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char copy[sizeof values];
        memcpy(copy, values, sizeof copy);
        for (char *rest = copy, *value; (value = strsep(&rest, "|")) != NULL;) {
            char text[96], parts[128];
            snprintf(text, sizeof text, "%s=%s", names[i], value);
            snprintf(parts, sizeof parts, "%s|MxN|9999", text);
            assert_refused(text, parts);
        }
    }
    struct gj_key key;
    assert_int_equal(gj_key_parse("tile=9999x1,cluster=1x9999", &key, NULL), GJ_OK);
    assert_int_equal(key.tile_m, 9999);
    assert_int_equal(key.cluster_n, 9999);
}

/* Asserts the whole message. */
static void assert_refused_as(const char *text, const char *message)
{
    struct gj_key key;
    gj_error *error = NULL;
    assert_refused(text, message);
    assert_int_equal(gj_key_parse(text, &key, &error), GJ_ERR_KEY);
    assert_string_equal(error->message, message);
    gj_error_free(&error);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"beta=one", "beta=one contradicts c=none, an absent operand: allowed is none"},
        {"c=none,beta=host", "beta=host contradicts c=none, an absent operand: allowed is none"},
        {"c=f32.n,beta=none", "beta=none contradicts c=f32: allowed is one, host, device"},
        {"beta=none,c=bf16.m", "beta=none contradicts c=bf16: allowed is one, host, device"},
        {"fp8acc=fast", "fp8acc=fast contradicts a=bf16 and b=bf16: it is allowed only when both are 8-bit"},
        {"fp8acc=promoted,a=e4m3.k",
         "fp8acc=promoted contradicts a=e4m3 and b=bf16: it is allowed only when both are 8-bit"},
        {"p=bf16.n", "p=bf16 contradicts op=gemm, which has no PostAct: allowed is none"},
        {"p=f32.m,op=gemm", "p=f32 contradicts op=gemm, which has no PostAct: allowed is none"},
        {"gate=halves", "gate=halves contradicts op=gemm: it is allowed only with op=gated and op=dgated"},
        {"gate=interleaved,op=act",
         "gate=interleaved contradicts op=act: it is allowed only with op=gated and op=dgated"},
        {"op=dact,gate=halves",
         "gate=halves contradicts op=dact: it is allowed only with op=gated and op=dgated"},
        {"act=own", "act=own needs own=ID, the 16 digits that name the function and its source"},
        {"op=gated,act=own", "act=own needs own=ID, the 16 digits that name the function and its source"},
        {"own=0123456789abcdef",
         "own=0123456789abcdef contradicts act=none: it is allowed only with act=own"},
        {"op=act,own=00000000ffffffff,act=relu_sq",
         "own=00000000ffffffff contradicts act=relu_sq: it is allowed only with act=own"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused_as(cases[i].text, cases[i].message);
}

static void long_garbage_is_refused(void **state)
{
    (void)state;
    enum { LENGTH = 100000 };
    char *const text = malloc(LENGTH + 1);
    assert_non_null(text);
    memset(text, 'a', LENGTH);
    text[LENGTH] = '\0';
    assert_refused(text, "name=value");
    text[1] = '=';
    assert_refused(text, "a=aaaa|bf16");
    memset(text, '7', LENGTH);
    memcpy(text, "tile=", 5);
    assert_refused(text, "tile=7777|MxN");
    memset(text, '=', LENGTH);
    assert_refused(text, NAMES);
    memset(text, ',', LENGTH);
    assert_refused(text, "name=value");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_repeated_and_malformed_fields_are_refused),
        cmocka_unit_test(words_outside_their_enum_are_refused),
        cmocka_unit_test(ids_outside_their_rules_are_refused),
        cmocka_unit_test(formats_outside_their_rules_are_refused),
        cmocka_unit_test(pairs_outside_their_rules_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(long_garbage_is_refused),
    };
    return cmocka_run_group_tests_name("key_refusals", tests, NULL, NULL);
}
