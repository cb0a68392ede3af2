/* SPDX-License-Identifier: Apache-2.0 */
/* Names of entries, and which names in a cache directory are ours. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_impl.h"
#include "cache/entry_format.h"
#include "cache/little_endian.h"

enum { HASH_DIGITS = 32, SHARD_DIGITS = 2 };

struct gj_cache_name gj_cache_name_make(const struct gj_hash *unit_hash, const char *compiler,
                                        const char *arch, const char *options)
{
    unsigned char version[4];
    gj_le32_put(version, GJ_ENTRY_VERSION);
    const struct gj_hash_field fields[] = {
        {"format", version, sizeof version},      {"unit", unit_hash->bytes, sizeof unit_hash->bytes},
        {"compiler", compiler, strlen(compiler)}, {"arch", arch, strlen(arch)},
        {"options", options, strlen(options)},
    };
    struct gj_cache_name name = {{0}};
    int ok = 0;
    const struct gj_hash hash = gj_hash_fields(fields, sizeof fields / sizeof fields[0], &ok);
    if (!ok)
        return name; /* "" is no entry's name: a load misses and a store fails */
    char hex[HASH_DIGITS + 1];
    gj_hash_hex(&hash, hex);
    memcpy(name.text, hex, HASH_DIGITS);
    memcpy(name.text + HASH_DIGITS, GJ_ENTRY_SUFFIX, sizeof GJ_ENTRY_SUFFIX);
    return name;
}

/* -- Which names are ours ---------------------------------------------------------------------------- */

static bool begins_with_digits(const char *name, size_t count)
{
    return strspn(name, "0123456789abcdef") == count;
}

bool gj_name_is_entry(const char *name)
{
    return begins_with_digits(name, HASH_DIGITS) && strcmp(name + HASH_DIGITS, GJ_ENTRY_SUFFIX) == 0;
}

bool gj_name_is_stamp(const char *name)
{
    return strcmp(name, GJ_STAMP_DEFAULT) == 0 ||
           (begins_with_digits(name, HASH_DIGITS) && !name[HASH_DIGITS]);
}

bool gj_name_is_shard(const char *name)
{
    return begins_with_digits(name, SHARD_DIGITS) && !name[SHARD_DIGITS];
}

bool gj_name_is_temp(const char *name)
{
    return strncmp(name, GJ_TEMP_PREFIX, strlen(GJ_TEMP_PREFIX)) == 0;
}

struct gj_shard gj_name_shard(const char *entry_name)
{
    return (struct gj_shard){{entry_name[0], entry_name[1], '\0'}};
}

/* -- Reading names ----------------------------------------------------------------------------------- */

static bool add_name(struct gj_names *names, const char *name)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? names->capacity * 2 : 64;
        char **grown = realloc(names->names, capacity * sizeof *grown);
        if (!grown)
            return false;
        names->names = grown;
        names->capacity = capacity;
    }
    names->names[names->count] = strdup(name);
    if (!names->names[names->count])
        return false;
    names->count++;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A descriptor of its own for opendir, which takes it over and moves its position. */
static DIR *open_list(int dir)
{
    const int copy = gj_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    if (!list && copy >= 0)
        close(copy);
    return list;
}

/* A directory that changes while it is read may have a name twice. */
static void sort_unique(struct gj_names *names)
{
    if (names->count < 2)
        return;
    qsort(names->names, names->count, sizeof *names->names, compare_names);
    size_t kept = 1;
    for (size_t i = 1; i < names->count; i++) {
        if (strcmp(names->names[i], names->names[kept - 1]) == 0)
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->count = kept;
}

bool gj_names_read(int dir, bool (*accept)(const char *name), struct gj_names *names)
{
    *names = (struct gj_names){0};
    DIR *list = open_list(dir);
    if (!list)
        return false;
    int error = 0;
    while (error == 0) {
        errno = 0;
        const struct dirent *item = readdir(list);
        if (!item) {
            error = errno;
            break;
        }
        if (accept(item->d_name) && !add_name(names, item->d_name))
            error = ENOMEM;
    }
    closedir(list);
    if (error != 0) {
        gj_names_free(names);
        errno = error;
        return false;
    }
    sort_unique(names);
    return true;
}

void gj_names_free(struct gj_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct gj_names){0};
}
