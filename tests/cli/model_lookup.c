/* SPDX-License-Identifier: Apache-2.0 */
/* What a server that may not compile does: for each M from 1 to M_MAX it chooses the key of each problem, as
 * gj_gemm does, and gets its kernel from the cache. Prints the counts as JSON.
 *
 *     model_lookup CACHE_DIR M_MAX SMS [PROBLEM N K] ...
 *
 * $LOOKUP_GPU is the name of the GPU that tuning tables are asked for. */
#include <gemmjit/gemmjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 4096

struct counts {
    long lookups, misses, failures;
    size_t num_keys;
    struct gj_key keys[KEYS_MAX];
};

static void count_key(struct counts *counts, const struct gj_key *key)
{
    for (size_t i = counts->num_keys; i-- > 0;)
        if (memcmp(&counts->keys[i], key, sizeof(*key)) == 0)
            return;
    if (counts->num_keys < KEYS_MAX)
        counts->keys[counts->num_keys++] = *key;
}

static void look_up(gj_context *context, const struct gj_key *problem, const int64_t extents[3], int num_sms,
                    struct counts *counts)
{
    struct gj_key key;
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    counts->lookups++;
    enum gj_status status = gj_context_choose(context, problem, extents[0], extents[1], extents[2], 1,
                                              getenv("LOOKUP_GPU"), num_sms, &key, &error);
    if (status == GJ_OK) {
        count_key(counts, &key);
        status = gj_kernel_get(context, &key, 0, &kernel, &error);
    }
    counts->misses += status == GJ_ERR_NOT_CACHED;
    counts->failures += status != GJ_OK && status != GJ_ERR_NOT_CACHED;
    if (status != GJ_OK && counts->misses + counts->failures == 1)
        fprintf(stderr, "M = %lld, N = %lld, K = %lld: %s\n", (long long)extents[0], (long long)extents[1],
                (long long)extents[2], error ? error->message : "no memory");
    gj_error_free(&error);
}

int main(int argc, char **argv)
{
    static struct counts counts;
    gj_context *context = NULL;
    struct gj_stats stats;
    if (argc < 4 || argc % 3 != 1)
        return 2;
    const struct gj_context_params params = {.cache_dir = argv[1], .no_compile = 1};
    const int64_t m_max = atoll(argv[2]);
    if (gj_context_open(&params, &context, NULL) != GJ_OK)
        return 1;
    for (int i = 4; i < argc; i += 3) {
        struct gj_key problem;
        if (gj_key_parse(argv[i], &problem, NULL) != GJ_OK)
            return 2;
        for (int64_t m = 1; m <= m_max; m++) {
            const int64_t extents[3] = {m, atoll(argv[i + 1]), atoll(argv[i + 2])};
            look_up(context, &problem, extents, atoi(argv[3]), &counts);
        }
    }
    gj_stats(context, &stats);
    printf("{\"lookups\": %ld, \"misses\": %ld, \"failures\": %ld, \"keys\": %zu, \"disk_hits\": %llu, "
           "\"compiles\": %llu, \"nvrtc_opens\": %llu}\n",
           counts.lookups, counts.misses, counts.failures, counts.num_keys,
           (unsigned long long)stats.disk_hits, (unsigned long long)stats.compiles,
           (unsigned long long)stats.nvrtc_opens);
    gj_context_close(&context);
    return 0;
}
