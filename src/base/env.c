/* SPDX-License-Identifier: Apache-2.0 */
/* The table of environment variables and the only reads of them. */
#include "base/env.h"

#include <assert.h>
#include <stdlib.h>

static const struct {
    const char *name, *help;
} variables[] = {
    [GJ_ENV_CACHE_DIR] = {"GEMMJIT_CACHE_DIR", "root of the disk cache"},
    [GJ_ENV_CACHE_LAYERS] = {"GEMMJIT_CACHE_LAYERS", "packs and directories to read besides, between colons"},
    [GJ_ENV_CACHE_REMOTE] = {"GEMMJIT_CACHE_REMOTE", "URL of a store that entries are fetched from"},
    [GJ_ENV_CACHE_UPLOAD] = {"GEMMJIT_CACHE_UPLOAD", "1: entries are also sent to that store"},
    [GJ_ENV_CACHE_MAX_SIZE] = {"GEMMJIT_CACHE_MAX_SIZE", "most bytes of entries on disk, e.g. 2G"},
    [GJ_ENV_TUNING] = {"GEMMJIT_TUNING", "tuning tables, between colons; empty: not even the built-in ones"},
    [GJ_ENV_NVRTC] = {"GEMMJIT_NVRTC", "path of the libnvrtc to use, and no other"},
    [GJ_ENV_CUDA] = {"GEMMJIT_CUDA", "path of the libcuda to use, and no other"},
    [GJ_ENV_XDG_CACHE_HOME] = {"XDG_CACHE_HOME", "the cache is in its gemmjit folder, if no root is given"},
    [GJ_ENV_HOME] = {"HOME", "the cache is in its .cache/gemmjit folder, if nothing else says where"},
    [GJ_ENV_LD_LIBRARY_PATH] = {"LD_LIBRARY_PATH", "directories in which libnvrtc is looked for first"},
    [GJ_ENV_CUDA_HOME] = {"CUDA_HOME", "CUDA toolkit: libnvrtc is looked for in its lib64 folder"},
    [GJ_ENV_CUDA_PATH] = {"CUDA_PATH", "CUDA toolkit: libnvrtc is looked for in its lib64 folder"},
};
static_assert(sizeof(variables) / sizeof(variables[0]) == GJ_ENV_COUNT, "every variable has its row");

const char *gj_env_get(enum gj_env variable)
{
    /* secure_getenv: a set-user-ID process must not load a library or a cubin that its caller chose. */
    const char *const value = secure_getenv(variables[variable].name);
    return value && *value ? value : NULL;
}

bool gj_env_is_empty(enum gj_env variable)
{
    const char *const value = secure_getenv(variables[variable].name);
    return value && !*value;
}

const char *gj_env_name(enum gj_env variable)
{
    return variables[variable].name;
}

const char *gj_env_help(enum gj_env variable)
{
    return variables[variable].help;
}
