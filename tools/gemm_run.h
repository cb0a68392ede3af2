/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verb run share: the operands of one GEMM on a device. */
#ifndef GJ_TOOLS_GEMM_RUN_H
#define GJ_TOOLS_GEMM_RUN_H

#include "cli.h"
#include "cuda/device.h"

/* Every byte that the kernel must not touch, and D before the launch: a NaN in every element type. */
#define RUN_POISON 0xff
/* Poisoned bytes before and behind D. */
#define RUN_GUARD_BYTES 4096

/* One operand: `lines` lines of `length` contiguous elements in each batch, ld elements apart. */
struct run_matrix {
    struct gj_format format;
    int64_t lines, length, ld, batch_stride, batches;
    size_t guard_bytes, bytes; /* of one guard; of all with both guards */
    void *memory;              /* on the device, begins with a guard */
};

struct gemm_run {
    struct cli *cli;
    struct gj_key key; /* that runs */
    int64_t m, n, k, batch;
    gj_driver *driver;
    gj_device *device;
    struct run_matrix a, b, d;
    /* Values of A and B, each batch of them k-major whatever the format is: the reference reads these. */
    int8_t *a_values, *b_values;
};

/* Makes A, B and a poisoned D on the device. (cli_run_data.c) */
enum gj_status gemm_run_fill(struct gemm_run *run, gj_error **error);
/* Frees what gemm_run_fill made. */
void gemm_run_empty(struct gemm_run *run);
struct gj_tensor gemm_run_tensor(const struct run_matrix *matrix);

/* What a comparison found. */
struct gemm_check {
    int64_t rows, elements; /* compared with the reference: whole rows, elements in all */
    int64_t mismatches;
    double max_difference; /* infinite for a NaN */
    int64_t unwritten;     /* elements of D that still are poison */
    int64_t outside_bytes; /* bytes around D's elements that were written */
};
/* GJ_ERR_ARGUMENT: there is no exact reference for these extents or this type. (cli_run_verify.c) */
enum gj_status gemm_run_check_reference(const struct gemm_run *run, gj_error **error);
/* Reads D and compares it. */
enum gj_status gemm_run_verify(struct gemm_run *run, struct gemm_check *check, gj_error **error);
bool gemm_check_passed(const struct gemm_check *check);

#endif
