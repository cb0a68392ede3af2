/* SPDX-License-Identifier: Apache-2.0 */
/* Opens libnvrtc at run time: nothing of CUDA is linked. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error_build.h"
#include "compile/compile.h"
#include "compile/nvrtc_api.h"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define ROW(name) {#name, offsetof(struct gj_nvrtc_api, name)},
    GJ_NVRTC_FUNCTIONS(ROW)
#undef ROW
};

static bool add_directory(void *user, const char *directory)
{
    gj_strbuf_printf(user, " %s", directory);
    return false;
}

/* Nothing was found: says where it was looked for. */
static enum gj_status fail_not_found(const char *loader_message, gj_error **error)
{
    const char *const given = gj_env_get(GJ_ENV_NVRTC);
    if (given)
        GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, "%s names %s, which is not a file",
                gj_env_name(GJ_ENV_NVRTC), given);
    struct gj_strbuf places = {0};
    gj_nvrtc_directories(add_directory, &places);
    char *const text = gj_strbuf_take(&places);
    const enum gj_status status = gj_error_make(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, 0, "",
                                                "no libnvrtc.so.13, libnvrtc.so.12 or libnvrtc.so in%s, nor "
                                                "where the loader looks (%s); set %s to its path",
                                                text ? text : "", loader_message, gj_env_name(GJ_ENV_NVRTC));
    free(text);
    return status;
}

static enum gj_status open_library(void **library, gj_error **error)
{
    struct gj_compiler_identity identity;
    const char *message = NULL;
    if (gj_compiler_locate(&identity)) {
        *library = dlopen(identity.path, RTLD_NOW | RTLD_LOCAL);
        if (*library)
            return GJ_OK;
        message = dlerror();
        GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, "%s cannot be loaded: %s", identity.path,
                message ? message : "no reason given");
    }
    if (!gj_env_get(GJ_ENV_NVRTC)) {
        /* The loader also knows ld.so.conf and the run path of the program. */
        for (size_t i = 0; gj_nvrtc_names[i]; i++) {
            *library = dlopen(gj_nvrtc_names[i], RTLD_NOW | RTLD_LOCAL);
            if (*library)
                return GJ_OK;
            message = dlerror();
        }
    }
    return fail_not_found(message ? message : "no reason given", error);
}

/* Returns the first name that the library lacks, or NULL. */
static const char *read_symbols(void *library, struct gj_nvrtc_api *api)
{
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *const symbol = dlsym(library, functions[i].name);
        if (!symbol && !missing)
            missing = functions[i].name;
        /* ISO C has no cast from object to function pointer; POSIX says that the bytes are the same. */
        memcpy((char *)api + functions[i].offset, &symbol, sizeof(symbol));
    }
    return missing;
}

/* The version comes before the symbols: "too old" says more than the name of a function that came later. */
static enum gj_status check_library(gj_compiler *compiler, const char *missing, gj_error **error)
{
    const struct gj_nvrtc_api *const api = &compiler->api;
    if (api->nvrtcVersion) {
        const nvrtcResult result = api->nvrtcVersion(&compiler->major, &compiler->minor);
        if (result != NVRTC_SUCCESS)
            return gj_error_make(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, (int)result,
                                 api->nvrtcGetErrorString ? api->nvrtcGetErrorString(result) : "",
                                 "%s does not tell its version", compiler->path);
        if (compiler->major < GJ_NVRTC_MIN_MAJOR ||
            (compiler->major == GJ_NVRTC_MIN_MAJOR && compiler->minor < GJ_NVRTC_MIN_MINOR))
            GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE,
                    "%s is too old: found NVRTC %d.%d, needed %d.%d or later", compiler->path,
                    compiler->major, compiler->minor, GJ_NVRTC_MIN_MAJOR, GJ_NVRTC_MIN_MINOR);
    }
    if (missing)
        GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_COMPILE, "%s is not a usable libnvrtc: it lacks %s",
                compiler->path, missing);
    snprintf(compiler->version, sizeof(compiler->version), "nvrtc %d.%d", compiler->major, compiler->minor);
    return GJ_OK;
}

/* NVRTC opens its builtins by their bare name, which only finds them where the loader looks anyway. Once the
 * ones beside libnvrtc are loaded the loader knows the name. Where there are none, the compile says so. */
static void load_builtins(const gj_compiler *compiler)
{
    const char *const slash = strrchr(compiler->path, '/');
    if (!slash)
        return;
    struct gj_strbuf path = {0};
    gj_strbuf_printf(&path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - compiler->path), compiler->path,
                     compiler->major, compiler->minor);
    if (!path.failed)
        (void)dlopen(path.text, RTLD_NOW | RTLD_LOCAL); /* stays mapped, as libnvrtc does */
    gj_strbuf_free(&path);
}

enum gj_status gj_compiler_open(gj_compiler **compiler, gj_error **error)
{
    void *library = NULL;
    GJ_TRY(open_library(&library, error));

    const struct link_map *map = NULL;
    const bool mapped = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;
    gj_compiler *opened = calloc(1, sizeof(*opened));
    if (opened)
        opened->path = strdup(mapped ? map->l_name : "libnvrtc");
    enum gj_status status = GJ_OK;
    if (!opened || !opened->path) {
        status = gj_error_make(error, GJ_ERR_NO_MEMORY, GJ_STAGE_COMPILE, 0, "",
                               "no memory for the table of libnvrtc's functions");
        goto out;
    }
    const char *const missing = read_symbols(library, &opened->api);
    status = check_library(opened, missing, error);
    if (status != GJ_OK)
        goto out;
    load_builtins(opened);
    *compiler = opened;
    opened = NULL;
out:
    /* The library stays mapped in every case: it keeps state per thread and does not bear being unloaded. */
    gj_compiler_close(&opened);
    return status;
}

void gj_compiler_close(gj_compiler **compiler)
{
    if (!compiler || !*compiler)
        return;
    free((*compiler)->path);
    free(*compiler);
    *compiler = NULL;
}

const char *gj_compiler_version(const gj_compiler *compiler)
{
    return compiler->version;
}

const char *gj_compiler_path(const gj_compiler *compiler)
{
    return compiler->path;
}
