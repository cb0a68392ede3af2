/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: one read-only file that holds many entries and compiler stamps of a cache, to be shipped with an
 * image. No path, host or time is in it, so it is read wherever it is put. Format: docs/cache_format.md.
 *
 *     gj_pack *pack = gj_pack_open(path, &fault);
 *     if (pack && gj_pack_find_entry(pack, name, &data, &bytes) && gj_entry_view(data, bytes, &entry, &why))
 *         ... entry.cubin is in the mapping ...
 *     gj_pack_close(&pack);
 *
 * Opening looks at the head and the index and at no member: whoever finds one checks it before use, an entry
 * by gj_entry_view, a stamp by gj_stamp_check. */
#ifndef GJ_CACHE_PACK_H
#define GJ_CACHE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"

struct gj_fault; /* cache_impl.h */

/* -- Reading ----------------------------------------------------------------------------------------- */

typedef struct gj_pack gj_pack;

/* Maps the file for reading and keeps it open. It must be a regular file (a link to one is followed) that
 * belongs to the effective user or to root and that neither its group nor others may write. NULL with *fault,
 * whose error is ENOENT when there is no such file. */
gj_pack *gj_pack_open(const char *path, struct gj_fault *fault);
/* Ends the use of every pointer that was found in it. NULL and a pointer to NULL are legal. */
void gj_pack_close(gj_pack **pack);

/* Everything below may be called from any thread until the pack is closed.
 *
 * Whether the file is as long as it was when it was opened; else *fault, which may be NULL. Every find asks
 * this first, and finds nothing when it is not. A file that shrinks after that, while its bytes are read,
 * kills the process (SIGBUS): a pack is replaced by rename, never written in place. */
bool gj_pack_is_intact(const gj_pack *pack, struct gj_fault *fault);
/* The bytes of an entry's file, e.g. "<32 hex>.gjc", or of a stamp's, "<32 hex>" or "default", within the
 * mapping; valid until the pack is closed, at a multiple of 16. False, and the results untouched, when there
 * is none or the pack is not intact. */
bool gj_pack_find_entry(const gj_pack *pack, const char *entry_name, const void **data, size_t *bytes);
bool gj_pack_find_stamp(const gj_pack *pack, const char *stamp_name, const void **data, size_t *bytes);

enum gj_pack_kind { GJ_PACK_ENTRY = 1, GJ_PACK_STAMP = 2, GJ_PACK_DEFAULT_STAMP = 3 };

struct gj_pack_member {
    enum gj_pack_kind kind;
    char name[40]; /* of its file */
    const void *data;
    size_t bytes;
};
/* Number of members, at least 1. */
size_t gj_pack_count(const gj_pack *pack);
/* Member idx of gj_pack_count: entries by name, then stamps by name, then the default stamp. False, and
 * *member untouched, when idx is too large or the pack is not intact. */
bool gj_pack_member(const gj_pack *pack, size_t idx, struct gj_pack_member *member);

/* -- Making and taking apart ------------------------------------------------------------------------- */

enum gj_pack_status {
    GJ_PACK_DONE,    /* all of it, or all but what was told */
    GJ_PACK_REFUSED, /* the path is none for a pack, or what it names is none: nothing was done */
    GJ_PACK_FAILED,  /* the work failed */
};

/* Hears of each file or member that is left out: its path in the cache, or its name in the pack, and why. */
struct gj_pack_listener {
    void (*left_out)(void *user, const char *name, const char *reason); /* NULL: nobody is told */
    void *user;
};

struct gj_cache_packed {
    uint64_t entries, stamps; /* in the pack */
    uint64_t bytes;           /* of the pack */
    uint64_t left_out;        /* damaged entries and stamps, and directories that could not be read */
};
/* Writes a pack of all that is sound in the cache's directory. A regular file at `path` is replaced (of a
 * link, the file that it names); until the pack is whole and synced that one stays, whatever happens. Equal
 * entries and stamps give equal bytes. Holds one member in memory at a time. Sets no time of an entry.
 * DONE; REFUSED when `path` is a directory, some other special file, or within the cache's own v1; FAILED
 * when the cache cannot be read or has no sound entry, or the pack cannot be written. *fault says why. */
enum gj_pack_status gj_cache_pack(gj_cache *cache, const char *path, const struct gj_pack_listener *listener,
                                  struct gj_cache_packed *result, struct gj_fault *fault);

struct gj_cache_unpacked {
    uint64_t entries, stamps; /* published */
    uint64_t bytes;           /* of these */
    uint64_t kept;            /* were there, sound */
    uint64_t left_out;        /* damaged members */
};
/* Publishes the members of a pack in the cache's directory, each after a check of all of its bytes and of its
 * name. What is there under that name stays if it is sound. DONE; REFUSED when `path` is no pack; FAILED when
 * a member cannot be published, or the pack changed: *result counts what was done until then, and doing it
 * again goes on. *fault says why. */
enum gj_pack_status gj_cache_unpack(gj_cache *cache, const char *path,
                                    const struct gj_pack_listener *listener, struct gj_cache_unpacked *result,
                                    struct gj_fault *fault);

#endif
