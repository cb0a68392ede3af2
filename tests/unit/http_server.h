/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server in a thread of the test, whose answers the test writes byte by byte. */
#ifndef GJ_TESTS_HTTP_SERVER_H
#define GJ_TESTS_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { SERVER_MAX_CONNECTIONS = 512 };

struct request {
    char method[8], path[512];
    char head[8192]; /* request line and headers */
    unsigned char *body;
    size_t bytes;
};

struct server;
/* Answers a request; returns whether the connection stays. Called from one thread per connection. */
typedef bool (*server_answer)(struct server *server, int socket, const struct request *request);

struct server {
    int listener, port;
    _Atomic(server_answer) answer; /* NULL: connections are closed unread */
    atomic_int num_connections, num_requests;
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    int sockets[SERVER_MAX_CONNECTIONS];
    pthread_t threads[SERVER_MAX_CONNECTIONS];
    struct request last; /* the last one that came in whole */
};

/* On a free port of 127.0.0.1, or on the given one. */
void server_start(struct server *server, int port, server_answer answer);
void server_stop(struct server *server);
/* A port on which nobody listens. */
int server_dead_port(void);

void server_send(int socket, const void *data, size_t bytes);
void server_printf(int socket, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits until the peer closes or the server stops. */
void server_wait_for_peer(int socket);
/* The last request that came in whole. It may be read while no other is on its way. */
const struct request *server_last(struct server *server);
/* Whether the last request has the line, e.g. "Authorization: Basic dTpw". */
bool server_saw(struct server *server, const char *line);

#endif
