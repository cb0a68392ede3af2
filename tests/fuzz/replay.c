/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a target without libFuzzer: on seeds, on everything near to them, and on random mutations of them.
 *
 *     replay_NAME [--near N] [--runs N] [--seed N] [--write DIRECTORY] FILE|DIRECTORY ...
 *
 * --near: each seed cut at every length and with each bit flipped, one at a time; of long seeds only so many,
 * evenly. --runs: so many mutations, which depend on --seed (1) and nothing else. --write: writes the seeds
 * that the target makes by itself. They belong to the seeds of --near and --runs; without these only the
 * given files run.
 *
 * The target runs in a child, so that whatever ends it leaves the input, which is written to a file. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mutate.h"

enum { INPUT_SECONDS = 20 };

struct options {
    long near, runs, seed;
    const char *write;
};

/* What the child leaves to its parent. */
struct progress {
    unsigned long executions;
    char what[256]; /* the input is */
    size_t size;
    uint8_t data[MUTATE_MAX];
};

static struct seeds seeds; /* of the whole run */
static struct progress *progress;

static int fail(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", what, name);
    return 2;
}

/* -- Seeds ------------------------------------------------------------------------------------------------
 */

static bool add_file(const char *path)
{
    uint8_t data[MUTATE_MAX];
    FILE *const file = fopen(path, "rb");
    if (!file)
        return false;
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    return seeds_add(&seeds, path, data, size);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return add_file(path);
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, compare_names);
    bool done = count >= 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            done = add_file(name) && done;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return done;
}

static void add_made(void)
{
    uint8_t data[FUZZ_SEED_MAX];
    size_t size;
    for (size_t i = 0; (size = fuzz_seed(i, data)) > 0; i++) {
        char name[32];
        snprintf(name, sizeof name, "made-%zu", i);
        seeds_add(&seeds, name, data, size);
    }
}

static bool write_bytes(const char *path, const uint8_t *data, size_t size)
{
    FILE *const file = fopen(path, "wb");
    if (!file)
        return false;
    const bool done = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && done;
}

static int write_made(const char *directory)
{
    uint8_t data[FUZZ_SEED_MAX];
    size_t size;
    for (size_t i = 0; (size = fuzz_seed(i, data)) > 0; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/made-%zu", directory, i);
        if (!write_bytes(path, data, size))
            return fail("cannot write", path);
    }
    return 0;
}

/* -- Running ----------------------------------------------------------------------------------------------
 */

static void execute(const uint8_t *data, size_t size)
{
    progress->size = size;
    memcpy(progress->data, data, size);
    progress->executions++;
    uint8_t *const exact = fuzz_copy(data, size); /* so that a read beyond the input shows */
    alarm(INPUT_SECONDS);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void run_near(const struct seed *seed, size_t most)
{
    uint8_t data[MUTATE_MAX];
    const size_t cut_step = 1 + seed->size / most, flip_step = 1 + 8 * seed->size / most;
    for (size_t size = 0; size < seed->size; size += cut_step) {
        snprintf(progress->what, sizeof progress->what, "%.200s, cut to %zu bytes", seed->name, size);
        execute(seed->data, size);
    }
    memcpy(data, seed->data, seed->size);
    for (size_t bit = 0; bit < 8 * seed->size; bit += flip_step) {
        snprintf(progress->what, sizeof progress->what, "%.200s, bit %zu flipped", seed->name, bit);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        execute(data, seed->size);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void run_mutations(const struct options *options)
{
    struct random random = {(uint64_t)options->seed};
    uint8_t data[MUTATE_MAX];
    for (long run = 0; run < options->runs; run++) {
        snprintf(progress->what, sizeof progress->what, "run %ld of --seed %ld", run, options->seed);
        execute(data, mutate(&random, &seeds, data));
    }
}

static void run_all(const struct options *options)
{
    for (size_t i = 0; i < seeds.count; i++) {
        snprintf(progress->what, sizeof progress->what, "%.200s", seeds.items[i].name);
        execute(seeds.items[i].data, seeds.items[i].size);
    }
    for (size_t i = 0; i < seeds.count && options->near > 0; i++)
        run_near(&seeds.items[i], (size_t)options->near);
    if (seeds.count > 0)
        run_mutations(options);
}

static int report(const char *program, int status)
{
    const char *const slash = strrchr(program, '/');
    char path[256];
    snprintf(path, sizeof path, "crash-%.100s-%d", slash ? slash + 1 : program, (int)getpid());
    const bool is_kept = write_bytes(path, progress->data, progress->size);
    fprintf(stderr, "failed: %s %d, input %lu: %s\n", WIFSIGNALED(status) ? "signal" : "exit status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), progress->executions,
            progress->what);
    fprintf(stderr, "again by: %s %s\n", program, is_kept ? path : "(the input could not be written)");
    return 1;
}

static int read_options(int argc, char **argv, struct options *options)
{
    static const char usage[] = "[--near N] [--runs N] [--seed N] [--write DIRECTORY] FILE|DIRECTORY ...";
    *options = (struct options){.seed = 1};
    for (int i = 1; i < argc; i++) {
        const char *const value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (!add_path(argv[i]))
                return fail("cannot read", argv[i]);
        } else if (!value) {
            return fail("usage", usage);
        } else if (strcmp(argv[i], "--near") == 0) {
            options->near = atol(argv[++i]);
        } else if (strcmp(argv[i], "--runs") == 0) {
            options->runs = atol(argv[++i]);
        } else if (strcmp(argv[i], "--seed") == 0) {
            options->seed = atol(argv[++i]);
        } else if (strcmp(argv[i], "--write") == 0) {
            options->write = argv[++i];
        } else {
            return fail("usage", usage);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    const int bad = read_options(argc, argv, &options);
    if (bad)
        return bad;
    if (options.write)
        return write_made(options.write);
    if (options.near > 0 || options.runs > 0)
        add_made();
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        return fail("no memory", argv[0]);
    const pid_t child = fork();
    if (child == 0) {
        run_all(&options);
        exit(0); /* a leak checker acts here */
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return fail("cannot run a child", argv[0]);
    if (status != 0)
        return report(argv[0], status);
    printf("%zu seeds, %lu executions\n", seeds.count, progress->executions);
    seeds_free(&seeds);
    return 0;
}
