/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gj_key_check on fused operations: each reason alone, word for word, and the limits of registers.
 */
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
        fail_msg("%s: %s", text, error != NULL && error->num_reasons > 0 ? error->reasons[0] : "no reason");
    assert_null(error);
}

/* Asserts that the key is refused for this reason and no other. */
static void assert_refused(const char *text, const char *reason)
{
    const struct gj_key key = parse(text);
    gj_error *error = NULL;
    if (gj_key_check(&key, &error) != GJ_ERR_UNSUPPORTED)
        fail_msg("%s is not refused: %s", text, reason);
    assert_non_null(error);
    if (error->num_reasons != 1 || strcmp(error->reasons[0], reason) != 0) {
        for (size_t i = 0; i < error->num_reasons; i++)
            print_error("    %s\n", error->reasons[i]);
        fail_msg("%s: %zu reasons, expected: %s", text, error->num_reasons, reason);
    }
    gj_error_free(&error);
}

#define OF_ONE "none, relu, relu_sq, gelu_tanh, gelu_erf, silu, quick_gelu, sigmoid, tanh, own"
#define OF_TWO "swiglu, swiglu_oai, geglu, reglu, glu, own"

static void functions_go_with_operations(void **state)
{
    (void)state;
    static const char *const of_one[] = {"none", "relu",       "relu_sq", "gelu_tanh", "gelu_erf",
                                         "silu", "quick_gelu", "sigmoid", "tanh"};
    static const char *const of_two[] = {"swiglu", "swiglu_oai", "geglu", "reglu", "glu"};
    static const char *const rests[] = {"op=act", "op=dact,c=bf16.n,tile=128x128", "op=gated",
                                        "op=dgated,c=bf16.n,tile=128x128"};
    static const char *const ops[] = {"act", "dact", "gated", "dgated"};
    for (size_t o = 0; o < COUNT(ops); o++) {
        for (size_t i = 0; i < COUNT(of_one) + COUNT(of_two); i++) {
            const bool two = i >= COUNT(of_one);
            const char *const act = two ? of_two[i - COUNT(of_one)] : of_one[i];
            char text[128], reason[256];
            snprintf(text, sizeof text, "%s,act=%s", rests[o], act);
            snprintf(reason, sizeof reason, "act=%s does not go with op=%s: allowed is %s", act, ops[o],
                     o < 2 ? OF_ONE : OF_TWO);
            if (two == (o >= 2))
                assert_accepted(text);
            else
                assert_refused(text, reason);
            if (o > 0 || strcmp(act, "none") == 0)
                continue;
            snprintf(text, sizeof text, "act=%s", act);
            snprintf(reason, sizeof reason, "act=%s does not go with op=gemm: allowed is none", act);
            assert_refused(text, reason);
        }
        char text[128];
        snprintf(text, sizeof text, "%s,act=own,own=0123456789abcdef", rests[o]);
        assert_accepted(text);
    }
    assert_refused("act=own,own=0123456789abcdef", "act=own does not go with op=gemm: allowed is none");
}

static void operands_of_operations(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"d=none", "d=none leaves nothing to compute"},
        {"d=none,bias=col.f32,tile=128x128", "d=none leaves nothing to compute"},
        {"op=dact,c=bf16.n,d=none,tile=128x128", "d=none: op=dact writes the gradient of PreAct to D"},
        {"op=dgated,act=glu,c=f16.n,d=none,tile=128x128",
         "d=none: op=dgated writes the gradient of PreAct to D"},
        {"op=act,p=none", "p=none: op=act writes PostAct"},
        {"op=dact,c=bf16.n,p=none,tile=128x128", "p=none: op=dact writes PostAct"},
        {"op=gated,act=glu,p=none", "p=none: op=gated writes PostAct"},
        {"op=dgated,act=glu,c=f16.n,p=none,tile=128x128", "p=none: op=dgated writes PostAct"},
        {"op=dact", "c=none: op=dact reads PreAct from C"},
        {"op=dgated,act=glu", "c=none: op=dgated reads PreAct from C"},
        {"op=dact,c=f32.m,beta=host,tile=128x128", "beta=host: C of op=dact is PreAct, which has no factor"},
        {"op=dgated,act=glu,c=f16.n,beta=device,tile=128x128",
         "beta=device: C of op=dgated is PreAct, which has no factor"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].reason);
    assert_accepted("op=act,d=none");
    assert_accepted("op=gated,act=glu,d=none");
    assert_accepted("op=act,c=f32.m,beta=host,tile=128x128");
    assert_accepted("op=dact,act=relu,c=e4m3.m,d=f32.m,p=e5m2.n,alpha=device,tile=128x128");
}

#define C_PAIR "c of op=dgated must be 16-bit and n-major"
#define D_PAIR "d of op=dgated must be 16-bit and n-major"

static void gated_operations(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"op=gated,act=glu,swap_ab=yes",
         "swap_ab=yes with op=gated: gate and up columns would be rows of wgmma, in two threads"},
        {"op=dgated,act=glu,c=bf16.n,tile=128x128,swap_ab=yes",
         "swap_ab=yes with op=dgated: gate and up columns would be rows of wgmma, in two threads"},
        {"op=dgated,act=glu,c=bf16.n,d=f32.n,tile=128x128,gate=halves", D_PAIR},
        {"op=dgated,act=glu,c=f32.n,tile=128x128", C_PAIR},
        {"op=dgated,act=glu,c=e4m3.n,tile=128x128", C_PAIR},
        {"op=dgated,act=glu,c=bf16.m,tile=128x128", C_PAIR},
        {"op=dgated,act=glu,c=bf16.n,d=f32.n,tile=128x128", D_PAIR},
        {"op=dgated,act=glu,c=bf16.n,d=e5m2.n,tile=128x128", D_PAIR},
        {"op=dgated,act=glu,c=bf16.n,d=f16.m,tile=128x128", D_PAIR},
        {"op=gated,act=glu,tile=128x176",
         "tile=128x176 gives each warp group 176 columns: op=gated needs a multiple of 32"},
        {"op=gated,act=glu,gate=halves,d=none,tile=64x16,cluster=1x1",
         "tile=64x16 gives each warp group 16 columns: op=gated needs a multiple of 32"},
        {"op=gated,act=glu,tile=192x160,sched=coop",
         "tile=192x160 gives each warp group 80 columns: op=gated needs a multiple of 32"},
        {"op=gated,act=glu,gate=halves,d=bf16.m", "d of gate=halves must be n-major"},
        {"op=gated,act=glu,gate=halves,d=none,c=f32.m,tile=128x128", "c of gate=halves must be n-major"},
        {"op=gated,act=glu,gate=halves,d=none,tile=192x256,sched=coop",
         "tile=192x256 sched=coop splits columns over two warp groups, which gate=halves must not"},
        {"op=gated,act=glu,gate=halves,d=none,b=bf16.n",
         "gate=halves with an n-major B is not generated: TMA would start at any column, and starts at "
         "multiples of 16 bytes only"},
        {"op=gated,act=glu,gate=halves,d=none,tile=128x160,cluster=4x1",
         "cluster=4x1 does not cut half of the 160 rows of B of tile=128x160 into slices of whole 8-row "
         "groups"},
        {"op=gated,act=glu,gate=halves,d=none,a=f16.k,b=f16.k,acc=f16",
         "acc=f16 with gate=halves is not generated"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].reason);
    assert_accepted("op=gated,act=glu,gate=halves,d=none");
    assert_accepted("op=gated,act=glu,gate=halves,d=f32.n,c=e4m3.n,tile=128x128");
    assert_accepted("op=dgated,act=glu,gate=halves,c=bf16.n,d=f16.n,p=e4m3.m,tile=128x176");
    assert_accepted("op=gated,act=glu,gate=halves,d=none,a=bf16.m,tile=128x128");
    assert_accepted("op=gated,act=glu,b=bf16.n,tile=128x128");
    assert_accepted("op=gated,act=glu,gate=halves,d=none,tile=128x128,cluster=4x1");
    assert_accepted("op=gated,act=glu,d=none,a=f16.k,b=f16.k,acc=f16");
    assert_accepted("op=gated,act=glu,c=f32.m,d=e4m3.m,p=f32.m,tile=128x128");
    assert_accepted("op=gated,act=glu,tile=192x256,sched=coop");
    assert_accepted("op=dgated,act=glu,c=bf16.n,d=f16.n,p=e4m3.m,tile=128x176");
    assert_accepted("op=dgated,act=glu,c=bf16.n,tile=64x16,cluster=1x1");
}

/* How many accumulators each set of fused parts leaves registers for: at 128 rows as many as columns. */
static void accumulators_beside_what_is_fused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int limit;
        const char *why;
    } cases[] = {
        {"op=gemm", 208, ""},
        {"c=bf16.n", 200, " beside C"},
        {"scale=tensor", 208, " beside what is fused"},
        {"scale=tensor,c=bf16.n", 200, " beside what is fused"},
        {"scale=row", 192, " beside what is fused"},
        {"scale=col", 192, " beside what is fused"},
        {"scale=row_col", 192, " beside what is fused"},
        {"bias=row.f32", 192, " beside what is fused"},
        {"bias=col.bf16,c=bf16.n", 192, " beside what is fused"},
        {"quant=scale", 192, " beside what is fused"},
        {"quant=amax", 192, " beside what is fused"},
        {"bias=col.bf16,quant=amax", 176, " beside what is fused"},
        {"scale=row,bias=row.f32", 176, " beside what is fused"},
        {"scale=row_col,quant=scale,c=f16.m", 176, " beside what is fused"},
        {"scale=tensor,bias=col.f32", 192, " beside what is fused"},
        {"scale=col,bias=col.f32,quant=amax", 176, " beside what is fused"},
        {"op=act,act=gelu_erf", 192, " beside what is fused"},
        {"op=act,act=gelu_erf,scale=tensor", 192, " beside what is fused"},
        {"op=act,act=relu,bias=col.f32", 192, " beside what is fused"},
        {"op=act,act=relu,c=f16.n", 192, " beside what is fused"},
        {"op=act,act=relu,quant=scale,bias=row.f16", 176, " beside what is fused"},
        {"op=act,act=relu,d=none,quant=scale,bias=row.f16", 176, " beside what is fused"},
        {"op=dact,act=silu,c=bf16.n", 192, " beside what is fused"},
        {"op=dact,act=silu,c=bf16.n,quant=amax", 176, " beside what is fused"},
        {"op=dact,act=silu,c=bf16.n,quant=amax,bias=col.bf16", 176, " beside what is fused"},
        {"op=gated,act=swiglu", 192, " beside what is fused"},
        {"op=gated,act=swiglu,d=none,gate=halves", 192, " beside what is fused"},
        {"op=gated,act=swiglu,d=none,gate=halves,bias=col.f16", 192, " beside what is fused"},
        {"op=gated,act=swiglu,d=none,bias=row.f16", 192, " beside what is fused"},
        {"op=gated,act=swiglu,bias=row.f16", 176, " beside what is fused"},
        {"op=gated,act=swiglu,d=none,bias=row.f16,quant=amax", 176, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n", 192, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n,gate=halves", 176, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n,gate=halves,quant=scale", 160, " beside what is fused"},
        {"op=gated,act=swiglu,gate=halves,c=f32.n", 192, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n,scale=tensor", 192, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n,scale=col", 176, " beside what is fused"},
        {"op=dgated,act=swiglu,c=bf16.n,scale=col,quant=scale", 160, " beside what is fused"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int n = 16; n <= 256; n += 16) {
            char text[128], reason[256];
            if (n % 32 != 0 && strncmp(cases[i].text, "op=gated", 8) == 0)
                continue;
            snprintf(text, sizeof text, "%s,tile=128x%d,cluster=1x1", cases[i].text, n);
            snprintf(reason, sizeof reason,
                     "tile=128x%d sched=pingpong needs %d accumulator registers per thread%s: at most %d fit",
                     n, n, cases[i].why, cases[i].limit);
            if (n <= cases[i].limit)
                assert_accepted(text);
            else
                assert_refused(text, reason);
        }
    }
    assert_accepted("op=act,tile=192x256,sched=coop,cluster=1x1,c=bf16.n");
    assert_refused(
        "op=act,tile=192x256,sched=coop,cluster=1x1,bias=row.f32,quant=amax",
        "tile=192x256 sched=coop needs 192 accumulator registers per thread beside what is fused: at most "
        "176 fit");
}

/* With three MMA warp groups a thread has 160 registers, and nothing that is fused changes the 96. */
static void three_warp_groups(void **state)
{
    (void)state;
    assert_accepted("op=act,act=silu,tile=192x128,sched=coop,cluster=1x1,bias=col.f32,quant=amax");
    assert_accepted("a=e4m3.k,b=e4m3.k,tile=192x96,sched=coop,cluster=1x1,scale=row_col");
    assert_refused(
        "a=e4m3.k,b=e4m3.k,tile=192x128,sched=coop,cluster=1x1,scale=row_col",
        "tile=192x128 sched=coop needs 128 accumulator registers per thread with fp8acc=promoted: at "
        "most 96 fit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_go_with_operations),
        cmocka_unit_test(operands_of_operations),
        cmocka_unit_test(gated_operations),
        cmocka_unit_test(accumulators_beside_what_is_fused),
        cmocka_unit_test(three_warp_groups),
    };
    return cmocka_run_group_tests_name("fused_check", tests, NULL, NULL);
}
