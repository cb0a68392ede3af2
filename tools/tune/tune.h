/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verb tune share: a race of configs for each shape, its verdict, and the table that
 * the winners go into. */
#ifndef GJ_TOOLS_TUNE_H
#define GJ_TOOLS_TUNE_H

#include "../bench/bench.h"

/* -- Verdicts (tune_judge.c) --------------------------------------------------------------------------- */

/* A config takes the place of the model's choice if the median over the rounds of time of that over its own
 * is at least this, and the lower quartile above 1. */
#define TUNE_GAIN 1.005

/* A bench->drop: takes out arms whose results differ, and those whose upper quartile is below TUNE_GAIN or
 * the lower quartile of the arm that leads. Ends the race when only the model's choice, arm 0, is left, or
 * one more that has won. */
int tune_drop(const struct bench_result *result, int *order, int count);
/* The arm that wins a race that is over; 0 when the model's choice stays. */
int tune_winner(const struct bench_result *result);

/* -- Tables (tune_table.c) ----------------------------------------------------------------------------- */

/* Reads a table that need not be there. */
enum gj_status tune_table_read(const char *path, struct gj_tuning_table *table, gj_error **error);
/* Removes the entry of a place, if there is one. */
void tune_table_remove(struct gj_tuning_table *table, const struct gj_tuning_place *place);
/* Adds an entry, whose gpu is copied, in place of the one that it has there. */
enum gj_status tune_table_put(struct gj_tuning_table *table, const struct gj_tuning_entry *entry,
                              gj_error **error);
/* Moves the entries of `more` into a table, but for places that it has; *num_left_out counts those. */
enum gj_status tune_table_merge(struct gj_tuning_table *table, struct gj_tuning_table *more,
                                size_t *num_left_out, gj_error **error);
/* Writes a table, one entry a line, whole or not at all; equal tables give equal bytes. */
enum gj_status tune_table_write(struct cli *cli, const char *path, const struct gj_tuning_table *table,
                                gj_error **error);

/* -- The verb ------------------------------------------------------------------------------------------ */

/* What became of one shape. */
struct tune_row {
    struct bench_shape shape;
    struct gj_key chosen, best; /* the same where the model's choice stays */
    double chosen_us, best_us, ratio, ratio_low, ratio_high;
    int num_arms, rounds;
    int64_t num_different; /* elements of D of the model's choice in two runs: nothing is known then */
    bool is_written;
};

struct tune {
    struct bench bench;
    const char *path; /* of -o */
    bool writes_all;
    struct gj_tuning_table table;
    struct tune_row *rows;
};

/* Fills cli->out. (tune_report.c) */
enum gj_status tune_report(struct tune *tune, gj_error **error);

/* tune merge FILE ... -o FILE; path is that of -o. (tune_merge.c) */
enum gj_status tune_merge(struct cli *cli, const char *path, gj_error **error);

#endif
