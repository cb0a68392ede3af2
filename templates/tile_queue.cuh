// SPDX-License-Identifier: Apache-2.0
// Which tile comes next. static: every cluster steps by the number of clusters. dynamic: the producer of the
// cluster's first CTA takes tickets from a counter in global memory and passes them to everyone in the cluster
// through a ring of QUEUE_SLOTS words. once: there is no next tile.
#pragma once

#include "ptx_snippets/mbarrier.cuh"
#include "ptx_snippets/queue.cuh"
#include "ptx_snippets/sync.cuh"
#include "templates/params.h"
#include "templates/pipeline.h"
#include "templates/tile_scheduler.h"

// A warp's place in the sequence of tiles.
struct tile_queue {
    u32 work;  // index of the current tile
    u32 count; // tiles seen before it
};

DEVICE u32 num_clusters()
{
    return gridDim.x / CLUSTER_SIZE;
}

DEVICE struct tile_queue queue_start()
{
    struct tile_queue queue;
    queue.work = blockIdx.x / CLUSTER_SIZE;
    queue.count = 0;
    return queue;
}

DEVICE bool queue_has_tile(const struct tile_queue *queue, const struct gemm_params *params)
{
#if TILES_ONCE
    return queue->count == 0;
#else
    return queue->work < params->schedule.num_tiles;
#endif
}

// The current tile; batches are taken in the order that the caller gave, if any.
DEVICE struct tile_index queue_tile(const struct tile_queue *queue, const struct gemm_params *params)
{
    struct tile_index tile = tile_at(&params->schedule, queue->work);
    if (params->batch_order != 0)
        tile.batch = params->batch_order[tile.batch];
    return tile;
}

#if TILES_DYNAMIC
// Slot and parity of the ticket after `count` tiles.
DEVICE u32 queue_slot(const struct tile_queue *queue)
{
    return queue->count % QUEUE_SLOTS;
}

DEVICE u32 queue_parity(const struct tile_queue *queue)
{
    return queue->count / QUEUE_SLOTS & 1;
}

// Waits for the next ticket and reads it; the reader, or one lane of the warp that reads, then releases its slot.
DEVICE void queue_read(struct tile_queue *queue, u32 smem)
{
    const u32 slot = queue_slot(queue);
    mbarrier_wait(smem + QUEUE_FULL_BARRIERS + 8 * slot, queue_parity(queue));
    queue->work = load_shared_word(smem + SMEM_QUEUE + 4 * slot);
#if CLUSTER_SIZE > 1
    fence_proxy_async_shared(); // the read comes before the asynchronous write that reuses the slot
#endif
}

DEVICE void queue_release(const struct tile_queue *queue, u32 smem)
{
    const u32 empty = smem + QUEUE_EMPTY_BARRIERS + 8 * queue_slot(queue);
#if CLUSTER_SIZE > 1
    mbarrier_arrive_cluster(cluster_address(empty, 0));
#else
    mbarrier_arrive(empty);
#endif
}

// One thread. Tells every CTA of the cluster the ticket of a slot.
DEVICE void queue_send(u32 smem, u32 slot, u32 work)
{
    const u32 word = smem + SMEM_QUEUE + 4 * slot, full = smem + QUEUE_FULL_BARRIERS + 8 * slot;
#if CLUSTER_SIZE > 1
    for (u32 r = 0; r < CLUSTER_SIZE; r++)
        send_word(cluster_address(word, r), cluster_address(full, r), work);
#else
    store_shared_word(word, work);
    mbarrier_arrive(full);
#endif
}
#else
// The next tile is known without asking.
DEVICE void queue_step(struct tile_queue *queue)
{
#if !TILES_ONCE
    queue->work += num_clusters();
#endif
    queue->count++;
}
#endif

// The producer thread of a CTA moves on to the next tile; that of the cluster's first CTA also tells everyone.
DEVICE void queue_produce(struct tile_queue *queue, u32 smem, const struct gemm_params *params, u32 rank)
{
#if TILES_DYNAMIC
    if (rank != 0) {
        queue_read(queue, smem);
        queue_release(queue, smem);
        queue->count++;
        return;
    }
    const u32 slot = queue_slot(queue);
    queue->work = num_clusters() + take_ticket(params->tile_counter, params->schedule.num_tiles - 1);
    mbarrier_wait(smem + QUEUE_EMPTY_BARRIERS + 8 * slot, queue_parity(queue) ^ 1);
    queue_send(smem, slot, queue->work);
    queue->count++;
#else
    queue_step(queue);
#endif
}

// A whole MMA warp moves on to the next tile of its CTA.
DEVICE void queue_next(struct tile_queue *queue, u32 smem)
{
#if TILES_DYNAMIC
    __syncwarp();
    queue_read(queue, smem);
    __syncwarp(); // every lane has its ticket before the slot is given back
    if (threadIdx.x % 32 == 0)
        queue_release(queue, smem);
    queue->count++;
#else
    queue_step(queue);
#endif
}

// The producer of the first CTA waits until everyone has read every ticket: until then arrivals are under way.
DEVICE void queue_finish(struct tile_queue *queue, u32 smem, u32 rank)
{
#if TILES_DYNAMIC
    for (u32 i = 0; rank == 0 && i < QUEUE_SLOTS; i++) {
        mbarrier_wait(smem + QUEUE_EMPTY_BARRIERS + 8 * queue_slot(queue), queue_parity(queue) ^ 1);
        queue->count++;
    }
#endif
}
