/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvrtc that forwards to the real one, under another version, and holds compiles when told to. */
#include "forward_nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern struct forward_nvrtc forward_nvrtc_state;
struct forward_nvrtc forward_nvrtc_state = {
    .major = 12, .minor = 8, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

#define STATE (&forward_nvrtc_state)

/* The compiler is loaded in full before it is used: it finds its builtins by their name alone. */
static void load_builtins(void *library)
{
    nvrtcResult (*version)(int *, int *);
    void *const symbol = dlsym(library, "nvrtcVersion");
    const char *const slash = strrchr(STATE->real, '/');
    int major = 0, minor = 0;
    char path[4096];
    memcpy(&version, &symbol, sizeof version);
    if (slash == NULL || version(&major, &minor) != NVRTC_SUCCESS)
        return;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - STATE->real), STATE->real,
             major, minor);
    dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *real_function(const char *name)
{
    static void *library;
    pthread_mutex_lock(&STATE->lock);
    if (library == NULL) {
        library = dlopen(STATE->real, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            abort();
        }
        load_builtins(library);
    }
    pthread_mutex_unlock(&STATE->lock);
    return dlsym(library, name);
}

/* Calls the real function of the same name. */
#define FORWARD(name, ...)                           \
    do {                                             \
        __typeof__(name) *function;                  \
        void *const symbol = real_function(#name);   \
        memcpy(&function, &symbol, sizeof function); \
        return function(__VA_ARGS__);                \
    } while (0)

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = STATE->major;
    *minor = STATE->minor;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int num_options, const char *const *options)
{
    pthread_mutex_lock(&STATE->lock);
    STATE->num_compiles++;
    pthread_cond_broadcast(&STATE->changed);
    while (STATE->is_held)
        pthread_cond_wait(&STATE->changed, &STATE->lock);
    pthread_mutex_unlock(&STATE->lock);
    FORWARD(nvrtcCompileProgram, program, num_options, options);
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    FORWARD(nvrtcGetErrorString, result);
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int num_headers,
                               const char *const *headers, const char *const *include_names)
{
    FORWARD(nvrtcCreateProgram, program, source, name, num_headers, headers, include_names);
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    FORWARD(nvrtcDestroyProgram, program);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    FORWARD(nvrtcGetProgramLogSize, program, bytes);
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    FORWARD(nvrtcGetProgramLog, program, log);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    FORWARD(nvrtcGetPTXSize, program, bytes);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    FORWARD(nvrtcGetPTX, program, ptx);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    FORWARD(nvrtcGetCUBINSize, program, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    FORWARD(nvrtcGetCUBIN, program, cubin);
}
