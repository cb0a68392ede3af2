/* SPDX-License-Identifier: Apache-2.0 */
/* What a test sets and reads of the forwarding libnvrtc: one struct, found by dlsym under
 * FORWARD_NVRTC_STATE. */
#ifndef GJ_TESTS_FORWARD_NVRTC_H
#define GJ_TESTS_FORWARD_NVRTC_H

#include <pthread.h>

#define FORWARD_NVRTC_STATE "forward_nvrtc_state"

struct forward_nvrtc {
    const char *real; /* path of the libnvrtc that does the work */
    int major, minor; /* version to report */
    int is_held;      /* compiles wait until it is 0 */
    int num_compiles; /* begun */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

#endif
