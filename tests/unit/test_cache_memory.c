/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the cache fails once: nothing crashes, leaks, or is half done. Linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/cache_impl.h"
#include "cache/pack.h"
#include "cache_fixture.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);

/* Allocations that still succeed before the one that fails; negative: all do. */
static int allowed = -1;

static bool is_allowed(void)
{
    return allowed < 0 || allowed-- != 0;
}

void *__wrap_malloc(size_t bytes)
{
    return is_allowed() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_allowed() ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_allowed() ? __real_realloc(memory, bytes) : NULL;
}

char *__wrap_strdup(const char *text)
{
    return is_allowed() ? __real_strdup(text) : NULL;
}

static bool see(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                const char *reason)
{
    (void)user, (void)path, (void)file_bytes;
    return entry || reason;
}

/* A day in the life of a cache. Returns whether memory sufficed to open it. */
static bool live(const struct scratch *scratch, const struct sample *sample, struct cache_log *log)
{
    const struct gj_log sink = cache_log_to(log);
    gj_cache *cache = gj_cache_open(scratch->root.text, &sink);
    if (!cache)
        return false;
    struct gj_cache_entry entry = {0};
    char version[32] = "";
    (void)gj_cache_store(cache, &sample->name, &sample->entry);
    if (gj_cache_load(cache, &sample->name, &sample->entry, &entry) == GJ_CACHE_HIT)
        assert_true(sample_equals(sample, &entry));
    else
        assert_null(entry.storage);
    gj_cache_entry_free(&entry);
    gj_cache_compiler_put(cache, "id", "nvrtc 13.0");
    if (gj_cache_compiler_get(cache, "id", version, sizeof version))
        assert_string_equal(version, "nvrtc 13.0");
    (void)gj_cache_list(cache, see, NULL, NULL);
    (void)gj_cache_clear(cache);
    gj_cache_close(&cache);
    return true;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct scratch scratch;
    struct sample sample;
    struct cache_log log = {0};
    scratch_make(&scratch);
    sample_make(&sample, 1);
    int unopened = 0, failing = 0;
    for (bool reached = true; reached; failing++) {
        allowed = failing;
        unopened += !live(&scratch, &sample, &log);
        reached = allowed < 0; /* else there is no allocation of that number: all have been tried */
        allowed = -1;
        assert_int_equal(count_files(scratch.dir.text, ".tmp-"), 0);
        assert_in_range(failing, 0, 1000);
    }
    assert_true(unopened >= 2);
    assert_true(failing > 15);
    scratch_remove(&scratch);
}

/* The pack at `path` is the old one or a whole new one. Returns whether memory sufficed for all. */
static bool pack_and_unpack(const struct scratch *scratch, const char *path)
{
    struct gj_cache_packed packed;
    struct gj_cache_unpacked unpacked;
    struct gj_fault fault = {0};
    const struct path other = path_format("%.4000s/other", scratch->dir.text);
    gj_cache *target = gj_cache_open(other.text, NULL);
    const enum gj_pack_status made = gj_cache_pack(scratch->cache, path, NULL, &packed, &fault);
    if (made == GJ_PACK_DONE)
        assert_int_equal(packed.entries + packed.stamps + packed.left_out, 4);
    else
        assert_non_null(fault.what);
    const enum gj_pack_status taken =
        target ? gj_cache_unpack(target, path, NULL, &unpacked, &fault) : GJ_PACK_FAILED;
    if (made == GJ_PACK_DONE && taken == GJ_PACK_DONE)
        assert_int_equal(unpacked.entries + unpacked.stamps + unpacked.kept + unpacked.left_out,
                         packed.entries + packed.stamps);
    (void)gj_cache_clear(target);
    gj_cache_close(&target);
    return made == GJ_PACK_DONE && taken == GJ_PACK_DONE;
}

static void every_allocation_for_a_pack_may_fail(void **state)
{
    (void)state;
    struct scratch scratch;
    struct sample sample;
    struct gj_fault fault = {0};
    int failing = 0, failed = 0;
    scratch_make(&scratch);
    const struct path path = path_format("%.4000s/x.gjp", scratch.dir.text);
    for (unsigned seed = 1; seed <= 2; seed++) {
        sample_make(&sample, seed);
        assert_true(gj_cache_store(scratch.cache, &sample.name, &sample.entry) > 0);
    }
    gj_cache_compiler_put(scratch.cache, "id", "nvrtc 13.0"); /* and the default stamp */
    for (bool reached = true; reached; failing++) {
        allowed = failing;
        failed += !pack_and_unpack(&scratch, path.text);
        reached = allowed < 0;
        allowed = -1;
        assert_int_equal(count_files(scratch.dir.text, ".tmp-"), 0);
        assert_in_range(failing, 0, 1000);
    }
    assert_true(failed > 15);
    gj_pack *pack = gj_pack_open(path.text, &fault);
    assert_non_null(pack);
    assert_int_equal(gj_pack_count(pack), 4);
    gj_pack_close(&pack);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(every_allocation_for_a_pack_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
