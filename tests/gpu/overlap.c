/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of launches that overlap: X(i + 1) = X(i) W(i)^T, 12 deep, so that each launch reads what the one in
 * front of it wrote. With every combination of flags, in a stream and as a graph, all of the chain must be
 * bit for bit what plain launches make of it; before each run the memory of X is NaN, which a read that comes
 * too early carries on. Prints Markdown. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/device_work.h"
#include "rig.h"

#define DEPTH 12
#define WEIGHTS 4 /* matrices that take turns */
#define RUNS 25   /* of each chain */

struct chain {
    struct rig *rig;
    int m, n;
    gj_kernel *kernel;
    void *x[DEPTH + 1], *expected[DEPTH + 1], *w[WEIGHTS];
    unsigned *wrong;
};

static size_t x_bytes(const struct chain *chain)
{
    return (size_t)chain->m * (size_t)chain->n * 2;
}

static void make_chain(struct chain *chain)
{
    struct rig *const rig = chain->rig;
    const uint64_t elements = (uint64_t)chain->m * (uint64_t)chain->n;
    for (int i = 0; i <= DEPTH; i++) {
        chain->x[i] = rig_alloc(rig, x_bytes(chain));
        chain->expected[i] = rig_alloc(rig, x_bytes(chain));
    }
    rig_fill(rig, chain->x[0], elements, GJ_DTYPE_BF16, 1, 1);
    for (int i = 0; i < WEIGHTS; i++) {
        chain->w[i] = rig_alloc(rig, (size_t)chain->n * (size_t)chain->n * 2);
        rig_fill(rig, chain->w[i], (uint64_t)chain->n * (uint64_t)chain->n, GJ_DTYPE_BF16, 1,
                 2 + (uint32_t)i);
    }
    chain->wrong = rig_alloc(rig, sizeof *chain->wrong);
}

static void free_chain(struct chain *chain)
{
    for (int i = 0; i <= DEPTH; i++) {
        gj_device_free(chain->rig->device, chain->x[i]);
        gj_device_free(chain->rig->device, chain->expected[i]);
    }
    for (int i = 0; i < WEIGHTS; i++)
        gj_device_free(chain->rig->device, chain->w[i]);
    gj_device_free(chain->rig->device, chain->wrong);
}

/* alpha keeps the values near 1, or they would end as infinities that are all alike. */
static void launch_chain(const struct chain *chain, unsigned flags, float alpha)
{
    gj_error *error = NULL;
    for (int i = 0; i < DEPTH; i++) {
        const struct gj_gemm_args args = {.m = chain->m,
                                          .n = chain->n,
                                          .k = chain->n,
                                          .batch = 1,
                                          .a = {chain->x[i], chain->n, 0},
                                          .b = {chain->w[i % WEIGHTS], chain->n, 0},
                                          .d = {chain->x[i + 1], chain->n, 0},
                                          .alpha = alpha,
                                          .flags = flags};
        must(gj_launch(chain->kernel, &args, chain->rig->stream, &error), error, "gj_launch");
    }
}

static void poison(const struct chain *chain)
{
    gj_error *error = NULL;
    for (int i = 1; i <= DEPTH; i++)
        must(gj_device_fill(chain->rig->device, chain->x[i], 0xff, x_bytes(chain), &error), error, "poison");
    must(gj_device_sync(chain->rig->device, WATCHDOG_MS, &error), error, "poison");
}

/* Compares all of the chain on the device. */
static void compare(const struct chain *chain)
{
    for (int i = 1; i <= DEPTH; i++) {
        const void *x = chain->x[i], *expected = chain->expected[i];
        uint64_t words = x_bytes(chain) / 4;
        unsigned *wrong = chain->wrong;
        void *arguments[] = {&x, &expected, &words, &wrong};
        rig_launch(chain->rig, chain->rig->differing_words, 132, 1, 1, 256, 1, arguments);
    }
}

static void make_expected(struct chain *chain, float alpha)
{
    poison(chain);
    launch_chain(chain, 0, alpha);
    for (int i = 1; i <= DEPTH; i++) {
        void *const x = chain->x[i];
        chain->x[i] = chain->expected[i];
        chain->expected[i] = x;
    }
}

static unsigned count_wrong(const struct chain *chain)
{
    gj_error *error = NULL;
    unsigned wrong = 0;
    must(gj_device_sync(chain->rig->device, WATCHDOG_MS, &error), error, "a chain");
    must(gj_device_read(chain->rig->device, &wrong, chain->wrong, sizeof wrong, &error), error, "counter");
    must(gj_device_fill(chain->rig->device, chain->wrong, 0, sizeof wrong, &error), error, "counter");
    return wrong;
}

static unsigned run_chain(struct chain *chain, unsigned flags, bool as_graph, float alpha)
{
    struct rig *const rig = chain->rig;
    gj_error *error = NULL;
    void *graph = NULL;
    if (as_graph) {
        must(gj_device_capture(rig->device, &error), error, "capture");
        launch_chain(chain, flags, alpha);
        must(gj_device_captured(rig->device, &graph, &error), error, "capture");
    }
    for (int i = 0; i < RUNS; i++) {
        poison(chain);
        if (as_graph)
            must(gj_device_graph_launch(rig->device, graph, &error), error, "replay");
        else
            launch_chain(chain, flags, alpha);
        compare(chain);
    }
    const unsigned wrong = count_wrong(chain);
    if (graph)
        gj_device_graph_free(rig->device, graph);
    return wrong;
}

/* One key and M: what plain launches make, a check that the comparison sees a difference, then all flags. */
static unsigned run_key(struct rig *rig, const char *config, int m, int n)
{
    static const unsigned flags[] = {0, GJ_LAUNCH_OVERLAP, GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT};
    struct chain chain = {.rig = rig, .m = m, .n = n};
    struct gj_key key;
    gj_error *error = NULL;
    char text[256];
    unsigned wrong = 0;
    const float alpha = n == 512 ? 0x1p-4f : 0x1p-6f;
    snprintf(text, sizeof text, "alpha=host,cluster=1x1,sched=single,%s", config);
    must(gj_key_parse(text, &key, &error), error, text);
    must(gj_kernel_get(rig->context, &key, 0, &chain.kernel, &error), error, text);
    must(gj_kernel_prepare(chain.kernel, 0, &error), error, text);
    make_chain(&chain);
    must(gj_device_fill(rig->device, chain.wrong, 0, sizeof *chain.wrong, &error), error, "counter");
    make_expected(&chain, alpha);
    poison(&chain);
    compare(&chain);
    if (count_wrong(&chain) != DEPTH * x_bytes(&chain) / 4) {
        fprintf(stderr, "the comparison is blind: plain launches left NaN\n");
        exit(1);
    }
    for (int i = 0; i < 3; i++) {
        const unsigned in_stream = run_chain(&chain, flags[i], false, alpha);
        const unsigned in_graph = run_chain(&chain, flags[i], true, alpha);
        printf("| %s | %d | %d | %s | %u | %u |\n", config, m, n,
               i == 0   ? "none"
               : i == 1 ? "OVERLAP"
                        : "OVERLAP, B_CONSTANT",
               in_stream, in_graph);
        fflush(stdout);
        wrong += in_stream + in_graph;
    }
    free_chain(&chain);
    return wrong;
}

int main(int argc, char **argv)
{
    static const char *const configs[] = {
        "tile=64x16,swap_ab=yes",
        "tile=64x16,swap_ab=yes,tiles=once",
        "tile=64x64,swap_ab=yes,tiles=once,split_k=2",
        "tile=128x32,swap_ab=yes,tiles=once,split_k=4",
        "tile=64x64,swap_ab=yes,ctas_per_sm=2",
        "tile=64x32",
    };
    static const int extents[][2] = {{1, 512}, {16, 4096}, {33, 4096}, {64, 8448}, {130, 4096}};
    static const struct option names[] = {{"reference", 1, NULL, 'r'},
                                          {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    const char *reference = "tests/gpu/reference.cu", *cache_dir = NULL, *commit = "unknown";
    struct rig rig;
    unsigned wrong = 0;
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
    printf("| config | M | N = K | flags | wrong words in %d chains of %d | the same as graphs "
           "|\n|---|---|---|---|---|---|\n",
           RUNS, DEPTH);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        for (size_t j = 0; j < sizeof extents / sizeof extents[0]; j++)
            wrong += run_key(&rig, configs[i], extents[j][0], extents[j][1]);
    rig_close(&rig);
    return wrong == 0 ? 0 : 1;
}
