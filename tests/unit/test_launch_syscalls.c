/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of a warm kernel calls nothing of the operating system: the kernel kills whoever does. On a fake
 * libcuda, which asks for its process's number only. Argument: the fake libcuda. */
#include <gemmjit/launch.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))

enum { NUM_WARM = 3, NUM_HOT = 1000, REFUSED = 77 };

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool is_sanitized = true; /* sanitizers call the system where they please */
#else
static const bool is_sanitized = false;
#endif

static struct fake_cuda *fake;
static struct kernels kernels;
static struct gj_key problem;
static gj_kernel *kernel;

static const struct gj_gemm_args small_m = {
    .m = 8,
    .n = 2048,
    .k = 2048,
    .batch = 1,
    .a = {ADDRESS(0x10000), 2048, 0},
    .b = {ADDRESS(0x20000), 2048, 0},
    .d = {ADDRESS(0x30000), 2048, 0},
};

/* From here on a system call other than the fake's getpid and the exit kills the process. False: not to be
 * had here. */
static bool forbid_system_calls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static int launch_kernel(struct fake_stream *stream)
{
    gj_kernel *found = NULL;
    CHILD_CHECK(gj_kernel_get(kernels.context, &problem, 0, &found, NULL) == GJ_OK && found == kernel);
    CHILD_CHECK(gj_launch(kernel, &small_m, stream, NULL) == GJ_OK);
    return 0;
}

static int launch_problem(struct fake_stream *stream)
{
    CHILD_CHECK(gj_gemm(kernels.context, &problem, &small_m, stream, NULL) == GJ_OK);
    return 0;
}

static int launch_often(void *one)
{
    int (*const launch_one)(struct fake_stream *) = *(int (**)(struct fake_stream *))one;
    struct fake_stream stream = {.device = 0};
    for (int i = 0; i < NUM_WARM; i++)
        CHILD_CHECK(launch_one(&stream) == 0);
    if (!forbid_system_calls())
        return REFUSED;
    for (int i = 0; i < NUM_HOT; i++) {
        fake_forget(fake);
        if (launch_one(&stream) != 0)
            return 1;
    }
    return 0;
}

static int call_the_system(void *unused)
{
    (void)unused;
    if (!forbid_system_calls())
        return REFUSED;
    (void)getppid();
    return 0;
}

static void check_quiet(int (*launch_one)(struct fake_stream *))
{
    if (is_sanitized || run_child(call_the_system, NULL) != 1000 + SIGSYS)
        skip(); /* no such filter here */
    assert_int_equal(run_child(launch_often, &launch_one), 0);
}

static void a_warm_kernel_is_launched_without_the_system(void **state)
{
    (void)state;
    problem = key_of("tile=64x64,cluster=1x1");
    kernel = kernels_get(&kernels, "tile=64x64,cluster=1x1");
    check_quiet(launch_kernel);
}

static void a_warm_problem_is_launched_without_the_system(void **state)
{
    (void)state;
    struct gj_key chosen;
    problem = gj_key_default();
    assert_int_equal(gj_key_choose(&problem, small_m.m, small_m.n, small_m.k, 1, 132, &chosen, NULL), GJ_OK);
    kernels_add(&kernels, &chosen);
    check_quiet(launch_problem);
}

static const char *library;

static int set_up(void **state)
{
    (void)state;
    fake = fake_use(library);
    fake->current = 0;
    kernels_open(&kernels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kernels_close(&kernels);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_warm_kernel_is_launched_without_the_system, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_warm_problem_is_launched_without_the_system, set_up, tear_down),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FAKE_CUDA\n", argv[0]);
        return 1;
    }
    library = argv[1];
    return cmocka_run_group_tests_name("launch system calls", tests, NULL, NULL);
}
