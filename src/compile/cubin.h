/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the facts of a cubin (an ELF of machine 190) without any CUDA tool. */
#ifndef GJ_COMPILE_CUBIN_H
#define GJ_COMPILE_CUBIN_H

#include <stddef.h>

#include <gemmjit/error.h>

/* Instruction counts of the entry's code: opcodes are the low 9 bits of each 16-byte instruction. */
struct gj_cubin_census {
    int instructions;
    int mma;       /* HGMMA and QGMMA */
    int warpgroup; /* WARPGROUP.ARRIVE and .DEPBAR */
    int tma_load, tma_store;
    int stmatrix;
    int set_max_register;
    int local_load, local_store; /* LDL, STL */
};

struct gj_cubin_facts {
    int sm;          /* 90 */
    int num_entries; /* __global__ functions */
    int registers;   /* per thread at launch */
    int frame_bytes; /* local memory per thread */
    int static_smem_bytes;
    int max_threads;  /* from __launch_bounds__; 0 when absent */
    int param_bytes;  /* size of the kernel parameters */
    int num_barriers; /* named barriers used */
    struct gj_cubin_census census;
};

/* Reads the facts of the entry called entry_name. Any byte string is safe input: every offset is checked.
 * Returns GJ_OK; GJ_ERR_COMPILE: not an ELF, not a CUDA ELF, truncated, or no such entry (the message names
 * those that exist). */
enum gj_status gj_cubin_read(const void *image, size_t bytes, const char *entry_name,
                             struct gj_cubin_facts *facts, gj_error **error);

#endif
