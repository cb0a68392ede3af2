/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of packs share: packs put together byte by byte, apart from the code that writes them. */
#ifndef GJ_TESTS_PACK_FIXTURE_H
#define GJ_TESTS_PACK_FIXTURE_H

#include "cache/pack.h"
#include "cache_fixture.h"

enum { PACK_HEAD_BYTES = 32, PACK_RECORD_BYTES = 40, PACK_MAX = 16384, PACK_MEMBERS_MAX = 8 };

struct part {
    int kind;      /* 1 entry, 2 stamp, 3 default stamp */
    char name[40]; /* of the file */
    unsigned char data[1024];
    size_t bytes;
};
/* The file of an entry with a cubin of a few bytes. */
struct part part_entry(unsigned seed);
/* The stamp of this identity; "" gives the default one. */
struct part part_stamp(const char *identity, const char *version);

struct built {
    unsigned char data[PACK_MAX];
    size_t bytes, count;
    size_t offset[PACK_MEMBERS_MAX]; /* of the members, and their lengths */
    size_t length[PACK_MEMBERS_MAX];
};
/* The pack of these parts, in this order. */
void pack_build(struct built *built, const struct part *parts, size_t count);
/* Makes the checksum right again. */
void pack_seal(struct built *built);
/* The record of a member. */
unsigned char *pack_record(struct built *built, size_t idx);

/* A cache's directory with exactly these parts. */
void put_parts(struct scratch *scratch, const struct part *parts, size_t count);
struct path part_path(const char *root, const struct part *part);

#endif
