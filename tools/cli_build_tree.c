/* SPDX-License-Identifier: Apache-2.0 */
/* The toolkit of a command that is run where it was built: `toolkit` in the build directory, a link that
 * tools/quickstart and tools/check make to what they fetched. An installed command never comes here. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "cli.h"

/* The build directory that this program is in (it is <build>/tools/gemmjit), or false. Meson's own folder
 * there tells it from a directory of installed programs. */
static bool find_build_directory(char *path, size_t capacity)
{
    const ssize_t length = readlink("/proc/self/exe", path, capacity - 1);
    if (length <= 0 || (size_t)length >= capacity - 1 || getauxval(AT_SECURE) != 0)
        return false;
    path[length] = '\0';
    for (int i = 0; i < 2; i++) {
        char *const slash = strrchr(path, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    char private[PATH_MAX];
    struct stat status;
    const int written = snprintf(private, sizeof(private), "%s/meson-private", path);
    return written > 0 && (size_t)written < sizeof(private) && stat(private, &status) == 0 &&
           S_ISDIR(status.st_mode);
}

bool cli_build_tree_find(const char *name, char *path, size_t capacity)
{
    char directory[PATH_MAX];
    struct stat status;
    if (find_build_directory(directory, sizeof(directory))) {
        const int length = snprintf(path, capacity, "%s/toolkit/%s", directory, name);
        if (length > 0 && (size_t)length < capacity && stat(path, &status) == 0 && S_ISREG(status.st_mode))
            return true;
    }
    path[0] = '\0';
    return false;
}

void cli_build_tree_use(void)
{
    char path[PATH_MAX];
    if (gj_env_get(GJ_ENV_NVRTC) == NULL && cli_build_tree_find("lib/libnvrtc.so.13", path, sizeof(path)))
        setenv(gj_env_name(GJ_ENV_NVRTC), path, 1); /* set but empty counts as unset */
}
