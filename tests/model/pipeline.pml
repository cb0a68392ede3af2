// SPDX-License-Identifier: Apache-2.0
// The barrier protocol of templates/gemm_sm90.cu for one cluster. README.md beside this file says what is left out.
// params.h comes from run_model.py: numbers of the plan (model_params.c) and the size of the run:
//   STAGES, TILES, K_TILES   stages of the ring, cluster tiles in all, stages per tile
//   CLUSTERS, FIRST          clusters that share the tiles, and which of them this is
//   WARPS                    processes per MMA warp group, each of which stands for 4 / WARPS warps
//   ASYNC                    1: what travels (TMA data, words, arrivals) does so as long as it likes; 0: no time
//   MERGE                    1: a process waits and does what comes of it in one step; STAGES 2, WARPS 1, CLUSTERS 1, CTAS > 1
#include "params.h"

#define CTAS (CLUSTER_M * CLUSTER_N)
#define GROUPS (CTAS * MMA_GROUPS)
#define RING (CTAS * STAGES)
#define SLOTS (CTAS * QUEUE_SLOTS)
#define AT(cta, stage) ((cta) * STAGES + (stage))
#define SLOT_AT(cta, slot) ((cta) * QUEUE_SLOTS + (slot))
#define ROW(cta) ((cta) % CLUSTER_M)
#define COLUMN(cta) ((cta) / CLUSTER_M)
#define EXCHANGE(cta, other) (ROW(cta) == ROW(other) || COLUMN(cta) == COLUMN(other))
#define TURN_ARRIVALS 4         // warps of a warp group
#define WARPS_EACH (4 / WARPS)  // that a process stands for
#define WHOLE ((1 << (CLUSTER_M + CLUSTER_N)) - 1)
#define READERS (PINGPONG -> 1 : MMA_GROUPS) // warp groups that read a stage of their CTA
#define SIMPLE (PROMOTION == 1) // each stage is released before the next is taken
#define WORDS_FLY (DYNAMIC && ASYNC && CTAS > 1) // tickets are sent, not stored

// A STEP is one for other processes if MERGE, otherwise each of its PARTs is.
#if MERGE
#define STEP d_step
#define PART
#else
#define STEP
#define PART d_step
#endif

#include "barrier.pml"

barrier stage_full[RING], stage_empty[RING], turn[GROUPS];
#if DYNAMIC
barrier queue_full[SLOTS], queue_empty[QUEUE_SLOTS];
#endif

// ---- what the barriers guard ----

byte running[CTAS]; // processes of each CTA that have not exited
byte alive = CTAS * (1 + MMA_GROUPS * WARPS) + CLUSTERS - 1; // all that, and other clusters
byte done[TILES];   // warp groups that have multiplied their part
byte written[RING]; // slices of this pass whose writes have been issued, a mask
byte stamp[RING];   // what they hold: tile and stage of it
byte unread[RING];  // warp groups that have still to read them
#if DYNAMIC
byte counter; // tickets, in global memory
byte word[SLOTS];
byte word_unread[SLOTS]; // processes of the CTA that have still to read it
#endif
#if WARPS > 1
byte issued[GROUPS * WARPS]; // wgmma groups, by warp
#endif

// ---- what is on its way ----

#if ASYNC
byte data_flies[RING], arrivals_fly[RING];
#endif
#if WORDS_FLY
bit announcement_flies[SLOTS], word_flies[SLOTS];
byte word_sent[SLOTS], releases_fly[QUEUE_SLOTS];
#endif

hidden byte i, other; // within d_step only

inline land_slice(cta, at)
{
    assert(running[cta] > 0);
    complete(stage_full[at], 1, FULL_ARRIVALS)
}

inline land_arrival(cta, at)
{
    assert(running[cta] > 0);
    arrive(stage_empty[at], 1, 0, EMPTY_ARRIVALS)
}

#if DYNAMIC
inline land_release(slot, n)
{
    assert(running[0] > 0);
    arrive(queue_empty[slot], n, 0, QUEUE_EMPTY_ARRIVALS)
}

#if CTAS > 1
inline land_announcement(cta, at)
{
    assert(running[cta] > 0);
    arrive(queue_full[at], 1, 1, 1)
}

inline land_word(cta, at, value)
{
    assert(running[cta] > 0);
    word[at] = value;
    complete(queue_full[at], 1, 1)
}
#endif
#endif

// One slice into a stage. It may be written at once, so all readers of what was there must be through with it.
inline send_slice(to, at, slice, value)
{
    assert(running[to] > 0);
    if
    :: written[at] == WHOLE ->
        assert(unread[at] == 0);
        written[at] = 0; stamp[at] = value; unread[at] = READERS
    :: else
    fi;
    assert(stamp[at] == value && (written[at] & (1 << (slice))) == 0);
    written[at] = written[at] | (1 << (slice));
#if ASYNC
    data_flies[at]++
#else
    land_slice(to, at)
#endif
}

inline check_readable(at, value)
{
    assert(written[at] == WHOLE && stamp[at] == value && unread[at] > 0);
#if ASYNC
    assert(data_flies[at] == 0)
#endif
}

// A warp group has read a stage.
inline finish_stage(cta, stage)
{
    assert(unread[AT(cta, stage)] > 0);
    unread[AT(cta, stage)]--
}

// Its threads tell every CTA that they exchange data with.
inline release_stage(cta, stage)
{
    for (other : 0 .. CTAS - 1) {
        if
        :: EXCHANGE(cta, other) ->
#if ASYNC
            if
            :: other != cta -> arrivals_fly[AT(other, stage)]++
            :: else -> land_arrival(other, AT(other, stage))
            fi
#else
            land_arrival(other, AT(other, stage))
#endif
        :: else
        fi
    }
}

inline ring_next(stage, parity)
{
    if
    :: stage + 1 == STAGES -> stage = 0; parity = 1 - parity
    :: else -> stage++
    fi
}

inline ring_advance(stage, parity, steps)
{
    parity = parity ^ (((stage + steps) / STAGES) & 1);
    stage = (stage + steps) % STAGES
}

inline leave(cta)
{
    running[cta]--;
    alive--
}

#include "tile_queue.pml"

// ---- processes ----

#define STAGE_FREE PASSES(stage_empty[AT(cta, stage)], 1 - parity)
#define OTHER_STAGE_FREE PASSES(stage_empty[AT(cta, 1 - stage)], (stage == 0 -> 1 - parity : parity)) // of two

proctype Producer(byte cta)
{
    byte work = FIRST, count = 0, k = 0, stage = 0;
    bit parity = 0;
    do
    :: work < TILES ->
        do
        :: k < K_TILES ->
            STEP {
                PART {
                    STAGE_FREE -> arrive(stage_full[AT(cta, stage)], 1, A_SLICES + B_SLICES, FULL_ARRIVALS)
                }
                PART {
                    for (other : 0 .. CTAS - 1) {
                        if
                        :: ROW(other) == ROW(cta) ->
                            send_slice(other, AT(other, stage), COLUMN(cta), work * K_TILES + k)
                        :: else
                        fi;
                        if
                        :: COLUMN(other) == COLUMN(cta) ->
                            send_slice(other, AT(other, stage), CLUSTER_N + ROW(cta), work * K_TILES + k)
                        :: else
                        fi
                    }
                    ring_next(stage, parity);
                    k++
                }
            }
        :: else -> break
        od;
        k = 0;
#if DYNAMIC
        if
        :: cta == 0 ->
            STEP {
                PART { !MERGE || SLOT_FREE(count) -> take_ticket(work) }
                PART { SLOT_FREE(count) -> send_words(work, count) }
                PART {
#if CTAS == 1
                    arrive(queue_full[SLOT(count)], 1, 0, 1);
#endif
                    count++
                }
            }
        :: else -> queue_next(cta, work, count, 1)
        fi
#else
        queue_next(cta, work, count, 1)
#endif
    :: else -> break
    od;
#if MERGE
    k = 0;
    d_step {
#if DYNAMIC
        STAGE_FREE && OTHER_STAGE_FREE && (cta != 0 || (SLOT_FREE(count) && SLOT_FREE(count + 1))) ->
#else
        STAGE_FREE && OTHER_STAGE_FREE ->
#endif
        leave(cta)
    }
#else
    do
    :: k < STAGES -> d_step { STAGE_FREE -> ring_next(stage, parity); k++ }
#if DYNAMIC
    :: cta == 0 && k >= STAGES && k < STAGES + QUEUE_SLOTS -> d_step { SLOT_FREE(count) -> count++; k++ }
#endif
    :: else -> break
    od;
    work = 0;
    d_step { leave(cta) }
#endif
    d_step { work = 0; count = 0; k = 0; stage = 0; parity = 0 }
}

// wgmma_wait: all but the last `n` wgmma groups of this warp are complete, in which all warps take part.
#if WARPS == 4
#define COMPLETE(n) (issued[me * 4] >= steps - (n) && issued[me * 4 + 1] >= steps - (n) && \
                     issued[me * 4 + 2] >= steps - (n) && issued[me * 4 + 3] >= steps - (n))
#elif WARPS == 2
#define COMPLETE(n) (issued[me * 2] >= steps - (n) && issued[me * 2 + 1] >= steps - (n))
#else
#define COMPLETE(n) true
#endif

// One process for a warp group takes no notice of what its warps do between a stage and the release of the last one.
#if WARPS == 1
#define MMA_STEP d_step
#define MMA_PART
#else
#define MMA_STEP
#define MMA_PART d_step
#endif

#if PINGPONG
#define TURN_OPEN PASSES(turn[me], turn_parity)
#else
#define TURN_OPEN true
#endif

// All stages of a tile have been issued. With Mma's variables.
inline finish_tile()
{
#if PINGPONG && PROMOTION == 0
    PART { arrive(turn[cta * MMA_GROUPS + 1 - group], WARPS_EACH, 0, TURN_ARRIVALS) }
#endif
    PART {
        COMPLETE(0) ->
        if
        :: warp == 0 ->
            done[work]++;
            if
            :: !SIMPLE -> finish_stage(cta, previous); release_stage(cta, previous)
            :: else
            fi
        :: else
        fi
    }
#if PINGPONG && PROMOTION != 0
    PART { arrive(turn[cta * MMA_GROUPS + 1 - group], WARPS_EACH, 0, TURN_ARRIVALS) }
#endif
#if PINGPONG
    PART {
        turn_parity = 1 - turn_parity;
        ring_advance(stage, parity, K_TILES) // the other group's tile
    }
#endif
}

proctype Mma(byte cta; byte group; byte warp)
{
    byte work = FIRST, count = 0, k = 0, stage = 0, previous = 0, me = cta * MMA_GROUPS + group;
    bit parity = 0;
#if PINGPONG
    bit turn_parity = 1 - group;
#endif
#if WARPS > 1
    byte steps = 0;
#endif
#if PINGPONG
    if
    :: group == 1 ->
        queue_next(cta, work, count, WARPS_EACH);
        d_step { ring_advance(stage, parity, K_TILES) }
    :: else
    fi;
#endif
    do
    :: work < TILES ->
#if PINGPONG && !MERGE
        TURN_OPEN;
#endif
        do
        :: k < K_TILES ->
            MMA_STEP {
                MMA_PART {
                    PASSES(stage_full[AT(cta, stage)], parity) && (!MERGE || k > 0 || TURN_OPEN) ->
                    check_readable(AT(cta, stage), work * K_TILES + k);
#if WARPS > 1
                    steps++;
                    issued[me * WARPS + warp] = steps
#endif
                }
                MMA_PART {
                    (k == 0 && !SIMPLE) || COMPLETE(1 - SIMPLE) ->
                    if
                    :: SIMPLE && warp == 0 -> finish_stage(cta, stage); release_stage(cta, stage)
                    :: !SIMPLE && k > 0 && warp == 0 -> finish_stage(cta, previous); release_stage(cta, previous)
                    :: else
                    fi;
                    previous = stage;
                    ring_next(stage, parity);
                    k++
                }
#if MERGE && K_TILES == 1
                if
                :: k == K_TILES -> finish_tile()
                :: else
                fi
#endif
            }
        :: else -> break
        od;
        k = 0;
#if MERGE && K_TILES > 1
        d_step { finish_tile() } // one stage is released per step: an exit may come between
#elif !MERGE
        finish_tile();
#endif
        queue_next(cta, work, count, WARPS_EACH);
#if PINGPONG
        if
        :: work < TILES -> queue_next(cta, work, count, WARPS_EACH)
        :: else
        fi
#endif
    :: else -> break
    od;
    work = 0;
#if !(MERGE && DYNAMIC)
    d_step { leave(cta) }
#endif
    d_step { count = 0; stage = 0; previous = 0; parity = 0 }
}

// Another cluster: only its tiles matter here.
proctype Elsewhere(byte work)
{
    do
    :: d_step {
        work < TILES ->
        done[work] = done[work] + CTAS * READERS;
#if DYNAMIC
        take_ticket(work)
#else
        work = work + CLUSTERS
#endif
    }
    :: work >= TILES -> break
    od;
    alive--
}

#if ASYNC
proctype Travel(byte cta; byte at)
{
end:
    do
    :: d_step { data_flies[at] > 0 -> data_flies[at]--; land_slice(cta, at) }
    :: d_step { arrivals_fly[at] > 0 -> arrivals_fly[at]--; land_arrival(cta, at) }
    od
}

#if WORDS_FLY
proctype TravelQueue(byte cta; byte at)
{
end:
    do
    :: d_step { announcement_flies[at] -> announcement_flies[at] = 0; land_announcement(cta, at) }
    :: d_step { word_flies[at] -> word_flies[at] = 0; land_word(cta, at, word_sent[at]); word_sent[at] = 0 }
    :: d_step { cta == 0 && releases_fly[at] > 0 -> releases_fly[at]--; land_release(at, 1) }
    od
}
#endif
#endif

init
{
    byte c, n, w;
    atomic {
        for (c : 0 .. RING - 1) {
            stage_full[c].left = FULL_ARRIVALS;
            stage_empty[c].left = EMPTY_ARRIVALS;
            written[c] = WHOLE
        }
        for (c : 0 .. GROUPS - 1) { turn[c].left = TURN_ARRIVALS }
#if DYNAMIC
        for (c : 0 .. SLOTS - 1) { queue_full[c].left = 1 }
        for (c : 0 .. QUEUE_SLOTS - 1) { queue_empty[c].left = QUEUE_EMPTY_ARRIVALS }
#endif
        for (c : 0 .. CTAS - 1) {
            running[c] = 1 + MMA_GROUPS * WARPS;
            run Producer(c);
            for (n : 0 .. MMA_GROUPS - 1) {
                for (w : 0 .. WARPS - 1) { run Mma(c, n, w) }
            }
#if ASYNC
            for (n : 0 .. STAGES - 1) { run Travel(c, AT(c, n)) }
#if WORDS_FLY
            for (n : 0 .. QUEUE_SLOTS - 1) { run TravelQueue(c, SLOT_AT(c, n)) }
#endif
#endif
        }
        for (c : 0 .. CLUSTERS - 1) {
            if
            :: c != FIRST -> run Elsewhere(c)
            :: else
            fi
        }
        c = 0; n = 0; w = 0
    }
    // All exit, and then every tile has been multiplied once and every barrier is between two phases.
    alive == 0;
    d_step {
        for (c : 0 .. TILES - 1) { assert(done[c] == CTAS * READERS) }
        for (c : 0 .. RING - 1) {
            assert(unread[c] == 0 && stage_empty[c].left == EMPTY_ARRIVALS);
            assert(stage_full[c].left == FULL_ARRIVALS && stage_full[c].tx == 0)
        }
#if DYNAMIC
        for (c : 0 .. SLOTS - 1) { assert(word_unread[c] == 0 && queue_full[c].left == 1 && queue_full[c].tx == 0) }
        for (c : 0 .. QUEUE_SLOTS - 1) { assert(queue_empty[c].left == QUEUE_EMPTY_ARRIVALS) }
        assert(counter == 0) // for the next launch
#endif
    }
}
