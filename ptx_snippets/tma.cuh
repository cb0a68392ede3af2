// SPDX-License-Identifier: Apache-2.0
// Tensor memory accelerator: bulk copies of boxes between global and shared memory. sm_90, PTX 8.0.
// Coordinates are elements, innermost dimension first. Boxes are cut at the tensor's bounds: loads fill with
// zeros element by element and always count the full box; stores cut rows exactly, but round the innermost
// extent up to 16 bytes.
#pragma once

// One thread. Fetches the descriptor into the descriptor cache.
DEVICE void tma_prefetch_map(const tensor_map *map)
{
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_prefetch_map
        prefetch.tensormap [%0];
        )ptx" ::"l"(map) : "memory");
}

// One thread (elected). Loads a box to this CTA's shared memory; its bytes complete on `barrier`.
DEVICE void tma_load_3d(u32 destination, const tensor_map *map, u32 barrier, int x, int y, int z)
{
    // %0 destination, %1 map, %2 barrier, %3 %4 %5 coordinates
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_load_3d
        cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [%0], [%1, {%3, %4, %5}], [%2];
        )ptx" ::"r"(destination), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}

// The same, with an L2 policy of createpolicy.
DEVICE void tma_load_3d_hint(u32 destination, const tensor_map *map, u32 barrier, int x, int y, int z, u64 policy)
{
    // %0 destination, %1 map, %2 barrier, %3 %4 %5 coordinates, %6 policy
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_load_3d_hint
        cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
            [%0], [%1, {%3, %4, %5}], [%2], %6;
        )ptx" ::"r"(destination), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy) : "memory");
}

// Policies for what is read once, and for what is not.
DEVICE u64 evict_first_policy()
{
    u64 policy;
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh evict_first_policy
        createpolicy.fractional.L2::evict_first.b64 %0, 1.0;
        )ptx" : "=l"(policy));
    return policy;
}

DEVICE u64 evict_normal_policy()
{
    u64 policy;
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh evict_normal_policy
        createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;
        )ptx" : "=l"(policy));
    return policy;
}

// The same with four coordinates.
DEVICE void tma_load_4d(u32 destination, const tensor_map *map, u32 barrier, int x, int y, int z, int w)
{
    // %0 destination, %1 map, %2 barrier, %3 %4 %5 %6 coordinates
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_load_4d
        cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
            [%0], [%1, {%3, %4, %5, %6}], [%2];
        )ptx" ::"r"(destination), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// One thread (elected). Loads a box to the same offset in every CTA of `cta_mask` (bit i: cluster rank i); the
// bytes complete on the barrier at the same offset in each of them.
DEVICE void tma_load_3d_multicast(u32 destination, const tensor_map *map, u32 barrier, int x, int y, int z,
                                  u16 cta_mask)
{
    // %0 destination, %1 map, %2 barrier, %3 %4 %5 coordinates, %6 mask
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_load_3d_multicast
        cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
            [%0], [%1, {%3, %4, %5}], [%2], %6;
        )ptx" ::"r"(destination), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(cta_mask) : "memory");
}

// One thread (elected). Stores a box from shared memory; joins the thread's next bulk group.
DEVICE void tma_store_3d(const tensor_map *map, u32 source, int x, int y, int z)
{
    // %0 map, %1 source, %2 %3 %4 coordinates
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_store_3d
        cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];
        )ptx" ::"l"(map), "r"(source), "r"(x), "r"(y), "r"(z) : "memory");
}

// The same with four coordinates.
DEVICE void tma_store_4d(const tensor_map *map, u32 source, int x, int y, int z, int w)
{
    // %0 map, %1 source, %2 %3 %4 %5 coordinates
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_store_4d
        cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];
        )ptx" ::"l"(map), "r"(source), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// The thread that stored. Closes its bulk group (an empty one if it stored nothing).
DEVICE void tma_store_commit()
{
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_store_commit
        cp.async.bulk.commit_group;
        )ptx" ::: "memory");
}

// Any thread. Waits until all but its own newest `pending` groups have read their shared memory.
template <int pending> DEVICE void tma_store_wait_read()
{
    asm volatile(R"ptx(
        // ptx_snippets/tma.cuh tma_store_wait_read
        cp.async.bulk.wait_group.read %0;
        )ptx" ::"n"(pending) : "memory");
}
