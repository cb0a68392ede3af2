/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gj_key_check for sched=single: each sentence as it is written, and where its limits lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/check.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SINGLE_KEY(fields) "sched=single," fields
#define ALONE(fields) "cluster=1x1,sched=single," fields
#define SPLIT(fields) "cluster=1x1,sched=single,tiles=once," fields
#define TWO_CTAS(fields) "cluster=1x1,sched=single,ctas_per_sm=2," fields

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    if (gj_key_parse(text, &key, &error) != GJ_OK)
        fail_msg("%s: %s", text, error ? error->message : "no message");
    return key;
}

static void assert_accepted(const char *text)
{
    const struct gj_key key = parse(text);
    gj_error *error = NULL;
    if (gj_key_check(&key, &error) != GJ_OK)
        fail_msg("%s: %s", text, error->num_reasons ? error->reasons[0] : error->message);
    assert_null(error);
    struct gj_plan plan;
    gj_plan_make_numbers(&key, &plan);
    assert_true(gj_plan_accepts(&plan));
}

/* Refused for this reason and no other. */
static void assert_reason(const char *text, const char *reason)
{
    const struct gj_key key = parse(text);
    gj_error *error = NULL;
    assert_int_equal(gj_key_check(&key, &error), GJ_ERR_UNSUPPORTED);
    assert_non_null(error);
    if (error->num_reasons != 1)
        fail_msg("%s: %zu reasons, the last one: %s", text, error->num_reasons,
                 error->reasons[error->num_reasons - 1]);
    assert_string_equal(error->reasons[0], reason);
    gj_error_free(&error);
}

static const struct refusal {
    const char *text, *reason;
} refusals[] = {
    /* a split of K */
    {"cluster=1x1,sched=coop,tile=64x16,tiles=once,split_k=2", "split_k=2 needs sched=single and tiles=once"},
    {"cluster=1x1,sched=coop,tile=64x16,split_k=4", "split_k=4 needs sched=single and tiles=once"},
    {"cluster=1x1,sched=pingpong,tile=64x16,split_k=2", "split_k=2 needs sched=single and tiles=once"},
    {ALONE("tile=64x64,split_k=2"), "split_k=2 needs sched=single and tiles=once"},
    {ALONE("tile=64x64,split_k=4,swap_ab=yes"), "split_k=4 needs sched=single and tiles=once"},
    {SPLIT("tile=64x64,split_k=2,a=f16.k,b=f16.k,acc=f16"),
     "split_k=2 with acc=f16 is not generated: sums of a split are f32"},
    {SPLIT("tile=64x64,split_k=4,a=e4m3.k,b=e5m2.k,fp8acc=fast,acc=f16"),
     "split_k=4 with acc=f16 is not generated: sums of a split are f32"},
    /* two CTAs on an SM */
    {"cluster=1x1,sched=coop,ctas_per_sm=2,tile=64x16",
     "ctas_per_sm=2 needs sched=single: a CTA of others has 384 threads and all shared memory"},
    {"cluster=1x1,sched=pingpong,ctas_per_sm=2,tile=64x16",
     "ctas_per_sm=2 needs sched=single: a CTA of others has 384 threads and all shared memory"},
    /* clusters */
    {SINGLE_KEY("tile=64x64,cluster=2x2"),
     "cluster=2x2 with sched=single: at most two of its CTAs share a tile"},
    {SINGLE_KEY("tile=64x64,cluster=4x1"),
     "cluster=4x1 with sched=single: at most two of its CTAs share a tile"},
    {SINGLE_KEY("tile=64x64,cluster=1x4,swap_ab=yes"),
     "cluster=1x4 with sched=single: at most two of its CTAs share a tile"},
    {SINGLE_KEY("tile=64x64,cluster=2x1,tiles=once,split_k=2"),
     "cluster=2x1 with split_k=2: the CTAs of a split share K and no tiles"},
    {SINGLE_KEY("tile=64x64,cluster=1x2,tiles=once,split_k=4"),
     "cluster=1x2 with split_k=4: the CTAs of a split share K and no tiles"},
    {SINGLE_KEY("tile=64x24,cluster=1x2"),
     "tile=64x24 sched=single: columns must be a multiple of 16 from 16 to 256"},
    /* what is not generated */
    {ALONE("tile=64x64,tiles=dynamic"), "tiles=dynamic with sched=single is not generated"},
    {ALONE("op=gated,act=glu,gate=halves,d=none,tile=64x64"),
     "gate=halves with sched=single is not generated"},
    /* tiles */
    {ALONE("tile=192x64"), "tile=192x64 sched=single: rows must be one of 64, 128"},
    {ALONE("tile=256x64"), "tile=256x64 sched=single: rows must be one of 64, 128"},
    {ALONE("tile=32x64"), "tile=32x64 sched=single: rows must be one of 64, 128"},
    {ALONE("tile=64x8"), "tile=64x8 sched=single: columns must be a multiple of 16 from 16 to 256"},
    {ALONE("tile=64x272"), "tile=64x272 sched=single: columns must be a multiple of 16 from 16 to 256"},
    {ALONE("tile=128x40"), "tile=128x40 sched=single: columns must be a multiple of 16 from 16 to 256"},
};

static void each_reason_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++)
        assert_reason(refusals[i].text, refusals[i].reason);
}

static void reasons_come_together(void **state)
{
    (void)state;
    const struct gj_key key =
        parse("sched=single,tile=64x64,cluster=2x2,tiles=dynamic,split_k=2,a=f16.k,b=f16.k,acc=f16");
    static const char *const reasons[] = {
        "split_k=2 needs sched=single and tiles=once",
        "split_k=2 with acc=f16 is not generated: sums of a split are f32",
        "cluster=2x2 with sched=single: at most two of its CTAs share a tile",
        "cluster=2x2 with split_k=2: the CTAs of a split share K and no tiles",
        "tiles=dynamic with sched=single is not generated",
    };
    gj_error *error = NULL;
    assert_int_equal(gj_key_check(&key, &error), GJ_ERR_UNSUPPORTED);
    assert_int_equal(error->num_reasons, COUNT(reasons));
    for (size_t i = 0; i < COUNT(reasons); i++)
        assert_string_equal(error->reasons[i], reasons[i]);
    gj_error_free(&error);
}

static void accepted_keys(void **state)
{
    (void)state;
    static const char *const texts[] = {
        ALONE("tile=64x16"),
        ALONE("tile=128x128,swap_ab=yes"),
        ALONE("tile=64x64,tiles=once"),
        SINGLE_KEY("tile=64x64,cluster=2x1"),
        SINGLE_KEY("tile=64x64,cluster=1x2,tiles=once"),
        SINGLE_KEY("tile=64x16,cluster=2x1,ctas_per_sm=2"),
        SPLIT("tile=64x16,split_k=2"),
        SPLIT("tile=128x32,split_k=4,swap_ab=yes"),
        SPLIT("tile=64x16,split_k=4,ctas_per_sm=2"),
        SPLIT("tile=64x64,split_k=4,c=f32.n,alpha=device,beta=device"),
        SPLIT("tile=64x64,split_k=2,a=e4m3.k,b=e4m3.k,fp8acc=promoted"),
        ALONE("tile=64x64,a=f16.k,b=f16.k,acc=f16"),
        ALONE("tile=64x64,a=bf16.m,b=bf16.n"),
        ALONE("op=gated,act=swiglu,d=none,tile=64x64"),
        ALONE("op=gated,act=swiglu,d=none,gate=interleaved,tile=64x64,tiles=once,split_k=2"),
        ALONE("op=dgated,act=geglu,c=bf16.n,tile=64x64"),
        ALONE("op=act,act=silu,bias=col.bf16,tile=64x64,swap_ab=yes"),
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_accepted(texts[i]);
}

/* -- accumulators ---------------------------------------------------------------------------------------- */

/* With `fields` a tile of `fits` columns is accepted, and one of 16 more needs `registers` where `most` fit.
 */
struct limit {
    const char *fields;
    int rows, fits, registers, most;
    const char *beside;
};

static void check_limit(const char *config, const struct limit *limit)
{
    char text[256], reason[256];
    snprintf(text, sizeof text, "cluster=1x1,sched=single,%s,%s,tile=%dx%d", config, limit->fields,
             limit->rows, limit->fits);
    assert_accepted(text);
    const int step = strstr(limit->fields, "gated") ? 32 : 16, more = limit->fits + step;
    snprintf(text, sizeof text, "cluster=1x1,sched=single,%s,%s,tile=%dx%d", config, limit->fields,
             limit->rows, more);
    snprintf(reason, sizeof reason,
             "tile=%dx%d sched=single needs %d accumulator registers per thread%s: at most %d fit",
             limit->rows, more, limit->registers, limit->beside, limit->most);
    assert_reason(text, reason);
}

/* 512 threads on an SM have 128 registers each. */
static void accumulators_of_two_ctas(void **state)
{
    (void)state;
    static const struct limit limits[] = {
        {"d=bf16.n", 64, 128, 72, 64, ""},
        {"d=bf16.n", 128, 64, 80, 64, ""},
        {"d=bf16.n,swap_ab=yes", 64, 128, 72, 64, ""},
        {"c=bf16.n", 64, 128, 72, 64, " beside C"},
        {"alpha=device", 64, 128, 72, 64, ""},
        {"a=f16.k,b=f16.k,d=f16.n,acc=f16", 128, 128, 72, 64, ""},
        {"a=e4m3.k,b=e4m3.k,fp8acc=fast", 64, 128, 72, 64, ""},
        {"a=e4m3.k,b=e4m3.k,fp8acc=promoted", 64, 64, 80, 64, " with fp8acc=promoted"},
        {"scale=tensor", 64, 128, 72, 64, " beside what is fused"},
        {"bias=col.bf16", 64, 64, 40, 32, " beside what is fused"},
        {"bias=row.f32,swap_ab=yes", 128, 32, 48, 32, " beside what is fused"},
        {"scale=row", 64, 64, 40, 32, " beside what is fused"},
        {"quant=scale,d=e4m3.n", 64, 64, 40, 32, " beside what is fused"},
        {"op=act,act=relu", 64, 64, 40, 32, " beside what is fused"},
        {"op=act,act=relu,d=none,bias=col.f32", 64, 64, 40, 32, " beside what is fused"},
        {"op=dact,act=silu,c=bf16.n", 128, 32, 48, 32, " beside what is fused"},
        {"op=gated,act=glu,d=none", 64, 64, 48, 32, " beside what is fused"},
        {"op=dgated,act=glu,c=bf16.n", 64, 64, 48, 32, " beside what is fused"},
    };
    for (size_t i = 0; i < COUNT(limits); i++) {
        check_limit("ctas_per_sm=2", &limits[i]);
        check_limit("ctas_per_sm=2,tiles=once", &limits[i]);
    }
}

static void accumulators_of_one_cta(void **state)
{
    (void)state;
    static const struct limit limits[] = {
        {"d=bf16.n", 128, 208, 224, 208, ""},
        {"c=f32.n", 128, 192, 208, 200, " beside C"},
        {"bias=col.bf16", 128, 192, 208, 192, " beside what is fused"},
        {"op=act,act=relu,bias=col.bf16", 128, 192, 208, 192, " beside what is fused"},
        {"op=act,act=relu,bias=col.bf16,quant=scale", 128, 176, 192, 176, " beside what is fused"},
        {"op=dact,act=silu,c=bf16.n,bias=col.bf16", 128, 176, 192, 176, " beside what is fused"},
        {"a=e4m3.k,b=e4m3.k,fp8acc=promoted", 64, 208, 224, 208, " with fp8acc=promoted"},
    };
    for (size_t i = 0; i < COUNT(limits); i++)
        check_limit("tiles=static", &limits[i]);
    assert_accepted(ALONE("tile=64x256"));
}

/* -- shared memory --------------------------------------------------------------------------------------- */

static void assert_memory_reason(const char *text, int needed, int most)
{
    const struct gj_key key = parse(text);
    char reason[256];
    snprintf(reason, sizeof reason, "tile=%dx%d needs %d bytes of shared memory for two stages: a CTA has %d",
             key.tile_m, key.tile_n, needed, most);
    assert_reason(text, reason);
}

/* Barriers, two epilogue tiles of 64 x 32 or 64 x 16, two stages, and what a split's other CTAs send. */
static void memory_of_two_stages(void **state)
{
    (void)state;
    const int staging = 2 * 64 * 32 * 2, staging16 = 2 * 64 * 16 * 2;
    const int sums = 3 * 128 * 128 * 4;
    assert_memory_reason(SPLIT("tile=128x128,split_k=4"), 1024 + staging + 2 * 256 * 128 + sums, 232448);
    assert_memory_reason(SPLIT("tile=64x240,split_k=4"), 1024 + staging16 + 2 * 304 * 128 + 3 * 64 * 240 * 4,
                         232448);
    assert_memory_reason(SPLIT("tile=64x96,split_k=4,ctas_per_sm=2"),
                         1024 + staging + 2 * 160 * 128 + 3 * 64 * 96 * 4, 115712);
    assert_memory_reason(SPLIT("tile=128x64,split_k=4,ctas_per_sm=2"),
                         1024 + staging + 2 * 192 * 128 + 3 * 128 * 64 * 4, 115712);
    assert_accepted(SPLIT("tile=128x128,split_k=2"));
    assert_accepted(SPLIT("tile=64x64,split_k=4,ctas_per_sm=2"));
    assert_accepted(SPLIT("tile=128x64,split_k=2,ctas_per_sm=2"));
    assert_accepted(TWO_CTAS("tile=64x128,c=f32.n,d=f32.n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_alone),       cmocka_unit_test(reasons_come_together),
        cmocka_unit_test(accepted_keys),           cmocka_unit_test(accumulators_of_two_ctas),
        cmocka_unit_test(accumulators_of_one_cta), cmocka_unit_test(memory_of_two_stages),
    };
    return cmocka_run_group_tests_name("single_check", tests, NULL, NULL);
}
