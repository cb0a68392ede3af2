/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every accepted key over a set of shapes and compares all of memory around D exactly.
 *
 * A and B are small integers, so every f32 sum is exact and D is its correctly rounded value. D is a column
 * slice: everything before, between and behind its rows is poisoned and must stay so. Each (key, shape) is
 * one launch; then every key is launched 1000 times back to back. Prints a Markdown table. */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rig.h"

#define KEYS_MAX 4096
#define JOBS 12 /* compiles at once; NVRTC's front end lets about 13 run */
#define PAD 16  /* elements of poison on either side of a row of D; keeps rows 16-byte aligned */

struct options {
    const char *reference, *cache_dir, *commit, *filter;
    bool small;  /* few shapes: for compute-sanitizer */
    int every;   /* use each every-th key */
    int repeats; /* launches of the back-to-back test */
};

struct shape {
    int m, n, k, batch;
    bool broadcast_b;
};

struct tested {
    gj_kernel *kernel;
    struct gj_key key;
    unsigned runs, wrong_runs;
    struct shape first_wrong;
};

struct matrix {
    struct rig rig;
    struct tested keys[KEYS_MAX];
    size_t num_keys;
    unsigned *wrong; /* one counter per key, on the device */
    unsigned *host_wrong;
};

/* Device buffers of one shape. */
struct buffers {
    void *a[2], *b[2]; /* f16, bf16 */
    float *result;
    void *d;
    int64_t a_ld, b_ld, d_ld, d_batch, first, count; /* elements; count: of the whole D buffer */
};

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int type_index(enum gj_dtype dtype)
{
    return dtype == GJ_DTYPE_BF16;
}

static void make_operands(struct rig *rig, const struct shape *shape, struct buffers *buffers)
{
    static const enum gj_dtype types[2] = {GJ_DTYPE_F16, GJ_DTYPE_BF16};
    buffers->a_ld = round_up(shape->k, 8) + 16;
    buffers->b_ld = round_up(shape->k, 8) + 8;
    const int64_t a_count = shape->batch * shape->m * buffers->a_ld;
    const int64_t b_count = (shape->broadcast_b ? 1 : shape->batch) * shape->n * buffers->b_ld;
    for (int t = 0; t < 2; t++) {
        buffers->a[t] = rig_alloc(rig, (size_t)a_count * 2);
        buffers->b[t] = rig_alloc(rig, (size_t)b_count * 2);
        rig_fill(rig, buffers->a[t], (uint64_t)a_count, types[t], 0, 1u + (unsigned)shape->m);
        rig_fill(rig, buffers->b[t], (uint64_t)b_count, types[t], 0, 77u + (unsigned)shape->n);
    }
    buffers->d_ld = round_up(shape->n, PAD) + 2 * PAD;
    buffers->d_batch = shape->m * buffers->d_ld + 2 * PAD;
    buffers->first = PAD;
    buffers->count = buffers->first + shape->batch * buffers->d_batch + PAD;
    buffers->d = rig_alloc(rig, (size_t)buffers->count * 4);
}

static void multiply_reference(struct rig *rig, const struct shape *shape, struct buffers *buffers)
{
    int m = shape->m, n = shape->n, k = shape->k, dtype = GJ_DTYPE_BF16;
    long long a_batch = m * buffers->a_ld, b_batch = shape->broadcast_b ? 0 : n * buffers->b_ld;
    long long a_ld = buffers->a_ld, b_ld = buffers->b_ld;
    buffers->result = rig_alloc(rig, (size_t)shape->batch * (size_t)m * (size_t)n * 4);
    void *arguments[] = {&buffers->a[1], &buffers->b[1], &buffers->result, &m,       &n,    &k,
                         &a_ld,          &b_ld,          &a_batch,         &b_batch, &dtype};
    rig_launch(rig, rig->multiply, (unsigned)(n + 15) / 16, (unsigned)(m + 15) / 16, (unsigned)shape->batch,
               16, 16, arguments);
}

static void free_buffers(struct rig *rig, struct buffers *buffers)
{
    for (int t = 0; t < 2; t++) {
        gj_device_free(rig->device, buffers->a[t]);
        gj_device_free(rig->device, buffers->b[t]);
    }
    gj_device_free(rig->device, buffers->result);
    gj_device_free(rig->device, buffers->d);
}

static void launch(struct matrix *matrix, const struct tested *tested, const struct shape *shape,
                   const struct buffers *buffers, int variant)
{
    gj_error *error = NULL;
    const size_t d_bytes = gj_dtype_bytes(tested->key.d.dtype);
    const int t = type_index(tested->key.a.dtype);
    const struct gj_gemm_args args = {
        .m = shape->m,
        .n = shape->n,
        .k = shape->k,
        .batch = shape->batch,
        .a = {buffers->a[t], buffers->a_ld, shape->m * buffers->a_ld},
        .b = {buffers->b[t], buffers->b_ld, shape->broadcast_b ? 0 : shape->n * buffers->b_ld},
        .d = {(char *)buffers->d + (size_t)buffers->first * d_bytes, buffers->d_ld, buffers->d_batch},
        .raster = (enum gj_raster)(variant % 3),
        .group_size = variant % 4 == 3 ? 3 : 0,
        .max_sms = variant % 5 == 4 ? 66 : 0,
    };
    must(gj_launch(tested->kernel, &args, matrix->rig.stream, &error), error, "gj_launch");
}

static void compare(struct matrix *matrix, size_t index, const struct shape *shape,
                    const struct buffers *buffers)
{
    int m = shape->m, n = shape->n, batch = shape->batch, dtype = (int)matrix->keys[index].key.d.dtype;
    uint64_t count = (uint64_t)buffers->count, first = (uint64_t)buffers->first;
    long long d_ld = buffers->d_ld, d_batch = buffers->d_batch;
    unsigned *wrong = matrix->wrong + index;
    void *arguments[] = {(void *)&buffers->d,
                         &count,
                         &first,
                         (void *)&buffers->result,
                         &m,
                         &n,
                         &batch,
                         &d_ld,
                         &d_batch,
                         &dtype,
                         &wrong};
    rig_launch(&matrix->rig, matrix->rig.compare, 264, 1, 1, 256, 1, arguments);
}

static void poison(struct matrix *matrix, size_t index, const struct buffers *buffers)
{
    gj_error *error = NULL;
    const size_t bytes = (size_t)buffers->count * gj_dtype_bytes(matrix->keys[index].key.d.dtype);
    must(gj_device_fill(matrix->rig.device, buffers->d, 0xff, bytes, &error), error, "poison");
}

static void collect(struct matrix *matrix, const struct shape *shape, const char *what)
{
    gj_error *error = NULL;
    const size_t bytes = matrix->num_keys * sizeof *matrix->wrong;
    char text[128];
    snprintf(text, sizeof text, "%s, shape %dx%dx%d batch %d", what, shape->m, shape->n, shape->k,
             shape->batch);
    must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, text);
    must(gj_device_read(matrix->rig.device, matrix->host_wrong, matrix->wrong, bytes, &error), error, text);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        struct tested *const tested = &matrix->keys[i];
        tested->runs++;
        if (matrix->host_wrong[i] == 0)
            continue;
        if (tested->wrong_runs++ == 0) {
            char key[GJ_KEY_TEXT_MAX];
            gj_key_format(&tested->key, key, sizeof key);
            tested->first_wrong = *shape;
            fprintf(stderr, "WRONG %s: %u elements: %s\n", text, matrix->host_wrong[i], key);
        }
    }
    must(gj_device_fill(matrix->rig.device, matrix->wrong, 0, bytes, &error), error, text);
}

/* The comparison must see what is wrong: an unwritten D, and one altered byte before, in and behind D. */
static void test_comparison(struct matrix *matrix)
{
    const struct shape shape = {33, 40, 64, 2, false};
    struct buffers buffers = {0};
    gj_error *error = NULL;
    make_operands(&matrix->rig, &shape, &buffers);
    multiply_reference(&matrix->rig, &shape, &buffers);
    const size_t d_bytes = gj_dtype_bytes(matrix->keys[0].key.d.dtype);
    const size_t ends[] = {0, ((size_t)buffers.first + 5) * d_bytes, ((size_t)buffers.count - 1) * d_bytes};
    for (int test = 0; test < 4; test++) {
        poison(matrix, 0, &buffers);
        if (test > 0) {
            launch(matrix, &matrix->keys[0], &shape, &buffers, 0);
            must(gj_device_fill(matrix->rig.device, (char *)buffers.d + ends[test - 1], 0x7b, 1, &error),
                 error, "byte");
        }
        compare(matrix, 0, &shape, &buffers);
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
    free_buffers(&matrix->rig, &buffers);
}

/* Every key once on this shape; waits now and then so that the watchdog sees a hang within its time. */
static void run_shape(struct matrix *matrix, const struct shape *shape, int variant)
{
    struct buffers buffers = {0};
    gj_error *error = NULL;
    make_operands(&matrix->rig, shape, &buffers);
    multiply_reference(&matrix->rig, shape, &buffers);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        poison(matrix, i, &buffers);
        launch(matrix, &matrix->keys[i], shape, &buffers, variant + (int)i);
        compare(matrix, i, shape, &buffers);
        if (i % 64 == 63)
            must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, "64 keys");
    }
    collect(matrix, shape, "one launch");
    free_buffers(&matrix->rig, &buffers);
}

/* Every key many times back to back on a shape with odd tile counts. */
static void run_repeats(struct matrix *matrix, int repeats)
{
    const struct shape shape = {300, 520, 200, 1, false};
    struct buffers buffers = {0};
    gj_error *error = NULL;
    make_operands(&matrix->rig, &shape, &buffers);
    multiply_reference(&matrix->rig, &shape, &buffers);
    for (size_t i = 0; i < matrix->num_keys; i++) {
        poison(matrix, i, &buffers);
        for (int r = 0; r < repeats; r++)
            launch(matrix, &matrix->keys[i], &shape, &buffers, 0);
        compare(matrix, i, &shape, &buffers);
        must(gj_device_sync(matrix->rig.device, WATCHDOG_MS, &error), error, "back-to-back launches");
    }
    collect(matrix, &shape, "back to back");
    free_buffers(&matrix->rig, &buffers);
}

/* The keys to run: all accepted ones of every pair of types, thinned out by the options. */
static void choose_keys(struct matrix *matrix, const struct options *options)
{
    static const enum gj_dtype inputs[] = {GJ_DTYPE_BF16, GJ_DTYPE_F16};
    static const enum gj_dtype outputs[] = {GJ_DTYPE_BF16, GJ_DTYPE_F16, GJ_DTYPE_F32};
    static struct gj_key keys[KEYS_MAX];
    size_t seen = 0;
    for (size_t t = 0; t < 6; t++) {
        struct gj_key problem = gj_key_default();
        problem.a.dtype = problem.b.dtype = inputs[t / 3];
        problem.d.dtype = outputs[t % 3];
        const size_t count = gj_keys_enumerate(&problem, keys, KEYS_MAX);
        for (size_t i = 0; i < count; i++) {
            char text[GJ_KEY_TEXT_MAX];
            gj_key_format(&keys[i], text, sizeof text);
            if ((options->filter == NULL || strstr(text, options->filter) != NULL) &&
                seen++ % (size_t)options->every == 0)
                matrix->keys[matrix->num_keys++].key = keys[i];
        }
    }
}

static atomic_size_t next_key;

/* Compiles keys until none is left. */
static void *get_kernels(void *pointer)
{
    struct matrix *const matrix = pointer;
    size_t i;
    while ((i = atomic_fetch_add(&next_key, 1)) < matrix->num_keys) {
        struct tested *const tested = &matrix->keys[i];
        gj_error *error = NULL;
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&tested->key, text, sizeof text);
        must(gj_kernel_get(matrix->rig.context, &tested->key, 0, &tested->kernel, &error), error, text);
        must(gj_kernel_prepare(tested->kernel, 0, &error), error, text);
    }
    return NULL;
}

static void get_all_kernels(struct matrix *matrix)
{
    pthread_t threads[JOBS];
    for (int i = 0; i < JOBS; i++)
        if (pthread_create(&threads[i], NULL, get_kernels, matrix) != 0)
            exit(1);
    for (int i = 0; i < JOBS; i++)
        pthread_join(threads[i], NULL);
}

static size_t run_all(struct matrix *matrix, const struct options *options)
{
    static const int ms[] = {1, 7, 64, 129, 1000, 4096}, ns[] = {8, 72, 768, 2112, 1, 57, 1001};
    static const int ks[] = {8, 40, 64, 200, 4096};
    static const struct shape extra[] = {{300, 520, 200, 3, false},
                                         {129, 264, 136, 4, true},
                                         {513, 1027, 72, 2, false},
                                         {640, 384, 1032, 1, false},
                                         {2816, 2816, 64, 1, false}};
    static const struct shape small[] = {
        {129, 200, 200, 1, false}, {200, 57, 72, 2, false}, {385, 264, 520, 1, true}};
    size_t shapes = 0;
    for (size_t i = 0; options->small && i < sizeof small / sizeof small[0]; i++, shapes++)
        run_shape(matrix, &small[i], (int)i);
    if (options->small)
        return shapes;
    for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
        for (size_t j = 0; j < sizeof ns / sizeof ns[0]; j++)
            for (size_t l = 0; l < sizeof ks / sizeof ks[0]; l++, shapes++)
                run_shape(matrix, &(struct shape){ms[i], ns[j], ks[l], 1, false}, (int)shapes);
    for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++, shapes++)
        run_shape(matrix, &extra[i], (int)i);
    return shapes;
}

/* One row for each pair of input type and output type. */
static size_t print_table(const struct matrix *matrix, size_t shapes, const struct options *options,
                          double seconds)
{
    size_t wrong_keys = 0;
    rig_print_setting(&matrix->rig, options->commit);
    printf(
        "| A and B | D | keys run | keys exact | launches compared | wrong |\n|---|---|---|---|---|---|\n");
    for (int a = GJ_DTYPE_F16; a <= GJ_DTYPE_BF16; a++) {
        for (int d = GJ_DTYPE_F16; d <= GJ_DTYPE_F32; d++) {
            size_t keys = 0, exact = 0, runs = 0, wrong = 0;
            for (size_t i = 0; i < matrix->num_keys; i++) {
                const struct tested *const t = &matrix->keys[i];
                if ((int)t->key.a.dtype != a || (int)t->key.d.dtype != d)
                    continue;
                keys++;
                exact += t->wrong_runs == 0;
                runs += t->runs;
                wrong += t->wrong_runs;
            }
            wrong_keys += keys - exact;
            if (keys > 0)
                printf("| %s | %s | %zu | %zu | %zu | %zu |\n", gj_dtype_name((enum gj_dtype)a),
                       gj_dtype_name((enum gj_dtype)d), keys, exact, runs, wrong);
        }
    }
    printf("\n%zu keys, %zu shapes each, then %d launches of each key back to back; %.0f s.\n",
           matrix->num_keys, shapes, options->repeats, seconds);
    return wrong_keys;
}

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {{"reference", 1, NULL, 'r'}, {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},    {"filter", 1, NULL, 'f'},
                                          {"small", 0, NULL, 's'},     {"every", 1, NULL, 'e'},
                                          {"repeats", 1, NULL, 'n'},   {NULL, 0, NULL, 0}};
    struct options options = {
        .reference = "tests/gpu/reference.cu", .commit = "unknown", .every = 1, .repeats = 1000};
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
        case 'e':
            options.every = atoi(optarg);
            break;
        case 'n':
            options.repeats = atoi(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (options.every < 1)
        exit(2);
    return options;
}

int main(int argc, char **argv)
{
    static struct matrix matrix;
    const struct options options = read_options(argc, argv);
    rig_open(&matrix.rig, options.reference, options.cache_dir);
    const double start = gj_clock_ms();
    choose_keys(&matrix, &options);
    get_all_kernels(&matrix);
    if (matrix.num_keys == 0) {
        fprintf(stderr, "no accepted key passes the filter\n");
        return 2;
    }
    fprintf(stderr, "%zu kernels ready after %.1f s\n", matrix.num_keys, (gj_clock_ms() - start) / 1000);
    matrix.wrong = rig_alloc(&matrix.rig, matrix.num_keys * sizeof *matrix.wrong);
    matrix.host_wrong = calloc(matrix.num_keys, sizeof *matrix.host_wrong);
    gj_error *error = NULL;
    must(gj_device_fill(matrix.rig.device, matrix.wrong, 0, matrix.num_keys * sizeof *matrix.wrong, &error),
         error, "counters");
    test_comparison(&matrix);
    const size_t shapes = run_all(&matrix, &options);
    if (options.repeats > 0)
        run_repeats(&matrix, options.repeats);
    const size_t wrong = print_table(&matrix, shapes, &options, (gj_clock_ms() - start) / 1000);
    free(matrix.host_wrong);
    rig_close(&matrix.rig);
    return wrong == 0 ? 0 : 1;
}
