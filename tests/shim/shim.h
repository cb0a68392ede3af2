/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shim share: which rule a call meets. The rules' words are in README.md. */
#ifndef GJ_TESTS_SHIM_H
#define GJ_TESTS_SHIM_H

/* The calls behind the wrappers are all of this process's C library: each name is defined as it is called. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS

#include <stddef.h>

enum shim_action {
    SHIM_PASS,
    SHIM_FAIL,     /* nothing is done, errno is error */
    SHIM_LATE,     /* it is done, and errno is error: the answer was lost */
    SHIM_SHORT,    /* fewer bytes than asked for */
    SHIM_UNKNOWN,  /* the kind of what is listed is not told */
    SHIM_SILLY,    /* the name becomes .nfs..., as of a file that is open elsewhere */
    SHIM_UNSHARED, /* no mapping that is shared */
    SHIM_NFS,      /* an exclusive lock needs a descriptor that can write */
};

struct shim_verdict {
    enum shim_action action;
    int error;
};

/* What befalls a call of this kind on a path, or on a descriptor when name is "". Counts it and writes it
 * into the log. Keeps errno. */
struct shim_verdict shim_judge(const char *kind, int dir, const char *name);

/* Stores the address of the next definition of a function in *function. */
void shim_find(const char *symbol, void *function);

/* Defines a wrapper. */
#define SHIM_WRAP(type, failure, kind, dir, name, symbol, params, args)                 \
    type symbol params                                                                  \
    {                                                                                   \
        const struct shim_verdict verdict = shim_judge(kind, dir, name);                \
        if (verdict.action == SHIM_FAIL)                                                \
            return (errno = verdict.error, failure);                                    \
        type(*next) params;                                                             \
        shim_find(#symbol, &next);                                                      \
        type result = next args;                                                        \
        return verdict.action == SHIM_LATE ? (errno = verdict.error, failure) : result; \
    }

#endif
