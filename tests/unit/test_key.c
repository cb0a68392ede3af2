/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of key text: docs and design say what a key may be; every refusal must say what would be allowed. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gemmjit/key.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Every struct gj_key is ints without padding, so that memcmp compares keys. */
_Static_assert(sizeof(struct gj_key) == 33 * sizeof(int), "compared as bytes");

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    const enum gj_status status = gj_key_parse(text, &key, &error);
    if (status != GJ_OK)
        print_error("%s: %s\n", text, error ? error->message : "no message");
    assert_int_equal(status, GJ_OK);
    assert_null(error);
    return key;
}

static void assert_keys_equal(const struct gj_key *one, const struct gj_key *other)
{
    if (memcmp(one, other, sizeof *one) == 0)
        return;
    char texts[2][GJ_KEY_TEXT_MAX];
    gj_key_format(one, texts[0], sizeof texts[0]);
    gj_key_format(other, texts[1], sizeof texts[1]);
    fail_msg("keys differ:\n%s\n%s", texts[0], texts[1]);
}

/* -- defaults and order ---------------------------------------------------------------------------------- */

static void default_is_as_documented(void **state)
{
    (void)state;
    const struct gj_key key = gj_key_default(), empty = parse("");
    const struct gj_key spelled =
        parse("op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,batch=dense,"
              "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no");
    assert_keys_equal(&key, &empty);
    assert_keys_equal(&key, &spelled);
    assert_int_equal(key.op, GJ_OP_GEMM);
    assert_int_equal(key.a.dtype, GJ_DTYPE_BF16);
    assert_int_equal(key.a.major, GJ_MAJOR_K);
    assert_int_equal(key.d.major, GJ_MAJOR_N);
    assert_int_equal(key.p.dtype, GJ_DTYPE_NONE);
    assert_int_equal(key.beta, GJ_SCALAR_NONE);
    assert_int_equal(key.fp8acc, GJ_FP8ACC_NONE);
    assert_int_equal(key.tile_m, 128);
    assert_int_equal(key.tile_n, 192);
    assert_int_equal(key.cluster_m, 2);
    assert_int_equal(key.cluster_n, 1);
    assert_int_equal(key.sched, GJ_SCHED_PINGPONG);
    assert_int_equal(key.tiles, GJ_TILES_STATIC);
}

static void defaults_depend_on_other_fields(void **state)
{
    (void)state;
    assert_int_equal(parse("c=f32.n").beta, GJ_SCALAR_ONE);
    assert_int_equal(parse("beta=host,c=f32.n").beta, GJ_SCALAR_HOST);
    assert_int_equal(parse("c=none").beta, GJ_SCALAR_NONE);
    assert_int_equal(parse("beta=none").beta, GJ_SCALAR_NONE);
    assert_int_equal(parse("a=e4m3.k,b=e5m2.k").fp8acc, GJ_FP8ACC_PROMOTED);
    assert_int_equal(parse("fp8acc=fast,a=e4m3.k,b=e4m3.k").fp8acc, GJ_FP8ACC_FAST);
    assert_int_equal(parse("a=e4m3.k").fp8acc, GJ_FP8ACC_NONE);
    assert_int_equal(parse("p=none").p.dtype, GJ_DTYPE_NONE);
}

/* PostAct of an operation that has one is bf16.n unless said otherwise, the columns of a gated one are pairs.
 */
static void defaults_depend_on_the_operation(void **state)
{
    (void)state;
    static const char *const names[] = {"act", "dact", "gated", "dgated"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char text[64];
        snprintf(text, sizeof text, "op=%s", names[i]);
        const struct gj_key key = parse(text);
        assert_int_equal(key.p.dtype, GJ_DTYPE_BF16);
        assert_int_equal(key.p.major, GJ_MAJOR_N);
        assert_int_equal(key.gate, i < 2 ? GJ_GATE_NONE : GJ_GATE_INTERLEAVED);
        assert_int_equal(key.act, GJ_ACT_NONE);
        snprintf(text, sizeof text, "p=none,op=%s", names[i]);
        assert_int_equal(parse(text).p.dtype, GJ_DTYPE_NONE);
        assert_int_equal(parse(text).p.major, GJ_MAJOR_NONE);
        snprintf(text, sizeof text, "p=f32.m,op=%s", names[i]);
        assert_int_equal(parse(text).p.dtype, GJ_DTYPE_F32);
        assert_int_equal(parse(text).p.major, GJ_MAJOR_M);
    }
    const struct gj_key key = gj_key_default();
    assert_int_equal(key.gate, GJ_GATE_NONE);
    assert_int_equal(key.bias, GJ_BIAS_NONE);
    assert_int_equal(key.scale, GJ_SCALE_NONE);
    assert_int_equal(key.quant, GJ_QUANT_NONE);
    assert_int_equal(key.own.high | key.own.low, 0);
}

static void format_prints_in_documented_order(void **state)
{
    (void)state;
    static const struct {
        const char *given, *canonical;
    } cases[] = {
        {"", "op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,batch=dense,"
             "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no"},
        {"tiles=once,sched=coop,cluster=1x2,tile=64x256,fp8acc=fast,gather=a,batch=varlen_m,beta=device,"
         "alpha=host,act=gelu_tanh,acc=f16,p=e5m2.m,d=e4m3.m,c=f32.m,b=e5m2.k,a=e4m3.k,op=dact",
         "op=dact,a=e4m3.k,b=e5m2.k,c=f32.m,d=e4m3.m,p=e5m2.m,acc=f16,act=gelu_tanh,alpha=host,beta=device,"
         "batch=varlen_m,gather=a,fp8acc=fast,tile=64x256,cluster=1x2,sched=coop,tiles=once,swap_ab=no"},
        {"op=act,d=none", "op=act,a=bf16.k,b=bf16.k,c=none,d=none,p=bf16.n,acc=f32,act=none,alpha=one,"
                          "beta=none,batch=dense,gather=none,tile=128x192,cluster=2x1,sched=pingpong,"
                          "tiles=static,swap_ab=no"},
        {"op=act,p=none,bias=none,scale=none,quant=none",
         "op=act,a=bf16.k,b=bf16.k,c=none,d=bf16.n,p=none,acc=f32,act=none,alpha=one,beta=none,batch=dense,"
         "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no"},
        {"own=00ff00aa12345678,act=own,quant=amax,scale=row_col,bias=col.bf16,gate=halves,op=gated,d=none",
         "op=gated,a=bf16.k,b=bf16.k,c=none,d=none,p=bf16.n,acc=f32,act=own,alpha=one,beta=none,batch=dense,"
         "gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no,gate=halves,"
         "bias=col.bf16,scale=row_col,quant=amax,own=00ff00aa12345678"},
        {"op=dgated,act=swiglu,c=bf16.n",
         "op=dgated,a=bf16.k,b=bf16.k,c=bf16.n,d=bf16.n,p=bf16.n,acc=f32,act=swiglu,alpha=one,beta=one,"
         "batch=dense,gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,swap_ab=no,"
         "gate=interleaved"},
        {"bias=row.f16", "op=gemm,a=bf16.k,b=bf16.k,c=none,d=bf16.n,acc=f32,act=none,alpha=one,beta=none,"
                         "batch=dense,gather=none,tile=128x192,cluster=2x1,sched=pingpong,tiles=static,"
                         "swap_ab=no,bias=row.f16"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_key key = parse(cases[i].given);
        char text[GJ_KEY_TEXT_MAX];
        assert_int_equal(gj_key_format(&key, text, sizeof text), strlen(cases[i].canonical));
        assert_string_equal(text, cases[i].canonical);
    }
}

/* Sixteen digits, the first the most significant one. */
static void an_id_is_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned high, low;
    } cases[] = {{"0000000000000001", 0, 1},
                 {"0000000100000000", 1, 0},
                 {"0123456789abcdef", 0x01234567, 0x89abcdef},
                 {"ffffffffffffffff", 0xffffffff, 0xffffffff},
                 {"8000000000000000", 0x80000000, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64], canonical[GJ_KEY_TEXT_MAX];
        snprintf(text, sizeof text, "op=act,act=own,own=%s", cases[i].text);
        const struct gj_key key = parse(text);
        assert_int_equal(key.own.high, cases[i].high);
        assert_int_equal(key.own.low, cases[i].low);
        const size_t length = gj_key_format(&key, canonical, sizeof canonical);
        assert_true(length > 16);
        assert_string_equal(canonical + length - 16, cases[i].text);
    }
}

static void format_truncates(void **state)
{
    (void)state;
    const struct gj_key key = gj_key_default();
    char whole[GJ_KEY_TEXT_MAX];
    const size_t length = gj_key_format(&key, whole, sizeof whole);
    assert_int_equal(strlen(whole), length);
    assert_int_equal(gj_key_format(&key, NULL, 0), length);
    for (size_t capacity = 1; capacity <= length + 2; capacity++) {
        char text[GJ_KEY_TEXT_MAX + 1];
        memset(text, '#', sizeof text);
        const size_t kept = capacity - 1 < length ? capacity - 1 : length;
        assert_int_equal(gj_key_format(&key, text, capacity), length);
        assert_int_equal(strlen(text), kept);
        assert_memory_equal(text, whole, kept);
        for (size_t i = capacity; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
}

/* -- element types --------------------------------------------------------------------------------------- */

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum gj_dtype dtype;
        size_t bytes;
    } dtypes[] = {{"f16", GJ_DTYPE_F16, 2},
                  {"bf16", GJ_DTYPE_BF16, 2},
                  {"e4m3", GJ_DTYPE_E4M3, 1},
                  {"e5m2", GJ_DTYPE_E5M2, 1},
                  {"f32", GJ_DTYPE_F32, 4}};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        assert_string_equal(gj_dtype_name(dtypes[i].dtype), dtypes[i].name);
        assert_int_equal(gj_dtype_bytes(dtypes[i].dtype), dtypes[i].bytes);
    }
    assert_string_equal(gj_dtype_name(GJ_DTYPE_NONE), "none");
    assert_int_equal(gj_dtype_bytes(GJ_DTYPE_NONE), 0);
    assert_non_null(gj_dtype_name((enum gj_dtype)99));
    assert_int_equal(gj_dtype_bytes((enum gj_dtype)99), 0);
}

/* A struct with values outside their enums must not read outside the tables. */
static void format_survives_any_struct(void **state)
{
    (void)state;
    static const int values[] = {-1, 99, INT_MAX, INT_MIN};
    for (size_t v = 0; v < COUNT(values); v++) {
        int fields[sizeof(struct gj_key) / sizeof(int)];
        struct gj_key key;
        char text[GJ_KEY_TEXT_MAX];
        for (size_t i = 0; i < COUNT(fields); i++)
            fields[i] = values[v];
        memcpy(&key, fields, sizeof key);
        assert_true(gj_key_format(&key, text, sizeof text) > 0);
        assert_true(strlen(text) < sizeof text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_as_documented),
        cmocka_unit_test(defaults_depend_on_other_fields),
        cmocka_unit_test(defaults_depend_on_the_operation),
        cmocka_unit_test(format_prints_in_documented_order),
        cmocka_unit_test(an_id_is_a_number),
        cmocka_unit_test(format_truncates),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(format_survives_any_struct),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
