/* SPDX-License-Identifier: Apache-2.0 */
/* Making packs and taking them apart: exact bytes, nothing partial, nothing damaged, nothing lost. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache_impl.h"
#include "pack_fixture.h"

enum { NUM_PARTS = 6, NUM_ENTRIES = 3, NUM_KILLS = 40 };

static struct scratch scratch; /* the cache that is packed */
static struct scratch target;  /* the one that is unpacked into */
static struct part parts[NUM_PARTS];
static struct path path;

static int by_name(const void *a, const void *b)
{
    const struct part *left = a, *right = b;
    return left->kind != right->kind ? left->kind - right->kind : strcmp(left->name, right->name);
}

static int set_up(void **state)
{
    (void)state;
    alarm(120); /* a hang is a failure */
    scratch_make(&scratch);
    scratch_make(&target);
    path = path_format("%.4000s/x.gjp", scratch.dir.text);
    parts[0] = part_entry(1);
    parts[1] = part_entry(2);
    parts[2] = part_entry(5);
    parts[3] = part_stamp("/usr/lib/libnvrtc.so 12345", "nvrtc 13.0");
    parts[4] = part_stamp("/opt/a place\nof two lines", "nvrtc 12.9");
    parts[5] = part_stamp("", "nvrtc 13.0");
    qsort(parts, NUM_PARTS, sizeof parts[0], by_name);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&target);
    scratch_remove(&scratch);
    alarm(0);
    return 0;
}

/* -- What is told ------------------------------------------------------------------------------------ */

struct told {
    int count;
    char name[4096], reason[256]; /* of the last */
};

static void tell(void *user, const char *name, const char *reason)
{
    struct told *told = user;
    told->count++;
    snprintf(told->name, sizeof told->name, "%s", name);
    snprintf(told->reason, sizeof told->reason, "%s", reason);
}

static struct gj_fault fault;
static struct told told;
static struct gj_cache_packed packed;
static struct gj_cache_unpacked unpacked;

static enum gj_pack_status pack_to(const char *name)
{
    const struct gj_pack_listener listener = {tell, &told};
    fault = (struct gj_fault){0};
    told = (struct told){0};
    return gj_cache_pack(scratch.cache, name, &listener, &packed, &fault);
}

static enum gj_pack_status unpack_from(const char *name)
{
    const struct gj_pack_listener listener = {tell, &told};
    fault = (struct gj_fault){0};
    told = (struct told){0};
    return gj_cache_unpack(target.cache, name, &listener, &unpacked, &fault);
}

static void assert_file_is(const char *name, const void *data, size_t bytes)
{
    size_t found_bytes;
    unsigned char *found = read_file(name, &found_bytes);
    assert_int_equal(found_bytes, bytes);
    assert_memory_equal(found, data, bytes);
    free(found);
}

static void assert_unpacked(const struct part *part)
{
    assert_file_is(part_path(target.root.text, part).text, part->data, part->bytes);
    assert_int_equal(mode_of(part_path(target.root.text, part).text), 0600);
}

/* -- Bytes ------------------------------------------------------------------------------------------- */

static void bytes_are_the_documented_ones(void **state)
{
    (void)state;
    struct built right;
    pack_build(&right, parts, NUM_PARTS);
    put_parts(&scratch, parts, NUM_PARTS);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_file_is(path.text, right.data, right.bytes);
    assert_int_equal(packed.entries, NUM_ENTRIES);
    assert_int_equal(packed.stamps, NUM_PARTS - NUM_ENTRIES);
    assert_int_equal(packed.bytes, right.bytes);
    assert_int_equal(packed.left_out, 0);
    assert_int_equal(told.count, 0);
    assert_int_equal(count_files(scratch.dir.text, ".tmp-"), 0);
    struct gj_cache_packed again;
    assert_int_equal(gj_cache_pack(scratch.cache, path.text, NULL, &again, &fault), GJ_PACK_DONE);
    assert_file_is(path.text, right.data, right.bytes);
}

static void order_place_and_time_are_not_in_it(void **state)
{
    (void)state;
    struct built right;
    pack_build(&right, parts, NUM_PARTS);
    for (size_t i = NUM_PARTS; i-- > 0;)
        put_parts(&target, &parts[i], 1);
    const struct timespec past[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, part_path(target.root.text, &parts[0]).text, past, 0), 0);
    const struct path other = path_format("%.4000s/y.gjp", target.dir.text);
    assert_int_equal(gj_cache_pack(target.cache, other.text, NULL, &packed, &fault), GJ_PACK_DONE);
    assert_file_is(other.text, right.data, right.bytes);
    struct stat status;
    assert_int_equal(stat(part_path(target.root.text, &parts[0]).text, &status), 0);
    assert_int_equal(status.st_mtime, 1000000000); /* packing is no use of an entry */
}

static void a_pack_comes_back_whole(void **state)
{
    (void)state;
    char version[32];
    struct sample sample;
    sample_make(&sample, 77);
    put_parts(&scratch, parts, NUM_PARTS);
    assert_true(gj_cache_store(scratch.cache, &sample.name, &sample.entry) > 0);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_int_equal(unpack_from(path.text), GJ_PACK_DONE);
    for (size_t i = 0; i < NUM_PARTS; i++)
        assert_unpacked(&parts[i]);
    assert_int_equal(load_sample(&target, &sample), GJ_CACHE_HIT);
    assert_true(gj_cache_compiler_get(target.cache, "", version, sizeof version));
    assert_string_equal(version, "nvrtc 13.0");
    assert_int_equal(unpacked.entries, NUM_ENTRIES + 1);
    assert_int_equal(unpacked.stamps, NUM_PARTS - NUM_ENTRIES);
    assert_int_equal(unpacked.kept + unpacked.left_out, 0);
    assert_int_equal(unpack_from(path.text), GJ_PACK_DONE);
    assert_int_equal(unpacked.entries + unpacked.stamps + unpacked.bytes, 0);
    assert_int_equal(unpacked.kept, NUM_PARTS + 1);
}

/* -- Damage ------------------------------------------------------------------------------------------ */

static void damaged_files_are_left_out(void **state)
{
    (void)state;
    struct built right;
    struct part misnamed = part_entry(9), damaged = part_entry(10), stamp = part_stamp("x", "nvrtc 13.0");
    put_parts(&scratch, parts, NUM_PARTS);
    misnamed.name[31] = misnamed.name[31] == '0' ? '1' : '0';
    damaged.data[100] ^= 1;
    stamp.data[30] ^= 1;
    put_parts(&scratch, &misnamed, 1);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_int_equal(told.count, 1);
    assert_string_equal(told.name, part_path(scratch.root.text, &misnamed).text);
    assert_string_equal(told.reason, "the entry has a name that is not the hash of its inputs");
    put_parts(&scratch, &damaged, 1);
    put_parts(&scratch, &stamp, 1);
    assert_int_equal(symlink("/tmp", path_format("%.4000s/v1/0x", scratch.root.text).text), 0); /* no shard */
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_int_equal(told.count, 3);
    assert_int_equal(packed.left_out, 3);
    assert_string_equal(told.name, part_path(scratch.root.text, &stamp).text);
    pack_build(&right, parts, NUM_PARTS);
    assert_file_is(path.text, right.data, right.bytes);
}

static void unread_directories_are_left_out(void **state)
{
    (void)state;
    put_parts(&scratch, parts, NUM_PARTS);
    char shard[3] = "00";
    while (access(path_format("%.4000s/v1/%s", scratch.root.text, shard).text, F_OK) == 0)
        shard[1]++;
    const struct path foreign = path_format("%.4000s/v1/%s", scratch.root.text, shard);
    assert_int_equal(symlink("/tmp", foreign.text), 0);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_int_equal(packed.entries, NUM_ENTRIES);
    assert_int_equal(packed.left_out, 1);
    assert_string_equal(told.name, foreign.text);
    assert_string_equal(told.reason, "the directory of the file is a symbolic link");
}

static void damaged_members_are_not_published(void **state)
{
    (void)state;
    struct built built;
    struct part some[] = {parts[0], parts[1], parts[2], parts[3]};
    some[1].name[31] = some[1].name[31] == '0' ? '1' : '0'; /* sound, but of another name */
    some[2].data[200] ^= 4;
    some[3].data[40] ^= 1;
    pack_build(&built, some, 4);
    write_file(path.text, built.data, built.bytes, 0600);
    assert_int_equal(unpack_from(path.text), GJ_PACK_DONE);
    assert_int_equal(unpacked.entries, 1);
    assert_int_equal(unpacked.left_out, 3);
    assert_int_equal(told.count, 3);
    assert_string_equal(told.name, some[3].name);
    assert_string_equal(told.reason, "is not a stamp");
    assert_unpacked(&parts[0]);
    assert_int_equal(count_files(target.root.text, ""), 1);
}

static void what_is_there_and_sound_stays(void **state)
{
    (void)state;
    struct part there[] = {parts[0], part_stamp("", "nvrtc 12.4"), parts[1]};
    put_parts(&scratch, parts, NUM_PARTS);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    there[2].data[100] ^= 1; /* there, but damaged */
    put_parts(&target, there, 3);
    struct stat before, after;
    assert_int_equal(stat(part_path(target.root.text, &parts[0]).text, &before), 0);
    assert_int_equal(unpack_from(path.text), GJ_PACK_DONE);
    assert_int_equal(stat(part_path(target.root.text, &parts[0]).text, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(unpacked.kept, 2);
    assert_int_equal(unpacked.entries, NUM_ENTRIES - 1);
    assert_unpacked(&there[1]);
    assert_unpacked(&parts[1]);
}

static void only_a_pack_is_unpacked(void **state)
{
    (void)state;
    assert_int_equal(unpack_from(path.text), GJ_PACK_REFUSED);
    assert_int_equal(fault.error, ENOENT);
    assert_int_equal(unpack_from(scratch.dir.text), GJ_PACK_REFUSED);
    write_file(path.text, "PK", 2, 0600);
    assert_int_equal(unpack_from(path.text), GJ_PACK_REFUSED);
    assert_string_equal(fault.what, "is shorter than the head of a pack");
    assert_int_equal(count_files(target.dir.text, ""), 0);
}

/* -- Places ------------------------------------------------------------------------------------------ */

static void an_empty_pack_is_not_made(void **state)
{
    (void)state;
    write_file(path.text, "old", 3, 0600);
    assert_int_equal(pack_to(path.text), GJ_PACK_FAILED);
    assert_string_equal(fault.what, "has no sound entry, and an empty pack is none");
    put_parts(&scratch, &parts[3], 3); /* stamps alone help nobody */
    assert_int_equal(pack_to(path.text), GJ_PACK_FAILED);
    assert_file_is(path.text, "old", 3);
    assert_int_equal(count_files(scratch.dir.text, ".tmp-"), 0);
    scratch_reopen(&scratch, "");
    assert_int_equal(pack_to(path.text), GJ_PACK_FAILED);
    assert_string_equal(fault.what, "is off");
}

static void a_pack_goes_to_no_odd_place(void **state)
{
    (void)state;
    put_parts(&scratch, parts, NUM_PARTS);
    const struct path fifo = path_format("%.4000s/fifo", scratch.dir.text);
    assert_int_equal(mkfifo(fifo.text, 0600), 0);
    const struct path refused[] = {
        scratch.dir,
        path_format("%.4000s/missing/", scratch.dir.text),
        path_format("%.4000s/v1/x", scratch.root.text),
        path_format("%.4000s/v1/compilers/../compilers/default", scratch.root.text),
        fifo,
        path_format("/"),
        path_format("%s", ""),
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(pack_to(refused[i].text), GJ_PACK_REFUSED);
        assert_non_null(fault.what);
    }
    assert_int_equal(pack_to(path_format("%.4000s/missing/x", scratch.dir.text).text), GJ_PACK_FAILED);
    assert_string_equal(fault.where, "the directory of the pack");
    assert_int_equal(fault.error, ENOENT);
    assert_int_equal(count_files(scratch.root.text, ""), NUM_PARTS);
}

static void a_file_is_replaced_and_a_link_stays(void **state)
{
    (void)state;
    struct stat status;
    struct built right;
    pack_build(&right, parts, NUM_PARTS);
    put_parts(&scratch, parts, NUM_PARTS);
    const struct path link = path_format("%.4000s/link", scratch.dir.text);
    write_file(path.text, "old", 3, 0400);
    assert_int_equal(symlink("x.gjp", link.text), 0);
    const mode_t mask = umask(0);
    assert_int_equal(pack_to(link.text), GJ_PACK_DONE);
    assert_int_equal(mode_of(path.text), 0644);
    umask(077);
    const struct path other = path_format("%.4000s/v1x", scratch.root.text); /* beside v1: allowed */
    assert_int_equal(pack_to(other.text), GJ_PACK_DONE);
    umask(mask);
    assert_int_equal(mode_of(other.text), 0600);
    assert_int_equal(lstat(link.text, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_file_is(path.text, right.data, right.bytes);
}

/* -- Shortages --------------------------------------------------------------------------------------- */

static int pack_under_size_limit(void *unused)
{
    (void)unused;
    const struct rlimit limit = {1024, 1024};
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_CHECK(pack_to(path.text) == GJ_PACK_FAILED && fault.error == EFBIG);
    return 0;
}

static void nothing_partial_under_a_size_limit(void **state)
{
    (void)state;
    put_parts(&scratch, parts, NUM_PARTS);
    write_file(path.text, "old", 3, 0600);
    assert_int_equal(run_child(pack_under_size_limit, NULL), 0);
    assert_file_is(path.text, "old", 3);
    assert_int_equal(count_files(scratch.dir.text, ".tmp-"), 0);
}

static void nothing_partial_on_a_full_disk(void **state)
{
    (void)state;
    const struct path disk = path_format("%.4000s/disk", scratch.dir.text);
    const struct path file = path_format("%.4000s/disk/x.gjp", scratch.dir.text);
    assert_int_equal(mkdir(disk.text, 0700), 0);
    if (mount("none", disk.text, "tmpfs", MS_NOSUID, "size=16k,mode=0700") != 0)
        skip();
    for (unsigned i = 0; i < 8; i++) { /* 24 KiB */
        struct sample sample;
        sample_make(&sample, i);
        assert_true(gj_cache_store(scratch.cache, &sample.name, &sample.entry) > 0);
    }
    write_file(file.text, "old", 3, 0600);
    const enum gj_pack_status full = pack_to(file.text);
    const int error = fault.error, files = count_files(disk.text, "");
    size_t bytes;
    unsigned char *const old = read_file(file.text, &bytes);
    const enum gj_pack_status elsewhere = pack_to(path.text);
    scratch_reopen(&target, path_format("%.4000s/root", disk.text).text);
    const enum gj_pack_status half = unpack_from(path.text);
    const int half_error = fault.error;
    const uint64_t published = unpacked.entries;
    const int left = count_files(disk.text, ".tmp-"), kept = count_files(disk.text, ".gjc");
    assert_int_equal(umount(disk.text), 0);
    assert_int_equal(full, GJ_PACK_FAILED);
    assert_int_equal(error, ENOSPC);
    assert_int_equal(files, 1);
    assert_int_equal(bytes, 3);
    free(old);
    assert_int_equal(elsewhere, GJ_PACK_DONE);
    assert_int_equal(half, GJ_PACK_FAILED);
    assert_int_equal(half_error, ENOSPC);
    assert_int_equal(left, 0);
    assert_int_equal(kept, published);
}

static int use_without_descriptors(void *unused)
{
    (void)unused;
    const struct rlimit limit = {3, 3};
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHILD_CHECK(pack_to(path.text) == GJ_PACK_FAILED && fault.error == EMFILE);
    CHILD_CHECK(unpack_from(path.text) == GJ_PACK_FAILED && fault.error == EMFILE);
    return 0;
}

/* Some descriptors: the place, the file, the walk and not the entry. What was not read may be sound. */
static int pack_with_few_descriptors(void *unused)
{
    (void)unused;
    int failures = 0;
    for (rlim_t most = 3; most < 24; most++) {
        const struct rlimit limit = {most, 1024};
        CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        const enum gj_pack_status status = pack_to(path.text);
        CHILD_CHECK(told.count == 0 && (status == GJ_PACK_DONE || fault.error == EMFILE));
        failures += status != GJ_PACK_DONE;
    }
    return failures > 0 && failures < 20 ? 0 : 1;
}

static void shortage_of_descriptors_fails(void **state)
{
    (void)state;
    put_parts(&scratch, parts, NUM_PARTS);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    assert_int_equal(run_child(use_without_descriptors, NULL), 0);
    assert_int_equal(run_child(pack_with_few_descriptors, NULL), 0);
    assert_int_equal(unpack_from(path.text), GJ_PACK_DONE);
}

static void a_killed_writer_leaves_the_old_pack(void **state)
{
    (void)state;
    struct built right;
    pack_build(&right, parts, NUM_PARTS);
    put_parts(&scratch, parts, NUM_PARTS);
    assert_int_equal(pack_to(path.text), GJ_PACK_DONE);
    for (int i = 0; i < NUM_KILLS; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            for (;;)
                (void)pack_to(path.text);
        nanosleep(&(struct timespec){.tv_nsec = 300000 + i * 77777}, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_file_is(path.text, right.data, right.bytes);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_the_documented_ones),
        TEST(order_place_and_time_are_not_in_it),
        TEST(a_pack_comes_back_whole),
        TEST(damaged_files_are_left_out),
        TEST(unread_directories_are_left_out),
        TEST(damaged_members_are_not_published),
        TEST(what_is_there_and_sound_stays),
        TEST(only_a_pack_is_unpacked),
        TEST(an_empty_pack_is_not_made),
        TEST(a_pack_goes_to_no_odd_place),
        TEST(a_file_is_replaced_and_a_link_stays),
        TEST(nothing_partial_under_a_size_limit),
        TEST(nothing_partial_on_a_full_disk),
        TEST(shortage_of_descriptors_fails),
        TEST(a_killed_writer_leaves_the_old_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
