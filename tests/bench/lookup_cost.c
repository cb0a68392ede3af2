/* SPDX-License-Identifier: Apache-2.0 */
/* What finding kernels costs: lookup_cost CACHE < KEYS, one key text a line, all of them in the cache.
 * tools/lookup_cost runs it and says what the numbers are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gemmjit/gemmjit.h>

#include "base/clock.h"

enum { MAX_KEYS = 4096, MEMORY_CALLS = 1000000 };

static struct gj_key keys[MAX_KEYS];
static double took_ms[MAX_KEYS];
static size_t num_keys;

static void must(enum gj_status status, gj_error *error)
{
    if (status == GJ_OK)
        return;
    fprintf(stderr, "lookup_cost: %s\n", error ? error->message : gj_status_name(status));
    exit(1);
}

static void read_keys(void)
{
    char line[GJ_KEY_TEXT_MAX];
    gj_error *error = NULL;
    while (num_keys < MAX_KEYS && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        must(gj_key_parse(line, &keys[num_keys++], &error), error);
    }
}

static gj_context *open_context(const char *cache)
{
    const struct gj_context_params params = {.cache_dir = cache, .no_compile = 1};
    gj_context *context = NULL;
    gj_error *error = NULL;
    must(gj_context_open(&params, &context, &error), error);
    return context;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One thread, one key after the other, in a new context. */
static void time_disk(const char *cache)
{
    gj_context *context = open_context(cache);
    const double start = gj_clock_ms();
    double generate_ms = 0, load_ms = 0;
    for (size_t i = 0; i < num_keys; i++) {
        gj_error *error = NULL;
        gj_kernel *kernel = NULL;
        struct gj_kernel_info info;
        const double from = gj_clock_ms();
        must(gj_kernel_get(context, &keys[i], 0, &kernel, &error), error);
        took_ms[i] = gj_clock_ms() - from;
        gj_kernel_info(kernel, &info);
        generate_ms += info.generate_ms;
        load_ms += info.load_ms;
    }
    const double total = gj_clock_ms() - start, first = took_ms[0];
    qsort(took_ms, num_keys, sizeof took_ms[0], compare);
    printf(
        "\"disk_first_ms\": %.4f, \"disk_median_ms\": %.4f, \"disk_p99_ms\": %.4f, \"disk_total_ms\": %.3f, "
        "\"generate_mean_ms\": %.4f, \"load_mean_ms\": %.4f",
        first, took_ms[num_keys / 2], took_ms[num_keys * 99 / 100], total, generate_ms / (double)num_keys,
        load_ms / (double)num_keys);
    gj_context_close(&context);
}

static void time_preload(const char *cache)
{
    gj_context *context = open_context(cache);
    gj_error *error = NULL;
    const double start = gj_clock_ms();
    must(gj_kernels_get(context, keys, num_keys, 0, 0, NULL, &error), error);
    printf(", \"preload_ms\": %.3f", gj_clock_ms() - start);
    gj_kernel *kernel = NULL;
    const double from = gj_clock_ms();
    for (size_t i = 0; i < MEMORY_CALLS; i++)
        (void)gj_kernel_get(context, &keys[i % num_keys], 0, &kernel, NULL);
    printf(", \"memory_ns\": %.2f", (gj_clock_ms() - from) * 1e6 / MEMORY_CALLS);
    gj_context_close(&context);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: lookup_cost CACHE < KEYS\n");
        return 2;
    }
    read_keys();
    printf("{\"keys\": %zu, ", num_keys);
    time_disk(argv[1]);
    time_preload(argv[1]);
    printf("}\n");
    return 0;
}
