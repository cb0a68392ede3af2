/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a model as inference servers run them: what is multiplied by the same A is one matrix. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/args.h"
#include "model.h"

#define HAS(bits, bit) (((bits) & (1u << (bit))) != 0)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct weight {
    const char *name;
    enum model_part part;
    enum model_extent n, k;
};

static const struct weight weights[] = {
    {"qkv_proj", MODEL_GQA, MODEL_EXTENT_QKV, MODEL_EXTENT_HIDDEN},
    {"o_proj", MODEL_GQA, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_HEADS},
    /* Some servers run the two low-rank projections of A as one matrix, others one by one. */
    {"fused_qkv_a_proj_with_mqa", MODEL_MLA_Q_LORA, MODEL_EXTENT_QKV_A, MODEL_EXTENT_HIDDEN},
    {"q_a_proj", MODEL_MLA_Q_LORA, MODEL_EXTENT_Q_LORA, MODEL_EXTENT_HIDDEN},
    {"q_b_proj", MODEL_MLA_Q_LORA, MODEL_EXTENT_MLA_Q, MODEL_EXTENT_Q_LORA},
    {"q_proj", MODEL_MLA_Q, MODEL_EXTENT_MLA_Q, MODEL_EXTENT_HIDDEN},
    {"kv_a_proj_with_mqa", MODEL_MLA, MODEL_EXTENT_KV_A, MODEL_EXTENT_HIDDEN},
    {"kv_b_proj", MODEL_MLA, MODEL_EXTENT_KV_B, MODEL_EXTENT_KV_LORA},
    {"o_proj", MODEL_MLA, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_MLA_V},
    {"gate_up_proj", MODEL_GATED, MODEL_EXTENT_GATE_UP, MODEL_EXTENT_HIDDEN},
    {"down_proj", MODEL_GATED, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_FFN},
    {"fc1", MODEL_PLAIN, MODEL_EXTENT_FFN, MODEL_EXTENT_HIDDEN},
    {"fc2", MODEL_PLAIN, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_FFN},
    {"router", MODEL_ROUTER, MODEL_EXTENT_ROUTER, MODEL_EXTENT_HIDDEN},
    {"experts.gate_up_proj", MODEL_EXPERTS, MODEL_EXTENT_EXPERT_GATE_UP, MODEL_EXTENT_HIDDEN},
    {"experts.down_proj", MODEL_EXPERTS, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_EXPERT},
    {"shared_experts.gate_up_proj", MODEL_SHARED, MODEL_EXTENT_SHARED_GATE_UP, MODEL_EXTENT_HIDDEN},
    {"shared_experts.down_proj", MODEL_SHARED, MODEL_EXTENT_HIDDEN, MODEL_EXTENT_SHARED},
    {"lm_head", MODEL_HEAD, MODEL_EXTENT_VOCAB, MODEL_EXTENT_HIDDEN},
};

/* A product that stops at what no extent may be. */
static int64_t multiply(int64_t a, int64_t b)
{
    return a > GJ_EXTENT_MAX / b ? (int64_t)GJ_EXTENT_MAX + 1 : a * b;
}

/* Every value is at most 2^31, so sums of a few are in range. */
static int64_t extent_value(const struct model *model, enum model_extent extent)
{
    const int64_t *const values = model->values;
    switch (extent) {
    case MODEL_EXTENT_HIDDEN:
        return values[MODEL_HIDDEN_SIZE];
    case MODEL_EXTENT_QKV:
        return multiply(model->heads + 2 * model->kv_heads, values[MODEL_HEAD_DIM]);
    case MODEL_EXTENT_HEADS:
        return multiply(model->heads, values[MODEL_HEAD_DIM]);
    case MODEL_EXTENT_FFN:
        return model->ffn;
    case MODEL_EXTENT_GATE_UP:
        return 2 * model->ffn;
    case MODEL_EXTENT_EXPERT:
        return model->expert_ffn;
    case MODEL_EXTENT_EXPERT_GATE_UP:
        return 2 * model->expert_ffn;
    case MODEL_EXTENT_SHARED:
        return model->shared_ffn;
    case MODEL_EXTENT_SHARED_GATE_UP:
        return multiply(model->shared_ffn, 2);
    case MODEL_EXTENT_ROUTER:
        return values[model->architecture->experts];
    case MODEL_EXTENT_VOCAB:
        return model->vocab;
    case MODEL_EXTENT_Q_LORA:
        return values[MODEL_Q_LORA];
    case MODEL_EXTENT_MLA_Q:
        return multiply(model->heads, values[MODEL_NOPE_DIM] + values[MODEL_ROPE_DIM]);
    case MODEL_EXTENT_KV_A:
        return values[MODEL_KV_LORA] + values[MODEL_ROPE_DIM];
    case MODEL_EXTENT_QKV_A:
        return values[MODEL_Q_LORA] + values[MODEL_KV_LORA] + values[MODEL_ROPE_DIM];
    case MODEL_EXTENT_KV_LORA:
        return values[MODEL_KV_LORA];
    case MODEL_EXTENT_KV_B:
        return multiply(model->heads, values[MODEL_NOPE_DIM] + values[MODEL_V_DIM]);
    case MODEL_EXTENT_MLA_V:
        return multiply(model->heads, values[MODEL_V_DIM]);
    }
    return 0;
}

/* The same in words; the names of experts' members differ, so those of the architecture are put in. */
static const char *extent_formula(const struct model *model, enum model_extent extent)
{
    static const char *const formulas[] = {
        [MODEL_EXTENT_HIDDEN] = "hidden_size",
        [MODEL_EXTENT_QKV] = "(num_attention_heads / tp + 2 * max(num_key_value_heads / tp, 1)) * head_dim",
        [MODEL_EXTENT_HEADS] = "num_attention_heads / tp * head_dim",
        [MODEL_EXTENT_FFN] = "intermediate_size / tp",
        [MODEL_EXTENT_GATE_UP] = "2 * intermediate_size / tp",
        [MODEL_EXTENT_EXPERT] = "moe_intermediate_size / tp",
        [MODEL_EXTENT_EXPERT_GATE_UP] = "2 * moe_intermediate_size / tp",
        [MODEL_EXTENT_SHARED] = "n_shared_experts * moe_intermediate_size / tp",
        [MODEL_EXTENT_SHARED_GATE_UP] = "2 * n_shared_experts * moe_intermediate_size / tp",
        [MODEL_EXTENT_VOCAB] = "vocab_size / tp",
        [MODEL_EXTENT_Q_LORA] = "q_lora_rank",
        [MODEL_EXTENT_MLA_Q] = "num_attention_heads / tp * (qk_nope_head_dim + qk_rope_head_dim)",
        [MODEL_EXTENT_KV_A] = "kv_lora_rank + qk_rope_head_dim",
        [MODEL_EXTENT_QKV_A] = "q_lora_rank + kv_lora_rank + qk_rope_head_dim",
        [MODEL_EXTENT_KV_LORA] = "kv_lora_rank",
        [MODEL_EXTENT_KV_B] = "num_attention_heads / tp * (qk_nope_head_dim + v_head_dim)",
        [MODEL_EXTENT_MLA_V] = "num_attention_heads / tp * v_head_dim",
    };
    const bool is_dense_size = model->architecture->expert_size == MODEL_INTERMEDIATE_SIZE;
    if (extent == MODEL_EXTENT_ROUTER)
        return model_member_name(model->architecture->experts);
    if (extent == MODEL_EXTENT_EXPERT && is_dense_size)
        return formulas[MODEL_EXTENT_FFN];
    if (extent == MODEL_EXTENT_EXPERT_GATE_UP && is_dense_size)
        return formulas[MODEL_EXTENT_GATE_UP];
    if (extent == MODEL_EXTENT_SHARED && model->values[MODEL_SHARED_SIZE] > 0)
        return "shared_expert_intermediate_size / tp";
    if (extent == MODEL_EXTENT_SHARED_GATE_UP && model->values[MODEL_SHARED_SIZE] > 0)
        return "2 * shared_expert_intermediate_size / tp";
    if (extent == MODEL_EXTENT_VOCAB && model->values[MODEL_VOCAB_SIZE] % 64 != 0)
        return "vocab_size, padded to a multiple of 64, / tp";
    return formulas[extent];
}

/* The layers that have a part. */
static void describe_layers(const struct model *model, enum model_part part, struct gj_strbuf *text)
{
    const int64_t layers = model->values[MODEL_NUM_LAYERS], first = model->first_experts;
    const bool is_dense = part == MODEL_GATED || part == MODEL_PLAIN;
    const bool is_sparse = part == MODEL_ROUTER || part == MODEL_EXPERTS || part == MODEL_SHARED;
    const bool is_some = model->is_mixed && (is_dense || is_sparse);
    if (is_some && first == 0) {
        gj_strbuf_printf(text, "the layers %s experts", is_dense ? "without" : "with");
        return;
    }
    const int64_t from = is_some && is_sparse ? first : 0, to = (is_some && is_dense ? first : layers) - 1;
    if (from == to)
        gj_strbuf_printf(text, "layer %lld", (long long)from);
    else
        gj_strbuf_printf(text, "layers %lld to %lld", (long long)from, (long long)to);
}

static enum gj_status describe_place(const struct model *model, enum model_part part, char *place,
                                     size_t capacity, gj_error **error)
{
    struct gj_strbuf text = {0};
    if (part == MODEL_EXPERTS)
        gj_strbuf_printf(&text, "each of %lld experts of ",
                         (long long)model->values[model->architecture->experts]);
    if (part == MODEL_HEAD)
        gj_strbuf_puts(&text, "the model, once");
    else
        describe_layers(model, part, &text);
    const bool failed = text.failed;
    if (!failed)
        snprintf(place, capacity, "%s", text.text);
    gj_strbuf_free(&text);
    if (failed)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the problems of %s", model->path);
    return GJ_OK;
}

/* Servers quantise neither the router nor the head. */
static struct gj_key problem_key(const struct model *model, enum model_part part)
{
    struct gj_key key = gj_key_default();
    key.a.dtype = key.b.dtype = key.d.dtype = model->dtype;
    if (model->fp8 && part != MODEL_ROUTER && part != MODEL_HEAD) {
        key.a.dtype = key.b.dtype = GJ_DTYPE_E4M3;
        key.fp8acc = GJ_FP8ACC_PROMOTED;
    }
    return key;
}

static enum gj_status add_problem(struct model *model, const struct weight *weight, gj_error **error)
{
    struct model_problem *const problem = &model->problems[model->num_problems];
    *problem = (struct model_problem){
        .weight = weight->name,
        .n_formula = extent_formula(model, weight->n),
        .k_formula = extent_formula(model, weight->k),
        .n = extent_value(model, weight->n),
        .k = extent_value(model, weight->k),
        .problem = problem_key(model, weight->part),
    };
    GJ_TRY(describe_place(model, weight->part, problem->place, sizeof(problem->place), error));
    const bool is_n = problem->n > GJ_EXTENT_MAX;
    if (is_n || problem->k > GJ_EXTENT_MAX)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, "%s: %s of %s, %s, is more than %d", model->path,
                is_n ? "N" : "K", weight->name, is_n ? problem->n_formula : problem->k_formula,
                GJ_EXTENT_MAX);
    model->num_problems++;
    return GJ_OK;
}

enum gj_status model_list(struct model *model, gj_error **error)
{
    model->problems = calloc(COUNT(weights), sizeof(*model->problems));
    if (model->problems == NULL)
        GJ_FAIL(error, GJ_ERR_NO_MEMORY, GJ_STAGE_NONE, "no memory for the problems of %s", model->path);
    for (size_t i = 0; i < COUNT(weights); i++)
        if (HAS(model->parts, weights[i].part))
            GJ_TRY(add_problem(model, &weights[i], error));
    return GJ_OK;
}
