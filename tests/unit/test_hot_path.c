/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of calls that repeat: gj_gemm once its choice is known, and prepared launches. Argument: the fake
 * libcuda. Linked with --wrap, so that allocations and locks are counted. */
#include <gemmjit/launch.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static struct fake_stream stream = {.device = 0};
static _Thread_local int num_forbidden; /* of this thread: calls that a hot path must not make */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

void *__wrap_malloc(size_t bytes)
{
    num_forbidden++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    num_forbidden++;
    return __real_calloc(count, bytes);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    num_forbidden++;
    return __real_pthread_mutex_lock(mutex);
}

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    stream = (struct fake_stream){.device = 0};
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    assert_int_equal(fake->num_libraries, 0);
    return 0;
}

static const struct gj_gemm_args basic = {
    .m = 1000,
    .n = 520,
    .k = 200,
    .batch = 2,
    .a = {ADDRESS(0x10000), 1000, 1000 * 208},
    .b = {ADDRESS(0x20000), 520, 528 * 216},
    .c = {ADDRESS(0x40000), 1000, 1000 * 1000},
    .d = {ADDRESS(0x30000), 1000, 1000 * 1000},
    .p = {ADDRESS(0x50000), 1000, 1000 * 1000},
    .alpha = 1,
    .beta = 2,
};

static struct gj_gemm_args plain_args(void)
{
    struct gj_gemm_args args = basic;
    args.c = args.p = (struct gj_tensor){0};
    args.beta = 0;
    return args;
}

/* -- gj_gemm ------------------------------------------------------------------------------------------- */

static void add_choice(const struct gj_gemm_args *args, int num_sms, struct gj_key *key)
{
    const struct gj_key problem = gj_key_default();
    assert_int_equal(gj_key_choose(&problem, args->m, args->n, args->k, args->batch, num_sms, key, NULL),
                     GJ_OK);
    kernels_add(&kernels, key);
}

static enum gj_status gemm(const struct gj_gemm_args *args, gj_error **error)
{
    const struct gj_key problem = gj_key_default();
    fake_forget(fake);
    num_forbidden = 0;
    return gj_gemm(kernels.context, &problem, args, &stream, error);
}

static void hot_gemm(void **state)
{
    (void)state;
    const struct gj_gemm_args args = plain_args();
    struct gj_key key;
    struct gj_stats stats;
    add_choice(&args, 132, &key);
    assert_int_equal(gemm(&args, NULL), GJ_OK);
    assert_true(num_forbidden > 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gemm(&args, NULL), GJ_OK);
        assert_int_equal(num_forbidden, 0);
        assert_int_equal(fake_count(fake, "cuStreamGetCtx"), 1);
        assert_int_equal(fake_count(fake, "cuTensorMapEncodeTiled") + 4, fake->num_calls);
        assert_int_equal(fake->num_launches, 1);
    }
    gj_stats(kernels.context, &stats);
    assert_int_equal(stats.memory_hits, 3);
}

/* What was found by the choice is judged like any other launch. */
static void hot_gemm_refuses(void **state)
{
    (void)state;
    struct gj_gemm_args args = plain_args();
    struct gj_key key;
    gj_error *error = NULL;
    add_choice(&args, 132, &key);
    assert_int_equal(gemm(&args, NULL), GJ_OK);
    args.a.ld = 999;
    check_error(gemm(&args, &error), GJ_ERR_ARGUMENT, &error, "A: ld = 999", NULL);
    assert_int_equal(fake->num_launches, 0);
    args = plain_args();
    args.d.data = ADDRESS(0x30008);
    check_error(gemm(&args, &error), GJ_ERR_ARGUMENT, &error, "D: data = 0x30008", NULL);
    fake_fail(fake, "cuStreamGetCtx", CUDA_ERROR_INVALID_VALUE);
    args = plain_args();
    check_error(gemm(&args, &error), GJ_ERR_DRIVER, &error, "CUDA_ERROR_INVALID_VALUE", NULL);
    fake_fail(fake, NULL, CUDA_SUCCESS);
    assert_int_equal(gemm(&args, NULL), GJ_OK);
}

/* More extents than there are places, each asked for twice: always the kernel of gj_key_choose. */
static void choices_are_replaced(void **state)
{
    (void)state;
    const struct gj_key problem = gj_key_default();
    for (int round = 0; round < 2; round++) {
        for (int m = 1; m <= 1500; m++) {
            struct gj_gemm_args args = plain_args();
            struct gj_key key;
            struct gj_plan plan;
            args.m = m;
            args.batch = 1;
            assert_int_equal(gj_key_choose(&problem, m, args.n, args.k, 1, 132, &key, NULL), GJ_OK);
            if (gemm(&args, NULL) != GJ_OK) { /* not in the cache yet */
                assert_int_equal(round, 0);
                kernels_add(&kernels, &key);
                assert_int_equal(gemm(&args, NULL), GJ_OK);
            }
            gj_plan_make(&key, &plan);
            assert_string_equal((const char *)fake->launches[0].function, plan.entry_name);
            const struct gemm_params *const params = &fake->launches[0].params;
            assert_int_equal(key.swap_ab == GJ_SWAP_AB_YES ? params->n : params->m, m);
        }
    }
}

struct asker {
    int first_m;
    bool is_wrong;
};

static void *ask(void *user)
{
    struct asker *const asker = user;
    const struct gj_key problem = gj_key_default();
    for (int i = 0; i < 4000; i++) {
        struct gj_gemm_args args = plain_args();
        args.m = asker->first_m + i % 7 * 512;
        args.batch = 1;
        if (gj_gemm(kernels.context, &problem, &args, &stream, NULL) != GJ_OK)
            asker->is_wrong = true;
    }
    return NULL;
}

/* Threads that ask the same and other questions; the thread sanitizer looks on. */
static void choices_of_threads(void **state)
{
    (void)state;
    struct asker askers[4] = {{512, false}, {512, false}, {1024, false}, {513, false}};
    pthread_t threads[4];
    for (int m = 512; m <= 1024 + 7 * 512; m++) {
        struct gj_gemm_args args = plain_args();
        struct gj_key key;
        args.m = m;
        args.batch = 1;
        if (m % 512 <= 1)
            add_choice(&args, 132, &key);
    }
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_false(askers[i].is_wrong);
    }
}

/* -- Prepared launches --------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    int num_maps;
    bool has_fused, has_c, has_p, no_k;
} cases[] = {
    {"tile=128x192", 4, false, false, false, false},
    {"tile=128x112", 4, false, false, false, false}, /* a tail of 48 columns */
    {"tile=128x176,swap_ab=yes", 4, false, false, false, false},
    {"tile=128x192", 4, false, false, false, true},
    {"tile=128x128,tiles=dynamic", 4, false, false, false, false},
    {"tile=128x112,c=bf16.n,beta=host", 6, false, true, false, false},
    {"tile=128x128,sched=coop,op=act,act=relu", 6, true, false, true, false},
    {"tile=128x128,sched=coop,op=act,act=relu,d=none", 4, true, false, true, true},
};

static struct gj_gemm_args args_of(size_t i)
{
    struct gj_gemm_args args = basic;
    if (!cases[i].has_c)
        args.c = (struct gj_tensor){0};
    if (!cases[i].has_p)
        args.p = (struct gj_tensor){0};
    if (strstr(cases[i].key, "d=none"))
        args.d = (struct gj_tensor){0};
    if (cases[i].no_k)
        args.k = 0;
    return args;
}

static const struct gj_pointers others = {ADDRESS(0x110000), ADDRESS(0x120000), ADDRESS(0x140000),
                                          ADDRESS(0x130000), ADDRESS(0x150000)};

/* A launch of the prepared work is, bit for bit, that of gj_launch with the same addresses. */
static void check_same_launch(size_t i, gj_kernel *kernel, const gj_prepared *prepared)
{
    struct gj_gemm_args args = args_of(i);
    args.a.data = ADDRESS(others.a);
    args.b.data = ADDRESS(others.b);
    args.c.data = cases[i].has_c ? ADDRESS(others.c) : NULL;
    args.d.data = args.d.data ? others.d : NULL;
    args.p.data = cases[i].has_p ? others.p : NULL;
    fake_forget(fake);
    num_forbidden = 0;
    assert_int_equal(gj_prepared_launch(prepared, &others, &stream, NULL), GJ_OK);
    assert_int_equal(num_forbidden, 0);
    assert_int_equal(fake_count(fake, "cuTensorMapEncodeTiled"), 0);
    assert_int_equal(gj_launch(kernel, &args, &stream, NULL), GJ_OK);
    struct fake_launch *const launches = fake->launches;
    assert_int_equal(fake->num_launches, 2);
    assert_int_equal(launches[0].config.gridDimX, launches[1].config.gridDimX);
    assert_ptr_equal(launches[0].function, launches[1].function);
    const struct gj_plan plan = plan_of(cases[i].key);
    for (int map = 0; map < cases[i].num_maps; map++) {
        const bool is_tail = map >= 2 && map % 2 == 1;
        if (!is_tail || plan.tail_n != 0)
            assert_memory_equal(&launches[0].maps[map], &launches[1].maps[map], sizeof launches[0].maps[map]);
    }
    if (strstr(cases[i].key, "dynamic") != NULL) {
        assert_ptr_not_equal(launches[0].params.tile_counter, launches[1].params.tile_counter);
        launches[0].params.tile_counter = launches[1].params.tile_counter;
    }
    if (plan.d_element == 0)
        launches[0].params.d = launches[1].params.d; /* not used */
    assert_memory_equal(&launches[0].params, &launches[1].params, sizeof launches[0].params);
    if (cases[i].has_fused)
        assert_memory_equal(&launches[0].fused, &launches[1].fused,
                            offsetof(struct fused_params, p_cut) + sizeof(int)); /* padding follows */
}

static void prepared_launches(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gj_gemm_args args = args_of(i);
        gj_prepared *prepared = NULL;
        gj_error *error = NULL;
        gj_kernel *const kernel = kernels_get(&kernels, cases[i].key);
        fake->num_maps = cases[i].num_maps;
        fake->has_fused = cases[i].has_fused;
        if (gj_launch_prepare(kernel, &args, 0, &prepared, &error) != GJ_OK)
            fail_msg("%s: %s", cases[i].key, error->message);
        check_same_launch(i, kernel, prepared);
        gj_prepared_free(&prepared);
        assert_null(prepared);
        tear_down(state);
        set_up(state);
    }
}

static void prepared_addresses(void **state)
{
    (void)state;
    const size_t c = 5, p = 6;
    static const char *const names = "ABCD";
    gj_error *error = NULL;
    gj_prepared *prepared = NULL;
    struct gj_gemm_args args = args_of(c);
    assert_int_equal(gj_launch_prepare(kernels_get(&kernels, cases[c].key), &args, 0, &prepared, NULL),
                     GJ_OK);
    for (int i = 0; i < 4; i++) {
        char word[8];
        struct gj_pointers bad[2] = {others, others};
        const void **const fields[2][4] = {{&bad[0].a, &bad[0].b, &bad[0].c, (const void **)&bad[0].d},
                                           {&bad[1].a, &bad[1].b, &bad[1].c, (const void **)&bad[1].d}};
        *fields[0][i] = NULL;
        *fields[1][i] = ADDRESS(0x110008);
        snprintf(word, sizeof word, "%c: data", names[i]);
        fake_forget(fake);
        check_error(gj_prepared_launch(prepared, &bad[0], &stream, &error), GJ_ERR_ARGUMENT, &error, word,
                    "NULL", NULL);
        check_error(gj_prepared_launch(prepared, &bad[1], &stream, &error), GJ_ERR_ARGUMENT, &error, word,
                    "0x110008", NULL);
        assert_int_equal(fake->num_launches, 0);
    }
    gj_prepared_free(&prepared);
    args = args_of(p);
    assert_int_equal(gj_launch_prepare(kernels_get(&kernels, cases[p].key), &args, 0, &prepared, NULL),
                     GJ_OK);
    struct gj_pointers same = others;
    same.p = same.d;
    check_error(gj_prepared_launch(prepared, &same, &stream, &error), GJ_ERR_ARGUMENT, &error, "P: data",
                "overlap", NULL);
    gj_prepared_free(&prepared);
    gj_prepared_free(&prepared); /* nothing left, nothing done */
}

static void prepared_failures(void **state)
{
    (void)state;
    gj_error *error = NULL;
    gj_prepared *prepared = NULL;
    struct gj_gemm_args args = plain_args();
    gj_kernel *const kernel = kernels_get(&kernels, cases[0].key);
    args.m = 0;
    check_error(gj_launch_prepare(kernel, &args, 0, &prepared, &error), GJ_ERR_ARGUMENT, &error, "m = 0",
                "no launch", NULL);
    args = plain_args();
    args.a.ld = 999;
    check_error(gj_launch_prepare(kernel, &args, 0, &prepared, &error), GJ_ERR_ARGUMENT, &error, "A: ld",
                NULL);
    args = plain_args();
    check_error(gj_launch_prepare(kernel, &args, 9, &prepared, &error), GJ_ERR_NO_DEVICE, &error, "device 9",
                NULL);
    fake_fail(fake, "cuTensorMapEncodeTiled", CUDA_ERROR_INVALID_VALUE);
    check_error(gj_launch_prepare(kernel, &args, 0, &prepared, &error), GJ_ERR_DRIVER, &error,
                "CUDA_ERROR_INVALID_VALUE", NULL);
    fake_fail(fake, NULL, CUDA_SUCCESS);
    assert_null(prepared);
    assert_int_equal(gj_launch_prepare(kernel, &args, 0, &prepared, NULL), GJ_OK);
    static const char *const calls[] = {"cuStreamGetCtx", "cuTensorMapReplaceAddress", "cuLaunchKernelEx"};
    for (size_t i = 0; i < COUNT(calls); i++) {
        fake_forget(fake);
        fake_fail(fake, calls[i], CUDA_ERROR_LAUNCH_FAILED);
        check_error(gj_prepared_launch(prepared, &others, &stream, &error), GJ_ERR_DRIVER, &error,
                    "CUDA_ERROR_LAUNCH_FAILED", NULL);
    }
    fake_fail(fake, NULL, CUDA_SUCCESS);
    stream.device = 1;
    fake->retained[1]++; /* whoever made that stream */
    check_error(gj_prepared_launch(prepared, &others, &stream, &error), GJ_ERR_ARGUMENT, &error, "device 1",
                "device 0", NULL);
    fake->retained[1]--;
    gj_prepared_free(&prepared);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(hot_gemm),           TEST(hot_gemm_refuses),  TEST(choices_are_replaced),
        TEST(choices_of_threads), TEST(prepared_launches), TEST(prepared_addresses),
        TEST(prepared_failures),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
