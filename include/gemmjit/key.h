/* SPDX-License-Identifier: Apache-2.0 */
/* The compile key: all that specialises a kernel, as a plain struct and as one line of text.
 *
 *     op=gemm,a=bf16.k,b=bf16.k,d=bf16.n,tile=128x192,cluster=2x1,sched=pingpong
 *
 * Extents, strides, pointers, scalars, SM count, raster order and group size are run-time arguments and
 * never part of a key. D = alpha * A B^T + beta * C with A (L,M,K), B (L,N,K), C and D (L,M,N).
 *
 * Everything here is pure: no CUDA, no environment, no global state; safe from any thread. */
#ifndef GEMMJIT_KEY_H
#define GEMMJIT_KEY_H

#include <stddef.h>

#include <gemmjit/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gj_op { GJ_OP_GEMM, GJ_OP_ACT, GJ_OP_DACT, GJ_OP_GATED, GJ_OP_DGATED };

enum gj_dtype { GJ_DTYPE_NONE, GJ_DTYPE_F16, GJ_DTYPE_BF16, GJ_DTYPE_F32, GJ_DTYPE_E4M3, GJ_DTYPE_E5M2 };

/* Which of an operand's two matrix dimensions is contiguous: A k or m; B k or n; C, D, PostAct n or m. */
enum gj_major { GJ_MAJOR_NONE, GJ_MAJOR_K, GJ_MAJOR_M, GJ_MAJOR_N };

/* op=act and op=dact take the functions of one value, op=gated and op=dgated those of a gate and an up value;
 * own is either, see struct gj_own. docs/epilogues.md has the formulas and the errors. */
enum gj_act {
    GJ_ACT_NONE,
    GJ_ACT_RELU,
    GJ_ACT_RELU_SQ,
    GJ_ACT_GELU_TANH,
    GJ_ACT_GELU_ERF,
    GJ_ACT_SILU,
    GJ_ACT_QUICK_GELU,
    GJ_ACT_SIGMOID,
    GJ_ACT_TANH,
    GJ_ACT_SWIGLU,
    GJ_ACT_SWIGLU_OAI,
    GJ_ACT_GEGLU,
    GJ_ACT_REGLU,
    GJ_ACT_GLU,
    GJ_ACT_OWN
};

/* How a scalar reaches the kernel: absent, constant 1 (no multiply is generated), a kernel parameter, or an
 * f32 in device memory that is read when the epilogue runs. */
enum gj_scalar_mode { GJ_SCALAR_NONE, GJ_SCALAR_ONE, GJ_SCALAR_HOST, GJ_SCALAR_DEVICE };

enum gj_batch { GJ_BATCH_DENSE, GJ_BATCH_VARLEN_M, GJ_BATCH_VARLEN_K };
enum gj_gather { GJ_GATHER_NONE, GJ_GATHER_A };
enum gj_fp8acc { GJ_FP8ACC_NONE, GJ_FP8ACC_PROMOTED, GJ_FP8ACC_FAST };

/* Cooperative: the MMA warp groups share one tile. Pingpong: each of two warp groups owns a whole tile, one
 * computes while the other stores. Single: one MMA warp group, stages twice as deep along K, and a load warp
 * for each operand, so that B can be loaded before A is there (GJ_LAUNCH_OVERLAP). For problems that only
 * stream B: few rows of A, with swap_ab. */
enum gj_sched { GJ_SCHED_PINGPONG, GJ_SCHED_COOP, GJ_SCHED_SINGLE };

/* Tile scheduler: persistent static, persistent dynamic, or one tile per CTA. */
enum gj_tiles { GJ_TILES_STATIC, GJ_TILES_DYNAMIC, GJ_TILES_ONCE };

/* Whether the kernel computes D^T = B A^T instead: tile and cluster then count along N first, and the 64-row
 * side of wgmma takes the rows of B. For few rows of A. */
enum gj_swap_ab { GJ_SWAP_AB_NO, GJ_SWAP_AB_YES };

/* Where the gate and up columns of a gated operation are among the N columns of A B^T: gate 0, up 0, gate 1,
 * up 1 and so on, or all gates, then all ups. NONE for other operations. */
enum gj_gate { GJ_GATE_NONE, GJ_GATE_INTERLEAVED, GJ_GATE_HALVES };

/* A vector added before the operation. Row: one value for each row of D, so M of them. Col: one value for
 * each column, so N (the bias of a linear layer). */
enum gj_bias {
    GJ_BIAS_NONE,
    GJ_BIAS_ROW_F32,
    GJ_BIAS_ROW_F16,
    GJ_BIAS_ROW_BF16,
    GJ_BIAS_COL_F32,
    GJ_BIAS_COL_F16,
    GJ_BIAS_COL_BF16
};

/* f32 factors of A B^T in device memory: one for A and one for B, one for each row (of A), one for each
 * column (row of B), or both. */
enum gj_scale { GJ_SCALE_NONE, GJ_SCALE_TENSOR, GJ_SCALE_ROW, GJ_SCALE_COL, GJ_SCALE_ROW_COL };

/* What happens to the last output (PostAct, or D where the operation has none) before it is rounded: nothing;
 * it is multiplied by an f32 in device memory; that, and the largest absolute value before the factor is
 * written back. */
enum gj_quant { GJ_QUANT_NONE, GJ_QUANT_SCALE, GJ_QUANT_AMAX };

/* CTAs that share the K of a tile: a cluster, whose first CTA adds the sums up in a fixed order. For
 * sched=single with tiles=once, where there are fewer tiles than SMs. */
enum gj_split_k { GJ_SPLIT_K_NONE, GJ_SPLIT_K_2, GJ_SPLIT_K_4 };

/* CTAs that fit an SM: two have half the shared memory each. For sched=single with a short K. */
enum gj_ctas_per_sm { GJ_CTAS_PER_SM_1, GJ_CTAS_PER_SM_2 };

/* Names a user's own function: see gj_own_hash. Zeros: none. */
struct gj_own_id {
    unsigned high, low;
};

/* Element type and major of one operand; {NONE, NONE} when the operand is absent. */
struct gj_format {
    enum gj_dtype dtype;
    enum gj_major major;
};

struct gj_key {
    enum gj_op op;
    struct gj_format a, b, c, d, p; /* p: PostAct */
    enum gj_dtype acc;
    enum gj_act act;
    enum gj_scalar_mode alpha, beta;
    enum gj_batch batch;
    enum gj_gather gather;
    enum gj_fp8acc fp8acc;    /* NONE unless A and B are 8-bit */
    int tile_m, tile_n;       /* elements of D per CTA tile */
    int cluster_m, cluster_n; /* CTAs along M and N */
    enum gj_sched sched;
    enum gj_tiles tiles;
    enum gj_swap_ab swap_ab;
    enum gj_gate gate;
    enum gj_bias bias;
    enum gj_scale scale;
    enum gj_quant quant;
    struct gj_own_id own; /* zeros unless act is own */
    enum gj_split_k split_k;
    enum gj_ctas_per_sm ctas_per_sm;
};

/* Longest canonical key text, with its terminating zero. */
#define GJ_KEY_TEXT_MAX 320

/* The key of the empty text: bf16 k-major A and B, bf16 n-major D, tile 128x192, cluster 2x1, pingpong. */
GJ_API struct gj_key gj_key_default(void);

/* Reads one line of `name=value` fields separated by commas, in any order. Fields left out take their
 * defaults (beta: none when c=none, else one). The key is well formed, not necessarily accepted: see
 * gj_key_check. *key is written only on success.
 * Returns GJ_OK; GJ_ERR_KEY: a field is unknown, repeated, malformed or contradicts another (the message
 * names the field, its value and what is allowed); GJ_ERR_NO_MEMORY. error may be NULL. */
GJ_API enum gj_status gj_key_parse(const char *text, struct gj_key *key, gj_error **error);

/* Writes the canonical text: every field that applies, in the documented order; gate, bias, scale, quant,
 * own, split_k and ctas_per_sm only where they are not none or 1. At most capacity bytes including the
 * terminating zero are written (truncated if it is too small). Returns the length that the whole text has,
 * without the zero. Parsing the text gives the same key. */
GJ_API size_t gj_key_format(const struct gj_key *key, char *text, size_t capacity);

/* Whether this version generates a kernel for the key.
 * Returns GJ_OK; GJ_ERR_UNSUPPORTED: error->reasons lists every reason with its numbers (bytes of shared
 * memory, registers, allowed values); GJ_ERR_ARGUMENT: an enum field holds a value outside its enum;
 * GJ_ERR_NO_MEMORY. error may be NULL. */
GJ_API enum gj_status gj_key_check(const struct gj_key *key, gj_error **error);

/* Enumerates the accepted keys that share `problem`'s problem fields (operation, types, majors, scalar
 * modes, batch, gather) and its tile scheduler and swap_ab, over all tiles, clusters and schedules, in a
 * fixed order. Writes at most capacity keys; returns how many there are in all. keys may be NULL when
 * capacity is 0. */
GJ_API size_t gj_keys_enumerate(const struct gj_key *problem, struct gj_key *keys, size_t capacity);

/* Name of an element type in key text, e.g. "bf16"; "none" for NONE. Static storage. */
GJ_API const char *gj_dtype_name(enum gj_dtype dtype);

/* Bytes of one element; 0 for NONE. */
GJ_API size_t gj_dtype_bytes(enum gj_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
