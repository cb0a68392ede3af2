/* SPDX-License-Identifier: Apache-2.0 */
/* What kernel_make.c and kernel_find.c share: one kernel on its way. */
#ifndef GJ_API_MAKING_H
#define GJ_API_MAKING_H

#include "api/context_private.h"

/* Everything on the way to one kernel. */
struct making {
    gj_context *context;
    struct gj_flight *flight;
    gj_kernel *kernel;
    struct gj_unit unit;
    struct gj_hash unit_hash;
    char version[64]; /* of the compiler; "" while unknown */
    bool is_damaged;  /* an entry was there and was refused */
    bool can_compile; /* there is a libnvrtc */
};

/* Which version the compiler has, without opening libnvrtc if anything else tells. */
void gj_making_find_version(struct making *making);

/* The entry that the kernel is, or should be, and its name. */
struct gj_cache_entry gj_making_entry(const struct making *making);
struct gj_cache_name gj_making_name(const struct making *making);

/* Fills the kernel from the disk cache; false when there is no sound entry. */
bool gj_making_load(struct making *making);
/* Where nothing can be compiled any compiler's entry will do, and a cache that was filled elsewhere knows
 * this machine's libnvrtc by no stamp: tries the version that published last into each place. */
bool gj_making_load_other(struct making *making);
/* Fills the kernel from the remote store; false when that has no sound entry or there is no store. */
bool gj_making_fetch(struct making *making);

#endif
