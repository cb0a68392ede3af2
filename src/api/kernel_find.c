/* SPDX-License-Identifier: Apache-2.0 */
/* Finding one kernel that was compiled before: in the disk cache, its layers, and the remote store. */
#include <string.h>

#include "api/making.h"
#include "base/clock.h"

void gj_making_find_version(struct making *making)
{
    gj_context *const context = making->context;
    pthread_mutex_lock(&context->lock);
    const gj_compiler *const compiler = context->compiler;
    if (compiler == NULL && !context->located) {
        gj_compiler_locate(&context->identity);
        context->located = 1;
    }
    pthread_mutex_unlock(&context->lock);
    making->can_compile = compiler != NULL || context->identity.text[0] != '\0';
    if (compiler != NULL) {
        const char *const version = gj_compiler_version(compiler);
        memcpy(making->version, version, strnlen(version, sizeof making->version - 1) + 1);
    } else if (context->cache == NULL || !gj_cache_compiler_get(context->cache, context->identity.text,
                                                                making->version, sizeof making->version)) {
        making->version[0] = '\0';
    }
}

struct gj_cache_entry gj_making_entry(const struct making *making)
{
    const gj_kernel *const kernel = making->kernel;
    return (struct gj_cache_entry){
        .key_text = kernel->key_text,
        .unit_hash = making->unit_hash,
        .compiler = making->version,
        .arch = GJ_COMPILE_ARCH,
        .options = gj_compile_options(),
        .entry_name = kernel->plan.entry_name,
        .registers = kernel->info.registers,
        .threads = kernel->plan.threads,
        .smem_bytes = kernel->plan.smem_bytes,
        .stages = kernel->plan.stages,
        .spill_bytes = kernel->info.spill_bytes,
        .cubin = kernel->info.cubin,
        .cubin_bytes = kernel->info.cubin_bytes,
    };
}

struct gj_cache_name gj_making_name(const struct making *making)
{
    return gj_cache_name_make(&making->unit_hash, making->version, GJ_COMPILE_ARCH, gj_compile_options());
}

static void note_damage(struct making *making)
{
    if (!making->is_damaged)
        gj_count(making->context, GJ_COUNT_DAMAGED_ENTRIES, 1);
    making->is_damaged = true;
}

/* Takes what was found into the kernel. */
static void take_entry(struct making *making, enum gj_origin origin, double start_ms)
{
    gj_kernel *const kernel = making->kernel;
    kernel->info.registers = kernel->from_disk.registers;
    kernel->info.spill_bytes = kernel->from_disk.spill_bytes;
    kernel->info.cubin = kernel->from_disk.cubin;
    kernel->info.cubin_bytes = kernel->from_disk.cubin_bytes;
    kernel->info.compiler = kernel->from_disk.compiler;
    kernel->info.origin = origin;
    kernel->info.load_ms = gj_clock_ms() - start_ms;
    kernel->info.stored = kernel->from_disk.is_on_disk;
}

bool gj_making_load(struct making *making)
{
    gj_context *const context = making->context;
    struct gj_cache_entry *const found = &making->kernel->from_disk;
    if (context->cache == NULL || making->version[0] == '\0')
        return false;
    const double start = gj_clock_ms();
    const struct gj_cache_entry expected = gj_making_entry(making);
    const struct gj_cache_name name = gj_making_name(making);
    const enum gj_cache_result result = gj_cache_load(context->cache, &name, &expected, found);
    if (result == GJ_CACHE_DAMAGED)
        note_damage(making);
    if (result != GJ_CACHE_HIT)
        return false;
    gj_count(context, GJ_COUNT_DISK_HITS, 1);
    gj_count(context, GJ_COUNT_LAYER_HITS, found->place == GJ_CACHE_PLACE_LAYER);
    gj_count(context, GJ_COUNT_DISK_BYTES_READ, found->file_bytes);
    take_entry(making, GJ_ORIGIN_DISK, start);
    return true;
}

bool gj_making_load_other(struct making *making)
{
    gj_cache *const cache = making->context->cache;
    char version[sizeof making->version], own[sizeof making->version];
    bool more = cache != NULL, found = false;
    memcpy(own, making->version, sizeof own);
    for (size_t place = 0; more && !found; place++) {
        if (!gj_cache_compiler_at(cache, place, version, sizeof version, &more) || strcmp(version, own) == 0)
            continue;
        memcpy(making->version, version, sizeof version);
        found = gj_making_load(making);
    }
    if (!found)
        memcpy(making->version, own, sizeof own);
    return found;
}

bool gj_making_fetch(struct making *making)
{
    gj_context *const context = making->context;
    if (context->cache == NULL || making->version[0] == '\0')
        return false;
    const double start = gj_clock_ms();
    const struct gj_cache_entry expected = gj_making_entry(making);
    const struct gj_cache_name name = gj_making_name(making);
    const enum gj_cache_result result =
        gj_cache_fetch(context->cache, &name, &expected, &making->kernel->from_disk);
    if (result == GJ_CACHE_DAMAGED)
        note_damage(making);
    if (result != GJ_CACHE_HIT)
        return false;
    gj_count(context, GJ_COUNT_REMOTE_HITS, 1);
    take_entry(making, GJ_ORIGIN_REMOTE, start);
    if (making->can_compile)
        gj_cache_compiler_put(context->cache, context->identity.text, making->version);
    return true;
}
