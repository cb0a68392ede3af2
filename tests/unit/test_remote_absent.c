/* SPDX-License-Identifier: Apache-2.0 */
/* The remote of a build without libcurl says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/remote.h"

static void it_says_why(void **state)
{
    (void)state;
    char *reason = NULL;
    const struct gj_remote_params params = {.url = "http://h"};
    gj_remote *remote = gj_remote_open(&params, NULL, &reason);
    assert_null(remote);
    assert_non_null(reason);
    assert_non_null(strstr(reason, "without libcurl"));
    free(reason);
    gj_remote_close(&remote);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
