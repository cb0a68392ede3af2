/* SPDX-License-Identifier: Apache-2.0 */
/* Listing, clearing and compiler stamps. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_fixture.h"

enum { NUM_SAMPLES = 20 };

static struct scratch scratch;
static struct sample samples[NUM_SAMPLES];

static int set_up(void **state)
{
    (void)state;
    scratch_make(&scratch);
    for (unsigned i = 0; i < NUM_SAMPLES; i++)
        sample_make(&samples[i], i);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static void store_samples(void)
{
    for (unsigned i = 0; i < NUM_SAMPLES; i++)
        assert_true(gj_cache_store(scratch.cache, &samples[i].name, &samples[i].entry) > 0);
}

/* -- List -------------------------------------------------------------------------------------------- */

struct listing {
    int sound, unsound, limit;
    struct path last;
    char reason[256];
};

static bool note(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                 const char *reason)
{
    struct listing *listing = user;
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal((uint64_t)status.st_size, file_bytes);
    assert_true(strcmp(path, listing->last.text) > 0); /* in order */
    assert_true((entry == NULL) == (reason != NULL));
    listing->last = path_format("%s", path);
    if (entry)
        listing->sound++;
    else
        listing->unsound++;
    if (reason)
        snprintf(listing->reason, sizeof listing->reason, "%s", reason);
    return listing->sound + listing->unsound != listing->limit;
}

static void list_visits_entries_in_order(void **state)
{
    (void)state;
    struct listing listing = {0};
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), 0); /* no root yet */
    store_samples();
    gj_cache_compiler_put(scratch.cache, "id", "nvrtc 13.0");
    const struct path other = path_format("%.4000s/v1/%.2s/README", scratch.root.text, samples[0].name.text);
    write_file(other.text, "x", 1, 0600);
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), NUM_SAMPLES);
    assert_int_equal(listing.sound, NUM_SAMPLES);

    struct listing some = {.limit = 3};
    assert_int_equal(gj_cache_list(scratch.cache, note, &some, NULL), 3);
}

static void list_says_what_is_wrong(void **state)
{
    (void)state;
    assert_true(gj_cache_store(scratch.cache, &samples[0].name, &samples[0].entry) > 0);
    const struct path path = sample_path(&scratch, &samples[0]);
    struct path renamed = path;
    char *digit = strrchr(renamed.text, '.') - 1;
    *digit = *digit == '0' ? '1' : '0';
    assert_int_equal(rename(path.text, renamed.text), 0);
    struct listing listing = {0};
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), 1);
    assert_string_equal(listing.reason, "the entry has a name that is not the hash of its inputs");

    assert_int_equal(truncate(renamed.text, 100), 0);
    memset(&listing, 0, sizeof listing);
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), 1);
    assert_string_equal(listing.reason, "the entry is shorter than its fields");

    assert_int_equal(unlink(renamed.text), 0);
    assert_int_equal(mkfifo(renamed.text, 0600), 0);
    memset(&listing, 0, sizeof listing);
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), 1);
    assert_string_equal(listing.reason, "the file is not a regular file"); /* owner and mode are right */
    assert_int_equal(listing.unsound, 1);

    assert_int_equal(unlink(renamed.text), 0);
    assert_int_equal(symlink("/dev/null", renamed.text), 0);
    memset(&listing, 0, sizeof listing);
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, NULL), 1);
    assert_string_equal(listing.reason, "the file is a symbolic link"); /* said once */
}

/* Puts a file, a link, someone else's directory and one with an entry's name among what is ours. Returns how
 * many directories of entries cannot be read. */
static unsigned plant_foreign_names(void)
{
    const char *root = scratch.root.text;
    static const char *const names[] = {"v1/0a", "v1/bb", "v1/cc"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct path path = path_format("%.4000s/%s", root, names[i]);
        assert_int_equal(access(path.text, F_OK), -1); /* no sample's */
        if (i == 0)
            write_file(path.text, "x", 1, 0600);
        else if (i == 1)
            assert_int_equal(symlink("/tmp", path.text), 0);
        else
            assert_int_equal(mkdir(path.text, 0700), 0);
    }
    const struct path owned = path_format("%.4000s/v1/cc", root);
    const bool is_root = geteuid() == 0;
    if (is_root)
        assert_int_equal(chown(owned.text, 12345, 12345), 0);
    return is_root ? 3 : 2;
}

static void foreign_names_hide_nothing(void **state)
{
    (void)state;
    store_samples();
    gj_cache_compiler_put(scratch.cache, "id", "nvrtc 13.0");
    const struct path temps[] = {
        path_format("%.4000s/v1/%.2s/.tmp-1", scratch.root.text, samples[0].name.text),
        path_format("%.4000s/v1/compilers/.tmp-2", scratch.root.text),
    };
    for (size_t i = 0; i < 2; i++)
        write_file(temps[i].text, "x", 1, 0600);
    const unsigned unread = plant_foreign_names();
    struct gj_cache_scan scan = {0};
    struct listing listing = {0};
    const int warnings = atomic_load(&scratch.log.warnings);
    assert_int_equal(gj_cache_list(scratch.cache, note, &listing, &scan), NUM_SAMPLES);
    assert_int_equal(listing.sound, NUM_SAMPLES);
    assert_int_equal(scan.temporary, 2);
    assert_int_equal(scan.unread, unread);
    assert_string_equal(scan.first_unread.text, "v1/0a: the directory of the file is not a directory");
    assert_int_equal(atomic_load(&scratch.log.warnings), warnings); /* the caller tells it */
    gj_strbuf_free(&scan.first_unread);

    const struct path full = path_format("%.4000s/v1/%.2s/ffffffffffffffffffffffffffffffff.gjc",
                                         scratch.root.text, samples[0].name.text);
    assert_int_equal(mkdir(full.text, 0700), 0);
    write_file(path_format("%.4000s/kept", full.text).text, "x", 1, 0600);
    assert_int_equal(gj_cache_clear(scratch.cache), NUM_SAMPLES);
    assert_int_equal(gj_cache_clear(scratch.cache), 0);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
    assert_int_equal(count_files(scratch.root.text, "kept"), 1);
    assert_int_equal(access(path_format("%.4000s/v1/0a", scratch.root.text).text, F_OK), 0);
    assert_int_equal(access(path_format("%.4000s/v1/bb", scratch.root.text).text, F_OK), 0);
}

/* -- Clear ------------------------------------------------------------------------------------------- */

static void clear_removes_what_is_ours(void **state)
{
    (void)state;
    assert_int_equal(gj_cache_clear(scratch.cache), 0);
    store_samples();
    gj_cache_compiler_put(scratch.cache, "id", "nvrtc 13.0");
    const char *root = scratch.root.text;
    const struct path kept[] = {
        path_format("%.4000s/v1/%.2s/README", root, samples[0].name.text),
        path_format("%.4000s/v1/compilers/README", root),
        path_format("%.4000s/v1/README", root),
        path_format("%.4000s/v1/0123456789abcdef0123456789abcdef.gjc", root),
        path_format("%.4000s/README", root),
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        write_file(kept[i].text, "x", 1, 0600);
    write_file(path_format("%.4000s/v1/compilers/.tmp-1", root).text, "x", 1, 0600);
    assert_int_equal(count_files(root, ""), NUM_SAMPLES + 2 + 5 + 1);
    assert_int_equal(gj_cache_clear(scratch.cache), NUM_SAMPLES);
    assert_int_equal(count_files(root, ""), 5);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_int_equal(access(kept[i].text, F_OK), 0);
    assert_int_equal(access(path_format("%.4000s/v1/compilers", root).text, F_OK), 0);
    store_samples();
    assert_int_equal(load_sample(&scratch, &samples[3]), GJ_CACHE_HIT);
}

static void clear_leaves_the_temp_of_a_live_publisher(void **state)
{
    (void)state;
    assert_true(gj_cache_store(scratch.cache, &samples[0].name, &samples[0].entry) > 0);
    const struct path temp =
        path_format("%.4000s/v1/%.2s/.tmp-live", scratch.root.text, samples[0].name.text);
    write_file(temp.text, "x", 1, 0600);
    const int live = open(temp.text, O_RDONLY | O_CLOEXEC);
    assert_true(live >= 0);
    assert_int_equal(flock(live, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(gj_cache_clear(scratch.cache), 1);
    assert_int_equal(access(temp.text, F_OK), 0);
    close(live);
    assert_int_equal(gj_cache_clear(scratch.cache), 0);
    assert_int_equal(access(temp.text, F_OK), -1);
}

/* -- Compiler stamps --------------------------------------------------------------------------------- */

static bool version_is(const char *identity, const char *want)
{
    char version[32] = "untouched";
    const bool found = gj_cache_compiler_get(scratch.cache, identity, version, sizeof version);
    assert_string_equal(version, found ? want ? want : version : "untouched");
    return want ? found : !found;
}

static void stamps_tell_the_version(void **state)
{
    (void)state;
    assert_true(version_is("", NULL));
    gj_cache_compiler_put(scratch.cache, "/a/libnvrtc.so.12 1 2 3", "nvrtc 12.4");
    gj_cache_compiler_put(scratch.cache, "/b/libnvrtc.so.13\n1 2 3", "nvrtc 13.0");
    assert_true(version_is("/a/libnvrtc.so.12 1 2 3", "nvrtc 12.4"));
    assert_true(version_is("/b/libnvrtc.so.13\n1 2 3", "nvrtc 13.0"));
    assert_true(version_is("", "nvrtc 13.0"));
    assert_true(version_is("/a/libnvrtc.so.12 1 2 4", NULL));
    gj_cache_compiler_put(scratch.cache, "/a/libnvrtc.so.12 1 2 3", "nvrtc 12.4");
    assert_true(version_is("", "nvrtc 12.4")); /* who published last */
    gj_cache_compiler_put(scratch.cache, "/a/libnvrtc.so.12 1 2 3", "nvrtc 12.8");
    assert_true(version_is("/a/libnvrtc.so.12 1 2 3", "nvrtc 12.8"));
    assert_int_equal(count_files(scratch.root.text, ""), 3);

    char small[10];
    assert_false(gj_cache_compiler_get(scratch.cache, "", small, sizeof small)); /* needs 11 */
    char enough[11];
    assert_true(gj_cache_compiler_get(scratch.cache, "", enough, sizeof enough));

    const int warnings = atomic_load(&scratch.log.warnings);
    gj_cache_compiler_put(scratch.cache, "x", "");
    gj_cache_compiler_put(scratch.cache, "x", "two\nlines");
    assert_true(version_is("x", NULL));
    assert_int_equal(atomic_load(&scratch.log.warnings), warnings);
}

static void stamp_has_the_documented_bytes(void **state)
{
    (void)state;
    size_t bytes;
    gj_cache_compiler_put(scratch.cache, "", "nvrtc 13.0");
    const struct path path = path_format("%.4000s/v1/compilers/default", scratch.root.text);
    unsigned char *data = read_file(path.text, &bytes);
    data[bytes] = '\0';
    assert_string_equal((char *)data, "gemmjit compiler stamp 1\nversion nvrtc 13.0\nidentity \n"
                                      "check 05b94ef74e80e568c27abd266fecd73c\n");
    free(data);
}

static void damaged_stamps_are_refused_and_rewritten(void **state)
{
    (void)state;
    size_t bytes;
    gj_cache_compiler_put(scratch.cache, "", "nvrtc 13.0");
    const struct path path = path_format("%.4000s/v1/compilers/default", scratch.root.text);
    unsigned char *data = read_file(path.text, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        write_file(path.text, data, length, 0600);
        assert_true(version_is("", NULL));
    }
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_file(path.text, data, bytes, 0600);
        assert_true(version_is("", NULL));
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    write_file(path.text, data, bytes, 0666);
    assert_true(version_is("", NULL));
    gj_cache_compiler_put(scratch.cache, "", "nvrtc 13.0");
    assert_true(version_is("", "nvrtc 13.0"));
    assert_int_equal(mode_of(path.text), 0600);
    free(data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(list_visits_entries_in_order),
        TEST(list_says_what_is_wrong),
        TEST(foreign_names_hide_nothing),
        TEST(clear_removes_what_is_ours),
        TEST(clear_leaves_the_temp_of_a_live_publisher),
        TEST(stamps_tell_the_version),
        TEST(stamp_has_the_documented_bytes),
        TEST(damaged_stamps_are_refused_and_rewritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
