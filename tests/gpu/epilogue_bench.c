/* SPDX-License-Identifier: Apache-2.0 */
/* Times fused epilogues against the plain GEMM and against cuBLASLt, everything interleaved in one run.
 *
 * Per shape, bf16, k-major: operands are normal (B divided by sqrt(K)) and rotate over at least 200 MB. Arms:
 * the plain kernel and each fused operation without D in gj_gemm's choice of config and in others;
 * cuBLASLt's plain GEMM followed by an elementwise kernel; cuBLASLt's own GELU epilogue. Ratios are medians
 * over the rounds of time(plain kernel) / time(arm). No ratio is printed for an arm whose result differs from
 * that of cuBLASLt followed by the elementwise kernel. */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublas.h"
#include "kernels.h"
#include "race.h"

#define WORKSPACE_BYTES ((size_t)64 << 20)
#define LT_ALGOS 4 /* of cuBLASLt's, each an arm */

enum function { IDENTITY, GELU, SILU, SWIGLU, SWIGLU_HALVES, NUM_FUNCTIONS };

static const struct group {
    const char *name, *key; /* key NULL: cuBLASLt */
    enum function function;
    bool fused; /* cuBLASLt: by its own epilogue */
} groups[] = {
    {"plain", "", IDENTITY, false},
    {"act=gelu_tanh", "op=act,act=gelu_tanh,d=none", GELU, true},
    {"act=silu", "op=act,act=silu,d=none", SILU, true},
    {"swiglu, interleaved", "op=gated,act=swiglu,d=none", SWIGLU, true},
    {"swiglu, halves", "op=gated,act=swiglu,gate=halves,d=none", SWIGLU_HALVES, true},
    {"cuBLASLt, plain", NULL, IDENTITY, false},
    {"cuBLASLt, then GELU", NULL, GELU, false},
    {"cuBLASLt, then swiglu, interleaved", NULL, SWIGLU, false},
    {"cuBLASLt, then swiglu, halves", NULL, SWIGLU_HALVES, false},
    {"cuBLASLt, GELU epilogue", NULL, GELU, true},
};
#define NUM_GROUPS ((int)(sizeof groups / sizeof groups[0]))

static const char *const configs[] = {
    "tile=128x192,cluster=2x1",
    "tile=128x192,cluster=1x2",
    "tile=128x160,cluster=2x1",
    "tile=128x160,cluster=1x2",
    "tile=128x128,cluster=2x1",
    "tile=128x128,cluster=1x2",
    "tile=128x256,cluster=2x1,sched=coop",
    "tile=128x256,cluster=1x2,sched=coop",
    "tile=256x128,cluster=2x1,sched=coop",
    "tile=256x160,cluster=1x2,sched=coop",
    "tile=128x176,cluster=2x1",
    "tile=64x256,cluster=2x1",
};
#define NUM_CONFIGS ((int)(sizeof configs / sizeof configs[0]))

struct arm {
    const struct group *group;
    char name[64];
    int algo;
    double difference; /* ||result - expected|| / ||expected|| */
};

struct bench {
    struct rig rig;
    struct cublas cublas;
    struct cublas_gemm plain, gelu;
    CUlibrary library;
    CUkernel fill_lines, elementwise[NUM_FUNCTIONS];
    int m, n, k, jobs;
    struct race race;
    void *a[SETS_MAX], *b[SETS_MAX], *d[SETS_MAX], *p[SETS_MAX];
    void *product, *expected;
    struct arm arms[ARMS_MAX];
    struct gj_key keys[ARMS_MAX]; /* arms with a key come first */
    gj_kernel *kernels[ARMS_MAX];
    int num_arms, num_keys;
};

static void apply(struct bench *bench, enum function function, void *in, void *out)
{
    const bool gated = function == SWIGLU || function == SWIGLU_HALVES;
    uint64_t count = (uint64_t)bench->m * (uint64_t)bench->n / (gated ? 16 : 8),
             half = (uint64_t)bench->n / 16;
    void *arguments[] = {&in, &out, &count, &half};
    rig_launch(&bench->rig, bench->elementwise[function], 132 * 8, 1, 1, 256, 1, arguments);
}

static void run_lt(struct bench *bench, const struct arm *arm, int set)
{
    const bool fused = arm->group->fused;
    cublas_gemm_run(&bench->cublas, fused ? &bench->gelu : &bench->plain, arm->algo, bench->a[set],
                    bench->b[set], fused ? bench->p[set] : bench->d[set], bench->rig.stream);
    if (!fused && arm->group->function != IDENTITY)
        apply(bench, arm->group->function, bench->d[set], bench->p[set]);
}

static void run_arm(void *user, int i, int set)
{
    struct bench *const bench = user;
    const struct arm *const arm = &bench->arms[i];
    gj_error *error = NULL;
    if (arm->group->key == NULL) {
        run_lt(bench, arm, set);
        return;
    }
    const bool gated = bench->keys[i].op == GJ_OP_GATED;
    struct gj_gemm_args args = {.m = bench->m,
                                .n = bench->n,
                                .k = bench->k,
                                .batch = 1,
                                .a = {.data = bench->a[set], .ld = bench->k},
                                .b = {.data = bench->b[set], .ld = bench->k}};
    if (arm->group->fused)
        args.p = (struct gj_tensor){.data = bench->p[set], .ld = gated ? bench->n / 2 : bench->n};
    else
        args.d = (struct gj_tensor){.data = bench->d[set], .ld = bench->n};
    must(gj_launch(bench->kernels[i], &args, bench->rig.stream, &error), error, arm->name);
}

/* Compares an arm's result in set 0 with what separate kernels make of it. */
static double difference(struct bench *bench, int i)
{
    const struct arm *const arm = &bench->arms[i];
    const enum function function = arm->group->function;
    const bool gated = function == SWIGLU || function == SWIGLU_HALVES;
    const uint64_t count = (uint64_t)bench->m * (uint64_t)bench->n / (gated ? 2 : 1);
    void *const result = function == IDENTITY ? bench->d[0] : bench->p[0];
    gj_error *error = NULL;
    cublas_gemm_run(&bench->cublas, &bench->plain, 0, bench->a[0], bench->b[0], bench->product,
                    bench->rig.stream);
    if (function != IDENTITY)
        apply(bench, function, bench->product, bench->expected);
    must(gj_device_fill(bench->rig.device, result, 0xff, count * 2, &error), error, "poison");
    run_arm(bench, i, 0);
    return race_distance(&bench->rig, result, function == IDENTITY ? bench->product : bench->expected, count,
                         GJ_DTYPE_BF16, arm->name);
}

static void fill(struct bench *bench, void *data, int lines, float scale, uint32_t seed)
{
    int inner = bench->k, dtype = (int)GJ_DTYPE_BF16, ignored = 0;
    int64_t ld = bench->k;
    void *arguments[] = {&data, &lines, &inner, &ld, &dtype, &scale, &seed, &ignored};
    rig_launch(&bench->rig, bench->fill_lines, 1024, 1, 1, 256, 1, arguments);
}

static void make_operands(struct bench *bench)
{
    const size_t a = (size_t)bench->m * (size_t)bench->k, b = (size_t)bench->n * (size_t)bench->k;
    const size_t d = (size_t)bench->m * (size_t)bench->n;
    bench->race.num_sets = race_sets(2.0 * (double)(a + b) + (double)d); /* with the smallest output */
    for (int i = 0; i < bench->race.num_sets; i++) {
        bench->a[i] = rig_alloc(&bench->rig, 2 * a);
        bench->b[i] = rig_alloc(&bench->rig, 2 * b);
        bench->d[i] = rig_alloc(&bench->rig, 2 * d);
        bench->p[i] = rig_alloc(&bench->rig, 2 * d);
        fill(bench, bench->a[i], bench->m, 1, 2u * (unsigned)i + 1);
        fill(bench, bench->b[i], bench->n, 1 / sqrtf((float)bench->k), 2u * (unsigned)i + 2);
    }
    bench->product = rig_alloc(&bench->rig, 2 * d);
    bench->expected = rig_alloc(&bench->rig, 2 * d);
}

static void free_operands(struct bench *bench)
{
    for (int i = 0; i < bench->race.num_sets; i++) {
        gj_device_free(bench->rig.device, bench->a[i]);
        gj_device_free(bench->rig.device, bench->b[i]);
        gj_device_free(bench->rig.device, bench->d[i]);
        gj_device_free(bench->rig.device, bench->p[i]);
    }
    gj_device_free(bench->rig.device, bench->product);
    gj_device_free(bench->rig.device, bench->expected);
}

static void add_arm(struct bench *bench, const struct group *group, const struct gj_key *key, int algo)
{
    if (bench->num_arms == ARMS_MAX)
        abort();
    struct arm *const arm = &bench->arms[bench->num_arms++];
    *arm = (struct arm){.group = group, .algo = algo};
    if (key == NULL) {
        snprintf(arm->name, sizeof arm->name, "algorithm %d", algo);
        return;
    }
    bench->keys[bench->num_keys++] = *key;
    snprintf(arm->name, sizeof arm->name, "%s %dx%d, %dx%d",
             key->sched == GJ_SCHED_COOP ? "coop" : "pingpong", key->tile_m, key->tile_n, key->cluster_m,
             key->cluster_n);
}

static struct gj_key parse(const char *first, const char *second)
{
    struct gj_key key;
    gj_error *error = NULL;
    char text[GJ_KEY_TEXT_MAX];
    snprintf(text, sizeof text, "%s%s%s", first, *first && *second ? "," : "", second);
    must(gj_key_parse(text, &key, &error), error, text);
    return key;
}

/* The group's operation in the config that gj_gemm chooses for it, then in others. */
static void add_group(struct bench *bench, const struct group *group)
{
    const struct gj_key problem = parse(group->key, "");
    struct gj_key key;
    gj_error *error = NULL;
    must(gj_key_choose(&problem, bench->m, bench->n, bench->k, 1, bench->rig.gpu.num_sms, &key, &error),
         error, group->name);
    add_arm(bench, group, &key, 0);
    for (int i = 0; group->fused && i < NUM_CONFIGS; i++) {
        key = parse(group->key, configs[i]);
        if (gj_key_check(&key, NULL) == GJ_OK)
            add_arm(bench, group, &key, 0);
    }
}

/* Compiles what has a key and drops what fails; returns whether nothing did. */
static bool get_kernels(struct bench *bench)
{
    int kept = 0;
    if (kernels_get(&bench->rig, bench->keys, bench->kernels, (size_t)bench->num_keys, bench->jobs) == 0)
        return true;
    for (int i = 0; i < bench->num_keys; i++) {
        if (bench->kernels[i] == NULL)
            continue;
        bench->arms[kept] = bench->arms[i];
        bench->keys[kept] = bench->keys[i];
        bench->kernels[kept++] = bench->kernels[i];
    }
    bench->num_arms = bench->num_keys = kept;
    return false;
}

/* Returns whether every kernel and result is right. */
static bool make_arms(struct bench *bench)
{
    bench->num_arms = bench->num_keys = 0;
    for (int g = 0; g < NUM_GROUPS; g++)
        if (groups[g].key != NULL)
            add_group(bench, &groups[g]);
    bool right = get_kernels(bench);
    for (int g = 0; g < NUM_GROUPS; g++) {
        const struct cublas_gemm *const gemm = groups[g].fused ? &bench->gelu : &bench->plain;
        for (int i = 0; groups[g].key == NULL && i < LT_ALGOS && i < gemm->num_algos; i++)
            add_arm(bench, &groups[g], NULL, i);
    }
    for (int i = 0; i < bench->num_arms; i++) {
        struct arm *const arm = &bench->arms[i];
        arm->difference = difference(bench, i);
        if (arm->difference < 1e-2) /* roundings to bf16 before and after the function */
            continue;
        fprintf(stderr, "RESULT DIFFERS %s, %s: %.2e\n", arm->group->name, arm->name, arm->difference);
        right = false;
    }
    return right;
}

static bool is_right(const struct arm *arm)
{
    return arm->difference < 1e-2;
}

/* A row per group: the first of its arms, which is gj_gemm's choice or cuBLASLt's, and the best. */
static void report(const struct bench *bench)
{
    const struct race *const race = &bench->race;
    for (int i = 0; i < bench->num_arms; i++)
        fprintf(stderr, "%dx%dx%d %-36s %-40s %9.2f us  ratio %.3f (%.3f to %.3f)  difference %.2e\n",
                bench->m, bench->n, bench->k, bench->arms[i].group->name, bench->arms[i].name,
                (double)race_us(race, i, 0.5), (double)race_ratio(race, 0, i, 0.5),
                (double)race_ratio(race, 0, i, 0.25), (double)race_ratio(race, 0, i, 0.75),
                bench->arms[i].difference);
    for (int i = 0; i < bench->num_arms;) {
        const struct arm *const first = &bench->arms[i];
        const int first_idx = i;
        int best = i;
        for (; i < bench->num_arms && bench->arms[i].group == first->group; i++)
            if (is_right(&bench->arms[i]) && (!is_right(&bench->arms[best]) ||
                                              race_ratio(race, 0, i, 0.5) > race_ratio(race, 0, best, 0.5)))
                best = i;
        printf("| %d x %d x %d | %.1f | %s |", bench->m, bench->n, bench->k, (double)race_us(race, 0, 0.5),
               first->group->name);
        if (is_right(first))
            printf(" %.3f | %s |", (double)race_ratio(race, 0, first_idx, 0.5), first->name);
        else
            printf(" results differ | %s |", first->name);
        if (is_right(&bench->arms[best]))
            printf(" %.3f | %s |", (double)race_ratio(race, 0, best, 0.5), bench->arms[best].name);
        else
            printf(" results differ | |");
        printf(" %d |\n", race->rounds);
    }
    fflush(stdout);
}

static bool run_shape(struct bench *bench)
{
    make_operands(bench);
    cublas_gemm_make(&bench->cublas, CUDA_R_16BF, CUBLASLT_EPILOGUE_DEFAULT, bench->m, bench->n, bench->k,
                     &bench->plain);
    cublas_gemm_make(&bench->cublas, CUDA_R_16BF, CUBLASLT_EPILOGUE_GELU, bench->m, bench->n, bench->k,
                     &bench->gelu);
    const bool right = make_arms(bench);
    bench->race.num_arms = bench->num_arms;
    if (bench->num_keys > 0 && bench->arms[0].group == &groups[0] && is_right(&bench->arms[0])) {
        race_run(&bench->race, 2.0 * bench->m * bench->n * (double)bench->k);
        report(bench);
    } else {
        printf("| %d x %d x %d | **no plain kernel** | | | | | | |\n", bench->m, bench->n, bench->k);
    }
    cublas_gemm_free(&bench->plain);
    cublas_gemm_free(&bench->gelu);
    free_operands(bench);
    return right;
}

static void open_bench(struct bench *bench, const char *epilogues)
{
    static const char *const names[NUM_FUNCTIONS] = {[GELU] = "elementwise_gelu",
                                                     [SILU] = "elementwise_silu",
                                                     [SWIGLU] = "elementwise_swiglu",
                                                     [SWIGLU_HALVES] = "elementwise_swiglu_halves"};
    struct rig *const rig = &bench->rig;
    bench->library = rig_load(rig, epilogues, "elementwise_gelu");
    bench->fill_lines = rig_kernel(rig, bench->library, "fill_lines");
    for (int i = IDENTITY + 1; i < NUM_FUNCTIONS; i++)
        bench->elementwise[i] = rig_kernel(rig, bench->library, names[i]);
    cublas_open(&bench->cublas, rig_alloc(rig, WORKSPACE_BYTES), WORKSPACE_BYTES);
    bench->race.rig = rig;
    bench->race.run = run_arm;
    bench->race.user = bench;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"reference", 1, NULL, 0}, {"epilogues", 1, NULL, 1},
                                          {"cache-dir", 1, NULL, 2}, {"commit", 1, NULL, 3},
                                          {"seconds", 1, NULL, 4},   {"jobs", 1, NULL, 5},
                                          {NULL, 0, NULL, 0}};
    static const char *const shapes[] = {"4096x14336x4096", "8192x28672x4096", "512x28672x4096",
                                         "128x28672x4096"};
    static struct bench bench;
    const char *values[] = {"tests/gpu/reference.cu", "tests/gpu/epilogues.cu", NULL, "unknown", "4", "12"};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c > 5)
            return 2;
        values[c] = optarg;
    }
    bench.race.seconds = atof(values[4]);
    bench.jobs = atoi(values[5]);
    if (bench.jobs < 1 || bench.jobs > 64)
        return 2;
    rig_open(&bench.rig, values[0], values[2]);
    open_bench(&bench, values[1]);
    rig_print_setting(&bench.rig, values[3]);
    printf("bf16, cuBLASLt %zu. Ratios are to the plain kernel in gj_gemm's config; above 1 is faster than "
           "it.\n\n",
           bench.cublas.version);
    printf("| M x N x K | plain, us | arm | ratio | first choice | best ratio | with | "
           "rounds |\n"
           "|---|---|---|---|---|---|---|---|\n");
    const int count = optind < argc ? argc - optind : (int)(sizeof shapes / sizeof shapes[0]);
    const char *const *const texts = optind < argc ? (const char *const *)argv + optind : shapes;
    bool right = true;
    for (int i = 0; i < count; i++) {
        if (sscanf(texts[i], "%dx%dx%d", &bench.m, &bench.n, &bench.k) != 3 || bench.n % 16 != 0) {
            fprintf(stderr, "%s: expected MxNxK, N a multiple of 16\n", texts[i]);
            return 2;
        }
        right &= run_shape(&bench);
    }
    bench.rig.driver->cuLibraryUnload_fn(bench.library);
    rig_close(&bench.rig);
    return right ? 0 : 1;
}
