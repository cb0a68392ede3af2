/* SPDX-License-Identifier: Apache-2.0 */
/* Where an element of a slab of D or C lies in shared memory: lines of `line_bytes` (128, 64 or 32) in the TMA
 * swizzle of that width. Pure arithmetic; also compiled as host C by the tests. */
#pragma once

/* Bits of the 16-byte chunk index that the line flips: 3, 2 or 1 for lines of 128, 64 or 32 bytes. */
DEVICE u32 swizzle_of_line(u32 line, u32 line_bytes)
{
    return ((line * line_bytes) >> 7) & (line_bytes / 16 - 1);
}

/* Byte offset of byte `byte` (below line_bytes) of line `line`. */
DEVICE u32 slab_offset(u32 line, u32 byte, u32 line_bytes)
{
    return line * line_bytes + (byte ^ (swizzle_of_line(line, line_bytes) << 4));
}

/* Byte offset of element (row, column) of a 64-row slab, for elements of `bytes` bytes. n-major: a line is a row.
 * m-major: a line is a column, or with 4-byte elements half a column, the second halves behind all first ones
 * (`columns` lines). */
DEVICE u32 slab_element(u32 row, u32 column, u32 bytes, u32 m_major, u32 line_bytes, u32 columns)
{
    if (!m_major)
        return slab_offset(row, column * bytes, line_bytes);
    return slab_offset(column, row * bytes % line_bytes, line_bytes) + row * bytes / line_bytes * columns * line_bytes;
}

/* Where lane `lane` of warp `warp` puts or finds its first value of the slab's first 16 columns. With 2-byte elements
 * that is its row of an 8x8 matrix of stmatrix and ldmatrix; otherwise its first element. */
DEVICE u32 slab_lane_offset(u32 warp, u32 lane, u32 bytes, u32 m_major, u32 line_bytes, u32 columns)
{
    const u32 matrix = lane / 8;
    if (bytes == 2 && m_major)
        return slab_offset(8 * (matrix / 2) + lane % 8, 32 * warp + 16 * (matrix % 2), line_bytes);
    if (bytes == 2)
        return slab_offset(16 * warp + lane % 16, 16 * (lane / 16), line_bytes);
    return slab_element(16 * warp + lane / 4, 2 * (lane % 4), bytes, m_major, line_bytes, columns);
}
