// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: a kernel that starts while the one in front of it in the stream still runs. Both
// instructions do nothing in a launch without the attribute. sm_90, PTX 7.8.
#pragma once

// Any thread. Waits until the launches in front have ended and what they wrote can be read.
DEVICE void overlap_wait()
{
    asm volatile(R"ptx(
        // ptx_snippets/overlap.cuh overlap_wait
        griddepcontrol.wait;
        )ptx" ::: "memory");
}

// One thread of each CTA. Lets the next launch start.
DEVICE void overlap_launch_next()
{
    asm volatile(R"ptx(
        // ptx_snippets/overlap.cuh overlap_launch_next
        griddepcontrol.launch_dependents;
        )ptx" ::: "memory");
}
