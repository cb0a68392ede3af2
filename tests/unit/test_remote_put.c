/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: the queue, its thread, its bounds and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "remote_fixture.h"

/* What a sanitizer on a busy machine may add to a limit. */
enum { SLACK_MS = 2000, TOTAL_MS = 1000 };

static struct remotes remotes;
static atomic_int status; /* what answer_status answers to a PUT */

#define ANSWER(name) static bool name(struct server *server, int socket, const struct request *request)

ANSWER(answer_status)
{
    if (strcmp(request->method, "GET") == 0)
        return answer_name(server, socket, request);
    if (atomic_load(&status) == 204)
        server_printf(socket, "HTTP/1.1 204 Done\r\n\r\n");
    else
        send_status(socket, atomic_load(&status));
    return true;
}

static int set_up(void **state)
{
    (void)state;
    atomic_store(&status, 201);
    remotes_start(&remotes, answer_status);
    remotes_open_server(&remotes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remotes_stop(&remotes);
    return 0;
}

static void put(const char *name, const char *text)
{
    gj_remote_put(remotes.remote, name, text, strlen(text));
}

/* Waits until as many uploads were sent or dropped. */
static struct gj_remote_counts wait_for(uint64_t uploads)
{
    const double start_ms = gj_clock_ms();
    struct gj_remote_counts counts = counts_of(&remotes);
    while (counts.uploads + counts.upload_failures < uploads && gj_clock_ms() - start_ms < 20000) {
        sleep_ms(5);
        counts = counts_of(&remotes);
    }
    assert_int_equal(counts.uploads + counts.upload_failures, uploads);
    return counts;
}

/* -- What works -------------------------------------------------------------------------------------- */

static void an_upload_arrives(void **state)
{
    (void)state;
    static const int good[] = {200, 201, 204};
    for (int i = 0; i < 3; i++) {
        atomic_store(&status, good[i]);
        put("0af.gjc", "some bytes");
        assert_int_equal(wait_for((uint64_t)i + 1).uploads, i + 1);
        assert_string_equal(server_last(&remotes.server)->method, "PUT");
        assert_string_equal(server_last(&remotes.server)->path, "/cache/0af.gjc");
        assert_int_equal(server_last(&remotes.server)->bytes, 10);
        assert_memory_equal(server_last(&remotes.server)->body, "some bytes", 10);
        assert_true(server_saw(&remotes.server, "Content-Type: application/octet-stream"));
        assert_null(strstr(server_last(&remotes.server)->head, "Expect"));
    }
    assert_int_equal(counts_of(&remotes).bytes_up, 30);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 1);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

static void large_and_empty_uploads_arrive(void **state)
{
    (void)state;
    const size_t bytes = 5 << 20;
    char *const data = malloc(bytes);
    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    gj_remote_put(remotes.remote, "large", data, bytes);
    assert_int_equal(wait_for(1).uploads, 1);
    assert_int_equal(server_last(&remotes.server)->bytes, bytes);
    assert_memory_equal(server_last(&remotes.server)->body, data, bytes);
    free(data);
    gj_remote_put(remotes.remote, "empty", NULL, 0);
    assert_int_equal(wait_for(2).uploads, 2);
    assert_int_equal(server_last(&remotes.server)->bytes, 0);
}

static void without_upload_nothing_is_sent(void **state)
{
    (void)state;
    remotes.params.upload = false;
    remotes_open_server(&remotes);
    put("x", "x");
    put("../x", "x");
    gj_remote_close(&remotes.remote);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 0);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

static void closing_sends_what_is_queued(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        put("x", "x");
    gj_remote_close(&remotes.remote);
    assert_int_equal(atomic_load(&remotes.server.num_requests), 200);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

/* Hangs up after each answer without having announced it. */
ANSWER(answer_and_hang_up)
{
    answer_status(server, socket, request);
    return false;
}

static void a_kept_connection_may_have_been_closed(void **state)
{
    (void)state;
    atomic_store(&remotes.server.answer, answer_and_hang_up);
    for (unsigned i = 1; i <= 3; i++) {
        put("x", "some bytes");
        assert_int_equal(wait_for(i).uploads, i);
        sleep_ms(20);
    }
    assert_int_equal(atomic_load(&remotes.server.num_requests), 3);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

/* -- What does not ----------------------------------------------------------------------------------- */

/* A refused upload is one warning and pauses uploads, not fetches. */
static void a_refused_upload_is_dropped(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *word;
    } cases[] = {
        {403, "x was not sent: the server refused (status 403); not asked again for 60 s"},
        {405, "status 405"},
        {409, "status 409"},
        {413, "status 413"},
        {500, "the server has an error (status 500)"},
        {507, "status 507"},
        {307, "status 307"},
        {303, "status 303"},
        {202, "the server refused"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        atomic_store(&status, cases[i].status);
        remotes_open_server(&remotes);
        put("x", "x");
        assert_int_equal(wait_for(1).upload_failures, 1);
        const int requests = atomic_load(&remotes.server.num_requests);
        put("x", "x");
        assert_int_equal(wait_for(2).upload_failures, 2);
        assert_int_equal(atomic_load(&remotes.server.num_requests), requests);
        check_warnings(&remotes, 1, cases[i].word);
        assert_int_equal(get_entry(&remotes, "y", "y"), GJ_REMOTE_HIT);
    }
}

static void bad_puts_are_counted(void **state)
{
    (void)state;
    put("../x", "x");
    put("", "x");
    assert_int_equal(counts_of(&remotes).upload_failures, 2);
    check_warnings(&remotes, 1, "this is no name of an entry");
    assert_int_equal(atomic_load(&remotes.server.num_connections), 0);
}

ANSWER(answer_silence)
{
    (void)server, (void)request;
    server_wait_for_peer(socket);
    return false;
}

static void closing_on_a_silent_server_ends(void **state)
{
    (void)state;
    remotes.params.total_ms = TOTAL_MS;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_silence);
    for (int i = 0; i < 10; i++)
        put("x", "x");
    sleep_ms(50);
    const double start_ms = gj_clock_ms();
    gj_remote_close(&remotes.remote);
    assert_true(gj_clock_ms() - start_ms < TOTAL_MS + SLACK_MS);
    check_warnings(&remotes, 1, "takes too long");
    assert_int_equal(atomic_load(&remotes.server.num_requests), 1);
}

static void closing_on_a_dead_server_ends(void **state)
{
    (void)state;
    remotes.params.total_ms = TOTAL_MS;
    remotes_open(&remotes, "", server_dead_port(), "");
    for (int i = 0; i < 10; i++)
        put("x", "x");
    const double start_ms = gj_clock_ms();
    gj_remote_close(&remotes.remote);
    assert_true(gj_clock_ms() - start_ms < TOTAL_MS + SLACK_MS);
    check_warnings(&remotes, 1, "x was not sent: there is no connection");
}

/* Takes 100 ms each time. */
ANSWER(answer_slowly)
{
    sleep_ms(100);
    return answer_status(server, socket, request);
}

static void closing_drops_what_takes_too_long(void **state)
{
    (void)state;
    remotes.params.total_ms = TOTAL_MS;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_slowly);
    for (int i = 0; i < 40; i++)
        put("x", "x");
    const double start_ms = gj_clock_ms();
    gj_remote_close(&remotes.remote);
    assert_true(gj_clock_ms() - start_ms < TOTAL_MS + SLACK_MS);
    check_warnings(&remotes, 1, "the time for sending at the end is over");
    assert_in_range(atomic_load(&remotes.server.num_requests), 1, 20);
}

static void the_queue_is_bounded(void **state)
{
    (void)state;
    const size_t bytes = 1 << 20;
    char *const data = calloc(1, bytes);
    assert_non_null(data);
    atomic_store(&remotes.server.answer, answer_silence);
    remotes.params.total_ms = 3000;
    remotes_open_server(&remotes);
    const double start_ms = gj_clock_ms();
    for (int i = 0; i < 70; i++)
        gj_remote_put(remotes.remote, "x", data, bytes);
    gj_remote_put(remotes.remote, "x", data, (size_t)1 << 40); /* not even looked at */
    free(data);
    if (gj_clock_ms() - start_ms < 2000) { /* the first one still waits for its answer */
        assert_int_equal(counts_of(&remotes).upload_failures, 8);
        check_warnings(&remotes, 1, "too much waits to be sent");
    }
    gj_remote_close(&remotes.remote);
    assert_true(log_has(&remotes, "takes too long"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_upload_arrives),
        TEST(large_and_empty_uploads_arrive),
        TEST(without_upload_nothing_is_sent),
        TEST(closing_sends_what_is_queued),
        TEST(a_kept_connection_may_have_been_closed),
        TEST(a_refused_upload_is_dropped),
        TEST(bad_puts_are_counted),
        TEST(closing_on_a_silent_server_ends),
        TEST(closing_on_a_dead_server_ends),
        TEST(closing_drops_what_takes_too_long),
        TEST(the_queue_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
