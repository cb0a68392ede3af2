/* SPDX-License-Identifier: Apache-2.0 */
/* The remote against a server that works: opening, hits and misses, connections, credentials, threads. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "remote_fixture.h"

enum { NUM_THREADS = 16 };

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

/* -- Opening ----------------------------------------------------------------------------------------- */

static bool hide_library;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return __real_dlopen(hide_library ? "/nonexistent/libcurl.so.4" : name, flags);
}

static char *reason_of(const char *url)
{
    char *reason = NULL;
    const struct gj_remote_params params = {.url = url};
    gj_remote *const remote = gj_remote_open(&params, NULL, &reason);
    if (remote)
        print_error("%s was opened\n", url);
    assert_null(remote);
    assert_non_null(reason);
    return reason;
}

/* The first of the tests: the library is opened once. */
static void a_missing_library_is_told(void **state)
{
    (void)state;
    hide_library = true;
    char *const reason = reason_of("http://h");
    hide_library = false;
    assert_non_null(strstr(reason, "libcurl.so.4 cannot be opened"));
    assert_non_null(strstr(reason, "nonexistent"));
    free(reason);
}

static void bad_urls_are_refused_with_the_rule(void **state)
{
    (void)state;
    static const struct {
        const char *url, *word;
    } cases[] = {
        {NULL, "http://"},
        {"", "http://"},
        {"cache.example", "cache.example"},
        {"ftp://h/x", "'ftp://h/x' of the remote cache does not begin with http:// or https://"},
        {"file:///etc/passwd", "http://"},
        {"http://", "has no host"},
        {"http:///x", "has no host"},
        {"http://:80/", "has no host"},
        {"http://h:0/", "port"},
        {"http://h:65536/", "port"},
        {"http://h:99999999999999999999/", "port"},
        {"http://h:8x/", "port"},
        {"http://h:", "port"},
        {"http://h%20/", "neither a name nor an address"},
        {"http://[::1/", "between [ and ]"},
        {"http://[]/", "between [ and ]"},
        {"http://[::1]x/", "neither"},
        {"http://h/a b", "percent-encoded"},
        {"http://h/\n", "percent-encoded"},
        {"http://h/\xc3\xa4", "percent-encoded"},
        {"http://h/?sig=hush", "may have no ?"},
        {"http://h/#hush", "may have no ?"},
        {"http://hush:hush@", "has no host"},
        {"http://hush:hush@h:x/", "'http://...@h:x/'"},
        {"http://hush:hu/hush@h/", "'http://...@h/'"},
        {"http://u:hush?hush@h/", "may have no ?"},
        {"http://hush:%zz@h/", "user or password"},
        {"http://hush:%0@h/", "user or password"},
        {"http://hush:%00hush@h/", "user or password"},
        {"http://hush%3ahush:p@h/", "colon"},
        {"ftp:hush@h/", "'...@h/'"},
        {"hush:hush@h/", "'...@h/'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *const reason = reason_of(cases[i].url);
        if (!strstr(reason, cases[i].word) || strstr(reason, "hush"))
            fail_msg("%s gives: %s", cases[i].url, reason);
        free(reason);
    }
    char url[3000] = "http://h/";
    memset(url + 9, 'x', sizeof url - 10);
    char *const reason = reason_of(url);
    assert_non_null(strstr(reason, "longer than 2000"));
    assert_true(strlen(reason) < 300);
    free(reason);
}

static void good_urls_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"http://h", "http://h"},
        {"HTTP://h///", "http://h"},
        {"https://u:p%40ss@cache.example:8443/a/b/", "https://cache.example:8443/a/b"},
        {"http://u@[::1]:80/@x", "http://[::1]:80/@x"},
        {"http://10.0.0.1:65535", "http://10.0.0.1:65535"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *reason = NULL;
        const struct gj_remote_params params = {.url = cases[i].url};
        gj_remote *remote = gj_remote_open(&params, NULL, &reason);
        assert_null(reason);
        assert_non_null(remote);
        assert_string_equal(gj_remote_url(remote), cases[i].shown);
        gj_remote_close(&remote);
        assert_null(remote);
    }
    gj_remote_close(NULL);
}

/* -- Answers ----------------------------------------------------------------------------------------- */

static void a_hit_gives_the_bytes(void **state)
{
    (void)state;
    remotes_open(&remotes, "", remotes.server.port, "/a/b/");
    assert_int_equal(get_entry(&remotes, "0af.gjc", "0af.gjc"), GJ_REMOTE_HIT);
    assert_string_equal(server_last(&remotes.server)->path, "/a/b/0af.gjc");
    assert_string_equal(server_last(&remotes.server)->method, "GET");
    assert_true(server_saw(&remotes.server, "User-Agent: gemmjit/" GJ_VERSION));
    assert_int_equal(get_entry(&remotes, "1_-2", "1_-2"), GJ_REMOTE_HIT);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 1);
    const struct gj_remote_counts counts = counts_of(&remotes);
    assert_int_equal(counts.hits, 2);
    assert_int_equal(counts.bytes_down, 11);
    assert_int_equal(counts.misses + counts.failures + counts.uploads + counts.upload_failures, 0);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

static bool answer_410(struct server *server, int socket, const struct request *request)
{
    (void)server, (void)request;
    send_status(socket, 410);
    return true;
}

static void a_miss_keeps_the_connection(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_404);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_MISS);
    atomic_store(&remotes.server.answer, answer_410);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_MISS);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 1);
    assert_int_equal(counts_of(&remotes).misses, 2);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

/* A page of 1 MiB behind the status. */
static bool answer_404_at_length(struct server *server, int socket, const struct request *request)
{
    static const char page[1 << 20];
    (void)server, (void)request;
    server_printf(socket, "HTTP/1.1 404 No\r\nContent-Length: %zu\r\n\r\n", sizeof page);
    server_send(socket, page, sizeof page);
    return true;
}

static void a_miss_with_a_long_page_is_a_miss(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_404_at_length);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_MISS);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

static bool answer_403(struct server *server, int socket, const struct request *request)
{
    (void)server, (void)request;
    send_status(socket, 403);
    return true;
}

static void forbidden_is_a_miss_with_one_warning(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_403);
    for (int i = 0; i < 3; i++)
        assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_MISS);
    check_warnings(&remotes, 1, "403");
    assert_int_equal(remotes.log.others, 2);
    assert_int_equal(atomic_load(&remotes.server.num_requests), 3);
    assert_int_equal(counts_of(&remotes).misses, 3);
}

static bool answer_empty(struct server *server, int socket, const struct request *request)
{
    (void)server, (void)request;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    return true;
}

static void an_empty_entry_is_a_hit(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_empty);
    assert_int_equal(get_entry(&remotes, "x", ""), GJ_REMOTE_HIT);
}

static void bad_names_are_not_asked_for(void **state)
{
    (void)state;
    static const char *const names[] = {"",    ".",   "..",  "../x", "a/../b", "/x",   ".x",   "x/",  "A",
                                        "a b", "a?b", "a#b", "a%2f", "a@b",    "\xc3", "a\nb", "a\\b"};
    char longest[202];
    remotes_open_server(&remotes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(get_entry(&remotes, names[i], NULL), GJ_REMOTE_FAILED);
        gj_remote_put(remotes.remote, names[i], "x", 1);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[201] = '\0';
    assert_int_equal(get_entry(&remotes, longest, NULL), GJ_REMOTE_FAILED);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 0);
    check_warnings(&remotes, 2, "no name of an entry");
    assert_int_equal(counts_of(&remotes).failures, sizeof names / sizeof *names + 1);
    longest[200] = '\0';
    assert_int_equal(get_entry(&remotes, longest, longest), GJ_REMOTE_HIT);
}

/* Redirects /N to /N-1, and answers /0. */
static bool answer_countdown(struct server *server, int socket, const struct request *request)
{
    const int left = atoi(strrchr(request->path, '/') + 1);
    if (left == 0)
        return answer_name(server, socket, request);
    server_printf(socket, "HTTP/1.1 302 Found\r\nLocation: /%d\r\nContent-Length: 4\r\n\r\nmore", left - 1);
    return true;
}

static void three_redirects_are_followed(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    atomic_store(&remotes.server.answer, answer_countdown);
    assert_int_equal(get_entry(&remotes, "3", "0"), GJ_REMOTE_HIT);
    assert_int_equal(get_entry(&remotes, "4", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 1, "redirects");
}

/* -- Credentials and the environment ----------------------------------------------------------------- */

static void credentials_are_sent_and_never_told(void **state)
{
    (void)state;
    remotes_open(&remotes, "zkj%40q:hush%3ahush@", remotes.server.port, "/cache");
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    assert_true(server_saw(&remotes.server, "Authorization: Basic emtqQHE6aHVzaDpodXNo"));
    atomic_store(&remotes.server.answer, answer_403);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_MISS);
    assert_int_equal(get_entry(&remotes, "../x", NULL), GJ_REMOTE_FAILED);
    atomic_store(&remotes.server.answer, NULL);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 3, "http://127.0.0.1:");
    assert_false(log_has(&remotes, "hush"));
    assert_false(log_has(&remotes, "zkj"));
}

static struct server other;

static bool answer_move(struct server *server, int socket, const struct request *request)
{
    (void)server;
    server_printf(socket,
                  "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:%d%s\r\nContent-Length: 0\r\n\r\n",
                  other.port, request->path);
    return true;
}

static void credentials_stay_with_their_server(void **state)
{
    (void)state;
    server_start(&other, 0, answer_name);
    atomic_store(&remotes.server.answer, answer_move);
    remotes_open(&remotes, "zkj:hush@", remotes.server.port, "/cache");
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    assert_non_null(strstr(server_last(&remotes.server)->head, "Authorization"));
    assert_string_equal(server_last(&other)->path, "/cache/x");
    assert_null(strstr(server_last(&other)->head, "Authorization"));
    server_stop(&other);
}

static void the_proxy_of_the_environment_is_used(void **state)
{
    (void)state;
    char proxy[100], *reason = NULL;
    const struct gj_remote_params params = {.url = "http://cache.invalid/c"};
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", remotes.server.port);
    setenv("http_proxy", proxy, 1);
    remotes.remote = gj_remote_open(&params, NULL, &reason);
    assert_non_null(remotes.remote);
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    assert_string_equal(server_last(&remotes.server)->path, "http://cache.invalid/c/x");
    setenv("http_proxy", "http://zkj:hush@not a proxy", 1);
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", NULL), GJ_REMOTE_FAILED);
    check_warnings(&remotes, 1, "not asked again");
    assert_false(log_has(&remotes, "hush"));
    unsetenv("http_proxy");
}

static void netrc_is_read(void **state)
{
    (void)state;
    char home[] = "/tmp/gj-remote-XXXXXX", path[100];
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof path, "%s/.netrc", home);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs("machine 127.0.0.1 login u password p\n", file);
    fclose(file);
    setenv("HOME", home, 1);
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    assert_true(server_saw(&remotes.server, "Authorization: Basic dTpw"));
    remotes_open(&remotes, "a:b@", remotes.server.port, "/cache");
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    assert_true(server_saw(&remotes.server, "Authorization: Basic YTpi"));
    unlink(path);
    rmdir(home);
}

/* -- Processes and threads --------------------------------------------------------------------------- */

static void sockets_close_on_exec(void **state)
{
    (void)state;
    bool was_open[256];
    for (int i = 0; i < 256; i++)
        was_open[i] = fcntl(i, F_GETFD) >= 0;
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    int num_sockets = 0;
    for (int i = 0; i < 256; i++) {
        struct stat status;
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof peer;
        if (was_open[i] || fstat(i, &status) != 0 || !S_ISSOCK(status.st_mode) ||
            getpeername(i, (struct sockaddr *)&peer, &bytes) != 0 || i == remotes.server.sockets[0])
            continue;
        print_message("descriptor %d, family %d, flags %d\n", i, peer.ss_family, fcntl(i, F_GETFD));
        if (peer.ss_family == AF_INET)
            assert_true(fcntl(i, F_GETFD) & FD_CLOEXEC);
        num_sockets += peer.ss_family == AF_INET;
    }
    assert_int_equal(num_sockets, 1);
}

static void a_forked_child_has_no_remote(void **state)
{
    (void)state;
    remotes_open_server(&remotes);
    assert_int_equal(get_entry(&remotes, "x", "x"), GJ_REMOTE_HIT);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *data = NULL;
        size_t bytes = 0;
        const bool is_off = gj_remote_get(remotes.remote, "x", MAX_ENTRY, &data, &bytes) == GJ_REMOTE_FAILED;
        gj_remote_put(remotes.remote, "x", "x", 1);
        gj_remote_close(&remotes.remote);
        _exit(is_off && !remotes.remote ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(get_entry(&remotes, "y", "y"), GJ_REMOTE_HIT);
    assert_int_equal(atomic_load(&remotes.server.num_connections), 1);
}

struct worker {
    pthread_t thread;
    int number, hits;
};

static void *get_many(void *user)
{
    struct worker *const worker = user;
    for (int i = 0; i < 20; i++) {
        char name[32];
        void *data = NULL;
        size_t bytes = 0;
        snprintf(name, sizeof name, "%d.%d", worker->number, i);
        if (gj_remote_get(remotes.remote, name, MAX_ENTRY, &data, &bytes) == GJ_REMOTE_HIT)
            worker->hits += bytes == strlen(name) && memcmp(data, name, bytes) == 0;
        free(data);
        gj_remote_put(remotes.remote, name, name, strlen(name));
    }
    return NULL;
}

static void threads_share_a_remote(void **state)
{
    (void)state;
    struct worker workers[NUM_THREADS];
    remotes_open_server(&remotes);
    for (int i = 0; i < NUM_THREADS; i++) {
        workers[i] = (struct worker){.number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, get_many, &workers[i]), 0);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].hits, 20);
    }
    assert_int_equal(counts_of(&remotes).hits, NUM_THREADS * 20);
    gj_remote_close(&remotes.remote);
    assert_int_equal(atomic_load(&remotes.server.num_requests), NUM_THREADS * 40);
    assert_in_range(atomic_load(&remotes.server.num_connections), 1, NUM_THREADS + 1);
    assert_int_equal(remotes.log.warnings + remotes.log.others, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_told),
        cmocka_unit_test(bad_urls_are_refused_with_the_rule),
        cmocka_unit_test(good_urls_are_taken),
        TEST(a_hit_gives_the_bytes),
        TEST(a_miss_keeps_the_connection),
        TEST(a_miss_with_a_long_page_is_a_miss),
        TEST(forbidden_is_a_miss_with_one_warning),
        TEST(an_empty_entry_is_a_hit),
        TEST(bad_names_are_not_asked_for),
        TEST(three_redirects_are_followed),
        TEST(credentials_are_sent_and_never_told),
        TEST(credentials_stay_with_their_server),
        TEST(the_proxy_of_the_environment_is_used),
        TEST(netrc_is_read),
        TEST(sockets_close_on_exec),
        TEST(a_forked_child_has_no_remote),
        TEST(threads_share_a_remote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
