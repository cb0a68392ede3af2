/* SPDX-License-Identifier: Apache-2.0 */
/* Sample entries and stamps, and checksums made right again after bytes were changed. */
#ifndef GJ_TESTS_FUZZ_SEAL_H
#define GJ_TESTS_FUZZ_SEAL_H

#include "fuzz.h"

/* Writes an entry; returns its bytes. */
size_t make_entry(unsigned number, uint8_t data[FUZZ_SEED_MAX]);
/* Writes the stamp of an identity; returns its bytes. */
size_t make_stamp(const char *identity, const char *version, uint8_t data[FUZZ_SEED_MAX]);

/* Makes the checksum and the lengths of the fields and the cubin right, as far as the bytes reach. Those that
 * are too short for a head stay. */
void seal_entry(uint8_t *data, size_t size);
/* The same of a stamp's check. */
void seal_stamp(uint8_t *data, size_t size);

#endif
