/* SPDX-License-Identifier: Apache-2.0 */
/* The text of bench_kernels.cu, which the build embeds. */
#ifndef GJ_TOOLS_BENCH_KERNELS_H
#define GJ_TOOLS_BENCH_KERNELS_H

extern const char bench_kernels_text[];

#endif
