// SPDX-License-Identifier: Apache-2.0
// The barrier protocol of templates/gemm_sm90.cu for one cluster. README.md beside this file says what is left out.
// params.h comes from run_model.py: numbers of the plan (model_params.c) and the size of the run:
//   STAGES, TILES, K_TILES   stages of the ring, cluster tiles in all, stages per tile
//   CLUSTERS, FIRST          clusters that share the tiles, and which of them this is
//   WARPS                    processes per MMA warp group, each of which stands for 4 / WARPS warps
//   ASYNC                    1: what travels (TMA data, words, arrivals) does so as long as it likes; 0: no time
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

// ---- barriers ----

// `parity` is that of the phase under way: a wait for the other one passes.
typedef barrier {
    byte left; // arrivals
    short tx;  // announced minus landed; below 0 when data comes before it is announced
    bit parity
}

#define PASSES(b, p) (b.parity != (p))

inline settle(b, arrivals)
{
    if
    :: b.left == 0 && b.tx == 0 -> b.left = arrivals; b.parity = 1 - b.parity
    :: else
    fi
}

inline arrive(b, n, announced, arrivals)
{
    assert(b.left >= n);
    b.left = b.left - n;
    b.tx = b.tx + announced;
    settle(b, arrivals)
}

inline complete(b, n, arrivals)
{
    b.tx = b.tx - n;
    settle(b, arrivals)
}

barrier stage_full[RING], stage_empty[RING], turn[GROUPS];
#if DYNAMIC
barrier queue_full[SLOTS], queue_empty[QUEUE_SLOTS];
#endif

// ---- what the barriers guard ----

byte running[CTAS]; // processes of each CTA that have not exited
byte elsewhere = CLUSTERS - 1; // clusters that have not exited
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
#if DYNAMIC
bit announcement_flies[SLOTS], word_flies[SLOTS];
byte word_sent[SLOTS], releases_fly[QUEUE_SLOTS];
#endif
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

inline land_release(slot, n)
{
    assert(running[0] > 0);
    arrive(queue_empty[slot], n, 0, QUEUE_EMPTY_ARRIVALS)
}
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

// ---- tile queue ----

#define SLOT(count) ((count) % QUEUE_SLOTS)
#define PARITY(count) (((count) / QUEUE_SLOTS) & 1)

inline take_ticket(work)
{
    work = CLUSTERS + counter;
    counter = (counter == TILES - 1 -> 0 : counter + 1)
}

// The next ticket, read by `n` warps or threads each of which releases it.
inline queue_next(cta, work, count, n)
{
#if DYNAMIC
    d_step {
        PASSES(queue_full[SLOT_AT(cta, SLOT(count))], PARITY(count)) ->
        i = SLOT_AT(cta, SLOT(count));
        assert(word_unread[i] >= n);
        work = word[i];
        word_unread[i] = word_unread[i] - n;
        i = SLOT(count);
#if ASYNC
        releases_fly[i] = releases_fly[i] + n;
#else
        land_release(i, n);
#endif
        count++
    }
#else
    work = work + CLUSTERS
#endif
}

#if DYNAMIC
inline queue_send(work, count)
{
    d_step { take_ticket(work) }
    d_step {
        PASSES(queue_empty[SLOT(count)], 1 - PARITY(count)) ->
        for (other : 0 .. CTAS - 1) {
            i = SLOT_AT(other, SLOT(count));
            assert(running[other] > 0 && word_unread[i] == 0);
            word_unread[i] = 4 * MMA_GROUPS + (other != 0 -> 1 : 0);
#if ASYNC
            assert(!announcement_flies[i] && !word_flies[i]);
            announcement_flies[i] = 1; word_flies[i] = 1; word_sent[i] = work
#else
            land_announcement(other, i);
            land_word(other, i, work)
#endif
        }
        count++
    }
}
#endif

#if DYNAMIC
inline queue_finish(count)
{
    do
    :: k < QUEUE_SLOTS ->
        d_step { PASSES(queue_empty[SLOT(count)], 1 - PARITY(count)) -> count++; k++ }
    :: else -> break
    od;
    k = 0
}
#endif

// ---- processes ----

proctype Producer(byte cta)
{
    byte work = FIRST, count = 0, k = 0, stage = 0;
    bit parity = 0;
    do
    :: work < TILES ->
        do
        :: k < K_TILES ->
            d_step {
                PASSES(stage_empty[AT(cta, stage)], 1 - parity) ->
                arrive(stage_full[AT(cta, stage)], 1, A_SLICES + B_SLICES, FULL_ARRIVALS)
            }
            d_step {
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
        :: else -> break
        od;
        k = 0;
#if DYNAMIC
        if
        :: cta == 0 -> queue_send(work, count)
        :: else -> queue_next(cta, work, count, 1)
        fi
#else
        queue_next(cta, work, count, 1)
#endif
    :: else -> break
    od;
    do
    :: k < STAGES ->
        d_step { PASSES(stage_empty[AT(cta, stage)], 1 - parity) -> ring_next(stage, parity); k++ }
    :: else -> break
    od;
    k = 0;
#if DYNAMIC
    if
    :: cta == 0 -> queue_finish(count)
    :: else
    fi;
#endif
    work = 0;
    d_step { running[cta]--; count = 0; stage = 0; parity = 0 }
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

proctype Mma(byte cta; byte group; byte warp)
{
    byte work = FIRST, count = 0, k = 0, stage = 0, previous = 0, me = cta * MMA_GROUPS + group;
    bit parity = 0;
#if WARPS > 1
    byte steps = 0;
#endif
#if PINGPONG
    bit turn_parity = 1 - group;
    if
    :: group == 1 ->
        queue_next(cta, work, count, WARPS_EACH);
        d_step { for (i : 1 .. K_TILES) { ring_next(stage, parity) } }
    :: else
    fi;
#endif
    do
    :: work < TILES ->
#if PINGPONG
        d_step { PASSES(turn[me], turn_parity) -> turn_parity = 1 - turn_parity }
#endif
        do
        :: k < K_TILES ->
            d_step {
                PASSES(stage_full[AT(cta, stage)], parity) ->
                check_readable(AT(cta, stage), work * K_TILES + k);
#if WARPS > 1
                steps++;
                issued[me * WARPS + warp] = steps
            }
            d_step {
                (k == 0 && !SIMPLE) || COMPLETE(1 - SIMPLE) ->
#endif
                if
                :: SIMPLE && warp == 0 -> finish_stage(cta, stage); release_stage(cta, stage)
                :: !SIMPLE && k > 0 && warp == 0 -> finish_stage(cta, previous); release_stage(cta, previous)
                :: else
                fi;
                previous = stage;
                ring_next(stage, parity);
                k++
            }
        :: else -> break
        od;
        k = 0;
#if PINGPONG && PROMOTION == 0
        d_step { arrive(turn[cta * MMA_GROUPS + 1 - group], WARPS_EACH, 0, TURN_ARRIVALS) }
#endif
        d_step {
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
        d_step { arrive(turn[cta * MMA_GROUPS + 1 - group], WARPS_EACH, 0, TURN_ARRIVALS) }
#endif
#if PINGPONG
        d_step { for (i : 1 .. K_TILES) { ring_next(stage, parity) } }
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
    d_step { running[cta]--; count = 0; stage = 0; previous = 0; parity = 0 }
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
    elsewhere--
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

#if DYNAMIC
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
#if DYNAMIC
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
    // All CTAs exit, and then every tile has been multiplied once and every barrier is between two phases.
    do
    :: c < CTAS -> running[c] == 0 -> c++
    :: else -> break
    od;
    elsewhere == 0;
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
