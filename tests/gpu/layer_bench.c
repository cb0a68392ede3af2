/* SPDX-License-Identifier: Apache-2.0 */
/* The four GEMMs of a decoder layer back to back, few rows, against kernels that only read the same weights:
 * layer_bench
 * [--dtype bf16|e4m3]. Each arm is a graph of two layers with weights of their own (870 MB of bf16), so that
 * L2 is cold; all arms in random order in each round. gj_gemm chooses; its launches are plain, or overlap, or
 * overlap with constant weights. The GEMMs of a layer do not read each other's results; each waits all the
 * same. Prints Markdown. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device_work.h"
#include "race.h"

enum { GEMMS = 4, LAYERS = 2, ARMS = 4, READ_ONLY = 3, BLOCKS = 8 * 132, THREADS = 256 };

static const int shapes[GEMMS][2] = {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}};
static const char *const names[ARMS] = {"plain", "OVERLAP", "OVERLAP, B_CONSTANT", "read only"};
static const unsigned flags[ARMS] = {0, GJ_LAUNCH_OVERLAP, GJ_LAUNCH_OVERLAP | GJ_LAUNCH_B_CONSTANT, 0};

struct bench {
    struct rig rig;
    struct gj_key problem;
    CUkernel read_all;
    int m;
    void *x, *weights[LAYERS][GEMMS], *y;
    void *graphs[ARMS];
};

static uint64_t weight_bytes(const struct bench *bench, int gemm)
{
    return (uint64_t)shapes[gemm][0] * (uint64_t)shapes[gemm][1] * gj_dtype_bytes(bench->problem.a.dtype);
}

static void launch_gemm(struct bench *bench, int layer, int gemm, unsigned with)
{
    gj_error *error = NULL;
    const int n = shapes[gemm][0], k = shapes[gemm][1];
    const struct gj_gemm_args args = {.m = bench->m,
                                      .n = n,
                                      .k = k,
                                      .batch = 1,
                                      .a = {bench->x, k, 0},
                                      .b = {bench->weights[layer][gemm], k, 0},
                                      .d = {bench->y, n, 0},
                                      .flags = with};
    must(gj_gemm(bench->rig.context, &bench->problem, &args, bench->rig.stream, &error), error, "gj_gemm");
}

static void launch_layer(struct bench *bench, int layer, int arm)
{
    for (int i = 0; i < GEMMS; i++) {
        const void *weights = bench->weights[layer][i];
        uint64_t vectors = weight_bytes(bench, i) / 16;
        void *never = NULL, *arguments[] = {&weights, &vectors, &never};
        if (arm == READ_ONLY)
            rig_launch(&bench->rig, bench->read_all, BLOCKS, 1, 1, THREADS, 1, arguments);
        else
            launch_gemm(bench, layer, i, flags[arm]);
    }
}

static void launch_graph(void *user, int arm, int set)
{
    gj_error *error = NULL;
    struct bench *const bench = user;
    (void)set;
    must(gj_device_graph_launch(bench->rig.device, bench->graphs[arm], &error), error, names[arm]);
}

static void make_graphs(struct bench *bench)
{
    gj_error *error = NULL;
    for (int arm = 0; arm < ARMS; arm++) {
        launch_layer(bench, 0, arm); /* compiles and prepares */
        must(gj_device_sync(bench->rig.device, WATCHDOG_MS, &error), error, names[arm]);
        must(gj_device_capture(bench->rig.device, &error), error, "capture");
        for (int layer = 0; layer < LAYERS; layer++)
            launch_layer(bench, layer, arm);
        must(gj_device_captured(bench->rig.device, &bench->graphs[arm], &error), error, "capture");
    }
}

static void run(struct bench *bench, int m)
{
    static struct race race;
    bench->m = m;
    make_graphs(bench);
    race = (struct race){.rig = &bench->rig,
                         .run = launch_graph,
                         .user = bench,
                         .num_arms = ARMS,
                         .num_sets = 1,
                         .seconds = 1};
    race_run(&race, 6.5e14 * 240e-6); /* about 240 us a graph */
    for (int arm = 0; arm < ARMS; arm++) {
        printf("| %d | %s | %.1f | %.3f |\n", m, names[arm], race_us(&race, arm, 0.5) / LAYERS,
               race_ratio(&race, READ_ONLY, arm, 0.5));
        gj_device_graph_free(bench->rig.device, bench->graphs[arm]);
    }
    fflush(stdout);
}

static void make_operands(struct bench *bench)
{
    const enum gj_dtype dtype = bench->problem.a.dtype;
    bench->x = rig_alloc(&bench->rig, 64 * 14336 * 2);
    bench->y = rig_alloc(&bench->rig, 64 * 28672 * 2);
    rig_fill(&bench->rig, bench->x, 64 * 14336, dtype, 1, 1);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < GEMMS; i++) {
            bench->weights[layer][i] = rig_alloc(&bench->rig, weight_bytes(bench, i));
            rig_fill(&bench->rig, bench->weights[layer][i], (uint64_t)shapes[i][0] * (uint64_t)shapes[i][1],
                     dtype, 1, 2 + (uint32_t)(layer * GEMMS + i));
        }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"reference", 1, NULL, 'r'},
                                            {"cache-dir", 1, NULL, 'c'},
                                            {"commit", 1, NULL, 'g'},
                                            {"dtype", 1, NULL, 'd'},
                                            {NULL, 0, NULL, 0}};
    static const int rows[] = {1, 8, 16, 32, 64};
    const char *values[256] = {['r'] = "tests/gpu/reference.cu", ['g'] = "unknown", ['d'] = "bf16"};
    static struct bench bench;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == '?')
            return 2;
        values[c] = optarg;
    }
    rig_open(&bench.rig, values['r'], values['c']);
    bench.read_all = rig_kernel(&bench.rig, bench.rig.library, "read_all");
    bench.problem = gj_key_default();
    if (strcmp(values['d'], "e4m3") == 0) {
        bench.problem.a.dtype = bench.problem.b.dtype = GJ_DTYPE_E4M3;
        bench.problem.fp8acc = GJ_FP8ACC_FAST;
    }
    make_operands(&bench);
    rig_print_setting(&bench.rig, values['g']);
    printf("%s weights.\n\n| M | launches | us a layer | ratio to read only |\n|---|---|---|---|\n",
           values['d']);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        run(&bench, rows[i]);
    rig_close(&bench.rig);
    return 0;
}
