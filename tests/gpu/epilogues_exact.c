/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of fused epilogues, exactly: small integers, scalars and factors that are powers of two, so that every
 * value before the last rounding is known; memory before, between and behind the rows of D and PostAct is
 * poison and must stay so. */
#include "epilogues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "epilogues_keys.h"
#include "fused.h"
#include "kernels.h"
#include "plan/plan.h"

#define KEYS_MAX 4096
#define NUM_OPS 5

struct tested {
    size_t index; /* in the covering array; chooses variants */
    int tile_k, stages;
    unsigned runs, wrong_runs;
    bool ran; /* in the shape at hand */
};

struct exact {
    struct rig *rig;
    struct fused_kernels kernels;
    struct gj_key keys[KEYS_MAX];
    gj_kernel *compiled[KEYS_MAX]; /* NULL: did not compile */
    struct tested tested[KEYS_MAX];
    size_t num_keys;
    unsigned *wrong; /* one counter per key, on the device */
    unsigned host_wrong[KEYS_MAX];
    size_t shapes, watch;
};

/* Keys of a file, one a line. */
static size_t read_keys(const char *path, struct gj_key *keys, size_t capacity)
{
    FILE *const file = fopen(path, "r");
    char line[GJ_KEY_TEXT_MAX + 2];
    size_t count = 0;
    while (file != NULL && count < capacity && fgets(line, sizeof line, file) != NULL) {
        gj_error *error = NULL;
        line[strcspn(line, "\n")] = '\0';
        must(gj_key_parse(line, &keys[count++], &error), error, line);
    }
    if (file != NULL)
        fclose(file);
    return count;
}

static void choose_keys(struct exact *exact, const struct epilogues_options *options)
{
    static struct gj_key keys[KEYS_MAX];
    const size_t count = options->keys ? read_keys(options->keys, keys, KEYS_MAX)
                                       : epilogues_covering(options->seed, keys, KEYS_MAX);
    size_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        char text[GJ_KEY_TEXT_MAX];
        struct gj_plan plan;
        gj_key_format(&keys[i], text, sizeof text);
        if (i < (size_t)options->from || i >= (size_t)options->to ||
            (options->filter != NULL && strstr(text, options->filter) == NULL) ||
            seen++ % (size_t)options->every)
            continue;
        gj_plan_make_numbers(&keys[i], &plan);
        exact->keys[exact->num_keys] = keys[i];
        exact->tested[exact->num_keys++] =
            (struct tested){.index = i, .tile_k = plan.tile_k, .stages = plan.stages};
    }
}

static void place_text(const struct shape *shape, const char *what, char text[128])
{
    snprintf(text, 128, "%s, shape %dx%dx%d batch %d%s", what, shape->m, shape->n, shape->k, shape->batch,
             shape->shared_b ? " with one B" : "");
}

static void note_wrong(struct exact *exact, size_t i, const char *place, const char *what)
{
    char text[GJ_KEY_TEXT_MAX];
    if (exact->tested[i].wrong_runs++ >= 2)
        return;
    gj_key_format(&exact->keys[i], text, sizeof text);
    fprintf(stderr, "WRONG %s: %s: %s\n", place, what, text);
}

/* Waits for the shape's launches and notes which keys were wrong. */
static void collect(struct exact *exact, const struct shape *shape, const char *what)
{
    gj_error *error = NULL;
    const size_t bytes = exact->num_keys * sizeof *exact->wrong;
    char place[128], elements[32];
    place_text(shape, what, place);
    must(gj_device_sync(exact->rig->device, WATCHDOG_MS, &error), error, place);
    must(gj_device_read(exact->rig->device, exact->host_wrong, exact->wrong, bytes, &error), error, place);
    for (size_t i = 0; i < exact->num_keys; i++) {
        if (!exact->tested[i].ran)
            continue;
        exact->tested[i].runs++;
        exact->tested[i].ran = false;
        snprintf(elements, sizeof elements, "%u elements", exact->host_wrong[i]);
        if (exact->host_wrong[i] != 0)
            note_wrong(exact, i, place, elements);
    }
    must(gj_device_fill(exact->rig->device, exact->wrong, 0, bytes, &error), error, place);
}

/* Waits now and then, so that the watchdog sees a hang within its time and says where. */
static void watch(struct exact *exact, size_t i, const struct shape *shape, size_t distance)
{
    gj_error *error = NULL;
    char text[GJ_KEY_TEXT_MAX], place[128], where[GJ_KEY_TEXT_MAX + 192];
    if (i % distance != distance - 1)
        return;
    place_text(shape, "one launch", place);
    gj_key_format(&exact->keys[i], text, sizeof text);
    snprintf(where, sizeof where, "%s, within %zu keys before %s", place, distance, text);
    must(gj_device_sync(exact->rig->device, WATCHDOG_MS, &error), error, where);
}

/* Launches a key `times` times and compares; a launch that is refused is wrong. */
static void run_key(struct exact *exact, size_t i, const struct fused *fused, int variant, int times)
{
    const struct gj_key *const key = &exact->keys[i];
    gj_error *error = NULL;
    char place[128];
    if (exact->compiled[i] == NULL || !fused_fits(key, &fused->base.shape))
        return;
    exact->tested[i].ran = true;
    fused_prepare(exact->rig, fused, key, variant);
    if (fused_launch(exact->rig, fused, key, exact->compiled[i], variant, times, &error) == GJ_OK) {
        fused_compare(exact->rig, &exact->kernels, fused, key, variant, exact->wrong + i);
        return;
    }
    place_text(&fused->base.shape, "launch", place);
    note_wrong(exact, i, place, error ? error->message : "refused");
    gj_error_free(&error);
}

/* Every key once on this shape. */
static void run_shape(struct exact *exact, const struct shape *shape)
{
    struct fused fused;
    fused_make(exact->rig, &exact->kernels, shape, &fused);
    for (size_t i = 0; i < exact->num_keys; i++) {
        run_key(exact, i, &fused, (int)(exact->shapes + exact->tested[i].index), 1);
        watch(exact, i, shape, exact->watch);
    }
    collect(exact, shape, "one launch");
    fused_free(exact->rig, &fused);
    exact->shapes++;
}

/* Whether a tile of this many stages is one of a key's special cases. */
static bool is_special(const struct tested *tested, int k_tiles)
{
    const int s = tested->stages;
    return k_tiles == s - 1 || k_tiles == s || k_tiles == s + 1 || k_tiles == 2 * s + 1;
}

/* Each key on the stage counts that its ring makes special. */
static void run_stage_counts(struct exact *exact)
{
    for (int k = 64 - 8; k < 64 * 64; k += 64) {
        const struct shape shape = {385, 544, k, 1, false};
        bool any = false;
        for (size_t i = 0; i < exact->num_keys && !any; i++)
            any = is_special(&exact->tested[i], (k + exact->tested[i].tile_k - 1) / exact->tested[i].tile_k);
        if (!any)
            continue;
        struct fused fused;
        fused_make(exact->rig, &exact->kernels, &shape, &fused);
        for (size_t i = 0; i < exact->num_keys; i++) {
            const int tile_k = exact->tested[i].tile_k;
            if (is_special(&exact->tested[i], (k + tile_k - 1) / tile_k))
                run_key(exact, i, &fused, k / 64 + (int)exact->tested[i].index, 1);
            watch(exact, i, &shape, exact->watch);
        }
        collect(exact, &shape, "stage counts");
        fused_free(exact->rig, &fused);
    }
}

/* Every key many times back to back on a shape with odd tile counts. */
static void run_repeats(struct exact *exact, int repeats)
{
    const struct shape shape = {300, 544, 200, 1, false};
    struct fused fused;
    fused_make(exact->rig, &exact->kernels, &shape, &fused);
    for (size_t i = 0; i < exact->num_keys; i++) {
        run_key(exact, i, &fused, 0, repeats);
        watch(exact, i, &shape, 1);
    }
    collect(exact, &shape, "back to back");
    fused_free(exact->rig, &fused);
}

static void run_all(struct exact *exact, const struct epilogues_options *options)
{
    static const struct shape shapes[] = {
        {1, 8, 16, 1, false},       {7, 72, 40, 1, false},   {64, 1002, 200, 1, false},
        {1000, 58, 136, 1, false},  {300, 520, 0, 1, false}, {385, 262, 200, 3, false},
        {200, 334, 136, 4, true},   {129, 777, 72, 1, true}, {513, 776, 64, 1, false},
        {1290, 1416, 64, 1, false}, {7, 96, 200, 1, false},  {333, 416, 136, 2, false},
    };
    static const struct shape small[] = {
        {129, 200, 200, 1, false}, {200, 58, 72, 3, false}, {385, 264, 136, 1, true}};
    const struct shape *const list = options->small ? small : shapes;
    const size_t count = options->small ? sizeof small / sizeof small[0] : sizeof shapes / sizeof shapes[0];
    for (size_t i = 0; i < count; i++)
        run_shape(exact, &list[i]);
    if (!options->small)
        run_stage_counts(exact);
    if (options->repeats > 0)
        run_repeats(exact, options->repeats);
}

static unsigned wrong_of(struct exact *exact, const struct fused *fused, const struct gj_key *key)
{
    gj_error *error = NULL;
    unsigned wrong = 0;
    fused_compare(exact->rig, &exact->kernels, fused, key, 0, exact->wrong);
    must(gj_device_sync(exact->rig->device, WATCHDOG_MS, &error), error, "comparison");
    must(gj_device_read(exact->rig->device, &wrong, exact->wrong, sizeof wrong, &error), error, "comparison");
    must(gj_device_fill(exact->rig->device, exact->wrong, 0, sizeof wrong, &error), error, "comparison");
    return wrong;
}

/* The comparison must see what is wrong: outputs that were never written, and one altered byte around each of
 * them. No kernel runs. */
static void test_comparison(struct exact *exact)
{
    const struct shape shape = {33, 40, 64, 2, false};
    struct fused fused;
    gj_error *error = NULL;
    fused_make(exact->rig, &exact->kernels, &shape, &fused);
    for (size_t i = 0; i < exact->num_keys; i += 1 + exact->num_keys / 16) {
        const struct gj_key *const key = &exact->keys[i];
        const bool d = key->d.dtype != GJ_DTYPE_NONE, p = key->p.dtype != GJ_DTYPE_NONE;
        const unsigned columns =
            (unsigned)((d ? fused_d_columns(key, shape.n) : 0) + (p ? fused_p_columns(key, shape.n) : 0));
        const unsigned expected = columns * (unsigned)(shape.m * shape.batch);
        const unsigned amax = key->quant == GJ_QUANT_AMAX; /* a wrong one counts too */
        fused_prepare(exact->rig, &fused, key, 0);
        const unsigned untouched = wrong_of(exact, &fused, key);
        if (d)
            must(gj_device_fill(exact->rig->device, fused.d, 0x7b, 1, &error), error, "byte");
        if (p)
            must(gj_device_fill(exact->rig->device, fused.p, 0x7b, 1, &error), error, "byte");
        const unsigned touched = wrong_of(exact, &fused, key);
        if (untouched == expected + amax && touched == expected + amax + d + p)
            continue;
        fprintf(stderr, "the comparison is blind: %u and %u wrong elements, not %u and %u\n", untouched,
                touched, expected + amax, expected + amax + d + p);
        exit(1);
    }
    fused_free(exact->rig, &fused);
}

static void tell_untested(const struct gj_key *key)
{
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(key, text, sizeof text);
    fprintf(stderr, "no shape suits %s\n", text);
}

static size_t print_table(const struct exact *exact, const struct epilogues_options *options, double seconds)
{
    static const char *const names[NUM_OPS] = {"gemm", "act", "dact", "gated", "dgated"};
    size_t failed = 0;
    printf("Seed %u, %zu shapes, those of each ring's depth, %d launches back to back; %.0f s.\n\n",
           options->seed, exact->shapes, options->repeats, seconds);
    printf("| operation | keys accepted | compiled | exact | launches compared | wrong |\n"
           "|---|---|---|---|---|---|\n");
    for (int op = 0; op < NUM_OPS; op++) {
        size_t keys = 0, compiled = 0, right = 0, runs = 0, wrong = 0;
        for (size_t i = 0; i < exact->num_keys; i++) {
            const struct tested *const t = &exact->tested[i];
            if ((int)exact->keys[i].op != op)
                continue;
            keys++;
            compiled += exact->compiled[i] != NULL;
            right += t->runs > 0 && t->wrong_runs == 0;
            if (t->runs == 0)
                tell_untested(&exact->keys[i]);
            runs += t->runs;
            wrong += t->wrong_runs;
        }
        printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", names[op], keys, compiled, right, runs, wrong);
        failed += keys - right;
    }
    printf("\n");
    fflush(stdout);
    return failed;
}

size_t epilogues_exact(struct rig *rig, const struct epilogues_options *options)
{
    static struct exact exact;
    gj_error *error = NULL;
    const double start = gj_clock_ms();
    exact.rig = rig;
    exact.watch = (size_t)options->watch;
    fused_open(rig, options->epilogues, &exact.kernels);
    choose_keys(&exact, options);
    if (exact.num_keys == 0) {
        fprintf(stderr, "no accepted key passes the filter\n");
        return 1;
    }
    kernels_get(rig, exact.keys, exact.compiled, exact.num_keys, options->jobs);
    fprintf(stderr, "%zu kernels ready after %.1f s\n", exact.num_keys, (gj_clock_ms() - start) / 1000);
    exact.wrong = rig_alloc(rig, exact.num_keys * sizeof *exact.wrong);
    must(gj_device_fill(rig->device, exact.wrong, 0, exact.num_keys * sizeof *exact.wrong, &error), error,
         "counters");
    test_comparison(&exact);
    run_all(&exact, options);
    const size_t failed = print_table(&exact, options, (gj_clock_ms() - start) / 1000);
    gj_device_free(rig->device, exact.wrong);
    fused_close(rig, &exact.kernels);
    return failed;
}
