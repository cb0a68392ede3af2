/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the remote fails once: nothing crashes, leaks, or is half done. Linked with --wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote_fixture.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* Allocations of this thread that still succeed before the one that fails; negative: all do. The server's and
 * the uploader's always do. */
static _Thread_local int allowed = -1;

static bool is_allowed(void)
{
    return allowed < 0 || allowed-- != 0;
}

void *__wrap_malloc(size_t bytes)
{
    return is_allowed() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_allowed() ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_allowed() ? __real_realloc(memory, bytes) : NULL;
}

static void ignore_message(void *user, enum gj_log_level level, const char *message)
{
    (void)user, (void)level;
    assert_non_null(message);
}

struct life {
    int opened, hits, sent;
};

/* Opens a remote, fetches, sends and closes. */
static void live(const char *url, struct life *life)
{
    char *reason = NULL;
    const struct gj_log log = {ignore_message, NULL};
    const struct gj_remote_params params = {
        .url = url, .upload = true, .connect_ms = 20000, .total_ms = 20000};
    gj_remote *remote = gj_remote_open(&params, &log, &reason);
    free(reason);
    if (!remote)
        return;
    life->opened++;
    void *data = NULL;
    size_t bytes = 0;
    if (gj_remote_get(remote, "name", 100, &data, &bytes) == GJ_REMOTE_HIT) {
        life->hits++;
        assert_int_equal(bytes, 4);
        assert_memory_equal(data, "name", 4);
    } else {
        assert_null(data);
    }
    free(data);
    assert_int_not_equal(gj_remote_get(remote, "../x", 100, &data, &bytes), GJ_REMOTE_HIT);
    gj_remote_put(remote, "name", "bytes", 5);
    struct gj_remote_counts counts;
    gj_remote_counts(remote, &counts);
    const uint64_t dropped = counts.upload_failures;
    gj_remote_close(&remote);
    life->sent += dropped == 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static struct remotes remotes;
    char url[100];
    struct life life = {0};
    int failing = 0;
    remotes_start(&remotes, answer_name);
    snprintf(url, sizeof url, "http://user:password@127.0.0.1:%d/cache", remotes.server.port);
    live(url, &life); /* opens libcurl */
    for (bool reached = true; reached; failing++) {
        allowed = failing;
        live(url, &life);
        reached = allowed < 0; /* else there is no allocation of that number: all have been tried */
        allowed = -1;
        assert_in_range(failing, 0, 100);
    }
    assert_true(failing > 6);
    assert_in_range(life.opened, 3, failing - 2);
    assert_in_range(life.hits, 2, life.opened - 1);
    assert_in_range(life.sent, 2, life.opened - 1);
    remotes_stop(&remotes);
}

/* The longest reasons are made piece by piece too. */
static void a_bad_url_may_meet_no_memory(void **state)
{
    (void)state;
    const struct gj_remote_params params = {.url = "http://user:password@host:x/"};
    int failing = 0;
    for (bool reached = true; reached; failing++) {
        char *reason = NULL;
        allowed = failing;
        assert_null(gj_remote_open(&params, NULL, &reason));
        reached = allowed < 0;
        allowed = -1;
        assert_true(!reason || !strstr(reason, "password@"));
        free(reason);
    }
    assert_in_range(failing, 3, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(a_bad_url_may_meet_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
