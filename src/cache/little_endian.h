/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers in byte strings of any alignment, on any host. */
#ifndef GJ_CACHE_LITTLE_ENDIAN_H
#define GJ_CACHE_LITTLE_ENDIAN_H

#include <stdint.h>

static inline void gj_le16_put(unsigned char *at, uint16_t value)
{
    at[0] = (unsigned char)(value & 0xff);
    at[1] = (unsigned char)(value >> 8);
}

static inline void gj_le32_put(unsigned char *at, uint32_t value)
{
    gj_le16_put(at, (uint16_t)(value & 0xffff));
    gj_le16_put(at + 2, (uint16_t)(value >> 16));
}

static inline void gj_le64_put(unsigned char *at, uint64_t value)
{
    gj_le32_put(at, (uint32_t)(value & 0xffffffff));
    gj_le32_put(at + 4, (uint32_t)(value >> 32));
}

static inline uint16_t gj_le16_get(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t gj_le32_get(const unsigned char *at)
{
    return gj_le16_get(at) | (uint32_t)gj_le16_get(at + 2) << 16;
}

static inline uint64_t gj_le64_get(const unsigned char *at)
{
    return gj_le32_get(at) | (uint64_t)gj_le32_get(at + 4) << 32;
}

#endif
