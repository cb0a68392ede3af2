/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's numbers for the protocol model, as the #defines that pipeline.pml expects: model_params KEY */
#include <gemmjit/key.h>

#include <stdio.h>

#include "plan/plan.h"

/* Slices of an operand's tile: what each CTA that shares the tile loads. 0: the boxes do not add up. */
static int slices(int stage_bytes, int boxes, int box_rows)
{
    const int slice = boxes * box_rows * GJ_STAGE_ROW_BYTES;
    return slice > 0 && stage_bytes % slice == 0 ? stage_bytes / slice : 0;
}

int main(int argc, char **argv)
{
    struct gj_key key;
    struct gj_plan plan;
    gj_error *error = NULL;
    if (argc != 2 || gj_key_parse(argv[1], &key, &error) != GJ_OK || gj_key_check(&key, &error) != GJ_OK) {
        fprintf(stderr, "usage: model_params KEY, a key that is accepted; %s\n",
                error ? error->message : "one argument");
        gj_error_free(&error);
        return 1;
    }
    gj_plan_make_numbers(&key, &plan);
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"CLUSTER_M", plan.kernel.cluster_m},
        {"CLUSTER_N", plan.kernel.cluster_n},
        {"PINGPONG", plan.kernel.sched == GJ_SCHED_PINGPONG},
        {"DYNAMIC", plan.kernel.tiles == GJ_TILES_DYNAMIC},
        {"MMA_GROUPS", plan.mma_warp_groups},
        {"PROMOTION", (int)plan.promotion},
        {"PLAN_STAGES", plan.stages},
        {"A_SLICES", slices(plan.a_stage_bytes, plan.a_boxes, plan.box_a_rows)},
        {"B_SLICES", slices(plan.b_stage_bytes, plan.b_boxes, plan.box_b_rows)},
        {"FULL_ARRIVALS", plan.full_arrivals},
        {"EMPTY_ARRIVALS", plan.empty_arrivals},
        {"QUEUE_EMPTY_ARRIVALS", plan.queue_empty_arrivals},
        {"QUEUE_SLOTS", GJ_QUEUE_SLOTS},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        printf("#define %s %d\n", numbers[i].name, numbers[i].value);
    return 0;
}
