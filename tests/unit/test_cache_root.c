/* SPDX-License-Identifier: Apache-2.0 */
/* Which directory is the root, when it is trusted, and that a cache that is off says why, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_fixture.h"

static struct scratch scratch;
static struct sample sample;

static int set_up(void **state)
{
    (void)state;
    alarm(120);
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

/* The cache must be off, give the reason, warn once whatever is called, and do no harm. */
static int check_off(const char *root, const char *why)
{
    const struct gj_log log = cache_log_to(&scratch.log);
    struct gj_cache_entry entry;
    char version[16];
    atomic_store(&scratch.log.warnings, 0);
    gj_cache *cache = gj_cache_open(root, &log);
    CHILD_CHECK(cache && gj_cache_off_reason(cache));
    if (!strstr(gj_cache_off_reason(cache), why)) {
        fprintf(stderr, "off because: %s\nwanted: %s\n", gj_cache_off_reason(cache), why);
        return 1;
    }
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 0); /* not at open */
    CHILD_CHECK(gj_cache_load(cache, &sample.name, &sample.entry, &entry) == GJ_CACHE_MISS);
    CHILD_CHECK(gj_cache_store(cache, &sample.name, &sample.entry) == 0);
    CHILD_CHECK(!gj_cache_compiler_get(cache, "x", version, sizeof version));
    gj_cache_compiler_put(cache, "x", "1");
    CHILD_CHECK(gj_cache_list(cache, NULL, NULL, NULL) == -1);
    CHILD_CHECK(gj_cache_clear(cache) == -1);
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 1);
    CHILD_CHECK(strstr(scratch.log.last_warning, gj_cache_off_reason(cache)) != NULL);
    gj_cache_close(&cache);
    return 0;
}

/* -- Which directory --------------------------------------------------------------------------------- */

static void set_environment(const char *cache_dir, const char *xdg, const char *home)
{
    const char *const names[] = {"GEMMJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    const char *const values[] = {cache_dir, xdg, home};
    for (size_t i = 0; i < 3; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
}

static void root_follows_the_documented_order(void **state)
{
    (void)state;
    const char *dir = scratch.dir.text;
    const struct path xdg = path_format("%.4000s/x//", dir), home = path_format("%.4000s/h", dir);
    const struct {
        const char *given, *cache_dir, *xdg, *home;
        const char *want; /* below dir */
    } cases[] = {
        {"given/", "env", xdg.text, home.text, "given"},
        {NULL, "env///", xdg.text, home.text, "env"},
        {NULL, NULL, xdg.text, home.text, "x///gemmjit"},
        {NULL, "", "", home.text, "h/.cache/gemmjit"},
        {NULL, NULL, "relative", home.text, "h/.cache/gemmjit"},
    };
    assert_int_equal(chdir(dir), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_environment(cases[i].cache_dir, cases[i].xdg, cases[i].home);
        scratch_reopen(&scratch, cases[i].given);
        assert_null(gj_cache_off_reason(scratch.cache));
        assert_string_equal(gj_cache_root(scratch.cache), path_format("%.3000s/%s", dir, cases[i].want).text);
        assert_int_equal(chdir("/"), 0); /* a relative root was fixed at open */
        assert_true(store_sample() > 0);
        assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
        assert_int_equal(chdir(dir), 0);
    }
    assert_int_equal(chdir("/"), 0);
}

static int without_home(void *unused)
{
    (void)unused;
    set_environment(NULL, NULL, NULL);
    if (check_off(NULL, "no cache directory: GEMMJIT_CACHE_DIR is not set") != 0)
        return 1;
    set_environment(NULL, NULL, "");
    if (check_off(NULL, "no cache directory") != 0)
        return 1;
    set_environment(NULL, "rel", "rel");
    return check_off(NULL, "no cache directory");
}

/* HOME=/ of a container, and a user without a password entry. */
static int with_home_of_root(void *unused)
{
    (void)unused;
    set_environment(NULL, NULL, "/");
    if (access("/.cache", F_OK) == 0)
        return 77;
    return check_off(NULL, "/.cache/gemmjit: the root does not exist and cannot be made: Permission denied");
}

static void odd_homes_turn_it_off(void **state)
{
    (void)state;
    assert_int_equal(run_child(without_home, NULL), 0);
    const int result = run_child_unprivileged(&scratch, with_home_of_root, NULL);
    assert_true(result == 0 || result == 77);
}

/* -- Roots that cannot be used ----------------------------------------------------------------------- */

/* "" was meant to name a directory, so the defaults are not used in its place. */
static void empty_root_turns_it_off(void **state)
{
    (void)state;
    set_environment(scratch.root.text, NULL, scratch.dir.text);
    assert_int_equal(check_off("", "the cache directory that was given is an empty text"), 0);
}

static void root_must_be_a_private_directory(void **state)
{
    (void)state;
    const char *root = scratch.root.text;
    write_file(root, "", 0, 0600);
    assert_int_equal(check_off(root, "the root cannot be opened: Not a directory"), 0);
    assert_int_equal(check_off(path_format("%.4000s/below", root).text, "Not a directory"), 0);
    assert_int_equal(unlink(root), 0);

    static const mode_t modes[] = {0770, 0702, 01777};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(mkdir(root, 0700), 0);
        assert_int_equal(chmod(root, modes[i]), 0);
        const struct path mode = path_format("mode %04o; this process is user", (unsigned)modes[i]);
        assert_int_equal(check_off(root, "is writable by its group or by others"), 0);
        assert_int_equal(check_off(root, mode.text), 0);
        assert_int_equal(rmdir(root), 0);
    }
    assert_int_equal(symlink("/nonexistent/x", root), 0);
    assert_int_equal(check_off(root, "the root is a symbolic link to what does not exist"), 0);
    assert_null(strstr(scratch.log.last_warning, "File exists"));
    assert_int_equal(unlink(root), 0);
    assert_int_equal(symlink(root, root), 0);
    assert_int_equal(check_off(root, "the root cannot be opened: Too many levels"), 0);

    char *longest = malloc(5000);
    assert_non_null(longest);
    memset(longest, 'x', 4999);
    longest[0] = '/';
    longest[4999] = '\0';
    assert_int_equal(check_off(longest, "File name too long"), 0);
    free(longest);
}

static void foreign_version_directory_turns_it_off(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    assert_int_equal(chmod(path_format("%.4000s/v1", scratch.root.text).text, 0707), 0);
    assert_int_equal(check_off(scratch.root.text, "the directory v1 is writable"), 0);

    const struct path version = path_format("%.4000s/v1", scratch.root.text);
    assert_int_equal(rename(version.text, path_format("%.4000s/w", scratch.root.text).text), 0);
    assert_int_equal(symlink("w", version.text), 0);
    assert_int_equal(check_off(scratch.root.text, "the directory v1 is a symbolic link"), 0);
    assert_null(strchr(scratch.log.last_warning, '(')); /* owner and mode are not what is wrong */
    assert_int_equal(unlink(version.text), 0);
    write_file(version.text, "", 0, 0600);
    assert_int_equal(check_off(scratch.root.text, "the directory v1 is not a directory"), 0);
}

static void root_of_another_user_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give a directory away */
    const char *root = scratch.root.text;
    assert_true(store_sample() > 0);
    assert_int_equal(chown(root, 12345, 12345), 0);
    assert_int_equal(check_off(root, "the root belongs to another user (owner 12345, mode 0700"), 0);
    /* Planted after the cache was opened: not loaded either, and warned of. */
    atomic_store(&scratch.log.warnings, 0);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
    assert_int_equal(store_sample(), 0);
    assert_int_equal(atomic_load(&scratch.log.warnings), 2);
    assert_int_equal(chown(root, 0, 0), 0);

    const struct path link = path_format("%.4000s/link", scratch.dir.text);
    assert_int_equal(symlink(root, link.text), 0);
    scratch_reopen(&scratch, link.text); /* a link of ours to a directory of ours */
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    assert_true(store_sample() > 0);
    assert_int_equal(lchown(link.text, 12345, 12345), 0);
    assert_int_equal(check_off(link.text, "the root is a symbolic link of another user"), 0);
    assert_int_equal(check_off(path_format("%.4000s/", link.text).text, "is a symbolic link of another"), 0);
}

static int below_unwritable(void *unused)
{
    (void)unused;
    const char *dir = scratch.dir.text, *root = scratch.root.text;
    CHILD_CHECK(chmod(dir, 0500) == 0);
    struct gj_strbuf reason = {0};
    CHILD_CHECK(!gj_cache_is_writable(scratch.cache, &reason)); /* since it was opened */
    CHILD_CHECK(strstr(reason.text, "the root does not exist and cannot be made: Permission denied"));
    gj_strbuf_free(&reason);
    if (check_off(root, "the root does not exist and cannot be made: Permission denied") != 0)
        return 1;
    if (check_off(path_format("%.4000s/a/b/c", root).text, "cannot be made: Permission denied") != 0)
        return 1;
    CHILD_CHECK(chmod(dir, 0700) == 0 && mkdir(root, 0500) == 0);
    if (check_off(root, "the root is empty and cannot be written: Permission denied") != 0)
        return 1;
    CHILD_CHECK(chmod(root, 0000) == 0);
    if (check_off(root, "the root cannot be opened: Permission denied") != 0)
        return 1;
    CHILD_CHECK(chmod(root, 0700) == 0);
    return 0;
}

static void unwritable_root_turns_it_off(void **state)
{
    (void)state;
    assert_int_equal(run_child_unprivileged(&scratch, below_unwritable, NULL), 0);
}

static int load_from_unwritable(void *unused)
{
    (void)unused;
    const struct path shard = path_format("%.4000s/v1/%.2s", scratch.root.text, sample.name.text);
    CHILD_CHECK(chmod(shard.text, 0500) == 0);
    CHILD_CHECK(chmod(path_format("%.4000s/v1", scratch.root.text).text, 0500) == 0);
    CHILD_CHECK(chmod(scratch.root.text, 0500) == 0);
    scratch_reopen(&scratch, scratch.root.text);
    CHILD_CHECK(!gj_cache_off_reason(scratch.cache));
    struct gj_strbuf reason = {0};
    CHILD_CHECK(!gj_cache_is_writable(scratch.cache, &reason));
    CHILD_CHECK(strstr(reason.text, "the directory v1 cannot be written: Permission denied"));
    gj_strbuf_free(&reason);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_HIT);
    CHILD_CHECK(store_sample() == 0 && store_sample() == 0);
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 1);
    CHILD_CHECK(gj_cache_clear(scratch.cache) == -1);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_HIT);
    return 0;
}

static void filled_unwritable_root_is_read(void **state)
{
    (void)state;
    struct gj_strbuf none = {0};
    assert_true(gj_cache_is_writable(scratch.cache, &none)); /* nothing there yet */
    assert_true(store_sample() > 0);
    assert_true(gj_cache_is_writable(scratch.cache, &none));
    assert_null(none.text);
    assert_int_equal(run_child_unprivileged(&scratch, load_from_unwritable, NULL), 0);
}

static void read_only_file_system_is_read(void **state)
{
    (void)state;
    const char *dir = scratch.dir.text;
    const struct path root = path_format("%.4000s/disk/root", dir), disk = path_format("%.4000s/disk", dir);
    assert_int_equal(mkdir(disk.text, 0700), 0);
    if (mount("none", disk.text, "tmpfs", MS_NOSUID, "mode=0700") != 0)
        skip();
    scratch_reopen(&scratch, root.text);
    const size_t written = store_sample();
    const int mounted = mount("none", disk.text, NULL, MS_REMOUNT | MS_RDONLY, NULL);
    scratch_reopen(&scratch, root.text);
    const enum gj_cache_result result = load_sample(&scratch, &sample);
    const size_t again = store_sample();
    const int warnings = atomic_load(&scratch.log.warnings);
    const int off = check_off(path_format("%.4000s/new", disk.text).text, "made: Read-only file system");
    assert_int_equal(umount(disk.text), 0);
    assert_int_equal(mounted, 0);
    assert_true(written > 0);
    assert_int_equal(result, GJ_CACHE_HIT);
    assert_int_equal(again, 0);
    assert_int_equal(warnings, 1);
    assert_int_equal(off, 0);
}

/* What looked possible at open and is not: results stay right, one warning. */
static void root_that_cannot_be_made_after_all(void **state)
{
    (void)state;
    write_file(scratch.root.text, "", 0, 0600); /* since the cache was opened */
    assert_int_equal(store_sample(), 0);
    assert_int_equal(store_sample(), 0);
    assert_int_equal(atomic_load(&scratch.log.warnings), 1);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
    assert_int_equal(unlink(scratch.root.text), 0);
    assert_true(store_sample() > 0);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(root_follows_the_documented_order),
        TEST(odd_homes_turn_it_off),
        TEST(empty_root_turns_it_off),
        TEST(root_must_be_a_private_directory),
        TEST(foreign_version_directory_turns_it_off),
        TEST(root_of_another_user_is_refused),
        TEST(unwritable_root_turns_it_off),
        TEST(filled_unwritable_root_is_read),
        TEST(read_only_file_system_is_read),
        TEST(root_that_cannot_be_made_after_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
