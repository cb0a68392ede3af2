/* SPDX-License-Identifier: Apache-2.0 */
/* Running a kernel: D = alpha A B^T + beta C on a stream.
 *
 * A launch allocates nothing and takes no lock once the kernel is prepared on the stream's device. Every
 * pointer, stride and extent is checked on each call; nothing is launched when one breaks a rule. */
#ifndef GEMMJIT_LAUNCH_H
#define GEMMJIT_LAUNCH_H

#include <stdint.h>

#include <gemmjit/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operand in device memory. Its rows, in the sense of memory, are runs of the contiguous matrix
 * dimension: of K for a k-major A or B, of M for an m-major A, C or D, of N for an n-major B, C or D. */
struct gj_tensor {
    void *data; /* device pointer, 16-byte aligned */
    int64_t ld; /* elements between two rows; ld * element bytes is a multiple of 16, and ld >= the contiguous
                   extent */
    int64_t batch_stride; /* elements between two batches, a multiple of 16 bytes; ignored when batch <= 1.
                             For A, B and C 0 means that all batches share one matrix */
};

/* Order in which tiles are visited (quack's names). Results do not depend on it. */
enum gj_raster { GJ_RASTER_HEURISTIC, GJ_RASTER_ALONG_M, GJ_RASTER_ALONG_N };

/* Flags of a launch, for kernels with sched=single; other kernels start when the work in front of them in the
 * stream has ended, whatever the flags say. OVERLAP: the launch may start before the kernel in front of it in
 * the stream has ended (programmatic dependent launch). A, C, the vectors and scalars in device memory are
 * read, and D and PostAct written, only after its end, so that a chain of launches gives what it gives
 * without the flag. B_CONSTANT, with OVERLAP: no work that may still be running when the launch is enqueued
 * writes B. Then B is loaded before that end: 1 to 2 us of 9 to 13 for few rows of A. B that is written is
 * read too early: wrong results. */
#define GJ_LAUNCH_OVERLAP 1u
#define GJ_LAUNCH_B_CONSTANT 2u

/* Arguments of one GEMM. Zero everything, then set what applies.
 *
 * Zeros mean what they mean in BLAS: with beta = 0 C is not read (NaN and Inf in it do not reach D, and c may
 * be all zero when beta is a host value); with alpha = 0 the product does not count, whatever A and B hold;
 * with k = 0 D = beta * C, or zeros. C may be D: same address, strides, type and major. */
struct gj_gemm_args {
    int64_t m, n,
        k; /* of A B^T. op=gated: n is even and PostAct has n / 2 columns; op=dgated: C and D have 2 n */
    int64_t batch; /* number of matrices; 0 is an empty batch, so set 1 for a single GEMM */
    struct gj_tensor a, b, c, d;
    float alpha, beta;                       /* used where the key says host */
    const float *alpha_device, *beta_device; /* one f32 each in device memory, 4-byte aligned, read while the
                                                kernel runs; used where the key says device */
    enum gj_raster raster;
    int group_size;             /* tiles per raster group; 0: 8 */
    int max_sms;                /* upper bound of CTAs; 0: all that fit */
    const int32_t *batch_order; /* device memory: a permutation of the batches in the order of processing;
                                   results do not depend on it; NULL: ascending */
    struct gj_tensor p; /* PostAct, where the operation has one; rules as for D. In op=dact and op=dgated C is
                           PreAct, read only, and D the gradient of PreAct */
    const void *bias;   /* M or N values, see enum gj_bias */
    int64_t bias_batch_stride;      /* elements; 0: all batches share them */
    const float *scale_a, *scale_b; /* factors of A (one, or M for the rows) and of B (one, or N for the
                                       columns): those that the key's scale names */
    int64_t scale_a_batch_stride, scale_b_batch_stride; /* elements; 0: all batches share them */
    const float *quant_scale; /* one f32, where the key says quant=scale or quant=amax */
    float *amax; /* one f32, quant=amax: raised to the largest absolute value before the factor; NaN if there
                    is one. The caller sets it to 0 */
    uint32_t *tile_counter; /* tiles=dynamic: one word of device memory that is 0 before the launch and again
                               after it, not shared by launches that overlap; NULL: the library's own */
    unsigned flags;         /* GJ_LAUNCH_OVERLAP, GJ_LAUNCH_B_CONSTANT */
};

/* Launches a kernel on a stream (a CUstream or cudaStream_t; NULL is the legacy default stream). Prepares the
 * kernel on the stream's device first when that was not done. m, n or batch of 0 succeed without a launch.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: the message names operand, value and rule; GJ_ERR_NOT_PREPARED: the stream
 * is capturing and the kernel is not prepared on its device; GJ_ERR_NO_DRIVER; GJ_ERR_NO_DEVICE;
 * GJ_ERR_DRIVER; GJ_ERR_NO_MEMORY. error may be NULL. */
GJ_API enum gj_status gj_launch(gj_kernel *kernel, const struct gj_gemm_args *args, void *stream,
                                gj_error **error);

/* A launch whose arguments have been checked and whose tensor maps are encoded, to be repeated with other
 * matrices of the same extents and strides: a layer that is run again and again. */
typedef struct gj_prepared gj_prepared;

/* Prepares a launch of a kernel on a device, and the kernel there, see gj_kernel_prepare. Everything in args
 * but the addresses of A, B, C, D and P stays as it is given here: extents, strides, scalars, vectors, and
 * whether beta is 0. The kernel's context must outlive what is made, which the caller frees with
 * gj_prepared_free.
 * Returns GJ_OK; as gj_launch and gj_kernel_prepare; GJ_ERR_ARGUMENT also for an empty problem. */
GJ_API enum gj_status gj_launch_prepare(gj_kernel *kernel, const struct gj_gemm_args *args, int device,
                                        gj_prepared **prepared, gj_error **error);

/* Addresses of the matrices of one launch, device memory, each a multiple of 16 bytes; those that the kernel
 * does not have, and C where beta was 0 on the host, are ignored. */
struct gj_pointers {
    const void *a, *b, *c;
    void *d, *p;
};

/* Launches with these matrices on a stream of the device. Changes nothing in prepared, so that threads may
 * share it. Allocates nothing, takes no lock.
 * Returns GJ_OK; GJ_ERR_ARGUMENT: an address breaks a rule, or the stream is of another device;
 * GJ_ERR_NO_DEVICE; GJ_ERR_DRIVER. */
GJ_API enum gj_status gj_prepared_launch(const gj_prepared *prepared, const struct gj_pointers *pointers,
                                         void *stream, gj_error **error);
GJ_API void gj_prepared_free(gj_prepared **prepared);

/* Chooses a config for the problem and its extents, then does gj_kernel_get and gj_launch. The config fields
 * of `problem` are ignored. The choice is deterministic: it depends on the problem, the extents, the
 * context's tuning tables, and name and SMs of the device only. With max_sms below the SMs of the device it
 * is the model's, see gj_key_choose, else that of gj_context_choose. With GJ_LAUNCH_OVERLAP it is
 * gj_key_choose's for up to 64 rows, because tables hold what was measured without it. Returns as
 * gj_kernel_get and gj_launch. */
GJ_API enum gj_status gj_gemm(gj_context *context, const struct gj_key *problem,
                              const struct gj_gemm_args *args, void *stream, gj_error **error);

/* The config that the model prefers on a device with num_sms SMs; 0 means 132 (H100 SXM, H200). gj_gemm
 * takes it where no tuning table has measured another. For one problem, n and k there are at most 31
 * different ones over all m and batch: 24 of a menu, which serves all n and k, and 7 for up to 64 rows. A
 * problem that takes none of the menu has no such bound. Pure. Returns GJ_OK; GJ_ERR_UNSUPPORTED: no config
 * is accepted for the problem (reasons of the default config); GJ_ERR_NO_MEMORY. */
GJ_API enum gj_status gj_key_choose(const struct gj_key *problem, int64_t m, int64_t n, int64_t k,
                                    int64_t batch, int num_sms, struct gj_key *key, gj_error **error);

/* The config that gj_gemm would choose in this context on a device of this name, as cuDeviceGetName has it,
 * with num_sms SMs (0: 132): that of the first tuning table that has one for the problem and its extents,
 * else gj_key_choose. gpu_name NULL: no table is asked. Extents are not checked. Needs neither a GPU nor a
 * lock, and may be called from any thread. The config fields of `problem` are ignored; *key is the caller's
 * and untouched on failure. Returns as gj_key_choose. */
GJ_API enum gj_status gj_context_choose(const gj_context *context, const struct gj_key *problem, int64_t m,
                                        int64_t n, int64_t k, int64_t batch, const char *gpu_name,
                                        int num_sms, struct gj_key *key, gj_error **error);

#ifdef __cplusplus
}
#endif

#endif
