/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of layers: packs and directories that are read behind the root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache_impl.h"
#include "cache_fixture.h"

static struct scratch scratch;
static struct sample sample, other, third;
static struct path directory, pack; /* a layer of each kind, with sample in it */

/* Fills a directory layer with an entry and the stamp of a version. */
static void fill_directory(const char *root, const struct sample *with, const char *version)
{
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open(root, &silent);
    assert_true(gj_cache_store(cache, &with->name, &with->entry) > 0);
    gj_cache_compiler_put(cache, "some libnvrtc", version);
    gj_cache_close(&cache);
}

static void fill_pack(const char *path, const struct sample *with, const char *version)
{
    const struct path root = path_format("%s.root", path);
    const struct gj_log silent = {0};
    fill_directory(root.text, with, version);
    gj_cache *cache = gj_cache_open(root.text, &silent);
    struct gj_cache_packed packed;
    struct gj_fault fault;
    assert_int_equal(gj_cache_pack(cache, path, NULL, &packed, &fault), GJ_PACK_DONE);
    gj_cache_close(&cache);
}

static int set_up(void **state)
{
    (void)state;
    scratch_make(&scratch);
    unsetenv("GEMMJIT_CACHE_LAYERS");
    sample_make(&sample, 1);
    sample_make(&other, 2);
    sample_make(&third, 3);
    directory = path_format("%s/directory", scratch.dir.text);
    pack = path_format("%s/pack.gjp", scratch.dir.text);
    fill_directory(directory.text, &sample, "nvrtc 1.1");
    fill_pack(pack.text, &other, "nvrtc 2.2");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static gj_cache *open_with(const char *const *layers, size_t count)
{
    const struct gj_cache_params params = {.root = scratch.root.text, .layers = layers, .num_layers = count};
    const struct gj_log log = cache_log_to(&scratch.log);
    gj_cache *cache = gj_cache_open_as(&params, &log);
    assert_non_null(cache);
    return cache;
}

static gj_cache *open_both(void)
{
    const char *const layers[] = {directory.text, pack.text};
    return open_with(layers, 2);
}

static void is_found(gj_cache *cache, const struct sample *wanted, enum gj_cache_place place)
{
    struct gj_cache_entry entry;
    assert_int_equal(gj_cache_load(cache, &wanted->name, &wanted->entry, &entry), GJ_CACHE_HIT);
    assert_true(sample_equals(wanted, &entry));
    assert_int_equal(entry.place, place);
    assert_true(entry.file_bytes > entry.cubin_bytes);
    gj_cache_entry_free(&entry);
}

static enum gj_cache_result result_of(gj_cache *cache, const struct sample *wanted)
{
    struct gj_cache_entry entry;
    const enum gj_cache_result result = gj_cache_load(cache, &wanted->name, &wanted->entry, &entry);
    if (result == GJ_CACHE_HIT)
        gj_cache_entry_free(&entry);
    return result;
}

static void both_kinds_are_searched(void **state)
{
    (void)state;
    gj_cache *cache = open_both();
    assert_int_equal(gj_cache_num_layers(cache), 2);
    is_found(cache, &sample, GJ_CACHE_PLACE_LAYER);
    is_found(cache, &other, GJ_CACHE_PLACE_LAYER);
    assert_int_equal(result_of(cache, &third), GJ_CACHE_MISS);
    assert_int_equal(access(scratch.root.text, F_OK), -1); /* a hit is not copied */
    assert_int_equal(scratch.log.warnings, 0);
    gj_cache_close(&cache);
}

static void the_root_comes_first(void **state)
{
    (void)state;
    gj_cache *cache = open_both();
    assert_true(gj_cache_store(cache, &sample.name, &sample.entry) > 0);
    is_found(cache, &sample, GJ_CACHE_PLACE_ROOT);
    gj_cache_close(&cache);
}

/* A server whose root is off lives of its layers. */
static void layers_are_searched_without_a_root(void **state)
{
    (void)state;
    const char *const layers[] = {pack.text};
    const struct gj_cache_params params = {.root = "", .layers = layers, .num_layers = 1};
    const struct gj_log log = cache_log_to(&scratch.log);
    gj_cache *cache = gj_cache_open_as(&params, &log);
    is_found(cache, &other, GJ_CACHE_PLACE_LAYER);
    is_found(cache, &other, GJ_CACHE_PLACE_LAYER);
    assert_int_equal(scratch.log.warnings, 1); /* that the root is off */
    gj_cache_close(&cache);
}

static void damage(const char *path)
{
    size_t bytes;
    unsigned char *data = read_file(path, &bytes);
    data[bytes - 1] ^= 1;
    write_file(path, data, bytes, 0600);
    free(data);
}

static void a_damaged_entry_is_healed_from_a_layer(void **state)
{
    (void)state;
    gj_cache *cache = open_both();
    assert_true(gj_cache_store(cache, &other.name, &other.entry) > 0);
    const struct path file = sample_path(&scratch, &other);
    damage(file.text);
    is_found(cache, &other, GJ_CACHE_PLACE_LAYER);
    assert_int_equal(scratch.log.warnings, 1);
    is_found(cache, &other, GJ_CACHE_PLACE_ROOT);
    gj_cache_close(&cache);
}

static void damage_in_a_layer_is_passed_over(void **state)
{
    (void)state;
    const struct path second = path_format("%s/second", scratch.dir.text);
    fill_directory(second.text, &sample, "nvrtc 1.1");
    const char *const layers[] = {directory.text, second.text};
    gj_cache *cache = open_with(layers, 2);
    damage(path_format("%s/v1/%.2s/%s", directory.text, sample.name.text, sample.name.text).text);
    is_found(cache, &sample, GJ_CACHE_PLACE_LAYER);
    assert_int_equal(scratch.log.warnings, 1);
    damage(path_format("%s/v1/%.2s/%s", second.text, sample.name.text, sample.name.text).text);
    assert_int_equal(result_of(cache, &sample), GJ_CACHE_DAMAGED);
    assert_int_equal(access(scratch.root.text, F_OK), -1);
    gj_cache_close(&cache);
}

/* The index is checked when a pack is opened, a member when it is looked up. */
static void damage_in_a_pack_is_found(void **state)
{
    (void)state;
    size_t bytes;
    unsigned char *data = read_file(pack.text, &bytes);
    unsigned char *cubin = memmem(data, bytes, other.entry.cubin, other.entry.cubin_bytes);
    assert_non_null(cubin);
    cubin[100] ^= 4;
    assert_int_equal(unlink(pack.text), 0);
    write_file(pack.text, data, bytes, 0644);
    free(data);
    gj_cache *cache = open_both();
    assert_int_equal(result_of(cache, &other), GJ_CACHE_DAMAGED);
    assert_int_equal(scratch.log.warnings, 1);
    is_found(cache, &sample, GJ_CACHE_PLACE_LAYER);
    gj_cache_close(&cache);
}

static void a_pack_that_shrinks_is_no_longer_read(void **state)
{
    (void)state;
    gj_cache *cache = open_both();
    assert_int_equal(truncate(pack.text, 100), 0);
    assert_int_equal(result_of(cache, &other), GJ_CACHE_DAMAGED);
    assert_non_null(strstr(scratch.log.last_warning, "length"));
    char version[32];
    bool more;
    assert_false(gj_cache_compiler_at(cache, 2, version, sizeof version, &more));
    gj_cache_close(&cache);
}

/* -- Layers that cannot be used -------------------------------------------------------------------------- */

static void is_left_out(const char *path, const char *why)
{
    const int before = scratch.log.warnings;
    const char *const layers[] = {path, directory.text};
    gj_cache *cache = open_with(layers, 2);
    const char *reason;
    assert_int_equal(scratch.log.warnings, before + 1);
    assert_non_null(strstr(scratch.log.last_warning, why));
    (void)gj_cache_layer(cache, 0, &reason);
    assert_non_null(strstr(reason, why));
    assert_string_equal(gj_cache_layer(cache, 1, &reason), directory.text);
    assert_null(reason);
    is_found(cache, &sample, GJ_CACHE_PLACE_LAYER);
    assert_int_equal(result_of(cache, &other), GJ_CACHE_MISS);
    assert_int_equal(scratch.log.warnings, before + 1);
    gj_cache_close(&cache);
}

static void bad_layers_are_left_out(void **state)
{
    (void)state;
    const struct path empty = path_format("%s/empty", scratch.dir.text);
    const struct path fifo = path_format("%s/fifo", scratch.dir.text);
    const struct path text = path_format("%s/text", scratch.dir.text);
    const struct path foreign = path_format("%s/foreign", scratch.dir.text);
    assert_int_equal(mkdir(empty.text, 0755), 0);
    assert_int_equal(mkfifo(fifo.text, 0600), 0);
    write_file(text.text, "not a pack, but long enough to be one's head", 44, 0600);
    fill_directory(foreign.text, &other, "nvrtc 1.1");
    assert_int_equal(chmod(foreign.text, 0777), 0);
    is_left_out(path_format("%s/absent", scratch.dir.text).text, "No such file");
    is_left_out(empty.text, "v1");
    is_left_out(fifo.text, "not a regular file");
    is_left_out(text.text, "does not begin as a pack does");
    is_left_out(foreign.text, "writable by");
    is_left_out("", "empty");
    assert_int_equal(chmod(pack.text, 0666), 0);
    is_left_out(pack.text, "writable by");
    if (geteuid() == 0) {
        assert_int_equal(chmod(pack.text, 0644), 0);
        assert_int_equal(chown(pack.text, 12345, 12345), 0);
        is_left_out(pack.text, "another user");
    }
}

static int load_as_other_user(void *unused)
{
    (void)unused;
    const char *const layers[] = {directory.text, pack.text};
    const struct gj_cache_params params = {.root = "", .layers = layers, .num_layers = 2};
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open_as(&params, &silent);
    struct gj_cache_entry entry;
    CHILD_CHECK(setgid(12345) == 0 && setuid(12345) == 0);
    CHILD_CHECK(gj_cache_load(cache, &sample.name, &sample.entry, &entry) == GJ_CACHE_HIT);
    gj_cache_entry_free(&entry);
    CHILD_CHECK(gj_cache_load(cache, &other.name, &other.entry, &entry) == GJ_CACHE_HIT);
    gj_cache_close(&cache);
    return 0;
}

/* An image's files are root's; the process that reads them is somebody. */
static void what_root_owns_is_read(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    const struct path shard = path_format("%s/v1/%.2s", directory.text, sample.name.text);
    assert_int_equal(chmod(scratch.dir.text, 0755), 0);
    assert_int_equal(chmod(directory.text, 0755), 0);
    assert_int_equal(chmod(path_format("%s/v1", directory.text).text, 0755), 0);
    assert_int_equal(chmod(shard.text, 0755), 0);
    assert_int_equal(chmod(path_format("%s/%s", shard.text, sample.name.text).text, 0644), 0);
    assert_int_equal(run_child(load_as_other_user, NULL), 0);
}

/* -- Where layers come from, and what else they know ----------------------------------------------------- */

static void the_variable_names_layers(void **state)
{
    (void)state;
    assert_int_equal(
        setenv("GEMMJIT_CACHE_LAYERS", path_format(":%s::%s:", directory.text, pack.text).text, 1), 0);
    gj_cache *cache = open_with(NULL, 0);
    assert_int_equal(gj_cache_num_layers(cache), 2);
    is_found(cache, &sample, GJ_CACHE_PLACE_LAYER);
    is_found(cache, &other, GJ_CACHE_PLACE_LAYER);
    gj_cache_close(&cache);
    const char *const none[] = {""};
    cache = open_with(none, 0); /* given layers, be they none, take the variable's place */
    assert_int_equal(gj_cache_num_layers(cache), 0);
    gj_cache_close(&cache);
}

static void versions_are_known_by_place(void **state)
{
    (void)state;
    gj_cache *cache = open_both();
    char version[32] = "";
    bool more = false;
    assert_true(gj_cache_compiler_get(cache, "some libnvrtc", version, sizeof version));
    assert_string_equal(version, "nvrtc 1.1");
    assert_false(gj_cache_compiler_at(cache, 0, version, sizeof version, &more));
    assert_true(more);
    assert_true(gj_cache_compiler_at(cache, 1, version, sizeof version, &more));
    assert_string_equal(version, "nvrtc 1.1");
    assert_true(more);
    assert_true(gj_cache_compiler_at(cache, 2, version, sizeof version, &more));
    assert_string_equal(version, "nvrtc 2.2");
    assert_false(more);
    assert_false(gj_cache_compiler_at(cache, 3, version, sizeof version, &more));
    assert_false(more);
    gj_cache_compiler_put(cache, "some libnvrtc", "nvrtc 3.3");
    assert_true(gj_cache_compiler_get(cache, "some libnvrtc", version, sizeof version));
    assert_string_equal(version, "nvrtc 3.3");
    gj_cache_close(&cache);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(both_kinds_are_searched),
        TEST(the_root_comes_first),
        TEST(layers_are_searched_without_a_root),
        TEST(a_damaged_entry_is_healed_from_a_layer),
        TEST(damage_in_a_layer_is_passed_over),
        TEST(damage_in_a_pack_is_found),
        TEST(a_pack_that_shrinks_is_no_longer_read),
        TEST(bad_layers_are_left_out),
        TEST(what_root_owns_is_read),
        TEST(the_variable_names_layers),
        TEST(versions_are_known_by_place),
    };
    return cmocka_run_group_tests_name("cache layers", tests, NULL, NULL);
}
