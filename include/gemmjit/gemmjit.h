/* SPDX-License-Identifier: Apache-2.0 */
/* gemmjit: Hopper GEMM kernels generated, compiled, cached and launched at run time.
 *
 *     struct gj_key problem = gj_key_default();              // bf16 A (M,K), B (N,K), D (M,N)
 *     gj_context *ctx = NULL;
 *     gj_context_open(NULL, &ctx, NULL);
 *     struct gj_gemm_args args = {.m = m, .n = n, .k = k, .batch = 1,
 *         .a = {a, .ld = k}, .b = {b, .ld = k}, .d = {d, .ld = n}};
 *     gj_error *err = NULL;
 *     if (gj_gemm(ctx, &problem, &args, stream, &err) != GJ_OK)
 *         fprintf(stderr, "%s\n", err->message);
 *     gj_error_free(&err);
 *     gj_context_close(&ctx);
 */
#ifndef GEMMJIT_H
#define GEMMJIT_H

#include <gemmjit/context.h>
#include <gemmjit/error.h>
#include <gemmjit/key.h>
#include <gemmjit/launch.h>
#include <gemmjit/own.h>

#endif
