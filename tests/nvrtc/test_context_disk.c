/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of contexts over the disk cache: damage, templates, versions of libnvrtc, and doing without either.
 * Argument: the forwarding libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

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

/* Gets the small key in a new context and returns what that counted. */
static struct gj_stats get_in_new_context(const char *template_dir)
{
    gj_context *context = context_on(&scratch, template_dir, 0);
    kernel_of(context, small_key);
    const struct gj_stats stats = stats_of(context);
    gj_context_close(&context);
    return stats;
}

static void is_compiled(const char *template_dir)
{
    const struct gj_stats stats = get_in_new_context(template_dir);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.disk_misses, 1);
    assert_int_equal(stats.disk_hits + stats.damaged_entries, 0);
}

static void is_a_cold_hit(const char *template_dir)
{
    const struct gj_stats stats = get_in_new_context(template_dir);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.nvrtc_opens + stats.compiles, 0);
}

/* -- What an entry says ---------------------------------------------------------------------------------- */

static void a_hit_says_what_the_compile_said(void **state)
{
    (void)state;
    gj_context *compiling = context_on(&scratch, NULL, 0), *loading = context_on(&scratch, NULL, 1);
    struct gj_kernel_info made, loaded;
    gj_kernel_info(kernel_of(compiling, small_key), &made);
    gj_kernel_info(kernel_of(loading, small_key), &loaded);
    assert_string_equal(made.key_text, loaded.key_text);
    assert_string_equal(made.entry_name, loaded.entry_name);
    assert_string_equal(made.plan_text, loaded.plan_text);
    assert_string_equal(made.compiler, loaded.compiler);
    assert_int_equal(made.registers, loaded.registers);
    assert_int_equal(made.threads, loaded.threads);
    assert_int_equal(made.smem_bytes, loaded.smem_bytes);
    assert_int_equal(made.stages, loaded.stages);
    assert_int_equal(made.spill_bytes, loaded.spill_bytes);
    assert_int_equal(made.cubin_bytes, loaded.cubin_bytes);
    assert_memory_equal(made.cubin, loaded.cubin, made.cubin_bytes);
    assert_int_equal(made.origin, GJ_ORIGIN_COMPILED);
    assert_int_equal(loaded.origin, GJ_ORIGIN_DISK);
    gj_context_close(&compiling);
    /* What was published is a file of its own; closing the one takes nothing from the other. */
    gj_kernel_info(kernel_of(loading, small_key), &loaded);
    assert_memory_equal(loaded.cubin, "\177ELF", 4);
    gj_context_close(&loading);
}

/* -- Damage ---------------------------------------------------------------------------------------------- */

static void check_healed(const char *what)
{
    atomic_store(&scratch.log.warnings, 0);
    const struct gj_stats stats = get_in_new_context(NULL);
    if (stats.damaged_entries != 1 || stats.compiles != 1 || stats.disk_misses != 0)
        fail_msg("%s: %d damaged, %d compiles, %d misses", what, (int)stats.damaged_entries,
                 (int)stats.compiles, (int)stats.disk_misses);
    assert_int_equal(atomic_load(&scratch.log.warnings), 1);
    is_a_cold_hit(NULL);
}

static void damaged_entries(void **state)
{
    (void)state;
    is_compiled(NULL);
    const struct path entry = only_entry(&scratch);
    size_t bytes = 0, scratch_bytes = 0;
    unsigned char *const sound = read_file(entry.text, &bytes);
    const size_t lengths[] = {0, 1, bytes / 2, bytes - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(truncate(entry.text, (off_t)lengths[i]), 0);
        check_healed(path_format("cut to %zu bytes", lengths[i]).text);
    }
    const size_t places[] = {0, 9, bytes / 4, bytes / 2, bytes * 3 / 4, bytes - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        unsigned char *const damaged = read_file(entry.text, &scratch_bytes);
        damaged[places[i]] ^= (unsigned char)(1u << i);
        write_file(entry.text, damaged, scratch_bytes, 0600);
        free(damaged);
        check_healed(path_format("bit %zu of byte %zu", i, places[i]).text);
    }
    /* What heals it is the same file again, to the byte. */
    unsigned char *const healed = read_file(entry.text, &scratch_bytes);
    assert_int_equal(scratch_bytes, bytes);
    assert_memory_equal(healed, sound, bytes);
    free(healed);
    free(sound);
}

static void an_entry_under_a_wrong_name(void **state)
{
    (void)state;
    is_compiled(NULL);
    const struct path entry = only_entry(&scratch);
    gj_context *context = context_on(&scratch, NULL, 0);
    struct gj_kernel_info info;
    kernel_of(context, other_key);
    gj_context_close(&context);
    /* The other entry's bytes in this one's place: sound, but not what was asked for. */
    struct scratch other;
    scratch_make(&other);
    context = context_on(&other, NULL, 0);
    kernel_of(context, other_key);
    gj_context_close(&context);
    size_t bytes = 0;
    unsigned char *const foreign = read_file(only_entry(&other).text, &bytes);
    write_file(entry.text, foreign, bytes, 0600);
    free(foreign);
    scratch_remove(&other);
    check_healed("an entry of another key");
    context = context_on(&scratch, NULL, 1);
    gj_kernel_info(kernel_of(context, small_key), &info);
    assert_non_null(strstr(info.entry_name, "64x16"));
    gj_context_close(&context);
}

/* -- Templates ------------------------------------------------------------------------------------------- */

static void templates_make_the_name(void **state)
{
    (void)state;
    const struct path same = path_format("%.4000s/same", scratch.dir.text);
    const struct path edited = path_format("%.4000s/edited", scratch.dir.text);
    write_templates(same.text);
    write_templates(edited.text);
    append_template(edited.text, "templates/gemm_sm90.cu", "\nstatic_assert(sizeof(int) == 4, \"a\");\n");
    is_compiled(NULL);
    is_a_cold_hit(same.text); /* it is the text that counts, not where it lies */
    is_compiled(edited.text);
    assert_int_equal(count_entries(&scratch), 2);
    is_a_cold_hit(edited.text);
    is_a_cold_hit(NULL);
    /* One byte. */
    const struct path file = path_format("%.4000s/templates/gemm_sm90.cu", edited.text);
    size_t bytes = 0;
    unsigned char *const text = read_file(file.text, &bytes);
    assert_int_equal(text[bytes - 5], 'a');
    text[bytes - 5] = 'b';
    write_file(file.text, text, bytes, 0600);
    free(text);
    is_compiled(edited.text);
    assert_int_equal(count_entries(&scratch), 3);
    is_a_cold_hit(edited.text);
    is_a_cold_hit(same.text);
    assert_int_equal(atomic_load(&scratch.log.warnings), 0);
}

/* -- Versions of libnvrtc -------------------------------------------------------------------------------- */

static void check_compiler(const char *expected)
{
    gj_context *context = context_on(&scratch, NULL, 0);
    struct gj_kernel_info info;
    gj_kernel_info(kernel_of(context, small_key), &info);
    assert_string_equal(info.compiler, expected);
    gj_context_close(&context);
}

static void versions_coexist(void **state)
{
    (void)state;
    is_compiled(NULL);
    use_forwarding(12, 8);
    is_compiled(NULL);
    assert_int_equal(count_entries(&scratch), 2);
    is_a_cold_hit(NULL);
    check_compiler("nvrtc 12.8");
    use_real();
    is_a_cold_hit(NULL); /* going back hits again */
    use_forwarding(12, 8);
    is_a_cold_hit(NULL);
    /* An upgrade in place that nothing but the library itself can tell. */
    use_forwarding(12, 9);
    gj_context *context = context_on(&scratch, NULL, 0);
    kernel_of(context, other_key);
    assert_int_equal(stats_of(context).compiles, 1);
    gj_context_close(&context);
    is_compiled(NULL);
    check_compiler("nvrtc 12.9");
    assert_int_equal(count_entries(&scratch), 4);
}

/* A cache that was filled by a libnvrtc that lies elsewhere: in another image, or on another host. */
static void a_cache_that_was_moved(void **state)
{
    (void)state;
    use_forwarding(12, 8);
    is_compiled(NULL);
    const struct path moved = path_format("%.4000s/moved", scratch.dir.text);
    assert_int_equal(rename(scratch.root.text, moved.text), 0);
    scratch.root = moved;
    use_real(); /* known by no stamp of this cache, and of another version */
    gj_context *context = context_on(&scratch, NULL, 1);
    kernel_of(context, small_key);
    struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.disk_misses + stats.nvrtc_opens, 0);
    gj_context_close(&context);
    is_compiled(NULL); /* where compiling is allowed the entry is this libnvrtc's own */
    context = context_on(&scratch, NULL, 1);
    struct gj_kernel_info info;
    gj_kernel_info(kernel_of(context, small_key), &info);
    assert_string_not_equal(info.compiler, "nvrtc 12.8");
    gj_context_close(&context);
}

/* The same version in another place: the library must be asked once, then the cache knows it. */
static void the_same_version_elsewhere(void **state)
{
    (void)state;
    use_forwarding(12, 8);
    is_compiled(NULL);
    const char *const path = getenv("GEMMJIT_NVRTC");
    size_t bytes = 0;
    unsigned char *const library = read_file(path, &bytes);
    const struct path copy = path_format("%.4000s/libnvrtc.so", scratch.dir.text);
    write_file(copy.text, library, bytes, 0700);
    free(library);
    setenv("GEMMJIT_NVRTC", copy.text, 1);
    const struct gj_stats stats = get_in_new_context(NULL);
    assert_int_equal(stats.disk_hits, 1);
    assert_int_equal(stats.nvrtc_opens, 1);
    assert_int_equal(stats.compiles + stats.disk_misses, 0);
    is_a_cold_hit(NULL);
}

static void without_libnvrtc(void **state)
{
    (void)state;
    setenv("GEMMJIT_NVRTC", "/nonexistent", 1);
    gj_context *context = context_on(&scratch, NULL, 0);
    gj_error *error = refusal_of(context, small_key, 0, GJ_ERR_NO_COMPILER);
    check_words(error, "/nonexistent", "GEMMJIT_NVRTC");
    gj_error_free(&error);
    struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.compile_failures + stats.nvrtc_opens, 0);
    assert_int_equal(stats.disk_misses, 1);
    gj_context_close(&context);

    use_real();
    is_compiled(NULL);
    setenv("GEMMJIT_NVRTC", "/nonexistent", 1);
    is_a_cold_hit(NULL);
    context = context_on(&scratch, NULL, 0);
    kernel_of(context, small_key);
    error = refusal_of(context, other_key, 0, GJ_ERR_NO_COMPILER);
    gj_error_free(&error);
    gj_context_close(&context);
}

/* -- Without a disk cache -------------------------------------------------------------------------------- */

static void check_memory_only(const struct gj_context_params *params, uint64_t write_failures)
{
    gj_context *context = NULL;
    assert_int_equal(gj_context_open(params, &context, NULL), GJ_OK);
    gj_kernel *const kernel = kernel_of(context, small_key);
    assert_ptr_equal(kernel_of(context, small_key), kernel);
    kernel_of(context, other_key);
    const struct gj_stats stats = stats_of(context);
    assert_int_equal(stats.compiles, 2);
    assert_int_equal(stats.memory_hits, 1);
    assert_int_equal(stats.disk_hits + stats.disk_bytes_written, 0);
    assert_int_equal(stats.disk_write_failures, write_failures);
    gj_context_close(&context);
}

static void memory_only(void **state)
{
    (void)state;
    const struct gj_log log = cache_log_to(&scratch.log);
    struct gj_context_params params = {.log = log.fn, .log_user = log.user, .no_disk_cache = 1};
    params.cache_dir = scratch.root.text;
    check_memory_only(&params, 0);
    assert_int_equal(atomic_load(&scratch.log.warnings), 0);
    assert_int_equal(count_files(scratch.dir.text, ""), 0);

    const struct path file = path_format("%.4000s/file", scratch.dir.text);
    write_file(file.text, "", 0, 0600);
    params.no_disk_cache = 0;
    params.cache_dir = file.text;
    check_memory_only(&params, 2);
    assert_int_equal(atomic_load(&scratch.log.warnings), 1);

    /* No place is named at all. */
    char *const home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    params.cache_dir = NULL;
    check_memory_only(&params, 2);
    assert_int_equal(atomic_load(&scratch.log.warnings), 2);
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
    /* Silent without a log. */
    params = (struct gj_context_params){.cache_dir = file.text};
    check_memory_only(&params, 2);
}

static int use_read_only(void *argument)
{
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    struct gj_key key;
    const struct gj_context_params params = {.cache_dir = argument};
    CHILD_CHECK(chmod(argument, 0500) == 0);
    CHILD_CHECK(gj_context_open(&params, &context, NULL) == GJ_OK);
    CHILD_CHECK(gj_key_parse(small_key, &key, NULL) == GJ_OK);
    CHILD_CHECK(gj_kernel_get(context, &key, 0, &kernel, NULL) == GJ_OK);
    CHILD_CHECK(stats_of(context).disk_hits == 1);
    CHILD_CHECK(gj_key_parse(other_key, &key, NULL) == GJ_OK);
    CHILD_CHECK(gj_kernel_get(context, &key, 0, &kernel, NULL) == GJ_OK);
    CHILD_CHECK(stats_of(context).compiles == 1);
    gj_context_close(&context);
    return 0;
}

/* A filled cache that cannot be written: what is there is used, what is not is compiled. */
static void read_only_directory(void **state)
{
    (void)state;
    is_compiled(NULL);
    assert_int_equal(run_child_unprivileged(&scratch, use_read_only, scratch.root.text), 0);
    chmod(scratch.root.text, 0700);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_hit_says_what_the_compile_said),
        TEST(damaged_entries),
        TEST(an_entry_under_a_wrong_name),
        TEST(templates_make_the_name),
        TEST(versions_coexist),
        TEST(a_cache_that_was_moved),
        TEST(the_same_version_elsewhere),
        TEST(without_libnvrtc),
        TEST(memory_only),
        TEST(read_only_directory),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FORWARDING_NVRTC\n", argv[0]);
        return 1;
    }
    fixture_open(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
