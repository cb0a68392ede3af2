/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time for statistics; nothing generated or cached depends on it. */
#ifndef GJ_BASE_CLOCK_H
#define GJ_BASE_CLOCK_H

double gj_clock_ms(void);

#endif
