/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes and threads on one cache: every load is a whole right entry or a miss, and nothing is left.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_fixture.h"

enum {
    NUM_PROCESSES = 8,
    NUM_SAMPLES = 4,
    NUM_ROUNDS = 50,
    NUM_THREADS = 8,
    NUM_MAKERS = 32,
    NUM_READERS = 2,
    NUM_HEALS = 200,
    NUM_KILLS = 150,
    TIMEOUT_S = 100
};

static struct scratch scratch;
static struct sample samples[NUM_SAMPLES];

static int set_up(void **state)
{
    (void)state;
    alarm(TIMEOUT_S);
    scratch_make(&scratch);
    for (unsigned i = 0; i < NUM_SAMPLES; i++)
        sample_make(&samples[i], i);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    alarm(0);
    return 0;
}

/* -- Processes --------------------------------------------------------------------------------------- */

static pthread_barrier_t *make_shared_barrier(unsigned count)
{
    pthread_barrierattr_t attributes;
    pthread_barrier_t *barrier =
        mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(barrier != MAP_FAILED);
    assert_int_equal(pthread_barrierattr_init(&attributes), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(barrier, &attributes, count), 0);
    pthread_barrierattr_destroy(&attributes);
    return barrier;
}

/* Loads; a hit must be right. Returns 1 for a hit, 0 for a miss, -1 for anything else. */
static int load_whole(gj_cache *cache, const struct sample *sample)
{
    struct gj_cache_entry entry = {0};
    const enum gj_cache_result result = gj_cache_load(cache, &sample->name, &sample->entry, &entry);
    const bool is_right = result != GJ_CACHE_HIT || sample_equals(sample, &entry);
    gj_cache_entry_free(&entry);
    if (!is_right || result == GJ_CACHE_DAMAGED)
        return -1;
    return result == GJ_CACHE_HIT;
}

/* Each round starts on a directory that nobody has made. */
static int work_rounds(pthread_barrier_t *barrier, struct cache_log *log)
{
    for (int round = 0; round < NUM_ROUNDS; round++) {
        const struct path root = path_format("%.4000s/r%d", scratch.dir.text, round);
        const struct gj_log sink = cache_log_to(log);
        gj_cache *cache = gj_cache_open(root.text, &sink);
        CHILD_CHECK(cache);
        pthread_barrier_wait(barrier);
        for (int i = 0; i < NUM_SAMPLES; i++) {
            CHILD_CHECK(load_whole(cache, &samples[i]) >= 0);
            CHILD_CHECK(gj_cache_store(cache, &samples[i].name, &samples[i].entry) > 0);
            CHILD_CHECK(load_whole(cache, &samples[i]) == 1);
            gj_cache_compiler_put(cache, "id", "nvrtc 13.0");
        }
        gj_cache_close(&cache);
    }
    CHILD_CHECK(atomic_load(&log->warnings) == 0);
    return 0;
}

static void processes_share_a_cold_cache(void **state)
{
    (void)state;
    pid_t children[NUM_PROCESSES];
    pthread_barrier_t *barrier = make_shared_barrier(NUM_PROCESSES);
    fflush(NULL);
    for (int i = 0; i < NUM_PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            alarm(TIMEOUT_S); /* not inherited; a sibling that failed leaves the others at the barrier */
            _exit(work_rounds(barrier, &scratch.log));
        }
    }
    for (int i = 0; i < NUM_PROCESSES; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    munmap(barrier, sizeof *barrier);
    for (int round = 0; round < NUM_ROUNDS; round++) {
        const struct path root = path_format("%.4000s/r%d", scratch.dir.text, round);
        assert_int_equal(count_files(root.text, ".gjc"), NUM_SAMPLES);
        assert_int_equal(count_files(root.text, ""), NUM_SAMPLES + 2); /* and two stamps, no .tmp- */
    }
}

/* -- A root that many make ------------------------------------------------------------------------------- */

static int make_root(pthread_barrier_t *barrier, int maker)
{
    const struct path root = path_format("%.4000s/deep/er/root", scratch.dir.text);
    const struct gj_log sink = cache_log_to(&scratch.log);
    const struct sample *sample = &samples[maker % NUM_SAMPLES];
    gj_cache *cache = gj_cache_open(root.text, &sink);
    CHILD_CHECK(cache);
    pthread_barrier_wait(barrier);
    struct gj_cache_lock lock = gj_cache_lock(cache, &sample->name); /* makes the root, too */
    gj_cache_unlock(&lock);
    CHILD_CHECK(gj_cache_store(cache, &sample->name, &sample->entry) > 0);
    CHILD_CHECK(load_whole(cache, sample) == 1);
    gj_cache_close(&cache);
    CHILD_CHECK(atomic_load(&scratch.log.warnings) == 0);
    return 0;
}

/* Nobody fails because another one was quicker. */
static void processes_make_the_root_at_once(void **state)
{
    (void)state;
    pid_t children[NUM_MAKERS];
    pthread_barrier_t *barrier = make_shared_barrier(NUM_MAKERS);
    fflush(NULL);
    for (int i = 0; i < NUM_MAKERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            alarm(TIMEOUT_S);
            _exit(make_root(barrier, i));
        }
    }
    for (int i = 0; i < NUM_MAKERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    munmap(barrier, sizeof *barrier);
    assert_int_equal(count_files(scratch.dir.text, ".gjc"), NUM_SAMPLES);
    assert_int_equal(count_files(scratch.dir.text, ""), NUM_SAMPLES + 1); /* and the lock's */
}

/* -- A bad entry that is replaced ------------------------------------------------------------------------ */

struct healing {
    atomic_bool is_good, is_done;
    atomic_int num_reading, num_hit; /* readers that have loaded once, that have had a hit */
};

/* Loads again and again: refused until the writer's entry is there, and from then on a hit. */
static int read_for_ever(struct healing *healing)
{
    const struct gj_log silent = {0};
    gj_cache *cache = gj_cache_open(scratch.root.text, &silent);
    bool was_hit = false;
    int loads = 0;
    CHILD_CHECK(cache);
    while (!atomic_load(&healing->is_done)) {
        struct gj_cache_entry entry = {0};
        const bool must_hit = was_hit || atomic_load(&healing->is_good);
        const enum gj_cache_result result = gj_cache_load(cache, &samples[0].name, &samples[0].entry, &entry);
        const bool is_right = result != GJ_CACHE_HIT || sample_equals(&samples[0], &entry);
        gj_cache_entry_free(&entry);
        CHILD_CHECK(is_right && result != GJ_CACHE_MISS);
        CHILD_CHECK(result == GJ_CACHE_HIT || !must_hit);
        if (!was_hit && result == GJ_CACHE_HIT)
            atomic_fetch_add(&healing->num_hit, 1);
        if (loads++ == 0)
            atomic_fetch_add(&healing->num_reading, 1);
        was_hit = result == GJ_CACHE_HIT;
    }
    gj_cache_close(&cache);
    return 0;
}

/* Until all readers have come so far; the alarm ends it when one has died. */
static void await_readers(atomic_int *count)
{
    const struct timespec pause = {0, 200000};
    while (atomic_load(count) < NUM_READERS)
        nanosleep(&pause, NULL);
}

/* One round with readers of their own processes; whoever finds a bad entry takes nothing away. */
static void heal_under_readers(struct healing *healing, const struct path *file)
{
    pid_t children[NUM_READERS];
    atomic_store(&healing->is_good, false);
    atomic_store(&healing->is_done, false);
    atomic_store(&healing->num_reading, 0);
    atomic_store(&healing->num_hit, 0);
    write_file(file->text, "bad", 3, 0600);
    fflush(NULL);
    for (int i = 0; i < NUM_READERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            alarm(TIMEOUT_S);
            _exit(read_for_ever(healing));
        }
    }
    await_readers(&healing->num_reading);
    assert_true(gj_cache_store(scratch.cache, &samples[0].name, &samples[0].entry) > 0);
    atomic_store(&healing->is_good, true);
    await_readers(&healing->num_hit);
    atomic_store(&healing->is_done, true);
    for (int i = 0; i < NUM_READERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(load_whole(scratch.cache, &samples[0]), 1);
}

static void a_good_entry_is_never_removed(void **state)
{
    (void)state;
    struct healing *healing =
        mmap(NULL, sizeof *healing, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(healing != MAP_FAILED);
    assert_true(gj_cache_store(scratch.cache, &samples[0].name, &samples[0].entry) > 0);
    const struct path file = sample_path(&scratch, &samples[0]);
    for (int i = 0; i < NUM_HEALS; i++)
        heal_under_readers(healing, &file);
    munmap(healing, sizeof *healing);
}

/* -- Writers that die ------------------------------------------------------------------------------------ */

static int store_for_ever(void *unused)
{
    (void)unused;
    for (unsigned i = 0;; i++)
        (void)gj_cache_store(scratch.cache, &samples[i % NUM_SAMPLES].name, &samples[i % NUM_SAMPLES].entry);
    return 0;
}

/* A process that dies at any moment leaves whole entries, and temporary files that clear removes. */
static void killed_publishers_do_no_harm(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_KILLS; i++) {
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(store_for_ever(NULL));
        const struct timespec moment = {0, 200000L + i * 37717L % 5000000L};
        nanosleep(&moment, NULL);
        int status = 0;
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        for (int j = 0; j < NUM_SAMPLES; j++)
            assert_true(load_whole(scratch.cache, &samples[j]) >= 0);
    }
    assert_true(gj_cache_clear(scratch.cache) >= 0);
    assert_int_equal(count_files(scratch.root.text, ""), 0);
}

/* -- Temporary names that are equal -----------------------------------------------------------------------
 */

static atomic_bool is_random_frozen;

/* Stands before the C library's. Without it names are the process and a counter of each cache: those of
 * containers that share a volume are then equal. */
ssize_t getrandom(void *data, size_t bytes, unsigned flags)
{
    if (!atomic_load(&is_random_frozen))
        return syscall(SYS_getrandom, data, bytes, flags);
    memset(data, 0, bytes);
    return (ssize_t)bytes;
}

struct twin {
    pthread_barrier_t *barrier;
    int num_failed;
};

static void *store_as_twin(void *argument)
{
    struct twin *twin = argument;
    const struct gj_log silent = {0};
    for (int i = 0; i < NUM_ROUNDS; i++) {
        const struct sample *sample = &samples[i % NUM_SAMPLES];
        gj_cache *cache = gj_cache_open(scratch.root.text, &silent); /* counts from 0 */
        pthread_barrier_wait(twin->barrier);
        twin->num_failed += gj_cache_store(cache, &sample->name, &sample->entry) == 0;
        twin->num_failed += load_whole(cache, sample) != 1;
        pthread_barrier_wait(twin->barrier);
        gj_cache_close(&cache);
    }
    return NULL;
}

static void equal_temporary_names_do_no_harm(void **state)
{
    (void)state;
    pthread_t threads[NUM_THREADS];
    struct twin twins[NUM_THREADS];
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, NUM_THREADS), 0);
    atomic_store(&is_random_frozen, true);
    for (int i = 0; i < NUM_THREADS; i++) {
        twins[i] = (struct twin){&barrier, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, store_as_twin, &twins[i]), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    atomic_store(&is_random_frozen, false);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(twins[i].num_failed, 0);
    assert_int_equal(count_files(scratch.root.text, ""), NUM_SAMPLES);
}

/* -- Threads ----------------------------------------------------------------------------------------- */

struct crew {
    pthread_barrier_t barrier;
    atomic_int bad_loads, failed_stores, running;
    atomic_uint tickets;
};

static void *publish_and_load(void *argument)
{
    struct crew *crew = argument;
    const unsigned me = atomic_fetch_add(&crew->tickets, 1);
    pthread_barrier_wait(&crew->barrier);
    for (unsigned i = 0; i < 2 * NUM_ROUNDS; i++) {
        const struct sample *sample = &samples[(i + me) % NUM_SAMPLES];
        if (gj_cache_store(scratch.cache, &sample->name, &sample->entry) == 0)
            atomic_fetch_add(&crew->failed_stores, 1);
        if (load_whole(scratch.cache, sample) < 0)
            atomic_fetch_add(&crew->bad_loads, 1);
        char version[32];
        gj_cache_compiler_put(scratch.cache, "id", i % 2 ? "nvrtc 13.0" : "nvrtc 13.1");
        if (gj_cache_compiler_get(scratch.cache, "id", version, sizeof version) &&
            strncmp(version, "nvrtc 13.", 9) != 0)
            atomic_fetch_add(&crew->bad_loads, 1);
    }
    atomic_fetch_sub(&crew->running, 1);
    return NULL;
}

static void start_crew(struct crew *crew, pthread_t *threads, unsigned count)
{
    memset(crew, 0, sizeof *crew);
    atomic_store(&crew->running, (int)count);
    assert_int_equal(pthread_barrier_init(&crew->barrier, NULL, count), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, publish_and_load, crew), 0);
}

static void join_crew(struct crew *crew, const pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&crew->barrier);
}

static void threads_share_a_cache(void **state)
{
    (void)state;
    struct crew crew;
    pthread_t threads[NUM_THREADS];
    start_crew(&crew, threads, NUM_THREADS);
    join_crew(&crew, threads, NUM_THREADS);
    assert_int_equal(atomic_load(&crew.bad_loads), 0);
    assert_int_equal(atomic_load(&crew.failed_stores), 0);
    assert_int_equal(count_files(scratch.root.text, ""), NUM_SAMPLES + 2);
    assert_int_equal(atomic_load(&scratch.log.warnings), 0);
}

static void threads_warn_once_of_a_cause(void **state)
{
    (void)state;
    struct crew crew;
    pthread_t threads[NUM_THREADS];
    write_file(scratch.root.text, "", 0, 0600); /* a file where the root should be */
    start_crew(&crew, threads, NUM_THREADS);
    join_crew(&crew, threads, NUM_THREADS);
    assert_int_equal(atomic_load(&crew.bad_loads), 0);
    assert_int_equal(atomic_load(&crew.failed_stores), NUM_THREADS * 2 * NUM_ROUNDS);
    assert_in_range(atomic_load(&scratch.log.warnings), 1, 4); /* load, store, stamp read, stamp stored */
}

static bool count_sound(void *user, const char *path, uint64_t file_bytes, const struct gj_cache_entry *entry,
                        const char *reason)
{
    (void)path, (void)file_bytes, (void)reason;
    if (!entry)
        ++*(int *)user;
    return true;
}

/* Whoever clears or lists meanwhile breaks nobody; a store may lose its temporary file to it. */
static void clearing_meanwhile_is_only_a_miss(void **state)
{
    (void)state;
    struct crew crew;
    pthread_t threads[NUM_THREADS];
    int unsound = 0;
    start_crew(&crew, threads, NUM_THREADS);
    while (atomic_load(&crew.running) > 0) {
        assert_true(gj_cache_list(scratch.cache, count_sound, &unsound, NULL) >= 0);
        assert_true(gj_cache_clear(scratch.cache) >= 0);
    }
    join_crew(&crew, threads, NUM_THREADS);
    assert_int_equal(unsound, 0);
    assert_int_equal(atomic_load(&crew.bad_loads), 0);
    assert_in_range(atomic_load(&crew.failed_stores), 0, NUM_THREADS * NUM_ROUNDS);
    assert_int_equal(count_files(scratch.root.text, ".tmp-"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(processes_share_a_cold_cache),     TEST(processes_make_the_root_at_once),
        TEST(a_good_entry_is_never_removed),    TEST(killed_publishers_do_no_harm),
        TEST(equal_temporary_names_do_no_harm), TEST(threads_share_a_cache),
        TEST(threads_warn_once_of_a_cause),     TEST(clearing_meanwhile_is_only_a_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
