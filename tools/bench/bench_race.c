/* SPDX-License-Identifier: Apache-2.0 */
/* The race: a graph for each arm, then rounds in which all of them run in random order. */
#include "base/clock.h"
#include "bench.h"

/* In a process that held 1500 kernel nodes of graphs or more, every node of later graphs took 0.35 us longer
 * (H200, 2026-11-30). All arms together stay below. */
#define NODES_MAX 1000
#define LAUNCHES_MIN 2
#define LAUNCHES_MAX 200
#define REPEATS_MAX 2000

struct marks {
    void *marks[BENCH_ARMS_MAX + 1]; /* before each arm of a round, and behind the last */
};

/* -- Graphs -------------------------------------------------------------------------------------------- */

/* Launches of one graph: a whole number of turns of the sets where that is possible, and no more than take a
 * train's time at 10^15 operations per second. */
static int count_launches(const struct bench *bench, const struct bench_result *result, int num_sets)
{
    const struct bench_shape *const shape = &result->shape;
    const double operations = 2.0 * (double)(shape->m * shape->n) * (double)(shape->k * shape->batch);
    const double per_train = (double)bench->train_ms * 1e12 / (operations > 1 ? operations : 1);
    const int most = per_train < LAUNCHES_MAX ? (int)per_train : LAUNCHES_MAX;
    int launches = NODES_MAX / result->num_arms;
    launches = launches > most ? most : launches;
    launches = launches < LAUNCHES_MIN ? LAUNCHES_MIN : launches;
    return launches > num_sets ? launches / num_sets * num_sets : launches;
}

static enum gj_status capture_launches(struct bench *bench, const struct bench_result *result,
                                       const struct bench_arm *arm, struct bench_lt *lt,
                                       const struct bench_operands *operands, gj_error **error)
{
    for (int i = 0; i < result->launches; i++) {
        const struct gj_gemm_args args =
            bench_operands_args(bench, &result->shape, operands, i % operands->num_sets);
        GJ_TRY(bench_launch(bench, arm, lt, &args, error));
    }
    return GJ_OK;
}

static enum gj_status capture(struct bench *bench, const struct bench_result *result, struct bench_arm *arm,
                              struct bench_lt *lt, const struct bench_operands *operands, gj_error **error)
{
    void *graph = NULL;
    GJ_TRY(gj_device_capture(bench->device, error));
    const enum gj_status status = capture_launches(bench, result, arm, lt, operands, error);
    const enum gj_status ended = gj_device_captured(bench->device, &graph, status == GJ_OK ? error : NULL);
    arm->graph = graph;
    return status == GJ_OK ? ended : status;
}

/* -- Rounds -------------------------------------------------------------------------------------------- */

static unsigned next_random(uint32_t *state)
{
    *state ^= *state << 13; /* xorshift32, Marsaglia 2003 */
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void shuffle(int *order, int count, uint32_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(next_random(state) % (unsigned)(i + 1)), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

/* `count` arms once, in this order; the stream never waits for the host between them. */
static enum gj_status run_round(struct bench *bench, struct bench_result *result, const struct marks *marks,
                                const int *order, int count, int repeats, int round, gj_error **error)
{
    GJ_TRY(gj_device_mark_set(bench->device, marks->marks[0], error));
    for (int i = 0; i < count; i++) {
        for (int r = 0; r < repeats; r++)
            GJ_TRY(gj_device_graph_launch(bench->device, result->arms[order[i]].graph, error));
        GJ_TRY(gj_device_mark_set(bench->device, marks->marks[i + 1], error));
    }
    GJ_TRY(gj_device_sync(bench->device, BENCH_TIMEOUT_MS + (int)bench->train_ms * count, error));
    for (int i = 0; i < count; i++) {
        struct bench_arm *const arm = &result->arms[order[i]];
        float ms = 0;
        GJ_TRY(gj_device_mark_span(bench->device, marks->marks[i], marks->marks[i + 1], &ms, error));
        arm->us[round] = ms * 1000 / (float)(repeats * result->launches);
        arm->rounds = round + 1;
    }
    return GJ_OK;
}

/* How often a graph is launched so that a train takes about --train ms; the base tells. */
static int count_repeats(const struct bench *bench, const struct bench_result *result)
{
    const double graph_ms = (double)result->arms[0].us[0] * result->launches / 1000;
    const double repeats = graph_ms > 0 ? (double)bench->train_ms / graph_ms + 0.5 : 1;
    return repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : (int)repeats;
}

static bool is_over(const struct bench *bench, const struct bench_result *result, double start_ms)
{
    return result->rounds == BENCH_ROUNDS_MAX ||
           (result->rounds >= BENCH_ROUNDS_MIN && gj_clock_ms() - start_ms > (double)bench->seconds * 1000);
}

static enum gj_status run_rounds(struct bench *bench, struct bench_result *result, const struct marks *marks,
                                 gj_error **error)
{
    int order[BENCH_ARMS_MAX];
    int count = result->num_arms;
    uint32_t state = 2463534242u;
    for (int i = 0; i < result->num_arms; i++)
        order[i] = i;
    for (int i = 0; i < 2; i++) /* warms up: clocks, instruction caches, the graphs' first upload */
        GJ_TRY(run_round(bench, result, marks, order, count, 1, 0, error));
    result->repeats = count_repeats(bench, result);
    const double start = gj_clock_ms();
    for (result->rounds = 0; !is_over(bench, result, start); result->rounds++) {
        if (bench->drop && result->rounds % BENCH_BATCH == 0)
            count = bench->drop(result, order, count);
        if (count == 0)
            break;
        shuffle(order, count, &state);
        GJ_TRY(run_round(bench, result, marks, order, count, result->repeats, result->rounds, error));
    }
    return GJ_OK;
}

static enum gj_status run_race(struct bench *bench, struct bench_result *result, struct marks *marks,
                               struct bench_lt *lt, const struct bench_operands *operands, gj_error **error)
{
    result->launches = count_launches(bench, result, operands->num_sets);
    for (int i = 0; i < result->num_arms; i++)
        GJ_TRY(capture(bench, result, &result->arms[i], lt, operands, error));
    for (int i = 0; i <= result->num_arms; i++)
        GJ_TRY(gj_device_mark_make(bench->device, &marks->marks[i], error));
    return run_rounds(bench, result, marks, error);
}

enum gj_status bench_race(struct bench *bench, struct bench_result *result, struct bench_lt *lt,
                          const struct bench_operands *operands, gj_error **error)
{
    struct marks marks = {{0}};
    const enum gj_status status = run_race(bench, result, &marks, lt, operands, error);
    if (status == GJ_ERR_DRIVER)
        return status; /* what may still run is left to the end of the process */
    for (int i = 0; i <= BENCH_ARMS_MAX; i++)
        gj_device_mark_free(bench->device, marks.marks[i]);
    for (int i = 0; i < result->num_arms; i++) {
        gj_device_graph_free(bench->device, result->arms[i].graph);
        result->arms[i].graph = NULL;
    }
    return status;
}
