/* SPDX-License-Identifier: Apache-2.0 */
/* Where libnvrtc is, found by stat alone: a warm process needs its identity but never opens it. */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/env.h"
#include "compile/compile.h"
#include "compile/nvrtc_api.h"

#if defined(__x86_64__)
#define MULTIARCH_DIR "/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH_DIR "/usr/lib/aarch64-linux-gnu"
#else
#define MULTIARCH_DIR ""
#endif

const char *const gj_nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};

typedef bool visit_fn(void *user, const char *directory);

/* The directories of a list separated by colons. An empty one means the working directory to the loader; it
 * is passed over, because a library must not be picked up from wherever a process happens to stand. */
static bool visit_list(const char *list, visit_fn *visit, void *user)
{
    while (list && *list) {
        const size_t length = strcspn(list, ":");
        char directory[PATH_MAX];
        if (length > 0 && length < sizeof(directory)) {
            memcpy(directory, list, length);
            directory[length] = '\0';
            if (visit(user, directory))
                return true;
        }
        list += length;
        if (*list)
            list++;
    }
    return false;
}

static bool visit_toolkit(enum gj_env variable, visit_fn *visit, void *user)
{
    const char *const root = gj_env_get(variable);
    if (!root)
        return false;
    char directory[PATH_MAX];
    const int length = snprintf(directory, sizeof(directory), "%s/lib64", root);
    return length > 0 && (size_t)length < sizeof(directory) && visit(user, directory);
}

bool gj_nvrtc_directories(visit_fn *visit, void *user)
{
    static const char *const fixed[] = {GJ_NVRTC_DIR, "/usr/local/cuda/lib64", MULTIARCH_DIR, "/usr/lib64",
                                        "/usr/lib"};
    if (visit_list(gj_env_get(GJ_ENV_LD_LIBRARY_PATH), visit, user) ||
        visit_toolkit(GJ_ENV_CUDA_HOME, visit, user) || visit_toolkit(GJ_ENV_CUDA_PATH, visit, user))
        return true;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (*fixed[i] && visit(user, fixed[i]))
            return true;
    return false;
}

/* Takes the file if it is one. Links are followed, so that a switched toolkit link changes the identity. */
static bool take_file(struct gj_compiler_identity *identity, const char *path)
{
    char resolved[PATH_MAX];
    struct stat info;
    if (!realpath(path, resolved) || stat(resolved, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    const int path_length = snprintf(identity->path, sizeof(identity->path), "%s", resolved);
    const int64_t mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    const int text_length =
        snprintf(identity->text, sizeof(identity->text), "%s|%" PRIdMAX "|%" PRId64 "|%" PRIuMAX, resolved,
                 (intmax_t)info.st_size, mtime_ns, (uintmax_t)info.st_ino);
    if (path_length < 0 || (size_t)path_length >= sizeof(identity->path) || text_length < 0 ||
        (size_t)text_length >= sizeof(identity->text)) {
        identity->path[0] = identity->text[0] = '\0';
        return false;
    }
    return true;
}

static bool take_from_directory(void *user, const char *directory)
{
    for (size_t i = 0; gj_nvrtc_names[i]; i++) {
        char path[PATH_MAX];
        const int length = snprintf(path, sizeof(path), "%s/%s", directory, gj_nvrtc_names[i]);
        if (length > 0 && (size_t)length < sizeof(path) && take_file(user, path))
            return true;
    }
    return false;
}

bool gj_compiler_locate(struct gj_compiler_identity *identity)
{
    identity->path[0] = identity->text[0] = '\0';
    const char *const given = gj_env_get(GJ_ENV_NVRTC);
    if (given)
        return take_file(identity, given);
    return gj_nvrtc_directories(take_from_directory, identity);
}
