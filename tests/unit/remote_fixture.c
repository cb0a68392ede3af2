/* SPDX-License-Identifier: Apache-2.0 */
/* A server, a log and a remote between them. */
#include "remote_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void keep_message(void *user, enum gj_log_level level, const char *message)
{
    struct remote_log *const log = user;
    pthread_mutex_lock(&log->mutex);
    ++*(level <= GJ_LOG_WARNING ? &log->warnings : &log->others);
    const size_t room = sizeof log->text - log->length;
    const int length = snprintf(log->text + log->length, room, "%s\n", message);
    if (length > 0 && (size_t)length < room)
        log->length += (size_t)length;
    pthread_mutex_unlock(&log->mutex);
}

void remotes_start(struct remotes *remotes, server_answer answer)
{
    static const char *const variables[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                            "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("HOME", "/nonexistent", 1);
    remotes->remote = NULL;
    remotes->log = (struct remote_log){.mutex = PTHREAD_MUTEX_INITIALIZER};
    remotes->params = (struct gj_remote_params){.upload = true, .connect_ms = 10000, .total_ms = 20000};
    server_start(&remotes->server, 0, answer);
}

void remotes_stop(struct remotes *remotes)
{
    gj_remote_close(&remotes->remote);
    server_stop(&remotes->server);
}

void remotes_open(struct remotes *remotes, const char *credentials, int port, const char *path)
{
    char url[1024];
    char *reason = NULL;
    gj_remote_close(&remotes->remote);
    assert_null(remotes->remote);
    remotes->log.warnings = remotes->log.others = 0;
    remotes->log.length = 0;
    remotes->log.text[0] = '\0';
    snprintf(url, sizeof url, "http://%s127.0.0.1:%d%s", credentials, port, path);
    const struct gj_log log = {keep_message, &remotes->log};
    remotes->params.url = url;
    remotes->remote = gj_remote_open(&remotes->params, &log, &reason);
    remotes->params.url = NULL;
    if (!remotes->remote)
        print_error("%s\n", reason ? reason : "no memory");
    free(reason);
    assert_non_null(remotes->remote);
}

void remotes_open_server(struct remotes *remotes)
{
    remotes_open(remotes, "", remotes->server.port, "/cache");
}

enum gj_remote_result get_entry(struct remotes *remotes, const char *name, const char *expected)
{
    void *data = NULL;
    size_t bytes = SIZE_MAX;
    const enum gj_remote_result result = gj_remote_get(remotes->remote, name, MAX_ENTRY, &data, &bytes);
    if (result == GJ_REMOTE_HIT) {
        assert_non_null(expected);
        assert_int_equal(bytes, strlen(expected));
        assert_memory_equal(data, expected, bytes);
    } else {
        assert_null(data);
        assert_int_equal(bytes, SIZE_MAX);
    }
    free(data);
    return result;
}

bool log_has(struct remotes *remotes, const char *word)
{
    pthread_mutex_lock(&remotes->log.mutex);
    const bool has = strstr(remotes->log.text, word) != NULL;
    pthread_mutex_unlock(&remotes->log.mutex);
    return has;
}

void check_warnings(struct remotes *remotes, int warnings, const char *word)
{
    pthread_mutex_lock(&remotes->log.mutex);
    const int found = remotes->log.warnings;
    pthread_mutex_unlock(&remotes->log.mutex);
    if (found != warnings || !log_has(remotes, word))
        print_error("expected %d warnings with '%s', got %d:\n%s", warnings, word, found, remotes->log.text);
    assert_int_equal(found, warnings);
    assert_true(log_has(remotes, word));
}

struct gj_remote_counts counts_of(struct remotes *remotes)
{
    struct gj_remote_counts counts;
    gj_remote_counts(remotes->remote, &counts);
    return counts;
}

void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* -- Answers ----------------------------------------------------------------------------------------- */

bool answer_name(struct server *server, int socket, const struct request *request)
{
    (void)server;
    const char *const name = strrchr(request->path, '/') + 1;
    server_printf(socket, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(name), name);
    return true;
}

void send_status(int socket, int status)
{
    server_printf(socket, "HTTP/1.1 %d Word\r\nContent-Length: 6\r\n\r\n<page>", status);
}

bool answer_404(struct server *server, int socket, const struct request *request)
{
    (void)server, (void)request;
    send_status(socket, 404);
    return true;
}
