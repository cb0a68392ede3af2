/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the cost model against measurements: fit_model [--search SEED | --least-ratio R] DATA.json ...
 *
 * Each DATA.json is what tools/bench/compact makes; of a config that was measured again the first counts. For
 * each shape with more than 64 rows the config of the menu that the model takes for the fastest is looked up
 * among the measured ones; told are its ratio to cuBLASLt's first choice, that of the best measured config,
 * and the regret, their quotient. A config that was not measured counts as the best one by the model that
 * was, less 0.3 %. --search varies the constants at random, keeps what lowers the regret and the spread of
 * modelled over measured times within a shape, and prints them; --least-ratio fails when the geometric mean
 * of the choices is below R. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "plan/choose.h"
#include "plan/cost_model.h"
#include "plan/few_rows.h"

enum {
    SHAPES_MAX = 128,
    ARMS_MAX = 64,
    STEPS = 6000,
    NUM_CONSTANTS = sizeof(struct gj_cost_constants) / sizeof(double)
};

#define UNMEASURED 0.997 /* of the ratio of the config that is taken instead */
#define SPREAD_MAX 0.01  /* of a squared relative error: outliers do not decide */

struct arm {
    struct gj_key key;
    double us, ratio;
};

struct shape {
    int64_t m, n, k;
    int num_arms;
    struct arm arms[ARMS_MAX];
};

struct fit {
    int num_sms, num_shapes;
    struct gj_candidates menu;
    struct shape shapes[SHAPES_MAX];
};

struct score {
    double chosen, best, least, regret,
        spread; /* geometric means of ratios; least of the choices; means of logarithms */
};

/* -- Data ---------------------------------------------------------------------------------------------- */

static void fail(const char *what)
{
    fprintf(stderr, "fit_model: %s\n", what);
    exit(1);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item))
        fail(name);
    return item->valuedouble;
}

static const struct arm *find(const struct shape *shape, const struct gj_key *key)
{
    for (int i = 0; i < shape->num_arms; i++)
        if (memcmp(&shape->arms[i].key, key, sizeof *key) == 0)
            return &shape->arms[i];
    return NULL;
}

static void read_arms(const cJSON *item, const char *problem, struct shape *shape)
{
    const cJSON *arm;
    cJSON_ArrayForEach(arm, cJSON_GetObjectItemCaseSensitive(item, "arms"))
    {
        char text[2 * GJ_KEY_TEXT_MAX];
        struct arm *const into = &shape->arms[shape->num_arms];
        if (cJSON_GetArraySize(arm) != 3 || shape->num_arms == ARMS_MAX)
            fail("an arm is not [config, us, ratio], or there are too many");
        snprintf(text, sizeof text, "%s,%s", problem, cJSON_GetArrayItem(arm, 0)->valuestring);
        if (gj_key_parse(text, &into->key, NULL) != GJ_OK)
            fail(text);
        into->us = cJSON_GetArrayItem(arm, 1)->valuedouble;
        into->ratio = cJSON_GetArrayItem(arm, 2)->valuedouble;
        shape->num_arms += into->key.sched != GJ_SCHED_SINGLE && find(shape, &into->key) == NULL;
    }
}

/* The shape of these extents, a new one if there is none yet. */
static struct shape *shape_of(struct fit *fit, const cJSON *item)
{
    const int64_t m = (int64_t)number(item, "m"), n = (int64_t)number(item, "n"),
                  k = (int64_t)number(item, "k");
    for (int i = 0; i < fit->num_shapes; i++)
        if (fit->shapes[i].m == m && fit->shapes[i].n == n && fit->shapes[i].k == k)
            return &fit->shapes[i];
    if (fit->num_shapes == SHAPES_MAX)
        fail("too many shapes");
    fit->shapes[fit->num_shapes] = (struct shape){.m = m, .n = n, .k = k};
    return &fit->shapes[fit->num_shapes++];
}

static void read_data(const char *path, struct fit *fit)
{
    cJSON *document = NULL;
    gj_error *error = NULL;
    struct gj_key key;
    if (gj_json_read(path, (size_t)64 << 20, &document, &error) != GJ_OK)
        fail(error ? error->message : "no memory");
    const char *const problem = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "problem"));
    if (problem == NULL || gj_key_parse(problem, &key, NULL) != GJ_OK)
        fail("member problem");
    fit->num_sms = (int)number(document, "sms");
    gj_candidates_list(&key, fit->num_sms, &fit->menu);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(document, "shapes"))
    {
        if (number(item, "m") > GJ_FEW_ROWS_MAX)
            read_arms(item, problem, shape_of(fit, item));
    }
    cJSON_Delete(document);
}

/* -- Score --------------------------------------------------------------------------------------------- */

static double modelled(const struct fit *fit, const struct gj_cost_constants *c, const struct shape *shape,
                       const struct gj_key *key)
{
    return gj_cost_us(c, key, shape->m, shape->n, shape->k, 1, fit->num_sms);
}

/* Ratio of what the model chooses, see the top. *chosen: the config. */
static double ratio_of_choice(const struct fit *fit, const struct gj_cost_constants *c,
                              const struct shape *shape, const struct gj_key **chosen)
{
    double least = INFINITY, least_measured = INFINITY, ratio = 0;
    for (size_t i = 0; i < fit->menu.count; i++) {
        const struct gj_key *const key = &fit->menu.keys[i];
        const struct arm *const arm = find(shape, key);
        const double us = modelled(fit, c, shape, key);
        if (us < least) {
            least = us;
            *chosen = key;
        }
        if (arm && us < least_measured) {
            least_measured = us;
            ratio = arm->ratio;
        }
    }
    return least < least_measured ? ratio * UNMEASURED : ratio;
}

/* Variance of log(measured / modelled) over a shape's configs. */
static double spread_of(const struct fit *fit, const struct gj_cost_constants *c, const struct shape *shape)
{
    double logs[ARMS_MAX], mean = 0, sum = 0;
    for (int i = 0; i < shape->num_arms; i++) {
        logs[i] = log(shape->arms[i].us / modelled(fit, c, shape, &shape->arms[i].key));
        mean += logs[i] / shape->num_arms;
    }
    for (int i = 0; i < shape->num_arms; i++)
        sum += fmin((logs[i] - mean) * (logs[i] - mean), SPREAD_MAX) / shape->num_arms;
    return sum;
}

static double best_ratio(const struct shape *shape)
{
    double best = 0;
    for (int i = 0; i < shape->num_arms; i++)
        best = fmax(best, shape->arms[i].ratio);
    return best;
}

static struct score score_of(const struct fit *fit, const struct gj_cost_constants *c, bool prints)
{
    struct score score = {.least = INFINITY};
    for (int i = 0; i < fit->num_shapes; i++) {
        const struct shape *const shape = &fit->shapes[i];
        const struct gj_key *key = NULL;
        const double ratio = ratio_of_choice(fit, c, shape, &key), best = best_ratio(shape);
        score.chosen += log(ratio) / fit->num_shapes;
        score.best += log(best) / fit->num_shapes;
        score.least = fmin(score.least, ratio);
        score.spread += spread_of(fit, c, shape) / fit->num_shapes;
        if (prints)
            printf("| %lld x %lld x %lld | %.3f | %.3f | %dx%d, %dx%d, %s |\n", (long long)shape->m,
                   (long long)shape->n, (long long)shape->k, ratio, best, key->tile_m, key->tile_n,
                   key->cluster_m, key->cluster_n, key->sched == GJ_SCHED_COOP ? "coop" : "pingpong");
    }
    score.regret = score.best - score.chosen;
    score.chosen = exp(score.chosen);
    score.best = exp(score.best);
    return score;
}

/* -- Search -------------------------------------------------------------------------------------------- */

static uint64_t state;

/* From 0 to 1; xorshift64*, Vigna 2016. */
static double uniform(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 0x2545f4914f6cdd1dull) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static double objective(const struct fit *fit, const struct gj_cost_constants *c)
{
    const struct score score = score_of(fit, c, false);
    return score.regret + score.spread + 0.05 * fmax(0, 0.97 - score.least);
}

/* Clocks and memory bytes are facts of the card, and stay. */
static void vary(struct gj_cost_constants *c)
{
    double *const values = &c->clocks_per_us;
    for (int times = 1 + (int)(uniform() * 4); times > 0; times--) {
        const int i = 1 + (int)(uniform() * (NUM_CONSTANTS - 2));
        values[i] *= exp(normal() * (uniform() < 0.5 ? 0.05 : 0.25));
    }
    c->last_wave = fmin(c->last_wave, 1);
}

static struct gj_cost_constants search(const struct fit *fit, unsigned seed)
{
    struct gj_cost_constants best = gj_cost_h200;
    double least = objective(fit, &best);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int step = 0; step < STEPS; step++) {
        struct gj_cost_constants c = best;
        vary(&c);
        const double now = objective(fit, &c);
        if (now < least) {
            least = now;
            best = c;
        }
    }
    return best;
}

static void print_constants(const struct gj_cost_constants *c)
{
    printf("\n    .clocks_per_us = %.4g,\n    .load_bytes = %.4g,\n    .coop_tile = %.4g,\n    .coop_block = "
           "%.4g,\n"
           "    .pingpong_tile = %.4g,\n    .pingpong_ragged = %.4g,\n    .pingpong_64 = %.4g,\n    "
           ".coop_launch = %.4g,\n"
           "    .pingpong_launch = %.4g,\n    .last_wave = %.3g,\n    .hidden = %.3g,\n    .cold_bytes = "
           "%.4g,\n    .memory_bytes "
           "= %.4g,\n",
           c->clocks_per_us, c->load_bytes, c->coop_tile, c->coop_block, c->pingpong_tile, c->pingpong_ragged,
           c->pingpong_64, c->coop_launch, c->pingpong_launch, c->last_wave, c->hidden, c->cold_bytes,
           c->memory_bytes);
}

int main(int argc, char **argv)
{
    static struct fit fit;
    const bool searches = argc > 3 && strcmp(argv[1], "--search") == 0;
    const bool demands = argc > 3 && strcmp(argv[1], "--least-ratio") == 0;
    if (argc < 2 || (argv[1][0] == '-' && !searches && !demands))
        fail("usage: fit_model [--search SEED | --least-ratio R] DATA.json ...");
    for (int i = searches || demands ? 3 : 1; i < argc; i++)
        read_data(argv[i], &fit);
    struct gj_cost_constants constants = gj_cost_h200;
    if (searches)
        constants = search(&fit, (unsigned)atoi(argv[2]));
    printf("| M x N x K | chosen | best measured | config |\n|---|---|---|---|\n");
    const struct score score = score_of(&fit, &constants, true);
    printf("\nGeometric mean %.4f over %d shapes, least %.3f; best measured %.4f; mean regret %.2f %%, "
           "spread %.4f.\n",
           score.chosen, fit.num_shapes, score.least, score.best, 100 * score.regret, score.spread);
    if (searches)
        print_constants(&constants);
    return demands && score.chosen < atof(argv[2]);
}
