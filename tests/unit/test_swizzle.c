/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of templates/swizzle.h as host C: the image of a slab of D in shared memory. Built once for each
 * SLAB_ROW_BYTES. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef uint32_t u32;
#define DEVICE static inline
#include "templates/swizzle.h"

#define ROWS 64
#define SLAB_BYTES (ROWS * SLAB_ROW_BYTES)

static void slab_offsets_are_a_bijection(void **state)
{
    (void)state;
    unsigned char seen[SLAB_BYTES] = {0};
    for (u32 row = 0; row < ROWS; row++) {
        for (u32 byte = 0; byte < SLAB_ROW_BYTES; byte++) {
            const u32 offset = slab_offset(row, byte, SLAB_ROW_BYTES);
            assert_true(offset < SLAB_BYTES);
            assert_int_equal(seen[offset], 0);
            seen[offset] = 1;
        }
    }
}

/* The TMA swizzles of 128, 64 and 32 bytes: 3, 2 or 1 address bits from bit 4 on are flipped by those from
 * bit 7 on. */
static void slab_offsets_are_those_of_tma(void **state)
{
    (void)state;
    const u32 mask = SLAB_ROW_BYTES == 128 ? 7 : SLAB_ROW_BYTES == 64 ? 3 : 1;
    for (u32 row = 0; row < ROWS; row++) {
        for (u32 byte = 0; byte < SLAB_ROW_BYTES; byte++) {
            const u32 plain = row * SLAB_ROW_BYTES + byte;
            assert_int_equal(slab_offset(row, byte, SLAB_ROW_BYTES), plain ^ (((plain >> 7) & mask) << 4));
        }
    }
}

/* Elements of 16 bytes and less stay whole. */
static void chunks_stay_whole(void **state)
{
    (void)state;
    for (u32 row = 0; row < ROWS; row++)
        for (u32 byte = 0; byte < SLAB_ROW_BYTES; byte++)
            assert_int_equal(slab_offset(row, byte, SLAB_ROW_BYTES),
                             slab_offset(row, byte & ~15u, SLAB_ROW_BYTES) + (byte & 15));
}

/* What the epilogue relies on: it computes one address per thread and reaches the other columns of its row by
 * an exclusive or, and the row 8 further down by an addition. */
static void other_columns_are_an_xor_away(void **state)
{
    (void)state;
    for (u32 row = 0; row < ROWS; row++) {
        for (u32 byte = 0; byte < 32; byte++) {
            for (u32 step = 0; 32 * step + byte < SLAB_ROW_BYTES; step++)
                assert_int_equal(slab_offset(row, byte, SLAB_ROW_BYTES) ^ (32 * step),
                                 slab_offset(row, byte + 32 * step, SLAB_ROW_BYTES));
            if (row + 8 < ROWS)
                assert_int_equal(slab_offset(row + 8, byte, SLAB_ROW_BYTES),
                                 slab_offset(row, byte, SLAB_ROW_BYTES) + 8 * SLAB_ROW_BYTES);
        }
    }
}

/* stmatrix x4: lane i gives the address of row i % 8 of matrix i / 8, and each matrix is written in one go.
 * The matrices of a warp: rows 0-7 and 8-15 of its 16 rows, columns 0-7, then 8-15. */
static void stmatrix_has_no_bank_conflict(void **state)
{
    (void)state;
    for (u32 warp = 0; warp < 4; warp++) {
        for (u32 step = 0; 32 * step < SLAB_ROW_BYTES; step++) {
            for (u32 matrix = 0; matrix < 4; matrix++) {
                u32 groups = 0; /* bank groups of 16 bytes: 8 of them are the 128 bytes of all banks */
                for (u32 lane = 8 * matrix; lane < 8 * matrix + 8; lane++) {
                    const u32 at =
                        slab_lane_offset(warp, lane, 2, 0, SLAB_ROW_BYTES, SLAB_ROW_BYTES / 2) ^ (32 * step);
                    assert_int_equal(at % 16, 0);
                    groups |= 1u << (at / 16 % 8);
                }
                assert_int_equal(groups, 0xff);
            }
        }
    }
}

/* Every element of a slab has a place of its own, in all types and both majors. Lines of SLAB_ROW_BYTES: what
 * an m-major slab has depends on its type alone. */
static void elements_are_a_bijection(void **state)
{
    (void)state;
    for (u32 bytes = 1; bytes <= 4; bytes *= 2) {
        for (u32 m_major = 0; m_major < 2; m_major++) {
            const u32 columns = m_major ? 32 : SLAB_ROW_BYTES / bytes;
            const u32 line = !m_major ? SLAB_ROW_BYTES : bytes == 1 ? 64 : 128;
            static unsigned char seen[64 * 128 * 4];
            memset(seen, 0, sizeof seen);
            for (u32 row = 0; row < 64; row++) {
                for (u32 column = 0; column < columns; column++) {
                    const u32 at = slab_element(row, column, bytes, m_major, line, columns);
                    assert_int_equal(at % bytes, 0);
                    assert_true(at < 64 * columns * bytes);
                    assert_int_equal(seen[at]++, 0);
                }
            }
        }
    }
}

/* m-major: what store_16x16 and load_16x16 add or flip to get from a lane's first element to its others. */
static void other_elements_of_m_major_slabs(void **state)
{
    (void)state;
    for (u32 warp = 0; warp < 4; warp++) {
        for (u32 lane = 0; lane < 32; lane++) {
            const u32 r = 16 * warp + lane / 4, c = 2 * (lane % 4);
            const u32 f32 = slab_lane_offset(warp, lane, 4, 1, 128, 32),
                      u8 = slab_lane_offset(warp, lane, 1, 1, 64, 32);
#define F32(row, column) slab_element(row, column, 4, 1, 128, 32)
#define U8(row, column) slab_element(row, column, 1, 1, 64, 32)
            assert_int_equal(f32, F32(r, c));
            assert_int_equal((f32 ^ 16) + 128, F32(r, c + 1));
            assert_int_equal(f32 ^ 32, F32(r + 8, c));
            assert_int_equal((f32 ^ 48) + 128, F32(r + 8, c + 1));
            assert_int_equal(f32 + 1024, F32(r, c + 8));
            assert_int_equal(f32 + 2048, F32(r, c + 16));
            assert_int_equal(u8, U8(r, c));
            assert_int_equal(u8 + 64, U8(r, c + 1));
            assert_int_equal(u8 + 8, U8(r + 8, c));
            assert_int_equal(u8 + 512, U8(r, c + 8));
            assert_int_equal(u8 + 1024, U8(r, c + 16));
#undef F32
#undef U8
        }
    }
}

/* stmatrix.trans, m-major: matrix j of a warp is rows 8 (j % 2) of its 16 and columns 8 (j / 2), stored by
 * columns. */
static void transposed_stmatrix(void **state)
{
    (void)state;
    for (u32 warp = 0; warp < 4; warp++) {
        for (u32 matrix = 0; matrix < 4; matrix++) {
            u32 groups = 0;
            for (u32 line = 0; line < 8; line++) {
                const u32 at = slab_lane_offset(warp, 8 * matrix + line, 2, 1, 128, 64);
                assert_int_equal(
                    at, slab_element(16 * warp + 8 * (matrix % 2), 8 * (matrix / 2) + line, 2, 1, 128, 64));
                groups |= 1u << (at / 16 % 8);
            }
            assert_int_equal(groups, 0xff);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_a_bijection),      cmocka_unit_test(other_elements_of_m_major_slabs),
        cmocka_unit_test(transposed_stmatrix),           cmocka_unit_test(slab_offsets_are_a_bijection),
        cmocka_unit_test(slab_offsets_are_those_of_tma), cmocka_unit_test(chunks_stay_whole),
        cmocka_unit_test(other_columns_are_an_xor_away), cmocka_unit_test(stmatrix_has_no_bank_conflict),
    };
    return cmocka_run_group_tests_name("swizzle", tests, NULL, NULL);
}
