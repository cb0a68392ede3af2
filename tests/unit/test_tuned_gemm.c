/* SPDX-License-Identifier: Apache-2.0 */
/* gj_gemm takes the config of a tuning table on the device that it was measured on. Argument: the fake
 * libcuda, on which only kernels that are in the cache can run. */
#include <gemmjit/launch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"

#define TUNED "tile=64x16,cluster=1x1,sched=coop,tiles=static,swap_ab=no"
#define FORMAT                                                                                             \
    "{\"format\": \"gemmjit-tuning\", \"version\": 1, \"entries\": [{\"gpu\": \"Fake GPU\", \"num_sms\": " \
    "132, \"problem\": \"%s\", \"n\": 48, \"k\": 64, \"batch\": 1, \"m_class\": 128, \"config\": \"" TUNED \
    "\", \"us\": 1, \"default_us\": 2, \"measured\": \"2026-12-01\"}]}"

static const char *library;
static struct kernels kernels;
static struct fake_cuda *fake;
static char table[] = "/tmp/gemmjit-tuned.XXXXXX";

static const struct gj_gemm_args basic = {
    .m = 100,
    .n = 48,
    .k = 64,
    .batch = 1,
    .a = {(void *)(uintptr_t)0x10000, 64, 0},
    .b = {(void *)(uintptr_t)0x20000, 64, 0},
    .d = {(void *)(uintptr_t)0x30000, 48, 0},
};

static int write_table(void)
{
    char problem[GJ_KEY_TEXT_MAX];
    const struct gj_key key = gj_key_default();
    gj_key_format(&key, problem, sizeof problem);
    *strstr(problem, ",tile=") = '\0';
    const int file = mkstemp(table);
    return file >= 0 && dprintf(file, FORMAT, problem) > 0 && close(file) == 0 ? 0 : -1;
}

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    setenv("GEMMJIT_TUNING", table, 1);
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    return 0;
}

/* What the last launch was of; NULL: the kernel is not in the cache. */
static const char *gemm(const struct gj_gemm_args *args, int device)
{
    const struct gj_key problem = gj_key_default();
    struct fake_stream stream = {.device = device};
    fake->current = device;
    fake_forget(fake);
    if (gj_gemm(kernels.context, &problem, args, &stream, NULL) != GJ_OK)
        return NULL;
    assert_int_equal(fake->num_launches, 1);
    return (const char *)fake->launches[0].function;
}

static void the_table_decides(void **state)
{
    (void)state;
    const struct gj_key tuned = key_of(TUNED);
    const struct gj_plan plan = plan_of(TUNED);
    kernels_add(&kernels, &tuned);
    for (int i = 0; i < 3; i++) /* chosen, then remembered */
        assert_string_equal(gemm(&basic, 0), plan.entry_name);
    struct gj_gemm_args args = basic;
    args.max_sms = 132;
    assert_string_equal(gemm(&args, 0), plan.entry_name);
    args = basic;
    args.m = 65;
    assert_string_equal(gemm(&args, 0), plan.entry_name);
    args.m = 64; /* of another class */
    assert_null(gemm(&args, 0));
}

static void what_was_measured_holds_for_a_whole_device(void **state)
{
    (void)state;
    const struct gj_key tuned = key_of(TUNED);
    struct gj_gemm_args args = basic;
    kernels_add(&kernels, &tuned);
    args.max_sms = 131;
    assert_null(gemm(&args, 0));
    assert_non_null(gemm(&basic, 0));
    assert_null(gemm(&args, 0));
}

/* Two devices with as many SMs and different names in one process. */
static void devices_have_their_own_choices(void **state)
{
    (void)state;
    const struct gj_key tuned = key_of(TUNED);
    fake->num_devices = 4;
    fake->other_from = 2;
    kernels_add(&kernels, &tuned);
    for (int i = 0; i < 2; i++) {
        assert_non_null(gemm(&basic, 0));
        assert_non_null(gemm(&basic, 1));
        assert_null(gemm(&basic, 2));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_table_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_measured_holds_for_a_whole_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(devices_have_their_own_choices, set_up, tear_down),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    if (write_table() != 0)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(table);
    return failed;
}
