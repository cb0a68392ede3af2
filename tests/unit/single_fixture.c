/* SPDX-License-Identifier: Apache-2.0 */
#include "single_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct single single;

int single_set_up(void **state)
{
    (void)state;
    single.fake = fake_use(single.library);
    single.fake->current = 0;
    single.fake->max_clusters = 132;
    kernels_open(&single.kernels);
    return 0;
}

int single_tear_down(void **state)
{
    (void)state;
    kernels_close(&single.kernels);
    return 0;
}

int64_t single_align(int64_t elements)
{
    return (elements + 15) / 16 * 16;
}

struct gj_gemm_args single_args(int64_t m, int64_t n, int64_t k, unsigned flags)
{
    return (struct gj_gemm_args){.m = m,
                                 .n = n,
                                 .k = k,
                                 .batch = 1,
                                 .a = {ADDRESS(0x10000), single_align(k), 0},
                                 .b = {ADDRESS(0x20000), single_align(k), single_align(k) * n},
                                 .d = {ADDRESS(0x30000), single_align(n), single_align(n) * m},
                                 .flags = flags};
}

const struct fake_launch *single_launch(const char *key, const struct gj_gemm_args *args)
{
    gj_error *error = NULL;
    gj_kernel *const kernel = kernels_get(&single.kernels, key);
    fake_forget(single.fake);
    if (gj_launch(kernel, args, &single.stream, &error) != GJ_OK)
        fail_msg("%s: %s", key, error->message);
    assert_int_equal(single.fake->num_launches, 1);
    return &single.fake->launches[0];
}
