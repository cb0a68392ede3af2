/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda that ends whoever opens it. */
#include <stdlib.h>

__attribute__((constructor)) static void end(void)
{
    abort();
}
