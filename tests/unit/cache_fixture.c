/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch directories, sample entries and children for the tests of the disk cache. */
#include "cache_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHILD_SECONDS = 60, NOBODY = 65534 };

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

static void count_message(void *user, enum gj_log_level level, const char *message)
{
    struct cache_log *log = user;
    if (level > GJ_LOG_WARNING) {
        atomic_fetch_add(&log->others, 1);
        return;
    }
    atomic_fetch_add(&log->warnings, 1);
    pthread_mutex_lock(&log_mutex);
    snprintf(log->last_warning, sizeof log->last_warning, "%s", message);
    pthread_mutex_unlock(&log_mutex);
}

struct gj_log cache_log_to(struct cache_log *log)
{
    return (struct gj_log){count_message, log};
}

struct path path_format(const char *format, ...)
{
    struct path path;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(path.text, sizeof path.text, format, args);
    va_end(args);
    assert_in_range(length, 0, sizeof path.text - 1);
    return path;
}

/* -- Scratch directories ----------------------------------------------------------------------------- */

void scratch_reopen(struct scratch *scratch, const char *root)
{
    gj_cache_close(&scratch->cache);
    assert_null(scratch->cache);
    atomic_store(&scratch->log.warnings, 0);
    atomic_store(&scratch->log.others, 0);
    const struct gj_log log = cache_log_to(&scratch->log);
    scratch->cache = gj_cache_open(root, &log);
    assert_non_null(scratch->cache);
}

void scratch_make(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");
    memset(scratch, 0, sizeof *scratch);
    scratch->dir = path_format("%s/gj-cache-XXXXXX", base && base[0] == '/' ? base : "/tmp");
    assert_non_null(mkdtemp(scratch->dir.text));
    scratch->root = path_format("%.4000s/root", scratch->dir.text);
    scratch_reopen(scratch, scratch->root.text);
}

static int remove_any(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void scratch_remove(struct scratch *scratch)
{
    gj_cache_close(&scratch->cache);
    nftw(scratch->dir.text, remove_any, 16, FTW_DEPTH | FTW_PHYS);
}

/* -- Entries ----------------------------------------------------------------------------------------- */

void sample_make(struct sample *sample, unsigned seed)
{
    memset(sample, 0, sizeof *sample);
    snprintf(sample->key_text, sizeof sample->key_text, "op=gemm,tile=128x%u", seed);
    snprintf(sample->entry_name, sizeof sample->entry_name, "gj_gemm_%u", seed);
    uint32_t state = seed * 2654435761u + 1;
    for (size_t i = 0; i < sizeof sample->cubin; i++) {
        state = state * 1664525u + 1013904223u;
        sample->cubin[i] = (unsigned char)(state >> 24);
    }
    sample->entry = (struct gj_cache_entry){
        .key_text = sample->key_text,
        .unit_hash = gj_hash_bytes(sample->key_text, strlen(sample->key_text)),
        .compiler = "nvrtc 13.0",
        .arch = "sm_90a",
        .options = "-arch=sm_90a -default-device",
        .entry_name = sample->entry_name,
        .registers = 168,
        .threads = 384,
        .smem_bytes = 200000,
        .stages = 4,
        .spill_bytes = 0,
        .cubin = sample->cubin,
        .cubin_bytes = sizeof sample->cubin - seed % 100,
    };
    sample->name = gj_cache_name_make(&sample->entry.unit_hash, sample->entry.compiler, sample->entry.arch,
                                      sample->entry.options);
}

bool sample_equals(const struct sample *sample, const struct gj_cache_entry *entry)
{
    const struct gj_cache_entry *want = &sample->entry;
    return strcmp(want->key_text, entry->key_text) == 0 &&
           memcmp(want->unit_hash.bytes, entry->unit_hash.bytes, sizeof want->unit_hash.bytes) == 0 &&
           strcmp(want->compiler, entry->compiler) == 0 && strcmp(want->arch, entry->arch) == 0 &&
           strcmp(want->options, entry->options) == 0 && strcmp(want->entry_name, entry->entry_name) == 0 &&
           want->registers == entry->registers && want->threads == entry->threads &&
           want->smem_bytes == entry->smem_bytes && want->stages == entry->stages &&
           want->spill_bytes == entry->spill_bytes && want->cubin_bytes == entry->cubin_bytes &&
           memcmp(want->cubin, entry->cubin, want->cubin_bytes) == 0;
}

struct path sample_path(const struct scratch *scratch, const struct sample *sample)
{
    return path_format("%.4000s/v1/%.2s/%.40s", scratch->root.text, sample->name.text, sample->name.text);
}

enum gj_cache_result load_sample(struct scratch *scratch, const struct sample *sample)
{
    struct gj_cache_entry entry = {0};
    const enum gj_cache_result result = gj_cache_load(scratch->cache, &sample->name, &sample->entry, &entry);
    if (result == GJ_CACHE_HIT)
        assert_true(sample_equals(sample, &entry));
    else
        assert_null(entry.storage);
    gj_cache_entry_free(&entry);
    return result;
}

/* -- Files ------------------------------------------------------------------------------------------- */

void write_file(const char *path, const void *data, size_t bytes, mode_t mode)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, bytes), bytes);
    assert_int_equal(fchmod(file, mode), 0);
    assert_int_equal(close(file), 0);
}

unsigned char *read_file(const char *path, size_t *bytes)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &status), 0);
    *bytes = (size_t)status.st_size;
    unsigned char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(read(file, data, *bytes), *bytes);
    close(file);
    return data;
}

mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static int counted;
static const char *counted_part;

static int count_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    if (type != FTW_D && type != FTW_DP && strstr(path + walk->base, counted_part))
        counted++;
    return 0;
}

int count_files(const char *dir, const char *part)
{
    counted = 0;
    counted_part = part;
    nftw(dir, count_one, 16, FTW_PHYS);
    return counted;
}

/* -- Children ---------------------------------------------------------------------------------------- */

static int wait_child(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int run_child(int (*function)(void *), void *argument)
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(function(argument));
    }
    return wait_child(child);
}

static int give_away(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return lchown(path, NOBODY, NOBODY);
}

int run_child_unprivileged(struct scratch *scratch, int (*function)(void *), void *argument)
{
    if (geteuid() != 0)
        return run_child(function, argument);
    assert_int_equal(nftw(scratch->dir.text, give_away, 16, FTW_PHYS), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(99);
        _exit(function(argument));
    }
    return wait_child(child);
}
