// SPDX-License-Identifier: Apache-2.0
// Staging memory and C of templates/epilogue.cuh.in and source.cuh for one MMA warp group, with two warps instead of four.
// params.h comes from run_model.py:
//   TILES, SLABS    tiles of the warp group, slabs of each; every other one is an edge tile with one slab less
//   SLAB_BUFFERS    buffers of the staging memory
//   C_BUFFERS       buffers of C; 0: there is no C
//   CUT             what of edge tiles is copied element by element: 0 nothing, 1 each slab in slab_end (m-major),
//                   2 the last one behind the tile (n-major)
//   BOTH            1: a cut slab also has an output that is not cut
#include "params.h"
#include "barrier.pml"

#define WARPS 2
#define MOST_GROUPS (TILES * SLABS)
#define EDGE(tile) ((tile) % 2 == 1)
#define SLABS_OF(tile) (EDGE(tile) -> SLABS - 1 : SLABS)
#define OF_WARP(buffer) ((buffer) * WARPS + warp)
#define COPIED (EDGE(tile) && (CUT == 1 || (CUT == 2 && slab + 1 == SLABS_OF(tile))))
#define STAMP(tile, slab) ((tile) * SLABS + (slab) + 1) // 0: nothing yet

byte alive = WARPS;

// Staging memory: which slab each warp has written to its rows, and whether it has still to copy them.
byte content[SLAB_BUFFERS * WARPS];
bit uncopied[SLAB_BUFFERS * WARPS];
byte stores[SLAB_BUFFERS]; // that read it

// Bulk groups of the issuing thread, in the order of their commits.
byte committed, have_read;  // the first of them that have all read their memory
byte reads[MOST_GROUPS + 1]; // the buffer that the store of a group reads, plus 1; 0: none, or it has done so

// The named barrier of the warp group.
byte met;
bit met_parity;

#if C_BUFFERS > 0
barrier c_full[C_BUFFERS];
byte c_stamp[C_BUFFERS];  // the slab sent into it
byte c_unread[C_BUFFERS]; // warps that have still to read it
bit c_flies[C_BUFFERS];
#endif

inline count_read_groups()
{
    do
    :: have_read < committed && reads[have_read] == 0 -> have_read++
    :: else -> break
    od;
    skip // spin wants no loop at the end of a d_step
}

// named_barrier_sync. With the warp's own `passed`.
inline meet()
{
    d_step {
        passed = met_parity;
        met++;
        if
        :: met == WARPS -> met = 0; met_parity = 1 - met_parity
        :: else
        fi
    }
    met_parity != passed
}

// tma_store_wait_read: all but the newest `n` groups of this thread have read. Warp 1 has none.
#define HAVE_READ_BUT(n) (warp != 0 || have_read + (n) >= committed)

// ---- C ----

#if C_BUFFERS > 0
inline source_load()
{
    if
    :: next_slab < SLABS_OF(tile) ->
        d_step { arrive(c_full[loaded % C_BUFFERS], 1, 1, 1) }
        d_step {
            assert(!c_flies[loaded % C_BUFFERS] && c_unread[loaded % C_BUFFERS] == 0);
            c_flies[loaded % C_BUFFERS] = 1;
            c_stamp[loaded % C_BUFFERS] = STAMP(tile, next_slab);
            c_unread[loaded % C_BUFFERS] = WARPS;
            loaded++;
            next_slab++
        }
    :: else
    fi
}

inline source_begin()
{
    if
    :: warp == 0 ->
        next_slab = 0;
        ahead = 0;
        do
        :: ahead < C_BUFFERS -> source_load(); ahead++
        :: else -> break
        od;
        ahead = 0
    :: else
    fi
}

inline source_wait()
{
    PASSES(c_full[used % C_BUFFERS], (used / C_BUFFERS) & 1)
}

inline source_read()
{
    d_step {
        assert(!c_flies[used % C_BUFFERS] && c_stamp[used % C_BUFFERS] == STAMP(tile, slab));
        assert(c_unread[used % C_BUFFERS] > 0);
        c_unread[used % C_BUFFERS]--
    }
}

inline source_advance()
{
    used++;
    if
    :: warp == 0 -> source_load()
    :: else
    fi
}
#endif

// ---- staging ----

inline slab_begin()
{
    HAVE_READ_BUT(SLAB_BUFFERS - 1);
    meet(); // begin
    d_step { filled = next; next = (next + 1 == SLAB_BUFFERS -> 0 : next + 1) }
}

inline fill()
{
    d_step {
        assert(stores[filled] == 0 && !uncopied[OF_WARP(filled)]);
        content[OF_WARP(filled)] = STAMP(tile, slab);
        uncopied[OF_WARP(filled)] = COPIED
    }
}

// Each warp copies its own rows.
inline copy_cut()
{
    d_step {
        assert(uncopied[OF_WARP(filled)]);
        uncopied[OF_WARP(filled)] = 0
    }
}

inline slab_end()
{
    meet(); // end
    if
    :: warp == 0 ->
        if
        :: !COPIED || BOTH ->
            d_step {
                assert(content[filled * WARPS] == STAMP(tile, slab) && content[filled * WARPS + 1] == STAMP(tile, slab));
                stores[filled]++;
                reads[committed] = filled + 1
            }
        :: else
        fi;
        d_step { committed++; count_read_groups() }
    :: else
    fi;
    if
    :: COPIED && CUT == 1 -> copy_cut()
    :: else
    fi
}

// ---- processes ----

proctype Warp(byte warp)
{
    byte tile = 0, slab = 0, next = 0, filled = 0;
    bit passed = 0;
#if C_BUFFERS > 0
    byte loaded = 0, used = 0, next_slab = 0, ahead = 0;
#endif
    do
    :: tile < TILES ->
#if C_BUFFERS > 0
        source_begin();
#endif
        do
        :: slab < SLABS_OF(tile) ->
#if C_BUFFERS > 0
            source_wait();
#endif
            slab_begin();
#if C_BUFFERS > 0
            source_read();
#endif
            fill();
            slab_end();
#if C_BUFFERS > 0
            source_advance();
#endif
            slab++
        :: else -> break
        od;
        if
        :: EDGE(tile) && CUT == 2 && slab > 0 -> copy_cut()
        :: else
        fi;
        slab = 0;
        tile++
    :: else -> break
    od;
    HAVE_READ_BUT(0);
    alive--
}

// What TMA does, in any order.
proctype Stores(byte group)
{
end:
    do
    :: d_step {
        reads[group] != 0 ->
        stores[reads[group] - 1]--;
        reads[group] = 0;
        count_read_groups()
    }
    od
}

#if C_BUFFERS > 0
proctype Loads(byte buffer)
{
end:
    do
    :: d_step { c_flies[buffer] -> c_flies[buffer] = 0; complete(c_full[buffer], 1, 1) }
    od
}
#endif

init
{
    byte n;
    atomic {
#if C_BUFFERS > 0
        for (n : 0 .. C_BUFFERS - 1) { c_full[n].left = 1; run Loads(n) }
#endif
        for (n : 0 .. MOST_GROUPS - 1) { run Stores(n) }
        for (n : 0 .. WARPS - 1) { run Warp(n) }
        n = 0
    }
    // Shared memory goes with the last warp.
    d_step {
        alive == 0 ->
        assert(have_read == committed && met == 0);
        for (n : 0 .. SLAB_BUFFERS - 1) { assert(stores[n] == 0) }
        for (n : 0 .. SLAB_BUFFERS * WARPS - 1) { assert(!uncopied[n]) }
#if C_BUFFERS > 0
        for (n : 0 .. C_BUFFERS - 1) {
            assert(!c_flies[n] && c_unread[n] == 0 && c_full[n].left == 1 && c_full[n].tx == 0)
        }
#endif
        n = 0
    }
}
