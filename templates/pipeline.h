/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of stages and the cluster's sharing rules. Pure arithmetic; also compiled as host C by the tests. */
#pragma once

/* Position in the ring: a stage and the parity of its current pass. */
struct ring_position {
    u32 stage, parity;
};

/* The position `steps` stages further on. */
DEVICE struct ring_position ring_advance(struct ring_position at, u32 steps)
{
    const u32 stage = at.stage + steps;
    struct ring_position next;
    next.stage = stage % STAGES;
    next.parity = at.parity ^ ((stage / STAGES) & 1);
    return next;
}

DEVICE struct ring_position ring_next(struct ring_position at)
{
    struct ring_position next;
    next.stage = at.stage + 1 == STAGES ? 0 : at.stage + 1;
    next.parity = at.parity ^ (next.stage == 0);
    return next;
}

/* Rank of the CTA at (m, n) in its cluster. */
DEVICE u32 cta_rank(u32 m, u32 n)
{
    return m + CLUSTER_M * n;
}

/* CTAs that use the same A tile as the CTA at row m of the cluster: those of that row. */
DEVICE u16 sharers_of_a(u32 m)
{
    u32 mask = 0;
    for (u32 n = 0; n < CLUSTER_N; n++)
        mask |= 1u << cta_rank(m, n);
    return (u16)mask;
}

/* CTAs that use the same B tile as the CTA at column n of the cluster: those of that column. */
DEVICE u16 sharers_of_b(u32 n)
{
    u32 mask = 0;
    for (u32 m = 0; m < CLUSTER_M; m++)
        mask |= 1u << cta_rank(m, n);
    return (u16)mask;
}

/* Whether the CTA at (m, n) gets data from or sends data to the CTA of this rank (itself included): then it
 * tells that CTA when it has finished reading a stage. */
DEVICE bool exchanges_with(u32 m, u32 n, u32 rank)
{
    return rank < CLUSTER_M * CLUSTER_N && (rank % CLUSTER_M == m || rank / CLUSTER_M == n);
}
