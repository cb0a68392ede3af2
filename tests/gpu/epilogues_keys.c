/* SPDX-License-Identifier: Apache-2.0 */
/* A covering array over the fields that a fused epilogue depends on. */
#include "epilogues_keys.h"

#include <stdlib.h>
#include <string.h>

/* The fields, by the order in which they are covered. */
enum field {
    TILE_N,
    C,
    D,
    P,
    BIAS,
    A,
    B,
    CLUSTER,
    OP,
    SCALE,
    TILE_M,
    ACT,
    BETA,
    ALPHA,
    QUANT,
    GATE,
    FP8ACC,
    TILES,
    ACC,
    SCHED,
    SWAP_AB,
    NUM_FIELDS
};

static const int counts[NUM_FIELDS] = {
    [TILE_N] = 16, [C] = 11,   [D] = 11,     [P] = 11,     [BIAS] = 7, [A] = 6,     [B] = 6,
    [CLUSTER] = 6, [OP] = 5,   [SCALE] = 5,  [TILE_M] = 5, [ACT] = 4,  [BETA] = 4,  [ALPHA] = 3,
    [QUANT] = 3,   [GATE] = 3, [FP8ACC] = 3, [TILES] = 3,  [ACC] = 2,  [SCHED] = 2, [SWAP_AB] = 2,
};
#define VALUES_MAX 16
#define ATTEMPTS 800 /* completions of a pair before it counts as one that cannot occur */
#define CHOICES 12   /* accepted ones, of which the one that covers most is taken */

static const struct gj_format inputs[] = {{GJ_DTYPE_F16, GJ_MAJOR_K},  {GJ_DTYPE_F16, GJ_MAJOR_M},
                                          {GJ_DTYPE_BF16, GJ_MAJOR_K}, {GJ_DTYPE_BF16, GJ_MAJOR_M},
                                          {GJ_DTYPE_E4M3, GJ_MAJOR_K}, {GJ_DTYPE_E5M2, GJ_MAJOR_K}};
static const enum gj_dtype outputs[] = {GJ_DTYPE_F16, GJ_DTYPE_BF16, GJ_DTYPE_F32, GJ_DTYPE_E4M3,
                                        GJ_DTYPE_E5M2};
static const enum gj_act acts[] = {GJ_ACT_NONE, GJ_ACT_RELU, GJ_ACT_RELU_SQ, GJ_ACT_REGLU};
static const int rows[] = {64, 128, 192, 256, 320};
static const int clusters[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

/* Value 0: none; odd ones n-major. */
static struct gj_format output(int value)
{
    if (value == 0)
        return (struct gj_format){GJ_DTYPE_NONE, GJ_MAJOR_NONE};
    return (struct gj_format){outputs[(value - 1) / 2], value % 2 ? GJ_MAJOR_N : GJ_MAJOR_M};
}

static bool accepted(const int *values, struct gj_key *key)
{
    *key = gj_key_default();
    key->op = (enum gj_op)values[OP];
    key->act = acts[values[ACT]];
    key->a = inputs[values[A]];
    key->b = inputs[values[B]];
    if (key->b.major == GJ_MAJOR_M)
        key->b.major = GJ_MAJOR_N;
    key->c = output(values[C]);
    key->d = output(values[D]);
    key->p = output(values[P]);
    key->acc = values[ACC] ? GJ_DTYPE_F16 : GJ_DTYPE_F32;
    key->alpha = (enum gj_scalar_mode)(GJ_SCALAR_ONE + values[ALPHA]);
    key->beta = (enum gj_scalar_mode)values[BETA];
    key->fp8acc = (enum gj_fp8acc)values[FP8ACC];
    key->tile_m = rows[values[TILE_M]];
    key->tile_n = 16 * (values[TILE_N] + 1);
    key->cluster_m = clusters[values[CLUSTER]][0];
    key->cluster_n = clusters[values[CLUSTER]][1];
    key->sched = (enum gj_sched)values[SCHED];
    key->tiles = (enum gj_tiles)values[TILES];
    key->swap_ab = (enum gj_swap_ab)values[SWAP_AB];
    key->gate = (enum gj_gate)values[GATE];
    key->bias = (enum gj_bias)values[BIAS];
    key->scale = (enum gj_scale)values[SCALE];
    key->quant = (enum gj_quant)values[QUANT];
    return gj_key_check(key, NULL) == GJ_OK;
}

struct cover {
    struct gj_key *keys;
    size_t capacity, count;
    uint32_t state;
    unsigned char covered[NUM_FIELDS * VALUES_MAX][NUM_FIELDS * VALUES_MAX];
};

static int random_below(struct cover *cover, int count)
{
    cover->state = cover->state * 1664525u + 1013904223u;
    return (int)((uint64_t)(cover->state >> 8) * (uint64_t)count >> 24);
}

/* Gives a field that is not fixed a value from `first` on. */
static void steer(struct cover *cover, const int *fixed, int *values, enum field field, int first, int count)
{
    if (fixed[field] < 0)
        values[field] = first + random_below(cover, count);
}

/* f16 or bf16, n-major, three times out of four; else anything but none. */
static void steer_narrow(struct cover *cover, const int *fixed, int *values, enum field field)
{
    steer(cover, fixed, values, field, 1, 10);
    if (fixed[field] < 0 && random_below(cover, 4) > 0)
        values[field] = random_below(cover, 2) ? 3 : 1;
}

static void steer_operation(struct cover *cover, const int *fixed, int *values)
{
    const enum gj_op op = (enum gj_op)values[OP];
    const bool gated = op == GJ_OP_GATED || op == GJ_OP_DGATED;
    const bool back = op == GJ_OP_DACT || op == GJ_OP_DGATED;
    if (op == GJ_OP_GEMM)
        steer(cover, fixed, values, ACT, 0, 1);
    else
        steer(cover, fixed, values, ACT, gated ? 3 : 0, gated ? 1 : 3);
    steer(cover, fixed, values, GATE, gated ? 1 : 0, gated ? 2 : 1);
    steer(cover, fixed, values, P, op == GJ_OP_GEMM ? 0 : 1, op == GJ_OP_GEMM ? 1 : 10);
    if (back || op == GJ_OP_GEMM)
        steer(cover, fixed, values, D, 1, 10);
    if (gated && op != GJ_OP_GEMM) {
        steer_narrow(cover, fixed, values, P);
        if (back || random_below(cover, 2))
            steer_narrow(cover, fixed, values, D);
        if (fixed[SWAP_AB] < 0)
            values[SWAP_AB] = 0;
    }
    if (back)
        steer(cover, fixed, values, C, 1, 10);
    if (op == GJ_OP_DGATED) {
        steer_narrow(cover, fixed, values, C);
        if (fixed[D] < 0 && random_below(cover, 2))
            values[D] = values[C];
    }
    if (values[C] == 0 || back)
        steer(cover, fixed, values, BETA, values[C] == 0 ? 0 : 1, 1);
    else
        steer(cover, fixed, values, BETA, 1, 3);
}

/* Random values for the fields that are not fixed (-1), steered towards what can be accepted at all. */
static void complete(struct cover *cover, const int *fixed, int *values)
{
    for (int f = 0; f < NUM_FIELDS; f++)
        values[f] = fixed[f] >= 0 ? fixed[f] : random_below(cover, counts[f]);
    if (values[A] >= 4)
        steer(cover, fixed, values, B, 4, 2);
    else
        steer(cover, fixed, values, B, values[A] / 2 * 2, 2);
    if (fixed[A] < 0 && fixed[B] >= 0)
        values[A] = values[B] >= 4 ? 4 + random_below(cover, 2) : values[B] / 2 * 2 + random_below(cover, 2);
    steer(cover, fixed, values, FP8ACC, values[A] >= 4 ? 1 : 0, values[A] >= 4 ? 2 : 1);
    if (values[FP8ACC] == 1 || values[A] / 2 == 1)
        steer(cover, fixed, values, ACC, 0, 1);
    if (fixed[C] < 0 && (fixed[BETA] == 0 || random_below(cover, 2)))
        values[C] = 0;
    if (fixed[C] < 0 && fixed[BETA] > 0)
        values[C] = 1 + random_below(cover, 10);
    steer_operation(cover, fixed, values);
}

/* Marks the pairs of a key, or only counts those that are new. */
static int cover_pairs(struct cover *cover, const int *values, bool mark)
{
    int fresh = 0;
    for (int f = 0; f < NUM_FIELDS; f++) {
        for (int g = f + 1; g < NUM_FIELDS; g++) {
            unsigned char *const covered =
                &cover->covered[f * VALUES_MAX + values[f]][g * VALUES_MAX + values[g]];
            fresh += !*covered;
            if (mark)
                *covered = 1;
        }
    }
    return fresh;
}

/* Adds an accepted key with two given values, of several the one that covers most, if there is one. */
static void cover_pair(struct cover *cover, int op, enum field f, int a, enum field g, int b)
{
    int fixed[NUM_FIELDS], values[NUM_FIELDS], best[NUM_FIELDS], most = 0;
    struct gj_key key, best_key = gj_key_default();
    memset(fixed, -1, sizeof fixed);
    fixed[OP] = op;
    fixed[f] = a;
    fixed[g] = b;
    for (int attempt = 0, found = 0; attempt < ATTEMPTS && found < CHOICES; attempt++) {
        complete(cover, fixed, values);
        if (!accepted(values, &key))
            continue;
        found++;
        const int fresh = cover_pairs(cover, values, false);
        if (fresh <= most)
            continue;
        most = fresh;
        best_key = key;
        memcpy(best, values, sizeof best);
    }
    if (most == 0 || cover->count == cover->capacity)
        return;
    cover_pairs(cover, best, true);
    cover->keys[cover->count++] = best_key;
}

/* All pairs of fields that can occur together in one operation. */
static void cover_operation(struct cover *cover, int op)
{
    memset(cover->covered, 0, sizeof cover->covered);
    for (int f = 0; f < NUM_FIELDS; f++)
        for (int g = f + 1; g < NUM_FIELDS; g++)
            for (int a = 0; a < counts[f]; a++)
                for (int b = 0; b < counts[g]; b++)
                    if (f != OP && g != OP && !cover->covered[f * VALUES_MAX + a][g * VALUES_MAX + b])
                        cover_pair(cover, op, (enum field)f, a, (enum field)g, b);
}

size_t epilogues_covering(uint32_t seed, struct gj_key *keys, size_t capacity)
{
    struct cover *const cover = calloc(1, sizeof *cover);
    if (cover == NULL)
        abort();
    cover->keys = keys;
    cover->capacity = capacity;
    cover->state = seed;
    for (int op = 0; op < counts[OP]; op++)
        cover_operation(cover, op);
    const size_t count = cover->count;
    free(cover);
    return count;
}

static int distance(int a, int b)
{
    return abs(a - b);
}

bool epilogues_nearest(struct gj_key *key, bool *moved)
{
    enum { CAPACITY = 2048 };
    *moved = gj_key_check(key, NULL) != GJ_OK;
    if (!*moved)
        return true;
    struct gj_key *const keys = calloc(CAPACITY, sizeof *keys);
    if (keys == NULL)
        abort();
    size_t count = gj_keys_enumerate(key, keys, CAPACITY);
    count = count < CAPACITY ? count : CAPACITY;
    int least = -1;
    const struct gj_key wanted = *key;
    for (size_t i = 0; i < count; i++) {
        const struct gj_key *const k = &keys[i];
        const int away =
            distance(k->tile_m, wanted.tile_m) + distance(k->tile_n, wanted.tile_n) +
            100 * (k->sched != wanted.sched) +
            20 * (distance(k->cluster_m, wanted.cluster_m) + distance(k->cluster_n, wanted.cluster_n));
        if (least >= 0 && away >= least)
            continue;
        least = away;
        *key = *k;
    }
    free(keys);
    return least >= 0;
}
