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
_Static_assert(sizeof(struct gj_key) == 25 * sizeof(int), "compared as bytes");

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
    assert_int_equal(parse("op=act").p.dtype, GJ_DTYPE_NONE);
    assert_int_equal(parse("p=none").p.dtype, GJ_DTYPE_NONE);
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
        {"op=act,d=none", "op=act,a=bf16.k,b=bf16.k,c=none,d=none,p=none,acc=f32,act=none,alpha=one,"
                          "beta=none,batch=dense,gather=none,tile=128x192,cluster=2x1,sched=pingpong,"
                          "tiles=static,swap_ab=no"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_key key = parse(cases[i].given);
        char text[GJ_KEY_TEXT_MAX];
        assert_int_equal(gj_key_format(&key, text, sizeof text), strlen(cases[i].canonical));
        assert_string_equal(text, cases[i].canonical);
    }
}

/* -- round trip ------------------------------------------------------------------------------------------ */

/* The words of design section 4, each with the enum value that it stands for. */
struct word {
    const char *text;
    int value;
};

static const struct word ops[] = {{"gemm", GJ_OP_GEMM},
                                  {"act", GJ_OP_ACT},
                                  {"dact", GJ_OP_DACT},
                                  {"gated", GJ_OP_GATED},
                                  {"dgated", GJ_OP_DGATED}};
static const struct word dtypes[] = {{"f16", GJ_DTYPE_F16},
                                     {"bf16", GJ_DTYPE_BF16},
                                     {"e4m3", GJ_DTYPE_E4M3},
                                     {"e5m2", GJ_DTYPE_E5M2},
                                     {"f32", GJ_DTYPE_F32}};
#define NUM_INPUT_DTYPES 4 /* f32 is for c, d and p only */
static const struct word majors_a[] = {{"k", GJ_MAJOR_K}, {"m", GJ_MAJOR_M}};
static const struct word majors_b[] = {{"k", GJ_MAJOR_K}, {"n", GJ_MAJOR_N}};
static const struct word majors_d[] = {{"n", GJ_MAJOR_N}, {"m", GJ_MAJOR_M}};
static const struct word accs[] = {{"f32", GJ_DTYPE_F32}, {"f16", GJ_DTYPE_F16}};
static const struct word acts[] = {{"none", GJ_ACT_NONE},
                                   {"relu", GJ_ACT_RELU},
                                   {"relu_sq", GJ_ACT_RELU_SQ},
                                   {"gelu_tanh", GJ_ACT_GELU_TANH}};
static const struct word alphas[] = {
    {"one", GJ_SCALAR_ONE}, {"host", GJ_SCALAR_HOST}, {"device", GJ_SCALAR_DEVICE}, {"none", GJ_SCALAR_NONE}};
static const struct word batches[] = {
    {"dense", GJ_BATCH_DENSE}, {"varlen_m", GJ_BATCH_VARLEN_M}, {"varlen_k", GJ_BATCH_VARLEN_K}};
static const struct word gathers[] = {{"none", GJ_GATHER_NONE}, {"a", GJ_GATHER_A}};
static const struct word fp8accs[] = {{"promoted", GJ_FP8ACC_PROMOTED}, {"fast", GJ_FP8ACC_FAST}};
static const struct word scheds[] = {{"pingpong", GJ_SCHED_PINGPONG}, {"coop", GJ_SCHED_COOP}};
static const struct word swap_abs[] = {{"no", GJ_SWAP_AB_NO}, {"yes", GJ_SWAP_AB_YES}};
static const struct word tiles[] = {
    {"static", GJ_TILES_STATIC}, {"dynamic", GJ_TILES_DYNAMIC}, {"once", GJ_TILES_ONCE}};

static void every_word_means_its_value(void **state)
{
    (void)state;
#define WORDS(field, prefix, words, suffix)                                  \
    for (size_t i = 0; i < COUNT(words); i++) {                              \
        char text[96];                                                       \
        snprintf(text, sizeof text, prefix "%s%s", (words)[i].text, suffix); \
        assert_int_equal((int)parse(text).field, (words)[i].value);          \
    }
    WORDS(op, "op=", ops, "")
    WORDS(act, "act=", acts, "")
    WORDS(acc, "acc=", accs, "")
    WORDS(batch, "batch=", batches, "")
    WORDS(gather, "gather=", gathers, "")
    WORDS(fp8acc, "a=e4m3.k,b=e4m3.k,fp8acc=", fp8accs, "")
    WORDS(sched, "sched=", scheds, "")
    WORDS(tiles, "tiles=", tiles, "")
    WORDS(swap_ab, "swap_ab=", swap_abs, "")
    WORDS(a.major, "a=f16.", majors_a, "")
    WORDS(b.major, "b=f16.", majors_b, "")
    WORDS(c.major, "c=f16.", majors_d, "")
    WORDS(d.major, "d=f16.", majors_d, "")
    WORDS(p.major, "op=act,p=f16.", majors_d, "")
    WORDS(c.dtype, "c=", dtypes, ".n")
    WORDS(d.dtype, "d=", dtypes, ".n")
    WORDS(p.dtype, "op=act,p=", dtypes, ".n")
#undef WORDS
    for (size_t i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "alpha=%s", alphas[i].text);
        assert_int_equal((int)parse(text).alpha, alphas[i].value);
        snprintf(text, sizeof text, "c=f16.n,beta=%s", alphas[i].text);
        assert_int_equal((int)parse(text).beta, alphas[i].value);
    }
    for (size_t i = 0; i < NUM_INPUT_DTYPES; i++) {
        char text[32];
        snprintf(text, sizeof text, "a=%s.k", dtypes[i].text);
        assert_int_equal((int)parse(text).a.dtype, dtypes[i].value);
        snprintf(text, sizeof text, "b=%s.k", dtypes[i].text);
        assert_int_equal((int)parse(text).b.dtype, dtypes[i].value);
        assert_string_equal(gj_dtype_name((enum gj_dtype)dtypes[i].value), dtypes[i].text);
    }
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * bound) >> 32);
}

/* Appends name=value with a random word, as a field of its own. */
struct fields {
    char texts[20][48];
    int count;
};

static int add_random(struct fields *fields, const char *name, const struct word *words, size_t count)
{
    const struct word word = words[random_below((uint32_t)count)];
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "%s=%s", name, word.text);
    return word.value;
}

static struct gj_format add_random_format(struct fields *fields, const char *name, size_t num_dtypes,
                                          const struct word *majors, bool optional)
{
    char *const text = fields->texts[fields->count++];
    if (optional && random_below(3) == 0) {
        snprintf(text, sizeof fields->texts[0], "%s=none", name);
        return (struct gj_format){GJ_DTYPE_NONE, GJ_MAJOR_NONE};
    }
    const struct word dtype = dtypes[random_below((uint32_t)num_dtypes)], major = majors[random_below(2)];
    snprintf(text, sizeof fields->texts[0], "%s=%s.%s", name, dtype.text, major.text);
    return (struct gj_format){(enum gj_dtype)dtype.value, (enum gj_major)major.value};
}

static void add_random_pair(struct fields *fields, const char *name, int *first, int *second)
{
    *first = 1 + (int)random_below(9999);
    *second = 1 + (int)random_below(random_below(2) ? 9999 : 9);
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "%s=%dx%d", name, *first, *second);
}

/* A random key, and its fields as texts in random order. */
static struct gj_key random_key(struct fields *fields)
{
    struct gj_key key = gj_key_default();
    fields->count = 0;
    key.op = (enum gj_op)add_random(fields, "op", ops, COUNT(ops));
    key.a = add_random_format(fields, "a", NUM_INPUT_DTYPES, majors_a, false);
    key.b = add_random_format(fields, "b", NUM_INPUT_DTYPES, majors_b, false);
    key.c = add_random_format(fields, "c", COUNT(dtypes), majors_d, true);
    key.d = add_random_format(fields, "d", COUNT(dtypes), majors_d, true);
    if (key.op != GJ_OP_GEMM)
        key.p = add_random_format(fields, "p", COUNT(dtypes), majors_d, true);
    key.acc = (enum gj_dtype)add_random(fields, "acc", accs, COUNT(accs));
    key.act = (enum gj_act)add_random(fields, "act", acts, COUNT(acts));
    key.alpha = (enum gj_scalar_mode)add_random(fields, "alpha", alphas, 3);
    key.beta = (enum gj_scalar_mode)(key.c.dtype ? add_random(fields, "beta", alphas, 3)
                                                 : add_random(fields, "beta", alphas + 3, 1));
    key.batch = (enum gj_batch)add_random(fields, "batch", batches, COUNT(batches));
    key.gather = (enum gj_gather)add_random(fields, "gather", gathers, COUNT(gathers));
    if (gj_dtype_bytes(key.a.dtype) == 1 && gj_dtype_bytes(key.b.dtype) == 1)
        key.fp8acc = (enum gj_fp8acc)add_random(fields, "fp8acc", fp8accs, COUNT(fp8accs));
    add_random_pair(fields, "tile", &key.tile_m, &key.tile_n);
    add_random_pair(fields, "cluster", &key.cluster_m, &key.cluster_n);
    key.sched = (enum gj_sched)add_random(fields, "sched", scheds, COUNT(scheds));
    key.tiles = (enum gj_tiles)add_random(fields, "tiles", tiles, COUNT(tiles));
    key.swap_ab = (enum gj_swap_ab)add_random(fields, "swap_ab", swap_abs, COUNT(swap_abs));
    return key;
}

static void join_fields(const struct fields *fields, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < fields->count; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s", i ? "," : "", fields->texts[i]);
    assert_true(length < capacity);
}

static void shuffle(struct fields *fields)
{
    for (int i = fields->count - 1; i > 0; i--) {
        const uint32_t other = random_below((uint32_t)i + 1);
        char text[sizeof fields->texts[0]];
        memcpy(text, fields->texts[i], sizeof text);
        memmove(fields->texts[i], fields->texts[other], sizeof text);
        memcpy(fields->texts[other], text, sizeof text);
    }
}

static void random_keys_make_the_round_trip(void **state)
{
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct fields fields;
        const struct gj_key key = random_key(&fields);
        char expected[512], text[GJ_KEY_TEXT_MAX];
        join_fields(&fields, expected, sizeof expected);
        const size_t length = gj_key_format(&key, text, sizeof text);
        assert_true(length < GJ_KEY_TEXT_MAX);
        assert_string_equal(text, expected);
        const struct gj_key back = parse(text);
        assert_keys_equal(&back, &key);

        shuffle(&fields);
        join_fields(&fields, expected, sizeof expected);
        const struct gj_key shuffled = parse(expected);
        assert_keys_equal(&shuffled, &key);
    }
}

static void longest_text_fits(void **state)
{
    (void)state;
    const struct gj_key key =
        parse("op=dgated,a=e4m3.k,b=e4m3.k,c=e4m3.n,d=e4m3.n,p=e4m3.n,acc=f32,act=gelu_tanh,alpha=device,"
              "beta=device,"
              "batch=varlen_m,gather=none,fp8acc=promoted,tile=9999x9999,cluster=9999x9999,sched=pingpong,"
              "tiles=dynamic");
    char text[GJ_KEY_TEXT_MAX];
    assert_true(gj_key_format(&key, text, sizeof text) < GJ_KEY_TEXT_MAX);
    const struct gj_key back = parse(text);
    assert_keys_equal(&back, &key);
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

/* -- damage ---------------------------------------------------------------------------------------------- */

/* Whatever the text: success gives a key whose canonical text gives that key again, failure a message. */
static void damaged_texts_never_surprise(void **state)
{
    (void)state;
    static const char bytes[] = "abefgkmnopx=.,0129 -\x80";
    for (int round = 0; round < 50000; round++) {
        struct fields fields;
        char text[512];
        random_key(&fields);
        join_fields(&fields, text, sizeof text);
        const size_t length = strlen(text), at = random_below((uint32_t)length);
        if (random_below(2))
            text[at] = bytes[random_below(sizeof bytes - 1)];
        else
            memmove(text + at, text + at + 1, length - at);
        struct gj_key key, back;
        gj_error *error = NULL;
        if (gj_key_parse(text, &key, &error) == GJ_OK) {
            char canonical[GJ_KEY_TEXT_MAX];
            gj_key_format(&key, canonical, sizeof canonical);
            assert_int_equal(gj_key_parse(canonical, &back, &error), GJ_OK);
            assert_keys_equal(&key, &back);
        } else {
            assert_non_null(error);
            assert_true(strlen(error->message) > 0);
        }
        gj_error_free(&error);
    }
}

/* -- element types --------------------------------------------------------------------------------------- */

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    static const size_t bytes[] = {2, 2, 1, 1, 4};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        assert_string_equal(gj_dtype_name((enum gj_dtype)dtypes[i].value), dtypes[i].text);
        assert_int_equal(gj_dtype_bytes((enum gj_dtype)dtypes[i].value), bytes[i]);
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
        cmocka_unit_test(format_prints_in_documented_order),
        cmocka_unit_test(every_word_means_its_value),
        cmocka_unit_test(random_keys_make_the_round_trip),
        cmocka_unit_test(longest_text_fits),
        cmocka_unit_test(format_truncates),
        cmocka_unit_test(damaged_texts_never_surprise),
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(format_survives_any_struct),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
