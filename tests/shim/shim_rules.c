/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the shim: read from the environment once, matched and counted at each call. */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RULES = 32, PATH_BYTES = 4096 };

struct rule {
    char kind[16];  /* "*": any */
    char part[256]; /* of the path; "": any */
    struct shim_verdict verdict;
    unsigned long first, last; /* which of the calls that match, from 1 */
    atomic_ulong count;
};

static struct {
    pthread_once_t once;
    const char *dir, *log; /* NULL: none */
    struct rule rules[MAX_RULES];
    size_t num_rules;
} state = {.once = PTHREAD_ONCE_INIT};

static const struct {
    const char *name;
    enum shim_action action;
} actions[] = {{"short", SHIM_SHORT},
               {"unknown", SHIM_UNKNOWN},
               {"silly", SHIM_SILLY},
               {"nfs", SHIM_NFS},
               {"unshared", SHIM_UNSHARED}};

static const struct {
    const char *name;
    int error;
} errors[] = {
    {"EACCES", EACCES}, {"EBUSY", EBUSY},   {"EDQUOT", EDQUOT}, {"EINTR", EINTR},
    {"EINVAL", EINVAL}, {"EIO", EIO},       {"EMFILE", EMFILE}, {"ENODEV", ENODEV},
    {"ENOENT", ENOENT}, {"ENOLCK", ENOLCK}, {"ENOSPC", ENOSPC}, {"ENOSYS", ENOSYS},
    {"EPERM", EPERM},   {"EROFS", EROFS},   {"ESTALE", ESTALE}, {"EOPNOTSUPP", EOPNOTSUPP},
};

/* -- Reading the rules ------------------------------------------------------------------------------- */

static void refuse(const char *text)
{
    fprintf(stderr, "shim: the rule %s is none: see tests/shim/README.md\n", text);
    abort();
}

static bool find_action(const char *name, struct shim_verdict *verdict)
{
    char word[32];
    const size_t length = strcspn(name, "/");
    const bool is_late = strcmp(name + length, "/late") == 0;
    if (length >= sizeof word || (!is_late && name[length] != '\0'))
        return false;
    memcpy(word, name, length);
    word[length] = '\0';
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (strcmp(errors[i].name, word) == 0)
            *verdict = (struct shim_verdict){is_late ? SHIM_LATE : SHIM_FAIL, errors[i].error};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0] && !is_late; i++)
        if (strcmp(actions[i].name, word) == 0)
            *verdict = (struct shim_verdict){actions[i].action, 0};
    return verdict->action != SHIM_PASS;
}

/* "3": the third; "3+": from the third on; "3-5": from the third to the fifth; "": all. */
static bool read_range(const char *text, struct rule *rule)
{
    char *end;
    rule->first = 1;
    rule->last = (unsigned long)-1;
    if (text[0] == '\0')
        return true;
    rule->first = strtoul(text, &end, 10);
    if (end[0] == '\0')
        rule->last = rule->first;
    else if (end[0] == '-')
        rule->last = strtoul(end + 1, &end, 10);
    else if (strcmp(end, "+") == 0)
        end++;
    return rule->first > 0 && end[0] == '\0';
}

/* KIND[@PART]:ACTION[:RANGE] */
static void add_rule(const char *text)
{
    char kind[300], action[32], range[48] = "";
    if (state.num_rules == MAX_RULES || sscanf(text, "%299[^:]:%31[^:]:%47s", kind, action, range) < 2)
        refuse(text);
    struct rule *const rule = &state.rules[state.num_rules++];
    char *const part = strchr(kind, '@');
    if (part)
        *part = '\0';
    if (strlen(kind) >= sizeof rule->kind || (part && strlen(part + 1) >= sizeof rule->part))
        refuse(text);
    strcpy(rule->kind, kind);
    strcpy(rule->part, part ? part + 1 : "");
    if (!find_action(action, &rule->verdict) || !read_range(range, rule))
        refuse(text);
}

static void read_environment(void)
{
    const char *const rules = getenv("SHIM_RULES");
    state.dir = getenv("SHIM_DIR");
    state.log = getenv("SHIM_LOG");
    char *copy = strdup(rules ? rules : ""), *rest = copy;
    for (const char *rule; copy && (rule = strsep(&rest, " ")) != NULL;)
        if (rule[0] != '\0')
            add_rule(rule);
    free(copy);
}

/* -- Matching ---------------------------------------------------------------------------------------- */

/* The path of an open descriptor, by a system call that is not wrapped. */
static size_t path_of(int descriptor, char *path)
{
    char link[64];
    if (descriptor == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, (size_t)PATH_BYTES - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length < 0 ? 0 : (size_t)length;
}

static bool find_path(int dir, const char *name, char *path)
{
    size_t length = 0;
    if (name[0] != '/')
        length = path_of(dir, path);
    snprintf(path + length, PATH_BYTES - length, "%s%s", length > 0 && name[0] != '\0' ? "/" : "", name);
    const size_t own = strlen(state.dir);
    return strncmp(path, state.dir, own) == 0 && (path[own] == '/' || path[own] == '\0');
}

static struct shim_verdict match(const char *kind, const char *path)
{
    struct shim_verdict verdict = {SHIM_PASS, 0};
    for (size_t i = 0; i < state.num_rules; i++) {
        struct rule *const rule = &state.rules[i];
        if ((strcmp(rule->kind, "*") != 0 && strcmp(rule->kind, kind) != 0) || !strstr(path, rule->part))
            continue;
        const unsigned long number = atomic_fetch_add(&rule->count, 1) + 1;
        if (number >= rule->first && number <= rule->last && verdict.action == SHIM_PASS)
            verdict = rule->verdict;
    }
    return verdict;
}

/* One line a call: its kind, "!" when a rule met it, the path. No descriptor stays open. */
static void write_log(const char *kind, const char *path, enum shim_action action)
{
    char line[PATH_BYTES + 32];
    const int length = snprintf(line, sizeof line, "%s %s %s\n", kind, action == SHIM_PASS ? "-" : "!", path);
    const long file =
        syscall(SYS_openat, AT_FDCWD, state.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || syscall(SYS_write, file, line, (size_t)length) != length)
        abort();
    syscall(SYS_close, file);
}

struct shim_verdict shim_judge(const char *kind, int dir, const char *name)
{
    const int error = errno;
    struct shim_verdict verdict = {SHIM_PASS, 0};
    char path[PATH_BYTES];
    pthread_once(&state.once, read_environment);
    if (state.dir && find_path(dir, name, path)) {
        verdict = match(kind, path);
        if (state.log)
            write_log(kind, path, verdict.action);
    }
    errno = error;
    return verdict;
}

void shim_find(const char *symbol, void *function)
{
    const int error = errno;
    void *const found = dlsym(RTLD_NEXT, symbol);
    if (!found) {
        fprintf(stderr, "shim: this C library has no %s\n", symbol);
        abort();
    }
    memcpy(function, &found, sizeof found);
    errno = error;
}
