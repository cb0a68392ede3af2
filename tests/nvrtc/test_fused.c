/* SPDX-License-Identifier: Apache-2.0 */
/* Fused keys at the limits that gj_key_check sets compile: a spill or a serialised wgmma would fail them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <gemmjit/gemmjit.h>

/* The most accumulators that each kind is allowed, in both schedules, with the costliest types and majors. */
static const char *const keys[] = {
    "op=act,act=gelu_erf,d=f32.m,p=e4m3.m,tile=128x192,cluster=2x1",
    "op=act,act=tanh,c=f32.m,d=e5m2.n,p=f32.n,beta=device,alpha=device,tile=256x192,cluster=1x2,sched=coop",
    "op=act,act=silu,bias=col.bf16,tile=192x128,cluster=2x2,tiles=dynamic",
    "op=act,act=quick_gelu,d=none,p=e4m3.n,scale=row_col,bias=col.f16,quant=amax,tile=256x176,cluster=2x1,"
    "sched=coop",
    "op=act,act=sigmoid,a=e4m3.k,b=e5m2.k,fp8acc=promoted,tile=128x96,cluster=1x1",
    "op=dact,act=gelu_tanh,c=bf16.n,tile=128x192,cluster=2x1,tiles=dynamic",
    "op=dact,act=gelu_erf,c=f32.m,d=f32.n,p=e5m2.m,tile=192x256,cluster=1x1,sched=coop",
    "op=dact,act=relu_sq,c=f16.m,bias=row.f32,tile=128x176,cluster=2x1",
    "op=dact,act=silu,c=bf16.n,p=e4m3.n,scale=row_col,bias=col.bf16,quant=amax,tile=256x176,cluster=2x1,"
    "sched=coop",
    "op=gated,act=swiglu,d=none,tile=128x192,cluster=2x1",
    "op=gated,act=geglu,c=e4m3.m,d=e5m2.m,p=f32.m,beta=host,tile=256x192,cluster=2x1,sched=coop",
    "op=gated,act=swiglu_oai,bias=col.bf16,tile=128x160,cluster=1x2,tiles=dynamic",
    "op=gated,act=glu,gate=halves,d=none,bias=col.bf16,tile=128x192,cluster=2x1",
    "op=gated,act=reglu,gate=halves,d=none,p=e4m3.n,scale=row_col,bias=col.f32,quant=amax,tile=256x160,"
    "cluster=2x1,"
    "sched=coop",
    "op=dgated,act=swiglu,c=bf16.n,tile=128x192,cluster=2x1",
    "op=dgated,act=geglu,c=f16.n,d=bf16.n,p=e4m3.m,bias=row.f16,tile=256x176,cluster=1x2,sched=coop,tiles="
    "dynamic",
    "op=dgated,act=swiglu_oai,c=bf16.n,p=e4m3.n,scale=row_col,bias=col.bf16,quant=amax,tile=128x160,cluster="
    "2x1",
    "a=e4m3.k,b=e4m3.k,fp8acc=fast,d=e4m3.n,scale=row_col,bias=col.bf16,quant=amax,tile=128x176,cluster=2x1",
    "c=f32.m,beta=device,alpha=host,scale=row_col,bias=col.bf16,quant=amax,tile=256x176,cluster=1x1,sched="
    "coop",
    "bias=col.f32,tile=192x256,cluster=2x1,sched=coop",
    "scale=tensor,quant=scale,d=e5m2.m,swap_ab=yes,tile=128x192,cluster=1x1",
};

static void fused_keys_compile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct gj_key key;
        gj_error *error = NULL;
        void *cubin = NULL;
        size_t bytes = 0;
        if (gj_key_parse(keys[i], &key, &error) || gj_key_check(&key, &error) ||
            gj_compile(&key, GJ_IMAGE_CUBIN, &cubin, &bytes, &error))
            fail_msg("%s: %s %s", keys[i], error ? error->message : "",
                     error && error->num_reasons ? error->reasons[0] : "");
        assert_true(bytes > 10000);
        gj_free(cubin);
    }
}

int main(void)
{
    struct gj_key key = gj_key_default();
    void *ptx = NULL;
    size_t bytes = 0;
    gj_error *error = NULL;
    if (gj_compile(&key, GJ_IMAGE_PTX, &ptx, &bytes, &error) == GJ_ERR_NO_COMPILER) {
        printf("no libnvrtc: %s\n", error ? error->message : "");
        gj_error_free(&error);
        return 77;
    }
    gj_free(ptx);
    gj_error_free(&error);
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_keys_compile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
