/* SPDX-License-Identifier: Apache-2.0 */
/* The architectures that prewarm --model knows: which members of a config count, and what a model has.
 *
 * Where transformers has a default that is no number of the model (Mistral's num_key_value_heads, Gemma's
 * head_dim), the member is required: a guess would fill a cache with kernels of another model. */
#include <string.h>

#include "model.h"

#define M(name) (1u << MODEL_##name)
#define P(name) (1u << MODEL_##name)

#define BASE (M(HIDDEN_SIZE) | M(NUM_LAYERS) | M(HEADS) | M(VOCAB_SIZE))
#define DENSE (BASE | M(INTERMEDIATE_SIZE))

static const struct model_architecture architectures[] = {
    {
        .name = "LlamaForCausalLM",
        .required = DENSE,
        .optional = M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "MistralForCausalLM",
        .required = DENSE | M(KV_HEADS),
        .optional = M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "MixtralForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(LOCAL_EXPERTS),
        .optional = M(HEAD_DIM),
        .parts = P(GQA) | P(ROUTER) | P(EXPERTS) | P(HEAD),
        .experts = MODEL_LOCAL_EXPERTS,
        .expert_size = MODEL_INTERMEDIATE_SIZE,
    },
    {
        .name = "Qwen2ForCausalLM",
        .required = DENSE | M(KV_HEADS),
        .optional = M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "Qwen2MoeForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(NUM_EXPERTS) | M(EXPERT_SIZE) | M(SHARED_SIZE),
        .optional = M(HEAD_DIM) | M(SPARSE_STEP),
        .parts = P(GQA) | P(ROUTER) | P(EXPERTS) | P(SHARED) | P(HEAD),
        .experts = MODEL_NUM_EXPERTS,
        .expert_size = MODEL_EXPERT_SIZE,
        .has_expert_layers = true,
    },
    {
        .name = "Qwen3ForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "Qwen3MoeForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(NUM_EXPERTS) | M(EXPERT_SIZE),
        .optional = M(HEAD_DIM) | M(SPARSE_STEP),
        .parts = P(GQA) | P(ROUTER) | P(EXPERTS) | P(HEAD),
        .experts = MODEL_NUM_EXPERTS,
        .expert_size = MODEL_EXPERT_SIZE,
        .has_expert_layers = true,
    },
    {
        .name = "DeepseekV2ForCausalLM",
        .required = DENSE | M(ROUTED_EXPERTS) | M(EXPERT_SIZE) | M(FIRST_DENSE) | M(KV_LORA) | M(NOPE_DIM) |
                    M(ROPE_DIM) | M(V_DIM),
        .optional = M(Q_LORA) | M(SHARED_EXPERTS) | M(EXPERT_FREQ),
        .parts = P(MLA) | P(ROUTER) | P(EXPERTS) | P(HEAD),
        .experts = MODEL_ROUTED_EXPERTS,
        .expert_size = MODEL_EXPERT_SIZE,
    },
    {
        .name = "DeepseekV3ForCausalLM",
        .required = DENSE | M(ROUTED_EXPERTS) | M(EXPERT_SIZE) | M(FIRST_DENSE) | M(KV_LORA) | M(NOPE_DIM) |
                    M(ROPE_DIM) | M(V_DIM),
        .optional = M(Q_LORA) | M(SHARED_EXPERTS) | M(EXPERT_FREQ),
        .parts = P(MLA) | P(ROUTER) | P(EXPERTS) | P(HEAD),
        .experts = MODEL_ROUTED_EXPERTS,
        .expert_size = MODEL_EXPERT_SIZE,
    },
    {
        .name = "GemmaForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "Gemma2ForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "Gemma3ForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "PhiForCausalLM",
        .required = DENSE,
        .optional = M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(PLAIN) | P(HEAD),
    },
    {
        .name = "Phi3ForCausalLM",
        .required = DENSE,
        .optional = M(KV_HEADS) | M(HEAD_DIM),
        .parts = P(GQA) | P(GATED) | P(HEAD),
    },
    {
        .name = "PhiMoEForCausalLM",
        .required = DENSE | M(KV_HEADS) | M(LOCAL_EXPERTS),
        .optional = M(HEAD_DIM),
        .parts = P(GQA) | P(ROUTER) | P(EXPERTS) | P(HEAD),
        .experts = MODEL_LOCAL_EXPERTS,
        .expert_size = MODEL_INTERMEDIATE_SIZE,
    },
};
#define NUM_ARCHITECTURES (sizeof(architectures) / sizeof(architectures[0]))

const struct model_architecture *model_architecture_find(const char *name)
{
    for (size_t i = 0; i < NUM_ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    return NULL;
}

void model_architectures_add(struct gj_strbuf *text)
{
    for (size_t i = 0; i < NUM_ARCHITECTURES; i++)
        gj_strbuf_printf(text, "%s%s", i ? ", " : "", architectures[i].name);
}
