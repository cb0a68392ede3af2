/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verb prewarm share: the keys with what became of them. */
#ifndef GJ_TOOLS_PREWARM_H
#define GJ_TOOLS_PREWARM_H

#include "model.h"

struct prewarm_item {
    struct gj_key key;
    char text[GJ_KEY_TEXT_MAX], label[GJ_KEY_TEXT_MAX]; /* whole and short key text */
    enum gj_status status;
    gj_error *error;
    bool is_barred;             /* not compiled, because its cubin could not be kept */
    struct gj_kernel_info info; /* when status is GJ_OK; lives as long as the context */
};

/* --shard: part `number`, from 1, of `count` parts. */
struct prewarm_shard {
    int64_t number, count;
};

struct prewarm {
    struct cli *cli;
    gj_context *context;
    struct prewarm_item *items; /* of this shard */
    size_t num_items, num_all;  /* num_all: of all shards */
    struct prewarm_shard shard;
    struct model model; /* path is NULL without --model */
    int num_workers;
    double wall_ms;
    gj_error *read_only; /* why the cache cannot be written, so that nothing is compiled; else NULL */
    struct gj_stats stats;
    bool is_unsent; /* uploads were still on their way when the time for them was over */
};

/* Fills items: every key is checked, doubles are merged, other shards' keys are dropped.
 * (cli_prewarm_input.c) */
enum gj_status prewarm_read(struct prewarm *prewarm, gj_error **error);
/* How many threads to use for num_tasks: -j, else what processors and memory allow. */
enum gj_status prewarm_choose_workers(struct prewarm *prewarm, size_t num_tasks, gj_error **error);

/* Reads --model and the options that go with it. (cli_prewarm_model.c) */
enum gj_status prewarm_model_options(struct prewarm *prewarm, gj_error **error);
/* Reads the config and fills items with the keys of its problems. */
enum gj_status prewarm_model_read(struct prewarm *prewarm, gj_error **error);

/* Reads --shard; 1 of 1 when it is not given. (cli_prewarm_shard.c) */
enum gj_status prewarm_shard_read(const struct cli *cli, struct prewarm_shard *shard, gj_error **error);
/* Keeps the items of this shard, in the order of their texts. */
void prewarm_shard_cut(struct prewarm *prewarm);

/* Fills cli->out with what --dry-run shows. (cli_prewarm_plan.c) */
enum gj_status prewarm_print_plan(const struct prewarm *prewarm, gj_error **error);
/* Adds to a document where the keys are from: shard, and model if there is one. */
void prewarm_add_source(const struct prewarm *prewarm, cJSON *document);

/* Fills cli->out and sets cli->exit_status. (cli_prewarm_report.c) */
enum gj_status prewarm_report(struct prewarm *prewarm, gj_error **error);

#endif
