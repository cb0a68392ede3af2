/* SPDX-License-Identifier: Apache-2.0 */
/* The plan in printable form; golden tests compare it byte for byte. */
#include "plan/plan.h"

void gj_plan_format(const struct gj_plan *plan, struct gj_strbuf *text)
{
    const struct gj_key *const key = &plan->key;
#define ROW(name, ...) (gj_strbuf_printf(text, "%-16s ", name), gj_strbuf_printf(text, __VA_ARGS__))
    ROW("entry", "%s\n", plan->entry_name);
    ROW("tile", "%d x %d x %d\n", key->tile_m, key->tile_n, plan->tile_k);
    ROW("cluster", "%d x %d\n", key->cluster_m, key->cluster_n);
    ROW("threads", "%d (1 load and %d MMA warp groups)\n", plan->threads, plan->mma_warp_groups);
    ROW("registers", "%d load, %d MMA, of these %d accumulators\n", plan->load_registers, plan->mma_registers,
        plan->acc_registers);
    ROW("wgmma", "m%dn%dk%d, %d along M and %d along K per stage and warp group\n", GJ_MMA_M, plan->mma_n,
        plan->mma_k, plan->m_blocks, GJ_MMA_PER_STAGE);
    ROW("stages", "%d of %d bytes\n", plan->stages, plan->stage_bytes);
    ROW("TMA boxes", "A %d rows, B %d rows of %d bytes\n", plan->box_a_rows, plan->box_b_rows,
        GJ_STAGE_ROW_BYTES);
    ROW("barriers", "full %d arrival, empty %d arrivals\n", plan->full_arrivals, plan->empty_arrivals);
    ROW("epilogue tile", "%d x %d, %d stages of D, %d of C\n", plan->epi_m, plan->epi_n, plan->epi_stages,
        plan->epi_c_stages);
    ROW("slab", "%d x %d of D, %d bytes, %d per MMA warp group; tail %d columns\n", GJ_MMA_M, plan->slab_n,
        plan->slab_bytes, plan->slab_buffers, plan->tail_n);
    ROW("shared memory", "%d bytes: A at %d, B at %d, staging at %d, barriers at %d\n", plan->smem_bytes,
        plan->smem_a, plan->smem_b, plan->smem_staging, plan->smem_barriers);
#undef ROW
}
