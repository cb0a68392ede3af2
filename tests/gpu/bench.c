/* SPDX-License-Identifier: Apache-2.0 */
/* Times keys against cuBLASLt, everything interleaved in one run.
 *
 * Per shape: operands are standard normal and rotate over at least 200 MB, so L2 is cold; an arm is one key
 * or one of cuBLASLt's algorithms. Each round runs all arms in random order, each as a train of back-to-back
 * launches of about 3 ms; the ratio of an arm is the median over the rounds of time(cuBLASLt's first choice)
 * / time(arm), above 1 is faster. No ratio is printed for an arm whose result differs from cuBLASLt's. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublas.h"
#include "race.h"

#define WORKSPACE_BYTES ((size_t)64 << 20)

struct arm {
    char name[64];
    gj_kernel *kernel; /* NULL: cuBLASLt */
    int algo;
    double difference; /* ||D - D of cuBLASLt|| / ||D of cuBLASLt|| */
};

struct bench {
    struct rig rig;
    struct cublas cublas;
    struct cublas_gemm gemm;
    enum gj_dtype dtype;
    int m, n, k;
    struct race race;
    void *a[SETS_MAX], *b[SETS_MAX], *d[SETS_MAX];
    struct arm arms[ARMS_MAX];
    int num_arms;
};

static void run_arm(struct bench *bench, const struct arm *arm, int set)
{
    gj_error *error = NULL;
    if (arm->kernel == NULL) {
        cublas_gemm_run(&bench->cublas, &bench->gemm, arm->algo, bench->a[set], bench->b[set], bench->d[set],
                        bench->rig.stream);
        return;
    }
    const struct gj_gemm_args args = {.m = bench->m,
                                      .n = bench->n,
                                      .k = bench->k,
                                      .batch = 1,
                                      .a = {.data = bench->a[set], .ld = bench->k},
                                      .b = {.data = bench->b[set], .ld = bench->k},
                                      .d = {.data = bench->d[set], .ld = bench->n}};
    must(gj_launch(arm->kernel, &args, bench->rig.stream, &error), error, arm->name);
}

static void run_arm_of_race(void *user, int arm, int set)
{
    struct bench *const bench = user;
    run_arm(bench, &bench->arms[arm], set);
}

/* Compares an arm's D with that of cuBLASLt's first algorithm, in sets 0 and 1. */
static double difference(struct bench *bench, const struct arm *arm)
{
    gj_error *error = NULL;
    const uint64_t count = (uint64_t)bench->m * (uint64_t)bench->n;
    const struct arm reference = {.algo = 0};
    run_arm(bench, &reference, 0);
    void *const expected = bench->d[0];
    bench->d[0] = bench->d[1];
    must(gj_device_fill(bench->rig.device, bench->d[0], 0xff, count * 2, &error), error, "poison");
    run_arm(bench, arm, 0);
    bench->d[0] = expected;
    return race_distance(&bench->rig, bench->d[1], bench->d[0], count, bench->dtype, arm->name);
}

static void make_operands(struct bench *bench)
{
    const size_t a = (size_t)bench->m * (size_t)bench->k, b = (size_t)bench->n * (size_t)bench->k;
    const size_t d = (size_t)bench->m * (size_t)bench->n;
    bench->race.num_sets = race_sets(2.0 * (double)(a + b + d));
    for (int i = 0; i < bench->race.num_sets; i++) {
        bench->a[i] = rig_alloc(&bench->rig, 2 * a);
        bench->b[i] = rig_alloc(&bench->rig, 2 * b);
        bench->d[i] = rig_alloc(&bench->rig, 2 * d);
        rig_fill(&bench->rig, bench->a[i], a, bench->dtype, 1, 3u * (unsigned)i + 1);
        rig_fill(&bench->rig, bench->b[i], b, bench->dtype, 1, 3u * (unsigned)i + 2);
    }
}

static void free_operands(struct bench *bench)
{
    for (int i = 0; i < bench->race.num_sets; i++) {
        gj_device_free(bench->rig.device, bench->a[i]);
        gj_device_free(bench->rig.device, bench->b[i]);
        gj_device_free(bench->rig.device, bench->d[i]);
    }
}

static void add_key(struct bench *bench, const char *config)
{
    char text[GJ_KEY_TEXT_MAX];
    struct gj_key key;
    gj_error *error = NULL;
    struct arm *const arm = &bench->arms[bench->num_arms++];
    const char *const type = gj_dtype_name(bench->dtype);
    snprintf(text, sizeof text, "a=%s.k,b=%s.k,d=%s.n,%s", type, type, type, config);
    snprintf(arm->name, sizeof arm->name, "%s", config);
    must(gj_key_parse(text, &key, &error), error, text);
    must(gj_kernel_get(bench->rig.context, &key, 0, &arm->kernel, &error), error, text);
    must(gj_kernel_prepare(arm->kernel, 0, &error), error, text);
}

static void add_chosen(struct bench *bench)
{
    struct gj_key problem = gj_key_default(), key;
    gj_error *error = NULL;
    char config[48];
    problem.a.dtype = problem.b.dtype = problem.d.dtype = bench->dtype;
    must(gj_key_choose(&problem, bench->m, bench->n, bench->k, 1, bench->rig.gpu.num_sms, &key, &error),
         error, "choice");
    snprintf(config, sizeof config, "tile=%dx%d,cluster=%dx%d,sched=%s", key.tile_m, key.tile_n,
             key.cluster_m, key.cluster_n, key.sched == GJ_SCHED_COOP ? "coop" : "pingpong");
    add_key(bench, config);
    struct arm *const arm = &bench->arms[bench->num_arms - 1];
    snprintf(arm->name, sizeof arm->name, "chosen: %s", config);
}

static void make_arms(struct bench *bench, const char *const *configs, int num_configs)
{
    bench->num_arms = 0;
    for (int i = 0; i < bench->gemm.num_algos; i++) {
        struct arm *const arm = &bench->arms[bench->num_arms++];
        arm->kernel = NULL;
        arm->algo = i;
        snprintf(arm->name, sizeof arm->name, "cuBLASLt %d", i);
    }
    add_chosen(bench);
    for (int i = 0; i < num_configs && bench->num_arms < ARMS_MAX; i++)
        add_key(bench, configs[i]);
    for (int i = 0; i < bench->num_arms; i++)
        bench->arms[i].difference = difference(bench, &bench->arms[i]);
}

static bool same_result(const struct arm *arm)
{
    return arm->difference < 1e-2; /* two roundings to bf16 of sums that differ in order */
}

/* All arms of a shape to stderr; one row of the table, the best of each side, to stdout. */
static bool report(const struct bench *bench)
{
    const struct race *const race = &bench->race;
    int best_lt = 0, best = -1, chosen = -1;
    bool right = true;
    for (int i = 0; i < bench->num_arms; i++) {
        const struct arm *const arm = &bench->arms[i];
        const float ratio = race_ratio(race, 0, i, 0.5);
        fprintf(stderr, "%dx%dx%d %-48s %9.2f us  ratio %.3f (%.3f to %.3f)  difference %.2e%s\n", bench->m,
                bench->n, bench->k, arm->name, (double)race_us(race, i, 0.5), (double)ratio,
                (double)race_ratio(race, 0, i, 0.25), (double)race_ratio(race, 0, i, 0.75), arm->difference,
                same_result(arm) ? "" : "  RESULT DIFFERS");
        right = right && same_result(arm);
        if (arm->kernel == NULL) {
            if (ratio > race_ratio(race, 0, best_lt, 0.5))
                best_lt = i;
            continue;
        }
        if (chosen < 0)
            chosen = i;
        if (best < 0 || ratio > race_ratio(race, 0, best, 0.5))
            best = i;
    }
    if (!right) {
        printf("| %d x %d x %d | results differ | | | | | |\n", bench->m, bench->n, bench->k);
        return false;
    }
    const double tflops = 2e-6 * bench->m * bench->n * (double)bench->k;
    const double us = (double)race_us(race, 0, 0.5);
    printf("| %d x %d x %d | %.1f (%.0f TFLOP/s) | %.3f | %.3f (%s) | **%.3f** | %s | %d |\n", bench->m,
           bench->n, bench->k, us, tflops / us, (double)race_ratio(race, 0, best_lt, 0.5),
           (double)race_ratio(race, 0, chosen, 0.5), bench->arms[chosen].name + strlen("chosen: "),
           (double)race_ratio(race, 0, best, 0.5), bench->arms[best].name, race->rounds);
    fflush(stdout);
    return true;
}

static bool run_shape(struct bench *bench, const char *const *configs, int num_configs)
{
    make_operands(bench);
    cublas_gemm_make(&bench->cublas, bench->dtype == GJ_DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_16F,
                     CUBLASLT_EPILOGUE_DEFAULT, bench->m, bench->n, bench->k, &bench->gemm);
    make_arms(bench, configs, num_configs);
    bench->race.num_arms = bench->num_arms;
    race_run(&bench->race, 2.0 * bench->m * bench->n * (double)bench->k);
    const bool right = report(bench);
    free_operands(bench);
    cublas_gemm_free(&bench->gemm);
    return right;
}

static const char *const default_configs[] = {
    "tile=128x128,cluster=1x1",
    "tile=128x128,cluster=2x1",
    "tile=128x160,cluster=2x1",
    "tile=128x176,cluster=2x1",
    "tile=128x192,cluster=1x1",
    "tile=128x192,cluster=2x1",
    "tile=192x128,cluster=1x2",
    "tile=128x256,cluster=1x1,sched=coop",
    "tile=128x256,cluster=2x1,sched=coop",
    "tile=256x128,cluster=1x2,sched=coop",
    "tile=256x192,cluster=1x2,sched=coop",
};

int main(int argc, char **argv)
{
    static const struct option names[] = {{"reference", 1, NULL, 'r'}, {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},    {"seconds", 1, NULL, 's'},
                                          {"dtype", 1, NULL, 't'},     {NULL, 0, NULL, 0}};
    static struct bench bench = {.dtype = GJ_DTYPE_BF16, .race.seconds = 3};
    const char *reference = "tests/gpu/reference.cu", *cache_dir = NULL, *commit = "unknown";
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'r')
            reference = optarg;
        else if (c == 'c')
            cache_dir = optarg;
        else if (c == 'g')
            commit = optarg;
        else if (c == 's')
            bench.race.seconds = atof(optarg);
        else if (c == 't')
            bench.dtype = strcmp(optarg, "f16") == 0 ? GJ_DTYPE_F16 : GJ_DTYPE_BF16;
        else
            return 2;
    }
    bench.race.rig = &bench.rig;
    bench.race.run = run_arm_of_race;
    bench.race.user = &bench;
    rig_open(&bench.rig, reference, cache_dir);
    cublas_open(&bench.cublas, rig_alloc(&bench.rig, WORKSPACE_BYTES), WORKSPACE_BYTES);
    rig_print_setting(&bench.rig, commit);
    printf("%s, cuBLASLt %zu. Ratios are to cuBLASLt's first choice; above 1 is faster than it.\n\n",
           gj_dtype_name(bench.dtype), bench.cublas.version);
    printf("| M x N x K | cuBLASLt first, us | its best of %d | gj_gemm's choice | best | with | rounds |\n"
           "|---|---|---|---|---|---|---|\n",
           CUBLAS_ALGOS);
    bool right = true;
    for (int i = optind; i < argc; i++) {
        if (sscanf(argv[i], "%dx%dx%d", &bench.m, &bench.n, &bench.k) != 3) {
            fprintf(stderr, "%s: expected MxNxK\n", argv[i]);
            return 2;
        }
        right &= run_shape(&bench, default_configs, sizeof default_configs / sizeof default_configs[0]);
    }
    rig_close(&bench.rig);
    return right ? 0 : 1;
}
