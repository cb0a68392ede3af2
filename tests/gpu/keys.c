/* SPDX-License-Identifier: Apache-2.0 */
/* Key sets of the GPU tests. */
#include "keys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The values of one field of a covering array; a field sets one or two members of a key. */
struct factor {
    int count;
    void (*set)(struct gj_key *key, int value);
};

static const struct gj_format inputs_a[] = {{GJ_DTYPE_F16, GJ_MAJOR_K},  {GJ_DTYPE_F16, GJ_MAJOR_M},
                                            {GJ_DTYPE_BF16, GJ_MAJOR_K}, {GJ_DTYPE_BF16, GJ_MAJOR_M},
                                            {GJ_DTYPE_E4M3, GJ_MAJOR_K}, {GJ_DTYPE_E5M2, GJ_MAJOR_K}};
static const enum gj_dtype outputs[] = {GJ_DTYPE_F16, GJ_DTYPE_BF16, GJ_DTYPE_F32, GJ_DTYPE_E4M3,
                                        GJ_DTYPE_E5M2};
static const int rows[] = {64, 128, 192, 256, 320};
static const int clusters[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

static void set_a(struct gj_key *key, int value)
{
    key->a = inputs_a[value];
}

static void set_b(struct gj_key *key, int value)
{
    key->b = inputs_a[value];
    if (key->b.major == GJ_MAJOR_M)
        key->b.major = GJ_MAJOR_N;
}

/* Value 0: none. */
static struct gj_format output(int value)
{
    if (value == 0)
        return (struct gj_format){GJ_DTYPE_NONE, GJ_MAJOR_NONE};
    return (struct gj_format){outputs[(value - 1) / 2], value % 2 ? GJ_MAJOR_N : GJ_MAJOR_M};
}

static void set_c(struct gj_key *key, int value)
{
    key->c = output(value);
}

static void set_d(struct gj_key *key, int value)
{
    key->d = output(value + 1);
}

static void set_acc(struct gj_key *key, int value)
{
    key->acc = value ? GJ_DTYPE_F16 : GJ_DTYPE_F32;
}

static void set_alpha(struct gj_key *key, int value)
{
    key->alpha = (enum gj_scalar_mode)(GJ_SCALAR_ONE + value);
}

static void set_beta(struct gj_key *key, int value)
{
    key->beta = (enum gj_scalar_mode)value;
}

static void set_fp8acc(struct gj_key *key, int value)
{
    key->fp8acc = (enum gj_fp8acc)value;
}

static void set_tile_m(struct gj_key *key, int value)
{
    key->tile_m = rows[value];
}

static void set_tile_n(struct gj_key *key, int value)
{
    key->tile_n = 16 * (value + 1);
}

static void set_cluster(struct gj_key *key, int value)
{
    key->cluster_m = clusters[value][0];
    key->cluster_n = clusters[value][1];
}

static void set_sched(struct gj_key *key, int value)
{
    key->sched = (enum gj_sched)value;
}

static void set_tiles(struct gj_key *key, int value)
{
    key->tiles = (enum gj_tiles)value;
}

static void set_swap_ab(struct gj_key *key, int value)
{
    key->swap_ab = (enum gj_swap_ab)value;
}

static void set_single(struct gj_key *key, int value)
{
    key->sched = GJ_SCHED_SINGLE;
    key->split_k = (enum gj_split_k)value;
}

static void set_ctas_per_sm(struct gj_key *key, int value)
{
    key->ctas_per_sm = (enum gj_ctas_per_sm)value;
}

#define PROBLEM_FACTORS                                                                            \
    {6, set_a}, {6, set_b}, {11, set_c}, {10, set_d}, {2, set_acc}, {3, set_alpha}, {4, set_beta}, \
    {                                                                                              \
        3, set_fp8acc                                                                              \
    }
static const struct factor shared_factors[] = {
    PROBLEM_FACTORS, {5, set_tile_m}, {16, set_tile_n}, {6, set_cluster},
    {2, set_sched},  {3, set_tiles},  {2, set_swap_ab},
};
static const struct factor single_factors[] = {
    PROBLEM_FACTORS, {2, set_tile_m}, {16, set_tile_n}, {3, set_cluster},
    {3, set_single}, {3, set_tiles},  {2, set_swap_ab}, {2, set_ctas_per_sm},
};
#define FACTORS_MAX ((int)(sizeof single_factors / sizeof single_factors[0]))
static const struct factor *factors; /* those of the set being made */
static int num_factors;
#define VALUES_MAX 16

static bool accepted(const int *values, struct gj_key *key)
{
    *key = gj_key_default();
    for (int f = 0; f < num_factors; f++)
        factors[f].set(key, values[f]);
    return gj_key_check(key, NULL) == GJ_OK;
}

static uint32_t state;

static int random_below(int count)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)(state >> 8) * (uint64_t)count >> 24);
}

/* Random values for the fields that are not fixed (-1), steered towards what can be accepted at all. */
static void complete(const int *fixed, int *values)
{
    for (int f = 0; f < num_factors; f++)
        values[f] = fixed[f] >= 0 ? fixed[f] : random_below(factors[f].count);
    const bool eight_bit = values[0] >= 4;
    if (fixed[1] < 0)
        values[1] = eight_bit ? 4 + random_below(2) : values[0] / 2 * 2 + random_below(2);
    else if (fixed[0] < 0)
        values[0] = values[1] >= 4 ? 4 + random_below(2) : values[1] / 2 * 2 + random_below(2);
    if (fixed[7] < 0)
        values[7] = values[0] >= 4 ? 1 + random_below(2) : 0;
    if (fixed[6] < 0)
        values[6] = values[2] == 0 ? 0 : 1 + random_below(3);
    else if (fixed[2] < 0)
        values[2] = values[6] == 0 ? 0 : 1 + random_below(10);
}

static unsigned char covered[FACTORS_MAX * VALUES_MAX][FACTORS_MAX * VALUES_MAX][FACTORS_MAX * VALUES_MAX];

static void mark(const int *values)
{
    for (int f = 0; f < num_factors; f++)
        for (int g = f + 1; g < num_factors; g++)
            for (int h = g + 1; h < num_factors; h++)
                covered[f * VALUES_MAX + values[f]][g * VALUES_MAX + values[g]][h * VALUES_MAX + values[h]] =
                    1;
}

/* Tries to find an accepted key with three given values; a triple for which 400 completions are refused
 * counts as one that cannot occur. */
static bool cover(const int *fixed, struct gj_key *key)
{
    int values[FACTORS_MAX];
    for (int attempt = 0; attempt < 400; attempt++) {
        complete(fixed, values);
        if (accepted(values, key)) {
            mark(values);
            return true;
        }
    }
    return false;
}

/* All triples of three fields. */
static void cover_fields(int f, int g, int h, struct gj_key *keys, size_t capacity, size_t *count)
{
    int fixed[FACTORS_MAX];
    for (int a = 0; a < factors[f].count; a++) {
        for (int b = 0; b < factors[g].count; b++) {
            for (int c = 0; c < factors[h].count; c++) {
                if (covered[f * VALUES_MAX + a][g * VALUES_MAX + b][h * VALUES_MAX + c])
                    continue;
                memset(fixed, -1, sizeof fixed);
                fixed[f] = a;
                fixed[g] = b;
                fixed[h] = c;
                if (*count < capacity && cover(fixed, &keys[*count]))
                    (*count)++;
            }
        }
    }
}

static size_t cover_all(uint32_t seed, struct gj_key *keys, size_t capacity)
{
    size_t count = 0;
    state = seed;
    memset(covered, 0, sizeof covered);
    /* The fields with many values first: their triples need keys of their own, which cover the others by the
     * way. */
    for (int least = 1000; least >= 0; least = least ? least / 4 : -1)
        for (int f = 0; f < num_factors; f++)
            for (int g = f + 1; g < num_factors; g++)
                for (int h = g + 1; h < num_factors; h++)
                    if (factors[f].count * factors[g].count * factors[h].count >= least)
                        cover_fields(f, g, h, keys, capacity, &count);
    return count;
}

size_t keys_covering(uint32_t seed, struct gj_key *keys, size_t capacity)
{
    factors = shared_factors;
    num_factors = (int)(sizeof shared_factors / sizeof shared_factors[0]);
    return cover_all(seed, keys, capacity);
}

/* Appends the accepted configs of a problem, those of sched=single or the others. */
static size_t add_configs(struct gj_key problem, bool single, struct gj_key *keys, size_t capacity,
                          size_t count)
{
    static struct gj_key all[2048];
    const size_t found = gj_keys_enumerate(&problem, all, sizeof all / sizeof all[0]);
    for (size_t i = 0; i < found && i < sizeof all / sizeof all[0]; i++) {
        if ((all[i].sched == GJ_SCHED_SINGLE) != single)
            continue;
        if (count < capacity)
            keys[count] = all[i];
        count++;
    }
    return count;
}

static size_t add_problem(struct gj_key problem, struct gj_key *keys, size_t capacity, size_t count)
{
    return add_configs(problem, false, keys, capacity, count);
}

size_t keys_single(uint32_t seed, struct gj_key *keys, size_t capacity)
{
    factors = single_factors;
    num_factors = FACTORS_MAX;
    size_t count = cover_all(seed, keys, capacity);
    for (int i = 0; i < 12; i++) {
        struct gj_key problem = gj_key_default();
        problem.swap_ab = (enum gj_swap_ab)(i % 2);
        problem.tiles = i / 2 % 2 ? GJ_TILES_ONCE : GJ_TILES_STATIC;
        if (i / 4 > 0) {
            problem.a = problem.b = (struct gj_format){GJ_DTYPE_E4M3, GJ_MAJOR_K};
            problem.fp8acc = i / 4 == 1 ? GJ_FP8ACC_FAST : GJ_FP8ACC_PROMOTED;
        }
        count = add_configs(problem, true, keys, capacity, count);
    }
    return count;
}

size_t keys_product(struct gj_key *keys, size_t capacity)
{
    size_t count = 0;
    for (int tiles = 0; tiles < 3; tiles++) {
        struct gj_key problem = gj_key_default();
        problem.tiles = (enum gj_tiles)tiles;
        for (int majors = 0; majors < 4; majors++) {
            problem.a.major = majors & 1 ? GJ_MAJOR_M : GJ_MAJOR_K;
            problem.b.major = majors & 2 ? GJ_MAJOR_N : GJ_MAJOR_K;
            count = add_problem(problem, keys, capacity, count);
        }
        problem.a = (struct gj_format){GJ_DTYPE_E4M3, GJ_MAJOR_K};
        problem.b = (struct gj_format){GJ_DTYPE_E5M2, GJ_MAJOR_K};
        problem.fp8acc = GJ_FP8ACC_FAST;
        count = add_problem(problem, keys, capacity, count);
        problem.fp8acc = GJ_FP8ACC_PROMOTED;
        count = add_problem(problem, keys, capacity, count);
    }
    return count;
}

size_t keys_basic(struct gj_key *keys, size_t capacity)
{
    static const enum gj_dtype types[] = {GJ_DTYPE_BF16, GJ_DTYPE_F16, GJ_DTYPE_F32};
    size_t count = 0, kept = 0;
    for (int i = 0; i < 6; i++) {
        struct gj_key problem = gj_key_default();
        problem.a.dtype = problem.b.dtype = types[i / 3];
        problem.d.dtype = types[i % 3];
        count = add_problem(problem, keys, capacity, count);
    }
    for (size_t i = 0; i < count && i < capacity; i++)
        if (keys[i].cluster_m * keys[i].cluster_n <= 2)
            keys[kept++] = keys[i];
    return kept;
}
