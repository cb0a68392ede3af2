/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files beside the place that a rename puts them in. */
#ifndef GJ_CACHE_TEMP_FILE_H
#define GJ_CACHE_TEMP_FILE_H

#include <sys/types.h>

#include "cache/cache_impl.h"

/* ".tmp-" pid "-" counter "-" random number, in hexadecimal. */
struct gj_temp_name {
    char text[sizeof GJ_TEMP_PREFIX + 8 + 1 + 8 + 1 + 16];
};

/* Makes a new file in the directory, with this mode less the umask, for writing. Returns -1 with *fault and
 * leaves none. */
int gj_temp_create(gj_cache *cache, int dir, mode_t mode, struct gj_temp_name *name, struct gj_fault *fault);
/* Writes all of the bytes; SIGXFSZ does not come of it. False with errno. */
bool gj_temp_write(int file, const void *data, size_t bytes);
/* fsync of a file or a directory. False with errno; where there is none to be had, true. */
bool gj_temp_sync(int descriptor);
/* The same, and what a close would say: some file systems tell only then that there was no room. The file
 * stays open. */
bool gj_temp_finish(int file);

/* In a process that runs with a standard stream closed a new file may have that stream's number, and whatever
 * the process says there would land in it: moves it out of the way. Returns -1, closed, with errno. */
int gj_descriptor_move(int file);

#endif
