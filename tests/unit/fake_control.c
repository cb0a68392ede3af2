/* SPDX-License-Identifier: Apache-2.0 */
/* The test's side of the fake libcuda. */
#include "fake_control.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake_cuda *fake_use(const char *library)
{
    setenv("GEMMJIT_CUDA", library, 1);
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fail_msg("%s", dlerror());
    struct fake_cuda *const fake = dlsym(handle, FAKE_CUDA_STATE);
    assert_non_null(fake);
    memset(fake, 0, sizeof *fake);
    pthread_mutex_init(&fake->lock, NULL);
    fake->driver_version = 13000;
    fake->num_devices = 2;
    fake->major = 9;
    fake->num_sms = 132;
    fake->max_clusters = 66;
    fake->current = -1;
    fake->num_maps = 4;
    return fake;
}

int fake_count(const struct fake_cuda *fake, const char *name)
{
    int count = 0;
    assert_in_range(fake->num_calls, 0, FAKE_CALLS);
    for (int i = 0; i < fake->num_calls; i++)
        count += strcmp(fake->calls[i], name) == 0;
    return count;
}

void fake_forget(struct fake_cuda *fake)
{
    fake->num_calls = fake->num_illegal = fake->num_launches = 0;
}

void fake_check_calls(const struct fake_cuda *fake, const char *words)
{
    char text[4096] = "";
    size_t length = 0;
    for (int i = 0; i < fake->num_calls && i < FAKE_CALLS && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "", fake->calls[i]);
    assert_string_equal(text, words);
}

void fake_fail(struct fake_cuda *fake, const char *name, CUresult result)
{
    fake->fails = name;
    fake->fails_from = fake->fails_to = 0;
    fake->fail_result = result;
}
