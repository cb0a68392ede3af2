/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write them. */
#ifndef GJ_BASE_SIZE_TEXT_H
#define GJ_BASE_SIZE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#define GJ_SIZE_TEXT_RULE \
    "a whole number of bytes up to 1024T, with K, M, G or T behind it for powers of 1024"

/* Reads such a text; false, and *bytes as it was, when it is none. */
bool gj_size_text_read(const char *text, uint64_t *bytes);

#endif
