/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the remote share: a server, a log that is kept whole, and a remote between them. */
#ifndef GJ_TESTS_REMOTE_FIXTURE_H
#define GJ_TESTS_REMOTE_FIXTURE_H

#include "http_server.h"
#include "remote/remote.h"

enum { MAX_ENTRY = 100000 };

/* Every message, one a line. */
struct remote_log {
    pthread_mutex_t mutex;
    int warnings, others;
    size_t length;
    char text[1 << 16];
};

struct remotes {
    struct server server;
    struct remote_log log;
    struct gj_remote_params params; /* of the next open; url is set by it */
    gj_remote *remote;
};

/* Starts a server and clears the environment of what libcurl reads. Times: ample, for
 * sanitizers on a busy machine; 60 s pause. */
void remotes_start(struct remotes *remotes, server_answer answer);
void remotes_stop(struct remotes *remotes);
/* Opens http://CREDENTIALS127.0.0.1:PORT/PATH, closing the remote that is open and emptying the log. */
void remotes_open(struct remotes *remotes, const char *credentials, int port, const char *path);
/* The same on the server, with "/cache". */
void remotes_open_server(struct remotes *remotes);

/* What a GET gives; the data is freed, after being compared with `expected` when there was a hit. */
enum gj_remote_result get_entry(struct remotes *remotes, const char *name, const char *expected);

void check_warnings(struct remotes *remotes, int warnings, const char *word);
bool log_has(struct remotes *remotes, const char *word);
struct gj_remote_counts counts_of(struct remotes *remotes);
void sleep_ms(int ms);

/* -- Answers ----------------------------------------------------------------------------------------- */

/* 200 with the name of the entry, the last part of the path, as its body. */
bool answer_name(struct server *server, int socket, const struct request *request);
/* A status with a small page, keeping the connection. */
void send_status(int socket, int status);
bool answer_404(struct server *server, int socket, const struct request *request);

#endif
