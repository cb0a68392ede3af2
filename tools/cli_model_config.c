/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a Hugging Face config.json strictly: what counts must be there, once, and make sense. Members that do
 * not count are ignored, of which real configs have many. */
#include <string.h>

#include "base/utf8.h"
#include "model.h"

#define VALUE_MAX INT64_C(2147483647)
#define HAS(bits, bit) (((bits) & (1u << (bit))) != 0)

#define FAIL_CONFIG(error, ...) GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, __VA_ARGS__)

static const struct {
    const char *name;
    int64_t least, otherwise; /* otherwise: the value where an optional member is not given */
} members[MODEL_NUM_MEMBERS] = {
    [MODEL_HIDDEN_SIZE] = {"hidden_size", 1, 0},
    [MODEL_INTERMEDIATE_SIZE] = {"intermediate_size", 1, 0},
    [MODEL_NUM_LAYERS] = {"num_hidden_layers", 1, 0},
    [MODEL_HEADS] = {"num_attention_heads", 1, 0},
    [MODEL_KV_HEADS] = {"num_key_value_heads", 1, 0},
    [MODEL_HEAD_DIM] = {"head_dim", 1, 0},
    [MODEL_VOCAB_SIZE] = {"vocab_size", 1, 0},
    [MODEL_LOCAL_EXPERTS] = {"num_local_experts", 1, 0},
    [MODEL_NUM_EXPERTS] = {"num_experts", 1, 0},
    [MODEL_ROUTED_EXPERTS] = {"n_routed_experts", 1, 0},
    [MODEL_EXPERT_SIZE] = {"moe_intermediate_size", 1, 0},
    [MODEL_SHARED_SIZE] = {"shared_expert_intermediate_size", 1, 0},
    [MODEL_SHARED_EXPERTS] = {"n_shared_experts", 0, 0},
    [MODEL_SPARSE_STEP] = {"decoder_sparse_step", 1, 1},
    [MODEL_FIRST_DENSE] = {"first_k_dense_replace", 0, 0},
    [MODEL_EXPERT_FREQ] = {"moe_layer_freq", 1, 1},
    [MODEL_Q_LORA] = {"q_lora_rank", 1, 0},
    [MODEL_KV_LORA] = {"kv_lora_rank", 1, 0},
    [MODEL_NOPE_DIM] = {"qk_nope_head_dim", 1, 0},
    [MODEL_ROPE_DIM] = {"qk_rope_head_dim", 1, 0},
    [MODEL_V_DIM] = {"v_head_dim", 1, 0},
};

const char *model_member_name(enum model_member member)
{
    return members[member].name;
}

/* A member by name; NULL when it is not given, or given as null, which says the same. */
static enum gj_status find(const struct model *model, const cJSON *config, const char *name,
                           const cJSON **found, gj_error **error)
{
    *found = NULL;
    for (const cJSON *member = config->child; member; member = member->next) {
        if (strcmp(member->string, name) != 0)
            continue;
        if (*found)
            FAIL_CONFIG(error, "%s: member %s is given twice", model->path, name);
        *found = member;
    }
    if (cJSON_IsNull(*found))
        *found = NULL;
    return GJ_OK;
}

static enum gj_status check_whole(const struct model *model, const cJSON *item, const char *name,
                                  int64_t least, int64_t most, int64_t *value, gj_error **error)
{
    if (!cJSON_IsNumber(item))
        FAIL_CONFIG(error, "%s: %s is no number: allowed is a whole number from %lld to %lld", model->path,
                    name, (long long)least, (long long)most);
    const double number = item->valuedouble;
    if (!(number >= (double)least && number <= (double)most) || (double)(int64_t)number != number)
        FAIL_CONFIG(error, "%s: %s %.15g: allowed is a whole number from %lld to %lld", model->path, name,
                    number, (long long)least, (long long)most);
    *value = (int64_t)number;
    return GJ_OK;
}

static enum gj_status read_values(struct model *model, const cJSON *config, gj_error **error)
{
    const struct model_architecture *const architecture = model->architecture;
    for (int i = 0; i < MODEL_NUM_MEMBERS; i++) {
        const char *const name = members[i].name;
        const cJSON *item;
        if (!HAS(architecture->required | architecture->optional, i))
            continue;
        GJ_TRY(find(model, config, name, &item, error));
        if (item == NULL && HAS(architecture->required, i))
            FAIL_CONFIG(error, "%s: no member %s: %s needs it, a whole number from %lld to %lld", model->path,
                        name, architecture->name, (long long)members[i].least, (long long)VALUE_MAX);
        model->values[i] = members[i].otherwise;
        if (item)
            GJ_TRY(check_whole(model, item, name, members[i].least, VALUE_MAX, &model->values[i], error));
    }
    return GJ_OK;
}

static enum gj_status read_architecture(struct model *model, const cJSON *config, gj_error **error)
{
    const cJSON *list;
    GJ_TRY(find(model, config, "architectures", &list, error));
    if (!cJSON_IsArray(list) || !cJSON_IsString(list->child) || list->child->next)
        FAIL_CONFIG(error, "%s: member architectures is not an array with one text", model->path);
    const char *const name = list->child->valuestring;
    model->architecture = model_architecture_find(name);
    if (model->architecture)
        return GJ_OK;
    struct gj_strbuf known = {0};
    model_architectures_add(&known);
    gj_error_make(error, GJ_ERR_ARGUMENT, GJ_STAGE_NONE, 0, "",
                  "%s: architecture \"%s\" is unknown: known are %s", model->path,
                  gj_utf8_quote(name, strlen(name)).text, known.failed ? "others" : known.text);
    gj_strbuf_free(&known);
    return GJ_ERR_ARGUMENT;
}

/* The type of what is not quantised: --dtype, else member dtype or, in older configs, torch_dtype. */
static enum gj_status read_dtype(struct model *model, const cJSON *config, gj_error **error)
{
    if (model->dtype != GJ_DTYPE_NONE)
        return GJ_OK;
    const char *name = "dtype";
    const cJSON *item;
    GJ_TRY(find(model, config, name, &item, error));
    if (item == NULL)
        GJ_TRY(find(model, config, name = "torch_dtype", &item, error));
    model->dtype = GJ_DTYPE_BF16;
    if (item == NULL)
        return GJ_OK;
    if (!cJSON_IsString(item))
        FAIL_CONFIG(error, "%s: %s is no text: allowed is bfloat16, float16", model->path, name);
    if (strcmp(item->valuestring, "float16") == 0)
        model->dtype = GJ_DTYPE_F16;
    else if (strcmp(item->valuestring, "bfloat16") != 0)
        FAIL_CONFIG(error, "%s: %s \"%s\": allowed is bfloat16, float16; --dtype says in which type it runs",
                    model->path, name, gj_utf8_quote(item->valuestring, strlen(item->valuestring)).text);
    return GJ_OK;
}

/* Attention: head_dim and num_key_value_heads as transformers derives them where a config leaves them out. */
static enum gj_status derive_heads(struct model *model, gj_error **error)
{
    int64_t *const values = model->values;
    if (!HAS(model->architecture->parts, MODEL_GQA))
        return GJ_OK;
    if (values[MODEL_KV_HEADS] == 0)
        values[MODEL_KV_HEADS] = values[MODEL_HEADS];
    if (values[MODEL_HEADS] % values[MODEL_KV_HEADS] != 0)
        FAIL_CONFIG(error, "%s: num_attention_heads %lld is no multiple of num_key_value_heads %lld",
                    model->path, (long long)values[MODEL_HEADS], (long long)values[MODEL_KV_HEADS]);
    if (values[MODEL_HEAD_DIM] == 0) {
        if (values[MODEL_HIDDEN_SIZE] % values[MODEL_HEADS] != 0)
            FAIL_CONFIG(error, "%s: no member head_dim, and hidden_size %lld is no multiple of %s %lld",
                        model->path, (long long)values[MODEL_HIDDEN_SIZE], "num_attention_heads",
                        (long long)values[MODEL_HEADS]);
        values[MODEL_HEAD_DIM] = values[MODEL_HIDDEN_SIZE] / values[MODEL_HEADS];
    }
    return GJ_OK;
}

/* mlp_only_layers, the layers without experts of Qwen's models. */
static enum gj_status read_dense_layers(struct model *model, const cJSON *config, bool *has_some,
                                        gj_error **error)
{
    const cJSON *list;
    int64_t layer;
    GJ_TRY(find(model, config, "mlp_only_layers", &list, error));
    if (list == NULL)
        return GJ_OK;
    if (!cJSON_IsArray(list))
        FAIL_CONFIG(error, "%s: mlp_only_layers is no array", model->path);
    for (const cJSON *item = list->child; item; item = item->next)
        GJ_TRY(check_whole(model, item, "an item of mlp_only_layers", 0, model->values[MODEL_NUM_LAYERS] - 1,
                           &layer, error));
    *has_some = list->child != NULL;
    return GJ_OK;
}

/* Which parts the model has: those of its architecture and those that depend on values. */
static enum gj_status derive_parts(struct model *model, const cJSON *config, gj_error **error)
{
    const struct model_architecture *const architecture = model->architecture;
    int64_t *const values = model->values;
    const int64_t first = values[MODEL_FIRST_DENSE];
    model->parts = architecture->parts;
    if (HAS(architecture->parts, MODEL_MLA))
        model->parts |= 1u << (values[MODEL_Q_LORA] > 0 ? MODEL_MLA_Q_LORA : MODEL_MLA_Q);
    if (values[MODEL_SHARED_EXPERTS] > 0)
        model->parts |= 1u << MODEL_SHARED;
    if (architecture->has_expert_layers) {
        GJ_TRY(read_dense_layers(model, config, &model->is_mixed, error));
        model->is_mixed |= values[MODEL_SPARSE_STEP] > 1;
    } else if (HAS(architecture->required, MODEL_FIRST_DENSE)) {
        if (first > values[MODEL_NUM_LAYERS])
            FAIL_CONFIG(error, "%s: first_k_dense_replace %lld is more than num_hidden_layers %lld",
                        model->path, (long long)first, (long long)values[MODEL_NUM_LAYERS]);
        model->is_mixed = first > 0 || values[MODEL_EXPERT_FREQ] > 1;
        model->first_experts = values[MODEL_EXPERT_FREQ] > 1 ? 0 : first;
        if (first == values[MODEL_NUM_LAYERS])
            model->parts &= ~(1u << MODEL_ROUTER | 1u << MODEL_EXPERTS | 1u << MODEL_SHARED);
    }
    if (model->is_mixed)
        model->parts |= 1u << MODEL_GATED;
    return GJ_OK;
}

static enum gj_status read_config(struct model *model, const cJSON *config, gj_error **error)
{
    if (!cJSON_IsObject(config))
        FAIL_CONFIG(error, "%s: the document is not an object, as a model's config is", model->path);
    GJ_TRY(read_architecture(model, config, error));
    GJ_TRY(read_values(model, config, error));
    GJ_TRY(read_dtype(model, config, error));
    GJ_TRY(derive_heads(model, error));
    return derive_parts(model, config, error);
}

enum gj_status model_read(struct model *model, gj_error **error)
{
    cJSON *config = NULL;
    GJ_TRY(cli_json_read(model->path, &config, error));
    const enum gj_status status = read_config(model, config, error);
    cJSON_Delete(config);
    return status;
}
