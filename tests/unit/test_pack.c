/* SPDX-License-Identifier: Apache-2.0 */
/* Reading packs: what a file must be and say to be opened, and that no bytes of one can do harm. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"
#include "pack_fixture.h"

enum { NUM_PARTS = 5, NUM_THREADS = 8, NUM_ROUNDS = 2000 };

static struct scratch scratch;
static struct part parts[NUM_PARTS]; /* in the order of the index */
static struct built whole;
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
    path = path_format("%.4000s/x.gjp", scratch.dir.text);
    parts[0] = part_entry(1);
    parts[1] = part_entry(2);
    parts[2] = part_entry(5);
    parts[3] = part_stamp("/usr/lib/libnvrtc.so 12345", "nvrtc 13.0");
    parts[4] = part_stamp("", "nvrtc 13.0");
    qsort(parts, NUM_PARTS, sizeof parts[0], by_name);
    pack_build(&whole, parts, NUM_PARTS);
    write_file(path.text, whole.data, whole.bytes, 0644);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    alarm(0);
    return 0;
}

static gj_pack *open_bytes(const struct built *built, struct gj_fault *fault)
{
    write_file(path.text, built->data, built->bytes, 0644);
    *fault = (struct gj_fault){0};
    return gj_pack_open(path.text, fault);
}

/* 1: found and sound; 0: found and refused by its check; -1: not found. */
static int look_up(const gj_pack *pack, const struct part *part)
{
    const void *data = NULL;
    size_t bytes = 0;
    const char *reason = NULL;
    struct gj_cache_entry entry;
    const bool is_entry = part->kind == 1;
    if (!(is_entry ? gj_pack_find_entry : gj_pack_find_stamp)(pack, part->name, &data, &bytes))
        return -1;
    if (is_entry ? !gj_entry_view(data, bytes, &entry, &reason)
                 : !gj_stamp_check(part->name, data, bytes, &reason)) {
        assert_non_null(reason);
        return 0;
    }
    assert_int_equal(bytes, part->bytes);
    assert_memory_equal(data, part->data, bytes);
    return 1;
}

static void assert_whole(const gj_pack *pack)
{
    for (size_t i = 0; i < NUM_PARTS; i++)
        assert_int_equal(look_up(pack, &parts[i]), 1);
}

/* -- What is found ----------------------------------------------------------------------------------- */

static void every_member_is_found(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    gj_pack *pack = gj_pack_open(path.text, &fault);
    assert_non_null(pack);
    assert_whole(pack);
    assert_int_equal(gj_pack_count(pack), NUM_PARTS);
    struct gj_pack_member member = {.bytes = 7};
    for (size_t i = 0; i < NUM_PARTS; i++) {
        assert_true(gj_pack_member(pack, i, &member));
        assert_int_equal(member.kind, parts[i].kind);
        assert_string_equal(member.name, parts[i].name);
        assert_int_equal(member.bytes, parts[i].bytes);
        assert_memory_equal(member.data, parts[i].data, member.bytes);
        assert_int_equal((uintptr_t)member.data % 16, 0);
    }
    assert_false(gj_pack_member(pack, NUM_PARTS, &member));
    assert_int_equal(member.bytes, parts[NUM_PARTS - 1].bytes); /* untouched */
    gj_pack_close(&pack);
    assert_null(pack);
    gj_pack_close(&pack);
    gj_pack_close(NULL);
}

static void a_view_is_the_entry_in_place(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    struct gj_cache_entry view, copy;
    const char *reason;
    const void *data;
    size_t bytes;
    gj_pack *pack = gj_pack_open(path.text, &fault);
    assert_true(gj_pack_find_entry(pack, parts[0].name, &data, &bytes));
    assert_true(gj_entry_view(data, bytes, &view, &reason));
    assert_true(gj_cache_entry_decode(data, bytes, &copy, &reason));
    assert_null(view.storage);
    assert_null(gj_entry_difference(&view, &copy));
    assert_int_equal(view.registers, copy.registers);
    assert_int_equal((uintptr_t)view.cubin % 16, 0);
    assert_in_range((uintptr_t)view.cubin, (uintptr_t)data, (uintptr_t)data + bytes);
    assert_in_range((uintptr_t)view.key_text, (uintptr_t)data, (uintptr_t)data + bytes);
    assert_memory_equal(view.cubin, copy.cubin, copy.cubin_bytes);
    gj_cache_entry_free(&copy);
    gj_cache_entry_free(&view); /* frees nothing */
    gj_pack_close(&pack);
}

static void other_names_are_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "default",
                                        "default.gjc",
                                        "00000000000000000000000000000000",
                                        "00000000000000000000000000000000.gjc",
                                        "ffffffffffffffffffffffffffffffff.gjc",
                                        "../../../../../../../../etc/passwd",
                                        "ABCDEF"};
    struct gj_fault fault = {0};
    const void *data = &fault;
    size_t bytes = 7;
    gj_pack *pack = gj_pack_open(path.text, &fault);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_false(gj_pack_find_entry(pack, names[i], &data, &bytes));
        if (strcmp(names[i], "default") != 0)
            assert_false(gj_pack_find_stamp(pack, names[i], &data, &bytes));
    }
    assert_false(gj_pack_find_stamp(pack, parts[0].name, &data, &bytes));
    assert_false(gj_pack_find_entry(pack, parts[3].name, &data, &bytes));
    assert_ptr_equal(data, &fault);
    assert_int_equal(bytes, 7);
    gj_pack_close(&pack);
}

static void *find_often(void *argument)
{
    const gj_pack *pack = argument;
    for (int i = 0; i < NUM_ROUNDS; i++)
        if (look_up(pack, &parts[i % NUM_PARTS]) != 1)
            return argument;
    return NULL;
}

static void threads_find_at_once(void **state)
{
    (void)state;
    pthread_t threads[NUM_THREADS];
    struct gj_fault fault = {0};
    gj_pack *pack = gj_pack_open(path.text, &fault);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_often, pack), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    gj_pack_close(&pack);
}

/* -- Damage ------------------------------------------------------------------------------------------ */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct gj_fault fault;
    struct built cut = whole;
    for (cut.bytes = 0; cut.bytes < whole.bytes; cut.bytes++) {
        assert_null(open_bytes(&cut, &fault));
        assert_non_null(fault.what);
        assert_int_equal(fault.error, 0);
    }
    cut.bytes = whole.bytes + 1;
    assert_null(open_bytes(&cut, &fault));
}

/* The member that has this byte; NUM_PARTS: padding; -1: head or index. */
static int find_owner(size_t at)
{
    for (int i = 0; i < NUM_PARTS; i++)
        if (at >= whole.offset[i] && at < whole.offset[i] + whole.length[i])
            return i;
    return at < PACK_HEAD_BYTES || at >= whole.bytes - NUM_PARTS * PACK_RECORD_BYTES ? -1 : NUM_PARTS;
}

static void every_flipped_byte_is_told(void **state)
{
    (void)state;
    static const unsigned char masks[] = {0x01, 0x80, 0xff};
    for (size_t at = 0; at < whole.bytes; at++) {
        for (size_t i = 0; i < sizeof masks; i++) {
            struct gj_fault fault;
            struct built flipped = whole;
            flipped.data[at] ^= masks[i];
            gj_pack *pack = open_bytes(&flipped, &fault);
            const int owner = find_owner(at);
            assert_true((pack != NULL) == (owner >= 0));
            for (int part = 0; pack && part < NUM_PARTS; part++)
                assert_int_equal(look_up(pack, &parts[part]), part != owner);
            gj_pack_close(&pack);
        }
    }
}

/* What is in the mapping may be anything, but it is in the mapping: a sanitizer or the kernel would tell. */
static unsigned touch_all(const gj_pack *pack)
{
    unsigned sum = 0;
    for (size_t i = 0; i < gj_pack_count(pack); i++) {
        struct gj_pack_member member;
        assert_true(gj_pack_member(pack, i, &member));
        for (size_t at = 0; at < member.bytes; at++)
            sum += ((const unsigned char *)member.data)[at];
    }
    return sum;
}

static void resealed_damage_is_refused_or_harmless(void **state)
{
    (void)state;
    uint32_t random = 1;
    int opened = 0;
    for (int round = 0; round < 5000; round++) {
        struct gj_fault fault;
        struct built damaged = whole;
        unsigned char *const idx = pack_record(&damaged, 0);
        for (int i = 0; i <= round % 3; i++) {
            random = random * 1664525u + 1013904223u;
            idx[(random >> 8) % (NUM_PARTS * PACK_RECORD_BYTES)] ^= (unsigned char)(1u << (random >> 29));
        }
        pack_seal(&damaged);
        gj_pack *pack = open_bytes(&damaged, &fault);
        if (pack) {
            touch_all(pack);
            opened++;
        }
        gj_pack_close(&pack);
    }
    assert_in_range(opened, 1, 5000); /* names may be others */
}

static void each_rule_has_its_reason(void **state)
{
    (void)state;
    static const struct {
        int member; /* -1: the head */
        size_t at;
        unsigned char value;
        const char *why;
    } cases[] = {
        {-1, 0, 0x88, "does not begin as a pack does"},
        {-1, 3, 'C', "does not begin as a pack does"},
        {-1, 8, 2, "has another format version"},
        {-1, 12, 0, "has no members"},
        {-1, 15, 0xff, "is shorter than its index"},
        {0, 16, 0, "has a member of an unknown kind or with unknown flags"},
        {0, 16, 4, "has a member of an unknown kind or with unknown flags"},
        {0, 17, 1, "has a member of an unknown kind or with unknown flags"},
        {0, 20, 1, "has a member of an unknown kind or with unknown flags"},
        {0, 0, 0xff, "has members in a wrong order, or one twice"},
        {0, 16, 2, "has members in a wrong order, or one twice"},
        {4, 15, 1, "has a default stamp with a name"},
        {0, 24, 16, "has members that overlap or lie apart"},
        {0, 24, 33, "has members that overlap or lie apart"},
        {1, 31, 0x80, "has members that overlap or lie apart"},
        {0, 33, 0, "has members that overlap or lie apart"}, /* the next begins too late */
        {0, 39, 0xff, "has a member of a wrong length"},
        {3, 34, 2, "has a member of a wrong length"},
        {2, 34, 3, "has a member that ends beyond it"},
        {4, 32, 1, "has bytes between its members and its index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gj_fault fault;
        struct built damaged = whole;
        unsigned char *const base =
            cases[i].member < 0 ? damaged.data : pack_record(&damaged, (size_t)cases[i].member);
        base[cases[i].at] = cases[i].value;
        if (i > 4)
            pack_seal(&damaged);
        assert_null(open_bytes(&damaged, &fault));
        assert_string_equal(fault.what, cases[i].why);
    }
}

static void a_member_stands_once(void **state)
{
    (void)state;
    struct gj_fault fault;
    struct built twice;
    struct part same[] = {parts[0], parts[0]}, swapped[] = {parts[1], parts[0]};
    struct part empty = parts[0];
    empty.bytes = 0;
    pack_build(&twice, same, 2);
    assert_null(open_bytes(&twice, &fault));
    assert_string_equal(fault.what, "has members in a wrong order, or one twice");
    pack_build(&twice, swapped, 2);
    assert_null(open_bytes(&twice, &fault));
    pack_build(&twice, &empty, 1);
    assert_null(open_bytes(&twice, &fault));
    assert_string_equal(fault.what, "has a member of a wrong length");
}

/* -- Files ------------------------------------------------------------------------------------------- */

static void assert_refused(const char *name, const char *why)
{
    struct gj_fault fault = {0};
    assert_null(gj_pack_open(name, &fault));
    assert_string_equal(fault.where, "the pack");
    assert_string_equal(fault.what, why);
}

static void only_trusted_files_are_opened(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    const struct path other = path_format("%.4000s/other", scratch.dir.text);
    assert_null(gj_pack_open(other.text, &fault));
    assert_int_equal(fault.error, ENOENT);
    assert_int_equal(mkfifo(other.text, 0600), 0);
    assert_refused(other.text, "is not a regular file");
    assert_refused(scratch.dir.text, "is not a regular file");
    assert_refused("/dev/null", "is not a regular file");
    assert_int_equal(unlink(other.text), 0);
    assert_int_equal(symlink(path.text, other.text), 0);
    gj_pack *pack = gj_pack_open(other.text, &fault); /* a link to one is followed */
    assert_non_null(pack);
    gj_pack_close(&pack);
    assert_int_equal(chmod(path.text, 0664), 0);
    assert_refused(other.text, "is writable by its group or by others");
    assert_int_equal(chmod(path.text, 0646), 0);
    assert_refused(path.text, "is writable by its group or by others");
    assert_int_equal(chmod(path.text, 0444), 0);
    pack = gj_pack_open(path.text, &fault);
    assert_non_null(pack);
    gj_pack_close(&pack);
}

static int open_one(void *name)
{
    struct gj_fault fault = {0};
    gj_pack *pack = gj_pack_open(name, &fault);
    const int sound = pack ? look_up(pack, &parts[0]) : -1;
    gj_pack_close(&pack);
    return sound == 1 ? 0 : 1;
}

static void owners_are_this_user_and_root(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(path.text, 12345, 0), 0);
    assert_refused(path.text, "belongs to another user");
    assert_int_equal(chown(path.text, 0, 0), 0);
    /* Out of the way of the tree that is given to the other user. */
    const struct path roots = path_format("%.4000s.gjp", scratch.dir.text);
    assert_int_equal(rename(path.text, roots.text), 0);
    const int result = run_child_unprivileged(&scratch, open_one, (void *)roots.text);
    assert_int_equal(unlink(roots.text), 0);
    assert_int_equal(result, 0);
}

static void another_length_ends_finding(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    struct gj_pack_member member;
    gj_pack *pack = gj_pack_open(path.text, &fault);
    assert_true(gj_pack_is_intact(pack, &fault));
    const off_t lengths[] = {0, 100, (off_t)whole.bytes + 1};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(truncate(path.text, lengths[i]), 0);
        assert_false(gj_pack_is_intact(pack, NULL));
        assert_false(gj_pack_is_intact(pack, &fault));
        assert_string_equal(fault.what, "has another length than when it was opened");
        assert_int_equal(look_up(pack, &parts[0]), -1);
        assert_int_equal(look_up(pack, &parts[4]), -1);
        assert_false(gj_pack_member(pack, 0, &member));
    }
    gj_pack_close(&pack);
}

/* Its index was sound when it was opened; whatever stands there now, nothing outside is handed out. */
static void writing_over_leads_nowhere_else(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    gj_pack *pack = gj_pack_open(path.text, &fault);
    for (int value = 0; value < 256; value++) {
        unsigned char noise[PACK_MAX];
        memset(noise, value, sizeof noise);
        const int file = open(path.text, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(file, noise, whole.bytes, 0), whole.bytes);
        close(file);
        for (size_t i = 0; i < NUM_PARTS; i++) {
            struct gj_pack_member member;
            assert_int_not_equal(look_up(pack, &parts[i]), 1);
            if (gj_pack_member(pack, i, &member))
                assert_in_range(member.bytes, 0, whole.bytes);
        }
    }
    gj_pack_close(&pack);
}

static void a_replaced_pack_stays_readable(void **state)
{
    (void)state;
    struct gj_fault fault = {0};
    gj_pack *pack = gj_pack_open(path.text, &fault);
    const struct path other = path_format("%.4000s/new", scratch.dir.text);
    write_file(other.text, "new", 3, 0600);
    assert_int_equal(rename(other.text, path.text), 0);
    assert_whole(pack);
    assert_int_equal(unlink(path.text), 0);
    assert_whole(pack);
    gj_pack_close(&pack);
}

static int open_without_streams(void *unused)
{
    (void)unused;
    struct gj_fault fault = {0};
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    gj_pack *pack = gj_pack_open(path.text, &fault);
    const bool is_free = fcntl(STDERR_FILENO, F_GETFD) < 0 && fcntl(STDIN_FILENO, F_GETFD) < 0;
    return pack && is_free && look_up(pack, &parts[0]) == 1 ? 0 : 1;
}

static void no_standard_stream_is_taken(void **state)
{
    (void)state;
    assert_int_equal(run_child(open_without_streams, NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_member_is_found),
        TEST(a_view_is_the_entry_in_place),
        TEST(other_names_are_not_found),
        TEST(threads_find_at_once),
        TEST(every_truncation_is_refused),
        TEST(every_flipped_byte_is_told),
        TEST(resealed_damage_is_refused_or_harmless),
        TEST(each_rule_has_its_reason),
        TEST(a_member_stands_once),
        TEST(only_trusted_files_are_opened),
        TEST(owners_are_this_user_and_root),
        TEST(another_length_ends_finding),
        TEST(writing_over_leads_nowhere_else),
        TEST(a_replaced_pack_stays_readable),
        TEST(no_standard_stream_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
