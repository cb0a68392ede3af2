/* SPDX-License-Identifier: Apache-2.0 */
/* From a model's config.json to its GEMM problems and the keys that gj_gemm would choose for them.
 *
 *     config --model_read--> numbers --model_split--> one rank's share --model_list--> problems
 *     --model_choose--> keys */
#ifndef GJ_TOOLS_MODEL_H
#define GJ_TOOLS_MODEL_H

#include "cli.h"
#include "tuning/tuning.h"

/* Members of a config that are read; cli_model_config.c has their names. */
enum model_member {
    MODEL_HIDDEN_SIZE,
    MODEL_INTERMEDIATE_SIZE,
    MODEL_NUM_LAYERS,
    MODEL_HEADS,
    MODEL_KV_HEADS,
    MODEL_HEAD_DIM,
    MODEL_VOCAB_SIZE,
    /* experts */
    MODEL_LOCAL_EXPERTS,
    MODEL_NUM_EXPERTS,
    MODEL_ROUTED_EXPERTS,
    MODEL_EXPERT_SIZE,
    MODEL_SHARED_SIZE,
    MODEL_SHARED_EXPERTS,
    MODEL_SPARSE_STEP,
    MODEL_FIRST_DENSE,
    MODEL_EXPERT_FREQ,
    /* latent attention */
    MODEL_Q_LORA,
    MODEL_KV_LORA,
    MODEL_NOPE_DIM,
    MODEL_ROPE_DIM,
    MODEL_V_DIM,
    MODEL_NUM_MEMBERS
};

/* Groups of weights that a model has or lacks as a whole. */
enum model_part {
    MODEL_GQA,        /* attention with q, k and v in one matrix */
    MODEL_MLA,        /* latent attention: what every kind of it has */
    MODEL_MLA_Q_LORA, /* with low-rank queries */
    MODEL_MLA_Q,      /* with plain queries */
    MODEL_GATED,      /* dense feed-forward with gate and up in one matrix */
    MODEL_PLAIN,      /* dense feed-forward without a gate */
    MODEL_ROUTER,
    MODEL_EXPERTS,
    MODEL_SHARED, /* experts that see every token */
    MODEL_HEAD,
};

/* N or K of one rank's weight, as a formula of members; cli_model_weights.c has them. */
enum model_extent {
    MODEL_EXTENT_HIDDEN,
    MODEL_EXTENT_QKV,
    MODEL_EXTENT_HEADS,
    MODEL_EXTENT_FFN,
    MODEL_EXTENT_GATE_UP,
    MODEL_EXTENT_EXPERT,
    MODEL_EXTENT_EXPERT_GATE_UP,
    MODEL_EXTENT_SHARED,
    MODEL_EXTENT_SHARED_GATE_UP,
    MODEL_EXTENT_ROUTER,
    MODEL_EXTENT_VOCAB,
    MODEL_EXTENT_Q_LORA,
    MODEL_EXTENT_MLA_Q,
    MODEL_EXTENT_KV_A,
    MODEL_EXTENT_QKV_A,
    MODEL_EXTENT_KV_LORA,
    MODEL_EXTENT_KV_B,
    MODEL_EXTENT_MLA_V,
};

struct model_architecture {
    const char *name;            /* as in member architectures */
    unsigned required, optional; /* bits of enum model_member */
    unsigned parts;              /* bits of enum model_part; some depend on values */
    enum model_member experts;   /* how many, where there are experts */
    enum model_member expert_size;
    bool has_expert_layers; /* mlp_only_layers is read */
};
/* NULL when there is none of this name. (cli_model_table.c) */
const struct model_architecture *model_architecture_find(const char *name);
/* The names of all, separated by commas. */
void model_architectures_add(struct gj_strbuf *text);

struct model {
    /* What the command line says. */
    const char *path;
    int64_t tp, m_max, num_sms;
    enum gj_dtype dtype;     /* NONE: as the config says */
    bool fp8;                /* A and B of what servers quantise are e4m3 */
    struct gj_tuning tuning; /* the tables that a server would have; owned */
    /* What the config says. */
    const struct model_architecture *architecture;
    int64_t values[MODEL_NUM_MEMBERS]; /* 0 where a member does not apply */
    unsigned parts;
    bool is_mixed;         /* some layers have experts, others do not ... */
    int64_t first_experts; /* ... the latter before this layer; 0: scattered */
    /* What one of tp ranks has of it. */
    int64_t heads, kv_heads, ffn, expert_ffn, shared_ffn, vocab;

    struct model_problem *problems;
    size_t num_problems;
};

/* D[M,N] = A[M,K] B[N,K]^T of one weight, for all M from 1 to m_max. */
struct model_problem {
    const char *weight;
    const char *n_formula, *k_formula;
    char place[96]; /* the layers that have it */
    int64_t n, k;
    struct gj_key problem; /* its config fields mean nothing */
    struct gj_key *keys;   /* each once: in the order in which a growing M first needs it, then the tables' */
    size_t num_keys;
    bool is_owner; /* of keys; else they are those of an earlier, equal problem */
    enum gj_status status;
    gj_error *error;
};

/* Reads architecture, numbers and type. GJ_ERR_ARGUMENT names file, member and rule. (cli_model_config.c) */
enum gj_status model_read(struct model *model, gj_error **error);
/* Name of a member in a config. */
const char *model_member_name(enum model_member member);
/* Divides heads, columns and rows among tp ranks. GJ_ERR_ARGUMENT names what does not divide.
 * (cli_model_split.c) */
enum gj_status model_split(struct model *model, gj_error **error);
/* Fills problems, without keys. (cli_model_weights.c) */
enum gj_status model_list(struct model *model, gj_error **error);
/* Fills the keys of all problems with up to num_threads threads. (cli_model_choose.c) */
enum gj_status model_choose(struct model *model, int num_threads, gj_error **error);
/* Frees what a model owns. */
void model_free(struct model *model);

#endif
