/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cubin reader on two real cubins (arguments: abi8.cubin abi7.cubin) and on damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error_build.h"
#include "compile/cubin.h"

struct file {
    unsigned char *data;
    size_t size;
};

static const char *paths[2];

static struct file read_file(const char *path)
{
    struct file file = {NULL, 0};
    FILE *const stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    file.size = (size_t)ftell(stream);
    rewind(stream);
    file.data = malloc(file.size);
    assert_non_null(file.data);
    assert_int_equal(fread(file.data, 1, file.size, stream), file.size);
    fclose(stream);
    return file;
}

static struct gj_cubin_facts read_facts(const struct file *file, const char *entry)
{
    struct gj_cubin_facts facts;
    gj_error *error = NULL;
    const enum gj_status status = gj_cubin_read(file->data, file->size, entry, &facts, &error);
    if (status != GJ_OK)
        fail_msg("%s", error->message);
    assert_null(error);
    return facts;
}

static void check_mma_entry(const struct gj_cubin_facts *facts)
{
    assert_int_equal(facts->sm, 90);
    assert_int_equal(facts->num_entries, 2);
    assert_in_range(facts->registers, 8, 255);
    assert_int_equal(facts->frame_bytes, 0);
    assert_int_equal(facts->static_smem_bytes, 512);
    assert_int_equal(facts->max_threads, 128);
    assert_int_equal(facts->param_bytes, 24);
    assert_int_equal(facts->num_barriers, 4);
    assert_true(facts->census.instructions > 20);
    assert_int_equal(facts->census.mma, 1);
    assert_int_equal(facts->census.warpgroup, 2);
    assert_int_equal(facts->census.set_max_register, 1);
    assert_int_equal(facts->census.tma_load + facts->census.tma_store + facts->census.stmatrix, 0);
    assert_int_equal(facts->census.local_load + facts->census.local_store, 0);
}

static void check_local_entry(const struct gj_cubin_facts *facts)
{
    assert_int_equal(facts->sm, 90);
    assert_int_equal(facts->frame_bytes, 256);
    assert_int_equal(facts->static_smem_bytes, 0);
    assert_int_equal(facts->param_bytes, 12);
    assert_int_equal(facts->num_barriers, 0);
    assert_int_equal(facts->census.mma, 0);
    assert_int_equal(facts->census.set_max_register, 0);
    assert_true(facts->census.local_load > 0);
    assert_true(facts->census.local_store > 0);
}

static void facts_of_both_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct file file = read_file(paths[i]);
        struct gj_cubin_facts facts = read_facts(&file, "fixture_mma");
        check_mma_entry(&facts);
        facts = read_facts(&file, "fixture_local");
        check_local_entry(&facts);
        free(file.data);
    }
}

static void missing_entry_names_the_others(void **state)
{
    (void)state;
    const struct file file = read_file(paths[0]);
    struct gj_cubin_facts facts = {.sm = 7};
    gj_error *error = NULL;
    assert_int_equal(gj_cubin_read(file.data, file.size, "nothing", &facts, &error), GJ_ERR_COMPILE);
    assert_non_null(strstr(error->message, "nothing"));
    assert_non_null(strstr(error->message, "fixture_mma"));
    assert_non_null(strstr(error->message, "fixture_local"));
    assert_int_equal(facts.sm, 7);
    gj_error_free(&error);
    assert_int_equal(gj_cubin_read(file.data, file.size, "", &facts, NULL), GJ_ERR_COMPILE);
    free(file.data);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    struct gj_cubin_facts facts;
    gj_error *error = NULL;
    assert_int_equal(gj_cubin_read("", 0, "k", &facts, &error), GJ_ERR_COMPILE);
    gj_error_free(&error);
    static const char text[] =
        "this is a text of more than sixty-four bytes, which is how long an ELF header is";
    assert_int_equal(gj_cubin_read(text, sizeof(text), "k", &facts, &error), GJ_ERR_COMPILE);
    assert_non_null(strstr(error->message, "not a 64-bit"));
    gj_error_free(&error);
    const struct file self = read_file("/proc/self/exe"); /* an ELF, but not of CUDA */
    assert_int_equal(gj_cubin_read(self.data, self.size, "main", &facts, &error), GJ_ERR_COMPILE);
    assert_non_null(strstr(error->message, "machine"));
    gj_error_free(&error);
    free(self.data);
}

/* Every prefix is refused. Each is a block of its own, so that the sanitizer sees a read past its end. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct file file = read_file(paths[i]);
        for (size_t size = 0; size < file.size; size++) {
            unsigned char *const prefix = malloc(size ? size : 1);
            assert_non_null(prefix);
            memcpy(prefix, file.data, size);
            struct gj_cubin_facts facts;
            assert_int_equal(gj_cubin_read(prefix, size, "fixture_mma", &facts, NULL), GJ_ERR_COMPILE);
            free(prefix);
        }
        free(file.data);
    }
}

/* Damage at every byte: whatever the answer, nothing outside of the image is read and the error is whole. */
static void no_damage_crashes(void **state)
{
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < 2; i++) {
        const struct file file = read_file(paths[i]);
        for (size_t at = 0; at < file.size; at++) {
            const unsigned char kept = file.data[at];
            for (size_t v = 0; v < sizeof(values) + 8; v++) {
                file.data[at] = (unsigned char)(v < 8 ? kept ^ 1u << v : values[v - 8]);
                struct gj_cubin_facts facts;
                gj_error *error = NULL;
                const enum gj_status status =
                    gj_cubin_read(file.data, file.size, "fixture_local", &facts, &error);
                assert_true(status == GJ_OK ? !error : status == GJ_ERR_COMPILE && error->message[0]);
                gj_error_free(&error);
            }
            file.data[at] = kept;
        }
        free(file.data);
    }
}

/* Several damaged fields at once reach paths that one cannot. */
static void random_damage_does_not_crash(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 4000; round++) {
        const struct file file = read_file(paths[round & 1]);
        for (int i = 0; i < 1 + round % 40; i++) {
            seed = seed * 1664525u + 1013904223u;
            const size_t at = (seed >> 8) % file.size;
            seed = seed * 1664525u + 1013904223u;
            file.data[at] = (unsigned char)(seed >> 16);
        }
        struct gj_cubin_facts facts;
        const enum gj_status status = gj_cubin_read(file.data, file.size, "fixture_mma", &facts, NULL);
        assert_true(status == GJ_OK || status == GJ_ERR_COMPILE);
        free(file.data);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s abi8.cubin abi7.cubin\n", argv[0]);
        return 2;
    }
    paths[0] = argv[1];
    paths[1] = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_both_layouts),   cmocka_unit_test(missing_entry_names_the_others),
        cmocka_unit_test(other_files_are_refused), cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_damage_crashes),       cmocka_unit_test(random_damage_does_not_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
