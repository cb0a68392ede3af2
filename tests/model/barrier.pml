// SPDX-License-Identifier: Apache-2.0
// An mbarrier: pending arrivals, a transaction count and the parity of its phase.

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
