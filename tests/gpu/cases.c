/* SPDX-License-Identifier: Apache-2.0 */
/* The dense cases of quack's own tests, judged by its own rule.
 *
 * Operands are normal (weights divided by sqrt(K)), everything around and between their lines is NaN, and D
 * is NaN before the launch. With ref the result in f64 from the same rounded operands and pt what separate
 * operations in D's type give (one f32-accumulated GEMM rounded once, then every operation rounded), a case
 * passes when max|D - ref| < 2 max|pt - ref| + eps; "worst" is the left side over the right. Prints Markdown.
 * --list prints the keys with the library's word on them, and needs no GPU. */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rig.h"

#define VARIANTS_MAX 512
#define KEYS_MAX 256
#define JOBS 12
#define IN_BYTES ((size_t)96 << 20)
#define OUT_BYTES ((size_t)640 << 20)
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
    int chunk; /* of K: several launches that accumulate in f32, the last of which scales and rounds; 0: one
                */
    int gap_a, gap_b;                /* distance of two lines, in lines; 0: 1 */
    float scale_a, scale_b, scale_c; /* of the data; 0: 1, for B 1 / sqrt(K) */
    float alpha, beta;
    unsigned seed;
    bool in_place, choose, ignored, permuted, benchmark;
    double eps;
};

struct cases {
    struct rig rig;
    CUkernel fill_lines, judge;
    struct variant variants[VARIANTS_MAX];
    int num_variants;
    char keys[KEYS_MAX][GJ_KEY_TEXT_MAX]; /* of all launches, each once */
    int num_keys;
    atomic_int next_key;
    void *a, *b, *c, *d, *partial;
    float *scalars;
    int32_t *order;
    uint32_t *worst;
};

/* Keys of the launches that accumulate over chunks of K. */
#define CHUNKED "a=bf16.m,b=bf16.n,"
static const char *const chunk_first = CHUNKED "d=f32.n";
static const char *const chunk_middle = CHUNKED "c=f32.n,d=f32.n";
static const char *const chunk_last = CHUNKED "c=f32.n,d=bf16.n,alpha=device,beta=device";

static struct gj_key parse(const char *text)
{
    struct gj_key key;
    gj_error *error = NULL;
    must(gj_key_parse(text, &key, &error), error, text);
    return key;
}

static void push(struct cases *cases, struct variant v)
{
    if (cases->num_variants == VARIANTS_MAX)
        abort();
    if (v.scale_b == 0)
        v.scale_b = v.k > 0 ? 1 / sqrtf((float)v.k) : 1;
    v.scale_a = v.scale_a != 0 ? v.scale_a : 1;
    v.scale_c = v.scale_c != 0 ? v.scale_c : 1;
    cases->variants[cases->num_variants++] = v;
}

#define LIST(...)   \
    (const int[4])  \
    {               \
        __VA_ARGS__ \
    }

/* Adds v with the key for all combinations of the extents; the lists end with 0. */
static void add(struct cases *cases, struct variant v, const char *key, const int *m, const int *n,
                const int *k)
{
    v.key = parse(key);
    v.batch = v.batch > 0 ? v.batch : 1;
    v.alpha = v.alpha != 0 ? v.alpha : 1;
    for (int i = 0; m[i] != 0; i++) {
        for (int j = 0; n[j] != 0; j++) {
            for (int l = 0; k[l] != 0; l++) {
                v.m = m[i];
                v.n = n[j];
                v.k = k[l];
                push(cases, v);
            }
        }
    }
}

static void add_linear_and_add(struct cases *cases, bool choose)
{
    struct variant v = {.id = "T1 forward", .choose = choose, .gap_a = 2, .eps = 1e-6};
    add(cases, v, "", LIST(960), LIST(1504, 2048), LIST(736, 4096));
    v.id = "T1 dx";
    v.gap_a = 0;
    add(cases, v, "b=bf16.n,tiles=dynamic", LIST(960), LIST(736, 4096), LIST(1504, 2048));
    v.id = "T1 dW";
    v.gap_b = 2;
    v.scale_b = 1; /* B is x */
    add(cases, v, "a=bf16.m,b=bf16.n,tiles=dynamic", LIST(1504, 2048), LIST(736, 4096), LIST(960));
    v = (struct variant){.id = "T4 add in place", .choose = choose, .scale_b = 1, .beta = 1, .eps = 1e-5};
    v.in_place = true;
    add(cases, v, "b=bf16.n,c=bf16.n", LIST(960, 1920), LIST(1504, 2048), LIST(736, 1024));
}

static void add_scaled(struct cases *cases)
{
    static const float alphas[] = {0.5f, 1, 2}, betas[] = {0, 0.5f, 1, 1.5f};
    for (int i = 0; i < 24; i++) {
        const bool device = i >= 12;
        struct variant v = {.id = device ? "T5 scaled add in place, device scalars"
                                         : "T5 scaled add in place, host scalars",
                            .in_place = true,
                            .seed = 42,
                            .eps = 1e-4,
                            .alpha = alphas[i % 3],
                            .beta = betas[i / 3 % 4]};
        char key[96];
        snprintf(key, sizeof key, "b=bf16.n,c=bf16.n,alpha=%s,beta=%s",
                 device         ? "device"
                 : v.alpha == 1 ? "one"
                                : "host",
                 device        ? "device"
                 : v.beta == 1 ? "one"
                               : "host");
        add(cases, v, key, LIST(480, 960), LIST(512, 1024), LIST(256, 768));
    }
}

/* A is the transpose of the gradient of the logits, (rows, vocabulary); alpha the gradient of the loss, for
 * the mean divided by the number of rows that count. */
static void add_cross_entropy(struct cases *cases)
{
    for (int i = 0; i < 6; i++) {
        const int rows = 8 + i / 2 * 8;
        const struct variant v = {.id = rows == 24 ? "T6 cross-entropy dW, K 16 then 8"
                                                   : "T6 cross-entropy dW, K 8 or 16",
                                  .chunk = 16,
                                  .scale_b = 1,
                                  .alpha = i % 2 ? 0.7f : 0.7f / (float)rows,
                                  .eps = 1e-4};
        add(cases, v, CHUNKED "alpha=device", LIST(32000, 50264, 128256), LIST(768, 1024), LIST(rows));
    }
    for (int i = 0; i < 4; i++) {
        const struct variant v = {.id = "T7 cross-entropy dW, ignored rows",
                                  .chunk = i / 2 ? 256 : 1024,
                                  .ignored = true,
                                  .scale_b = 1,
                                  .alpha = i % 2 ? 0.7f : 0.7f / 819,
                                  .seed = 42,
                                  .eps = 1e-4};
        add(cases, v, CHUNKED "alpha=device", LIST(2048), LIST(512), LIST(1024));
    }
}

#define WIDE "tile=128x256,cluster=1x1,sched=coop,"
#define SQUARE "tile=128x128,cluster=1x1,sched=coop,"
#define E4M3 "a=e4m3.k,b=e4m3.k,"
#define E5M2 "a=e5m2.k,b=e5m2.k,"
static const char *const benchmark_keys[] = {
    WIDE "d=bf16.n",
    WIDE "c=bf16.n,tiles=dynamic", /* these two: permuted batches */
    WIDE "a=f16.k,b=f16.k,d=f16.n",
    WIDE "d=bf16.n",
    WIDE "d=f32.n",
    WIDE "d=f16.n",
    SQUARE E4M3 "d=bf16.n",
    SQUARE E5M2 "d=bf16.n",
    SQUARE E4M3 "d=e4m3.n",
    WIDE E4M3 "d=bf16.n,fp8acc=fast",
    WIDE E5M2 "d=f32.n,fp8acc=fast",
    WIDE E4M3 "d=f16.n,c=bf16.n,fp8acc=fast",
    WIDE "d=e4m3.n",
    WIDE "d=e5m2.n",
    WIDE "c=bf16.n",
    WIDE "c=f32.n",
    WIDE "c=f16.n",
    WIDE "c=bf16.m",
    WIDE "a=bf16.m",
    WIDE "b=bf16.n",
    WIDE "d=bf16.m",
    WIDE "a=bf16.m,b=bf16.n,c=bf16.m,d=bf16.m",
    WIDE "tiles=once",
    WIDE "tiles=dynamic",
    "sched=pingpong",
    "sched=pingpong,tiles=dynamic",
};

static void add_benchmark(struct cases *cases)
{
    for (size_t i = 0; i < sizeof benchmark_keys / sizeof benchmark_keys[0]; i++) {
        const char *const key = benchmark_keys[i];
        const int size = i < 2 ? 1024 : 4096;
        struct variant v = {.id = "7.2 functional matrix", .batch = i < 2 ? 3 : 1, .permuted = i < 2};
        v.benchmark = true;
        v.scale_a = v.scale_c = 1 / sqrtf((float)size);
        v.beta = strstr(key, "c=") ? 1 : 0;
        v.eps = strstr(key, "a=e") ? 1e-4 : 1e-5;
        add(cases, v, key, LIST(size), LIST(size), LIST(size));
    }
}

static void add_majors(struct cases *cases)
{
    for (int i = 0; i < 16; i++) {
        const struct variant v = {.id = i / 8 ? "7.4 majors, swap_ab" : "7.4 majors", .eps = 1e-5};
        char key[96];
        snprintf(key, sizeof key, "a=bf16.%c,b=bf16.%c,d=bf16.%c,swap_ab=%s", i & 1 ? 'm' : 'k',
                 i & 2 ? 'n' : 'k', i & 4 ? 'm' : 'n', i & 8 ? "yes" : "no");
        add(cases, v, key, LIST(960), LIST(1504, 2048), LIST(736, 1024));
    }
}

/* Each extent empty, for D = A B^T, D = A B^T + beta C and the same in place. */
static void add_empty(struct cases *cases)
{
    for (int i = 0; i < 18; i++) {
        const int op = i / 3 % 3;
        struct variant v = {.id = "7.4 empty extents", .choose = i >= 9, .batch = 1, .eps = 1e-5};
        v.key = parse(op ? "c=bf16.n,beta=host" : "");
        v.m = i % 3 == 0 ? 0 : 960;
        v.n = i % 3 == 1 ? 0 : 1504;
        v.k = i % 3 == 2 ? 0 : 736;
        v.alpha = 1;
        v.beta = op ? 0.7f : 0;
        v.in_place = op == 2;
        push(cases, v);
    }
}

static void add_all(struct cases *cases)
{
    add_linear_and_add(cases, false);
    add_linear_and_add(cases, true);
    add_scaled(cases);
    add_cross_entropy(cases);
    add_benchmark(cases);
    add_majors(cases);
    add_empty(cases);
}

static void add_key(struct cases *cases, const struct gj_key *key)
{
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(key, text, sizeof text);
    for (int i = 0; i < cases->num_keys; i++)
        if (strcmp(cases->keys[i], text) == 0)
            return;
    if (cases->num_keys == KEYS_MAX)
        abort();
    memcpy(cases->keys[cases->num_keys++], text, sizeof text);
}

static void collect_keys(struct cases *cases, int num_sms)
{
    const struct gj_key chunked[] = {parse(chunk_first), parse(chunk_middle), parse(chunk_last)};
    gj_error *error = NULL;
    for (int i = 0; i < 3; i++)
        add_key(cases, &chunked[i]);
    for (int i = 0; i < cases->num_variants; i++) {
        const struct variant *const v = &cases->variants[i];
        struct gj_key key = v->key;
        if (v->choose)
            must(gj_key_choose(&v->key, v->m, v->n, v->k, v->batch, num_sms, &key, &error), error, v->id);
        add_key(cases, &key);
    }
}

static int list_keys(const struct cases *cases)
{
    int refused = 0;
    for (int i = 0; i < cases->num_keys; i++) {
        const struct gj_key key = parse(cases->keys[i]);
        gj_error *error = NULL;
        const enum gj_status status = gj_key_check(&key, &error);
        printf("%s %s\n", gj_status_name(status), cases->keys[i]);
        refused += status != GJ_OK;
        gj_error_free(&error);
    }
    return refused != 0;
}

static void *compile_keys(void *pointer)
{
    struct cases *const cases = pointer;
    int i;
    while ((i = atomic_fetch_add(&cases->next_key, 1)) < cases->num_keys) {
        const struct gj_key key = parse(cases->keys[i]);
        gj_kernel *kernel = NULL;
        gj_error *error = NULL;
        must(gj_kernel_get(cases->rig.context, &key, 0, &kernel, &error), error, cases->keys[i]);
    }
    return NULL;
}

/* All kernels at once, so that the launches only find them. */
static void compile_all(struct cases *cases)
{
    pthread_t threads[JOBS];
    const double start = gj_clock_ms();
    for (int i = 0; i < JOBS; i++)
        if (pthread_create(&threads[i], NULL, compile_keys, cases) != 0)
            exit(1);
    for (int i = 0; i < JOBS; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "%d kernels ready after %.1f s\n", cases->num_keys, (gj_clock_ms() - start) / 1000);
}

/* A (batch, rows, columns) operand at `data`, columns contiguous or (other) rows; NaN throughout. */
static struct operand place(struct cases *cases, void *data, size_t capacity, enum gj_dtype dtype, bool other,
                            const int extents[3], int gap)
{
    gj_error *error = NULL;
    const int inner = extents[other ? 1 : 2], lines = extents[other ? 2 : 1];
    const int64_t ld = (int64_t)(inner > 16 ? inner : 16) * (gap > 0 ? gap : 1);
    const struct operand operand = {.data = data,
                                    .batch_stride = (lines > 1 ? lines : 1) * ld,
                                    .row_stride = other ? 1 : ld,
                                    .column_stride = other ? ld : 1,
                                    .dtype = (int)dtype};
    size_t bytes = (size_t)(extents[0] * operand.batch_stride) * gj_dtype_bytes(dtype);
    if (bytes > capacity)
        abort();
    if (bytes < UNTOUCHED_BYTES)
        bytes = UNTOUCHED_BYTES;
    must(gj_device_fill(cases->rig.device, data, 0xff, bytes, &error), error, "poison");
    return operand;
}

static void fill(struct cases *cases, const struct operand *operand, const int extents[3], float scale,
                 unsigned seed, bool ignored)
{
    const bool other = operand->row_stride == 1;
    int inner = extents[other ? 1 : 2], lines = extents[0] * extents[other ? 2 : 1], dtype = operand->dtype;
    int zeros = ignored;
    long long ld = other ? operand->column_stride : operand->row_stride;
    void *data = operand->data;
    void *arguments[] = {&data, &lines, &inner, &ld, &dtype, &scale, &seed, &zeros};
    if (lines > 0 && inner > 0)
        rig_launch(&cases->rig, cases->fill_lines, 1024, 1, 1, 256, 1, arguments);
}

static struct judged make_operands(struct cases *cases, const struct variant *v)
{
    const int a[] = {v->batch, v->m, v->k}, b[] = {v->batch, v->n, v->k}, d[] = {v->batch, v->m, v->n};
    const struct gj_key *const key = &v->key;
    const bool has_c = key->c.dtype != GJ_DTYPE_NONE;
    struct judged p = {.m = v->m, .n = v->n, .k = v->k, .alpha = v->alpha, .beta = v->beta};
    const float scalars[] = {v->alpha, v->beta};
    gj_error *error = NULL;
    must(gj_device_write(cases->rig.device, cases->scalars, scalars, sizeof scalars, &error), error,
         "scalars");
    p.a = place(cases, cases->a, IN_BYTES, key->a.dtype, key->a.major == GJ_MAJOR_M, a, v->gap_a);
    p.b = place(cases, cases->b, IN_BYTES, key->b.dtype, key->b.major == GJ_MAJOR_N, b, v->gap_b);
    p.d = place(cases, cases->d, OUT_BYTES, key->d.dtype, key->d.major == GJ_MAJOR_M, d, 1);
    fill(cases, &p.a, a, v->scale_a, 4 * v->seed + 1, v->ignored);
    fill(cases, &p.b, b, v->scale_b, 4 * v->seed + 2, false);
    if (has_c) {
        p.c = place(cases, cases->c, IN_BYTES, key->c.dtype, key->c.major == GJ_MAJOR_M, d, 1);
        fill(cases, &p.c, d, v->scale_c, 4 * v->seed + 3, false);
    }
    if (v->in_place && v->beta != 0) /* with beta 0, D stays NaN: C must not be read */
        fill(cases, &p.d, d, v->scale_c, 4 * v->seed + 3, false);
    p.worst = cases->worst;
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
    if ((size_t)v->m * (size_t)v->n * 4 > OUT_BYTES)
        abort();
    for (int at = 0; at < v->k; at += v->chunk) {
        const bool last = at + v->chunk >= v->k;
        const struct gj_key key = parse(last ? chunk_last : at > 0 ? chunk_middle : chunk_first);
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
    struct gj_gemm_args args = {.m = v->m,
                                .n = v->n,
                                .k = v->k,
                                .batch = v->batch,
                                .d = tensor_of(&p->d),
                                .alpha = v->alpha,
                                .beta = v->beta,
                                .alpha_device = cases->scalars,
                                .beta_device = cases->scalars + 1,
                                .batch_order = v->permuted ? cases->order : NULL};
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
    struct {
        float out, pt, bound;
        uint32_t touched;
    } worst;
    must(gj_device_fill(cases->rig.device, cases->worst, 0, sizeof worst, &error), error, "result");
    if (v->m > 0 && v->n > 0) {
        void *arguments[] = {p};
        rig_launch(&cases->rig, cases->judge, (unsigned)(v->n + 63) / 64, (unsigned)(v->m + 63) / 64,
                   (unsigned)v->batch, 16, 16, arguments);
    } else {
        uint64_t words = UNTOUCHED_BYTES / 4;
        uint32_t *touched = cases->worst + 3;
        void *arguments[] = {&cases->d, &cases->partial, &words, &touched};
        must(gj_device_fill(cases->rig.device, cases->partial, 0xff, UNTOUCHED_BYTES, &error), error,
             "poison");
        rig_launch(&cases->rig, cases->rig.differing_words, 132, 1, 1, 256, 1, arguments);
    }
    must(gj_device_sync(cases->rig.device, WATCHDOG_MS, &error), error, v->id);
    must(gj_device_read(cases->rig.device, &worst, cases->worst, sizeof worst, &error), error, "result");
    if (worst.touched != 0 || !isfinite(worst.out) || !isfinite(worst.pt))
        return INFINITY;
    const double ratio = (double)worst.out / (2 * (double)worst.pt + v->eps);
    return v->benchmark ? fmax(ratio, (double)worst.bound) : ratio;
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
             "wrong element");
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

static void open_cases(struct cases *cases, const char *reference, const char *cache_dir)
{
    static const int32_t order[] = {2, 0, 1};
    struct rig *const rig = &cases->rig;
    gj_error *error = NULL;
    rig_open(rig, reference, cache_dir);
    must_cuda(rig, rig->driver->cuLibraryGetKernel_fn(&cases->fill_lines, rig->library, "fill_lines"),
              "fill_lines");
    must_cuda(rig, rig->driver->cuLibraryGetKernel_fn(&cases->judge, rig->library, "judge"), "judge");
    cases->a = rig_alloc(rig, IN_BYTES);
    cases->b = rig_alloc(rig, IN_BYTES);
    cases->c = rig_alloc(rig, IN_BYTES);
    cases->d = rig_alloc(rig, OUT_BYTES);
    cases->partial = rig_alloc(rig, OUT_BYTES);
    cases->scalars = rig_alloc(rig, 2 * sizeof(float));
    cases->order = rig_alloc(rig, sizeof order);
    cases->worst = rig_alloc(rig, 4 * sizeof(uint32_t));
    must(gj_device_write(rig->device, cases->order, order, sizeof order, &error), error, "order");
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"reference", 1, NULL, 'r'},
                                          {"cache-dir", 1, NULL, 'c'},
                                          {"commit", 1, NULL, 'g'},
                                          {"list", 0, NULL, 'l'},
                                          {NULL, 0, NULL, 0}};
    static struct cases cases;
    const char *reference = "tests/gpu/reference.cu", *cache_dir = NULL, *commit = "unknown";
    bool list = false;
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'r')
            reference = optarg;
        else if (c == 'c')
            cache_dir = optarg;
        else if (c == 'g')
            commit = optarg;
        else if (c == 'l')
            list = true;
        else
            return 2;
    }
    add_all(&cases);
    if (!list)
        open_cases(&cases, reference, cache_dir);
    collect_keys(&cases, list ? 0 : cases.rig.gpu.num_sms);
    if (list)
        return list_keys(&cases);
    compile_all(&cases);
    rig_print_setting(&cases.rig, commit);
    test_judge(&cases);
    const int failed = run_all(&cases);
    rig_close(&cases.rig);
    return failed == 0 ? 0 : 1;
}
