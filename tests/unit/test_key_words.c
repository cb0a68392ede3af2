/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of key text, word by word and with random keys: each makes the round trip, and damage is survived. */
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

/* -- round trip ------------------------------------------------------------------------------------------ */

/* The words of key text, each with the enum value that it stands for. */
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
                                   {"gelu_tanh", GJ_ACT_GELU_TANH},
                                   {"gelu_erf", GJ_ACT_GELU_ERF},
                                   {"silu", GJ_ACT_SILU},
                                   {"quick_gelu", GJ_ACT_QUICK_GELU},
                                   {"sigmoid", GJ_ACT_SIGMOID},
                                   {"tanh", GJ_ACT_TANH},
                                   {"swiglu", GJ_ACT_SWIGLU},
                                   {"swiglu_oai", GJ_ACT_SWIGLU_OAI},
                                   {"geglu", GJ_ACT_GEGLU},
                                   {"reglu", GJ_ACT_REGLU},
                                   {"glu", GJ_ACT_GLU},
                                   {"own", GJ_ACT_OWN}}; /* the last one: it needs a field more */
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

static const struct word gates[] = {{"interleaved", GJ_GATE_INTERLEAVED}, {"halves", GJ_GATE_HALVES}};
static const struct word biases[] = {{"none", GJ_BIAS_NONE},        {"row.f32", GJ_BIAS_ROW_F32},
                                     {"row.f16", GJ_BIAS_ROW_F16},  {"row.bf16", GJ_BIAS_ROW_BF16},
                                     {"col.f32", GJ_BIAS_COL_F32},  {"col.f16", GJ_BIAS_COL_F16},
                                     {"col.bf16", GJ_BIAS_COL_BF16}};
static const struct word scales[] = {{"none", GJ_SCALE_NONE},
                                     {"tensor", GJ_SCALE_TENSOR},
                                     {"row", GJ_SCALE_ROW},
                                     {"col", GJ_SCALE_COL},
                                     {"row_col", GJ_SCALE_ROW_COL}};
static const struct word quants[] = {
    {"none", GJ_QUANT_NONE}, {"scale", GJ_QUANT_SCALE}, {"amax", GJ_QUANT_AMAX}};

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
    for (size_t i = 0; i < COUNT(acts); i++) {
        char text[64];
        snprintf(text, sizeof text, "act=%s%s", acts[i].text,
                 acts[i].value == GJ_ACT_OWN ? ",own=0000000000000001" : "");
        assert_int_equal((int)parse(text).act, acts[i].value);
    }
    WORDS(gate, "op=gated,gate=", gates, "")
    WORDS(gate, "op=dgated,gate=", gates, "")
    WORDS(bias, "bias=", biases, "")
    WORDS(scale, "scale=", scales, "")
    WORDS(quant, "quant=", quants, "")
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
    char texts[23][48];
    int count;
};

static int add_random(struct fields *fields, const char *name, const struct word *words, size_t count)
{
    const struct word word = words[random_below((uint32_t)count)];
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "%s=%s", name, word.text);
    return word.value;
}

/* The same for a field that canonical text leaves out while it is none, its first word. */
static int add_random_later(struct fields *fields, const char *name, const struct word *words, size_t count)
{
    const int value = add_random(fields, name, words, count);
    fields->count -= value == words[0].value;
    return value;
}

static struct gj_own_id add_random_id(struct fields *fields)
{
    const struct gj_own_id id = {random_below(UINT32_MAX), random_below(UINT32_MAX)};
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "own=%08x%08x", id.high, id.low);
    return id;
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
    if (key.op == GJ_OP_GATED || key.op == GJ_OP_DGATED)
        key.gate = (enum gj_gate)add_random(fields, "gate", gates, COUNT(gates));
    key.bias = (enum gj_bias)add_random_later(fields, "bias", biases, COUNT(biases));
    key.scale = (enum gj_scale)add_random_later(fields, "scale", scales, COUNT(scales));
    key.quant = (enum gj_quant)add_random_later(fields, "quant", quants, COUNT(quants));
    if (key.act == GJ_ACT_OWN)
        key.own = add_random_id(fields);
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

static void add_longest(struct fields *fields, const char *name, const struct word *words, size_t count)
{
    const struct word *longest = &words[0];
    for (size_t i = 1; i < count; i++)
        if (strlen(words[i].text) > strlen(longest->text))
            longest = &words[i];
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "%s=%s", name, longest->text);
}

static void add_text(struct fields *fields, const char *text)
{
    snprintf(fields->texts[fields->count++], sizeof fields->texts[0], "%s", text);
}

/* Every field there is, each with its longest value. */
static void longest_text_fits(void **state)
{
    (void)state;
    struct fields fields = {.count = 0};
    static const char *const formats[] = {"a=e4m3.k", "b=e4m3.k", "c=bf16.n", "d=bf16.n", "p=bf16.n"};
    add_longest(&fields, "op", ops, COUNT(ops));
    for (size_t i = 0; i < COUNT(formats); i++)
        add_text(&fields, formats[i]);
    add_longest(&fields, "acc", accs, COUNT(accs));
    add_text(&fields, "act=own"); /* with its 16 digits longer than any other */
    add_longest(&fields, "alpha", alphas, 3);
    add_longest(&fields, "beta", alphas, 3);
    add_longest(&fields, "batch", batches, COUNT(batches));
    add_longest(&fields, "gather", gathers, COUNT(gathers));
    add_longest(&fields, "fp8acc", fp8accs, COUNT(fp8accs));
    add_text(&fields, "tile=9999x9999");
    add_text(&fields, "cluster=9999x9999");
    add_longest(&fields, "sched", scheds, COUNT(scheds));
    add_longest(&fields, "tiles", tiles, COUNT(tiles));
    add_longest(&fields, "swap_ab", swap_abs, COUNT(swap_abs));
    add_longest(&fields, "gate", gates, COUNT(gates));
    add_longest(&fields, "bias", biases, COUNT(biases));
    add_longest(&fields, "scale", scales, COUNT(scales));
    add_longest(&fields, "quant", quants, COUNT(quants));
    add_text(&fields, "own=0123456789abcdef");
    assert_int_equal(fields.count, COUNT(fields.texts));
    char given[512], text[GJ_KEY_TEXT_MAX];
    join_fields(&fields, given, sizeof given);
    const struct gj_key key = parse(given);
    assert_int_equal(gj_key_format(&key, text, sizeof text), strlen(given));
    assert_string_equal(text, given);
    const struct gj_key back = parse(text);
    assert_keys_equal(&back, &key);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_means_its_value),
        cmocka_unit_test(random_keys_make_the_round_trip),
        cmocka_unit_test(longest_text_fits),
        cmocka_unit_test(damaged_texts_never_surprise),
    };
    return cmocka_run_group_tests_name("key_words", tests, NULL, NULL);
}
