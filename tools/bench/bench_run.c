/* SPDX-License-Identifier: Apache-2.0 */
/* One shape: its operands, its arms, whether each is right, and then the race. */
#include <string.h>

#include "bench.h"
#include "key/config.h"
#include "plan/choose.h"
#include "plan/few_rows.h"

/* tune measures no config that the model takes for slower than the best one by more than this: it is
 * within a few per cent on large shapes, and knows less of small ones. */
#define PRUNE_FACTOR 1.5

/* -- Arms ---------------------------------------------------------------------------------------------- */

static void add_key(struct bench_result *result, const struct gj_key *key)
{
    for (int i = result->num_algos; i < result->num_arms; i++)
        if (memcmp(&result->arms[i].key, key, sizeof(*key)) == 0)
            return;
    if (result->num_arms < BENCH_ARMS_MAX)
        result->arms[result->num_arms++].key = *key;
}

struct gj_tuning_place bench_place(const struct bench *bench, const struct bench_shape *shape)
{
    return (struct gj_tuning_place){.gpu = bench->gpu.name,
                                    .num_sms = bench->gpu.num_sms,
                                    .problem = gj_key_problem(&bench->problem),
                                    .n = shape->n,
                                    .k = shape->k,
                                    .batch = shape->batch,
                                    .m_class = gj_tuning_m_class(shape->m)};
}

/* What gj_gemm chooses, for tune without a table. */
static enum gj_status add_chosen(struct bench *bench, struct bench_result *result, gj_error **error)
{
    const struct bench_shape *const shape = &result->shape;
    struct gj_key chosen;
    const bool overlaps = bench->flags & GJ_LAUNCH_OVERLAP;
    if (!overlaps || !gj_few_rows_choose(&bench->problem, shape->m, shape->n, shape->k, shape->batch,
                                         bench->gpu.num_sms, &chosen))
        GJ_TRY(gj_context_choose(bench->context, &bench->problem, shape->m, shape->n, shape->k, shape->batch,
                                 bench->tuned ? NULL : bench->gpu.name, bench->gpu.num_sms, &chosen, error));
    add_key(result, &chosen);
    return GJ_OK;
}

static double modelled_us(const struct bench *bench, const struct bench_shape *shape,
                          const struct gj_key *key)
{
    return gj_key_us(key, shape->m, shape->n, shape->k, shape->batch, bench->gpu.num_sms);
}

/* Those that the model ranks first, until there are as many as wanted. */
static void add_candidates(const struct bench *bench, struct bench_result *result)
{
    const struct bench_shape *const shape = &result->shape;
    struct gj_key ranked[BENCH_CANDIDATES_MAX];
    const size_t count = gj_keys_rank(&bench->problem, shape->m, shape->n, shape->k, shape->batch,
                                      bench->gpu.num_sms, ranked, BENCH_CANDIDATES_MAX);
    const int wanted = result->num_algos + (int)bench->num_candidates;
    double least = 0; /* of those that the model knows */
    for (size_t i = 0; i < count && i < BENCH_CANDIDATES_MAX && result->num_arms < wanted; i++) {
        const bool is_modelled = ranked[i].sched != GJ_SCHED_SINGLE;
        if (is_modelled && least == 0)
            least = modelled_us(bench, shape, &ranked[i]);
        if (is_modelled && bench->tuned && modelled_us(bench, shape, &ranked[i]) > PRUNE_FACTOR * least)
            break;
        add_key(result, &ranked[i]);
    }
}

static enum gj_status list_arms(struct bench *bench, struct bench_result *result, gj_error **error)
{
    for (int i = 0; i < result->num_algos; i++)
        result->arms[i].algo = i;
    result->num_arms = result->chosen = result->num_algos;
    GJ_TRY(add_chosen(bench, result, error));
    add_candidates(bench, result);
    for (size_t i = 0; i < bench->num_given; i++)
        add_key(result, &bench->given[i]);
    const struct gj_tuning_place place = bench_place(bench, &result->shape);
    const struct gj_tuning_entry *const entry =
        bench->tuned ? gj_tuning_table_find(bench->tuned, &place) : NULL;
    if (entry && gj_key_check(&entry->key, NULL) == GJ_OK)
        add_key(result, &entry->key);
    return GJ_OK;
}

/* Compiles all keys, with as many threads as there are processors, then loads them. */
static enum gj_status load_arms(struct bench *bench, struct bench_result *result, gj_error **error)
{
    struct gj_key keys[BENCH_ARMS_MAX];
    gj_kernel *kernels[BENCH_ARMS_MAX] = {0};
    const int first = result->num_algos;
    const size_t count = (size_t)(result->num_arms - first);
    for (size_t i = 0; i < count; i++)
        keys[i] = result->arms[(size_t)first + i].key;
    GJ_TRY(gj_kernels_get(bench->context, keys, count, 0, 0, kernels, error));
    for (size_t i = 0; i < count; i++) {
        GJ_TRY(gj_kernel_prepare(kernels[i], 0, error));
        result->arms[(size_t)first + i].kernel = kernels[i];
    }
    return GJ_OK;
}

enum gj_status bench_launch(struct bench *bench, const struct bench_arm *arm, struct bench_lt *lt,
                            const struct gj_gemm_args *args, gj_error **error)
{
    if (arm->kernel == NULL)
        return bench_lt_run(lt, arm->algo, args, error);
    return gj_launch(arm->kernel, args, gj_device_stream(bench->device), error);
}

/* Compares the D of each arm with that of the first, made of the operands of set 0. */
static enum gj_status check_arms(struct bench *bench, struct bench_result *result, struct bench_lt *lt,
                                 const struct bench_operands *operands, gj_error **error)
{
    struct gj_gemm_args args = bench_operands_args(bench, &result->shape, operands, 0);
    const struct gj_gemm_args other = bench_operands_args(bench, &result->shape, operands, 1);
    GJ_TRY(bench_launch(bench, &result->arms[0], lt, &args, error));
    args.d = other.d;
    for (int i = 0; i < result->num_arms; i++) {
        struct bench_arm *const arm = &result->arms[i];
        GJ_TRY(gj_device_fill(bench->device, args.d.data, 0xff,
                              (size_t)(operands->bytes - operands->offset_d), error));
        GJ_TRY(bench_launch(bench, arm, lt, &args, error));
        GJ_TRY(bench_compare(bench, &result->shape, operands, 1, 0, &arm->num_different, error));
    }
    return GJ_OK;
}

/* -- A shape ------------------------------------------------------------------------------------------- */

static enum gj_status run_arms(struct bench *bench, struct bench_result *result, struct bench_lt *lt,
                               const struct bench_operands *operands, gj_error **error)
{
    GJ_TRY(list_arms(bench, result, error));
    GJ_TRY(load_arms(bench, result, error));
    GJ_TRY(check_arms(bench, result, lt, operands, error));
    return bench_race(bench, result, lt, operands, error);
}

enum gj_status bench_run(struct bench *bench, const struct bench_shape *shape, struct bench_result *result,
                         gj_error **error)
{
    struct bench_operands operands;
    struct bench_lt *lt = NULL;
    *result = (struct bench_result){.shape = *shape};
    enum gj_status status = bench_operands_make(bench, shape, &operands, error);
    if (status == GJ_OK && bench->cublas)
        status = bench_lt_make(bench->cublas, &bench->problem, shape, &lt, error);
    if (lt)
        result->num_algos = bench_lt_num_algos(lt);
    if (status == GJ_OK)
        status = run_arms(bench, result, lt, &operands, error);
    bench_lt_free(&lt);
    if (status != GJ_ERR_DRIVER) /* a kernel that hangs would be waited for */
        bench_operands_free(bench, &operands);
    return status;
}
