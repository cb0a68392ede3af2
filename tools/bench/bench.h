/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the verbs bench and tune share: shapes, operands, arms, and how they are timed.
 *
 * An arm is one way to compute a shape: a key, or one of cuBLASLt's algorithms. Each arm is captured as a
 * graph of several launches that take turns on sets of operands, so many that L2 is cold; each round launches
 * the graphs of all arms in random order without a gap between them. Ratios are paired by round. */
#ifndef GJ_TOOLS_BENCH_H
#define GJ_TOOLS_BENCH_H

#include "../cli.h"
#include "cuda/device_work.h"
#include "tuning/tuning.h"

enum {
    BENCH_ALGOS = 8, /* of cuBLASLt, as its heuristic ranks them */
    BENCH_ARMS_MAX = 64,
    BENCH_CANDIDATES_MAX = 32,
    BENCH_GIVEN_MAX = BENCH_ARMS_MAX - BENCH_ALGOS - BENCH_CANDIDATES_MAX,
    BENCH_ROUNDS_MIN = 11,
    BENCH_ROUNDS_MAX = 64,
    BENCH_BATCH = 5, /* rounds between two looks at who can still win */
    BENCH_DATE_MAX = 11,
    BENCH_SETS_MAX = 128,
    BENCH_TIMEOUT_MS = 20000 /* a kernel that takes longer hangs */
};

/* -- Shapes (bench_shapes.c) --------------------------------------------------------------------------- */

struct bench_shape {
    int64_t m, n, k, batch;
};

/* Reads [{"m": M, "n": N, "k": K, "batch": L}, ...], batch 1 when left out; at least one, nothing else.
 * *shapes is freed with free. Returns GJ_OK; GJ_ERR_ARGUMENT and GJ_ERR_SYSTEM as cli_json_read. */
enum gj_status bench_shapes_read(const char *path, struct bench_shape **shapes, size_t *num_shapes,
                                 gj_error **error);

/* -- Numbers (bench_stats.c) --------------------------------------------------------------------------- */

/* The q-quantile, q from 0 to 1, of 1 to BENCH_ROUNDS_MAX values. */
double bench_quantile(const float *values, int count, double q);
/* The q-quantile of base[i] / arm[i]: above 1 the arm is faster. */
double bench_ratio(const float *base, const float *arm, int count, double q);
double bench_geomean(const double *values, size_t count);

/* -- cuBLASLt (bench_cublas.c) ------------------------------------------------------------------------- */

struct bench_cublas; /* the library, opened */
struct bench_lt;     /* one shape */

/* Loads libcublasLt and opens it in the current context; GJ_ERR_NO_COMPILER: there is none, with where it was
 * looked for. */
enum gj_status bench_cublas_open(gj_device *device, struct bench_cublas **cublas, gj_error **error);
void bench_cublas_close(struct bench_cublas **cublas);
size_t bench_cublas_version(const struct bench_cublas *cublas); /* as cublasLtGetVersion has it */
/* GJ_ERR_UNSUPPORTED: cuBLASLt computes no such problem, or offers no algorithm. */
enum gj_status bench_lt_make(struct bench_cublas *cublas, const struct gj_key *problem,
                             const struct bench_shape *shape, struct bench_lt **lt, gj_error **error);
void bench_lt_free(struct bench_lt **lt);
int bench_lt_num_algos(const struct bench_lt *lt);
/* Launches on the device's stream. */
enum gj_status bench_lt_run(struct bench_lt *lt, int algo, const struct gj_gemm_args *args, gj_error **error);

/* -- One shape ----------------------------------------------------------------------------------------- */

struct bench_arm {
    gj_kernel *kernel; /* NULL: cuBLASLt */
    struct gj_key key;
    int algo;
    int64_t num_different; /* elements of D that are not those of the base, see bench_compare */
    void *graph;
    int rounds;                 /* that it ran in: all of them, unless it was dropped */
    float us[BENCH_ROUNDS_MAX]; /* of one launch, by round */
};

struct bench_result;

struct bench {
    struct cli *cli;
    struct gj_key problem;
    bool vs_cublas;
    struct gj_key given[BENCH_GIVEN_MAX]; /* of --key, checked */
    size_t num_given;
    int64_t num_candidates; /* the choice and configs that the model ranks first */
    /* Of tune: the table that it extends, whose entries are measured again; NULL for bench. The choice is
     * then the model's, and candidates that it takes for far slower are left out. */
    const struct gj_tuning_table *tuned;
    /* Called every BENCH_BATCH rounds, from 0 on; takes arms that cannot win out of the race, and returns how
     * many of `order` are left, 0 to end it. NULL: all stay. */
    int (*drop)(const struct bench_result *result, int *order, int count);
    int64_t seconds, train_ms;
    unsigned flags; /* of the launches of keys */
    struct bench_shape *shapes;
    size_t num_shapes;
    gj_driver *driver;
    gj_device *device;
    struct gj_gpu_info gpu;
    gj_context *context;
    void *library; /* of bench_kernels.cu */
    struct bench_cublas *cublas;
};

/* What was measured of one shape; the first arm is the base. */
struct bench_result {
    struct bench_shape shape;
    int num_arms, num_algos, chosen; /* arms: cuBLASLt's, then the chosen one, then the others */
    int rounds, launches;            /* of one graph */
    int repeats;                     /* of a graph in one round */
    struct bench_arm arms[BENCH_ARMS_MAX];
};

/* Reads shapes, problem, configs and numbers of a command line; shapes are freed by the caller, also on
 * failure. (bench_options.c) */
enum gj_status bench_options_read(struct bench *bench, int64_t num_candidates, gj_error **error);
/* Opens GPU, context, kernels and cuBLASLt. After GJ_ERR_DRIVER a kernel may still be running, and closing
 * would wait for it. */
enum gj_status bench_open(struct bench *bench, gj_error **error);
void bench_close(struct bench *bench);
/* Where a shape stands in a tuning table. (bench_run.c) */
struct gj_tuning_place bench_place(const struct bench *bench, const struct bench_shape *shape);

/* Operands of a shape. (bench_operands.c) */
struct bench_operands {
    int num_sets;
    void *memory[BENCH_SETS_MAX];
    int64_t offset_b, offset_c, offset_d, bytes; /* of one set */
};
enum gj_status bench_operands_make(struct bench *bench, const struct bench_shape *shape,
                                   struct bench_operands *operands, gj_error **error);
void bench_operands_free(struct bench *bench, struct bench_operands *operands);
struct gj_gemm_args bench_operands_args(const struct bench *bench, const struct bench_shape *shape,
                                        const struct bench_operands *operands, int set);
/* Loads the kernels that the operands are made with. */
enum gj_status bench_kernels_load(struct bench *bench, gj_error **error);
/* Counts elements of D in set_x that are further from those in set_y than two roundings of sums in another
 * order: 2^-6 of the value or of sqrt(K), the standard deviation of the values, 2^-2 where D has 8 bits. */
enum gj_status bench_compare(struct bench *bench, const struct bench_shape *shape,
                             const struct bench_operands *operands, int set_x, int set_y,
                             int64_t *num_different, gj_error **error);

/* Measures one shape. (bench_run.c, bench_race.c) */
enum gj_status bench_run(struct bench *bench, const struct bench_shape *shape, struct bench_result *result,
                         gj_error **error);
/* Launches an arm once on a set. */
enum gj_status bench_launch(struct bench *bench, const struct bench_arm *arm, struct bench_lt *lt,
                            const struct gj_gemm_args *args, gj_error **error);
enum gj_status bench_race(struct bench *bench, struct bench_result *result, struct bench_lt *lt,
                          const struct bench_operands *operands, gj_error **error);

/* -- Words and numbers (bench_text.c) ------------------------------------------------------------------- */

void bench_shape_text(const struct bench_shape *shape, const char *times, char *text, size_t capacity);
/* The config fields of a key that a person needs to see. */
void bench_config_text(const struct gj_key *key, char text[GJ_KEY_TEXT_MAX]);
/* The fields of the problem. */
void bench_problem_text(const struct gj_key *problem, char text[GJ_KEY_TEXT_MAX]);
void bench_date(char text[BENCH_DATE_MAX]); /* today, UTC */
double bench_rounded(double value);         /* four decimals */
/* A line on stderr for each arm whose results differ; the exit status tells too. */
void bench_tell_wrong(const struct bench *bench, const struct bench_result *result);

/* -- Report (bench_report.c, bench_plot.c) ------------------------------------------------------------- */

/* What of a result is told, see bench_stats.c. Ratios are to the base. */
struct bench_summary {
    struct bench_shape shape;
    double base_us, chosen_us, chosen_ratio, chosen_low, chosen_high; /* quartiles */
    double best_ratio, reference_ratio; /* best key; best algorithm of cuBLASLt */
    int best;                           /* arm */
    bool right;
};
struct bench_summary bench_summarise(const struct bench_result *result);
enum gj_status bench_report(struct bench *bench, const struct bench_result *results,
                            const struct bench_summary *summaries, size_t count, gj_error **error);
/* An SVG of the ratios over the shapes. */
void bench_plot(const struct bench *bench, const struct bench_summary *summaries, size_t count,
                struct gj_strbuf *out);

#endif
