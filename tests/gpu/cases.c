/* SPDX-License-Identifier: Apache-2.0 */
/* The dense cases of quack's own tests, judged by its own rule.
 *
 * Operands are normal (weights divided by sqrt(K)); what lies between their lines, and D before the launch,
 * is NaN. With ref the result in f64 from the same rounded operands and pt what separate operations in D's
 * type give (one f32-accumulated GEMM rounded once, then every operation rounded), a case passes when max|D -
 * ref| < 2 max|pt - ref| + eps; "worst" is the left side over the right. Prints Markdown. */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define VARIANTS_MAX 512
#define JOBS 12
#define OPERAND_BYTES ((size_t)640 << 20)
#define UNTOUCHED_BYTES ((size_t)1 << 20) /* of D, compared where there is nothing to write */

/* The arguments of the kernel `judge`, laid out as in reference.cu. */
struct operand {
    void *data;
    int64_t batch_stride, row_stride, column_stride;
    int dtype;
};

struct judged {
    struct operand a, b, c, d;
    int m, n, k;
    float alpha, beta;
    uint32_t *worst;
};

struct variant {
    const char *id;
    struct gj_key key;
    int batch, m, n, k;
    int chunk;        /* of K: launches accumulate in f32, the last one scales and rounds; 0: one launch */
    int gap_a, gap_b; /* distance of two lines, in lines */
    float scale_a, scale_b, scale_c, alpha, beta; /* scale_b 0: 1 / sqrt(K) */
    unsigned seed;
    bool in_place, choose, ignored, permuted, benchmark;
    double eps;
};

struct cases {
    struct rig rig;
    CUkernel fill_lines, judge;
    struct variant variants[VARIANTS_MAX];
    int num_variants;
    atomic_int next; /* to compile */
    void *a, *b, *c, *d, *partial;
    float *scalars;
    int32_t *order;
    uint32_t *worst;
};

/* Launches over chunks of K. */
#define CHUNKED "a=bf16.m,b=bf16.n,"
#define CHUNK_KEYS 3
static const char *const chunk_keys[CHUNK_KEYS] = {CHUNKED "d=f32.n", CHUNKED "c=f32.n,d=f32.n",
                                                   CHUNKED "c=f32.n,d=bf16.n,alpha=device,beta=device"};

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    return key;
}

struct extents {
    int m[3], n[2], k[2]; /* to combine; zeros are skipped */
};

static void push(struct cases *cases, struct variant v)
{
    if (cases->num_variants == VARIANTS_MAX)
        abort();
    if (v.scale_b == 0)
        v.scale_b = v.k > 0 ? 1 / sqrtf((float)v.k) : 1;
    if (v.key.c.dtype == GJ_DTYPE_NONE)
        v.beta = 0;
    cases->variants[cases->num_variants++] = v;
}

/* Adds v with the key for all combinations of the extents. */
static void add(struct cases *cases, struct variant v, const char *key, struct extents extents)
{
    v.key = parse(key);
    for (int i = 0; i < 12; i++) {
        v.m = extents.m[i / 4];
        v.n = extents.n[i / 2 % 2];
        v.k = extents.k[i % 2];
        if (v.m > 0 && v.n > 0 && v.k > 0)
            push(cases, v);
    }
}

static struct variant variant_of(const char *id, double eps)
{
    return (struct variant){.id = id,
                            .batch = 1,
                            .gap_a = 1,
                            .gap_b = 1,
                            .scale_a = 1,
                            .scale_c = 1,
                            .alpha = 1,
                            .beta = 1,
                            .eps = eps};
}

static void add_linear(struct cases *cases, bool choose)
{
    struct variant v = variant_of("T1 forward", 1e-6);
    v.choose = choose;
    v.gap_a = 2;
    add(cases, v, "", (struct extents){{960}, {1504, 2048}, {736, 4096}});
    v.id = "T1 dx";
    v.gap_a = 1;
    add(cases, v, "b=bf16.n,tiles=dynamic", (struct extents){{960}, {736, 4096}, {1504, 2048}});
    v.id = "T1 dW";
    v.gap_b = 2;
    v.scale_b = 1; /* B is x */
    add(cases, v, "a=bf16.m,b=bf16.n,tiles=dynamic", (struct extents){{1504, 2048}, {736, 4096}, {960}});
    v = variant_of("T4 add in place", 1e-5);
    v.choose = choose;
    v.in_place = true;
    v.scale_b = 1;
    add(cases, v, "b=bf16.n,c=bf16.n", (struct extents){{960, 1920}, {1504, 2048}, {736, 1024}});
}

static const char *mode_of(bool device, float scalar)
{
    return device ? "device" : scalar == 1 ? "one" : "host";
}

static void add_scaled(struct cases *cases)
{
    static const float alphas[] = {0.5f, 1, 2}, betas[] = {0, 0.5f, 1, 1.5f};
    for (int i = 0; i < 24; i++) {
        const bool device = i >= 12;
        struct variant v = variant_of(device ? "T5 scaled, device scalars" : "T5 scaled, host scalars", 1e-4);
        char key[96];
        v.in_place = true;
        v.alpha = alphas[i % 3];
        v.beta = betas[i / 3 % 4];
        v.seed = 42;
        snprintf(key, sizeof key, "b=bf16.n,c=bf16.n,alpha=%s,beta=%s", mode_of(device, v.alpha),
                 mode_of(device, v.beta));
        add(cases, v, key, (struct extents){{480, 960}, {512, 1024}, {256, 768}});
    }
}

/* A is the transpose of the gradient of the logits, (rows, vocabulary); alpha the gradient of the loss, for
 * the mean divided by the number of rows that count: 819 of 1024 when every fifth is ignored. */
static void add_cross_entropy(struct cases *cases)
{
    static const int rows[] = {8, 16, 24, 1024, 1024}, chunks[] = {16, 16, 16, 1024, 256};
    static const char *const ids[] = {"T6 dW, K 8", "T6 dW, K 16", "T6 dW, K 16 then 8", "T7 dW, K 1024",
                                      "T7 dW, K 4 times 256"};
    for (int i = 0; i < 10; i++) {
        struct variant v = variant_of(ids[i / 2], 1e-4);
        v.chunk = chunks[i / 2];
        v.ignored = i >= 6;
        v.scale_b = 1;
        v.alpha = i % 2 ? 0.7f : 0.7f / (float)(v.ignored ? 819 : rows[i / 2]);
        v.seed = v.ignored ? 42 : 0;
        add(cases, v, CHUNKED "alpha=device",
            v.ignored ? (struct extents){{2048}, {512}, {1024}}
                      : (struct extents){{32000, 50264, 128256}, {768, 1024}, {rows[i / 2]}});
    }
}

/* One key a word, with tile 128x256 and coop unless it says sched; the first two with permuted batches. */
static const char benchmark_keys[] =
    "d=bf16.n c=bf16.n,tiles=dynamic d=bf16.n d=f16.n d=f32.n d=e4m3.n d=e5m2.n d=bf16.m c=bf16.n c=f16.n "
    "c=f32.n c=bf16.m a=bf16.m b=bf16.n a=bf16.m,b=bf16.n,c=bf16.m,d=bf16.m a=f16.k,b=f16.k,d=f16.n "
    "tiles=once tiles=dynamic sched=pingpong sched=pingpong,tiles=dynamic "
    "a=e4m3.k,b=e4m3.k,sched=coop,tile=128x128 a=e5m2.k,b=e5m2.k,sched=coop,tile=128x128 "
    "a=e4m3.k,b=e4m3.k,d=e4m3.n,sched=coop,tile=128x128 a=e4m3.k,b=e4m3.k,fp8acc=fast "
    "a=e5m2.k,b=e5m2.k,d=f32.n,fp8acc=fast a=e4m3.k,b=e4m3.k,d=f16.n,c=bf16.n,fp8acc=fast";

/* Everything of variance 1 / K; held to the benchmark's own bound too, which is loose for such data. */
static void add_benchmark(struct cases *cases)
{
    char word[96], key[192];
    for (int i = 0, at = 0, length; sscanf(benchmark_keys + at, "%95s%n", word, &length) == 1;
         i++, at += length) {
        const int size = i < 2 ? 1024 : 4096;
        const double eps = strstr(word, "fast") ? 3e-2 : strstr(word, "a=e") ? 1e-4 : 1e-5;
        struct variant v = variant_of("7.2 functional matrix", eps);
        v.batch = i < 2 ? 3 : 1;
        v.permuted = i < 2;
        v.benchmark = true;
        v.scale_a = v.scale_c = 1 / sqrtf((float)size);
        snprintf(key, sizeof key, "%s%s", word,
                 strstr(word, "sched=") ? "" : ",tile=128x256,cluster=1x1,sched=coop");
        add(cases, v, key, (struct extents){{size}, {size}, {size}});
    }
}

static void add_majors(struct cases *cases)
{
    for (int i = 0; i < 16; i++) {
        char key[96];
        snprintf(key, sizeof key, "a=bf16.%c,b=bf16.%c,d=bf16.%c,swap_ab=%s", i & 1 ? 'm' : 'k',
                 i & 2 ? 'n' : 'k', i & 4 ? 'm' : 'n', i & 8 ? "yes" : "no");
        add(cases, variant_of(i & 8 ? "7.4 majors, swap_ab" : "7.4 majors", 1e-5), key,
            (struct extents){{960}, {1504, 2048}, {736, 1024}});
    }
}

/* Each extent empty, for D = A B^T, D = A B^T + beta C and the same in place. */
static void add_empty(struct cases *cases)
{
    for (int i = 0; i < 18; i++) {
        struct variant v = variant_of("7.4 empty extents", 1e-5);
        v.key = parse(i % 9 >= 3 ? "c=bf16.n,beta=host" : "");
        v.choose = i >= 9;
        v.m = i % 3 == 0 ? 0 : 960;
        v.n = i % 3 == 1 ? 0 : 1504;
        v.k = i % 3 == 2 ? 0 : 736;
        v.beta = 0.7f;
        v.in_place = i % 9 >= 6;
        push(cases, v);
    }
}

/* Compiles until nothing is left, in an order that keeps equal keys apart. */
static void *compile_some(void *pointer)
{
    struct cases *const cases = pointer;
    int i;
    while ((i = atomic_fetch_add(&cases->next, 1)) < cases->num_variants + CHUNK_KEYS) {
        const struct variant *const v = &cases->variants[i * 101 % cases->num_variants];
        struct gj_key key = i < CHUNK_KEYS ? parse(chunk_keys[i]) : v->key;
        gj_kernel *kernel = NULL;
        gj_error *error = NULL;
        if (i >= CHUNK_KEYS && v->choose)
            must(gj_key_choose(&v->key, v->m, v->n, v->k, v->batch, cases->rig.gpu.num_sms, &key, &error),
                 error, v->id);
        must(gj_kernel_get(cases->rig.context, &key, 0, &kernel, &error), error, v->id);
    }
    return NULL;
}

/* All kernels at once, so that the launches only find them. */
static void compile_all(struct cases *cases)
{
    pthread_t threads[JOBS];
    for (int i = 0; i < JOBS; i++)
        if (pthread_create(&threads[i], NULL, compile_some, cases) != 0)
            exit(1);
    for (int i = 0; i < JOBS; i++)
        pthread_join(threads[i], NULL);
}

/* A (batch, rows, columns) operand whose lines are rows (usual major) or columns, with NaN around them; scale
 * 0: NaN throughout. */
static struct operand make(struct cases *cases, void *memory, struct gj_format format, enum gj_major usual,
                           const int extents[3], int gap, float scale, unsigned seed, bool ignored)
{
    gj_error *error = NULL;
    const bool other = format.major != usual;
    int inner = extents[other ? 1 : 2], lines = extents[other ? 2 : 1], type = (int)format.dtype;
    int zeros = ignored;
    int64_t ld = (int64_t)(inner > 16 ? inner : 16) * gap;
    const struct operand operand = {memory, (lines > 1 ? lines : 1) * ld, other ? 1 : ld, other ? ld : 1,
                                    type};
    size_t bytes = (size_t)(extents[0] * operand.batch_stride) * gj_dtype_bytes(format.dtype);
    bytes = bytes > UNTOUCHED_BYTES ? bytes : UNTOUCHED_BYTES;
    if (bytes > OPERAND_BYTES)
        abort();
    must(gj_device_fill(cases->rig.device, memory, 0xff, bytes, &error), error, "poison");
    lines *= extents[0];
    void *arguments[] = {&memory, &lines, &inner, &ld, &type, &scale, &seed, &zeros};
    if (scale != 0 && lines > 0 && inner > 0)
        rig_launch(&cases->rig, cases->fill_lines, 1024, 1, 1, 256, 1, arguments);
    return operand;
}

static struct judged make_operands(struct cases *cases, const struct variant *v)
{
    const int a[] = {v->batch, v->m, v->k}, b[] = {v->batch, v->n, v->k}, d[] = {v->batch, v->m, v->n};
    const struct gj_key *const key = &v->key;
    const float scalars[] = {v->alpha, v->beta};
    /* in place D holds C; with beta 0 it is NaN and must not be read */
    const float scale_d = v->in_place && v->beta != 0 ? v->scale_c : 0;
    const unsigned seed = 4 * v->seed;
    struct judged p = {.m = v->m, .n = v->n, .k = v->k, .alpha = v->alpha, .beta = v->beta};
    gj_error *error = NULL;
    must(gj_device_write(cases->rig.device, cases->scalars, scalars, sizeof scalars, &error), error, v->id);
    p.worst = cases->worst;
    p.a = make(cases, cases->a, key->a, GJ_MAJOR_K, a, v->gap_a, v->scale_a, seed + 1, v->ignored);
    p.b = make(cases, cases->b, key->b, GJ_MAJOR_K, b, v->gap_b, v->scale_b, seed + 2, false);
    if (key->c.dtype != GJ_DTYPE_NONE)
        p.c = make(cases, cases->c, key->c, GJ_MAJOR_N, d, 1, v->scale_c, seed + 3, false);
    p.d = make(cases, cases->d, key->d, GJ_MAJOR_N, d, 1, scale_d, seed + 3, false);
    return p;
}

static struct gj_tensor tensor_of(const struct operand *operand)
{
    const int64_t ld = operand->row_stride == 1 ? operand->column_stride : operand->row_stride;
    return (struct gj_tensor){operand->data, ld, operand->batch_stride};
}

static void launch(struct cases *cases, const struct gj_key *key, const struct gj_gemm_args *args)
{
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    must(gj_kernel_get(cases->rig.context, key, 0, &kernel, &error), error, "gj_kernel_get");
    must(gj_launch(kernel, args, cases->rig.stream, &error), error, "gj_launch");
}

/* K in chunks: the sum in f32 in `partial`, in place; the last launch adds it, scales and rounds. A chunk of
 * K is a run of lines of the m-major A and the n-major B. */
static void launch_chunks(struct cases *cases, const struct variant *v, const struct gj_gemm_args *whole)
{
    const struct gj_tensor sum = {cases->partial, v->n, 0};
    const size_t bytes = (size_t)v->m * (size_t)v->n * 4;
    gj_error *error = NULL;
    must(gj_device_fill(cases->rig.device, cases->partial, 0xff, bytes, &error), error, "poison");
    for (int at = 0; at < v->k; at += v->chunk) {
        const bool last = at + v->chunk >= v->k;
        const struct gj_key key = parse(chunk_keys[last ? 2 : at > 0]);
        struct gj_gemm_args args = *whole;
        args.k = last ? v->k - at : v->chunk;
        args.a.data = (uint16_t *)whole->a.data + at * whole->a.ld;
        args.b.data = (uint16_t *)whole->b.data + at * whole->b.ld;
        args.beta_device = whole->alpha_device;
        if (at > 0)
            args.c = sum;
        if (!last)
            args.d = sum;
        launch(cases, &key, &args);
    }
}

static void launch_variant(struct cases *cases, const struct variant *v, const struct judged *p)
{
    gj_error *error = NULL;
    struct gj_gemm_args args = {.m = v->m, .n = v->n, .k = v->k, .batch = v->batch, .d = tensor_of(&p->d)};
    args.alpha = v->alpha;
    args.beta = v->beta;
    args.alpha_device = cases->scalars;
    args.beta_device = cases->scalars + 1;
    args.batch_order = v->permuted ? cases->order : NULL;
    if (v->k > 0) {
        args.a = tensor_of(&p->a);
        args.b = tensor_of(&p->b);
    }
    if (v->key.c.dtype != GJ_DTYPE_NONE)
        args.c = tensor_of(v->in_place ? &p->d : &p->c);
    if (v->choose)
        must(gj_gemm(cases->rig.context, &v->key, &args, cases->rig.stream, &error), error, "gj_gemm");
    else if (v->chunk > 0 && v->chunk < v->k)
        launch_chunks(cases, v, &args);
    else
        launch(cases, &v->key, &args);
}

/* Left side of the rule over the right; infinite when D is no number or memory was written in vain. */
static double judge(struct cases *cases, const struct variant *v, struct judged *p)
{
    gj_error *error = NULL;
    float worst[4]; /* |D - ref|, |pt - ref|, over the benchmark's bound; not 0: words touched in vain */
    must(gj_device_fill(cases->rig.device, cases->worst, 0, sizeof worst, &error), error, "result");
    if (v->m > 0 && v->n > 0) {
        void *arguments[] = {p};
        rig_launch(&cases->rig, cases->judge, (unsigned)(v->n + 63) / 64, (unsigned)(v->m + 63) / 64,
                   (unsigned)v->batch, 16, 16, arguments);
    } else {
        uint64_t words = UNTOUCHED_BYTES / 4;
        uint32_t *touched = cases->worst + 3;
        void *arguments[] = {&cases->d, &cases->partial, &words, &touched};
        must(gj_device_fill(cases->rig.device, cases->partial, 0xff, UNTOUCHED_BYTES, &error), error, v->id);
        rig_launch(&cases->rig, cases->rig.differing_words, 132, 1, 1, 256, 1, arguments);
    }
    must(gj_device_sync(cases->rig.device, WATCHDOG_MS, &error), error, v->id);
    must(gj_device_read(cases->rig.device, &worst, cases->worst, sizeof worst, &error), error, "result");
    if (worst[3] != 0 || !isfinite(worst[0]) || !isfinite(worst[1]))
        return INFINITY;
    const double ratio = (double)worst[0] / (2 * (double)worst[1] + v->eps);
    return v->benchmark ? fmax(ratio, (double)worst[2]) : ratio;
}

static double run(struct cases *cases, const struct variant *v)
{
    struct judged p = make_operands(cases, v);
    launch_variant(cases, v, &p);
    const double ratio = judge(cases, v, &p);
    if (!(ratio < 1)) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&v->key, text, sizeof text);
        fprintf(stderr, "FAILED %s: %d x %d x %d x %d, alpha %g, beta %g, chunk %d%s, %s: %g\n", v->id,
                v->batch, v->m, v->n, v->k, (double)v->alpha, (double)v->beta, v->chunk,
                v->choose ? ", gj_gemm" : "", text, ratio);
    }
    return ratio;
}

/* The judge must notice one element of the first variant's D that is wrong or was not written. */
static void test_judge(struct cases *cases)
{
    static const uint16_t wrong[] = {0x4180 /* 16 */, 0xffff};
    const struct variant *const v = &cases->variants[0];
    gj_error *error = NULL;
    struct judged p = make_operands(cases, v);
    launch_variant(cases, v, &p);
    bool noticed = judge(cases, v, &p) < 1;
    for (int i = 0; i < 2; i++) {
        const size_t at = (size_t)(v->m - 1) * (size_t)v->n + (size_t)v->n - 1;
        must(gj_device_write(cases->rig.device, (uint16_t *)p.d.data + at, &wrong[i], 2, &error), error,
             v->id);
        noticed = noticed && !(judge(cases, v, &p) < 1);
    }
    if (!noticed) {
        fprintf(stderr, "the judge is blind\n");
        exit(1);
    }
}

/* Runs everything, a row per case; returns the number of variants that failed. */
static int run_all(struct cases *cases)
{
    int failed = 0, i = 0;
    printf("| case | through | variants | passed | worst |\n|---|---|---|---|---|\n");
    while (i < cases->num_variants) {
        const struct variant *const first = &cases->variants[i];
        int variants = 0, passed = 0;
        double worst = 0;
        for (; i < cases->num_variants; i++) {
            const struct variant *const v = &cases->variants[i];
            if (strcmp(v->id, first->id) != 0 || v->choose != first->choose)
                break;
            const double ratio = run(cases, v);
            variants++;
            passed += ratio < 1;
            worst = fmax(worst, ratio);
        }
        printf("| %s | %s | %d | %d | %.3f |\n", first->id, first->choose ? "gj_gemm" : "gj_launch", variants,
               passed, worst);
        fflush(stdout);
        failed += variants - passed;
    }
    return failed;
}

static void open_cases(struct cases *cases)
{
    static const int32_t order[] = {2, 0, 1};
    struct rig *const rig = &cases->rig;
    gj_error *error = NULL;
    must_cuda(rig, rig->driver->cuLibraryGetKernel_fn(&cases->fill_lines, rig->library, "fill_lines"),
              "fill");
    must_cuda(rig, rig->driver->cuLibraryGetKernel_fn(&cases->judge, rig->library, "judge"), "judge");
    void **const operands[] = {&cases->a, &cases->b, &cases->c, &cases->d, &cases->partial};
    for (int i = 0; i < 5; i++)
        *operands[i] = rig_alloc(rig, OPERAND_BYTES);
    cases->scalars = rig_alloc(rig, 2 * sizeof(float));
    cases->order = rig_alloc(rig, sizeof order);
    cases->worst = rig_alloc(rig, 4 * sizeof(uint32_t));
    must(gj_device_write(rig->device, cases->order, order, sizeof order, &error), error, "order");
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"reference", 1, NULL, 0}, {"cache-dir", 1, NULL, 1}, {"commit", 1, NULL, 2}, {NULL, 0, NULL, 0}};
    static struct cases cases;
    const char *values[] = {"tests/gpu/reference.cu", NULL, "unknown"};
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c > 2)
            return 2;
        values[c] = optarg;
    }
    rig_open(&cases.rig, values[0], values[1]);
    open_cases(&cases);
    add_linear(&cases, false);
    add_linear(&cases, true);
    add_empty(&cases);
    add_scaled(&cases);
    add_cross_entropy(&cases);
    add_benchmark(&cases);
    add_majors(&cases);
    compile_all(&cases);
    rig_print_setting(&cases.rig, values[2]);
    test_judge(&cases);
    const int failed = run_all(&cases);
    rig_close(&cases.rig);
    return failed == 0 ? 0 : 1;
}
