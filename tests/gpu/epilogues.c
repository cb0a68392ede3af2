/* SPDX-License-Identifier: Apache-2.0 */
/* Fused epilogues on the GPU.
 *
 * exact: keys in which, for each operation, every pair of values of all fields occurs, with small integers,
 * over shapes; all of memory around D and PostAct compared, and amax. error: each function and its derivative
 * against f64, and the act, dact, gated and dgated cases of quack's tests by its own rule. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "epilogues.h"

static bool set_option(struct epilogues_options *options, int c)
{
    switch (c) {
    case 'r':
        options->reference = optarg;
        return true;
    case 'p':
        options->epilogues = optarg;
        return true;
    case 'c':
        options->cache_dir = optarg;
        return true;
    case 'g':
        options->commit = optarg;
        return true;
    case 'f':
        options->filter = optarg;
        return true;
    case 't':
        options->set = optarg;
        return true;
    case 's':
        options->small = true;
        return true;
    case 'm':
        options->from = atoi(optarg);
        return options->from >= 0;
    case 'o':
        options->to = atoi(optarg);
        return options->to >= 1;
    case 'k':
        options->keys = optarg; /* a file with a key a line, instead of the covering array */
        return true;
    case 'w':
        options->watch = atoi(optarg);
        return options->watch >= 1;
    case 'e':
        options->every = atoi(optarg);
        return options->every >= 1;
    case 'n':
        options->repeats = atoi(optarg);
        return options->repeats >= 0;
    case 'j':
        options->jobs = atoi(optarg);
        return options->jobs >= 1 && options->jobs <= 64;
    case 'd':
        options->seed = (unsigned)atoi(optarg);
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"reference", 1, NULL, 'r'}, {"epilogues", 1, NULL, 'p'}, {"cache-dir", 1, NULL, 'c'},
        {"commit", 1, NULL, 'g'},    {"filter", 1, NULL, 'f'},    {"set", 1, NULL, 't'},
        {"small", 0, NULL, 's'},     {"every", 1, NULL, 'e'},     {"repeats", 1, NULL, 'n'},
        {"jobs", 1, NULL, 'j'},      {"seed", 1, NULL, 'd'},      {"from", 1, NULL, 'm'},
        {"to", 1, NULL, 'o'},        {"keys", 1, NULL, 'k'},      {"watch", 1, NULL, 'w'},
        {NULL, 0, NULL, 0}};
    struct epilogues_options options = {.reference = "tests/gpu/reference.cu",
                                        .epilogues = "tests/gpu/epilogues.cu",
                                        .commit = "unknown",
                                        .set = "all",
                                        .every = 1,
                                        .to = 1 << 20,
                                        .watch = 64,
                                        .repeats = 20,
                                        .jobs = 12,
                                        .seed = 1};
    struct rig rig;
    size_t failed = 0;
    int c;
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!set_option(&options, c))
            return 2;
    const bool all = strcmp(options.set, "all") == 0, exact = strcmp(options.set, "exact") == 0;
    if (!all && !exact && strcmp(options.set, "error") != 0)
        return 2;
    rig_open(&rig, options.reference, options.cache_dir);
    rig_print_setting(&rig, options.commit);
    if (all || exact)
        failed += epilogues_exact(&rig, &options);
    if (!exact)
        failed += epilogues_error(&rig, &options);
    rig_close(&rig);
    return failed == 0 ? 0 : 1;
}
