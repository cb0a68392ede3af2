/* SPDX-License-Identifier: Apache-2.0 */
/* The remote against servers that are dead, slow, hostile or broken. */
#include <netdb.h>
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
enum { NUM_THREADS = 16, SLACK_MS = 2000, TOTAL_MS = 500 };

static struct remotes remotes;

static int set_up(void **state)
{
    (void)state;
    remotes_start(&remotes, answer_name);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remotes_stop(&remotes);
    return 0;
}

/* -- Answers ----------------------------------------------------------------------------------------- */

#define ANSWER(name) static bool name(struct server *server, int socket, const struct request *request)
#define IGNORE_ARGUMENTS (void)server, (void)request

ANSWER(answer_500)
{
    IGNORE_ARGUMENTS;
    send_status(socket, 500);
    return true;
}

ANSWER(answer_503_without_page)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 503 Busy\r\n\r\n");
    return false;
}

ANSWER(answer_401)
{
    IGNORE_ARGUMENTS;
    send_status(socket, 401);
    return true;
}

ANSWER(answer_206)
{
    IGNORE_ARGUMENTS;
    send_status(socket, 206);
    return true;
}

ANSWER(answer_304)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 304 Same\r\n\r\n");
    return true;
}

/* Says nothing. */
ANSWER(answer_silence)
{
    IGNORE_ARGUMENTS;
    server_wait_for_peer(socket);
    return false;
}

/* A byte now and then, until the server stops. */
static void drip(struct server *server, int socket)
{
    while (!atomic_load(&server->stopping)) {
        server_send(socket, "x", 1);
        sleep_ms(20);
    }
}

ANSWER(answer_slowly)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n");
    drip(server, socket);
    return false;
}

ANSWER(answer_with_slow_headers)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\nX: ");
    drip(server, socket);
    return false;
}

ANSWER(answer_slow_404)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 404 No\r\nContent-Length: 50000\r\n\r\n");
    drip(server, socket);
    return false;
}

/* More than anybody takes, for as long as the peer takes it. */
static void flood(struct server *server, int socket)
{
    static const char block[1 << 16];
    for (int i = 0; i < 1 << 12 && !atomic_load(&server->stopping); i++)
        server_send(socket, block, sizeof block);
}

ANSWER(answer_too_much_announced)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", MAX_ENTRY + 1);
    flood(server, socket);
    return false;
}

ANSWER(answer_absurd_length)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx");
    return false;
}

ANSWER(answer_too_much_until_close)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\n\r\n");
    flood(server, socket);
    return false;
}

ANSWER(answer_too_much_in_chunks)
{
    static const char block[0x8000];
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 1 << 12 && !atomic_load(&server->stopping); i++) {
        server_printf(socket, "8000\r\n");
        server_send(socket, block, sizeof block);
        server_printf(socket, "\r\n");
    }
    return false;
}

ANSWER(answer_cut)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123456789");
    return false;
}

ANSWER(answer_cut_in_chunks)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n5\r\nab");
    return false;
}

ANSWER(answer_cut_headers)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Le");
    return false;
}

ANSWER(answer_bad_chunks)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabcd\r\n");
    return false;
}

ANSWER(answer_redirect_loop)
{
    (void)server;
    server_printf(socket, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", request->path);
    return true;
}

ANSWER(answer_redirect_to_file)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n");
    return true;
}

ANSWER(answer_redirect_to_ftp)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "HTTP/1.1 301 Moved\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n");
    return true;
}

ANSWER(answer_redirect_with_user)
{
    (void)request;
    server_printf(socket,
                  "HTTP/1.1 302 Found\r\nLocation: http://a:b@127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n",
                  server->port);
    return true;
}

ANSWER(answer_garbage)
{
    IGNORE_ARGUMENTS;
    server_printf(socket, "\x7f"
                          "ELF\x01 this is no HTTP\r\n\r\nat all\n");
    return false;
}

ANSWER(answer_endless_headers)
{
    (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 1 << 20 && !atomic_load(&server->stopping); i++)
        server_printf(socket, "X: %0512d\r\n", i);
    return false;
}

ANSWER(answer_nothing)
{
    IGNORE_ARGUMENTS;
    (void)socket;
    return false;
}

/* -- One fault after the other ----------------------------------------------------------------------- */

static const struct fault_case {
    const char *name;
    server_answer answer; /* NULL: closes at once */
    const char *word;     /* in the warning */
    bool pauses, is_slow; /* is_slow: ends by TOTAL_MS */
} cases[] = {
    {"500", answer_500, "the server has an error (status 500); not asked again for 60 s", true, false},
    {"503 without page", answer_503_without_page, "status 503", true, false},
    {"401", answer_401, "the server refused (status 401)", true, false},
    {"206", answer_206, "the server refused", true, false},
    {"304", answer_304, "status 304", true, false},
    {"silence", answer_silence, "takes too long: ", true, true},
    {"drip", answer_slowly, "takes too long: ", true, true},
    {"slow headers", answer_with_slow_headers, "takes too long: ", true, true},
    {"slow 404", answer_slow_404, "takes too long", true, true},
    {"announced", answer_too_much_announced, "larger than an entry may be", false, false},
    {"absurd length", answer_absurd_length, "larger than an entry may be", false, false},
    {"until close", answer_too_much_until_close, "larger than an entry may be", false, false},
    {"in chunks", answer_too_much_in_chunks, "larger than an entry may be", false, false},
    {"cut", answer_cut, "cut short", false, false},
    {"cut in chunks", answer_cut_in_chunks, "cut short", false, false},
    {"bad chunks", answer_bad_chunks, "was not fetched", true, false},
    {"redirect loop", answer_redirect_loop, "the answer cannot be used (status 302)", true, false},
    {"redirect to file", answer_redirect_to_file, "the answer cannot be used", true, false},
    {"redirect to ftp", answer_redirect_to_ftp, "the answer cannot be used", true, false},
    {"redirect with user", answer_redirect_with_user, "the answer cannot be used", true, false},
    {"garbage", answer_garbage, "the answer cannot be used", true, false},
    {"endless headers", answer_endless_headers, "the answer cannot be used", true, false},
    {"closes after the request", answer_nothing, "no connection", true, false},
    {"closes at once", NULL, "no connection", true, false},
};

/* One warning; then a pause, or debug messages. After the pause a server that works is used again. */
static void check_case(const struct fault_case *fault)
{
    remotes_start(&remotes, fault->answer);
    if (fault->is_slow)
        remotes.params.total_ms = TOTAL_MS;
    remotes_open_server(&remotes);
    const double start_ms = gj_clock_ms();
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    if (fault->is_slow)
        assert_true(gj_clock_ms() - start_ms < TOTAL_MS + SLACK_MS);
    check_warnings(&remotes, 1, fault->word);
    const int connections = atomic_load(&remotes.server.num_connections);
    const int requests = atomic_load(&remotes.server.num_requests);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    assert_int_equal(remotes.log.warnings, 1);
    if (fault->pauses) {
        assert_int_equal(atomic_load(&remotes.server.num_connections), connections);
        assert_int_equal(atomic_load(&remotes.server.num_requests), requests);
        assert_int_equal(remotes.log.others, 0);
    } else {
        assert_int_equal(atomic_load(&remotes.server.num_requests), requests + 1);
        assert_int_equal(remotes.log.others, 1);
        atomic_store(&remotes.server.answer, answer_name);
        assert_int_equal(get_entry(&remotes, "y", "y"), GJ_REMOTE_HIT);
    }
    assert_int_equal(counts_of(&remotes).failures, 2);
    remotes_stop(&remotes);
}

static void each_fault_is_one_warning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].name);
        check_case(&cases[i]);
    }
}

/* libcurl's versions differ in whether this is a fault, and in which. */
static void an_answer_that_ends_in_its_headers_is_no_hit(void **state)
{
    (void)state;
    atomic_store(&remotes.server.answer, answer_cut_headers);
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 1, "x was not fetched");
}

static void the_largest_entry_is_taken(void **state)
{
    (void)state;
    void *data = NULL;
    size_t bytes = 0;
    remotes_open_server(&remotes);
    assert_int_equal(gj_remote_get(remotes.remote, "1234", 4, &data, &bytes), GJ_REMOTE_HIT);
    assert_int_equal(bytes, 4);
    free(data);
    data = NULL;
    assert_int_equal(gj_remote_get(remotes.remote, "1234", 3, &data, &bytes), GJ_REMOTE_FAILED);
    assert_int_equal(gj_remote_get(remotes.remote, "1234", 0, &data, &bytes), GJ_REMOTE_FAILED);
    assert_int_equal(gj_remote_get(remotes.remote, "1234", SIZE_MAX, &data, &bytes), GJ_REMOTE_HIT);
    free(data);
}

/* -- Pauses ------------------------------------------------------------------------------------------ */

static void a_refused_connection_costs_one_warning(void **state)
{
    (void)state;
    remotes_open(&remotes, "zkj:hush@", server_dead_port(), "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 1, "x was not fetched: there is no connection: ");
    assert_int_equal(remotes.log.others, 0);
    assert_false(log_has(&remotes, "hush"));
    assert_int_equal(counts_of(&remotes).failures, 3);
}

static void a_server_that_comes_back_is_used(void **state)
{
    (void)state;
    const int port = server_dead_port();
    struct server late;
    remotes.params.retry_ms = 300;
    remotes_open(&remotes, "", port, "/cache");
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    sleep_ms(350);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED); /* asked, still dead: debug only */
    check_warnings(&remotes, 1, "not asked again for 0.3 s");
    assert_int_equal(remotes.log.others, 1);
    server_start(&late, port, answer_name);
    sleep_ms(350);
    for (int i = 0; i < 3; i++)
        assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    atomic_store(&late.answer, answer_500);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 2, "status 500");
    gj_remote_close(&remotes.remote);
    server_stop(&late);
}

/* Long before the limit of the whole, by the limit of speed. */
static void a_server_that_hardly_moves_is_left(void **state)
{
    (void)state;
    remotes.params.total_ms = 5000;
    atomic_store(&remotes.server.answer, answer_slowly);
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 1, "takes too long: Operation too slow");
}

struct worker {
    pthread_t thread;
    enum gj_remote_result result;
};

static void *get_once(void *user)
{
    struct worker *const worker = user;
    void *data = NULL;
    size_t bytes = 0;
    worker->result = gj_remote_get(remotes.remote, "x", MAX_ENTRY, &data, &bytes);
    free(data);
    return NULL;
}

/* Runs 16 threads and returns how many failed. */
static int get_at_once(void)
{
    struct worker workers[NUM_THREADS];
    int failures = 0;
    for (int i = 0; i < NUM_THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, get_once, &workers[i]), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        failures += workers[i].result == GJ_REMOTE_FAILED;
    }
    return failures;
}

static void threads_meet_a_dead_server_together(void **state)
{
    (void)state;
    remotes.params.retry_ms = 5000;
    remotes.params.total_ms = TOTAL_MS;
    atomic_store(&remotes.server.answer, answer_silence);
    remotes_open_server(&remotes);
    assert_int_equal(get_at_once(), NUM_THREADS);
    check_warnings(&remotes, 1, "takes too long");
    const int before = atomic_load(&remotes.server.num_connections);
    assert_int_equal(get_at_once(), NUM_THREADS);
    assert_int_equal(atomic_load(&remotes.server.num_connections), before);
    sleep_ms(5050); /* the pause is over: one thread asks, the others do not wait for it */
    assert_int_equal(get_at_once(), NUM_THREADS);
    assert_int_equal(atomic_load(&remotes.server.num_connections), before + 1);
    check_warnings(&remotes, 1, "takes too long");
}

/* -- Names ------------------------------------------------------------------------------------------- */

static atomic_int num_lookups, num_finished;

/* Stands in for libc's: a name server that does not answer. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    (void)node, (void)service, (void)hints, (void)found;
    atomic_fetch_add(&num_lookups, 1);
    sleep_ms(2 * TOTAL_MS + SLACK_MS + 1000);
    atomic_fetch_add(&num_finished, 1);
    return EAI_AGAIN;
}

static void a_silent_name_server_does_not_hold_it(void **state)
{
    (void)state;
    char *reason = NULL;
    struct gj_remote_params params = remotes.params;
    params.url = "http://cache.invalid/";
    params.total_ms = TOTAL_MS;
    remotes.remote = gj_remote_open(&params, NULL, &reason);
    const double start_ms = gj_clock_ms();
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    gj_remote_put(remotes.remote, "x", "x", 1);
    gj_remote_close(&remotes.remote);
    const double spent_ms = gj_clock_ms() - start_ms;
    if (atomic_load(&num_lookups) == 0) {
        print_message("libcurl does not call getaddrinfo of this program\n");
        skip();
    }
    assert_true(spent_ms < 2 * TOTAL_MS + SLACK_MS);
    while (atomic_load(&num_finished) < atomic_load(&num_lookups))
        sleep_ms(10);
    sleep_ms(100); /* the forgotten threads end */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_is_one_warning),
        TEST(an_answer_that_ends_in_its_headers_is_no_hit),
        TEST(the_largest_entry_is_taken),
        TEST(a_refused_connection_costs_one_warning),
        TEST(a_server_that_comes_back_is_used),
        TEST(a_server_that_hardly_moves_is_left),
        TEST(threads_meet_a_dead_server_together),
        TEST(a_silent_name_server_does_not_hold_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
