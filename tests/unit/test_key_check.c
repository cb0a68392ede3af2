/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gj_key_check and gj_keys_enumerate: which keys are refused, why, and which are proposed. */
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
#define KEYS_MAX 4096

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    if (gj_key_parse(text, &key, &error) != GJ_OK)
        fail_msg("%s: %s", text, error ? error->message : "no message");
    return key;
}

/* -- reasons --------------------------------------------------------------------------------------------- */

static void print_reasons(const char *text, const gj_error *error)
{
    print_error("%s: %zu reasons\n", text, error->num_reasons);
    for (size_t i = 0; i < error->num_reasons; i++)
        print_error("    %s\n", error->reasons[i]);
}

/* Whether some reason has all of `parts`, separated by '|'. */
static bool has_reason(const gj_error *error, const char *parts)
{
    for (size_t i = 0; i < error->num_reasons; i++) {
        char *const copy = strdup(parts);
        bool all = true;
        for (char *rest = copy, *part; (part = strsep(&rest, "|")) != NULL;)
            all = all && strstr(error->reasons[i], part) != NULL;
        free(copy);
        if (all)
            return true;
    }
    return false;
}

/* Asserts that the key is refused for exactly `count` reasons, among them those given. */
static void assert_refused(const char *text, size_t count, const char *const *reasons)
{
    const struct gj_key key = parse(text);
    gj_error *error = NULL;
    assert_int_equal(gj_key_check(&key, NULL), GJ_ERR_UNSUPPORTED);
    assert_int_equal(gj_key_check(&key, &error), GJ_ERR_UNSUPPORTED);
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_UNSUPPORTED);
    bool good = error->num_reasons == count;
    for (size_t i = 0; i < count; i++)
        good = good && has_reason(error, reasons[i]);
    char canonical[GJ_KEY_TEXT_MAX], number[32];
    gj_key_format(&key, canonical, sizeof canonical);
    snprintf(number, sizeof number, "%zu reason%s", count, count == 1 ? "" : "s");
    good = good && strstr(error->message, canonical) != NULL && strstr(error->message, number) != NULL;
    if (!good) {
        print_error("%s\n", error->message);
        print_reasons(text, error);
    }
    assert_true(good);
    gj_error_free(&error);
}

static void each_reason_alone(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"op=gated", "act=none|op=gated|swiglu, swiglu_oai, geglu, reglu, glu, own"},
        {"act=relu", "act=relu|none"},
        {"acc=f16", "acc=f16|bf16|f32"},
        {"acc=f16,a=e4m3.k,b=e4m3.k,tile=128x64", "acc=f16|promoted"},
        {"batch=varlen_m", "batch=varlen_m|dense"},
        {"batch=varlen_k", "batch=varlen_k|dense"},
        {"gather=a", "gather=a|none"},
        {"cluster=1x1,split_k=2,tiles=once,sched=coop", "split_k=2|sched=single"},
        {"cluster=1x1,tile=64x64,sched=single,split_k=4", "split_k=4|tiles=once"},
        {"cluster=1x1,ctas_per_sm=2", "ctas_per_sm=2|sched=single"},
        {"cluster=2x1,tile=64x64,sched=single,tiles=once,split_k=2", "cluster=2x1|split_k=2"},
        {"cluster=2x2,tile=64x64,sched=single", "cluster=2x2|at most two"},
        {"cluster=1x1,tile=64x64,sched=single,tiles=dynamic", "tiles=dynamic|sched=single"},
        {"cluster=1x1,tile=192x64,sched=single", "tile=192x64 sched=single|64, 128"},
        {"cluster=1x1,tile=64x144,sched=single,ctas_per_sm=2", "72 accumulator|at most 64"},
        {"cluster=1x1,tile=64x64,sched=single,tiles=once,split_k=2,acc=f16,a=f16.k,b=f16.k",
         "split_k=2|acc=f16"},
        {"op=gated,act=glu,gate=halves,d=none,cluster=1x1,tile=64x64,sched=single",
         "gate=halves|sched=single"},
        {"tiles=once,sched=pingpong", "tiles=once|pingpong"},
        {"a=f16.k", "a=f16|b=bf16"},
        {"b=f16.k", "a=bf16|b=f16"},
        {"a=e4m3.k", "a=e4m3|b=bf16|width"},
        {"a=e4m3.m,b=e4m3.k,fp8acc=fast", "a=e4m3|m-major|k-major"},
        {"a=e4m3.k,b=e5m2.n,fp8acc=fast", "b=e5m2|n-major|k-major"},
        {"d=none", "d=none"},
        {"tile=256x64,sched=pingpong", "256x64|pingpong|64, 128, 192"},
        {"tile=96x128,sched=coop", "96x128|coop|64, 128, 192, 256, 320"},
        {"tile=128x136,cluster=1x1", "128x136|16|256"},
        {"tile=128x8,cluster=1x1", "128x8|16|256"},
        {"tile=64x272,sched=pingpong", "64x272|16|256"},
        {"tile=192x144,sched=coop", "192x144|multiple of 32"},
        {"tile=192x112,sched=coop", "192x112|multiple of 32"},
        {"tile=192x160,sched=coop,b=bf16.n", "192x160|80 columns|n-major|64"},
        {"tile=128x224,sched=pingpong", "128x224|pingpong|224|208"},
        {"tile=192x144,sched=pingpong", "192x144|pingpong|216|208"},
        {"tile=256x224,sched=coop", "256x224|coop|224|208"},
        {"tile=320x192,sched=coop", "320x192|coop|240|208"},
        {"tile=128x208,c=f32.n", "128x208|208|beside C|200"},
        {"a=e4m3.k,b=e5m2.k,tile=128x128", "128x128|256|promoted|208"},
        {"cluster=4x2", "cluster=4x2|1x1|2x1|1x2|2x2|4x1|1x4"},
        {"cluster=4x1,tile=128x208", "cluster=4x1|208 rows of B|8-row"},
        {"cluster=3x1", "cluster=3x1|1x1|2x1|1x2"},
        {"a=f16.k,b=f16.k,cluster=1x3,tile=192x128", "cluster=1x3|1x1|2x1|1x2"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, 1, &cases[i].reason);
}

static void reasons_come_together(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
        const char *reasons[12];
    } cases[] = {
        {"tile=128x24,cluster=4x1", 2, {"128x24|16|256", "cluster=4x1|24 rows of B|8-row"}},
        {"tile=1024x1024,sched=coop,cluster=1x1",
         4,
         {"1024x1024|rows", "1024x1024|columns|16|256", "4096|208", "bytes of shared memory|232448"}},
        {"op=dact,act=glu,acc=f16,batch=varlen_m,gather=a,tiles=once,d=none,p=none,cluster=3x3,tile=128x208,"
         "sched=pingpong",
         11,
         {"act=glu|op=dact", "acc=f16", "batch=varlen_m", "gather=a", "tiles=once", "d=none|op=dact",
          "p=none|op=dact", "c=none|op=dact", "cluster=3x3", "128 rows of A", "208 rows of B",
          "cluster=3x3"}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].count, cases[i].reasons);
}

/* Shared memory: the reason has the bytes that two stages and the least staging take. */
static void memory_reason_has_its_bytes(void **state)
{
    (void)state;
    const struct gj_key key = parse("tile=640x640,sched=coop,cluster=1x1");
    gj_error *error = NULL;
    assert_int_equal(gj_key_check(&key, &error), GJ_ERR_UNSUPPORTED);
    /* barriers, 2 x 128 x 32 of D, 2 stages of 1280 rows */
    char parts[64];
    snprintf(parts, sizeof parts, "640x640|%d|232448", 1024 + 2 * 128 * 32 * 2 + 2 * 1280 * 128);
    assert_true(has_reason(error, parts));
    gj_error_free(&error);
}

static void accepted_keys_have_no_error(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "tile=64x16,cluster=1x1", "tile=256x208,sched=coop",
                                        "tile=128x256,sched=coop,cluster=1x2",
                                        "a=f16.k,b=f16.k,d=f32.n,tile=192x128,sched=coop"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        const struct gj_key key = parse(texts[i]);
        gj_error *error = NULL;
        assert_int_equal(gj_key_check(&key, &error), GJ_OK);
        assert_null(error);
        assert_int_equal(gj_key_check(&key, NULL), GJ_OK);
    }
}

/* -- structs that no text gives -------------------------------------------------------------------------- */

static void assert_argument(const struct gj_key *key, const char *field)
{
    gj_error *error = NULL;
    assert_int_equal(gj_key_check(key, NULL), GJ_ERR_ARGUMENT);
    assert_int_equal(gj_key_check(key, &error), GJ_ERR_ARGUMENT);
    assert_non_null(error);
    if (strstr(error->message, field) == NULL)
        fail_msg("the message does not name %s: %s", field, error->message);
    gj_error_free(&error);
}

static void values_outside_their_enum_are_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"op", offsetof(struct gj_key, op)},
        {"a", offsetof(struct gj_key, a.dtype)},
        {"a", offsetof(struct gj_key, a.major)},
        {"b", offsetof(struct gj_key, b.dtype)},
        {"b", offsetof(struct gj_key, b.major)},
        {"c", offsetof(struct gj_key, c.dtype)},
        {"c", offsetof(struct gj_key, c.major)},
        {"d", offsetof(struct gj_key, d.dtype)},
        {"d", offsetof(struct gj_key, d.major)},
        {"p", offsetof(struct gj_key, p.dtype)},
        {"p", offsetof(struct gj_key, p.major)},
        {"acc", offsetof(struct gj_key, acc)},
        {"act", offsetof(struct gj_key, act)},
        {"alpha", offsetof(struct gj_key, alpha)},
        {"beta", offsetof(struct gj_key, beta)},
        {"batch", offsetof(struct gj_key, batch)},
        {"gather", offsetof(struct gj_key, gather)},
        {"fp8acc", offsetof(struct gj_key, fp8acc)},
        {"tile", offsetof(struct gj_key, tile_m)},
        {"tile", offsetof(struct gj_key, tile_n)},
        {"cluster", offsetof(struct gj_key, cluster_m)},
        {"cluster", offsetof(struct gj_key, cluster_n)},
        {"sched", offsetof(struct gj_key, sched)},
        {"tiles", offsetof(struct gj_key, tiles)},
        {"swap_ab", offsetof(struct gj_key, swap_ab)},
        {"gate", offsetof(struct gj_key, gate)},
        {"bias", offsetof(struct gj_key, bias)},
        {"scale", offsetof(struct gj_key, scale)},
        {"quant", offsetof(struct gj_key, quant)},
        {"own", offsetof(struct gj_key, own.high)},
        {"own", offsetof(struct gj_key, own.low)},
        {"split_k", offsetof(struct gj_key, split_k)},
        {"ctas_per_sm", offsetof(struct gj_key, ctas_per_sm)},
    };
    static const int values[] = {-1, 10000, INT_MAX, INT_MIN};
    assert_int_equal(COUNT(fields) * sizeof(int), sizeof(struct gj_key));
    for (size_t i = 0; i < COUNT(fields); i++) {
        for (size_t v = 0; v < COUNT(values); v++) {
            struct gj_key key = gj_key_default();
            memcpy((char *)&key + fields[i].offset, &values[v], sizeof values[v]);
            assert_argument(&key, fields[i].name);
        }
    }
}

static void words_without_meaning_are_arguments(void **state)
{
    (void)state;
#define SET(field_name, statement)            \
    do {                                      \
        struct gj_key key = gj_key_default(); \
        statement;                            \
        assert_argument(&key, field_name);    \
    } while (0)
    SET("a", key.a.dtype = GJ_DTYPE_NONE);
    SET("a", key.a.dtype = GJ_DTYPE_F32);
    SET("a", key.a.major = GJ_MAJOR_NONE);
    SET("a", key.a.major = GJ_MAJOR_N);
    SET("b", key.b.major = GJ_MAJOR_M);
    SET("b", key.b.dtype = GJ_DTYPE_F32);
    SET("d", key.d.major = GJ_MAJOR_K);
    SET("d", key.d.major = GJ_MAJOR_NONE);
    SET("d", key.d.dtype = GJ_DTYPE_NONE);
    SET("c", key.c.major = GJ_MAJOR_N);
    SET("acc", key.acc = GJ_DTYPE_NONE);
    SET("acc", key.acc = GJ_DTYPE_BF16);
    SET("alpha", key.alpha = GJ_SCALAR_NONE);
    SET("tile", key.tile_m = 0);
    SET("cluster", key.cluster_n = 0);
}

/* Contradictory structs: their text would say something else than they do, so they must not pass. */
static void contradictions_are_arguments(void **state)
{
    (void)state;
    SET("beta", key.beta = GJ_SCALAR_HOST);
    SET("beta", key.beta = GJ_SCALAR_ONE);
    SET("beta", (key.c = (struct gj_format){GJ_DTYPE_F32, GJ_MAJOR_N}));
    SET("fp8acc", key.fp8acc = GJ_FP8ACC_FAST);
    SET("fp8acc", (key.fp8acc = GJ_FP8ACC_PROMOTED, key.tile_n = 64));
    SET("fp8acc", key.a.dtype = key.b.dtype = GJ_DTYPE_E4M3);
    SET("p", (key.p = (struct gj_format){GJ_DTYPE_BF16, GJ_MAJOR_N}));
    SET("gate", key.gate = GJ_GATE_INTERLEAVED);
    SET("gate", (key.op = GJ_OP_ACT, key.gate = GJ_GATE_HALVES));
    SET("gate", key.op = GJ_OP_GATED);
    SET("gate", (key.op = GJ_OP_DGATED, key.gate = GJ_GATE_NONE));
    SET("own", (key.op = GJ_OP_ACT, key.act = GJ_ACT_RELU, key.own.low = 1));
    SET("p", (key.op = GJ_OP_ACT, key.p.major = GJ_MAJOR_N));
    SET("p", (key.op = GJ_OP_ACT, key.p = (struct gj_format){GJ_DTYPE_BF16, GJ_MAJOR_NONE}));
#undef SET
}

/* -- enumeration ----------------------------------------------------------------------------------------- */

static struct gj_key *enumerate(const char *problem, size_t *count)
{
    const struct gj_key key = parse(problem);
    struct gj_key *const keys = malloc(KEYS_MAX * sizeof *keys);
    assert_non_null(keys);
    *count = gj_keys_enumerate(&key, keys, KEYS_MAX);
    assert_true(*count <= KEYS_MAX);
    return keys;
}

static bool contains(const struct gj_key *keys, size_t count, const struct gj_key *key)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&keys[i], key, sizeof *key) == 0)
            return true;
    return false;
}

static void enumerated_keys_are_accepted_and_distinct(void **state)
{
    (void)state;
    static const char *const problems[] = {"",
                                           "a=f16.k,b=f16.k,d=f16.n",
                                           "d=f32.n",
                                           "a=f16.k,b=f16.k,d=bf16.n",
                                           "op=act,act=gelu_erf,bias=col.bf16",
                                           "op=dact,act=silu,c=f16.m,p=e4m3.n,quant=amax",
                                           "op=gated,act=swiglu,gate=halves,d=none",
                                           "op=dgated,act=geglu,c=bf16.n",
                                           "a=e4m3.k,b=e4m3.k,d=e4m3.n,scale=row_col,quant=scale"};
    for (size_t p = 0; p < COUNT(problems); p++) {
        const struct gj_key problem = parse(problems[p]);
        size_t count;
        struct gj_key *const keys = enumerate(problems[p], &count);
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(gj_key_check(&keys[i], NULL), GJ_OK);
            assert_false(contains(keys, i, &keys[i]));
            /* the problem's fields are untouched */
            struct gj_key same = keys[i];
            same.tile_m = problem.tile_m;
            same.tile_n = problem.tile_n;
            same.cluster_m = problem.cluster_m;
            same.cluster_n = problem.cluster_n;
            same.sched = problem.sched;
            same.tiles = problem.tiles;
            same.split_k = problem.split_k;
            same.ctas_per_sm = problem.ctas_per_sm;
            assert_memory_equal(&same, &problem, sizeof same);
        }
        free(keys);
    }
}

static void enumeration_ignores_the_config(void **state)
{
    (void)state;
    size_t count, other_count;
    struct gj_key *const keys = enumerate("", &count);
    struct gj_key *const others = enumerate("tile=9999x1,cluster=7x5,sched=coop", &other_count);
    assert_int_equal(count, other_count);
    assert_memory_equal(keys, others, count * sizeof *keys);
    free(keys);
    free(others);
}

static void enumeration_respects_the_capacity(void **state)
{
    (void)state;
    const struct gj_key problem = gj_key_default();
    size_t count;
    struct gj_key *const keys = enumerate("", &count);
    assert_int_equal(gj_keys_enumerate(&problem, NULL, 0), count);
    const size_t capacities[] = {0, 1, 2, count / 2, count - 1, count, count + 1};
    for (size_t i = 0; i < COUNT(capacities); i++) {
        struct gj_key *const some = malloc((count + 2) * sizeof *some);
        assert_non_null(some);
        memset(some, 0xa5, (count + 2) * sizeof *some);
        const size_t written = capacities[i] < count ? capacities[i] : count;
        assert_int_equal(gj_keys_enumerate(&problem, some, capacities[i]), count);
        assert_memory_equal(some, keys, written * sizeof *some);
        for (size_t byte = written * sizeof *some; byte < (count + 2) * sizeof *some; byte++)
            assert_int_equal(((const unsigned char *)some)[byte], 0xa5);
        free(some);
    }
    free(keys);
}

/* quack 0.2.0's search space, section 6.2, with the clusters that are accepted. */
static void enumeration_contains_the_config_table(void **state)
{
    (void)state;
    static const int widths[] = {128, 144, 160, 176, 192, 208};
    static const int clusters[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
    size_t count;
    struct gj_key *const keys = enumerate("", &count);
    for (size_t c = 0; c < COUNT(clusters); c++) {
        struct gj_key key = gj_key_default();
        key.cluster_m = clusters[c][0];
        key.cluster_n = clusters[c][1];
#define ASSERT_CONTAINED(sched_, m, n) \
    (key.sched = (sched_), key.tile_m = (m), key.tile_n = (n), assert_true(contains(keys, count, &key)))
        for (size_t i = 0; i < COUNT(widths); i++) {
            ASSERT_CONTAINED(GJ_SCHED_COOP, 256, widths[i]);
            ASSERT_CONTAINED(GJ_SCHED_PINGPONG, 128, widths[i]);
        }
        ASSERT_CONTAINED(GJ_SCHED_COOP, 128, 224);
        ASSERT_CONTAINED(GJ_SCHED_COOP, 128, 256);
        ASSERT_CONTAINED(GJ_SCHED_PINGPONG, 192, 128);
#undef ASSERT_CONTAINED
    }
    free(keys);
}

/* No accepted config is missing. */
static void enumeration_is_complete(void **state)
{
    (void)state;
    size_t count, accepted = 0;
    struct gj_key *const keys = enumerate("d=f32.n,tiles=once", &count);
    struct gj_key key = parse("d=f32.n,tiles=once");
    for (int variant = 0; variant < 3 * 3 * 2; variant++) {
        key.sched = (enum gj_sched)(variant % 3);
        key.split_k = (enum gj_split_k)(variant / 3 % 3);
        key.ctas_per_sm = (enum gj_ctas_per_sm)(variant / 9);
        for (key.tile_m = 8; key.tile_m <= 512; key.tile_m += 8)
            for (key.tile_n = 8; key.tile_n <= 512; key.tile_n += 8)
                for (key.cluster_m = 1; key.cluster_m <= 4; key.cluster_m++)
                    for (key.cluster_n = 1; key.cluster_n <= 4; key.cluster_n++)
                        accepted += gj_key_check(&key, NULL) == GJ_OK;
    }
    assert_int_equal(accepted, count);
    free(keys);
}

static void enumeration_survives_any_problem(void **state)
{
    (void)state;
    static const int values[] = {-1, 0, 99, INT_MAX, INT_MIN};
    for (size_t offset = 0; offset < sizeof(struct gj_key); offset += sizeof(int)) {
        for (size_t v = 0; v < COUNT(values); v++) {
            struct gj_key problem = gj_key_default(), keys[1];
            memcpy((char *)&problem + offset, &values[v], sizeof values[v]);
            if (gj_keys_enumerate(&problem, keys, COUNT(keys)) > 0)
                assert_int_equal(gj_key_check(&keys[0], NULL), GJ_OK);
        }
    }
}

/* Types and majors that no kernel is generated for have no config at all. */
static void refused_problems_have_no_keys(void **state)
{
    (void)state;
    static const char *const problems[] = {"op=dact",
                                           "op=act,p=none",
                                           "op=act,act=swiglu",
                                           "op=gated",
                                           "op=dgated,act=glu,gate=halves,c=bf16.m",
                                           "op=gated,act=glu,swap_ab=yes",
                                           "acc=f16",
                                           "d=none",
                                           "batch=varlen_m",
                                           "a=e4m3.m,b=e4m3.k"};
    for (size_t i = 0; i < COUNT(problems); i++) {
        const struct gj_key problem = parse(problems[i]);
        assert_int_equal(gj_key_check(&problem, NULL), GJ_ERR_UNSUPPORTED);
        assert_int_equal(gj_keys_enumerate(&problem, NULL, 0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_alone),
        cmocka_unit_test(reasons_come_together),
        cmocka_unit_test(memory_reason_has_its_bytes),
        cmocka_unit_test(accepted_keys_have_no_error),
        cmocka_unit_test(values_outside_their_enum_are_arguments),
        cmocka_unit_test(words_without_meaning_are_arguments),
        cmocka_unit_test(contradictions_are_arguments),
        cmocka_unit_test(enumerated_keys_are_accepted_and_distinct),
        cmocka_unit_test(enumeration_ignores_the_config),
        cmocka_unit_test(enumeration_respects_the_capacity),
        cmocka_unit_test(enumeration_contains_the_config_table),
        cmocka_unit_test(enumeration_is_complete),
        cmocka_unit_test(enumeration_survives_any_problem),
        cmocka_unit_test(refused_problems_have_no_keys),
    };
    return cmocka_run_group_tests_name("key_check", tests, NULL, NULL);
}
