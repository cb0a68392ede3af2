/* SPDX-License-Identifier: Apache-2.0 */
/* What takes much memory or a graph: extents and offsets past 2^31 elements and 2^32 bytes, and captured
 * launches replayed while device scalars change. Small-integer operands, exact compares. Prints Markdown. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"

#define SEED_A 3u
#define SEED_B 5u
#define SEED_C 7u

/* A single problem in one layout; every operand packed but for D's and A's leading dimension. */
struct extreme {
    const char *what, *key;
    int m, n, k, batch;
    int64_t ld_a, ld_d; /* 0: packed */
};

static const struct extreme extremes[] = {
    {"D of 2.7e9 elements (DeepGEMM#22)", "", 73728, 36864, 128, 1, 0, 0},
    {"the same, 8-bit operands", "a=e4m3.k,b=e4m3.k,tile=128x128,sched=coop", 73728, 36864, 128, 1, 0, 0},
    {"the same, f32 C in place, dynamic tiles", "c=f32.n,d=f32.n,beta=host,tiles=dynamic", 73728, 36864, 128,
     1, 0, 0},
    {"the same, m-major D", "d=bf16.m", 73728, 36864, 128, 1, 0, 0},
    {"A of 2.4e9 elements", "d=f32.n", 65664, 64, 36864, 1, 0, 0},
    {"A m-major of 2.4e9 elements", "a=bf16.m,d=f32.n", 65664, 64, 36864, 1, 0, 0},
    {"B of 2.4e9 elements", "d=f32.n", 64, 65664, 36864, 1, 0, 0},
    {"B of 2.7e9 elements in 40 batches", "tiles=dynamic", 64, 8192, 8192, 40, 0, 0},
    {"rows of A and D 2^27 elements apart", "", 72, 200, 264, 1, (int64_t)1 << 27, (int64_t)1 << 27},
    {"swap_ab, D of 2.7e9 elements", "swap_ab=yes,tile=256x64,cluster=1x1,sched=coop", 73728, 36864, 128, 1,
     0, 0},
};

/* Writes a matrix whose lines are ld elements apart. */
static void fill(struct rig *rig, void *data, int batch, int rows, int columns, int64_t ld, bool by_column,
                 enum gj_dtype dtype, uint32_t seed)
{
    long long batch_stride = (by_column ? columns : rows) * ld, row_stride = by_column ? 1 : ld;
    long long column_stride = by_column ? ld : 1;
    int type = (int)dtype;
    void *arguments[] = {&data,       &batch,         &rows, &columns, &batch_stride,
                         &row_stride, &column_stride, &type, &seed};
    rig_launch(rig, rig->fill_matrix, 4096, 1, 1, 256, 1, arguments);
}

struct buffers {
    void *a, *b, *d;
    float *product;
    unsigned *wrong;
    size_t d_bytes;
};

static void run(struct rig *rig, const struct extreme *x)
{
    struct gj_key key;
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    must(gj_key_parse(x->key, &key, &error), error, x->what);
    must(gj_kernel_get(rig->context, &key, 0, &kernel, &error), error, x->what);
    const bool a_m = key.a.major == GJ_MAJOR_M, d_m = key.d.major == GJ_MAJOR_M;
    const bool has_c = key.c.dtype != GJ_DTYPE_NONE;
    const int64_t ld_a = x->ld_a ? x->ld_a : a_m ? x->m : x->k, ld_d = x->ld_d ? x->ld_d : d_m ? x->m : x->n;
    const int64_t a_batch = ld_a * (a_m ? x->k : x->m), d_batch = ld_d * (d_m ? x->n : x->m);
    const size_t d_elements = (size_t)(x->batch * d_batch);
    const size_t d_bytes = d_elements * gj_dtype_bytes(key.d.dtype);
    struct buffers at = {
        .a = rig_alloc(rig, (size_t)(x->batch * a_batch) * gj_dtype_bytes(key.a.dtype)),
        .b = rig_alloc(rig, (size_t)x->batch * (size_t)x->n * (size_t)x->k * gj_dtype_bytes(key.b.dtype)),
        .d = rig_alloc(rig, d_bytes),
        .product = rig_alloc(rig, (size_t)x->batch * (size_t)x->m * (size_t)x->n * 4),
        .wrong = rig_alloc(rig, 4),
    };
    fill(rig, at.a, x->batch, x->m, x->k, ld_a, a_m, key.a.dtype, SEED_A);
    fill(rig, at.b, x->batch, x->n, x->k, x->k, false, key.b.dtype, SEED_B);
    must(gj_device_fill(rig->device, at.d, 0xff, d_bytes, &error), error, "poison");
    must(gj_device_fill(rig->device, at.wrong, 0, 4, &error), error, "counter");
    if (has_c)
        fill(rig, at.d, x->batch, x->m, x->n, ld_d, d_m, key.d.dtype, SEED_C);
    int m = x->m, n = x->n, k = x->k, shared = 0, batch = x->batch, type = (int)key.d.dtype;
    uint32_t seed_a = SEED_A, seed_b = SEED_B, seed_c = SEED_C;
    void *product[] = {&at.product, &m, &n, &k, &shared, &seed_a, &seed_b};
    rig_launch(rig, rig->multiply, (unsigned)(n + 15) / 16, (unsigned)(m + 15) / 16, (unsigned)batch, 16, 16,
               product);
    struct gj_gemm_args args = {.m = m,
                                .n = n,
                                .k = k,
                                .batch = batch,
                                .a = {at.a, ld_a, a_batch},
                                .b = {at.b, k, (int64_t)n * k},
                                .d = {at.d, ld_d, d_batch},
                                .beta = -1};
    if (has_c)
        args.c = args.d;
    must(gj_launch(kernel, &args, rig->stream, &error), error, x->what);
    uint64_t count = d_elements, first = 0;
    long long batch_stride = d_batch, row_stride = d_m ? 1 : ld_d, column_stride = d_m ? ld_d : 1;
    float alpha = 1, beta = has_c ? -1 : 0;
    void *compare[] = {&at.d, &count, &first,        &at.product, &m,
                       &n,    &batch, &batch_stride, &row_stride, &column_stride,
                       &type, &alpha, &beta,         &seed_c,     &at.wrong};
    rig_launch(rig, rig->compare, 4096, 1, 1, 256, 1, compare);
    unsigned wrong = 1;
    must(gj_device_sync(rig->device, WATCHDOG_MS, &error), error, x->what);
    must(gj_device_read(rig->device, &wrong, at.wrong, 4, &error), error, x->what);
    printf("| %s | %s | %d x %d x %d x %d | %u |\n", x->what, x->key, batch, m, n, k, wrong);
    fflush(stdout);
    void *const memory[] = {at.a, at.b, at.d, at.product, at.wrong};
    for (int i = 0; i < 5; i++)
        gj_device_free(rig->device, memory[i]);
    if (wrong)
        exit(1);
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
    printf("| what | key | batch x M x N x K | wrong elements |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++)
        run(&rig, &extremes[i]);
    rig_close(&rig);
    return 0;
}
