/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the checks of what is fused: PostAct, vectors, factors, and the outputs of gated operations; each
 * refusal with its whole message. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/args.h"
#include "kernel_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ADDRESS(value) ((void *)(uintptr_t)(value))

static const struct gj_gemm_args good = {
    .m = 100,
    .n = 48,
    .k = 72,
    .batch = 1,
    .a = {ADDRESS(0x10000), 72, 0},
    .b = {ADDRESS(0x20000), 80, 0},
    .d = {ADDRESS(0x30000), 48, 0},
};

static void accepted_by(const char *key_text, const struct gj_gemm_args *args)
{
    const struct gj_plan plan = plan_of(key_text);
    gj_error *error = NULL;
    if (gj_args_check(&plan, args, &error) != GJ_OK)
        fail_msg("%s: %s", key_text, error->message);
    assert_null(error);
}

static void refused_by(const char *key_text, const struct gj_gemm_args *args, const char *message)
{
    const struct gj_plan plan = plan_of(key_text);
    gj_error *error = NULL;
    if (gj_args_check(&plan, args, &error) != GJ_ERR_ARGUMENT)
        fail_msg("%s: not refused: %s", key_text, message);
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_ARGUMENT);
    assert_int_equal(error->stage, GJ_STAGE_LAUNCH);
    assert_string_equal(error->message, message);
    gj_error_free(&error);
    assert_int_equal(gj_args_check(&plan, args, NULL), GJ_ERR_ARGUMENT);
}

/* -- vectors and factors --------------------------------------------------------------------------------- */

enum vector { BIAS, SCALE_A, SCALE_B, QUANT_SCALE, AMAX, NUM_VECTORS };

static const char *const names[] = {"bias", "scale_a", "scale_b", "quant_scale", "amax"};

static void set_vector(struct gj_gemm_args *args, enum vector vector, uintptr_t address)
{
    switch (vector) {
    case BIAS:
        args->bias = ADDRESS(address);
        return;
    case SCALE_A:
        args->scale_a = ADDRESS(address);
        return;
    case SCALE_B:
        args->scale_b = ADDRESS(address);
        return;
    case QUANT_SCALE:
        args->quant_scale = ADDRESS(address);
        return;
    case AMAX:
        args->amax = ADDRESS(address);
        return;
    case NUM_VECTORS:
        return;
    }
}

static void set_stride(struct gj_gemm_args *args, enum vector vector, int64_t stride)
{
    if (vector == BIAS)
        args->bias_batch_stride = stride;
    if (vector == SCALE_A)
        args->scale_a_batch_stride = stride;
    if (vector == SCALE_B)
        args->scale_b_batch_stride = stride;
}

/* Keys, the vectors that they ask for, the field that does, and the bytes that an address is a multiple of.
 */
static const struct {
    const char *text;
    int asks; /* a bit for each vector */
    const char *field;
    int bytes;
} keys[] = {
    {"", 0, "", 4},
    {"bias=row.f32", 1 << BIAS, "bias", 4},
    {"bias=col.f32", 1 << BIAS, "bias", 4},
    {"bias=row.bf16", 1 << BIAS, "bias", 2},
    {"bias=col.f16", 1 << BIAS, "bias", 2},
    {"scale=tensor", 1 << SCALE_A | 1 << SCALE_B, "scale", 4},
    {"scale=row", 1 << SCALE_A, "scale", 4},
    {"scale=col", 1 << SCALE_B, "scale", 4},
    {"scale=row_col", 1 << SCALE_A | 1 << SCALE_B, "scale", 4},
    {"quant=scale", 1 << QUANT_SCALE, "quant", 4},
    {"quant=amax", 1 << QUANT_SCALE | 1 << AMAX, "quant", 4},
    {"scale=row,swap_ab=yes", 1 << SCALE_A, "scale", 4},
    {"scale=col,swap_ab=yes", 1 << SCALE_B, "scale", 4},
    {"bias=col.bf16,swap_ab=yes", 1 << BIAS, "bias", 2},
};

static struct gj_gemm_args args_for(int asks)
{
    struct gj_gemm_args args = good;
    for (int v = 0; v < NUM_VECTORS; v++)
        if (asks & 1 << v)
            set_vector(&args, (enum vector)v, 0x1000);
    return args;
}

static void vectors_are_those_that_the_key_asks_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct gj_gemm_args right = args_for(keys[i].asks);
        accepted_by(keys[i].text, &right);
        for (int v = 0; v < NUM_VECTORS; v++) {
            char message[128];
            struct gj_gemm_args args = right;
            const bool asks = keys[i].asks & 1 << v;
            if (asks)
                snprintf(message, sizeof message, "%s is NULL, but the kernel's key has %s", names[v],
                         v == AMAX ? "quant=amax" : keys[i].field);
            else
                snprintf(message, sizeof message, "%s is given, but the kernel's key does not ask for it",
                         names[v]);
            set_vector(&args, (enum vector)v, asks ? 0 : 0x1000);
            refused_by(keys[i].text, &args, message);
            args.m = 0; /* then there is nothing to do */
            accepted_by(keys[i].text, &args);
        }
    }
}

static void vectors_are_aligned_to_their_elements(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (int v = 0; v < NUM_VECTORS; v++) {
            for (int shift = 1; shift < 8 && keys[i].asks & 1 << v; shift++) {
                char message[128];
                struct gj_gemm_args args = args_for(keys[i].asks);
                set_vector(&args, (enum vector)v, 0x1000 + (uintptr_t)shift);
                snprintf(message, sizeof message, "%s = 0x100%d: must be a multiple of %d", names[v], shift,
                         keys[i].bytes);
                if (shift % keys[i].bytes == 0)
                    accepted_by(keys[i].text, &args);
                else
                    refused_by(keys[i].text, &args, message);
            }
        }
    }
}

static void batch_strides_of_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (int v = 0; v <= SCALE_B; v++) {
            static const int64_t wrong[] = {-1, -4096, INT64_MIN};
            struct gj_gemm_args args = args_for(keys[i].asks);
            set_stride(&args, (enum vector)v, 3); /* no matter how it is aligned */
            accepted_by(keys[i].text, &args);
            for (size_t w = 0; w < COUNT(wrong); w++) {
                char message[128];
                set_stride(&args, (enum vector)v, wrong[w]);
                snprintf(message, sizeof message, "%s_batch_stride = %" PRId64 ": must not be negative",
                         names[v], wrong[w]);
                if (keys[i].asks & 1 << v)
                    refused_by(keys[i].text, &args, message);
                else
                    accepted_by(keys[i].text, &args); /* not read */
            }
        }
    }
}

/* -- outputs --------------------------------------------------------------------------------------------- */

/* 48 columns of A B^T for an operation: all that it needs. */
static struct gj_gemm_args args_of(const char *key_text)
{
    const struct gj_key key = key_of(key_text);
    struct gj_gemm_args args = good;
    if (key.d.dtype == GJ_DTYPE_NONE)
        args.d = (struct gj_tensor){0};
    if (key.p.dtype != GJ_DTYPE_NONE)
        args.p = (struct gj_tensor){ADDRESS(0x40000), 112, 0};
    if (key.c.dtype != GJ_DTYPE_NONE)
        args.c = (struct gj_tensor){ADDRESS(0x50000), 112, 0};
    if (key.op == GJ_OP_DGATED)
        args.d.ld = 96;
    return args;
}

static void operands_are_those_of_the_key(void **state)
{
    (void)state;
    struct gj_gemm_args args = good;
    args.p.data = ADDRESS(0x40000);
    refused_by("", &args, "P is given, but the kernel's key has no PostAct");
    refused_by("op=act,act=relu,p=none", &args, "P is given, but the kernel's key has no PostAct");
    args.m = 0; /* wrong is wrong, however little there is to do */
    refused_by("", &args, "P is given, but the kernel's key has no PostAct");

    args = args_of("op=act,d=none");
    accepted_by("op=act,d=none", &args);
    args.d = good.d;
    refused_by("op=act,d=none", &args, "D is given, but the kernel's key has d=none");
    args = args_of("op=act");
    args.c = good.d;
    refused_by("op=act", &args, "C is given, but the kernel's key has c=none");
    args = args_of("op=dact,c=bf16.n");
    accepted_by("op=dact,c=bf16.n", &args);
    args.c.data = NULL;
    refused_by("op=dact,c=bf16.n", &args, "C: data is NULL");
    args = args_of("op=act");
    args.d.data = NULL;
    refused_by("op=act", &args, "D: data is NULL");
    args = args_of("op=act");
    args.p.data = NULL;
    refused_by("op=act", &args, "P: data is NULL");
    args = args_of("op=act");
    args.k = 0;
    args.a = args.b = (struct gj_tensor){0};
    accepted_by("op=act", &args);
    args.p.data = NULL;
    refused_by("op=act", &args, "P: data is NULL");
}

static void rules_of_postact(void **state)
{
    (void)state;
    struct gj_gemm_args args = args_of("op=act");
    args.p.data = ADDRESS(0x40008);
    refused_by("op=act", &args, "P: data = 0x40008: TMA needs an address that is a multiple of 16");
    args = args_of("op=act");
    args.p.ld = 40;
    refused_by("op=act", &args, "P: ld = 40: must be at least the contiguous extent, 48");
    args.p.ld = 52;
    refused_by("op=act", &args, "P: ld = 52 elements of 2 bytes = 104 bytes: TMA needs a multiple of 16");
    accepted_by("op=act,p=f32.n", &args);
    refused_by("op=act,p=e4m3.n", &args,
               "P: ld = 52 elements of 1 bytes = 52 bytes: TMA needs a multiple of 16");
    args.p.ld = 64;
    accepted_by("op=act,p=e4m3.n", &args);
    refused_by("op=act,p=bf16.m", &args, "P: ld = 64: must be at least the contiguous extent, 100");
    args.p.ld = INT64_C(1) << 39;
    refused_by("op=act", &args, "P: ld = 549755813888 elements: a stride is from 0 to less than 2^40 bytes");
    args = args_of("op=act");
    args.p.data = args.d.data;
    refused_by("op=act", &args, "P: data = 0x30000 is that of D: the outputs must not overlap");
    args.d = (struct gj_tensor){0};
    accepted_by("op=act,d=none", &args);
}

static void batches_of_postact(void **state)
{
    (void)state;
    struct gj_gemm_args args = args_of("op=act,d=none");
    args.batch = 3;
    args.p.ld = 48;
    args.p.batch_stride = 4800;
    accepted_by("op=act,d=none", &args);
    args.p.batch_stride = 4792;
    refused_by("op=act,d=none", &args,
               "P: batch_stride = 4792: batches overlap (one spans 4800 elements, its rows are 48 apart)");
    args.p.batch_stride = 0;
    refused_by("op=act,d=none", &args,
               "P: batch_stride = 0: batches overlap (one spans 4800 elements, its rows are 48 apart)");
    args.p.batch_stride = 4804;
    refused_by("op=act,d=none", &args,
               "P: batch_stride = 4804 elements of 2 bytes = 9608 bytes: TMA needs a multiple of 16");
    args.p.ld = 144; /* side by side */
    args.p.batch_stride = 48;
    accepted_by("op=act,d=none", &args);
    args.p.batch_stride = 24; /* of 24 columns */
    accepted_by("op=gated,d=none", &args);
    refused_by("op=act,d=none", &args,
               "P: batch_stride = 24: batches overlap (one spans 14304 elements, its rows are 144 apart)");
}

/* op=gated has half the columns in PostAct, op=dgated twice as many in C and D. */
static void extents_of_gated_outputs(void **state)
{
    (void)state;
    struct gj_gemm_args args = args_of("op=gated");
    args.p.ld = 24;
    accepted_by("op=gated", &args);
    accepted_by("op=gated,p=f32.n", &args);
    args.p.ld = 16;
    refused_by("op=gated", &args, "P: ld = 16: must be at least the contiguous extent, 24");
    args.d = (struct gj_tensor){0};
    refused_by("op=gated,d=none,gate=halves", &args,
               "P: ld = 16: must be at least the contiguous extent, 24");
    args = args_of("op=gated");
    args.d.ld = 40;
    refused_by("op=gated", &args, "D: ld = 40: must be at least the contiguous extent, 48");
    args = args_of("op=gated");
    args.n = 47;
    refused_by("op=gated", &args, "n = 47: op=gated needs pairs of a gate and an up column");
    accepted_by("op=act", &args);
    args.n = 0;
    accepted_by("op=gated", &args);

    args = args_of("op=gated");
    args.n = 40;
    accepted_by("op=gated,gate=halves,d=none", &(struct gj_gemm_args){0});
    refused_by(
        "op=gated,gate=halves", &args,
        "D: with gate=halves the ups start 20 elements = 40 bytes behind the gates: TMA needs a multiple "
        "of 16");
    accepted_by("op=gated", &args);
    args.n = 48;
    accepted_by("op=gated,gate=halves", &args);
    refused_by(
        "op=gated,gate=halves,d=e4m3.n", &args,
        "D: with gate=halves the ups start 24 elements = 24 bytes behind the gates: TMA needs a multiple "
        "of 16");

    static const char dgated[] = "op=dgated,c=bf16.n,act=glu";
    args = args_of(dgated);
    accepted_by(dgated, &args);
    args.n = 47; /* any number of pairs */
    accepted_by(dgated, &args);
    refused_by(
        "op=dgated,c=bf16.n,act=glu,gate=halves", &args,
        "C: with gate=halves the ups start 47 elements = 94 bytes behind the gates: TMA needs a multiple "
        "of 16");
    args = args_of(dgated);
    args.d.ld = 88;
    refused_by(dgated, &args, "D: ld = 88: must be at least the contiguous extent, 96");
    args = args_of(dgated);
    args.c.ld = 88;
    refused_by(dgated, &args, "C: ld = 88: must be at least the contiguous extent, 96");
    args = args_of(dgated);
    args.p.ld = 40;
    refused_by(dgated, &args, "P: ld = 40: must be at least the contiguous extent, 48");
    args.p.ld = 48;
    accepted_by(dgated, &args);
    args.d.ld = 100;
    refused_by(dgated, &args, "D: ld = 100 elements of 2 bytes = 200 bytes: TMA needs a multiple of 16");
    args = args_of(dgated);
    args.batch = 2;
    args.p.batch_stride = 100 * 112;
    args.d.batch_stride = 99 * 96 + 48;
    refused_by(dgated, &args,
               "D: batch_stride = 9552: batches overlap (one spans 9600 elements, its rows are 96 apart)");
    args.d.batch_stride = 9600;
    accepted_by(dgated, &args); /* and all batches share C */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_that_the_key_asks_for),
        cmocka_unit_test(vectors_are_aligned_to_their_elements),
        cmocka_unit_test(batch_strides_of_vectors),
        cmocka_unit_test(operands_are_those_of_the_key),
        cmocka_unit_test(rules_of_postact),
        cmocka_unit_test(batches_of_postact),
        cmocka_unit_test(extents_of_gated_outputs),
    };
    return cmocka_run_group_tests_name("args_fused", tests, NULL, NULL);
}
