/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of several arms. */
#include "race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TRAIN_MS 3.0

int race_sets(double bytes)
{
    const int sets = (int)(ROTATE_BYTES / bytes) + 2;
    return sets < SETS_MAX ? sets : SETS_MAX;
}

/* One train of launches; microseconds per launch. */
static float time_arm(struct race *race, int arm, int launches)
{
    gj_error *error = NULL;
    float ms = 0;
    race->run(race->user, arm, 0);
    must(gj_device_timer_start(race->rig->device, &error), error, "timer");
    for (int i = 0; i < launches; i++)
        race->run(race->user, arm, i % race->num_sets);
    must(gj_device_timer_stop(race->rig->device, &ms, &error), error, "timer");
    return ms * 1000 / (float)launches;
}

void race_run(struct race *race, double flop)
{
    int order[ARMS_MAX];
    const double estimate_ms = flop / 6.5e14 * 1e3;
    int launches = (int)(TRAIN_MS / (estimate_ms > 0.004 ? estimate_ms : 0.004) + 0.5);
    launches = launches < 2 ? 2 : launches > 400 ? 400 : launches;
    for (int i = 0; i < race->num_arms; i++)
        order[i] = i;
    const double start = gj_clock_ms();
    for (race->rounds = 0; race->rounds < ROUNDS_MAX; race->rounds++) {
        if (race->rounds >= 11 && gj_clock_ms() - start > race->seconds * 1000)
            break;
        for (int i = race->num_arms - 1; i > 0; i--) {
            const int j = rand() % (i + 1), other = order[i];
            order[i] = order[j];
            order[j] = other;
        }
        for (int i = 0; i < race->num_arms; i++)
            race->us[order[i]][race->rounds] = time_arm(race, order[i], launches);
    }
}

static int compare_floats(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static float quantile_of(const float *values, int count, double q)
{
    float sorted[ROUNDS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_floats);
    return sorted[(int)(q * (count - 1) + 0.5)];
}

float race_us(const struct race *race, int arm, double quantile)
{
    return quantile_of(race->us[arm], race->rounds, quantile);
}

float race_ratio(const struct race *race, int base, int arm, double quantile)
{
    float ratios[ROUNDS_MAX];
    for (int i = 0; i < race->rounds; i++)
        ratios[i] = race->us[base][i] / race->us[arm][i];
    return quantile_of(ratios, race->rounds, quantile);
}

double race_distance(struct rig *rig, void *x, void *y, uint64_t count, enum gj_dtype dtype, const char *what)
{
    gj_error *error = NULL;
    double sums[2] = {0, 0};
    double *device_sums = rig_alloc(rig, sizeof sums);
    int type = (int)dtype;
    must(gj_device_fill(rig->device, device_sums, 0, sizeof sums, &error), error, "sums");
    void *arguments[] = {&x, &y, &count, &type, &device_sums};
    rig_launch(rig, rig->distance, 264, 1, 1, 256, 1, arguments);
    must(gj_device_sync(rig->device, WATCHDOG_MS, &error), error, what);
    must(gj_device_read(rig->device, sums, device_sums, sizeof sums, &error), error, "sums");
    gj_device_free(rig->device, device_sums);
    return sqrt(sums[0] / sums[1]);
}
