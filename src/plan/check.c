/* SPDX-License-Identifier: Apache-2.0 */
/* gj_key_check: every reason for which a key is refused, each a sentence with its numbers.
 *
 * What is accepted stands behind runs on hardware: the full product of the structural fields and a covering
 * array of all triples of values, all exact; of sched=single a part of its own array (docs/verification.md).
 */
#include "plan/check.h"

#include "base/error_build.h"
#include "key/key_tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where reasons go: into an error object, or only counted. */
struct reasons {
    gj_error **error; /* NULL: count only */
    int count;
};

static void refuse(struct reasons *reasons, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(struct reasons *reasons, const char *format, ...)
{
    reasons->count++;
    if (reasons->error == NULL)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gj_error_add_reason(reasons->error, "%s", text);
}

static const char *word(const char *field_name, int value)
{
    for (int i = 0; i < gj_num_fields; i++)
        if (strcmp(gj_fields[i].name, field_name) == 0)
            return gj_fields[i].words.names[value];
    return "?";
}

/* Whether a function fits an operation: those of one value go with act and dact, those of two with gated
 * ones. */
static bool act_fits(const struct gj_key *key)
{
    if (key->op == GJ_OP_GEMM)
        return key->act == GJ_ACT_NONE;
    if (key->act == GJ_ACT_OWN)
        return true;
    return gj_op_is_gated(key->op) == (key->act >= GJ_ACT_SWIGLU);
}

static const char *acts_for(enum gj_op op)
{
    return op == GJ_OP_GEMM ? "none"
           : gj_op_is_gated(op)
               ? "swiglu, swiglu_oai, geglu, reglu, glu, own"
               : "none, relu, relu_sq, gelu_tanh, gelu_erf, silu, quick_gelu, sigmoid, tanh, own";
}

/* Operands and function of the operation. */
static void check_operation(const struct gj_key *key, struct reasons *reasons)
{
    const char *const op = word("op", (int)key->op);
    const bool backward = key->op == GJ_OP_DACT || key->op == GJ_OP_DGATED;
    if (!act_fits(key))
        refuse(reasons, "act=%s does not go with op=%s: allowed is %s", word("act", (int)key->act), op,
               acts_for(key->op));
    if (key->d.dtype == GJ_DTYPE_NONE && key->op == GJ_OP_GEMM)
        refuse(reasons, "d=none leaves nothing to compute");
    if (key->d.dtype == GJ_DTYPE_NONE && backward)
        refuse(reasons, "d=none: op=%s writes the gradient of PreAct to D", op);
    if (key->p.dtype == GJ_DTYPE_NONE && key->op != GJ_OP_GEMM)
        refuse(reasons, "p=none: op=%s writes PostAct", op);
    if (key->c.dtype == GJ_DTYPE_NONE && backward)
        refuse(reasons, "c=none: op=%s reads PreAct from C", op);
    if (key->c.dtype != GJ_DTYPE_NONE && backward && key->beta != GJ_SCALAR_ONE)
        refuse(reasons, "beta=%s: C of op=%s is PreAct, which has no factor", word("beta", (int)key->beta),
               op);
}

static bool is_pair(struct gj_format format)
{
    return gj_dtype_bytes(format.dtype) == 2 && format.major == GJ_MAJOR_N;
}

/* Gate and up columns have to meet in one thread. */
static void check_gated(const struct gj_plan *plan, struct reasons *reasons)
{
    const struct gj_key *const key = &plan->key;
    const char *const op = word("op", (int)key->op);
    if (!gj_op_is_gated(key->op))
        return;
    if (key->swap_ab == GJ_SWAP_AB_YES)
        refuse(reasons, "swap_ab=yes with op=%s: gate and up columns would be rows of wgmma, in two threads",
               op);
    if (key->op == GJ_OP_DGATED && key->c.dtype != GJ_DTYPE_NONE && !is_pair(key->c))
        refuse(reasons, "c of op=dgated must be 16-bit and n-major");
    if (key->op == GJ_OP_DGATED && key->d.dtype != GJ_DTYPE_NONE && !is_pair(key->d))
        refuse(reasons, "d of op=dgated must be 16-bit and n-major");
    if (key->op != GJ_OP_GATED)
        return;
    if (plan->mma_n % 32 != 0)
        refuse(reasons, "tile=%dx%d gives each warp group %d columns: op=gated needs a multiple of 32",
               key->tile_m, key->tile_n, plan->mma_n);
    if (key->gate != GJ_GATE_HALVES)
        return;
    if (key->d.major == GJ_MAJOR_M)
        refuse(reasons, "d of gate=halves must be n-major");
    if (key->c.major == GJ_MAJOR_M)
        refuse(reasons, "c of gate=halves must be n-major");
    if (plan->split_n > 1)
        refuse(reasons,
               "tile=%dx%d sched=coop splits columns over two warp groups, which gate=halves must not",
               key->tile_m, key->tile_n);
    if (key->b.major == GJ_MAJOR_N)
        refuse(reasons,
               "gate=halves with an n-major B is not generated: TMA would start at any column, and starts "
               "at multiples of 16 bytes only");
    if (key->tile_n / 2 % (8 * key->cluster_m) != 0)
        refuse(reasons,
               "cluster=%dx%d does not cut half of the %d rows of B of tile=%dx%d into slices of whole "
               "8-row groups",
               key->cluster_m, key->cluster_n, key->tile_n, key->tile_m, key->tile_n);
    if (key->acc == GJ_DTYPE_F16)
        refuse(reasons, "acc=f16 with gate=halves is not generated");
}

/* Fields with one generated value so far. */
static void check_problem(const struct gj_key *key, struct reasons *reasons)
{
    if (key->batch != GJ_BATCH_DENSE)
        refuse(reasons, "batch=%s is not generated: only batch=dense is", word("batch", (int)key->batch));
    if (key->gather != GJ_GATHER_NONE)
        refuse(reasons, "gather=%s is not generated: only gather=none is", word("gather", (int)key->gather));
    if (key->tiles == GJ_TILES_ONCE && key->sched == GJ_SCHED_PINGPONG)
        refuse(reasons, "tiles=once leaves one of the two warp groups of sched=pingpong without a tile");
}

/* sched=single, and what only it has. */
static void check_single(const struct gj_plan *plan, struct reasons *reasons)
{
    const struct gj_key *const key = &plan->key;
    const bool single = key->sched == GJ_SCHED_SINGLE;
    if (key->split_k != GJ_SPLIT_K_NONE && (!single || key->tiles != GJ_TILES_ONCE))
        refuse(reasons, "split_k=%d needs sched=single and tiles=once", plan->split_k);
    if (key->split_k != GJ_SPLIT_K_NONE && key->acc == GJ_DTYPE_F16)
        refuse(reasons, "split_k=%d with acc=f16 is not generated: sums of a split are f32", plan->split_k);
    if (key->ctas_per_sm != GJ_CTAS_PER_SM_1 && !single)
        refuse(reasons,
               "ctas_per_sm=2 needs sched=single: a CTA of others has 384 threads and all shared memory");
    if (!single)
        return;
    if (key->cluster_m * key->cluster_n > 2)
        refuse(reasons, "cluster=%dx%d with sched=single: at most two of its CTAs share a tile",
               key->cluster_m, key->cluster_n);
    if (key->cluster_m * key->cluster_n > 1 && key->split_k != GJ_SPLIT_K_NONE)
        refuse(reasons, "cluster=%dx%d with split_k=%d: the CTAs of a split share K and no tiles",
               key->cluster_m, key->cluster_n, plan->split_k);
    if (key->tiles == GJ_TILES_DYNAMIC)
        refuse(reasons, "tiles=dynamic with sched=single is not generated");
    if (key->gate == GJ_GATE_HALVES)
        refuse(reasons, "gate=halves with sched=single is not generated");
}

/* What wgmma takes: two 16-bit operands of one type in any major, or two 8-bit ones, mixed freely, k-major.
 */
static void check_operands(const struct gj_key *key, struct reasons *reasons)
{
    const size_t a_bytes = gj_dtype_bytes(key->a.dtype), b_bytes = gj_dtype_bytes(key->b.dtype);
    if (a_bytes != b_bytes)
        refuse(reasons, "a=%s and b=%s differ in width: wgmma takes two 16-bit or two 8-bit operands",
               gj_dtype_name(key->a.dtype), gj_dtype_name(key->b.dtype));
    else if (a_bytes == 2 && key->a.dtype != key->b.dtype)
        refuse(reasons, "a=%s and b=%s differ: 16-bit operands of wgmma have one type",
               gj_dtype_name(key->a.dtype), gj_dtype_name(key->b.dtype));
    if (a_bytes == 1 && key->a.major != GJ_MAJOR_K)
        refuse(reasons, "a=%s is m-major: 8-bit operands of wgmma are k-major", gj_dtype_name(key->a.dtype));
    if (b_bytes == 1 && key->b.major != GJ_MAJOR_K)
        refuse(reasons, "b=%s is n-major: 8-bit operands of wgmma are k-major", gj_dtype_name(key->b.dtype));
    if (key->acc == GJ_DTYPE_F16 && key->a.dtype == GJ_DTYPE_BF16)
        refuse(reasons, "acc=f16 with a=bf16: wgmma sums bf16 products in f32 only");
    if (key->acc == GJ_DTYPE_F16 && key->fp8acc == GJ_FP8ACC_PROMOTED)
        refuse(reasons, "acc=f16 with fp8acc=promoted: promoted sums are f32");
}

/* Tile extents: quack 0.2.0's rule where it has the case; columns in steps of 16 because one stmatrix covers
 * two 8-column blocks. */
static void check_tile(const struct gj_plan *plan, struct reasons *reasons)
{
    const struct gj_key *const key = &plan->kernel;
    const bool pingpong = key->sched == GJ_SCHED_PINGPONG;
    const int m = key->tile_m, n = key->tile_n, step = plan->split_n > 1 || plan->split_m == 3 ? 32 : 16;
    const bool single = key->sched == GJ_SCHED_SINGLE, coop = !pingpong && !single;
    const char *const sched = word("sched", (int)key->sched);
    const bool rows_known = m == 64 || m == 128 || (!single && m == 192) || (coop && (m == 256 || m == 320));
    if (!rows_known)
        refuse(reasons, "tile=%dx%d sched=%s: rows must be one of %s", m, n, sched,
               single     ? "64, 128"
               : pingpong ? "64, 128, 192"
                          : "64, 128, 192, 256, 320");
    if (n % step != 0 || n < step || n > GJ_MMA_N_MAX)
        refuse(reasons, "tile=%dx%d sched=%s: columns must be a multiple of %d from %d to %d", m, n, sched,
               step, step, GJ_MMA_N_MAX);
    if (plan->split_n > 1 && key->b.major == GJ_MAJOR_N && plan->mma_n % 64 != 0)
        refuse(reasons,
               "tile=%dx%d sched=coop gives each warp group %d columns: an n-major B can be split at "
               "multiples of 64 only",
               m, n, plan->mma_n);
}

/* How many kinds of vectors and factors an epilogue handles: each keeps values and addresses in registers. */
static int num_extras(const struct gj_key *key)
{
    return (key->bias != GJ_BIAS_NONE) + (key->scale > GJ_SCALE_TENSOR) + (key->quant != GJ_QUANT_NONE);
}

/* Accumulators that leave room for addresses and the epilogue's temporaries: at 240 registers 208 compile
 * without spills, with C 200 do, and 216 serialise the wgmma pipeline (C7512); at 160 (three MMA warp groups)
 * 96 are safe. What is fused behind them takes more (ptxas 13.0, 2026-12-01: 400 keys of 24 kinds around
 * these limits). */
static int acc_registers_max(const struct gj_plan *plan)
{
    const struct gj_key *const key = &plan->kernel;
    const int extras = num_extras(key);
    if (plan->mma_registers == 160)
        return 96;
    if (plan->mma_registers == 128)
        return extras > 0 || key->op != GJ_OP_GEMM ? 32 : 64;
    const bool two_gradients = key->op == GJ_OP_DGATED && key->gate == GJ_GATE_HALVES;
    if (key->op == GJ_OP_DGATED && extras > (two_gradients ? 0 : 1))
        return 160;
    const bool two_outputs = key->op == GJ_OP_DACT || key->op == GJ_OP_DGATED ||
                             (key->op == GJ_OP_GATED && key->d.dtype != GJ_DTYPE_NONE);
    if (extras > 1 || (extras > 0 && two_outputs) || two_gradients)
        return 176;
    if (extras > 0 || key->op != GJ_OP_GEMM)
        return 192;
    return key->c.dtype == GJ_DTYPE_NONE ? 208 : 200;
}

static void check_resources(const struct gj_plan *plan, struct reasons *reasons)
{
    const struct gj_key *const key = &plan->kernel;
    const int acc_max = acc_registers_max(plan);
    const char *const why = plan->promotion != GJ_PROMOTION_NONE    ? " with fp8acc=promoted"
                            : gj_plan_is_fused(plan)                ? " beside what is fused"
                            : plan->kernel.c.dtype != GJ_DTYPE_NONE ? " beside C"
                                                                    : "";
    if (plan->acc_registers > acc_max)
        refuse(reasons, "tile=%dx%d sched=%s needs %d accumulator registers per thread%s: at most %d fit",
               key->tile_m, key->tile_n, word("sched", (int)key->sched), plan->acc_registers, why, acc_max);
    const int least = gj_plan_smem_for_stages(plan, 2), smem_max = gj_plan_smem_max(plan);
    if (least > smem_max)
        refuse(reasons, "tile=%dx%d needs %d bytes of shared memory for two stages: a CTA has %d",
               key->tile_m, key->tile_n, least, smem_max);
    if (plan->barrier_bytes > GJ_SMEM_BARRIER_BYTES)
        refuse(reasons, "tile=%dx%d needs %d bytes of barriers: %d are reserved", key->tile_m, key->tile_n,
               plan->barrier_bytes, GJ_SMEM_BARRIER_BYTES);
}

/* Slices of a k-major tile are cut along rows, in whole 8-row swizzle atoms; others along K, which always
 * works. */
static void check_cluster(const struct gj_plan *plan, struct reasons *reasons)
{
    const struct gj_key *const key = &plan->kernel;
    const int m = key->cluster_m, n = key->cluster_n;
    const bool known = (m == 1 || m == 2 || m == 4) && (n == 1 || n == 2 || n == 4) && m * n <= 4;
    if (!known)
        refuse(reasons, "cluster=%dx%d is not generated: only 1x1, 2x1, 1x2, 2x2, 4x1 and 1x4 are", m, n);
    if (key->b.major == GJ_MAJOR_K && key->tile_n % (8 * m) != 0)
        refuse(reasons,
               "cluster=%dx%d does not cut the %d rows of B of tile=%dx%d into slices of whole 8-row groups",
               m, n, key->tile_n, key->tile_m, key->tile_n);
    if (key->a.major == GJ_MAJOR_K && key->tile_m % (8 * n) != 0)
        refuse(reasons,
               "cluster=%dx%d does not cut the %d rows of A of tile=%dx%d into slices of whole 8-row groups",
               m, n, key->tile_m, key->tile_m, key->tile_n);
}

static int collect(const struct gj_plan *plan, gj_error **error)
{
    struct reasons reasons = {error, 0};
    check_problem(&plan->key, &reasons);
    check_single(plan, &reasons);
    check_operation(&plan->key, &reasons);
    check_gated(plan, &reasons);
    check_operands(&plan->kernel, &reasons);
    check_tile(plan, &reasons);
    check_resources(plan, &reasons);
    check_cluster(plan, &reasons);
    return reasons.count;
}

bool gj_plan_accepts(const struct gj_plan *plan)
{
    return collect(plan, NULL) == 0;
}

/* A field that a key does not have holds 0, which is NONE. */
static bool bad_word(const struct gj_key *key, const struct gj_field *field, int value)
{
    if (!gj_key_has_field(key, field))
        return value != 0;
    return value < 0 || value >= field->words.count || field->words.names[value] == NULL;
}

static bool bad_format(const struct gj_key *key, const struct gj_field *field, int dtype, int major)
{
    if (dtype < 0 || dtype >= gj_dtype_words.count || !(field->dtypes & (1u << dtype)))
        return true;
    if (dtype == GJ_DTYPE_NONE)
        return major != GJ_MAJOR_NONE;
    return !gj_key_has_field(key, field) ||
           (major != (int)field->majors[0] && major != (int)field->majors[1]);
}

static bool bad_pair(int first, int second)
{
    return first < 1 || first > 9999 || second < 1 || second > 9999;
}

/* The first field with a value that no key text gives, or NULL: such a struct was not made by gj_key_parse.
 */
static const char *bad_field(const struct gj_key *key)
{
    for (int i = 0; i < gj_num_fields; i++) {
        const struct gj_field *const field = &gj_fields[i];
        int value[2] = {0, 0};
        memcpy(value, (const char *)key + field->offset,
               (field->kind == GJ_FIELD_WORD ? 1 : 2) * sizeof(int));
        if ((field->kind == GJ_FIELD_ID && !gj_key_has_field(key, field) &&
             (value[0] != 0 || value[1] != 0)) ||
            (field->kind == GJ_FIELD_WORD && bad_word(key, field, value[0])) ||
            (field->kind == GJ_FIELD_FORMAT && bad_format(key, field, value[0], value[1])) ||
            (field->kind == GJ_FIELD_PAIR && bad_pair(value[0], value[1])))
            return field->name;
    }
    return (key->c.dtype == GJ_DTYPE_NONE) != (key->beta == GJ_SCALAR_NONE) ? "beta" : NULL;
}

enum gj_status gj_key_check(const struct gj_key *key, gj_error **error)
{
    const char *const bad = bad_field(key);
    if (bad != NULL)
        GJ_FAIL(error, GJ_ERR_ARGUMENT, GJ_STAGE_KEY, "field %s of the key holds a value outside its range",
                bad);
    struct gj_plan plan;
    gj_plan_make_numbers(key, &plan);
    const int count = collect(&plan, NULL);
    if (count == 0)
        return GJ_OK;
    char text[GJ_KEY_TEXT_MAX];
    gj_key_format(key, text, sizeof text);
    const enum gj_status status =
        gj_error_make(error, GJ_ERR_UNSUPPORTED, GJ_STAGE_PLAN, 0, "", "key is refused for %d reason%s: %s",
                      count, count == 1 ? "" : "s", text);
    if (error != NULL && *error != NULL)
        collect(&plan, error);
    return status;
}
