/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's share of a model under tensor parallelism, as inference servers split it: heads, and the columns
 * of gate, up and experts, are dealt out; key-value heads are copied when there are fewer than ranks. */
#include "model.h"

#define HAS(bits, bit) (((bits) & (1u << (bit))) != 0)

/* Servers pad the vocabulary to this before they split it. */
#define VOCAB_MULTIPLE 64

static enum gj_status split(const struct model *model, const char *what, int64_t value, int64_t *share,
                            gj_error **error)
{
    if (value % model->tp != 0)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
                "%s: %s %lld is no multiple of --tp %lld, among whose ranks it is divided", model->path, what,
                (long long)value, (long long)model->tp);
    *share = value / model->tp;
    return GJ_OK;
}

static enum gj_status split_member(const struct model *model, enum model_member member, int64_t *share,
                                   gj_error **error)
{
    return split(model, model_member_name(member), model->values[member], share, error);
}

static enum gj_status split_kv_heads(struct model *model, gj_error **error)
{
    const int64_t heads = model->values[MODEL_KV_HEADS];
    if (model->tp <= heads)
        return split_member(model, MODEL_KV_HEADS, &model->kv_heads, error);
    if (model->tp % heads != 0)
        GJ_FAIL(
            error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE,
            "%s: --tp %lld is no multiple of num_key_value_heads %lld, each of which equally many ranks copy",
            model->path, (long long)model->tp, (long long)heads);
    model->kv_heads = 1;
    return GJ_OK;
}

static enum gj_status split_shared(struct model *model, gj_error **error)
{
    const int64_t *const values = model->values;
    if (values[MODEL_SHARED_SIZE] > 0)
        return split_member(model, MODEL_SHARED_SIZE, &model->shared_ffn, error);
    /* At most 2^31 each, so their product is in range. */
    return split(model, "n_shared_experts * moe_intermediate_size =",
                 values[MODEL_SHARED_EXPERTS] * values[MODEL_EXPERT_SIZE], &model->shared_ffn, error);
}

enum gj_status model_split(struct model *model, gj_error **error)
{
    const int64_t *const values = model->values;
    const bool has_dense = HAS(model->parts, MODEL_GATED) || HAS(model->parts, MODEL_PLAIN);
    GJ_TRY(split_member(model, MODEL_HEADS, &model->heads, error));
    if (HAS(model->parts, MODEL_GQA))
        GJ_TRY(split_kv_heads(model, error));
    if (has_dense)
        GJ_TRY(split_member(model, MODEL_INTERMEDIATE_SIZE, &model->ffn, error));
    if (HAS(model->parts, MODEL_EXPERTS))
        GJ_TRY(split_member(model, model->architecture->expert_size, &model->expert_ffn, error));
    if (HAS(model->parts, MODEL_SHARED))
        GJ_TRY(split_shared(model, error));
    const int64_t vocab = values[MODEL_VOCAB_SIZE];
    const int64_t padded = (vocab + VOCAB_MULTIPLE - 1) / VOCAB_MULTIPLE * VOCAB_MULTIPLE;
    return split(model, vocab == padded ? "vocab_size" : "vocab_size, padded to a multiple of 64,", padded,
                 &model->vocab, error);
}
