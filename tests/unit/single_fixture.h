/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of sched=single on a fake libcuda with 132 places for clusters. */
#ifndef GJ_TESTS_SINGLE_FIXTURE_H
#define GJ_TESTS_SINGLE_FIXTURE_H

#include "fake_control.h"
#include "kernel_fixture.h"

#define ADDRESS(value) ((void *)(uintptr_t)(value))
#define ALONE(fields) "cluster=1x1,sched=single," fields
#define SWAPPED ALONE("tile=64x16,swap_ab=yes")

struct single {
    const char *library; /* of the fake; set by main */
    struct fake_cuda *fake;
    struct kernels kernels;
    struct fake_stream stream;
};
extern struct single single;

/* Set-up and tear-down of a cmocka test. */
int single_set_up(void **state);
int single_tear_down(void **state);

/* The next multiple of 16, which makes rows that TMA takes in every type. */
int64_t single_align(int64_t elements);

/* k-major operands, n-major outputs, a matrix behind the other. */
struct gj_gemm_args single_args(int64_t m, int64_t n, int64_t k, unsigned flags);

/* Launches the kernel of a key; what the fake saw. */
const struct fake_launch *single_launch(const char *key, const struct gj_gemm_args *args);

#endif
