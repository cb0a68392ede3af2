/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/cache share: the cache object, faults, trusted directories and files, publishing. */
#ifndef GJ_CACHE_CACHE_IMPL_H
#define GJ_CACHE_CACHE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "cache/cache.h"
#include "cache/pack.h"

/* The directory of this format version below the root. Another version never meets these files. */
#define GJ_CACHE_VERSION_DIR "v1"
#define GJ_CACHE_COMPILERS_DIR "compilers"
/* Larger files are refused unread; the largest cubin of the config table is under 200 KiB. */
#define GJ_CACHE_FILE_MAX ((size_t)64 << 20)
#define GJ_TEMP_PREFIX ".tmp-"

/* -- Faults ------------------------------------------------------------------------------------------ */

/* Why something below the root was not used: "<where> <what> (owner, mode): <error>". */
struct gj_fault {
    const char *where,
        *what;     /* static texts; together with error they are the cause that is warned of once */
    int error;     /* errno, or 0 when the rules of this module refused */
    bool has_stat; /* owner and mode say what was found */
    uid_t owner;
    mode_t mode;
};

struct gj_fault gj_fault_errno(const char *where, const char *what);
void gj_fault_describe(const struct gj_fault *fault, struct gj_strbuf *text);
/* The process ran out of something; the file itself is not at fault. */
bool gj_fault_is_shortage(const struct gj_fault *fault);

/* -- The cache object -------------------------------------------------------------------------------- */

enum { GJ_CACHE_MAX_CAUSES = 64 };

struct gj_cache_cause {
    const char *action, *where, *what;
    int error;
};

/* A further place of entries, read and never written. */
struct gj_layer {
    char *path;       /* absolute, or "" */
    gj_pack *pack;    /* NULL: a directory */
    char *off_reason; /* NULL: it is used */
};

struct gj_cache {
    struct gj_log log;
    char *root;       /* absolute, without trailing slash (but "/"), or "" */
    char *off_reason; /* NULL: on. Decided at open, constant afterwards */
    int off_error;
    bool read_only;
    uint64_t max_bytes; /* 0: no bound */
    struct gj_layer *layers;
    size_t num_layers;
    gj_remote *remote; /* NULL: none */
    char *remote_off_reason;
    atomic_bool off_warned;
    atomic_uint temp_counter;
    pthread_mutex_t mutex; /* guards causes and num_causes */
    struct gj_cache_cause causes[GJ_CACHE_MAX_CAUSES];
    size_t num_causes;
};

/* True while the cache can be used; the first call that finds it off logs the one warning. */
bool gj_cache_is_on(gj_cache *cache);
/* Logs that `action` ("not loaded") befell `subject` (a file name): a warning when the cause is new to this
 * cache, a debug message later. */
void gj_cache_report(gj_cache *cache, const char *action, const char *subject, const struct gj_fault *fault);

/* The same of something in another place than the root. */
void gj_cache_report_at(gj_cache *cache, const char *place, const char *action, const char *subject,
                        const struct gj_fault *fault);

/* -- Size -------------------------------------------------------------------------------------------- */

/* Sets max_bytes from params or the environment; a text that is no size is told and left out. */
void gj_cap_open(gj_cache *cache, const struct gj_cache_params *params);
/* After a publish: removes what is too much. */
void gj_cap_keep(gj_cache *cache);

/* -- Layers ------------------------------------------------------------------------------------------ */

/* Opens the layers of paths, or of $GEMMJIT_CACHE_LAYERS when paths is NULL. One that cannot be used is told
 * and left out. False when memory runs out; gj_layers_close frees what there is. */
bool gj_layers_open(gj_cache *cache, const char *const *paths, size_t count);
void gj_layers_close(gj_cache *cache);

/* Opens the remote store that params or the environment name. False when memory runs out. */
bool gj_fetch_open(gj_cache *cache, const struct gj_cache_params *params);
void gj_fetch_close(gj_cache *cache);
/* Publishes the bytes of an entry. False with *fault. */
bool gj_entry_publish(gj_cache *cache, const char *name, const void *data, size_t bytes,
                      struct gj_fault *fault);

/* -- Root -------------------------------------------------------------------------------------------- */

/* The root by the rules of gj_cache_open, malloc'ed; NULL with *reason when there is none, and with *reason
 * NULL when memory runs out. */
char *gj_root_choose(const char *given, const char **reason);
/* The path from the root of the file system, malloc'ed; NULL with *reason, or when memory runs out. */
char *gj_path_absolute(const char *path, const char **reason);
/* Opens the root, after making it and its parents when `make`. Returns -1 with *fault; its error is ENOENT
 * when there is no root. */
int gj_root_open(const char *root, bool make, struct gj_fault *fault);
/* True when a root that does not exist could be made: its nearest existing parent is a writable directory. */
bool gj_root_can_make(const char *root, struct gj_fault *fault);

/* -- Directories and files --------------------------------------------------------------------------- */

/* Whether files of this owner are used: the effective user's, and root's, who can do everything anyway. */
bool gj_trust_owner(uid_t owner);
/* Refuses what is of another type, of another owner, or writable by others. */
bool gj_trust_check(const struct stat *status, bool directory, const char *where, struct gj_fault *fault);
/* mkdir with exactly mode 0700 under any umask; an existing name is success. */
int gj_dir_make_private(int parent, const char *name);
/* Opens <root>/v1, or <root>/v1/<sub>, as gj_root_open does. */
int gj_dir_open_in(const char *root, const char *sub, bool make, struct gj_fault *fault);
/* The same of the cache's own root. */
int gj_dir_open(const gj_cache *cache, const char *sub, bool make, struct gj_fault *fault);

/* openat with O_CLOEXEC, asked again when a signal came or the handle was stale: so network file systems say
 * that another host replaced the file since the name was looked up. */
int gj_open_at(int dir, const char *name, int flags, mode_t mode);

struct gj_file {
    unsigned char *data; /* malloc'ed */
    size_t bytes;
    time_t modified;
};
/* Reads a whole file of a trusted directory. Returns false with *fault; its error is ENOENT when there is
 * none. */
bool gj_file_read(int dir, const char *name, size_t max_bytes, struct gj_file *file, struct gj_fault *fault);

/* Writes a temporary file beside `name` and renames it over. Returns false with *fault and leaves nothing
 * behind. */
bool gj_publish(gj_cache *cache, int dir, const char *name, const void *data, size_t bytes,
                struct gj_fault *fault);

/* -- Names ------------------------------------------------------------------------------------------- */

#define GJ_ENTRY_NAME_BYTES 37           /* of an entry's name, with its zero */
bool gj_name_is_entry(const char *name); /* 32 lower-case hexadecimal digits + ".gjc" */
bool gj_name_is_stamp(const char *name); /* 32 lower-case hexadecimal digits, or "default" */
bool gj_name_is_shard(const char *name); /* 2 lower-case hexadecimal digits */
bool gj_name_is_temp(const char *name);  /* begins with GJ_TEMP_PREFIX */

struct gj_shard {
    char text[3];
};
/* The directory of an entry. */
struct gj_shard gj_name_shard(const char *entry_name);

struct gj_names {
    char **names;
    size_t count, capacity;
};
/* Names in a directory that `accept` takes, sorted bytewise, each once. False with errno, and no names, on
 * failure. */
bool gj_names_read(int dir, bool (*accept)(const char *name), struct gj_names *names);
void gj_names_free(struct gj_names *names);

/* What a walk does with a directory, open, and with one that cannot be opened or in which `act` failed with
 * errno. `skip` returns true when the walk bears the fault, else false with errno. */
struct gj_shard_walk {
    bool (*act)(void *user, int dir, const char *name);
    bool (*skip)(void *user, int version, const char *name, const struct gj_fault *fault);
    void *user;
};
/* Walks over each directory of entries, in name order, then over the one of the compiler stamps. Goes on
 * after a fault and then returns false with the first errno. No cache or no root is success. */
bool gj_shards_each(gj_cache *cache, const struct gj_shard_walk *shards,
                    const struct gj_shard_walk *compilers);
/* Whether a name below v1 is no directory of ours. */
bool gj_name_is_foreign(int version, const char *name);

/* -- Files held to their names ----------------------------------------------------------------------- */

#define GJ_ENTRY_SUFFIX ".gjc"
#define GJ_STAMP_DEFAULT "default"
#define GJ_STAMP_FILE_MAX ((size_t)64 << 10) /* larger stamps are refused unread */

/* What is wrong with the name of a sound entry; NULL when it is the hash of the entry's inputs. */
const char *gj_entry_name_problem(const char *name, const struct gj_cache_entry *entry);
/* Reads an entry of a trusted directory and checks all of it and its name. entry->storage are the file's
 * *bytes bytes. Returns false with *fault, as gj_file_read does. */
bool gj_entry_read(int dir, const char *name, struct gj_cache_entry *entry, size_t *bytes,
                   struct gj_fault *fault);
/* Whether the bytes are a stamp and `name` is that of its identity; else *reason. */
bool gj_stamp_check(const char *name, const void *data, size_t bytes, const char **reason);
/* The same for the file of a stamp, as gj_entry_read. */
bool gj_stamp_read(int dir, const char *name, struct gj_file *file, struct gj_fault *fault);

#endif
