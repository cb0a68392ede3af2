/* SPDX-License-Identifier: Apache-2.0 */
/* A user's own function, compiled into kernels with act=own.
 *
 *     op=act    float f(float x)                                         PostAct
 *     op=dact   void f(float x, float g, float *dx, float *y)            x of PreAct, g the gradient of
 * PostAct op=gated  float f(float gate, float up)                            PostAct op=dgated void f(float
 * gate, float up, float g, float *dgate, float *dup, float *y)
 *
 * The source is CUDA C++ and is compiled as it is, in a namespace of its own; helper functions may stand
 * beside f. No preprocessor directive: it would act on the kernel too. No line ends in a backslash, which
 * could hide one, and no comment or brace stays open. Everything here is pure; safe from any thread. */
#ifndef GEMMJIT_OWN_H
#define GEMMJIT_OWN_H

#include <gemmjit/key.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gj_own {
    const char *name;   /* of the function: an identifier of at most 63 characters, without "__" */
    const char *source; /* at most 65536 bytes of UTF-8 */
    const char *file;   /* what messages call the source, at most 255 bytes; NULL: "own" */
};

/* The id that stands in a key for this name and source; the file does not count.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: the name, or the source (the message has file and line). error may be NULL.
 */
GJ_API enum gj_status gj_own_identify(const struct gj_own *own, struct gj_own_id *id, gj_error **error);

#ifdef __cplusplus
}
#endif

#endif
