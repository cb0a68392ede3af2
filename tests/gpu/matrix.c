/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a set of keys over shapes and compares all of memory around D exactly.
 *
 * A, B and C are small integers, alpha and beta powers of two, so every sum is exact and D is its correctly
 * rounded value. D is a slice: everything before, between and behind its rows is poisoned and must stay so;
 * the padding of A, B and C is NaN, and so is all of C where beta is 0 and all of A where alpha is 0. Shapes:
 * fixed ones, and for each key those whose number of stages is 1, the ring's depth less one, the depth, one
 * more, and twice the depth and one. Then every key is launched back to back. Prints a Markdown table. */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "keys.h"
#include "plan/plan.h"
#include "problem.h"
#include "rig.h"

#define KEYS_MAX 16384

struct options {
    const char *reference, *cache_dir, *commit, *filter, *set;
    bool small;        /* few shapes: for compute-sanitizer */
    bool dense_shapes; /* the foundation's product of extents */
    int every;         /* use each every-th key */
    int repeats;       /* launches of the back-to-back test */
    int jobs;          /* compiles at once */
    unsigned seed;
};

struct tested {
    gj_kernel *kernel; /* NULL: did not compile */
    struct gj_key key;
    int tile_k, stages;
    unsigned runs, wrong_runs;
};

struct matrix {
    struct rig rig;
    struct tested keys[KEYS_MAX];
    size_t num_keys, failed_keys, shapes;
    unsigned *wrong; /* one counter per key, on the device */
    unsigned *host_wrong;
    bool ran[KEYS_MAX]; /* in the shape at hand */
};

static void key_text(const struct tested *tested, char text[GJ_KEY_TEXT_MAX])
{
    gj_key_format(&tested->key, text, GJ_KEY_TEXT_MAX);
}

/* Waits for the shape's launches and notes which keys were wrong. */
static void collect(struct matrix *matrix, const struct shape *shape, const char *what)
{
    gj_error *error = NULL;
    const size_t bytes = matrix->num_keys * sizeof *matrix->wrong;
    char text[GJ_KEY_TEXT_MAX], place[128];
    snprintf(place, sizeof place, "%s, shape %dx%dx%d batch %d", what, shape->m, shape->n, shape->k,
             shape->batch);
    must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, place);
    must(gj_device_read(matrix->rig.device, matrix->host_wrong, matrix->wrong, bytes, &error), error, place);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        struct tested *const tested = &matrix->keys[i];
        if (!matrix->ran[i])
            continue;
        tested->runs++;
        if (matrix->host_wrong[i] != 0 && tested->wrong_runs++ < 2) {
            key_text(tested, text);
            fprintf(stderr, "WRONG %s: %u elements: %s\n", place, matrix->host_wrong[i], text);
        }
    }
    must(gj_device_fill(matrix->rig.device, matrix->wrong, 0, bytes, &error), error, place);
    memset(matrix->ran, 0, sizeof matrix->ran);
}

static void run_key(struct matrix *matrix, size_t i, const struct problem *problem, int variant)
{
    const struct tested *const t = &matrix->keys[i];
    problem_launch(&matrix->rig, problem, &t->key, t->kernel, variant);
    problem_compare(&matrix->rig, problem, &t->key, variant, matrix->wrong + i);
    matrix->ran[i] = true;
}

/* Waits now and then, so that the watchdog sees a hang within its time and says where. */
static void watch(struct matrix *matrix, size_t i, const struct shape *shape)
{
    gj_error *error = NULL;
    char text[GJ_KEY_TEXT_MAX], place[GJ_KEY_TEXT_MAX + 128];
    if (i % 64 != 63)
        return;
    key_text(&matrix->keys[i], text);
    snprintf(place, sizeof place, "shape %dx%dx%d batch %d, within 64 keys before %s", shape->m, shape->n,
             shape->k, shape->batch, text);
    must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, place);
}

/* Every key once on this shape. */
static void run_shape(struct matrix *matrix, const struct shape *shape, int variant)
{
    struct problem problem;
    problem_make(&matrix->rig, shape, &problem);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        if (matrix->keys[i].kernel != NULL)
            run_key(matrix, i, &problem, variant + (int)i);
        watch(matrix, i, shape);
    }
    collect(matrix, shape, "one launch");
    problem_free(&matrix->rig, &problem);
    matrix->shapes++;
}

/* Whether a tile of this many stages is one of a key's special cases. */
static bool is_special(const struct tested *tested, int k_tiles)
{
    const int s = tested->stages;
    return k_tiles == 1 || k_tiles == s - 1 || k_tiles == s || k_tiles == s + 1 || k_tiles == 2 * s + 1;
}

/* Each key on the stage counts that its ring makes special; tile counts are odd against every cluster. */
static void run_stage_counts(struct matrix *matrix)
{
    for (int k = 64 - 8; k < 64 * 64; k += 64) {
        const struct shape shape = {385, 520, k, 1, false};
        bool any = false;
        for (size_t i = 0; i < matrix->num_keys; i++) {
            const struct tested *const t = &matrix->keys[i];
            any = any || is_special(t, (k + t->tile_k - 1) / t->tile_k);
        }
        if (!any)
            continue;
        struct problem problem;
        problem_make(&matrix->rig, &shape, &problem);
        for (size_t i = 0; i < matrix->num_keys; i++) {
            const struct tested *const t = &matrix->keys[i];
            if (t->kernel != NULL && is_special(t, (k + t->tile_k - 1) / t->tile_k))
                run_key(matrix, i, &problem, k / 64 + (int)i);
            watch(matrix, i, &shape);
        }
        collect(matrix, &shape, "stage counts");
        problem_free(&matrix->rig, &problem);
    }
}

/* Every key many times back to back on a shape with odd tile counts. */
static void run_repeats(struct matrix *matrix, int repeats)
{
    const struct shape shape = {300, 520, 200, 1, false};
    struct problem problem;
    gj_error *error = NULL;
    problem_make(&matrix->rig, &shape, &problem);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        const struct tested *const t = &matrix->keys[i];
        if (t->kernel == NULL)
            continue;
        problem_prepare(&matrix->rig, &problem, &t->key, 0);
        problem_relaunch(&matrix->rig, &problem, &t->key, t->kernel, 0, repeats);
        problem_compare(&matrix->rig, &problem, &t->key, 0, matrix->wrong + i);
        matrix->ran[i] = true;
        must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, "back-to-back launches");
    }
    collect(matrix, &shape, "back to back");
    problem_free(&matrix->rig, &problem);
}

/* The comparison must see what is wrong: an unwritten D, and one altered byte before and behind D. */
static void test_comparison(struct matrix *matrix)
{
    const struct shape shape = {33, 40, 64, 2, false};
    const struct tested *const t = &matrix->keys[0];
    struct problem problem;
    gj_error *error = NULL;
    problem_make(&matrix->rig, &shape, &problem);
    for (int test = 0; test < 3; test++) {
        if (test == 0)
            problem_prepare(&matrix->rig, &problem, &t->key, 0);
        else
            problem_launch(&matrix->rig, &problem, &t->key, t->kernel, 0);
        char *const at =
            (char *)problem.d + (test == 1 ? 0 : (16 + 40) * (int)gj_dtype_bytes(t->key.d.dtype));
        if (test > 0)
            must(gj_device_fill(matrix->rig.device, at, 0x7b, 1, &error), error, "byte");
        problem_compare(&matrix->rig, &problem, &t->key, 0, matrix->wrong);
        must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, "comparison");
        must(gj_device_read(matrix->rig.device, matrix->host_wrong, matrix->wrong, 4, &error), error,
             "comparison");
        must(gj_device_fill(matrix->rig.device, matrix->wrong, 0, 4, &error), error, "comparison");
        const unsigned expected = test == 0 ? 33 * 40 * 2 : 1;
        if (matrix->host_wrong[0] != expected) {
            fprintf(stderr, "the comparison is blind: test %d found %u wrong elements, not %u\n", test,
                    matrix->host_wrong[0], expected);
            exit(1);
        }
    }
    problem_free(&matrix->rig, &problem);
}

static void choose_keys(struct matrix *matrix, const struct options *options)
{
    static struct gj_key keys[KEYS_MAX];
    size_t count = 0, seen = 0;
    if (strcmp(options->set, "product") == 0)
        count = keys_product(keys, KEYS_MAX);
    else if (strcmp(options->set, "covering") == 0)
        count = keys_covering(options->seed, keys, KEYS_MAX);
    else if (strcmp(options->set, "single") == 0)
        count = keys_single(options->seed, keys, KEYS_MAX);
    else
        count = keys_basic(keys, KEYS_MAX);
    for (size_t i = 0; i < count && i < KEYS_MAX; i++) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&keys[i], text, sizeof text);
        if ((options->filter != NULL && strstr(text, options->filter) == NULL) ||
            seen++ % (size_t)options->every)
            continue;
        struct gj_plan plan;
        gj_plan_make(&keys[i], &plan);
        matrix->keys[matrix->num_keys++] =
            (struct tested){.key = keys[i], .tile_k = plan.tile_k, .stages = plan.stages};
    }
}

static atomic_size_t next_key, failed_keys;

/* Compiles keys until none is left; one that fails is reported and left out. */
static void *get_kernels(void *pointer)
{
    struct matrix *const matrix = pointer;
    size_t i;
    while ((i = atomic_fetch_add(&next_key, 1)) < matrix->num_keys) {
        struct tested *const tested = &matrix->keys[i];
        gj_error *error = NULL;
        char text[GJ_KEY_TEXT_MAX];
        key_text(tested, text);
        enum gj_status status = gj_kernel_get(matrix->rig.context, &tested->key, 0, &tested->kernel, &error);
        if (status == GJ_OK)
            status = gj_kernel_prepare(tested->kernel, 0, &error);
        if (status != GJ_OK) {
            tested->kernel = NULL;
            atomic_fetch_add(&failed_keys, 1);
            fprintf(stderr, "NO KERNEL %s: %s\n", text, error ? error->message : gj_status_name(status));
            gj_error_free(&error);
        }
    }
    return NULL;
}

static void get_all_kernels(struct matrix *matrix, int jobs)
{
    pthread_t threads[64];
    for (int i = 0; i < jobs; i++)
        if (pthread_create(&threads[i], NULL, get_kernels, matrix) != 0)
            exit(1);
    for (int i = 0; i < jobs; i++)
        pthread_join(threads[i], NULL);
    matrix->failed_keys = failed_keys;
}

static void run_all(struct matrix *matrix, const struct options *options)
{
    static const int ms[] = {1, 7, 64, 129, 1000, 4096}, ns[] = {8, 72, 768, 2112, 1, 57, 1001};
    static const int ks[] = {8, 40, 64, 200, 4096};
    static const struct shape fixed[] = {
        {1, 8, 16, 1, false},       {7, 72, 40, 1, false},    {64, 1001, 200, 1, false},
        {1000, 57, 520, 1, false},  {129, 768, 64, 1, false}, {300, 520, 0, 1, false},
        {513, 264, 1032, 3, false}, {200, 333, 136, 4, true}, {2816, 2816, 64, 1, false}};
    static const struct shape small[] = {
        {129, 200, 200, 1, false}, {200, 57, 72, 2, false}, {385, 264, 520, 1, true}};
    if (options->small) {
        for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
            run_shape(matrix, &small[i], (int)i);
        return;
    }
    for (size_t i = 0; options->dense_shapes && i < sizeof ms / sizeof ms[0]; i++)
        for (size_t j = 0; j < sizeof ns / sizeof ns[0]; j++)
            for (size_t l = 0; l < sizeof ks / sizeof ks[0]; l++)
                run_shape(matrix, &(struct shape){ms[i], ns[j], ks[l], 1, false}, (int)matrix->shapes);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        run_shape(matrix, &fixed[i], (int)i);
    run_stage_counts(matrix);
}

static size_t print_table(const struct matrix *matrix, const struct options *options, double seconds)
{
    size_t exact = 0, runs = 0, wrong = 0, wrong_keys = 0;
    for (size_t i = 0; i < matrix->num_keys; i++) {
        const struct tested *const t = &matrix->keys[i];
        runs += t->runs;
        wrong += t->wrong_runs;
        wrong_keys += t->wrong_runs > 0;
        exact += t->runs > 0 && t->wrong_runs == 0;
    }
    printf("| %s | %zu | %zu | %zu | %zu | %zu | %zu | %d | %.0f |\n", options->set, matrix->num_keys,
           matrix->num_keys - matrix->failed_keys, exact, runs, wrong, matrix->shapes, options->repeats,
           seconds);
    return wrong_keys + matrix->failed_keys;
}

static void print_head(const struct matrix *matrix, const struct options *options)
{
    rig_print_setting(&matrix->rig, options->commit);
    printf("| set | keys accepted | compiled | exact | launches compared | wrong | fixed shapes | back to "
           "back | seconds |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
}

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"reference", 1, NULL, 'r'}, {"cache-dir", 1, NULL, 'c'},    {"commit", 1, NULL, 'g'},
        {"filter", 1, NULL, 'f'},    {"small", 0, NULL, 's'},        {"every", 1, NULL, 'e'},
        {"repeats", 1, NULL, 'n'},   {"set", 1, NULL, 't'},          {"seed", 1, NULL, 'd'},
        {"jobs", 1, NULL, 'j'},      {"dense-shapes", 0, NULL, 'x'}, {NULL, 0, NULL, 0}};
    struct options options = {.reference = "tests/gpu/reference.cu",
                              .commit = "unknown",
                              .every = 1,
                              .repeats = 100,
                              .set = "basic",
                              .seed = 1,
                              .jobs = 12};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (c) {
        case 'r':
            options.reference = optarg;
            break;
        case 'c':
            options.cache_dir = optarg;
            break;
        case 'g':
            options.commit = optarg;
            break;
        case 'f':
            options.filter = optarg;
            break;
        case 's':
            options.small = true;
            break;
        case 'x':
            options.dense_shapes = true;
            break;
        case 'e':
            options.every = atoi(optarg);
            break;
        case 'n':
            options.repeats = atoi(optarg);
            break;
        case 't':
            options.set = optarg;
            break;
        case 'd':
            options.seed = (unsigned)atoi(optarg);
            break;
        case 'j':
            options.jobs = atoi(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (options.every < 1 || options.jobs < 1 || options.jobs > 64)
        exit(2);
    return options;
}

int main(int argc, char **argv)
{
    static struct matrix matrix;
    const struct options options = read_options(argc, argv);
    gj_error *error = NULL;
    rig_open(&matrix.rig, options.reference, options.cache_dir);
    const double start = gj_clock_ms();
    choose_keys(&matrix, &options);
    get_all_kernels(&matrix, options.jobs);
    if (matrix.num_keys == 0 || matrix.keys[0].kernel == NULL) {
        fprintf(stderr, "no accepted key passes the filter\n");
        return 2;
    }
    fprintf(stderr, "%zu kernels ready after %.1f s\n", matrix.num_keys, (gj_clock_ms() - start) / 1000);
    matrix.wrong = rig_alloc(&matrix.rig, matrix.num_keys * sizeof *matrix.wrong);
    matrix.host_wrong = calloc(matrix.num_keys, sizeof *matrix.host_wrong);
    must(gj_device_fill(matrix.rig.device, matrix.wrong, 0, matrix.num_keys * sizeof *matrix.wrong, &error),
         error, "counters");
    test_comparison(&matrix);
    run_all(&matrix, &options);
    if (options.repeats > 0)
        run_repeats(&matrix, options.repeats);
    print_head(&matrix, &options);
    const size_t wrong = print_table(&matrix, &options, (gj_clock_ms() - start) / 1000);
    free(matrix.host_wrong);
    rig_close(&matrix.rig);
    return wrong == 0 ? 0 : 1;
}
