/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a pack: maps the file, and proves that every record of its index lies inside. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/cache_impl.h"
#include "cache/little_endian.h"
#include "cache/pack_impl.h"
#include "cache/temp_file.h"

static const char where_pack[] = "the pack";

/* -- The index --------------------------------------------------------------------------------------- */

/* Finds the index, which ends the file. NULL, or what is wrong. */
static const char *check_head(struct gj_pack *pack)
{
    const unsigned char *head = pack->data;
    if (memcmp(head, GJ_PACK_MAGIC, GJ_PACK_MAGIC_BYTES) != 0)
        return "does not begin as a pack does";
    if (gj_le32_get(head + GJ_PACK_VERSION_AT) != GJ_PACK_VERSION)
        return "has another format version";
    pack->count = gj_le32_get(head + GJ_PACK_COUNT_AT);
    if (pack->count == 0)
        return "has no members";
    const uint64_t idx_bytes = (uint64_t)pack->count * GJ_PACK_RECORD_BYTES;
    if (idx_bytes > pack->bytes - GJ_PACK_HEAD_BYTES)
        return "is shorter than its index";
    pack->idx = pack->data + pack->bytes - (size_t)idx_bytes;
    const struct gj_hash computed = gj_pack_checksum(head, pack->idx, (size_t)idx_bytes);
    if (memcmp(head + GJ_PACK_CHECKSUM_AT, computed.bytes, sizeof computed.bytes) != 0)
        return "has a wrong checksum of its index";
    return NULL;
}

/* `at` is where the record's member must begin, `end` where the index does; at <= end. */
static const char *check_record(const struct gj_pack_record *record, uint64_t at, uint64_t end)
{
    static const struct gj_hash zeros;
    if (record->kind == GJ_PACK_DEFAULT_STAMP &&
        memcmp(record->name.bytes, zeros.bytes, sizeof zeros.bytes) != 0)
        return "has a default stamp with a name";
    if (record->offset != at)
        return "has members that overlap or lie apart";
    if (record->bytes == 0 || record->bytes > gj_pack_most_bytes(record->kind))
        return "has a member of a wrong length";
    if (record->bytes > end - at)
        return "has a member that ends beyond it";
    return NULL;
}

/* Members fill the room between head and index in the order of the index, each at the first multiple of 16
 * behind the one before, so none can overlap. */
static const char *check_records(const struct gj_pack *pack)
{
    const uint64_t end = (uint64_t)(pack->idx - pack->data);
    uint64_t at = GJ_PACK_HEAD_BYTES;
    struct gj_pack_record last = {0};
    for (size_t i = 0; i < pack->count; i++) {
        struct gj_pack_record record;
        if (!gj_pack_record_get(pack->idx + i * GJ_PACK_RECORD_BYTES, &record))
            return "has a member of an unknown kind or with unknown flags";
        if (i > 0 && gj_pack_record_compare(&last, &record) >= 0)
            return "has members in a wrong order, or one twice";
        const char *what = check_record(&record, at, end);
        if (what)
            return what;
        at = gj_pack_align(record.offset + record.bytes);
        if (at > end)
            return "has a member that ends beyond it";
        last = record;
    }
    return at == end ? NULL : "has bytes between its members and its index";
}

/* -- The file ---------------------------------------------------------------------------------------- */

/* The path is the caller's word, so a link is followed; what counts is the file that was opened. O_NONBLOCK:
 * a FIFO must not make us wait for its writer. */
static int open_trusted(const char *path, size_t *bytes, struct gj_fault *fault)
{
    const int opened = gj_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    const int file = opened < 0 ? -1 : gj_descriptor_move(opened);
    if (file < 0) {
        *fault = gj_fault_errno(where_pack, "cannot be opened");
        return -1;
    }
    struct stat status;
    if (fstat(file, &status) != 0)
        *fault = gj_fault_errno(where_pack, "cannot be examined");
    else if (gj_trust_check(&status, false, where_pack, fault)) {
        *bytes = (size_t)status.st_size;
        if (status.st_size >= GJ_PACK_HEAD_BYTES && (uintmax_t)status.st_size <= PTRDIFF_MAX)
            return file;
        *fault = (struct gj_fault){.where = where_pack,
                                   .what = status.st_size < GJ_PACK_HEAD_BYTES
                                               ? "is shorter than the head of a pack"
                                               : "is too large for the address space"};
    }
    close(file);
    return -1;
}

static bool map_and_check(struct gj_pack *pack, struct gj_fault *fault)
{
    void *data = mmap(NULL, pack->bytes, PROT_READ, MAP_SHARED, pack->file, 0);
    if (data == MAP_FAILED && errno == ENODEV) /* file systems in user space may have private mappings only */
        data = mmap(NULL, pack->bytes, PROT_READ, MAP_PRIVATE, pack->file, 0);
    if (data == MAP_FAILED) {
        *fault = gj_fault_errno(where_pack, "cannot be mapped");
        return false;
    }
    pack->data = data;
    const char *what = check_head(pack);
    if (!what)
        what = check_records(pack);
    if (what)
        *fault = (struct gj_fault){.where = where_pack, .what = what};
    return what == NULL;
}

gj_pack *gj_pack_open(const char *path, struct gj_fault *fault)
{
    struct gj_pack *pack = calloc(1, sizeof *pack);
    if (!pack) {
        errno = ENOMEM;
        *fault = gj_fault_errno(where_pack, "cannot be opened");
        return NULL;
    }
    pack->file = open_trusted(path, &pack->bytes, fault);
    if (pack->file < 0 || !map_and_check(pack, fault))
        gj_pack_close(&pack);
    return pack;
}

void gj_pack_close(gj_pack **pack)
{
    if (!pack || !*pack)
        return;
    if ((*pack)->data)
        munmap((void *)(uintptr_t)(*pack)->data, (*pack)->bytes);
    if ((*pack)->file >= 0)
        close((*pack)->file);
    free(*pack);
    *pack = NULL;
}

bool gj_pack_is_intact(const gj_pack *pack, struct gj_fault *fault)
{
    struct stat status;
    struct gj_fault found = {.where = where_pack, .what = "has another length than when it was opened"};
    if (fstat(pack->file, &status) != 0)
        found = gj_fault_errno(where_pack, "cannot be examined");
    else if (S_ISREG(status.st_mode) && (uintmax_t)status.st_size == pack->bytes)
        return true;
    if (fault)
        *fault = found;
    return false;
}
