/* SPDX-License-Identifier: Apache-2.0 */
/* The opened libnvrtc as the files of this folder share it. */
#ifndef GJ_COMPILE_NVRTC_API_H
#define GJ_COMPILE_NVRTC_API_H

#include <nvrtc.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "compile/compile.h"

/* Every function that is used. The types come from nvrtc.h, so a changed signature cannot go unnoticed. */
#define GJ_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion)           \
    X(nvrtcGetErrorString)    \
    X(nvrtcCreateProgram)     \
    X(nvrtcDestroyProgram)    \
    X(nvrtcCompileProgram)    \
    X(nvrtcGetProgramLogSize) \
    X(nvrtcGetProgramLog)     \
    X(nvrtcGetPTXSize)        \
    X(nvrtcGetPTX)            \
    X(nvrtcGetCUBINSize)      \
    X(nvrtcGetCUBIN)

struct gj_nvrtc_api {
#define GJ_NVRTC_MEMBER(name) __typeof__(name) *name;
    GJ_NVRTC_FUNCTIONS(GJ_NVRTC_MEMBER)
#undef GJ_NVRTC_MEMBER
};

/* Written by gj_compiler_open only: threads share it without a lock. */
struct gj_compiler {
    struct gj_nvrtc_api api;
    int major, minor;
    char version[48];
    char *path;
};

/* Names libnvrtc goes by, newest first; ends with NULL. */
extern const char *const gj_nvrtc_names[];

/* Visits the directories in which libnvrtc is looked for, in order, until visit returns true. Returns whether
 * it did. Not for a given $GEMMJIT_NVRTC, which is a file. */
bool gj_nvrtc_directories(bool (*visit)(void *user, const char *directory), void *user);

#endif
