/* SPDX-License-Identifier: Apache-2.0 */
/* The words of key text. */
#include "key/key_tables.h"

#include <string.h>

#define WORDS(array)                                     \
    {                                                    \
        array, (int)(sizeof(array) / sizeof((array)[0])) \
    }

static const char *const op_names[] = {
    [GJ_OP_GEMM] = "gemm",   [GJ_OP_ACT] = "act",       [GJ_OP_DACT] = "dact",
    [GJ_OP_GATED] = "gated", [GJ_OP_DGATED] = "dgated",
};
static const char *const dtype_names[] = {
    [GJ_DTYPE_NONE] = "none", [GJ_DTYPE_F16] = "f16",   [GJ_DTYPE_BF16] = "bf16",
    [GJ_DTYPE_F32] = "f32",   [GJ_DTYPE_E4M3] = "e4m3", [GJ_DTYPE_E5M2] = "e5m2",
};
static const char *const major_names[] = {
    [GJ_MAJOR_NONE] = NULL,
    [GJ_MAJOR_K] = "k",
    [GJ_MAJOR_M] = "m",
    [GJ_MAJOR_N] = "n",
};
static const char *const acc_names[] = {
    [GJ_DTYPE_NONE] = NULL,
    [GJ_DTYPE_F16] = "f16",
    [GJ_DTYPE_BF16] = NULL,
    [GJ_DTYPE_F32] = "f32",
};
static const char *const act_names[] = {
    [GJ_ACT_NONE] = "none",
    [GJ_ACT_RELU] = "relu",
    [GJ_ACT_RELU_SQ] = "relu_sq",
    [GJ_ACT_GELU_TANH] = "gelu_tanh",
    [GJ_ACT_GELU_ERF] = "gelu_erf",
    [GJ_ACT_SILU] = "silu",
    [GJ_ACT_QUICK_GELU] = "quick_gelu",
    [GJ_ACT_SIGMOID] = "sigmoid",
    [GJ_ACT_TANH] = "tanh",
    [GJ_ACT_SWIGLU] = "swiglu",
    [GJ_ACT_SWIGLU_OAI] = "swiglu_oai",
    [GJ_ACT_GEGLU] = "geglu",
    [GJ_ACT_REGLU] = "reglu",
    [GJ_ACT_GLU] = "glu",
    [GJ_ACT_OWN] = "own",
};
static const char *const alpha_names[] = {
    [GJ_SCALAR_NONE] = NULL,
    [GJ_SCALAR_ONE] = "one",
    [GJ_SCALAR_HOST] = "host",
    [GJ_SCALAR_DEVICE] = "device",
};
static const char *const beta_names[] = {
    [GJ_SCALAR_NONE] = "none",
    [GJ_SCALAR_ONE] = "one",
    [GJ_SCALAR_HOST] = "host",
    [GJ_SCALAR_DEVICE] = "device",
};
static const char *const batch_names[] = {
    [GJ_BATCH_DENSE] = "dense",
    [GJ_BATCH_VARLEN_M] = "varlen_m",
    [GJ_BATCH_VARLEN_K] = "varlen_k",
};
static const char *const gather_names[] = {[GJ_GATHER_NONE] = "none", [GJ_GATHER_A] = "a"};
static const char *const fp8acc_names[] = {
    [GJ_FP8ACC_NONE] = NULL,
    [GJ_FP8ACC_PROMOTED] = "promoted",
    [GJ_FP8ACC_FAST] = "fast",
};
static const char *const sched_names[] = {
    [GJ_SCHED_PINGPONG] = "pingpong",
    [GJ_SCHED_COOP] = "coop",
    [GJ_SCHED_SINGLE] = "single",
};
static const char *const tiles_names[] = {
    [GJ_TILES_STATIC] = "static",
    [GJ_TILES_DYNAMIC] = "dynamic",
    [GJ_TILES_ONCE] = "once",
};
static const char *const swap_ab_names[] = {[GJ_SWAP_AB_NO] = "no", [GJ_SWAP_AB_YES] = "yes"};
static const char *const gate_names[] = {
    [GJ_GATE_NONE] = NULL,
    [GJ_GATE_INTERLEAVED] = "interleaved",
    [GJ_GATE_HALVES] = "halves",
};
static const char *const bias_names[] = {
    [GJ_BIAS_NONE] = "none",         [GJ_BIAS_ROW_F32] = "row.f32", [GJ_BIAS_ROW_F16] = "row.f16",
    [GJ_BIAS_ROW_BF16] = "row.bf16", [GJ_BIAS_COL_F32] = "col.f32", [GJ_BIAS_COL_F16] = "col.f16",
    [GJ_BIAS_COL_BF16] = "col.bf16",
};
static const char *const scale_names[] = {
    [GJ_SCALE_NONE] = "none", [GJ_SCALE_TENSOR] = "tensor",   [GJ_SCALE_ROW] = "row",
    [GJ_SCALE_COL] = "col",   [GJ_SCALE_ROW_COL] = "row_col",
};
static const char *const quant_names[] = {
    [GJ_QUANT_NONE] = "none",
    [GJ_QUANT_SCALE] = "scale",
    [GJ_QUANT_AMAX] = "amax",
};

static const char *const split_k_names[] = {
    [GJ_SPLIT_K_NONE] = "none",
    [GJ_SPLIT_K_2] = "2",
    [GJ_SPLIT_K_4] = "4",
};
static const char *const ctas_per_sm_names[] = {[GJ_CTAS_PER_SM_1] = "1", [GJ_CTAS_PER_SM_2] = "2"};

const struct gj_words gj_dtype_words = WORDS(dtype_names);
const struct gj_words gj_major_words = WORDS(major_names);

#define BIT(dtype) (1u << (dtype))
#define INPUT_DTYPES (BIT(GJ_DTYPE_F16) | BIT(GJ_DTYPE_BF16) | BIT(GJ_DTYPE_E4M3) | BIT(GJ_DTYPE_E5M2))
#define OUTPUT_DTYPES (INPUT_DTYPES | BIT(GJ_DTYPE_F32) | BIT(GJ_DTYPE_NONE))

#define WORD(name_, member, array)                                                       \
    {                                                                                    \
        .name = name_, .kind = GJ_FIELD_WORD, .offset = offsetof(struct gj_key, member), \
        .words = WORDS(array)                                                            \
    }
#define CONFIG(name_, member, array)                                                     \
    {                                                                                    \
        .name = name_, .kind = GJ_FIELD_WORD, .offset = offsetof(struct gj_key, member), \
        .words = WORDS(array), .is_config = true                                         \
    }
/* A field that came after the first version: not printed while it has its first value, so that older texts
 * stay as they are. */
#define LATER(name_, member, array)                                                      \
    {                                                                                    \
        .name = name_, .kind = GJ_FIELD_WORD, .offset = offsetof(struct gj_key, member), \
        .words = WORDS(array), .quiet = true                                             \
    }
#define LATER_CONFIG(name_, member, array)                                               \
    {                                                                                    \
        .name = name_, .kind = GJ_FIELD_WORD, .offset = offsetof(struct gj_key, member), \
        .words = WORDS(array), .quiet = true, .is_config = true                          \
    }
#define FORMAT(member, dtypes_, first, second)                                               \
    {                                                                                        \
        .name = #member, .kind = GJ_FIELD_FORMAT, .offset = offsetof(struct gj_key, member), \
        .dtypes = dtypes_, .majors = {                                                       \
            first,                                                                           \
            second                                                                           \
        }                                                                                    \
    }
#define PAIR(name_, member)                                                                                \
    {                                                                                                      \
        .name = name_, .kind = GJ_FIELD_PAIR, .offset = offsetof(struct gj_key, member), .is_config = true \
    }

const struct gj_field gj_fields[] = {
    WORD("op", op, op_names),
    FORMAT(a, INPUT_DTYPES, GJ_MAJOR_K, GJ_MAJOR_M),
    FORMAT(b, INPUT_DTYPES, GJ_MAJOR_K, GJ_MAJOR_N),
    FORMAT(c, OUTPUT_DTYPES, GJ_MAJOR_N, GJ_MAJOR_M),
    FORMAT(d, OUTPUT_DTYPES, GJ_MAJOR_N, GJ_MAJOR_M),
    FORMAT(p, OUTPUT_DTYPES, GJ_MAJOR_N, GJ_MAJOR_M),
    WORD("acc", acc, acc_names),
    WORD("act", act, act_names),
    WORD("alpha", alpha, alpha_names),
    WORD("beta", beta, beta_names),
    WORD("batch", batch, batch_names),
    WORD("gather", gather, gather_names),
    WORD("fp8acc", fp8acc, fp8acc_names),
    PAIR("tile", tile_m),
    PAIR("cluster", cluster_m),
    CONFIG("sched", sched, sched_names),
    CONFIG("tiles", tiles, tiles_names),
    CONFIG("swap_ab", swap_ab, swap_ab_names),
    LATER("gate", gate, gate_names),
    LATER("bias", bias, bias_names),
    LATER("scale", scale, scale_names),
    LATER("quant", quant, quant_names),
    {.name = "own", .kind = GJ_FIELD_ID, .offset = offsetof(struct gj_key, own), .quiet = true},
    LATER_CONFIG("split_k", split_k, split_k_names),
    LATER_CONFIG("ctas_per_sm", ctas_per_sm, ctas_per_sm_names),
};
const int gj_num_fields = (int)(sizeof(gj_fields) / sizeof(gj_fields[0]));

int gj_words_find(struct gj_words words, const char *word, size_t length)
{
    for (int i = 0; i < words.count; i++)
        if (words.names[i] != NULL && strlen(words.names[i]) == length &&
            memcmp(words.names[i], word, length) == 0)
            return i;
    return -1;
}

size_t gj_field_bytes(const struct gj_field *field)
{
    switch (field->kind) {
    case GJ_FIELD_WORD:
        return sizeof(int);
    case GJ_FIELD_FORMAT:
        return sizeof(struct gj_format);
    case GJ_FIELD_PAIR:
        return 2 * sizeof(int);
    case GJ_FIELD_ID:
        return sizeof(struct gj_own_id);
    }
    return 0;
}

bool gj_op_is_gated(enum gj_op op)
{
    return op == GJ_OP_GATED || op == GJ_OP_DGATED;
}

bool gj_key_has_field(const struct gj_key *key, const struct gj_field *field)
{
    if (field->offset == offsetof(struct gj_key, p))
        return key->op != GJ_OP_GEMM;
    if (field->offset == offsetof(struct gj_key, fp8acc))
        return gj_dtype_bytes(key->a.dtype) == 1 && gj_dtype_bytes(key->b.dtype) == 1;
    if (field->offset == offsetof(struct gj_key, gate))
        return gj_op_is_gated(key->op);
    if (field->offset == offsetof(struct gj_key, own))
        return key->act == GJ_ACT_OWN;
    return true;
}
