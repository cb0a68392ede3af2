/* SPDX-License-Identifier: Apache-2.0 */
/* What the sums of a kernel lose, by mode, K and kind of data; and whether results are the same bits every
 * time.
 *
 * Error: || D - A B^T || / || A B^T || against f64 for f32 D of 256 x 256, and the mean signed error (bias).
 * Invariance: row by row the same bits for every number of rows, and the same bits in 10,000 launches. Prints
 * Markdown. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define ROWS 256
#define COLUMNS 256
#define K_MAX 32768
#define RUNS 10000

struct mode {
    const char *name, *key;
};

static gj_kernel *get(struct rig *rig, const char *text)
{
    struct gj_key key;
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    must(gj_kernel_get(rig->context, &key, 0, &kernel, &error), error, text);
    return kernel;
}

static enum gj_dtype input_type(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    return key.a.dtype;
}

static void launch(struct rig *rig, gj_kernel *kernel, void *a, void *b, void *d, int m, int n, int k)
{
    gj_error *error = NULL;
    const struct gj_gemm_args args = {
        .m = m, .n = n, .k = k, .batch = 1, .a = {a, k, 0}, .b = {b, k, 0}, .d = {d, n, 0}};
    must(gj_launch(kernel, &args, rig->stream, &error), error, "gj_launch");
}

static void make_positive(struct rig *rig, void *data, uint64_t count, int dtype)
{
    void *arguments[] = {&data, &count, &dtype};
    rig_launch(rig, rig->make_positive, 512, 1, 1, 256, 1, arguments);
}

/* One cell of the table: relative error and bias in percent. */
static void print_error(struct rig *rig, gj_kernel *kernel, int dtype, void *a, void *b, void *d,
                        double *sums, int k)
{
    gj_error *error = NULL;
    double host[4];
    int m = ROWS, n = COLUMNS;
    launch(rig, kernel, a, b, d, m, n, k);
    must(gj_device_fill(rig->device, sums, 0, sizeof host, &error), error, "sums");
    void *arguments[] = {&a, &b, &d, &m, &n, &k, &dtype, &sums};
    rig_launch(rig, rig->exact_error, ROWS * COLUMNS / 128, 1, 1, 128, 1, arguments);
    must(gj_device_sync(rig->device, WATCHDOG_MS, &error), error, "error");
    must(gj_device_read(rig->device, host, sums, sizeof host, &error), error, "sums");
    printf(" %.1e (%+.2g %%) |", sqrt(host[0] / host[1]), 100 * host[2] / fabs(host[3]));
}

static void print_errors(struct rig *rig)
{
    static const struct mode modes[] = {
        {"e4m3, fp8acc=fast", "a=e4m3.k,b=e4m3.k,d=f32.n,fp8acc=fast,tile=128x128,cluster=1x1"},
        {"e4m3, fp8acc=promoted", "a=e4m3.k,b=e4m3.k,d=f32.n,tile=128x128,sched=coop,cluster=1x1"},
        {"e5m2, fp8acc=fast", "a=e5m2.k,b=e5m2.k,d=f32.n,fp8acc=fast,tile=128x128,cluster=1x1"},
        {"e5m2, fp8acc=promoted", "a=e5m2.k,b=e5m2.k,d=f32.n,tile=128x128,sched=coop,cluster=1x1"},
        {"bf16", "d=f32.n,tile=128x128,cluster=1x1"},
        {"f16", "a=f16.k,b=f16.k,d=f32.n,tile=128x128,cluster=1x1"},
        {"f16, acc=f16", "a=f16.k,b=f16.k,acc=f16,d=f32.n,tile=128x128,cluster=1x1"},
    };
    static const int ks[] = {512, 2048, 8192, K_MAX};
    void *a = rig_alloc(rig, (size_t)ROWS * K_MAX * 2), *b = rig_alloc(rig, (size_t)COLUMNS * K_MAX * 2);
    void *d = rig_alloc(rig, (size_t)ROWS * COLUMNS * 4);
    double *sums = rig_alloc(rig, 4 * sizeof *sums);
    printf("| mode | data | K = 512 | 2048 | 8192 | 32768 |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        gj_kernel *const kernel = get(rig, modes[i].key);
        const enum gj_dtype dtype = input_type(modes[i].key);
        for (int positive = 0; positive < 2; positive++) {
            printf("| %s | %s |", modes[i].name, positive ? "positive" : "normal");
            for (size_t j = 0; j < sizeof ks / sizeof ks[0]; j++) {
                rig_fill(rig, a, (uint64_t)ROWS * (uint64_t)ks[j], dtype, 1, 5);
                rig_fill(rig, b, (uint64_t)COLUMNS * (uint64_t)ks[j], dtype, 1, 6);
                if (positive) {
                    make_positive(rig, a, (uint64_t)ROWS * (uint64_t)ks[j], (int)dtype);
                    make_positive(rig, b, (uint64_t)COLUMNS * (uint64_t)ks[j], (int)dtype);
                }
                print_error(rig, kernel, (int)dtype, a, b, d, sums, ks[j]);
            }
            printf("\n");
        }
    }
    gj_device_free(rig->device, a);
    gj_device_free(rig->device, b);
    gj_device_free(rig->device, d);
    gj_device_free(rig->device, sums);
}

/* Adds the number of words in which two buffers differ to *wrong (device memory). */
static void compare(struct rig *rig, void *x, void *y, uint64_t bytes, unsigned *wrong)
{
    uint64_t words = bytes / 4;
    void *arguments[] = {&x, &y, &words, &wrong};
    rig_launch(rig, rig->differing_words, 132, 1, 1, 256, 1, arguments);
}

static unsigned read_count(struct rig *rig, unsigned *wrong)
{
    gj_error *error = NULL;
    unsigned host = 0;
    must(gj_device_sync(rig->device, WATCHDOG_MS, &error), error, "comparison");
    must(gj_device_read(rig->device, &host, wrong, sizeof host, &error), error, "comparison");
    return host;
}

/* Words that differ between rows computed alone and among others, and between 10,000 launches. */
static unsigned print_invariance(struct rig *rig)
{
    static const char *const keys[] = {"", "tile=128x256,sched=coop", "tiles=dynamic,cluster=2x2",
                                       "a=e4m3.k,b=e4m3.k,tile=128x128,sched=coop,cluster=1x1",
                                       "tile=64x64,swap_ab=yes,cluster=1x1"};
    static const int ms[] = {1, 2, 17, 33, 128, 257};
    const int m = 1024, n = 1000, k = 1040;
    gj_error *error = NULL;
    unsigned total = 0;
    void *a = rig_alloc(rig, (size_t)m * k * 2), *b = rig_alloc(rig, (size_t)n * k * 2);
    void *whole = rig_alloc(rig, (size_t)m * n * 2), *part = rig_alloc(rig, (size_t)m * n * 2);
    unsigned *wrong = rig_alloc(rig, 4);
    printf("\n| key | words that differ: rows of M = 1, 2, 17, 33, 128, 257 against M = 1024 | %d launches "
           "|\n|---|---|---|\n",
           RUNS);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        gj_kernel *const kernel = get(rig, keys[i]);
        const enum gj_dtype dtype = input_type(keys[i]);
        rig_fill(rig, a, (uint64_t)m * k, dtype, 1, 7);
        rig_fill(rig, b, (uint64_t)n * k, dtype, 1, 8);
        must(gj_device_fill(rig->device, wrong, 0, 4, &error), error, "counter");
        launch(rig, kernel, a, b, whole, m, n, k);
        unsigned rows = 0, runs = 0;
        for (size_t j = 0; j < sizeof ms / sizeof ms[0]; j++) {
            launch(rig, kernel, a, b, part, ms[j], n, k);
            compare(rig, whole, part, (uint64_t)ms[j] * n * 2, wrong);
        }
        rows = read_count(rig, wrong);
        for (int run = 0; run < RUNS; run++) {
            launch(rig, kernel, a, b, part, 257, n, k);
            compare(rig, whole, part, 257u * n * 2, wrong);
            if (run % 100 == 99)
                runs = read_count(rig, wrong);
        }
        printf("| %s | %u | %u |\n", *keys[i] ? keys[i] : "(default)", rows, runs - rows);
        total += runs;
    }
    return total;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"reference", 1, NULL, 'r'},
                                          {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    const char *reference = "tests/gpu/reference.cu", *cache_dir = NULL, *commit = "unknown";
    struct rig rig;
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'r')
            reference = optarg;
        else if (c == 'c')
            cache_dir = optarg;
        else if (c == 'g')
            commit = optarg;
        else
            return 2;
    }
    rig_open(&rig, reference, cache_dir);
    rig_print_setting(&rig, commit);
    print_errors(&rig);
    const unsigned wrong = print_invariance(&rig);
    rig_close(&rig);
    return wrong == 0 ? 0 : 1;
}
