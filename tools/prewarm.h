/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verb prewarm share: the keys with what became of them. */
#ifndef GJ_TOOLS_PREWARM_H
#define GJ_TOOLS_PREWARM_H

#include "cli.h"

struct prewarm_item {
    struct gj_key key;
    char text[GJ_KEY_TEXT_MAX], label[GJ_KEY_TEXT_MAX]; /* whole and short key text */
    enum gj_status status;
    gj_error *error;
    bool is_barred;             /* not compiled, because its cubin could not be kept */
    struct gj_kernel_info info; /* when status is GJ_OK; lives as long as the context */
};

struct prewarm {
    struct cli *cli;
    gj_context *context;
    struct prewarm_item *items;
    size_t num_items;
    int num_workers;
    double wall_ms;
    gj_error *read_only; /* why the cache cannot be written, so that nothing is compiled; else NULL */
    struct gj_stats stats;
};

/* Fills items from --key and --manifest: every key is checked, doubles are merged. (cli_prewarm_input.c) */
enum gj_status prewarm_read(struct prewarm *prewarm, gj_error **error);
/* How many threads to use: -j, else what processors and memory allow. */
enum gj_status prewarm_choose_workers(struct prewarm *prewarm, gj_error **error);
/* Fills cli->out and sets cli->exit_status. (cli_prewarm_report.c) */
enum gj_status prewarm_report(struct prewarm *prewarm, gj_error **error);

#endif
