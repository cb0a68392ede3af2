/* SPDX-License-Identifier: Apache-2.0 */
/* Loading and publishing: whatever sits at an entry's name, a load is a hit or not, and a store heals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* -- The good case ----------------------------------------------------------------------------------- */

static void stored_entry_is_loaded(void **state)
{
    (void)state;
    assert_null(gj_cache_off_reason(scratch.cache));
    assert_string_equal(gj_cache_root(scratch.cache), scratch.root.text);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
    assert_int_equal(access(scratch.root.text, F_OK), -1); /* a load makes nothing */

    const size_t written = store_sample();
    const struct path path = sample_path(&scratch, &sample);
    size_t bytes = 0, encoded_bytes = 0;
    unsigned char *data = read_file(path.text, &bytes);
    unsigned char *encoded = gj_cache_entry_encode(&sample.entry, &encoded_bytes);
    assert_int_equal(written, bytes);
    assert_int_equal(written, encoded_bytes);
    assert_memory_equal(data, encoded, bytes);
    free(data);
    free(encoded);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    assert_int_equal(store_sample(), written); /* again: the same */
    assert_int_equal(count_files(scratch.dir.text, ""), 1);
    assert_int_equal(atomic_load(&scratch.log.warnings), 0);
}

static void no_cache_is_a_legal_cache(void **state)
{
    (void)state;
    char version[16];
    struct gj_cache_entry entry;
    assert_int_equal(gj_cache_load(NULL, &sample.name, &sample.entry, &entry), GJ_CACHE_MISS);
    assert_int_equal(gj_cache_store(NULL, &sample.name, &sample.entry), 0);
    assert_false(gj_cache_compiler_get(NULL, "x", version, sizeof version));
    gj_cache_compiler_put(NULL, "x", "1");
    assert_int_equal(gj_cache_list(NULL, NULL, NULL, NULL), 0);
    assert_int_equal(gj_cache_clear(NULL), 0);
    gj_cache_close(NULL);
}

static void names_cannot_leave_the_root(void **state)
{
    (void)state;
    static const char *const names[] = {"", "../../../../../../../tmp/gj-evil.gjc",
                                        "6AFC0ED7665DABFBCD508331BFBC1EFE.gjc",
                                        "6afc0ed7665dabfbcd508331bfbc1efe.gj"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct gj_cache_name name = {{0}};
        struct gj_cache_entry entry;
        memcpy(name.text, names[i], strlen(names[i]));
        assert_int_equal(gj_cache_store(scratch.cache, &name, &sample.entry), 0);
        assert_int_equal(gj_cache_load(scratch.cache, &name, &sample.entry, &entry), GJ_CACHE_MISS);
    }
    assert_int_equal(count_files(scratch.dir.text, ""), 0);
}

static void other_inputs_are_damage(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    struct gj_cache_entry other[9], loaded = {0};
    for (size_t i = 0; i < 9; i++)
        other[i] = sample.entry;
    other[0].key_text = "op=gemm,tile=256x128";
    other[1].unit_hash.bytes[0] ^= 1;
    other[2].compiler = "nvrtc 13.1";
    other[3].arch = "sm_90";
    other[4].options = "-arch=sm_90a";
    other[5].entry_name = "gj_gemm";
    other[6].threads = 256;
    other[7].smem_bytes++;
    other[8].stages = 5;
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(gj_cache_load(scratch.cache, &sample.name, &other[i], &loaded), GJ_CACHE_DAMAGED);
        assert_null(loaded.storage);
        assert_int_equal(atomic_load(&scratch.log.warnings), i + 1); /* a cause of its own each */
    }
    /* What is measured need not be known. */
    other[0] = sample.entry;
    other[0].registers = other[0].spill_bytes = 77;
    other[0].cubin = NULL;
    assert_int_equal(gj_cache_load(scratch.cache, &sample.name, &other[0], &loaded), GJ_CACHE_HIT);
    assert_true(sample_equals(&sample, &loaded));
    gj_cache_entry_free(&loaded);
}

static void modes_are_private_under_any_umask(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 0777};
    for (size_t i = 0; i < 3; i++) {
        const struct path parent = path_format("%.4000s/m%zu", scratch.dir.text, i);
        const struct path root = path_format("%.4000s/a/b", parent.text);
        scratch_reopen(&scratch, root.text);
        const mode_t old = umask(masks[i]);
        const size_t written = store_sample();
        gj_cache_compiler_put(scratch.cache, "id", "1");
        umask(old);
        assert_true(written > 0);
        const struct path paths[] = {
            parent,
            path_format("%.4000s/a", parent.text),
            root,
            path_format("%.4000s/v1", root.text),
            path_format("%.4000s/v1/%.2s", root.text, sample.name.text),
            path_format("%.4000s/v1/compilers", root.text),
        };
        for (size_t j = 0; j < sizeof paths / sizeof paths[0]; j++)
            assert_int_equal(mode_of(paths[j].text), 0700);
        assert_int_equal(mode_of(path_format("%.4000s/%.40s", paths[4].text, sample.name.text).text), 0600);
        assert_int_equal(mode_of(path_format("%.4000s/default", paths[5].text).text), 0600);
        assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    }
}

/* -- What may sit at the name ------------------------------------------------------------------------ */

/* Makes the directories of the sample's entry and returns the entry's path, where nothing is. */
static struct path clear_place(void)
{
    assert_true(store_sample() > 0);
    const struct path path = sample_path(&scratch, &sample);
    assert_int_equal(unlink(path.text), 0);
    return path;
}

static void assert_damaged_then_healed(void)
{
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_DAMAGED);
    assert_int_equal(atomic_load(&scratch.log.warnings), 1);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_DAMAGED); /* one warning of one cause */
    assert_int_equal(atomic_load(&scratch.log.warnings), 1);
    assert_true(store_sample() > 0);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
    const struct path path = sample_path(&scratch, &sample);
    assert_int_equal(mode_of(path.text), 0600);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
}

static void damaged_bytes_are_healed(void **state)
{
    (void)state;
    const size_t size = store_sample();
    const struct path path = sample_path(&scratch, &sample);
    size_t bytes;
    unsigned char *data = read_file(path.text, &bytes);
    const size_t lengths[] = {0, 1, 39, 40, size / 2, size - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(truncate(path.text, (off_t)lengths[i]), 0);
        scratch_reopen(&scratch, scratch.root.text);
        assert_damaged_then_healed();
    }
    data[size - 100] ^= 0x10; /* in the cubin */
    write_file(path.text, data, size, 0600);
    scratch_reopen(&scratch, scratch.root.text);
    assert_damaged_then_healed();
    free(data);
}

static void empty_directory_is_healed(void **state)
{
    (void)state;
    assert_int_equal(mkdir(clear_place().text, 0700), 0);
    assert_damaged_then_healed();
}

static void full_directory_is_left_alone(void **state)
{
    (void)state;
    const struct path path = clear_place();
    const struct path inside = path_format("%.4000s/precious", path.text);
    assert_int_equal(mkdir(path.text, 0700), 0);
    write_file(inside.text, "x", 1, 0600);
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_DAMAGED);
    assert_int_equal(store_sample(), 0);
    assert_int_equal(store_sample(), 0);
    assert_int_equal(atomic_load(&scratch.log.warnings), 2); /* not loaded, not stored */
    assert_int_equal(access(inside.text, F_OK), 0);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
}

static void fifo_is_healed(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(clear_place().text, 0600), 0);
    assert_damaged_then_healed();
}

static void socket_is_healed(void **state)
{
    (void)state;
    const struct path path = clear_place();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(socket_fd >= 0);
    if (strlen(path.text) >= sizeof address.sun_path) {
        close(socket_fd);
        skip();
    }
    memcpy(address.sun_path, path.text, strlen(path.text) + 1);
    assert_int_equal(bind(socket_fd, (struct sockaddr *)&address, sizeof address), 0);
    close(socket_fd);
    assert_damaged_then_healed();
}

static void links_are_not_followed(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    const struct path path = sample_path(&scratch, &sample);
    const struct path aside = path_format("%.4000s/aside", scratch.dir.text);
    assert_int_equal(rename(path.text, aside.text), 0);
    assert_int_equal(symlink(aside.text, path.text), 0); /* to a sound entry */
    assert_damaged_then_healed();
    assert_int_equal(access(aside.text, F_OK), 0);

    const char *const targets[] = {path.text, "/dev/zero", "/nonexistent"}; /* the first: a loop */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unlink(path.text), 0);
        assert_int_equal(symlink(targets[i], path.text), 0);
        scratch_reopen(&scratch, scratch.root.text);
        assert_damaged_then_healed();
    }
}

static void huge_sparse_file_is_healed(void **state)
{
    (void)state;
    const struct path path = clear_place();
    write_file(path.text, "", 0, 0600);
    if (truncate(path.text, (off_t)10 << 30) != 0)
        skip();
    assert_damaged_then_healed();
    assert_non_null(strstr(scratch.log.last_warning, "the file is too large")); /* not read first */
}

static void writable_by_others_is_healed(void **state)
{
    (void)state;
    static const mode_t modes[] = {0602, 0620, 0666};
    assert_true(store_sample() > 0);
    const struct path path = sample_path(&scratch, &sample);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(path.text, modes[i]), 0);
        scratch_reopen(&scratch, scratch.root.text);
        assert_damaged_then_healed();
        assert_non_null(strstr(scratch.log.last_warning, "is writable by its group or by others (owner"));
    }
    assert_int_equal(chmod(path.text, 0644), 0); /* readable is no harm */
    assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
}

static void entry_of_another_user_is_healed(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give a file away */
    assert_true(store_sample() > 0);
    assert_int_equal(chown(sample_path(&scratch, &sample).text, 12345, 12345), 0);
    assert_damaged_then_healed();
}

static int heal_unreadable(void *unused)
{
    (void)unused;
    const struct path path = sample_path(&scratch, &sample);
    CHILD_CHECK(chmod(path.text, 0) == 0);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_DAMAGED);
    CHILD_CHECK(store_sample() > 0);
    CHILD_CHECK(load_sample(&scratch, &sample) == GJ_CACHE_HIT);
    return 0;
}

static void unreadable_entry_is_healed(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    assert_int_equal(run_child_unprivileged(&scratch, heal_unreadable, NULL), 0);
}

static void directories_of_others_are_not_used(void **state)
{
    (void)state;
    assert_true(store_sample() > 0);
    const struct path dirs[] = {path_format("%.4000s/v1", scratch.root.text),
                                path_format("%.4000s/v1/%.2s", scratch.root.text, sample.name.text)};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(chmod(dirs[i].text, 0770), 0);
        assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
        assert_int_equal(store_sample(), 0);
        assert_int_equal(atomic_load(&scratch.log.warnings), 2);
        assert_int_equal(chmod(dirs[i].text, 0700), 0);
        assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_HIT);
        scratch_reopen(&scratch, scratch.root.text);

        const struct path aside = path_format("%.4000s-aside", dirs[i].text); /* ours, but a link */
        assert_int_equal(rename(dirs[i].text, aside.text), 0);
        assert_int_equal(symlink(aside.text, dirs[i].text), 0);
        assert_int_equal(load_sample(&scratch, &sample), GJ_CACHE_MISS);
        assert_int_equal(store_sample(), 0);
        assert_int_equal(unlink(dirs[i].text), 0);
        assert_int_equal(rename(aside.text, dirs[i].text), 0);
        scratch_reopen(&scratch, scratch.root.text);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(stored_entry_is_loaded),
        TEST(no_cache_is_a_legal_cache),
        TEST(names_cannot_leave_the_root),
        TEST(other_inputs_are_damage),
        TEST(modes_are_private_under_any_umask),
        TEST(damaged_bytes_are_healed),
        TEST(empty_directory_is_healed),
        TEST(full_directory_is_left_alone),
        TEST(fifo_is_healed),
        TEST(socket_is_healed),
        TEST(links_are_not_followed),
        TEST(huge_sparse_file_is_healed),
        TEST(writable_by_others_is_healed),
        TEST(entry_of_another_user_is_healed),
        TEST(unreadable_entry_is_healed),
        TEST(directories_of_others_are_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
