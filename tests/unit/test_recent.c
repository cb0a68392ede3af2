/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of launches that use the work of earlier ones: whatever was launched before, a launch is what it is
 * without a past. Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/context_private.h"
#include "cuda/loaded.h"
#include "cuda/recent.h"
#include "fake_control.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static struct fake_stream stream = {.device = 0};

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    return 0;
}

static uint32_t random_state = 1;

static unsigned random_below(unsigned count)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % count;
}

static struct gj_tensor random_tensor(int64_t ld, int64_t rows)
{
    static const int64_t pads[] = {0, 16, 64};
    const int64_t padded = (ld + 31) / 32 * 32 + pads[random_below(3)];
    return (struct gj_tensor){ADDRESS(0x10000u * (1 + random_below(5))), padded, (rows + 64) * padded};
}

/* Few values of each, so that forms and addresses come again in every combination. */
static struct gj_gemm_args random_args(const struct gj_key *key)
{
    static const int64_t extents[] = {16, 64, 130, 256}, ks[] = {0, 64, 200};
    struct gj_gemm_args args = {.m = extents[random_below(4)],
                                .n = extents[random_below(4)],
                                .k = ks[random_below(3)],
                                .batch = 1 + random_below(2),
                                .alpha = (float)random_below(3),
                                .beta = (float)random_below(2),
                                .raster = (enum gj_raster)random_below(3),
                                .max_sms = random_below(2) ? 66 : 0,
                                .flags = random_below(2) ? GJ_LAUNCH_OVERLAP : 0};
    const int64_t rows = 512;
    args.a = random_tensor(args.k, rows);
    args.b = random_tensor(args.k, rows);
    args.d = random_tensor(2 * args.n, rows);
    if (key->c.dtype != GJ_DTYPE_NONE)
        args.c = random_tensor(2 * args.n, rows);
    if (key->op != GJ_OP_GEMM)
        args.p = random_tensor(args.n, rows);
    if (args.p.data == args.d.data)
        args.p.data = ADDRESS(0x90000);
    if (random_below(3) == 0)
        args.b.batch_stride = 0;
    args.batch_order = args.batch > 1 && random_below(2) ? ADDRESS(0xa0000) : NULL;
    args.bias = ADDRESS(0xb0000 + 64 * random_below(2));
    return args;
}

static void forget_recent(gj_kernel *kernel)
{
    gj_loaded *const loaded = atomic_load(&kernel->loaded);
    struct gj_recent *const recent = loaded->devices[0].recent;
    for (int i = 0; i < GJ_RECENT_SLOTS; i++)
        atomic_store(&recent->slots[i].version, 0);
}

static struct fake_launch launched(gj_kernel *kernel, const struct gj_gemm_args *args)
{
    gj_error *error = NULL;
    fake_forget(fake);
    if (gj_launch(kernel, args, &stream, &error) != GJ_OK)
        fail_msg("%s", error->message);
    assert_int_equal(fake->num_launches, 1);
    return fake->launches[0];
}

/* Maps, parameters and grid; not the maps that are never used: C's with beta = 0, tails where there are none.
 */
static void check_same(const struct gj_plan *plan, const struct gj_gemm_args *args,
                       const struct fake_launch *x, const struct fake_launch *y)
{
    const bool reads_c = plan->c_element > 0 && !(plan->key.beta == GJ_SCALAR_HOST && args->beta == 0);
    const int first_c = 2 + 2 * (plan->d_element > 0),
              maps = first_c + 2 * (plan->c_element > 0) + 2 * (plan->p_element > 0);
    for (int i = 0; i < maps; i++) {
        const bool is_c = plan->c_element > 0 && (i == first_c || i == first_c + 1);
        const bool is_tail = i >= 2 && i % 2 == 1;
        if ((is_c && !reads_c) || (is_tail && plan->tail_n == 0))
            continue;
        assert_memory_equal(&x->maps[i], &y->maps[i], sizeof x->maps[i]);
    }
    assert_memory_equal(&x->params, &y->params, sizeof x->params);
    assert_memory_equal(&x->fused, &y->fused, sizeof x->fused);
    assert_int_equal(x->config.gridDimX, y->config.gridDimX);
    assert_int_equal(x->config.numAttrs, y->config.numAttrs);
}

static void a_past_changes_nothing(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "tile=128x192,cluster=2x1",
        "c=bf16.n,beta=host,alpha=host,tile=128x176,cluster=1x1",
        "a=bf16.k,b=bf16.k,tile=64x64,cluster=1x1,sched=coop,swap_ab=yes",
        "op=gated,act=glu,bias=col.f32,tile=128x128,cluster=1x1",
        "sched=single,cluster=1x1,tile=64x32,swap_ab=yes,tiles=once,split_k=2",
    };
    unsigned hits = 0;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const struct gj_plan plan = plan_of(keys[i]);
        gj_kernel *const kernel = kernels_get(&kernels, keys[i]);
        fake->num_maps = 2 + 2 * (plan.d_element > 0) + 2 * (plan.c_element > 0) + 2 * (plan.p_element > 0);
        fake->has_fused = gj_plan_is_fused(&plan);
        static struct gj_gemm_args args[200];
        static struct fake_launch with_past[COUNT(args)];
        for (size_t j = 0; j < COUNT(args); j++) {
            args[j] = random_args(&plan.key);
            if (plan.key.bias == GJ_BIAS_NONE)
                args[j].bias = NULL;
            if (j % 3 > 0) { /* the form of the last one, other addresses and scalars */
                const struct gj_gemm_args fresh = args[j];
                args[j] = args[j - 1];
                args[j].a.data = fresh.a.data;
                args[j].b.data = fresh.b.data;
                args[j].d.data = fresh.d.data;
                args[j].p.data = fresh.p.data;
                args[j].c.data = fresh.c.data;
                args[j].alpha = fresh.alpha;
                args[j].bias = fresh.bias && plan.key.bias != GJ_BIAS_NONE ? fresh.bias : NULL;
            }
            with_past[j] = launched(kernel, &args[j]);
            hits += fake_count(fake, "cuTensorMapEncodeTiled") == 0;
        }
        for (size_t j = 0; j < COUNT(args); j++) {
            forget_recent(kernel);
            const struct fake_launch alone = launched(kernel, &args[j]);
            assert_true(fake_count(fake, "cuTensorMapEncodeTiled") > 0);
            check_same(&plan, &args[j], &with_past[j], &alone);
        }
    }
    assert_true(hits > COUNT(keys) * 100);
}

/* Each changed address is one call of the driver, each that stays none. */
static void only_what_changes(void **state)
{
    (void)state;
    gj_kernel *const kernel = kernels_get(&kernels, "tile=128x192,cluster=2x1");
    struct gj_gemm_args args = {.m = 256, .n = 256, .k = 256, .batch = 1};
    args.a = args.b = args.d = (struct gj_tensor){ADDRESS(0x10000), 256, 0};
    launched(kernel, &args);
    launched(kernel, &args);
    assert_int_equal(fake_count(fake, "cuTensorMapReplaceAddress"), 0);
    args.b.data = ADDRESS(0x20000);
    launched(kernel, &args);
    assert_int_equal(fake_count(fake, "cuTensorMapReplaceAddress"), 1);
    assert_int_equal(fake_count(fake, "cuTensorMapEncodeTiled"), 0);
    args.n = 264;
    args.d.ld = 264;
    launched(kernel, &args);
    assert_int_equal(fake_count(fake, "cuTensorMapReplaceAddress"), 0);
    assert_int_equal(fake_count(fake, "cuTensorMapEncodeTiled"), 3);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(a_past_changes_nothing), TEST(only_what_changes)};
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
