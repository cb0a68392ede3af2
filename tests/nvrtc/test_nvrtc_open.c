/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how libnvrtc is found, opened and refused, on fake libraries: needs no NVRTC.
 * Arguments: libraries of version 11.8, of 12.3 (empty image), of 13.0 without nvrtcGetCUBIN. */
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/error_build.h"
#include "compile/compile.h"

static char old_path[PATH_MAX], empty_path[PATH_MAX], lacking_path[PATH_MAX];
static char folder[] = "/tmp/gj_nvrtc_XXXXXX";

static void set(enum gj_env variable, const char *value)
{
    if (value)
        setenv(gj_env_name(variable), value, 1);
    else
        unsetenv(gj_env_name(variable));
}

static int clear_environment(void **state)
{
    (void)state;
    set(GJ_ENV_NVRTC, NULL);
    set(GJ_ENV_LD_LIBRARY_PATH, NULL);
    set(GJ_ENV_CUDA_HOME, NULL);
    set(GJ_ENV_CUDA_PATH, NULL);
    return 0;
}

/* Path of `name` in the test's folder. */
static const char *in_folder(char path[PATH_MAX], const char *name)
{
    assert_true(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
    return path;
}

static void make_file(const char *name)
{
    char path[PATH_MAX];
    FILE *const file = fopen(in_folder(path, name), "w");
    assert_non_null(file);
    fputs("not a library\n", file);
    fclose(file);
}

static void check_located(const char *name)
{
    struct gj_compiler_identity identity;
    char path[PATH_MAX];
    assert_true(gj_compiler_locate(&identity));
    assert_string_equal(identity.path, in_folder(path, name));
    assert_int_equal(strncmp(identity.text, path, strlen(path)), 0);
    assert_int_equal(identity.text[strlen(path)], '|');
}

static void check_refused(const char *path, int num_words, const char *const *words)
{
    set(GJ_ENV_NVRTC, path);
    gj_compiler *compiler = NULL;
    gj_error *error = NULL;
    assert_int_equal(gj_compiler_open(&compiler, &error), GJ_ERR_NO_COMPILER);
    assert_null(compiler);
    assert_int_equal(error->stage, GJ_STAGE_COMPILE);
    for (int i = 0; i < num_words; i++)
        if (!strstr(error->message, words[i]))
            fail_msg("\"%s\" is not in \"%s\"", words[i], error->message);
    gj_error_free(&error);
    assert_int_equal(gj_compiler_open(&compiler, NULL), GJ_ERR_NO_COMPILER);
}

/* -- Finding --------------------------------------------------------------------------------------------- */

static void search_order(void **state)
{
    (void)state;
    char path[PATH_MAX], list[3 * PATH_MAX];
    static const char *const folders[] = {"a", "b", "home", "home/lib64", "path", "path/lib64"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        assert_int_equal(mkdir(in_folder(path, folders[i]), 0700), 0);

    make_file("path/lib64/libnvrtc.so");
    set(GJ_ENV_CUDA_PATH, in_folder(path, "path"));
    check_located("path/lib64/libnvrtc.so");
    make_file("path/lib64/libnvrtc.so.12");
    check_located("path/lib64/libnvrtc.so.12");
    make_file("path/lib64/libnvrtc.so.13");
    check_located("path/lib64/libnvrtc.so.13");
    /* The place counts before the version. */
    set(GJ_ENV_CUDA_HOME, in_folder(path, "home"));
    check_located("path/lib64/libnvrtc.so.13");
    make_file("home/lib64/libnvrtc.so");
    check_located("home/lib64/libnvrtc.so");
    snprintf(list, sizeof(list), ":%s/none::%s/a:%s/b", folder, folder, folder);
    set(GJ_ENV_LD_LIBRARY_PATH, list);
    make_file("b/libnvrtc.so.12");
    check_located("b/libnvrtc.so.12");
    /* A directory is no library. */
    assert_int_equal(mkdir(in_folder(path, "a/libnvrtc.so.13"), 0700), 0);
    check_located("b/libnvrtc.so.12");
    make_file("a/libnvrtc.so.12");
    check_located("a/libnvrtc.so.12");
    make_file("given");
    set(GJ_ENV_NVRTC, in_folder(path, "given"));
    check_located("given");
    /* A wrong $GEMMJIT_NVRTC is not made good by another place. */
    struct gj_compiler_identity identity;
    set(GJ_ENV_NVRTC, in_folder(path, "nothing"));
    assert_false(gj_compiler_locate(&identity));
    assert_string_equal(identity.path, "");
    assert_string_equal(identity.text, "");
}

static void identity_follows_the_file(void **state)
{
    (void)state;
    char path[PATH_MAX], target[PATH_MAX];
    struct gj_compiler_identity first, second;
    make_file("one");
    make_file("two");
    assert_int_equal(symlink(in_folder(target, "one"), in_folder(path, "link")), 0);
    set(GJ_ENV_NVRTC, path);
    check_located("one");
    assert_true(gj_compiler_locate(&first));
    assert_true(gj_compiler_locate(&second));
    assert_string_equal(first.text, second.text);

    const struct timeval times[2] = {{1000, 0}, {1000, 1}};
    assert_int_equal(utimes(target, times), 0);
    assert_true(gj_compiler_locate(&second));
    assert_string_not_equal(first.text, second.text);

    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(in_folder(target, "two"), path), 0);
    check_located("two");
}

/* -- Opening --------------------------------------------------------------------------------------------- */

static void missing_library(void **state)
{
    (void)state;
    check_refused("/nowhere/libnvrtc.so", 2, (const char *const[]){"GEMMJIT_NVRTC", "/nowhere/libnvrtc.so"});
}

static void not_a_library(void **state)
{
    (void)state;
    char path[PATH_MAX];
    make_file("text");
    check_refused(in_folder(path, "text"), 2, (const char *const[]){"text", "cannot be loaded"});
}

static void too_old(void **state)
{
    (void)state;
    check_refused(old_path, 4, (const char *const[]){old_path, "too old", "found NVRTC 11.8", "needed 12.3"});
}

static void lacking_a_symbol(void **state)
{
    (void)state;
    check_refused(lacking_path, 2, (const char *const[]){lacking_path, "nvrtcGetCUBIN"});
}

static void empty_image_is_refused(void **state)
{
    (void)state;
    set(GJ_ENV_NVRTC, empty_path);
    gj_compiler *compiler = NULL;
    gj_error *error = NULL;
    assert_int_equal(gj_compiler_open(&compiler, &error), GJ_OK);
    assert_string_equal(gj_compiler_version(compiler), "nvrtc 12.3");
    assert_string_equal(gj_compiler_path(compiler), empty_path);

    const enum gj_image kinds[] = {GJ_IMAGE_CUBIN, GJ_IMAGE_PTX};
    for (int i = 0; i < 2; i++) {
        const struct gj_compile_request request = {
            .unit = "", .name = "n", .entry_name = "k", .kind = kinds[i]};
        struct gj_compile_result result = {.bytes = 77};
        assert_int_equal(gj_compiler_run(compiler, &request, &result, &error), GJ_ERR_COMPILE);
        assert_non_null(strstr(error->message, "empty"));
        assert_non_null(strstr(error->detail, gj_compile_options()));
        assert_int_equal(result.bytes, 77);
        gj_error_free(&error);
    }
    gj_compiler_close(&compiler);
    assert_null(compiler);
    gj_compiler_close(&compiler);
    gj_compiler_close(NULL);
}

static void options_do_not_depend_on_a_library(void **state)
{
    (void)state;
    assert_string_equal(gj_compile_options(),
                        "-arch=sm_90a -std=c++17 -default-device --minimal --ptxas-options=-v --no-cache");
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

int main(int argc, char **argv)
{
    /* Messages and identities name the real path. */
    if (argc != 4 || !realpath(argv[1], old_path) || !realpath(argv[2], empty_path) ||
        !realpath(argv[3], lacking_path) || !mkdtemp(folder)) {
        fprintf(stderr, "usage: %s OLD EMPTY LACKING, with /tmp writable\n", argv[0]);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(search_order, clear_environment),
        cmocka_unit_test_setup(identity_follows_the_file, clear_environment),
        cmocka_unit_test_setup(missing_library, clear_environment),
        cmocka_unit_test_setup(not_a_library, clear_environment),
        cmocka_unit_test_setup(too_old, clear_environment),
        cmocka_unit_test_setup(lacking_a_symbol, clear_environment),
        cmocka_unit_test_setup(empty_image_is_refused, clear_environment),
        cmocka_unit_test(options_do_not_depend_on_a_library),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
