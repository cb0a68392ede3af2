// SPDX-License-Identifier: Apache-2.0
// Part of pipeline.pml: tickets, which templates/tile_queue.cuh stores in a cluster of one CTA and sends in larger ones.

#define SLOT(count) ((count) % QUEUE_SLOTS)
#define PARITY(count) (((count) / QUEUE_SLOTS) & 1)

inline take_ticket(work)
{
    work = CLUSTERS + counter;
    counter = (counter == TILES - 1 -> 0 : counter + 1)
}

#if DYNAMIC
#define TICKET(cta, count) PASSES(queue_full[SLOT_AT(cta, SLOT(count))], PARITY(count))
#define SLOT_FREE(count) PASSES(queue_empty[SLOT(count)], 1 - PARITY(count))

// The ticket that has come, read by `n` warps or threads each of which then releases it.
inline read_ticket(cta, work, count, n)
{
    i = SLOT_AT(cta, SLOT(count));
    assert(word_unread[i] >= n);
    work = word[i];
    word_unread[i] = word_unread[i] - n;
}

inline release_ticket(count, n)
{
    i = SLOT(count);
#if WORDS_FLY
    releases_fly[i] = releases_fly[i] + n;
#else
    land_release(i, n);
#endif
    count++
}

inline queue_next(cta, work, count, n)
{
#if CTAS == 1
    STEP {
        PART { TICKET(cta, count) -> read_ticket(cta, work, count, n) }
        PART { release_ticket(count, n) }
    }
#else
    d_step {
        TICKET(cta, count) -> read_ticket(cta, work, count, n); release_ticket(count, n);
#if MERGE
        if
        :: n == WARPS_EACH && work >= TILES -> leave(cta) // a warp group has nothing to do any more
        :: else
        fi
#endif
    }
#endif
}

inline send_words(work, count)
{
    for (other : 0 .. CTAS - 1) {
        i = SLOT_AT(other, SLOT(count));
        assert(running[other] > 0 && word_unread[i] == 0);
        word_unread[i] = 4 * MMA_GROUPS + (other != 0 -> 1 : 0);
#if CTAS == 1
        word[i] = work // a plain store, the arrival follows
#elif ASYNC
        assert(!announcement_flies[i] && !word_flies[i]);
        announcement_flies[i] = 1; word_flies[i] = 1; word_sent[i] = work
#else
        land_announcement(other, i);
        land_word(other, i, work)
#endif
    }
}
#else
inline queue_next(cta, work, count, n)
{
    work = work + CLUSTERS
}
#endif
