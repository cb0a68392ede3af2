/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the lock of an entry, and of caches that are opened to be read only. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cache_fixture.h"

static struct scratch scratch;
static struct sample sample, other;

static int set_up(void **state)
{
    (void)state;
    scratch_make(&scratch);
    sample_make(&sample, 1);
    sample_make(&other, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

/* -- The lock ------------------------------------------------------------------------------------------ */

static void a_free_lock_is_taken_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
        assert_true(lock.file > STDERR_FILENO);
        assert_false(lock.waited);
        gj_cache_unlock(&lock);
        assert_int_equal(lock.file, -1);
        gj_cache_unlock(&lock);
    }
    const struct path file = path_format("%s/v1/lock", scratch.root.text);
    assert_int_equal(mode_of(file.text) & 07777, 0600);
    assert_int_equal(gj_cache_clear(scratch.cache), 0);
    assert_int_equal(access(file.text, F_OK), 0); /* it is never removed: others may be at it */
}

/* Without its mode nobody but root could open the file again, and there would be no locks any more. */
static void the_lock_file_is_private_under_any_umask(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 0777};
    for (size_t i = 0; i < 3; i++) {
        const struct path root = path_format("%.4000s/m%zu", scratch.dir.text, i);
        scratch_reopen(&scratch, root.text);
        const mode_t old = umask(masks[i]);
        struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
        umask(old);
        assert_true(lock.file >= 0);
        gj_cache_unlock(&lock);
        assert_int_equal(mode_of(path_format("%.4000s/v1/lock", root.text).text), 0600);
    }
}

static void entries_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct gj_cache_lock first = gj_cache_lock(scratch.cache, &sample.name);
    struct gj_cache_lock second = gj_cache_lock(scratch.cache, &other.name);
    assert_true(first.file >= 0 && second.file >= 0);
    assert_false(second.waited);
    assert_true(first.offset != second.offset);
    gj_cache_unlock(&first);
    gj_cache_unlock(&second);
}

/* A child that takes the lock, says so, and lives until it is killed or for `seconds`. */
static pid_t start_holder(unsigned seconds)
{
    int said[2];
    assert_int_equal(pipe(said), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct gj_log silent = {0};
        gj_cache *cache = gj_cache_open(scratch.root.text, &silent);
        const struct gj_cache_lock lock = gj_cache_lock(cache, &sample.name);
        (void)!write(said[1], lock.file >= 0 ? "y" : "n", 1);
        sleep(seconds);
        _exit(0);
    }
    char word = 'n';
    close(said[1]);
    assert_int_equal(read(said[0], &word, 1), 1);
    assert_int_equal(word, 'y');
    close(said[0]);
    return child;
}

static void *kill_soon(void *pid)
{
    const struct timespec pause = {.tv_nsec = 200000000};
    nanosleep(&pause, NULL);
    kill(*(pid_t *)pid, SIGKILL);
    return NULL;
}

static void a_killed_holder_frees_the_lock(void **state)
{
    (void)state;
    pid_t child = start_holder(60);
    pthread_t killer;
    assert_int_equal(pthread_create(&killer, NULL, kill_soon, &child), 0);
    const double start = gj_clock_ms();
    struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
    const double waited = gj_clock_ms() - start;
    pthread_join(killer, NULL);
    waitpid(child, NULL, 0);
    assert_true(lock.file >= 0 && lock.waited);
    assert_in_range((long)waited, 100, 1200);
    gj_cache_unlock(&lock);
}

/* A holder that was stopped is waited for no longer than the bound, and then costs nothing but the saving. */
static void a_stopped_holder_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    const pid_t child = start_holder(60);
    kill(child, SIGSTOP);
    const double start = gj_clock_ms();
    struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
    const double waited = gj_clock_ms() - start;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(lock.file, -1);
    assert_true(lock.waited);
    assert_in_range((long)waited, 9900, 12000);
    gj_cache_unlock(&lock);
}

struct taker {
    pthread_t thread;
    atomic_int *inside;
    int most;
};

static void *take_often(void *user)
{
    struct taker *taker = user;
    for (int i = 0; i < 50; i++) {
        struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
        const int now = lock.file < 0 ? 100 : atomic_fetch_add(taker->inside, 1) + 1;
        taker->most = now > taker->most ? now : taker->most;
        atomic_fetch_sub(taker->inside, 1);
        gj_cache_unlock(&lock);
    }
    return NULL;
}

static void threads_exclude_each_other(void **state)
{
    (void)state;
    struct taker takers[4] = {0};
    atomic_int inside = 0;
    for (int i = 0; i < 4; i++) {
        takers[i].inside = &inside;
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_often, &takers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(takers[i].thread, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(takers[i].most, 1);
}

/* What stands at the lock's name and is no file of ours is left alone, and there is no lock then. */
static void a_planted_lock_file_is_not_used(void **state)
{
    (void)state;
    gj_cache_store(scratch.cache, &sample.name, &sample.entry);
    const struct path file = path_format("%s/v1/lock", scratch.root.text);
    const struct path target = path_format("%s/target", scratch.dir.text);
    write_file(target.text, "", 0, 0600);
    assert_int_equal(symlink(target.text, file.text), 0);
    struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
    assert_int_equal(lock.file, -1);
    assert_int_equal(unlink(file.text), 0);
    assert_int_equal(mkdir(file.text, 0700), 0);
    lock = gj_cache_lock(scratch.cache, &sample.name);
    assert_int_equal(lock.file, -1);
    assert_int_equal(rmdir(file.text), 0);
    assert_int_equal(mkfifo(file.text, 0600), 0);
    lock = gj_cache_lock(scratch.cache, &sample.name);
    assert_int_equal(lock.file, -1);
    assert_false(lock.waited);
}

static int lock_errno; /* what locking fails with; 0: it works */

/* Stands before the C library's. */
int fcntl(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *const argument = va_arg(rest, void *);
    va_end(rest);
    if (command == F_OFD_SETLK && lock_errno != 0) {
        errno = lock_errno;
        return -1;
    }
    return (int)syscall(SYS_fcntl, file, command, argument);
}

/* Network file systems, and kernels without these locks: nobody waits, and all else works. */
static void a_file_system_without_locks_costs_only_the_saving(void **state)
{
    (void)state;
    static const int errors[] = {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, EIO, ESTALE};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        const double start = gj_clock_ms();
        lock_errno = errors[i];
        struct gj_cache_lock lock = gj_cache_lock(scratch.cache, &sample.name);
        const size_t stored = gj_cache_store(scratch.cache, &sample.name, &sample.entry);
        const enum gj_cache_result result = load_sample(&scratch, &sample);
        gj_cache_unlock(&lock);
        lock_errno = 0;
        assert_int_equal(lock.file, -1);
        assert_false(lock.waited);
        assert_true(stored > 0);
        assert_int_equal(result, GJ_CACHE_HIT);
        assert_in_range((long)(gj_clock_ms() - start), 0, 5000);
        assert_int_equal(scratch.log.warnings, 0);
    }
}

/* -- Read only ----------------------------------------------------------------------------------------- */

static gj_cache *open_read_only(const char *root)
{
    const struct gj_cache_params params = {.root = root, .read_only = true};
    const struct gj_log log = cache_log_to(&scratch.log);
    return gj_cache_open_as(&params, &log);
}

static void a_read_only_cache_writes_nothing(void **state)
{
    (void)state;
    assert_true(gj_cache_store(scratch.cache, &sample.name, &sample.entry) > 0);
    const struct path file = sample_path(&scratch, &sample);
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, file.text, old, 0), 0);
    gj_cache *cache = open_read_only(scratch.root.text);
    struct gj_cache_entry entry;
    assert_true(gj_cache_is_read_only(cache));
    assert_int_equal(gj_cache_load(cache, &sample.name, &sample.entry, &entry), GJ_CACHE_HIT);
    struct stat status;
    assert_int_equal(stat(file.text, &status), 0);
    assert_int_equal(entry.file_bytes, status.st_size);
    assert_int_equal(status.st_mtime, 1000000);
    gj_cache_entry_free(&entry);
    assert_int_equal(gj_cache_store(cache, &other.name, &other.entry), 0);
    gj_cache_compiler_put(cache, "some", "nvrtc 1.2");
    const struct gj_cache_lock lock = gj_cache_lock(cache, &other.name);
    assert_int_equal(lock.file, -1);
    struct gj_strbuf reason = {0};
    assert_false(gj_cache_is_writable(cache, &reason));
    assert_non_null(strstr(reason.text, "read only"));
    gj_strbuf_free(&reason);
    assert_int_equal(count_files(scratch.root.text, ""), 1);
    assert_int_equal(scratch.log.warnings, 0);
    gj_cache_close(&cache);
}

static void a_read_only_cache_that_is_not_there_is_off(void **state)
{
    (void)state;
    gj_cache *cache = open_read_only(scratch.root.text);
    assert_non_null(gj_cache_off_reason(cache));
    assert_int_equal(access(scratch.root.text, F_OK), -1);
    gj_cache_close(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_free_lock_is_taken_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_lock_file_is_private_under_any_umask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(entries_do_not_wait_for_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_killed_holder_frees_the_lock, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_holder_is_not_waited_for_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_exclude_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_planted_lock_file_is_not_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_system_without_locks_costs_only_the_saving, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_only_cache_writes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_read_only_cache_that_is_not_there_is_off, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("cache lock", tests, NULL, NULL);
}
