/* SPDX-License-Identifier: Apache-2.0 */
/* Taking the fake libcuda into use, and reading what it recorded. */
#ifndef GJ_TESTS_FAKE_CONTROL_H
#define GJ_TESTS_FAKE_CONTROL_H

#include "fake_cuda.h"

/* Makes the library the one that GEMMJIT_CUDA names and resets it: driver 13.0, two H100 with 132 SMs,
 * nothing current, nothing fails. */
struct fake_cuda *fake_use(const char *library);

int fake_count(const struct fake_cuda *fake, const char *name);
/* Forgets calls and launches; what is loaded and retained stays. */
void fake_forget(struct fake_cuda *fake);
/* Checks that exactly these calls were recorded, one word each. */
void fake_check_calls(const struct fake_cuda *fake, const char *words);
/* Has all calls of a function fail from now on; NULL: none fails. */
void fake_fail(struct fake_cuda *fake, const char *name, CUresult result);

#endif
