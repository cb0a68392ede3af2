/* SPDX-License-Identifier: Apache-2.0 */
/* A real entry cut at every length and with every bit flipped: never a hit, and as it was when healed. Exits
 * with 77 without libnvrtc. */
#include <gemmjit/context.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/cache_fixture.h"

static struct scratch scratch;
static struct path file;     /* the entry's */
static unsigned char *sound; /* its bytes */
static size_t sound_bytes;
static struct gj_cache_name name;
static struct gj_cache_entry entry; /* what it says */
static int damaged;                 /* the entry's file, open to be damaged */

static bool note_file(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *found,
                      const char *reason)
{
    (void)user, (void)file_bytes, (void)reason;
    assert_non_null(found);
    file = path_format("%s", path);
    return true;
}

/* Publishes the kernel by the whole library. */
static int make_entry(void **state)
{
    (void)state;
    scratch_make(&scratch);
    const struct gj_context_params params = {.cache_dir = scratch.root.text};
    gj_context *context = NULL;
    gj_kernel *kernel = NULL;
    struct gj_key key;
    const char *reason;
    assert_int_equal(gj_context_open(&params, &context, NULL), GJ_OK);
    assert_int_equal(gj_key_parse("tile=64x16,cluster=1x1", &key, NULL), GJ_OK);
    const enum gj_status status = gj_kernel_get(context, &key, 0, &kernel, NULL);
    gj_context_close(&context);
    if (status == GJ_ERR_NO_COMPILER) {
        scratch_remove(&scratch);
        fprintf(stderr, "skipped: no libnvrtc here\n");
        exit(77);
    }
    assert_int_equal(status, GJ_OK);
    assert_int_equal(gj_cache_list(scratch.cache, note_file, NULL, NULL), 1);
    sound = read_file(file.text, &sound_bytes);
    assert_true(gj_cache_entry_decode(sound, sound_bytes, &entry, &reason));
    name = gj_cache_name_make(&entry.unit_hash, entry.compiler, entry.arch, entry.options);
    damaged = open(file.text, O_WRONLY | O_CLOEXEC);
    assert_true(damaged >= 0);
    return 0;
}

static int remove_entry(void **state)
{
    (void)state;
    close(damaged);
    gj_cache_entry_free(&entry);
    free(sound);
    scratch_remove(&scratch);
    return 0;
}

static enum gj_cache_result load(void)
{
    struct gj_cache_entry loaded = {0};
    const enum gj_cache_result result = gj_cache_load(scratch.cache, &name, &entry, &loaded);
    if (result == GJ_CACHE_HIT) {
        assert_int_equal(loaded.cubin_bytes, entry.cubin_bytes);
        assert_memory_equal(loaded.cubin, entry.cubin, entry.cubin_bytes);
    } else {
        assert_null(loaded.storage);
    }
    gj_cache_entry_free(&loaded);
    return result;
}

/* The store that follows a miss; the file that was damaged is another one from then on. */
static void heal(void)
{
    size_t bytes = 0;
    assert_int_equal(gj_cache_store(scratch.cache, &name, &entry), sound_bytes);
    unsigned char *const healed = read_file(file.text, &bytes);
    assert_int_equal(bytes, sound_bytes);
    assert_memory_equal(healed, sound, bytes);
    free(healed);
    assert_int_equal(load(), GJ_CACHE_HIT);
    close(damaged);
    damaged = open(file.text, O_WRONLY | O_CLOEXEC);
    assert_true(damaged >= 0);
}

static void every_length_is_refused(void **state)
{
    (void)state;
    assert_int_equal(load(), GJ_CACHE_HIT);
    for (size_t length = sound_bytes; length-- > 0;) {
        assert_int_equal(ftruncate(damaged, (off_t)length), 0);
        if (load() != GJ_CACHE_DAMAGED)
            fail_msg("%zu of %zu bytes are taken for an entry", length, sound_bytes);
        if (length % 997 == 0) {
            heal();
            assert_int_equal(ftruncate(damaged, (off_t)length), 0);
        }
    }
    heal();
    for (size_t more = 1; more < 100; more++) { /* and longer than it was */
        assert_int_equal(ftruncate(damaged, (off_t)(sound_bytes + more)), 0);
        assert_int_equal(load(), GJ_CACHE_DAMAGED);
    }
    heal();
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * sound_bytes; bit++) {
        const off_t at = (off_t)(bit / 8);
        const unsigned char flipped = (unsigned char)(sound[at] ^ 1u << bit % 8);
        assert_int_equal(pwrite(damaged, &flipped, 1, at), 1);
        if (load() != GJ_CACHE_DAMAGED)
            fail_msg("bit %zu of byte %zu does not count", bit % 8, bit / 8);
        if (bit % 7919 == 0)
            heal();
        else
            assert_int_equal(pwrite(damaged, &sound[at], 1, at), 1);
    }
    assert_int_equal(load(), GJ_CACHE_HIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
    };
    return cmocka_run_group_tests_name("every byte", tests, make_entry, remove_entry);
}
