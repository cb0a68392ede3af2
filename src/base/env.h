/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of gemmjit: this is the one table of them and the one place that reads them. */
#ifndef GJ_BASE_ENV_H
#define GJ_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>

enum gj_env {
    GJ_ENV_CACHE_DIR,       /* GEMMJIT_CACHE_DIR: root of the disk cache */
    GJ_ENV_CACHE_LAYERS,    /* GEMMJIT_CACHE_LAYERS: further places of entries, separated by ':' */
    GJ_ENV_CACHE_REMOTE,    /* GEMMJIT_CACHE_REMOTE: URL of a store of entries */
    GJ_ENV_CACHE_UPLOAD,    /* GEMMJIT_CACHE_UPLOAD: 1: what is compiled is sent there */
    GJ_ENV_CACHE_MAX_SIZE,  /* GEMMJIT_CACHE_MAX_SIZE: bytes of entries that the root may have, e.g. 2G */
    GJ_ENV_TUNING,          /* GEMMJIT_TUNING: tuning tables, separated by ':'; empty: none at all */
    GJ_ENV_NVRTC,           /* GEMMJIT_NVRTC: path of the libnvrtc to use, and no other */
    GJ_ENV_CUDA,            /* GEMMJIT_CUDA: path of the libcuda to use, and no other */
    GJ_ENV_XDG_CACHE_HOME,  /* XDG_CACHE_HOME */
    GJ_ENV_HOME,            /* HOME */
    GJ_ENV_LD_LIBRARY_PATH, /* LD_LIBRARY_PATH: where libnvrtc is looked for */
    GJ_ENV_CUDA_HOME,       /* CUDA_HOME: $CUDA_HOME/lib64 */
    GJ_ENV_CUDA_PATH,       /* CUDA_PATH: $CUDA_PATH/lib64 */
    GJ_ENV_COUNT
};

/* Value of a variable, or NULL when it is unset, empty, or the process runs set-user-ID. */
const char *gj_env_get(enum gj_env variable);
/* Whether a variable is set to the empty text, where that means something else than unset. */
bool gj_env_is_empty(enum gj_env variable);
const char *gj_env_name(enum gj_env variable);
/* One line on what the variable does, for `gemmjit doctor` and the docs. */
const char *gj_env_help(enum gj_env variable);

#endif
