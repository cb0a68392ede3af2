/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of fused epilogues against f64, and quack's cases of them by its own rule.
 *
 * Functions: A B^T is exactly known (fill_terms), once random of about normal times 2.5, once with every
 * bf16 value as the argument; errors count where |x| <= 20. Cases: max|out - ref| < 2 max|pt - ref| + eps
 * with ref in f64 from the same rounded operands and pt what separate bf16 operations give. */
#include "epilogues.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "epilogues_list.h"
#include "kernels.h"

#define PATTERNS 65536
#define X_MAX 20.0f
#define OPERAND_BYTES ((size_t)64 << 20)
#define SPREAD 2.5f
#define UP_VALUE 1.5f /* beside every gate of the sweep */

/* Laid out as in reference.cu and epilogues.cu. */
struct operand {
    void *data;
    int64_t batch_stride, row_stride, column_stride;
    int dtype;
};

enum { FIRST, SECOND, POST, NUM_OUTPUTS }; /* D or the gradient of gates; that of ups; PostAct */

struct statistics {
    float error, plain_error, relative, scaled;
    uint32_t lost;
};

struct measured {
    struct operand c, d, p;
    const double *exact;
    const float *plain;
    const void *bias;
    int m, n, op, act, gate;
    float x_max;
    struct statistics *result;
};

enum data { NORMAL, TERMS, SWEEP };

struct error_test {
    struct rig *rig;
    CUlibrary library;
    CUkernel fill_lines, fill_terms, fill_patterns, multiply_both, measure;
    void *a, *b, *c, *d, *p, *bias;
    double *exact;
    float *plain;
    struct statistics *result;
    struct variants variants;
    struct gj_key keys[VARIANTS_MAX];
    gj_kernel *kernels[VARIANTS_MAX];
};

static bool is_backward(const struct gj_key *key)
{
    return key->op == GJ_OP_DACT || key->op == GJ_OP_DGATED;
}

static void poison(struct error_test *test, void *memory, uint64_t elements, int dtype)
{
    gj_error *error = NULL;
    const size_t bytes = elements * gj_dtype_bytes((enum gj_dtype)dtype);
    if (bytes > OPERAND_BYTES)
        abort();
    must(gj_device_fill(test->rig->device, memory, 0xff, bytes, &error), error, "poison");
}

static void fill_lines(struct error_test *test, const struct operand *x, int lines, int inner, float scale,
                       uint32_t seed)
{
    void *data = x->data;
    int dtype = x->dtype, ignored = 0;
    int64_t ld = x->row_stride;
    void *arguments[] = {&data, &lines, &inner, &ld, &dtype, &scale, &seed, &ignored};
    rig_launch(test->rig, test->fill_lines, 1024, 1, 1, 256, 1, arguments);
}

static struct operand rows_of(void *data, int64_t ld, enum gj_dtype dtype)
{
    return (struct operand){data, 0, ld, 1, (int)dtype};
}

/* Operands A, B and C of a variant. */
static void fill_operands(struct error_test *test, const struct variant *v, enum data data, struct operand *a,
                          struct operand *b, struct operand *c)
{
    const bool back = is_backward(&v->key);
    const int c_columns = v->key.op == GJ_OP_DGATED ? 2 * v->n : v->n;
    *a = rows_of(test->a, (int64_t)v->k * v->gap_a, GJ_DTYPE_BF16);
    *b = rows_of(test->b, v->k, GJ_DTYPE_BF16);
    *c = rows_of(test->c, c_columns, v->key.c.dtype);
    int m = v->m, n = v->n;
    if (data == NORMAL) {
        poison(test, test->a, (uint64_t)m * (uint64_t)a->row_stride, a->dtype);
        fill_lines(test, a, m, v->k, 1, 1);
        fill_lines(test, b, n, v->k, 1 / sqrtf((float)v->k), 2);
    } else {
        /* 3: no pattern, the same gradient everywhere */
        int step = data == TERMS ? 0 : back ? 3 : v->function->gated ? 2 : 1;
        float fixed = back ? 1 : UP_VALUE, scale = SPREAD;
        uint32_t seed = 5;
        void *arguments[] = {&test->a, &test->b, &m, &n, &step, &fixed, &scale, &seed};
        rig_launch(test->rig, test->fill_terms, 1024, 1, 1, 256, 1, arguments);
    }
    if (c->dtype == 0)
        return;
    poison(test, test->c, (uint64_t)m * (uint64_t)c_columns, c->dtype);
    if (data == SWEEP) {
        int columns = c_columns, step = v->function->gated ? 2 : 1;
        float fixed = UP_VALUE;
        void *arguments[] = {&test->c, &m, &columns, &c->dtype, &step, &fixed};
        rig_launch(test->rig, test->fill_patterns, 1024, 1, 1, 256, 1, arguments);
    } else {
        fill_lines(test, c, m, c_columns, data == NORMAL ? 1 : SPREAD, 3);
    }
}

static struct gj_tensor tensor_of(const struct operand *operand)
{
    if (operand->dtype == 0)
        return (struct gj_tensor){0};
    return (struct gj_tensor){operand->data, operand->row_stride, 0};
}

static void launch_variant(struct error_test *test, int i, const struct operand *a, const struct operand *b,
                           const struct measured *p)
{
    const struct variant *const v = &test->variants.list[i];
    gj_error *error = NULL;
    const struct gj_gemm_args args = {.m = v->m,
                                      .n = v->n,
                                      .k = v->k,
                                      .batch = 1,
                                      .a = tensor_of(a),
                                      .b = tensor_of(b),
                                      .c = tensor_of(&p->c),
                                      .d = tensor_of(&p->d),
                                      .p = tensor_of(&p->p),
                                      .bias = p->bias};
    must(gj_launch(test->kernels[i], &args, test->rig->stream, &error), error, v->id);
}

/* Runs a variant and measures it; results of earlier runs stay when `more`. */
static void run(struct error_test *test, int i, enum data data, bool more)
{
    const struct variant *const v = &test->variants.list[i];
    const struct gj_key *const key = &v->key;
    const int d_columns = key->op == GJ_OP_DGATED ? 2 * v->n : v->n;
    const int p_columns = key->op == GJ_OP_GATED ? v->n / 2 : v->n;
    gj_error *error = NULL;
    struct operand a, b;
    struct measured p = {.d = rows_of(test->d, d_columns, key->d.dtype),
                         .p = rows_of(test->p, p_columns, key->p.dtype),
                         .exact = test->exact,
                         .plain = test->plain,
                         .m = v->m,
                         .n = v->n,
                         .op = (int)key->op,
                         .act = (int)key->act,
                         .gate = (int)key->gate,
                         .x_max = data == NORMAL ? INFINITY : X_MAX,
                         .result = test->result};
    fill_operands(test, v, data, &a, &b, &p.c);
    if (key->bias != GJ_BIAS_NONE) {
        const struct operand bias = rows_of(test->bias, v->n, GJ_DTYPE_BF16);
        fill_lines(test, &bias, 1, v->n, 1, 4);
        p.bias = test->bias;
    }
    poison(test, test->d, (uint64_t)v->m * (uint64_t)d_columns, p.d.dtype);
    poison(test, test->p, (uint64_t)v->m * (uint64_t)p_columns, p.p.dtype);
    launch_variant(test, i, &a, &b, &p);
    int m = v->m, n = v->n, k = v->k;
    if ((size_t)m * (size_t)n * sizeof(double) > OPERAND_BYTES)
        abort();
    void *arguments[] = {&a, &b, &m, &n, &k, &test->exact, &test->plain};
    rig_launch(test->rig, test->multiply_both, (unsigned)(n + 63) / 64, (unsigned)(m + 63) / 64, 1, 16, 16,
               arguments);
    if (!more)
        must(gj_device_fill(test->rig->device, test->result, 0, NUM_OUTPUTS * sizeof *test->result, &error),
             error, "result");
    void *measured[] = {&p};
    rig_launch(test->rig, test->measure, 1024, 1, 1, 256, 1, measured);
}

static void read_result(struct error_test *test, const struct variant *v,
                        struct statistics result[NUM_OUTPUTS])
{
    gj_error *error = NULL;
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(&v->key, text, sizeof text);
    must(gj_device_sync(test->rig->device, WATCHDOG_MS, &error), error, text);
    must(gj_device_read(test->rig->device, result, test->result, NUM_OUTPUTS * sizeof *result, &error), error,
         text);
}

static float half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent == 31  ? mantissa ? NAN : INFINITY
                       : exponent == 0 ? ldexpf((float)mantissa, -24)
                                       : ldexpf((float)(mantissa + 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}

/* Element i of an output of f32, f16 or bf16. */
static float read_element(struct error_test *test, const void *data, enum gj_dtype dtype, int i)
{
    const size_t bytes = gj_dtype_bytes(dtype);
    gj_error *error = NULL;
    uint32_t bits = 0;
    float value;
    must(gj_device_read(test->rig->device, &bits, (const char *)data + (size_t)i * bytes, bytes, &error),
         error, "element");
    if (dtype == GJ_DTYPE_F16)
        return half_value((uint16_t)bits);
    bits = dtype == GJ_DTYPE_F32 ? bits : bits << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The row of one output; returns whether it keeps its bound. */
static bool print_output(struct error_test *test, const struct variant *v, const struct statistics *s,
                         int which)
{
    static const uint16_t specials[] = {0x7fc0, 0x7f80, 0xff80, 0x8000};
    const bool post = which == POST, wide = !post && v->function->gated;
    const enum gj_dtype dtype = post ? v->key.p.dtype : v->key.d.dtype;
    const double bound = post ? v->function->forward : v->function->backward;
    const char *const output = post ? "PostAct" : which == SECOND ? "gradient of up" : "gradient of x";
    const bool kept = (double)s->scaled <= bound;
    printf("| %s | %s | %s | %s | %.2e | %.2e | %.2e | %.0e%s | %u |", v->function->name, v->id, output,
           gj_dtype_name(dtype), (double)s->error, (double)s->relative, (double)s->scaled, bound,
           kept ? "" : " **exceeded**", s->lost);
    for (int i = 0; i < 4; i++)
        printf(" %g |", (double)read_element(test, post ? test->p : test->d, dtype,
                                             wide ? 2 * specials[i] + (which == SECOND) : specials[i]));
    printf("\n");
    return kept;
}

/* One function in one direction: random arguments, then every bf16 value. */
static size_t run_function(struct error_test *test, int i)
{
    struct variant *const v = &test->variants.list[i];
    struct statistics result[NUM_OUTPUTS];
    const bool pairs = v->key.op == GJ_OP_GATED, back = is_backward(&v->key);
    if (v->none || test->kernels[i] == NULL) {
        printf("| %s | %s | **no kernel** | | | | | | | | | | |\n", v->function->name, v->id);
        return 1;
    }
    v->m = 8;
    v->n = 2 * PATTERNS;
    run(test, i, TERMS, false);
    v->m = 1;
    v->n = pairs ? 2 * PATTERNS : PATTERNS;
    run(test, i, SWEEP, true);
    read_result(test, v, result);
    size_t failed = !print_output(test, v, &result[POST], POST);
    if (back) {
        failed += !print_output(test, v, &result[FIRST], FIRST);
        if (v->function->gated)
            failed += !print_output(test, v, &result[SECOND], SECOND);
    } else if (!((double)result[FIRST].scaled <= EXACT && (double)result[SECOND].scaled <= EXACT)) {
        printf("| %s | %s | **D is not A B^T** | | | %.2e | | | | | | | |\n", v->function->name, v->id,
               (double)fmaxf(result[FIRST].scaled, result[SECOND].scaled));
        failed++;
    }
    return failed != 0;
}

/* Left side of the rule over the right, the larger of D's and PostAct's. */
static double judge(struct error_test *test, const struct variant *v)
{
    struct statistics r[NUM_OUTPUTS];
    read_result(test, v, r);
    if (r[FIRST].lost + r[SECOND].lost + r[POST].lost > 0)
        return INFINITY;
    const double d = fmax((double)r[FIRST].error, (double)r[SECOND].error);
    const double d_pt = fmax((double)r[FIRST].plain_error, (double)r[SECOND].plain_error);
    return fmax(d / (2 * d_pt + v->eps_d),
                (double)r[POST].error / (2 * (double)r[POST].plain_error + v->eps_p));
}

static double run_case(struct error_test *test, int i)
{
    const struct variant *const v = &test->variants.list[i];
    double ratio = INFINITY;
    if (!v->none && test->kernels[i] != NULL) {
        run(test, i, NORMAL, false);
        ratio = judge(test, v);
    }
    if (!(ratio < 1)) {
        char text[GJ_KEY_TEXT_MAX];
        gj_key_format(&v->key, text, sizeof text);
        fprintf(stderr, "FAILED %s: %d x %d x %d, %s: %g\n", v->id, v->m, v->n, v->k, text, ratio);
    }
    return ratio;
}

/* A row per case. */
static size_t run_cases(struct error_test *test, int i)
{
    size_t failed = 0;
    printf("\n| case | variants | passed | worst | in another config |\n|---|---|---|---|---|\n");
    while (i < test->variants.count) {
        const char *const id = test->variants.list[i].id;
        int variants = 0, passed = 0, moved = 0;
        double worst = 0;
        for (; i < test->variants.count && strcmp(test->variants.list[i].id, id) == 0; i++) {
            const double ratio = run_case(test, i);
            variants++;
            passed += ratio < 1;
            moved += test->variants.list[i].moved;
            worst = fmax(worst, ratio);
        }
        printf("| %s | %d | %d | %.3f | %d |\n", id, variants, passed, worst, moved);
        fflush(stdout);
        failed += (size_t)(variants - passed);
    }
    printf("\n");
    return failed;
}

static void open_test(struct error_test *test, const char *path)
{
    struct rig *const rig = test->rig;
    test->library = rig_load(rig, path, "measure");
    test->fill_lines = rig_kernel(rig, test->library, "fill_lines");
    test->fill_terms = rig_kernel(rig, test->library, "fill_terms");
    test->fill_patterns = rig_kernel(rig, test->library, "fill_patterns");
    test->multiply_both = rig_kernel(rig, test->library, "multiply_both");
    test->measure = rig_kernel(rig, test->library, "measure");
    void **const operands[] = {&test->a, &test->b, &test->c, &test->d, &test->p, &test->bias};
    for (int i = 0; i < 6; i++)
        *operands[i] = rig_alloc(rig, OPERAND_BYTES);
    test->exact = rig_alloc(rig, OPERAND_BYTES);
    test->plain = rig_alloc(rig, OPERAND_BYTES);
    test->result = rig_alloc(rig, NUM_OUTPUTS * sizeof *test->result);
}

static void close_test(struct error_test *test)
{
    void *const memory[] = {test->a,    test->b,     test->c,     test->d,     test->p,
                            test->bias, test->exact, test->plain, test->result};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        gj_device_free(test->rig->device, memory[i]);
    test->rig->driver->cuLibraryUnload_fn(test->library);
}

/* The judge must notice one element of PostAct that is wrong or was not written. */
static void test_judge(struct error_test *test, int i)
{
    static const uint16_t wrong[] = {0x4280 /* 64 */, 0xffff};
    gj_error *error = NULL;
    if (i >= test->variants.count || test->variants.list[i].none || test->kernels[i] == NULL)
        return;
    run(test, i, NORMAL, false);
    struct variant *const v = &test->variants.list[i];
    struct measured p = {.p = rows_of(test->p, v->n, v->key.p.dtype),
                         .exact = test->exact,
                         .plain = test->plain,
                         .m = v->m,
                         .n = v->n,
                         .op = (int)v->key.op,
                         .act = (int)v->key.act,
                         .x_max = INFINITY,
                         .result = test->result};
    if (v->key.op != GJ_OP_ACT)
        return;
    for (int j = 0; j < 2; j++) {
        void *arguments[] = {&p};
        must(gj_device_sync(test->rig->device, WATCHDOG_MS, &error), error, v->id);
        must(gj_device_write(test->rig->device, (uint16_t *)test->p + (size_t)v->m * (size_t)v->n - 1,
                             &wrong[j], 2, &error),
             error, v->id);
        must(gj_device_fill(test->rig->device, test->result, 0, NUM_OUTPUTS * sizeof *test->result, &error),
             error, "result");
        rig_launch(test->rig, test->measure, 1024, 1, 1, 256, 1, arguments);
        if (judge(test, v) < 1) {
            fprintf(stderr, "the judge is blind\n");
            exit(1);
        }
    }
}

size_t epilogues_error(struct rig *rig, const struct epilogues_options *options)
{
    static struct error_test test;
    size_t failed = 0;
    test.rig = rig;
    open_test(&test, options->epilogues);
    test.variants.filter = options->filter;
    variants_add_functions(&test.variants);
    const int num_functions = test.variants.count;
    if (!options->small)
        variants_add_cases(&test.variants);
    for (int i = 0; i < test.variants.count; i++)
        test.keys[i] = test.variants.list[i].key;
    kernels_get(rig, test.keys, test.kernels, (size_t)test.variants.count, options->jobs);
    test_judge(&test, num_functions);
    printf("Where |x| <= %g: largest error, relative to |reference| above 1e-3, and over max(1, |x|) max(1, "
           "|up|) max(1, |gradient|).\n\n",
           (double)X_MAX);
    printf(
        "| function | operation | output | type | absolute | relative | scaled | bound | not finite though "
        "the reference is | NaN | +Inf | -Inf | -0 |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < num_functions; i++)
        failed += run_function(&test, i);
    failed += run_cases(&test, num_functions);
    close_test(&test);
    return failed;
}
