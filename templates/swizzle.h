/* SPDX-License-Identifier: Apache-2.0 */
/* Where an element of D lies in its slab of staging memory: rows of SLAB_ROW_BYTES, in the TMA swizzle of that
 * width. Pure arithmetic; also compiled as host C by the tests. */
#pragma once

/* Bits of the 16-byte chunk index that the row flips: 3, 2 or 1 for rows of 128, 64 or 32 bytes. */
DEVICE u32 swizzle_of_row(u32 row)
{
    return ((row * SLAB_ROW_BYTES) >> 7) & (SLAB_ROW_BYTES / 16 - 1);
}

/* Byte offset of byte `byte` (below SLAB_ROW_BYTES) of row `row`. */
DEVICE u32 slab_offset(u32 row, u32 byte)
{
    return row * SLAB_ROW_BYTES + (byte ^ (swizzle_of_row(row) << 4));
}
