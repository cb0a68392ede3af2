/* SPDX-License-Identifier: Apache-2.0 */
/* Shortages and strays: full disk, size limit, no descriptors, closed standard streams, files of others;
 * nothing partial and nothing foreign is left. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* Stands before the C library's: nobody lists a directory without it. */
static int num_listings;

DIR *fdopendir(int directory)
{
    static DIR *(*real)(int);
    num_listings++;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdopendir");
    return real(directory);
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
    num_listings = 0;
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    assert_true(store_sample() > 0);
    assert_int_equal(num_listings, 0);
    assert_int_equal(gj_cache_clear(scratch.cache), 1);
    assert_true(num_listings > 0);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
    assert_int_equal(count_files(scratch.root.text, "x.tmp."), 500); /* not ours */
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
}

static int store_under_size_limit(void *unused)
{
    (void)unused;
    struct rlimit limit = {1024, 1024};
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 1);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_MISS);
    sigset_t set;
    CHILD_CHECK(sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 0);
    CHILD_CHECK(sigprocmask(SIG_SETMASK, NULL, &set) == 0 && sigismember(&set, SIGXFSZ) == 0);
    /* One that the caller blocked and left pending is not ours to take. */
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    CHILD_CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGXFSZ) == 0);
    CHILD_CHECK(store_sample() == 0);
    CHILD_CHECK(sigpending(&set) == 0 && sigismember(&set, SIGXFSZ) == 1);
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
    CHILD_CHECK(gj_cache_list(scratch.cache, NULL, NULL, NULL) == -1 && errno == EMFILE);
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

/* -- Closed standard streams ------------------------------------------------------------------------- */

static const char foreign[] = "progress of another thread\n";
static atomic_bool is_talking;

/* Writes to stderr without pause, whatever has that number. */
static void *talk(void *unused)
{
    (void)unused;
    while (atomic_load(&is_talking))
        if (write(STDERR_FILENO, foreign, sizeof foreign - 1) < 0)
            continue;
    return NULL;
}

static int store_without_streams(void *unused)
{
    (void)unused;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHILD_CHECK(null > STDERR_FILENO);
    pthread_t talker;
    atomic_store(&is_talking, true);
    int damaged = 0;
    dup3(null, STDIN_FILENO, O_CLOEXEC);
    close(STDOUT_FILENO); /* the number that the directory gets */
    close(STDERR_FILENO); /* and the file in it */
    if (pthread_create(&talker, NULL, talk, NULL) != 0)
        return 2;
    for (int i = 0; i < 300; i++) {
        (void)store_sample(); /* fails when the talker was quicker */
        damaged += load_sample(&scratch, &sample) == GJ_CACHE_DAMAGED;
    }
    atomic_store(&is_talking, false);
    pthread_join(talker, NULL);
    return damaged ? 3 : 0;
}

static void closed_streams_never_reach_an_entry(void **state)
{
    (void)state;
    assert_int_equal(run_child(store_without_streams, NULL), 0);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
    assert_int_not_equal(load_sample(&scratch, &sample), GJ_CACHE_DAMAGED);
}

static int store_with_streams_closed(void *unused)
{
    (void)unused;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    return store_sample() > 0 && load_sample(&scratch, &sample) == GJ_CACHE_HIT ? 0 : 1;
}

static void store_works_without_streams(void **state)
{
    (void)state;
    assert_int_equal(run_child(store_with_streams_closed, NULL), 0);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
}

/* Stands before the C library's: lets something foreign into the file at the last moment, and notes what was
 * synced when the entry had its name and when it had not. */
static bool is_intruding;
static int synced_before, synced_after; /* type of file, last */

int fsync(int file)
{
    struct stat status = {0};
    const bool is_named = access(sample_path(&scratch, &sample).text, F_OK) == 0;
    if (fstat(file, &status) == 0)
        *(is_named ? &synced_after : &synced_before) = (int)(status.st_mode & S_IFMT);
    if (is_intruding && write(file, foreign, sizeof foreign - 1) < 0)
        return -1;
    return (int)syscall(SYS_fsync, file);
}

/* A name never stands for bytes that a crash can take, and does not get lost itself. */
static void synced_before_and_after_the_rename(void **state)
{
    (void)state;
    synced_before = synced_after = 0;
    assert_true(store_sample() > 0);
    assert_int_equal(synced_before, S_IFREG);
    assert_int_equal(synced_after, S_IFDIR);
}

static void file_of_another_size_is_not_published(void **state)
{
    (void)state;
    is_intruding = true;
    const size_t stored = store_sample();
    is_intruding = false;
    assert_int_equal(stored, 0);
    assert_non_null(strstr(scratch.log.last_warning, "is not as long as what was written into it"));
    assert_int_equal(count_files(scratch.root.text, ""), 0);
    assert_true(store_sample() > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(strays_are_ignored),
        TEST(no_partial_file_under_a_size_limit),
        TEST(no_partial_file_on_a_full_disk),
        TEST(shortage_of_descriptors_is_a_miss),
        TEST(closed_streams_never_reach_an_entry),
        TEST(store_works_without_streams),
        TEST(synced_before_and_after_the_rename),
        TEST(file_of_another_size_is_not_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
