/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of one context and many threads: one compile per key, errors that are shared, calls that must not
 * compile. Argument: the forwarding libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "context_fixture.h"

enum { NUM_THREADS = 32, NUM_KEYS = 12 };

static const char small_key[] = "tile=64x16,cluster=1x1";
static const char broken[] = "\nstatic_assert(sizeof(int) == 5, \"broken on purpose\");\n";

static struct scratch scratch;

static int set_up(void **state)
{
    (void)state;
    use_real();
    scratch_make(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

/* What all threads were told, row by row. */
static struct {
    gj_kernel *kernels[NUM_THREADS][NUM_KEYS];
    enum gj_status status[NUM_THREADS][NUM_KEYS];
    gj_error *errors[NUM_THREADS][NUM_KEYS];
    struct asker askers[NUM_THREADS];
} told;

/* Everyone asks for all keys, each starting at another. */
static void ask_all(gj_context *context, const struct gj_key *keys, size_t num_keys, unsigned flags,
                    size_t num_threads)
{
    memset(&told, 0, sizeof told);
    for (size_t i = 0; i < num_threads; i++)
        told.askers[i] = (struct asker){context,         keys,           num_keys,      i % num_keys, flags,
                                        told.kernels[i], told.status[i], told.errors[i]};
    ask_at_once(told.askers, num_threads);
}

static void everyone_has_the_same(size_t num_keys)
{
    for (size_t i = 0; i < NUM_THREADS; i++) {
        for (size_t k = 0; k < num_keys; k++) {
            if (told.status[i][k] != GJ_OK)
                fail_msg("%s", told.errors[i][k] ? told.errors[i][k]->message : "no memory");
            assert_non_null(told.kernels[i][k]);
            assert_ptr_equal(told.kernels[i][k], told.kernels[0][k]);
            assert_null(told.errors[i][k]);
        }
    }
}

/* -- One compile per key --------------------------------------------------------------------------------- */

static void twelve_keys(struct gj_key keys[NUM_KEYS])
{
    for (int i = 0; i < NUM_KEYS; i++)
        keys[i] = key_of(path_format("tile=64x%d,cluster=1x1", 16 * (i + 1)).text);
}

static void check_info(gj_kernel *kernel, const struct gj_key *key, enum gj_origin origin)
{
    char text[GJ_KEY_TEXT_MAX];
    struct gj_kernel_info info;
    gj_key_format(key, text, sizeof text);
    gj_kernel_info(kernel, &info);
    assert_string_equal(info.key_text, text);
    assert_non_null(strstr(info.entry_name, path_format("%dx%d", key->tile_m, key->tile_n).text));
    assert_non_null(strstr(info.plan_text, "stages"));
    assert_non_null(strchr(info.plan_text, '\n'));
    assert_int_equal(info.threads % 128, 0);
    assert_in_range(info.registers, 24, 65536 / info.threads);
    assert_in_range(info.smem_bytes, 1, 232448);
    assert_in_range(info.stages, 2, 100);
    assert_int_equal(info.spill_bytes, 0);
    assert_in_range(info.cubin_bytes, 1000, 1 << 20);
    assert_memory_equal(info.cubin, "\177ELF", 4);
    assert_int_equal(info.origin, origin);
    assert_true(info.generate_ms > 0);
    assert_true(origin == GJ_ORIGIN_COMPILED ? info.compile_ms > 0 : info.compile_ms == 0);
    assert_true(origin == GJ_ORIGIN_DISK ? info.load_ms > 0 : info.load_ms == 0);
    assert_int_equal(strncmp(info.compiler, "nvrtc ", 6), 0);
}

static void threads_share_compiles(void **state)
{
    (void)state;
    struct gj_key keys[NUM_KEYS];
    twelve_keys(keys);
    for (int round = 0; round < 2; round++) {
        gj_context *context = context_on(&scratch, NULL, 0);
        ask_all(context, keys, NUM_KEYS, 0, NUM_THREADS);
        everyone_has_the_same(NUM_KEYS);
        struct gj_stats stats = stats_of(context);
        const uint64_t made = round == 0 ? stats.compiles : stats.disk_hits;
        assert_int_equal(made, NUM_KEYS);
        assert_int_equal(stats.compiles + stats.disk_hits, NUM_KEYS);
        assert_int_equal(stats.disk_misses, round == 0 ? NUM_KEYS : 0);
        assert_int_equal(stats.waits + stats.memory_hits, NUM_THREADS * NUM_KEYS - NUM_KEYS);
        assert_int_equal(stats.compile_failures + stats.damaged_entries + stats.disk_write_failures, 0);
        assert_int_equal(stats.nvrtc_opens, round == 0); /* a warm process leaves it alone */
        assert_int_equal(stats.disk_bytes_written > 0, round == 0);
        assert_int_equal(stats.disk_bytes_read > 0, round == 1);
        for (int k = 0; k < NUM_KEYS; k++)
            check_info(told.kernels[0][k], &keys[k], round == 0 ? GJ_ORIGIN_COMPILED : GJ_ORIGIN_DISK);
        /* From now on it is memory. */
        assert_ptr_equal(kernel_of(context, small_key), told.kernels[0][0]);
        assert_int_equal(stats_of(context).memory_hits, stats.memory_hits + 1);
        gj_context_close(&context);
        assert_null(context);
    }
    assert_int_equal(count_entries(&scratch), NUM_KEYS);
    assert_int_equal(count_files(scratch.root.text, "tmp"), 0);
    assert_int_equal(atomic_load(&scratch.log.warnings), 0);
}

static void arguments(void **state)
{
    (void)state;
    gj_context *context = context_on(&scratch, NULL, 0);
    gj_error *error = refusal_of(context, small_key, 2, GJ_ERR_ARGUMENT);
    check_words(error, "flags = 0x2", "GJ_NO_COMPILE");
    gj_error_free(&error);
    kernel_of(context, small_key);
    error = refusal_of(context, small_key, 0x81, GJ_ERR_ARGUMENT); /* in memory or not */
    check_words(error, "flags = 0x81", "");
    gj_error_free(&error);
    error = refusal_of(context, "tile=64x17", 0, GJ_ERR_UNSUPPORTED);
    assert_true(error->num_reasons > 0);
    gj_error_free(&error);
    gj_context_close(&context);
    gj_context_close(&context);
    gj_context_close(NULL);
}

/* -- A compile that fails -------------------------------------------------------------------------------- */

static void check_compile_error(const gj_error *error, int line)
{
    assert_non_null(error);
    assert_int_equal(error->status, GJ_ERR_COMPILE);
    assert_int_equal(error->stage, GJ_STAGE_COMPILE);
    assert_string_equal(error->origin_name, "NVRTC_ERROR_COMPILATION");
    assert_non_null(strstr(error->message, "broken on purpose"));
    assert_non_null(strstr(error->detail, "broken on purpose"));
    assert_non_null(strstr(error->detail, "-arch=sm_90a"));
    assert_true(error->num_locations >= 1);
    assert_string_equal(error->locations[0].file, "templates/gemm_sm90.cu");
    assert_int_equal(error->locations[0].line, line);
    assert_non_null(strstr(error->locations[0].excerpt, "sizeof(int) == 5"));
}

/* Those who wait for a compile share its failure; later ones compile again. */
static void waiters_share_the_error(void **state)
{
    (void)state;
    const struct path templates = path_format("%.4000s/templates", scratch.dir.text);
    write_templates(templates.text);
    const int line = append_template(templates.text, "templates/gemm_sm90.cu", broken) + 1;
    struct forward_nvrtc *const forward = use_forwarding(12, 9);
    gj_context *context = context_on(&scratch, templates.text, 0);
    const struct gj_key key = key_of(small_key);
    ask_all(context, &key, 1, 0, NUM_THREADS);
    const struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.compile_failures + stats.waits, NUM_THREADS);
    assert_int_equal(stats.compile_failures, forward->num_compiles);
    assert_int_equal(stats.compiles + stats.memory_hits + stats.disk_write_failures, 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(told.status[i][0], GJ_ERR_COMPILE);
        assert_null(told.kernels[i][0]);
        check_compile_error(told.errors[i][0], line);
        gj_error_free(&told.errors[i][0]);
    }
    assert_int_equal(count_entries(&scratch), 0);
    assert_int_equal(count_files(scratch.root.text, "tmp"), 0);
    gj_error *error = refusal_of(context, small_key, 0, GJ_ERR_COMPILE);
    check_compile_error(error, line);
    gj_error_free(&error);
    assert_int_equal(stats_of(context).compile_failures, stats.compile_failures + 1);
    gj_context_close(&context);

    /* A context reads its templates once; a new one sees that they were mended. */
    write_templates(path_format("%.4000s/mended", scratch.dir.text).text);
    context = context_on(&scratch, path_format("%.4000s/mended", scratch.dir.text).text, 0);
    kernel_of(context, small_key);
    assert_int_equal(stats_of(context).compiles, 1);
    gj_context_close(&context);
    assert_int_equal(count_entries(&scratch), 1);
}

/* Threads that look on while others are held. */
struct watch {
    gj_context *context;
    struct forward_nvrtc *forward;
    uint64_t waits; /* compiles are let go once so many calls wait */
};

static void *release_when_all_wait(void *argument)
{
    const struct watch *const watch = argument;
    while (stats_of(watch->context).waits < watch->waits)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    release(watch->forward);
    return NULL;
}

/* With compiles held the waiters are known to wait: one failure for all. */
static void held_waiters_share_one_failure(void **state)
{
    (void)state;
    enum { FEW = 8 };
    const struct path templates = path_format("%.4000s/templates", scratch.dir.text);
    write_templates(templates.text);
    append_template(templates.text, "templates/gemm_sm90.cu", broken);
    struct forward_nvrtc *const forward = use_forwarding(12, 9);
    gj_context *context = context_on(&scratch, templates.text, 0);
    const struct gj_key key = key_of(small_key);
    struct watch watch = {context, forward, FEW - 1};
    pthread_t helper;
    forward->is_held = 1;
    assert_int_equal(pthread_create(&helper, NULL, release_when_all_wait, &watch), 0);
    ask_all(context, &key, 1, 0, FEW);
    pthread_join(helper, NULL);
    const struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.compile_failures, 1);
    assert_int_equal(stats.waits, FEW - 1);
    for (int i = 0; i < FEW; i++) {
        assert_int_equal(told.status[i][0], GJ_ERR_COMPILE);
        assert_non_null(told.errors[i][0]);
        assert_string_equal(told.errors[i][0]->message, told.errors[0][0]->message);
        assert_string_equal(told.errors[i][0]->detail, told.errors[0][0]->detail);
        assert_int_equal(told.errors[i][0]->num_locations, told.errors[0][0]->num_locations);
    }
    for (int i = 0; i < FEW; i++)
        gj_error_free(&told.errors[i][0]);
    gj_context_close(&context);
}

/* The generator's own refusals have a place too, and no compiler is asked. */
static void a_template_that_cannot_be_expanded(void **state)
{
    (void)state;
    const struct path templates = path_format("%.4000s/templates", scratch.dir.text);
    write_templates(templates.text);
    const int line =
        append_template(templates.text, "templates/gemm_sm90.cu", "\n#if NO_SUCH_CONSTANT\n#endif\n");
    gj_context *context = context_on(&scratch, templates.text, 0);
    gj_error *error = refusal_of(context, small_key, 0, GJ_ERR_GENERATE);
    assert_int_equal(error->stage, GJ_STAGE_GENERATE);
    assert_true(error->num_locations >= 1);
    assert_string_equal(error->locations[0].file, "templates/gemm_sm90.cu");
    assert_int_equal(error->locations[0].line, line + 1);
    gj_error_free(&error);
    const struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.nvrtc_opens + stats.compile_failures + stats.compiles, 0);
    gj_context_close(&context);

    const struct gj_context_params params = {.template_dir = "/nonexistent"};
    gj_context *const untouched = (gj_context *)(void *)&scratch;
    context = untouched;
    assert_int_equal(gj_context_open(&params, &context, &error), GJ_ERR_SYSTEM);
    assert_ptr_equal(context, untouched);
    check_words(error, "/nonexistent", "cannot be read");
    assert_string_equal(error->origin_name, "ENOENT");
    gj_error_free(&error);
}

/* -- Calls that must not compile ------------------------------------------------------------------------- */

static void check_not_cached(gj_context *context, const char *key_text, unsigned flags)
{
    char text[GJ_KEY_TEXT_MAX];
    const struct gj_key key = key_of(key_text);
    gj_key_format(&key, text, sizeof text);
    gj_error *error = refusal_of(context, key_text, flags, GJ_ERR_NOT_CACHED);
    assert_int_equal(error->stage, GJ_STAGE_CACHE);
    check_words(error, text, path_format("gemmjit prewarm --key %s", text).text);
    gj_error_free(&error);
}

static void no_compile_on_a_cold_cache(void **state)
{
    (void)state;
    gj_context *context = context_on(&scratch, NULL, 1);
    check_not_cached(context, small_key, 0);
    gj_context_close(&context);
    context = context_on(&scratch, NULL, 0);
    check_not_cached(context, small_key, GJ_NO_COMPILE);
    struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.disk_misses, 1);
    assert_int_equal(stats.nvrtc_opens + stats.compiles + stats.compile_failures + stats.disk_hits, 0);
    assert_int_equal(count_files(scratch.dir.text, ""), 0);
    /* What is in memory needs no compile. */
    gj_kernel *const kernel = kernel_of(context, small_key), *again = NULL;
    const struct gj_key key = key_of(small_key);
    assert_int_equal(gj_kernel_get(context, &key, GJ_NO_COMPILE, &again, NULL), GJ_OK);
    assert_ptr_equal(again, kernel);
    gj_context_close(&context);
    /* A key that was not prewarmed, in a cache that is in use. */
    context = context_on(&scratch, NULL, 1);
    kernel_of(context, small_key);
    check_not_cached(context, "tile=64x32,cluster=1x1", 0);
    assert_int_equal(stats_of(context).nvrtc_opens, 0);
    assert_int_equal(stats_of(context).disk_misses, 1);
    gj_context_close(&context);
}

/* While one loads from disk the others wait for it: that is no compile. */
static void no_compile_by_all_on_a_warm_cache(void **state)
{
    (void)state;
    struct gj_key keys[3];
    gj_context *context = context_on(&scratch, NULL, 0);
    for (size_t i = 0; i < 3; i++) {
        const struct path text = path_format("tile=64x%d,cluster=1x1", 16 * ((int)i + 1));
        keys[i] = key_of(text.text);
        kernel_of(context, text.text);
    }
    gj_context_close(&context);
    for (int round = 0; round < 20; round++) {
        context = context_on(&scratch, NULL, round % 2);
        ask_all(context, keys, 3, round % 2 ? 0 : GJ_NO_COMPILE, NUM_THREADS);
        everyone_has_the_same(3);
        assert_int_equal(stats_of(context).disk_hits, 3);
        assert_int_equal(stats_of(context).nvrtc_opens, 0);
        gj_context_close(&context);
    }
}

static void *get_kernel(void *argument)
{
    gj_kernel *kernel = NULL;
    struct gj_key key = gj_key_default();
    gj_key_parse(small_key, &key, NULL);
    gj_kernel_get(argument, &key, 0, &kernel, NULL);
    return kernel;
}

/* It does not wait for another thread's compile either. */
static void no_compile_beside_a_compile(void **state)
{
    (void)state;
    struct forward_nvrtc *const forward = use_forwarding(12, 9);
    gj_context *context = context_on(&scratch, NULL, 0);
    pthread_t other;
    void *kernel = NULL;
    forward->is_held = 1;
    assert_int_equal(pthread_create(&other, NULL, get_kernel, context), 0);
    await_compiles(forward, 1);
    check_not_cached(context, small_key, GJ_NO_COMPILE); /* hangs if it waits */
    release(forward);
    pthread_join(other, &kernel);
    assert_non_null(kernel);
    assert_ptr_equal(kernel_of(context, small_key), kernel);
    assert_int_equal(stats_of(context).compiles, 1);
    gj_context_close(&context);
}

/* One that may compile never shares the refusal of one that may not. */
static void compile_beside_no_compile(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };
    const struct gj_key key = key_of(small_key);
    for (int round = 0; round < ROUNDS; round++) {
        struct scratch cold;
        scratch_make(&cold);
        gj_context *context = context_on(&cold, NULL, 0);
        memset(&told, 0, sizeof told);
        for (int i = 0; i < NUM_THREADS; i++)
            told.askers[i] = (struct asker){
                context,        &key,          1, 0, i % 8 ? GJ_NO_COMPILE : 0, told.kernels[i],
                told.status[i], told.errors[i]};
        ask_at_once(told.askers, NUM_THREADS);
        for (int i = 0; i < NUM_THREADS; i++) {
            if (i % 8 == 0 && told.status[i][0] != GJ_OK)
                fail_msg("%s", told.errors[i][0]->message);
            assert_true(told.status[i][0] == GJ_OK || told.status[i][0] == GJ_ERR_NOT_CACHED);
            gj_error_free(&told.errors[i][0]);
        }
        assert_int_equal(stats_of(context).compiles, 1);
        gj_context_close(&context);
        scratch_remove(&cold);
    }
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(threads_share_compiles),
        TEST(arguments),
        TEST(waiters_share_the_error),
        TEST(held_waiters_share_one_failure),
        TEST(a_template_that_cannot_be_expanded),
        TEST(no_compile_on_a_cold_cache),
        TEST(no_compile_by_all_on_a_warm_cache),
        TEST(no_compile_beside_a_compile),
        TEST(compile_beside_no_compile),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FORWARDING_NVRTC\n", argv[0]);
        return 1;
    }
    fixture_open(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
