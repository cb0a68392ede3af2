/* SPDX-License-Identifier: Apache-2.0 */
/* SASS of a cubin through nvdisasm, which reads the cubin from memory: no temporary file is left anywhere. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "cli.h"

extern char **environ;

static enum gj_status fail_system(const char *what, int code, gj_error **error)
{
    return gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_NONE, code, strerrorname_np(code), "%s: %s", what,
                         strerror(code));
}

/* -- Where it is --------------------------------------------------------------------------------------- */

static bool is_program(const char *folder, size_t folder_length, const char *rest, char *path,
                       size_t capacity)
{
    struct stat status;
    const int length = snprintf(path, capacity, "%.*s%s/nvdisasm", (int)folder_length, folder, rest);
    return folder_length > 0 && length > 0 && (size_t)length < capacity && stat(path, &status) == 0 &&
           S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_list(const char *list, char *path, size_t capacity)
{
    for (const char *at = list; at && *at;) {
        const size_t length = strcspn(at, ":");
        if (is_program(at, length, "", path, capacity))
            return true;
        at += length;
        at += *at == ':';
    }
    return false;
}

bool cli_disassembler_find(char *path, size_t capacity)
{
    const char *const home = gj_env_get(GJ_ENV_CUDA_HOME), *const root = gj_env_get(GJ_ENV_CUDA_PATH);
    if (find_in_list(getenv("PATH"), path, capacity) ||
        (home && is_program(home, strlen(home), "/bin", path, capacity)) ||
        (root && is_program(root, strlen(root), "/bin", path, capacity)) ||
        find_in_list("/usr/local/cuda/bin", path, capacity) ||
        (*GJ_NVRTC_DIR && is_program(GJ_NVRTC_DIR, strlen(GJ_NVRTC_DIR), "/../bin", path, capacity)))
        return true;
    return cli_build_tree_find("bin/nvdisasm", path, capacity);
}

/* -- Running it ---------------------------------------------------------------------------------------- */

/* Reads to the end. Returns 0 or an errno. */
static int read_all(int file, struct gj_strbuf *text)
{
    char piece[16384];
    for (;;) {
        const ssize_t got = read(file, piece, sizeof(piece));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? 0 : errno;
        gj_strbuf_add(text, piece, (size_t)got);
    }
}

/* Starts `path -c <image>` with its stdout on `out` and its stderr on `err`. Returns 0 or an errno. */
static int start(const char *path, int image, int out, int err, pid_t *child)
{
    char image_path[32];
    snprintf(image_path, sizeof(image_path), "/proc/self/fd/%d", image);
    char *const arguments[] = {(char *)path, (char *)"-c", image_path, NULL};
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0)
        return code;
    code = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    if (code == 0)
        code = posix_spawn(child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* Output goes through memory files, not pipes: neither side can block the other. */
static enum gj_status run(const char *path, const int files[3], struct gj_strbuf *text, gj_error **error)
{
    pid_t child;
    const int started = start(path, files[0], files[1], files[2], &child);
    if (started != 0)
        return fail_system(path, started, error);
    int outcome = 0;
    while (waitpid(child, &outcome, 0) < 0)
        if (errno != EINTR)
            return fail_system(path, errno, error);
    struct gj_strbuf complaint = {0};
    lseek(files[1], 0, SEEK_SET);
    lseek(files[2], 0, SEEK_SET);
    int code = read_all(files[1], text);
    if (code == 0)
        code = read_all(files[2], &complaint);
    enum gj_status status = GJ_OK;
    if (code != 0) {
        status = fail_system("the output of nvdisasm cannot be read", code, error);
    } else if (!WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0) {
        status = gj_error_make(error, GJ_ERR_SYSTEM, GJ_STAGE_NONE, 0, "", "%s failed with %s %d", path,
                               WIFEXITED(outcome) ? "exit status" : "signal",
                               WIFEXITED(outcome) ? WEXITSTATUS(outcome) : WTERMSIG(outcome));
        gj_error_set_detail(error, complaint.text);
    }
    gj_strbuf_free(&complaint);
    return status;
}

enum gj_status cli_disassemble(const void *cubin, size_t bytes, struct gj_strbuf *text, gj_error **error)
{
    char path[PATH_MAX];
    if (!cli_disassembler_find(path, sizeof(path)))
        GJ_FAIL(error, GJ_ERR_NO_COMPILER, GJ_STAGE_NONE,
                "no nvdisasm in PATH, CUDA_HOME/bin, CUDA_PATH/bin or /usr/local/cuda/bin: install the CUDA "
                "toolkit's package cuda-nvdisasm, or put the one that tools/quickstart fetches into PATH");
    int files[3] = {-1, -1, -1};
    enum gj_status status = GJ_OK;
    /* The image is handed on by number, so it alone stays open in the child. */
    files[0] = memfd_create("cubin", 0);
    files[1] = memfd_create("stdout", MFD_CLOEXEC);
    files[2] = memfd_create("stderr", MFD_CLOEXEC);
    if (files[0] < 0 || files[1] < 0 || files[2] < 0)
        status = fail_system("memory files cannot be made", errno, error);
    const char *rest = cubin;
    while (status == GJ_OK && bytes > 0) {
        const ssize_t written = write(files[0], rest, bytes);
        if (written < 0 && errno != EINTR)
            status = fail_system("a memory file cannot be written", errno, error);
        if (written > 0) {
            rest += written;
            bytes -= (size_t)written;
        }
    }
    if (status == GJ_OK)
        status = run(path, files, text, error);
    for (int i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
    return status;
}
