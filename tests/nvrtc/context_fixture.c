/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that compile, for tests. */
#include "context_fixture.h"

#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "generate/assets.h"

static char real_path[PATH_MAX], forwarding_path[PATH_MAX];

/* libnvrtc may be called by several threads at once, but was not built for TSan: its own locks do not show.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libnvrtc.so\n";
}

/* -- libnvrtc -------------------------------------------------------------------------------------------- */

void fixture_open(const char *forwarding_library)
{
    gj_compiler *compiler = NULL;
    gj_error *error = NULL;
    if (gj_compiler_open(&compiler, &error) != GJ_OK) {
        fprintf(stderr, "skipped: %s\n", error ? error->message : "no memory");
        exit(77);
    }
    if (realpath(gj_compiler_path(compiler), real_path) == NULL ||
        realpath(forwarding_library, forwarding_path) == NULL) {
        perror("realpath");
        exit(1);
    }
    gj_compiler_close(&compiler);
    unsetenv("GEMMJIT_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    use_real();
}

const char *real_nvrtc(void)
{
    return real_path;
}

void use_real(void)
{
    setenv("GEMMJIT_NVRTC", real_path, 1);
}

struct forward_nvrtc *use_forwarding(int major, int minor)
{
    void *const library = dlopen(forwarding_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    struct forward_nvrtc *const forward = dlsym(library, FORWARD_NVRTC_STATE);
    assert_non_null(forward);
    forward->real = real_path;
    forward->major = major;
    forward->minor = minor;
    forward->is_held = forward->num_compiles = 0;
    setenv("GEMMJIT_NVRTC", forwarding_path, 1);
    return forward;
}

void release(struct forward_nvrtc *forward)
{
    pthread_mutex_lock(&forward->lock);
    forward->is_held = 0;
    pthread_cond_broadcast(&forward->changed);
    pthread_mutex_unlock(&forward->lock);
}

void await_compiles(struct forward_nvrtc *forward, int count)
{
    pthread_mutex_lock(&forward->lock);
    while (forward->num_compiles < count)
        pthread_cond_wait(&forward->changed, &forward->lock);
    pthread_mutex_unlock(&forward->lock);
}

/* -- Contexts and kernels -------------------------------------------------------------------------------- */

gj_context *context_on(struct scratch *scratch, const char *template_dir, int no_compile)
{
    const struct gj_log log = cache_log_to(&scratch->log);
    const struct gj_context_params params = {.cache_dir = scratch->root.text,
                                             .no_compile = no_compile,
                                             .log = log.fn,
                                             .log_user = log.user,
                                             .template_dir = template_dir};
    gj_context *context = NULL;
    gj_error *error = NULL;
    if (gj_context_open(&params, &context, &error) != GJ_OK)
        fail_msg("%s", error->message);
    return context;
}

struct gj_stats stats_of(const gj_context *context)
{
    struct gj_stats stats;
    gj_stats(context, &stats);
    return stats;
}

struct gj_key key_of(const char *text)
{
    struct gj_key key;
    assert_int_equal(gj_key_parse(text, &key, NULL), GJ_OK);
    return key;
}

gj_kernel *kernel_of(gj_context *context, const char *key_text)
{
    const struct gj_key key = key_of(key_text);
    gj_kernel *kernel = NULL;
    gj_error *error = NULL;
    if (gj_kernel_get(context, &key, 0, &kernel, &error) != GJ_OK)
        fail_msg("%s\n%s", error->message, error->detail);
    assert_non_null(kernel);
    assert_null(error);
    return kernel;
}

gj_error *refusal_of(gj_context *context, const char *key_text, unsigned flags, enum gj_status status)
{
    const struct gj_key key = key_of(key_text);
    gj_kernel *const untouched = (gj_kernel *)(void *)&real_path;
    gj_kernel *kernel = untouched;
    gj_error *error = NULL;
    const enum gj_status got = gj_kernel_get(context, &key, flags, &kernel, &error);
    if (got != status)
        fail_msg("%s: %s", gj_status_name(got), error ? error->message : "");
    assert_ptr_equal(kernel, untouched);
    assert_non_null(error);
    assert_int_equal(error->status, status);
    return error;
}

void check_words(gj_error *error, const char *first, const char *second)
{
    if (strstr(error->message, first) == NULL || strstr(error->message, second) == NULL)
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", first, second, error->message);
}

/* -- Cache files ----------------------------------------------------------------------------------------- */

int count_entries(const struct scratch *scratch)
{
    return count_files(scratch->root.text, ".gjc");
}

static struct path found_entry;

static int find_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    if (strstr(path, ".gjc") != NULL)
        found_entry = path_format("%s", path);
    return 0;
}

struct path only_entry(const struct scratch *scratch)
{
    assert_int_equal(count_entries(scratch), 1);
    nftw(scratch->root.text, find_entry, 16, FTW_PHYS);
    return found_entry;
}

/* -- Templates ------------------------------------------------------------------------------------------- */

void write_templates(const char *directory)
{
    static const char *const folders[] = {"", "/templates", "/ptx_snippets"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        assert_int_equal(mkdir(path_format("%s%s", directory, folders[i]).text, 0700), 0);
    const struct gj_assets *const assets = gj_assets_builtin();
    for (size_t i = 0; i < assets->count; i++)
        write_file(path_format("%s/%s", directory, assets->items[i].path).text, assets->items[i].text,
                   assets->items[i].length, 0600);
}

int append_template(const char *directory, const char *path, const char *text)
{
    const struct path file = path_format("%s/%s", directory, path);
    size_t bytes = 0;
    int line = 1;
    unsigned char *const old = read_file(file.text, &bytes);
    for (size_t i = 0; i < bytes; i++)
        line += old[i] == '\n';
    const size_t added = strlen(text);
    unsigned char *const whole = realloc(old, bytes + added + 1);
    assert_non_null(whole);
    memcpy(whole + bytes, text, added);
    write_file(file.text, whole, bytes + added, 0600);
    free(whole);
    return line;
}

/* -- Threads --------------------------------------------------------------------------------------------- */

/* What one thread is given. No cmocka assertion in there: they belong to the main thread. */
struct start {
    struct asker *asker;
    pthread_barrier_t *barrier;
};

static void *ask(void *argument)
{
    const struct start *const start = argument;
    struct asker *const asker = start->asker;
    pthread_barrier_wait(start->barrier);
    for (size_t i = 0; i < asker->num_keys; i++) {
        const size_t at = (asker->first + i) % asker->num_keys;
        asker->status[at] = gj_kernel_get(asker->context, &asker->keys[at], asker->flags, &asker->kernels[at],
                                          &asker->errors[at]);
    }
    return NULL;
}

void ask_at_once(struct asker *askers, size_t count)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    struct start starts[MOST];
    pthread_barrier_t barrier;
    assert_in_range(count, 1, MOST);
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        starts[i] = (struct start){&askers[i], &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &starts[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}
