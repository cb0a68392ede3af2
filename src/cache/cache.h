/* SPDX-License-Identifier: Apache-2.0 */
/* Disk cache of cubins: one file per entry, checked on every load, published by rename.
 *
 * The cache is never a reason to fail: whatever the file system does, a load is a hit or a miss and a store
 * succeeds or is counted as a failure. Format: docs/cache_format.md. Thread-safe. */
#ifndef GJ_CACHE_CACHE_H
#define GJ_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "remote/remote.h"

typedef struct gj_cache gj_cache;

/* Opens the cache. root NULL: the default chain of design ($GEMMJIT_CACHE_DIR, $XDG_CACHE_HOME/gemmjit,
 * $HOME/.cache/gemmjit). "" names no directory: the cache is off. The directory is made (0700, with its
 * parents) by the first store, not here. When no root can be used the cache is off and gj_cache_off_reason
 * says why; one warning goes to the log at the first use. Returns NULL only when memory runs out. */
gj_cache *gj_cache_open(const char *root, const struct gj_log *log);
/* As gj_cache_open, with more to say. */
struct gj_cache_params {
    const char *root;
    bool read_only; /* nothing is written: no entry, stamp, lock, directory, or time of a file */
    /* Further places that are searched in this order after the root and never written: directories of the
     * cache's layout and packs. One that cannot be used is left out with a warning. NULL: those that
     * $GEMMJIT_CACHE_LAYERS names, separated by ':'. */
    const char *const *layers;
    size_t num_layers;
    /* URL of a remote store; NULL: $GEMMJIT_CACHE_REMOTE, and then upload is $GEMMJIT_CACHE_UPLOAD; "": none.
     * One that cannot be used is left out with a warning. */
    const char *remote;
    bool upload; /* what is stored is sent there too */
    /* Bytes that the root's entries may have together: after each store those go that were used least
     * recently, see gj_cache_trim. 0: what $GEMMJIT_CACHE_MAX_SIZE says, else no bound. */
    uint64_t max_bytes;
};
gj_cache *gj_cache_open_as(const struct gj_cache_params *params, const struct gj_log *log);
void gj_cache_close(gj_cache **cache);
/* NULL while the cache is on; else one sentence. */
const char *gj_cache_off_reason(const gj_cache *cache);
/* Root directory, or "" when there is none. */
const char *gj_cache_root(const gj_cache *cache);
/* The layers, also those that are left out: path of one, and why it is not used or NULL. */
size_t gj_cache_num_layers(const gj_cache *cache);
const char *gj_cache_layer(const gj_cache *cache, size_t index, const char **off_reason);
/* URL of the remote store, without credentials, or NULL; "" with the reason when it was left out. */
const char *gj_cache_remote(const gj_cache *cache, const char **off_reason);
/* Whether it was opened to be read only: gj_cache_store and gj_cache_compiler_put then do nothing. */
bool gj_cache_is_read_only(const gj_cache *cache);
/* Whether the file system would let a store begin: false, with the reason appended to *reason, when the cache
 * is off or can only be read. Writes nothing. What fills up or changes later is told by the store. */
bool gj_cache_is_writable(const gj_cache *cache, struct gj_strbuf *reason);

enum gj_cache_place { GJ_CACHE_PLACE_ROOT, GJ_CACHE_PLACE_LAYER, GJ_CACHE_PLACE_REMOTE };

/* What an entry holds. On load the strings and the cubin point into one allocation owned by the entry. */
struct gj_cache_entry {
    const char *key_text;
    struct gj_hash unit_hash; /* of the unit text */
    const char *compiler;     /* "nvrtc 13.0" */
    const char *arch;         /* "sm_90a" */
    const char *options;
    const char *entry_name;
    int32_t registers, threads, smem_bytes, stages, spill_bytes;
    const void *cubin;
    size_t cubin_bytes;
    size_t file_bytes;         /* set by a load: bytes of the entry */
    enum gj_cache_place place; /* set by a load: where it was found */
    bool is_on_disk;           /* set by a load: in the root or a layer, also if it was fetched */
    void *storage; /* freed by gj_cache_entry_free. NULL: the caller's, or a pack's, there until the cache
                      closes */
};
void gj_cache_entry_free(struct gj_cache_entry *entry);

/* Name of the entry's file: hash of format version, unit text, compiler, arch and options. */
struct gj_cache_name {
    char text[40]; /* 32 hexadecimal digits + ".gjc" */
};
struct gj_cache_name gj_cache_name_make(const struct gj_hash *unit_hash, const char *compiler,
                                        const char *arch, const char *options);

enum gj_cache_result {
    GJ_CACHE_HIT,
    GJ_CACHE_MISS,    /* no such file (or the cache is off) */
    GJ_CACHE_DAMAGED, /* a file is there and was refused: damaged, foreign, or of other inputs */
};

/* Looks in the root, then in the layers. Loads the entry and compares every field of `expected` but the
 * measured ones (registers, spill_bytes) and the cubin. Opens one exact name; never lists a directory;
 * refuses to follow links, to read what is not a regular file, is owned or writable by others, or is larger
 * than 64 MiB. A damaged entry of the root for which a layer has a sound one is replaced by that. */
enum gj_cache_result gj_cache_load(gj_cache *cache, const struct gj_cache_name *name,
                                   const struct gj_cache_entry *expected, struct gj_cache_entry *entry);

/* Asks the remote store for the entry, checks it as gj_cache_load does, and publishes it in the root. Blocks
 * for as long as a store may take (docs/remote_cache.md). No store, or no answer, is a miss. */
enum gj_cache_result gj_cache_fetch(gj_cache *cache, const struct gj_cache_name *name,
                                    const struct gj_cache_entry *expected, struct gj_cache_entry *entry);
/* What the remote store has done; zeros when there is none. */
void gj_cache_remote_counts(const gj_cache *cache, struct gj_remote_counts *counts);
/* Waits until uploads are done, at most most_ms. False when some are not. */
bool gj_cache_flush(gj_cache *cache, int most_ms);

/* Publishes the entry: exclusive temporary file in the same directory, fsync, rename, fsync of the directory.
 * Returns the bytes written, 0 when it could not be published (logged once as a warning). With upload it is
 * also queued for the remote store, published or not. */
size_t gj_cache_store(gj_cache *cache, const struct gj_cache_name *name, const struct gj_cache_entry *entry);

/* The right to make an entry. Locks only save work: without one, or after a wait of 10 s, a caller goes on.
 */
struct gj_cache_lock {
    int file;       /* -1: not held */
    bool waited;    /* another process had it; the entry may be there now */
    int64_t offset; /* of the locked byte */
};
/* Takes the lock of an entry among all processes and caches of this root. Never fails: where the cache is off
 * or cannot be written, or the file system has no locks, the lock is not held. The holder's death frees it.
 */
struct gj_cache_lock gj_cache_lock(gj_cache *cache, const struct gj_cache_name *name);
/* Not held is legal. */
void gj_cache_unlock(struct gj_cache_lock *lock);

/* Serialises and reads an entry; exposed for tests and tools. encode returns malloc'ed bytes or NULL.
 * decode copies the bytes; returns false with *reason (static text) when they are not a sound entry. */
void *gj_cache_entry_encode(const struct gj_cache_entry *entry, size_t *bytes);
bool gj_cache_entry_decode(const void *data, size_t bytes, struct gj_cache_entry *entry, const char **reason);

/* Which compiler version a libnvrtc file has, remembered so that a warm process need not open it. Looks in
 * the root, then in the layers. identity "" stands for "no libnvrtc here": it gives the version that last
 * published there. */
bool gj_cache_compiler_get(gj_cache *cache, const char *identity, char *version, size_t capacity);
/* The version that last published into one place: 0 is the root, then come the layers. False: it knows none.
 * *more tells whether there is a further place. */
bool gj_cache_compiler_at(gj_cache *cache, size_t place, char *version, size_t capacity, bool *more);
void gj_cache_compiler_put(gj_cache *cache, const char *identity, const char *version);

/* What a listing met besides entries. Zero-initialise; free first_unread with gj_strbuf_free. */
struct gj_cache_scan {
    uint64_t temporary;            /* files being written, or left by a writer that died */
    uint64_t unread;               /* directories of entries that could not be read */
    struct gj_strbuf first_unread; /* the first of them and why, e.g. "v1/bb: the directory ... is a link" */
};

/* Calls visit for each file with an entry's name, in name order. entry is NULL when the file is not a sound
 * entry (reason says why). Stops when visit returns false. A directory of entries that cannot be read is
 * passed over and told in *scan; without a scan it is an error. Returns the number of files, -1 on an error
 * (errno). */
typedef bool (*gj_cache_visit_fn)(void *user, const char *path, uint64_t file_bytes,
                                  const struct gj_cache_entry *entry, const char *reason);
int64_t gj_cache_list(gj_cache *cache, gj_cache_visit_fn visit, void *user, struct gj_cache_scan *scan);

/* Removes every entry, stale temporary file and compiler stamp, and nothing else; the directories stay, and
 * so does whatever has the name of one but is no directory of ours. Returns the number of entries removed, -1
 * when something of ours could not be removed (errno). */
int64_t gj_cache_clear(gj_cache *cache);

/* What is to be trimmed. */
struct gj_cache_trim {
    uint64_t max_bytes; /* of all entries together */
    bool dry_run;       /* only tell */
    /* Called for each entry that goes, the one unused for longest first: file name, bytes, last use (UNIX
     * time). NULL: nobody is told. */
    void (*visit)(void *user, const char *name, uint64_t bytes, int64_t used);
    void *user;
};
struct gj_cache_trimmed {
    uint64_t entries, bytes;         /* that were there */
    uint64_t removed, removed_bytes; /* of these; with dry_run: that would be */
};

/* Removes the entries that were used least recently, by the time of their files, which a load sets anew once
 * a day. An entry that is published or used again meanwhile stays, and a process that has loaded one keeps
 * its copy. Returns false with errno when something of ours could not be read or removed. */
bool gj_cache_trim(gj_cache *cache, const struct gj_cache_trim *trim, struct gj_cache_trimmed *result);

#endif
