/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of threads that get, prepare and launch the same kernels at once, on a fake libcuda and with cubins
 * from disk. Argument: the fake libcuda. */
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

enum { NUM_THREADS = 8, NUM_KEYS = 4, NUM_DEVICES = 2, NUM_LAUNCHES = 4, MANY_KEYS = 100 };

static const char *library;
static struct fake_cuda *fake;
static struct kernels kernels;
static struct gj_key keys[MANY_KEYS];
static pthread_barrier_t barrier;

static const struct gj_gemm_args basic = {
    .m = 100,
    .n = 48,
    .k = 64,
    .batch = 1,
    .a = {ADDRESS(0x10000), 64, 0},
    .b = {ADDRESS(0x20000), 64, 0},
    .d = {ADDRESS(0x30000), 48, 0},
};

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    kernels_open(&kernels);
    const struct gj_key problem = gj_key_default();
    assert_true(gj_keys_enumerate(&problem, keys, MANY_KEYS) >= MANY_KEYS);
    for (int i = 0; i < MANY_KEYS; i++)
        kernels_add(&kernels, &keys[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    assert_int_equal(fake->num_libraries, 0);
    return 0;
}

/* The threads return NULL, or a sentence: cmocka's assertions belong to the main thread. */
static void run_threads(void *(*work)(void *))
{
    pthread_t threads[NUM_THREADS];
    int numbers[NUM_THREADS];
    void *sentence = NULL, *first = NULL;
    pthread_barrier_init(&barrier, NULL, NUM_THREADS);
    for (int i = 0; i < NUM_THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_join(threads[i], &sentence);
        first = first ? first : sentence;
    }
    pthread_barrier_destroy(&barrier);
    if (first != NULL)
        fail_msg("%s", (const char *)first);
}

static void *launch_all(void *number)
{
    static char no_kernel[] = "a kernel was not had", no_prepare[] = "a kernel was not prepared",
                no_launch[] = "a kernel was not launched";
    const int self = *(const int *)number;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < NUM_KEYS; i++) {
        gj_kernel *kernel = NULL;
        struct fake_stream stream = {.device = self % NUM_DEVICES};
        if (gj_kernel_get(kernels.context, &keys[(self + i) % NUM_KEYS], 0, &kernel, NULL) != GJ_OK)
            return no_kernel;
        if (self % 3 == 0 && gj_kernel_prepare(kernel, self % NUM_DEVICES, NULL) != GJ_OK)
            return no_prepare;
        for (int j = 0; j < NUM_LAUNCHES; j++)
            if (gj_launch(kernel, &basic, &stream, NULL) != GJ_OK)
                return no_launch;
    }
    return NULL;
}

static void threads_prepare_and_launch(void **state)
{
    (void)state;
    fake->retained[1]++; /* someone uses the second device too */
    run_threads(launch_all);
    fake->retained[1]--;
    assert_int_equal(fake_count(fake, "cuInit"), 1);
    assert_int_equal(fake_count(fake, "cuLibraryLoadData"), NUM_KEYS);
    assert_int_equal(fake_count(fake, "cuKernelSetAttribute"), NUM_KEYS * NUM_DEVICES);
    assert_int_equal(fake_count(fake, "cuLaunchKernelEx"), NUM_THREADS * NUM_KEYS * NUM_LAUNCHES);
    assert_int_equal(fake->num_launches, NUM_THREADS * NUM_KEYS * NUM_LAUNCHES);
}

static gj_kernel *had[NUM_THREADS][MANY_KEYS];

static void *get_all(void *number)
{
    static char no_kernel[] = "a kernel was not had";
    const int self = *(const int *)number;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < MANY_KEYS; i++) {
        const int at = (i + 13 * self) % MANY_KEYS;
        const unsigned flags = self % 2 ? GJ_NO_COMPILE : 0;
        if (gj_kernel_get(kernels.context, &keys[at], flags, &had[self][at], NULL) != GJ_OK)
            return no_kernel;
    }
    return NULL;
}

/* The table of kernels grows while others look things up in it. */
static void threads_fill_the_table(void **state)
{
    (void)state;
    struct gj_stats stats;
    run_threads(get_all);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_memory_equal(had[i], had[0], sizeof had[0]);
    gj_stats(kernels.context, &stats);
    assert_int_equal(stats.disk_hits, MANY_KEYS);
    assert_int_equal(stats.memory_hits + stats.waits, (NUM_THREADS - 1) * MANY_KEYS);
    assert_int_equal(stats.disk_misses + stats.compiles + stats.nvrtc_opens, 0);
    for (int i = 0; i < MANY_KEYS; i++) {
        char text[GJ_KEY_TEXT_MAX];
        struct gj_kernel_info info;
        gj_key_format(&keys[i], text, sizeof text);
        gj_kernel_info(had[0][i], &info);
        assert_string_equal(info.key_text, text);
        assert_memory_equal((const char *)info.cubin + strlen("cubin of "), text, strlen(text));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_prepare_and_launch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_fill_the_table, set_up, tear_down),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
