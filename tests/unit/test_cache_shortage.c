/* SPDX-License-Identifier: Apache-2.0 */
/* Shortages and strays: full disk, size limit, no descriptors, files of others; nothing partial is left. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_fixture.h"

static struct scratch scratch;
static struct sample sample;

static int set_up(void **state)
{
    (void)state;
    alarm(120); /* a hang is a failure */
    scratch_make(&scratch);
    sample_make(&sample, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    alarm(0);
    return 0;
}

static size_t store_sample(void)
{
    return gj_cache_store(scratch.cache, &sample.name, &sample.entry);
}

static void strays_are_ignored(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    for (int i = 0; i < 1000; i++) {
        const struct path stray = path_format("%.3000s/v1/%.2s/%s%d", scratch.root.text, sample.name.text,
                                              i % 2 ? ".tmp-" : "x.tmp.", i);
        write_file(stray.text, "stray", 5, 0600);
    }
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    assert_true(store_sample() > 0);
    assert_int_equal(gj_cache_clear(scratch.cache), 1);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
    assert_int_equal(count_files(scratch.root.text, "x.tmp."), 500); /* not ours */
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
}

static int store_under_size_limit(void *unused)
{
    (void)unused;
    struct rlimit limit = {1024, 1024};
    signal(SIGXFSZ, SIG_IGN);
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 1);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_MISS);
    return 0;
}

static void no_partial_file_under_a_size_limit(void **state)
{
    (void)state;
    assert_int_equal(run_child(store_under_size_limit, NULL), 0);
    assert_int_equal(count_files(scratch.dir.text, ""), 0);
}

static void no_partial_file_on_a_full_disk(void **state)
{
    (void)state;
    struct sample many[40];
    const struct path disk = path_format("%.4000s/disk", scratch.dir.text);
    assert_int_equal(mkdir(disk.text, 0700), 0);
    if (mount("none", disk.text, "tmpfs", MS_NOSUID, "size=64k,mode=0700") != 0)
        skip();
    scratch.root = path_format("%.4000s/root", disk.text);
    scratch_reopen(&scratch, scratch.root.text);
    int stored = 0, hits = 0;
    for (unsigned i = 0; i < 40; i++) {
        sample_make(&many[i], i);
        stored += gj_cache_store(scratch.cache, &many[i].name, &many[i].entry) > 0;
    }
    for (unsigned i = 0; i < 40; i++)
        hits += load_sample(&scratch, &many[i]) == GJ_CACHE_HIT;
    const int warnings = atomic_load(&scratch.log.warnings);
    const int files = count_files(disk.text, "");
    const int64_t removed = gj_cache_clear(scratch.cache);
    const size_t again = gj_cache_store(scratch.cache, &many[39].name, &many[39].entry);
    assert_int_equal(umount(disk.text), 0);
    assert_in_range(stored, 1, 39);
    assert_int_equal(hits, stored);
    assert_int_equal(files, stored);
    assert_int_equal(removed, stored);
    assert_in_range(warnings, 1, 3); /* a directory, a file and a write may each fail */
    assert_true(again > 0);
}

static int use_without_descriptors(void *unused)
{
    (void)unused;
    struct rlimit limit = {3, 3};
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_MISS);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(gj_cache_list(scratch.cache, NULL, NULL) == -1 && errno == EMFILE);
    const struct gj_log log = cache_log_to(&scratch.log);
    gj_cache *other = gj_cache_open(scratch.root.text, &log);
    CHILD_CHECK(other && !gj_cache_off_reason(other)); /* not for ever */
    gj_cache_close(&other);
    return 0;
}

static void shortage_of_descriptors_is_a_miss(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    assert_int_equal(run_child(use_without_descriptors, NULL), 0);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(strays_are_ignored),
        TEST(no_partial_file_under_a_size_limit),
        TEST(no_partial_file_on_a_full_disk),
        TEST(shortage_of_descriptors_is_a_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
