/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of M: steps of 8 up to 64, because rows that a box lacks cost time to fill with zeros, and four to
 * a doubling above 256, so that a table has a bounded number of rows for each weight. */
#include "tuning/tuning.h"

#define FEW_STEP 8
#define STEP_MIN 64
#define STEPS_TO_POWER 8

int64_t gj_tuning_m_class(int64_t m)
{
    int64_t power = STEPS_TO_POWER;
    if (m <= STEP_MIN)
        return m < 1 ? FEW_STEP : (m + FEW_STEP - 1) / FEW_STEP * FEW_STEP;
    while (power < m && power <= INT64_MAX / 2)
        power *= 2;
    const int64_t wanted = power / STEPS_TO_POWER, step = wanted > STEP_MIN ? wanted : STEP_MIN;
    const int64_t below = (m - 1) / step * step;
    return below > INT64_MAX - step ? INT64_MAX : below + step;
}
