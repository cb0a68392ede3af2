/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of contexts that were declared warm, that may only read the disk cache, and that have layers.
 * Argument: the forwarding libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cache/cache_impl.h"
#include "context_fixture.h"

static const char small_key[] = "tile=64x16,cluster=1x1";
static const char other_key[] = "tile=64x32,cluster=1x1";

static struct scratch scratch;

static int set_up(void **state)
{
    (void)state;
    use_real();
    unsetenv("GEMMJIT_CACHE_DIR");
    scratch_make(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

/* Puts the small key on disk. */
static void fill_cache(void)
{
    gj_context *context = context_on(&scratch, NULL, 0);
    kernel_of(context, small_key);
    gj_context_close(&context);
}

/* -- Warm, and read only --------------------------------------------------------------------------------- */

struct alarm {
    int count;
    char key_text[512];
    enum gj_status status;
    double compile_ms;
};

static void note_compile(void *user, const struct gj_compile_event *event)
{
    struct alarm *alarm = user;
    alarm->count++;
    snprintf(alarm->key_text, sizeof alarm->key_text, "%s", event->key_text);
    alarm->status = event->status;
    alarm->compile_ms = event->compile_ms;
}

static void a_compile_in_a_warm_context_is_told(void **state)
{
    (void)state;
    gj_context *context = context_on(&scratch, NULL, 0);
    struct alarm alarm = {0};
    kernel_of(context, small_key);
    gj_context_mark_warm(context, note_compile, &alarm);
    kernel_of(context, small_key);
    assert_int_equal(alarm.count, 0);
    struct gj_kernel_info info;
    gj_kernel_info(kernel_of(context, other_key), &info);
    assert_int_equal(alarm.count, 1);
    assert_string_equal(alarm.key_text, info.key_text);
    assert_int_equal(alarm.status, GJ_OK);
    assert_true(alarm.compile_ms > 1);
    assert_int_equal(stats_of(context).warm_compiles, 1);
    assert_int_equal(scratch.log.warnings, 1);
    assert_non_null(strstr(scratch.log.last_warning, "warm"));
    gj_context_mark_warm(context, NULL, NULL);
    kernel_of(context, "tile=64x16,cluster=1x1,sched=coop");
    assert_int_equal(alarm.count, 1);
    assert_int_equal(stats_of(context).warm_compiles, 2);
    gj_context_close(&context);
}

/* What is on disk is no compile. */
static void a_warm_context_loads_in_silence(void **state)
{
    (void)state;
    fill_cache();
    gj_context *context = context_on(&scratch, NULL, 0);
    struct alarm alarm = {0};
    gj_context_mark_warm(context, note_compile, &alarm);
    kernel_of(context, small_key);
    assert_int_equal(alarm.count, 0);
    assert_int_equal(stats_of(context).warm_compiles, 0);
    assert_int_equal(stats_of(context).disk_hits, 1);
    gj_context_close(&context);
}

static void a_failed_compile_in_a_warm_context_is_told(void **state)
{
    (void)state;
    const struct path templates = path_format("%s/templates", scratch.dir.text);
    write_templates(templates.text);
    append_template(templates.text, "templates/gemm_sm90.cu", "\nint broken(\n");
    gj_context *context = context_on(&scratch, templates.text, 0);
    struct alarm alarm = {0};
    gj_context_mark_warm(context, note_compile, &alarm);
    gj_error *error = refusal_of(context, small_key, 0, GJ_ERR_COMPILE);
    gj_error_free(&error);
    assert_int_equal(alarm.count, 1);
    assert_int_equal(alarm.status, GJ_ERR_COMPILE);
    gj_context_close(&context);
}

static gj_context *read_only_context(void)
{
    const struct gj_context_params params = {.cache_dir = scratch.root.text, .read_only = 1};
    gj_context *context = NULL;
    assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
    return context;
}

static void a_read_only_context_compiles_and_keeps_it_in_memory(void **state)
{
    (void)state;
    fill_cache();
    gj_context *context = read_only_context();
    kernel_of(context, small_key);
    struct gj_kernel_info info;
    gj_kernel_info(kernel_of(context, other_key), &info);
    assert_int_equal(info.stored, 0);
    const struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.disk_write_failures + stats.disk_bytes_written, 0);
    struct stat status;
    assert_int_equal(stat(only_entry(&scratch).text, &status), 0);
    assert_int_equal(stats.disk_bytes_read, status.st_size);
    gj_context_close(&context);
}

/* -- Layers ---------------------------------------------------------------------------------------------- */

/* Packs what is in the cache, and empties the cache. */
static struct path pack_and_clear(void)
{
    const struct path pack = path_format("%s/some.pack", scratch.dir.text);
    struct gj_cache_packed packed;
    struct gj_fault fault;
    assert_int_equal(gj_cache_pack(scratch.cache, pack.text, NULL, &packed, &fault), GJ_PACK_DONE);
    assert_int_equal(gj_cache_clear(scratch.cache), 1);
    return pack;
}

static gj_context *layered_context(const struct path *pack, int no_compile)
{
    const char *const layers[] = {pack->text};
    const struct gj_context_params params = {.cache_dir = scratch.root.text,
                                             .cache_layers = layers,
                                             .num_cache_layers = 1,
                                             .no_compile = no_compile};
    gj_context *context = NULL;
    assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
    return context;
}

/* The stamps of the pack say which version this libnvrtc has: it is not opened. */
static void a_pack_serves_a_context(void **state)
{
    (void)state;
    fill_cache();
    const struct path pack = pack_and_clear();
    gj_context *context = layered_context(&pack, 0);
    struct gj_kernel_info info;
    gj_kernel_info(kernel_of(context, small_key), &info);
    assert_int_equal(info.origin, GJ_ORIGIN_DISK);
    assert_memory_equal(info.cubin, "\177ELF", 4);
    struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.layer_hits, 1);
    assert_int_equal(stats.nvrtc_opens + stats.compiles, 0);
    kernel_of(context, other_key);
    stats = stats_of(context);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.disk_misses, 1);
    assert_int_equal(count_entries(&scratch), 1);
    gj_context_close(&context);
}

/* Another version has published into the root since: where nothing is compiled, each place's own counts. */
static void a_pack_of_another_version_serves_without_compiling(void **state)
{
    (void)state;
    fill_cache();
    const struct path pack = pack_and_clear();
    use_forwarding(98, 7);
    gj_context *context = context_on(&scratch, NULL, 0);
    kernel_of(context, other_key);
    gj_context_close(&context);
    context = layered_context(&pack, 1);
    kernel_of(context, small_key);
    kernel_of(context, other_key);
    assert_int_equal(stats_of(context).layer_hits, 1);
    assert_int_equal(stats_of(context).nvrtc_opens, 0);
    gj_context_close(&context);

    setenv("GEMMJIT_NVRTC", "/nonexistent", 1);
    context = layered_context(&pack, 0);
    kernel_of(context, small_key);
    kernel_of(context, other_key);
    gj_context_close(&context);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_compile_in_a_warm_context_is_told),
        TEST(a_warm_context_loads_in_silence),
        TEST(a_failed_compile_in_a_warm_context_is_told),
        TEST(a_read_only_context_compiles_and_keeps_it_in_memory),
        TEST(a_pack_serves_a_context),
        TEST(a_pack_of_another_version_serves_without_compiling),
    };
    fixture_open(argc == 2 ? argv[1] : "");
    return cmocka_run_group_tests_name("context warm", tests, NULL, NULL);
}
