/* SPDX-License-Identifier: Apache-2.0 */
/* Packs. What opens has members that are found by name, lie in the file one behind the other, and are put
 * together to the same pack. The bytes are tried as they are, and with the checksums of index and members
 * made right. The mapping is a block of the heap, so that reads beyond it show. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "seal.h"

#include "cache/entry_format.h"
#include "cache/little_endian.h"
#include "cache/pack_impl.h"

/* -- Mappings ---------------------------------------------------------------------------------------------
 */

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __real_munmap(void *address, size_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *address, size_t size);

static uint8_t *mapped;

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (file < 0)
        return __real_mmap(address, size, protection, flags, file, offset);
    REQUIRE(!mapped && protection == PROT_READ);
    mapped = malloc(size);
    REQUIRE(mapped != NULL && pread(file, mapped, size, offset) == (ssize_t)size);
    return mapped;
}

int __wrap_munmap(void *address, size_t size)
{
    if (!mapped || address != mapped)
        return __real_munmap(address, size);
    free(mapped);
    mapped = NULL;
    return 0;
}

/* -- Checks -----------------------------------------------------------------------------------------------
 */

/* Puts a record of the member into the index `at`, and returns where the next member begins. */
static size_t put_record(uint8_t *at, const struct gj_pack_member *member, size_t offset)
{
    struct gj_pack_record record;
    REQUIRE(gj_pack_record_make(member->kind, member->name, &record));
    record.offset = offset;
    record.bytes = member->bytes;
    gj_pack_record_put(at, &record);
    return (size_t)gj_pack_align(offset + member->bytes);
}

static void check_member(const gj_pack *pack, const struct gj_pack_member *member)
{
    const void *data = NULL;
    size_t bytes = 0;
    const char *reason = NULL;
    struct gj_cache_entry entry;
    const bool is_entry = member->kind == GJ_PACK_ENTRY;
    REQUIRE(is_entry ? gj_pack_find_entry(pack, member->name, &data, &bytes)
                     : gj_pack_find_stamp(pack, member->name, &data, &bytes));
    REQUIRE(data == member->data && bytes == member->bytes);
    REQUIRE(!(is_entry ? gj_pack_find_stamp(pack, member->name, &data, &bytes)
                       : gj_pack_find_entry(pack, member->name, &data, &bytes)));
    if (is_entry && gj_entry_view(data, bytes, &entry, &reason))
        (void)gj_entry_name_problem(member->name, &entry);
    else if (!is_entry)
        (void)gj_stamp_check(member->name, data, bytes, &reason);
}

/* Head and index of a pack of these members are those of the bytes. */
static void check_accepted(const gj_pack *pack, const uint8_t *data, size_t size)
{
    const size_t count = gj_pack_count(pack), index_bytes = count * GJ_PACK_RECORD_BYTES;
    REQUIRE(count >= 1 && index_bytes < size);
    uint8_t *const idx = malloc(index_bytes), made[GJ_PACK_HEAD_BYTES] = {0};
    REQUIRE(idx != NULL);
    size_t at = GJ_PACK_HEAD_BYTES;
    struct gj_pack_member member;
    for (size_t i = 0; i < count; i++) {
        REQUIRE(gj_pack_member(pack, i, &member));
        REQUIRE((const uint8_t *)member.data == pack->data + at);
        check_member(pack, &member);
        at = put_record(idx + i * GJ_PACK_RECORD_BYTES, &member, at);
    }
    REQUIRE(at == size - index_bytes && memcmp(idx, data + at, index_bytes) == 0);
    memcpy(made, GJ_PACK_MAGIC, GJ_PACK_MAGIC_BYTES);
    gj_le32_put(made + GJ_PACK_VERSION_AT, GJ_PACK_VERSION);
    gj_le32_put(made + GJ_PACK_COUNT_AT, (uint32_t)count);
    const struct gj_hash checksum = gj_pack_checksum(made, idx, index_bytes);
    memcpy(made + GJ_PACK_CHECKSUM_AT, checksum.bytes, sizeof checksum.bytes);
    REQUIRE(memcmp(made, data, sizeof made) == 0);
    free(idx);
    struct gj_pack_member untouched, other;
    memset(&untouched, 0xa5, sizeof untouched);
    other = untouched;
    REQUIRE(!gj_pack_member(pack, count, &other) && memcmp(&other, &untouched, sizeof other) == 0);
    const void *found = data;
    size_t bytes = 7;
    REQUIRE(!gj_pack_find_entry(pack, "", &found, &bytes) && !gj_pack_find_stamp(pack, "x", &found, &bytes));
    REQUIRE(found == data && bytes == 7);
}

/* A pack that changes its length while it is open has no more members. */
static void check_cut(const gj_pack *pack, const struct fuzz_file *file, size_t size)
{
    struct gj_pack_member member;
    struct gj_fault fault = {0};
    REQUIRE(gj_pack_is_intact(pack, NULL) && ftruncate(file->file, (off_t)size - 1) == 0);
    REQUIRE(!gj_pack_member(pack, 0, &member) && !gj_pack_is_intact(pack, &fault) && fault.what[0] != '\0');
}

static void check(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file_make(data, size);
    struct gj_fault fault = {0};
    fuzz_memory_begin();
    gj_pack *pack = gj_pack_open(file.path, &fault);
    if (pack) {
        check_accepted(pack, data, size);
        check_cut(pack, &file, size);
    } else {
        REQUIRE(fault.where != NULL && fault.what != NULL && fault.what[0] != '\0' && fault.error == 0);
    }
    gj_pack_close(&pack);
    REQUIRE(pack == NULL && mapped == NULL);
    REQUIRE(fuzz_memory_end() <= 8 * size + 2048);
    fuzz_file_close(&file);
}

/* -- Inputs -----------------------------------------------------------------------------------------------
 */

static void seal_index(uint8_t *data, size_t size)
{
    const size_t index_bytes = (size_t)gj_le32_get(data + GJ_PACK_COUNT_AT) * GJ_PACK_RECORD_BYTES;
    if (index_bytes > size - GJ_PACK_HEAD_BYTES)
        return;
    const struct gj_hash checksum = gj_pack_checksum(data, data + size - index_bytes, index_bytes);
    memcpy(data + GJ_PACK_CHECKSUM_AT, checksum.bytes, sizeof checksum.bytes);
}

/* Makes right what the records name as entries and stamps. */
static void seal_members(uint8_t *data, size_t size)
{
    const size_t count = gj_le32_get(data + GJ_PACK_COUNT_AT);
    if (count > (size - GJ_PACK_HEAD_BYTES) / GJ_PACK_RECORD_BYTES)
        return;
    const size_t end = size - count * GJ_PACK_RECORD_BYTES;
    for (const uint8_t *at = data + end; at < data + size; at += GJ_PACK_RECORD_BYTES) {
        struct gj_pack_record record;
        if (!gj_pack_record_get(at, &record) || record.offset < GJ_PACK_HEAD_BYTES || record.offset > end ||
            record.bytes > end - record.offset)
            continue;
        if (record.kind == GJ_PACK_ENTRY)
            seal_entry(data + record.offset, (size_t)record.bytes);
        else
            seal_stamp(data + record.offset, (size_t)record.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size);
    if (size < GJ_PACK_HEAD_BYTES)
        return 0;
    uint8_t *const sealed = fuzz_copy(data, size);
    seal_members(sealed, size);
    seal_index(sealed, size);
    check(sealed, size);
    free(sealed);
    return 0;
}

/* Appends a member; returns where the next one begins. */
static size_t add_member(uint8_t *data, size_t at, const uint8_t *bytes, struct gj_pack_member *member)
{
    memcpy(data + at, bytes, member->bytes);
    member->data = data + at;
    return (size_t)gj_pack_align(at + member->bytes);
}

size_t fuzz_seed(size_t idx, uint8_t data[FUZZ_SEED_MAX])
{
    /* entries, stamps, default stamps */
    static const int kinds[][3] = {{1, 0, 0}, {2, 1, 1}, {0, 0, 1}, {0, 1, 0}};
    uint8_t bytes[FUZZ_SEED_MAX];
    struct gj_pack_member members[4];
    size_t count = 0, at = GJ_PACK_HEAD_BYTES;
    if (idx >= sizeof kinds / sizeof kinds[0])
        return 0;
    memset(data, 0, FUZZ_SEED_MAX);
    for (int kind = GJ_PACK_ENTRY; kind <= GJ_PACK_DEFAULT_STAMP; kind++) {
        for (int i = 0; i < kinds[idx][kind - 1]; i++) {
            struct gj_pack_member *const member = &members[count++];
            static const char *const names[] = {"0123456789abcdef0123456789abcdef.gjc",
                                                "1123456789abcdef0123456789abcdef.gjc"};
            const char *const identity = kind == GJ_PACK_STAMP ? "libnvrtc" : "";
            *member = (struct gj_pack_member){.kind = (enum gj_pack_kind)kind};
            member->bytes =
                kind == GJ_PACK_ENTRY ? make_entry((unsigned)i, bytes) : make_stamp(identity, "1", bytes);
            const struct gj_hash hash = gj_hash_bytes(identity, strlen(identity));
            gj_hash_hex(&hash, member->name);
            if (kind != GJ_PACK_STAMP)
                strcpy(member->name, kind == GJ_PACK_ENTRY ? names[i] : GJ_STAMP_DEFAULT);
            at = add_member(data, at, bytes, member);
        }
    }
    size_t offset = GJ_PACK_HEAD_BYTES;
    for (size_t i = 0; i < count; i++)
        offset = put_record(data + at + i * GJ_PACK_RECORD_BYTES, &members[i], offset);
    memcpy(data, GJ_PACK_MAGIC, GJ_PACK_MAGIC_BYTES);
    gj_le32_put(data + GJ_PACK_VERSION_AT, GJ_PACK_VERSION);
    gj_le32_put(data + GJ_PACK_COUNT_AT, (uint32_t)count);
    seal_index(data, at + count * GJ_PACK_RECORD_BYTES);
    return at + count * GJ_PACK_RECORD_BYTES;
}
