/* SPDX-License-Identifier: Apache-2.0 */
/* The plan in printable form; golden tests compare it byte for byte. */
#include "plan/plan.h"

void gj_plan_format(const struct gj_plan *plan, struct gj_strbuf *text)
{
    static const char *const promotions[] = {"", ", promoted stage by stage",
                                             ", promoted in two alternating sets"};
    const struct gj_key *const key = &plan->kernel;
#define ROW(name, ...) (gj_strbuf_printf(text, "%-16s ", name), gj_strbuf_printf(text, __VA_ARGS__))
    ROW("entry", "%s\n", plan->entry_name);
    ROW("tile", "%d x %d x %d%s\n", key->tile_m, key->tile_n, plan->tile_k,
        key->swap_ab == GJ_SWAP_AB_YES ? " of D^T = B A^T" : "");
    ROW("cluster", "%d x %d\n", key->cluster_m, key->cluster_n);
    ROW("threads", "%d: 1 load warp group and %d MMA warp group%s\n", plan->threads, plan->mma_warp_groups,
        plan->mma_warp_groups == 1 ? "" : "s");
    ROW("registers", "%d load, %d MMA, of these %d accumulators%s\n", plan->load_registers,
        plan->mma_registers, plan->acc_registers, promotions[plan->promotion]);
    ROW("wgmma", "m%dn%dk%d, %d along M and %d along K per stage and warp group\n", GJ_MMA_M, plan->mma_n,
        plan->mma_k, plan->m_blocks, GJ_MMA_PER_ATOM * plan->atoms);
    ROW("stages", "%d of %d bytes: A %d, B %d\n", plan->stages, plan->stage_bytes, plan->a_stage_bytes,
        plan->b_stage_bytes);
    ROW("TMA boxes", "A %d of %d lines, B %d of %d lines of %d bytes\n", plan->a_boxes, plan->box_a_rows,
        plan->b_boxes, plan->box_b_rows, GJ_STAGE_ROW_BYTES);
    ROW("arrivals", "full %d, empty %d\n", plan->full_arrivals, plan->empty_arrivals);
    if (key->tiles == GJ_TILES_DYNAMIC)
        ROW("tickets", "%d slots, read by %d\n", GJ_QUEUE_SLOTS, plan->queue_empty_arrivals);
    ROW("epilogue tile", "%d x %d, %d stages of D, %d of C\n", plan->epi_m, plan->epi_n, plan->epi_stages,
        plan->epi_c_stages);
    if (plan->p_element > 0)
        ROW("PostAct", "%d x %d of a slab, at %d, lines of %d bytes\n", GJ_MMA_M,
            plan->slab_n / plan->p_shrink, plan->p_offset, plan->p_line_bytes);
    ROW("slabs of D", "%d x %d, %d bytes, %d per MMA warp group of %d bytes staging; tail %d columns\n",
        GJ_MMA_M, plan->slab_n, plan->slab_bytes, plan->slab_buffers, plan->staging_bytes, plan->tail_n);
    if (key->c.dtype != GJ_DTYPE_NONE)
        ROW("slabs of C", "%d bytes, %d per MMA warp group\n", plan->c_slab_bytes, plan->c_buffers);
    ROW("shared memory", "%d bytes: A at %d, B at %d, staging at %d, C at %d, barriers at %d\n",
        plan->smem_bytes, plan->smem_a, plan->smem_b, plan->smem_staging, plan->smem_c, plan->smem_barriers);
#undef ROW
}
