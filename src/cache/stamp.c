/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler stamps: which version a libnvrtc file was found to have. Grammar: docs/cache_format.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/cache_impl.h"

#define STAMP_HEAD "gemmjit compiler stamp 1\nversion "
#define STAMP_IDENTITY "\nidentity "
enum { CHECK_DIGITS = 32 };

struct stamp_name {
    char text[40];
};

static struct stamp_name name_stamp(const char *identity)
{
    struct stamp_name name = {GJ_STAMP_DEFAULT};
    if (identity[0] != '\0') {
        const struct gj_hash hash = gj_hash_bytes(identity, strlen(identity));
        gj_hash_hex(&hash, name.text);
    }
    return name;
}

/* The line that closes a stamp: a hash of all that stands before it. */
static void add_check(struct gj_strbuf *text)
{
    const struct gj_hash hash = gj_hash_bytes(text->text, text->length);
    char hex[CHECK_DIGITS + 1];
    gj_hash_hex(&hash, hex);
    gj_strbuf_printf(text, "%s\n", hex);
}

/* The only text that is a stamp of this identity and version. */
static void write_stamp(struct gj_strbuf *text, const char *identity, const char *version,
                        size_t version_length)
{
    gj_strbuf_puts(text, STAMP_HEAD);
    gj_strbuf_add(text, version, version_length);
    gj_strbuf_puts(text, STAMP_IDENTITY);
    gj_strbuf_puts(text, identity);
    gj_strbuf_puts(text, "\ncheck ");
    if (!text->failed)
        add_check(text);
}

static bool is_version(const char *version, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (version[i] < ' ' || version[i] > '~')
            return false;
    }
    return length > 0;
}

/* Finds the version, then compares the file with the stamp that would be written for it. */
static bool parse_stamp(const char *data, size_t bytes, const char *identity, char *version, size_t capacity)
{
    const size_t head = strlen(STAMP_HEAD);
    if (bytes <= head || memcmp(data, STAMP_HEAD, head) != 0)
        return false;
    const char *found = data + head;
    const char *end = memchr(found, '\n', bytes - head);
    const size_t length = end ? (size_t)(end - found) : 0;
    if (!is_version(found, length) || length >= capacity)
        return false;
    struct gj_strbuf whole = {0};
    write_stamp(&whole, identity, found, length);
    const bool is_sound = !whole.failed && whole.length == bytes && memcmp(whole.text, data, bytes) == 0;
    gj_strbuf_free(&whole);
    if (is_sound) {
        memcpy(version, found, length);
        version[length] = '\0';
    }
    return is_sound;
}

/* Reads the stamp of a name in a directory of the cache's layout. */
static bool read_file_stamp(gj_cache *cache, const char *root, const struct stamp_name *name,
                            struct gj_file *file)
{
    struct gj_fault fault = {0};
    const int dir = gj_dir_open_in(root, GJ_CACHE_COMPILERS_DIR, false, &fault);
    const bool done = dir >= 0 && gj_file_read(dir, name->text, GJ_STAMP_FILE_MAX, file, &fault);
    if (dir >= 0)
        close(dir);
    if (!done && fault.error != ENOENT)
        gj_cache_report_at(cache, root, "(compiler stamp) not read", name->text, &fault);
    return done;
}

static bool get_from_directory(gj_cache *cache, const char *root, const char *identity, char *version,
                               size_t capacity)
{
    const struct stamp_name name = name_stamp(identity);
    struct gj_file file = {0};
    if (!read_file_stamp(cache, root, &name, &file))
        return false;
    const bool done = parse_stamp((const char *)file.data, file.bytes, identity, version, capacity);
    free(file.data);
    return done;
}

static bool get_from_pack(const gj_pack *pack, const char *identity, char *version, size_t capacity)
{
    const struct stamp_name name = name_stamp(identity);
    const void *data;
    size_t bytes;
    if (!gj_pack_find_stamp(pack, name.text, &data, &bytes))
        return false;
    return parse_stamp(data, bytes, identity, version, capacity);
}

/* Place 0 is the root, then come the layers. */
static bool get_from_place(gj_cache *cache, size_t place, const char *identity, char *version,
                           size_t capacity)
{
    if (place == 0)
        return gj_cache_is_on(cache) && get_from_directory(cache, cache->root, identity, version, capacity);
    const struct gj_layer *const layer = &cache->layers[place - 1];
    if (layer->off_reason)
        return false;
    return layer->pack ? get_from_pack(layer->pack, identity, version, capacity)
                       : get_from_directory(cache, layer->path, identity, version, capacity);
}

bool gj_cache_compiler_get(gj_cache *cache, const char *identity, char *version, size_t capacity)
{
    bool found = false;
    for (size_t place = 0; cache && place <= cache->num_layers && !found; place++)
        found = get_from_place(cache, place, identity, version, capacity);
    return found;
}

bool gj_cache_compiler_at(gj_cache *cache, size_t place, char *version, size_t capacity, bool *more)
{
    *more = place < cache->num_layers;
    return place <= cache->num_layers && get_from_place(cache, place, "", version, capacity);
}

/* Writes the stamp unless it is there already, which is the rule: put is called with every store. */
static void put_stamp(gj_cache *cache, const char *identity, const char *version)
{
    char *current = malloc(strlen(version) + 1);
    const bool is_there = current && get_from_place(cache, 0, identity, current, strlen(version) + 1) &&
                          strcmp(current, version) == 0;
    free(current);
    if (is_there)
        return;
    struct gj_fault fault = {.where = "the stamp", .what = "does not fit into memory"};
    const struct stamp_name name = name_stamp(identity);
    struct gj_strbuf text = {0};
    write_stamp(&text, identity, version, strlen(version));
    const int dir = text.failed ? -1 : gj_dir_open(cache, GJ_CACHE_COMPILERS_DIR, true, &fault);
    if (dir < 0 || !gj_publish(cache, dir, name.text, text.text, text.length, &fault))
        gj_cache_report(cache, "(compiler stamp) not stored", name.text, &fault);
    if (dir >= 0)
        close(dir);
    gj_strbuf_free(&text);
}

void gj_cache_compiler_put(gj_cache *cache, const char *identity, const char *version)
{
    const size_t room = GJ_STAMP_FILE_MAX - 256; /* for the words around them */
    if (!gj_cache_is_on(cache) || cache->read_only || !is_version(version, strlen(version)) ||
        strlen(identity) + strlen(version) > room)
        return;
    if (identity[0] != '\0')
        put_stamp(cache, identity, version);
    put_stamp(cache, "", version);
}

/* -- Stamps as files ------------------------------------------------------------------------------------- */

static const char no_memory[] = "does not fit into memory";

/* Finds the identity that the bytes name; its version may hold anything but a line end. False when they are
 * too short to name one. */
static bool find_identity(const char *data, size_t bytes, char *identity)
{
    const size_t head = strlen(STAMP_HEAD), words = strlen(STAMP_IDENTITY);
    const size_t tail = strlen("\ncheck \n") + CHECK_DIGITS;
    const char *const end = bytes > head ? memchr(data + head, '\n', bytes - head) : NULL;
    if (!end || (size_t)(data + bytes - end) < words + tail)
        return false;
    const size_t length = (size_t)(data + bytes - end) - words - tail;
    memcpy(identity, end + words, length);
    identity[length] = '\0';
    return true;
}

bool gj_stamp_check(const char *name, const void *data, size_t bytes, const char **reason)
{
    char *const identity = malloc(bytes + 1), *const version = malloc(bytes + 1);
    *reason = NULL;
    if (!identity || !version)
        *reason = no_memory;
    else if (!find_identity(data, bytes, identity) || !parse_stamp(data, bytes, identity, version, bytes + 1))
        *reason = "is not a stamp";
    else if (strcmp(name_stamp(identity).text, name) != 0)
        *reason = "has a name that is not the hash of its identity";
    free(version);
    free(identity);
    return *reason == NULL;
}

bool gj_stamp_read(int dir, const char *name, struct gj_file *file, struct gj_fault *fault)
{
    if (!gj_file_read(dir, name, GJ_STAMP_FILE_MAX, file, fault))
        return false;
    *fault = (struct gj_fault){.where = "the stamp"};
    if (gj_stamp_check(name, file->data, file->bytes, &fault->what))
        return true;
    if (fault->what == no_memory)
        fault->error = ENOMEM;
    free(file->data);
    *file = (struct gj_file){0};
    return false;
}
