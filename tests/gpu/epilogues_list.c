/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with their bounds, and quack's cases. */
#include "epilogues_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "epilogues_keys.h"

/* Bounds of the error over max(1, |x|) max(1, |up|) max(1, |gradient|), or over |ref| where that is larger,
 * less the rounding to a 16-bit type where the outputs have one. */
#define ONE_ROUNDING 2e-7
#define APPROXIMATE 2e-6

static const struct function functions[] = {
    {"none", false, EXACT, EXACT},
    {"relu", false, EXACT, EXACT},
    {"relu_sq", false, ONE_ROUNDING, ONE_ROUNDING},
    {"gelu_tanh", false, APPROXIMATE, APPROXIMATE},
    {"gelu_erf", false, APPROXIMATE, APPROXIMATE},
    {"silu", false, APPROXIMATE, APPROXIMATE},
    {"quick_gelu", false, APPROXIMATE, APPROXIMATE},
    {"sigmoid", false, APPROXIMATE, APPROXIMATE},
    {"tanh", false, APPROXIMATE, APPROXIMATE},
    {"swiglu", true, APPROXIMATE, APPROXIMATE},
    {"swiglu_oai", true, APPROXIMATE, APPROXIMATE},
    {"geglu", true, APPROXIMATE, APPROXIMATE},
    {"reglu", true, ONE_ROUNDING, ONE_ROUNDING},
    {"glu", true, APPROXIMATE, APPROXIMATE},
};
#define NUM_FUNCTIONS ((int)(sizeof functions / sizeof functions[0]))

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    return key;
}

static void push(struct variants *variants, struct variant v)
{
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(&v.key, text, sizeof text);
    if (variants->filter != NULL && strstr(text, variants->filter) == NULL)
        return;
    if (variants->count == VARIANTS_MAX)
        abort();
    v.none = !epilogues_nearest(&v.key, &v.moved);
    variants->list[variants->count++] = v;
}

/* The most exact formats that are accepted. */
static void add_function(struct variants *variants, const struct function *function, bool back)
{
    static const char *const formats[2][5] = {
        {"d=f32.n,p=f32.n", "d=f32.n,p=f16.n", "d=f16.n,p=f16.n", "d=none,p=f16.n", NULL},
        {"c=f32.n,d=f32.n,p=f32.n", "c=f16.n,d=f32.n,p=f32.n", "c=f16.n,d=f16.n,p=f32.n",
         "c=f16.n,d=f16.n,p=f16.n", NULL}};
    const char *const op = function->gated ? back ? "dgated" : "gated" : back ? "dact" : "act";
    struct variant v = {.id = op, .function = function, .gap_a = 1, .k = 16};
    for (int i = 0; formats[back][i] != NULL; i++) {
        char text[128];
        struct gj_key nearest;
        bool moved;
        snprintf(text, sizeof text, "op=%s,act=%s,%s,tile=128x128,cluster=1x1", op, function->name,
                 formats[back][i]);
        v.key = nearest = parse(text);
        if (epilogues_nearest(&nearest, &moved))
            break;
    }
    push(variants, v);
}

/* Extents of quack's tests: M is 960, n counts columns of A B^T. */
static void add_extents(struct variants *variants, struct variant v, const char *text, int last_k,
                        int columns)
{
    v.key = parse(text);
    v.m = 960;
    for (int i = 0; i < 4; i++) {
        v.k = i & 1 ? last_k : 736;
        v.n = columns * (i & 2 ? 2048 : 1504);
        push(variants, v);
    }
}

void variants_add_cases(struct variants *variants)
{
    static const char *const acts[] = {"relu", "relu_sq", "gelu_tanh"};
    static const char *const gates[] = {"swiglu", "swiglu_oai", "geglu", "reglu", "glu"};
    char text[128];
    for (int i = 0; i < 6; i++) {
        const struct variant v = {
            .id = i % 2 ? "T2 act, PreAct stored" : "T2 act", .gap_a = 2, .eps_d = 1e-6, .eps_p = 1e-6};
        snprintf(text, sizeof text, "op=act,act=%s,d=%s", acts[i / 2], i % 2 ? "bf16.n" : "none");
        add_extents(variants, v, text, 4096, 1);
    }
    for (int i = 0; i < 3; i++) {
        const struct variant v = {.id = "T3 dact", .gap_a = 1, .eps_d = 1e-5, .eps_p = 1e-5};
        snprintf(text, sizeof text, "op=dact,act=%s,c=bf16.n,tiles=dynamic", acts[i]);
        add_extents(variants, v, text, 1024, 1);
    }
    for (int i = 0; i < 20; i++) {
        const struct variant v = {
            .id = i >= 10 ? "7.4 gated, halves" : "7.4 gated", .gap_a = 1, .eps_d = 1e-5, .eps_p = 1e-6};
        snprintf(text, sizeof text, "op=gated,act=%s,%s,bias=%s", gates[i % 5],
                 i >= 15   ? "gate=halves"
                 : i >= 10 ? "gate=halves,d=none"
                           : "gate=interleaved",
                 i / 5 % 2 ? "col.bf16" : "none");
        add_extents(variants, v, text, 4096, 2);
    }
    for (int i = 0; i < 10; i++) {
        const struct variant v = {
            .id = i >= 5 ? "7.4 dgated, halves" : "7.4 dgated", .gap_a = 1, .eps_d = 1e-5, .eps_p = 1e-5};
        snprintf(text, sizeof text, "op=dgated,act=%s,c=bf16.n,gate=%s", gates[i % 5],
                 i >= 5 ? "halves" : "interleaved");
        add_extents(variants, v, text, 1024, 1);
    }
}

void variants_add_functions(struct variants *variants)
{
    for (int i = 0; i < NUM_FUNCTIONS; i++)
        for (int back = 0; back < 2; back++)
            add_function(variants, &functions[i], back);
}
