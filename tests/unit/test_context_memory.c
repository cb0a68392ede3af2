/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation on the way to a launch fails once: the status says so, and nothing crashes or leaks.
 * Linked with --wrap. Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"
#include "key/config.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);

/* Allocations that still succeed before the one that fails; negative: all do. */
static int allowed = -1;

static bool is_allowed(void)
{
    return allowed < 0 || allowed-- != 0;
}

void *__wrap_malloc(size_t bytes)
{
    return is_allowed() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_allowed() ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_allowed() ? __real_realloc(memory, bytes) : NULL;
}

char *__wrap_strdup(const char *text)
{
    return is_allowed() ? __real_strdup(text) : NULL;
}

static const char small_key[] = "tile=64x16,cluster=1x1";

static const char *library;
static struct kernels kernels;
static struct fake_cuda *fake;

static const struct gj_gemm_args basic = {
    .m = 100,
    .n = 48,
    .k = 64,
    .batch = 1,
    .a = {(void *)(uintptr_t)0x10000, 64, 0},
    .b = {(void *)(uintptr_t)0x20000, 64, 0},
    .d = {(void *)(uintptr_t)0x30000, 48, 0},
};

/* From opening a context to a launch, with an error asked for. */
static enum gj_status live(const struct gj_key *key, gj_error **error)
{
    const struct gj_context_params params = {.cache_dir = kernels.scratch.root.text};
    struct fake_stream stream = {.device = 0};
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    enum gj_status status = gj_context_open(&params, &context, error);
    if (status == GJ_OK)
        status = gj_kernel_get(context, key, 0, &kernel, error);
    if (status == GJ_OK)
        status = gj_launch(kernel, &basic, &stream, error);
    gj_context_close(&context);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    const struct gj_key key = key_of(small_key);
    enum gj_status status = GJ_ERR_INTERNAL;
    int num_failed = 0;
    bool was_reached = true;
    for (int i = 0; was_reached; i++) {
        gj_error *error = NULL;
        allowed = i;
        status = live(&key, &error);
        was_reached = allowed < 0;
        allowed = -1;
        /* A cache that cannot be read for want of memory is a miss, and then there is no compiler here. */
        if (status != GJ_OK && status != GJ_ERR_NO_MEMORY && status != GJ_ERR_NO_COMPILER)
            fail_msg("allocation %d: %s: %s", i, gj_status_name(status), error ? error->message : "");
        assert_true(i < 10000 && (status == GJ_OK || was_reached));
        if (error != NULL)
            assert_int_equal(error->status, status);
        num_failed += status != GJ_OK;
        gj_error_free(&error);
        assert_int_equal(fake->num_libraries, 0);
        assert_int_equal(fake->retained[0], 0);
    }
    assert_int_equal(status, GJ_OK);
    assert_true(num_failed > 20);
}

/* A failure for want of memory does not stick: the same context works a moment later. */
static void it_does_not_stick(void **state)
{
    (void)state;
    struct fake_stream stream = {.device = 0};
    const struct gj_key key = key_of(small_key);
    for (int i = 0; i < 1000; i++) {
        gj_context *context = NULL;
        gj_kernel *kernel = NULL;
        const struct gj_context_params params = {.cache_dir = kernels.scratch.root.text};
        assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
        allowed = i;
        enum gj_status status = gj_kernel_get(context, &key, 0, &kernel, NULL);
        const bool is_last = status == GJ_OK && allowed >= 0;
        allowed = -1;
        if (status != GJ_OK)
            assert_int_equal(gj_kernel_get(context, &key, 0, &kernel, NULL), GJ_OK);
        allowed = 0;
        status = gj_launch(kernel, &basic, &stream, NULL);
        allowed = -1;
        assert_int_equal(status, GJ_ERR_NO_MEMORY); /* the first launch loads */
        assert_int_equal(gj_launch(kernel, &basic, &stream, NULL), GJ_OK);
        allowed = 0; /* a hot launch allocates nothing */
        status = gj_launch(kernel, &basic, &stream, NULL);
        const bool is_untouched = allowed == 0;
        allowed = -1;
        assert_int_equal(status, GJ_OK);
        assert_true(is_untouched);
        gj_context_close(&context);
        if (is_last)
            return;
    }
    fail_msg("no end");
}

/* One entry that counts and one that has no kernel. */
static void write_table(char *path)
{
    static const char *const configs[] = {"tile=64x16,cluster=1x1", "tile=512x512"};
    const struct gj_key problem = gj_key_default();
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format_part(&problem, GJ_KEY_PROBLEM, text, sizeof text);
    const int file = mkstemp(path);
    assert_true(dprintf(file, "{\"format\": \"gemmjit-tuning\", \"version\": 1, \"entries\": [") > 0);
    for (int i = 0; i < 2; i++)
        assert_true(
            dprintf(file,
                    "%s{\"gpu\": \"G\", \"num_sms\": 132, \"problem\": \"%s\", \"n\": 8, \"k\": 8, "
                    "\"batch\": 1, \"m_class\": %d, \"config\": \"%s\", \"us\": 1, \"default_us\": 2, "
                    "\"measured\": \"2026-12-01\"}",
                    i ? ", " : "", text, 8 << i, configs[i]) > 0);
    assert_true(dprintf(file, "]}") > 0);
    close(file);
}

/* A table is read whole, or the context is not opened; only the reason in a warning may be lost. */
static void tables_of_a_context(void **state)
{
    (void)state;
    char path[] = "/tmp/gemmjit-memory.XXXXXX";
    write_table(path);
    const struct gj_context_params params = {.no_disk_cache = 1, .tuning = path};
    const struct gj_key problem = gj_key_default(), wanted = key_of("tile=64x16,cluster=1x1");
    bool was_reached = true;
    int num_failed = 0;
    for (int i = 0; was_reached; i++) {
        gj_context *context = NULL;
        gj_error *error = NULL;
        allowed = i;
        const enum gj_status status = gj_context_open(&params, &context, &error);
        was_reached = allowed < 0;
        allowed = -1;
        gj_error_free(&error);
        num_failed += status != GJ_OK;
        if (status != GJ_OK) {
            assert_int_equal(status, GJ_ERR_NO_MEMORY);
            continue;
        }
        struct gj_key key;
        assert_int_equal(gj_context_choose(context, &problem, 8, 8, 8, 1, "G", 132, &key, NULL), GJ_OK);
        assert_memory_equal(&key, &wanted, sizeof key);
        gj_context_close(&context);
    }
    assert_true(num_failed > 5);
    unlink(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(it_does_not_stick),
        cmocka_unit_test(tables_of_a_context),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    fake = fake_use(library);
    fake->current = 0;
    kernels_open(&kernels);
    const struct gj_key key = key_of(small_key);
    kernels_add(&kernels, &key);
    const int result = cmocka_run_group_tests(tests, NULL, NULL);
    kernels_close(&kernels);
    return result;
}
