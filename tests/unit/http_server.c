/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server for tests: one thread accepts, one serves each connection. */
#include "http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct connection {
    struct server *server;
    int socket;
};

void server_send(int socket, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        bytes -= (size_t)sent;
    }
}

void server_printf(int socket, const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    server_send(socket, text, (size_t)length);
}

void server_wait_for_peer(int socket)
{
    char ignored[4096];
    while (recv(socket, ignored, sizeof ignored, 0) > 0)
        ;
}

/* Reads up to the empty line; false when the peer closes before. */
static bool read_head(int socket, struct request *request)
{
    size_t length = 0;
    while (length < 4 || memcmp(request->head + length - 4, "\r\n\r\n", 4) != 0) {
        if (length + 1 >= sizeof request->head || recv(socket, request->head + length, 1, 0) != 1)
            return false;
        length++;
    }
    request->head[length] = '\0';
    return sscanf(request->head, "%7s %511s", request->method, request->path) == 2;
}

static bool read_request(int socket, struct request *request)
{
    memset(request, 0, sizeof *request);
    if (!read_head(socket, request))
        return false;
    const char *const announced = strstr(request->head, "Content-Length: ");
    request->bytes = announced ? strtoul(announced + 16, NULL, 10) : 0;
    request->body = malloc(request->bytes + 1);
    size_t have = 0;
    while (request->body && have < request->bytes) {
        const ssize_t more = recv(socket, request->body + have, request->bytes - have, 0);
        if (more <= 0)
            break;
        have += (size_t)more;
    }
    if (have == request->bytes)
        return true;
    free(request->body);
    return false;
}

static void remember(struct server *server, const struct request *request)
{
    pthread_mutex_lock(&server->mutex);
    free(server->last.body);
    server->last = *request;
    server->last.body = malloc(request->bytes + 1);
    if (server->last.body)
        memcpy(server->last.body, request->body, request->bytes);
    pthread_mutex_unlock(&server->mutex);
    atomic_fetch_add(&server->num_requests, 1);
}

static void *serve(void *user)
{
    const struct connection connection = *(struct connection *)user;
    struct server *const server = connection.server;
    free(user);
    bool stays = atomic_load(&server->answer) != NULL;
    struct request request;
    while (stays && read_request(connection.socket, &request)) {
        remember(server, &request);
        const server_answer answer = atomic_load(&server->answer);
        stays = answer && answer(server, connection.socket, &request);
        free(request.body);
    }
    shutdown(connection.socket, SHUT_RDWR); /* closed by server_stop, so that its number is not reused */
    return NULL;
}

static void *accept_all(void *user)
{
    struct server *const server = user;
    for (;;) {
        const int socket = accept(server->listener, NULL, NULL);
        if (socket < 0)
            return NULL;
        struct connection *const connection = malloc(sizeof *connection);
        pthread_mutex_lock(&server->mutex);
        const int number = atomic_load(&server->num_connections);
        if (!connection || number == SERVER_MAX_CONNECTIONS || atomic_load(&server->stopping)) {
            close(socket);
            free(connection);
        } else {
            *connection = (struct connection){server, socket};
            server->sockets[number] = socket;
            if (pthread_create(&server->threads[number], NULL, serve, connection) != 0)
                fail();
            atomic_fetch_add(&server->num_connections, 1);
        }
        pthread_mutex_unlock(&server->mutex);
    }
}

static int bound_socket(int port)
{
    const int number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    assert_true(number >= 0);
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    assert_int_equal(bind(number, (const struct sockaddr *)&address, sizeof address), 0);
    return number;
}

static int port_of(int number)
{
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    assert_int_equal(getsockname(number, (struct sockaddr *)&address, &bytes), 0);
    return ntohs(address.sin_port);
}

void server_start(struct server *server, int port, server_answer answer)
{
    memset(server, 0, sizeof *server);
    atomic_store(&server->answer, answer);
    pthread_mutex_init(&server->mutex, NULL);
    server->listener = bound_socket(port);
    server->port = port_of(server->listener);
    assert_int_equal(listen(server->listener, 128), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, accept_all, server), 0);
}

void server_stop(struct server *server)
{
    atomic_store(&server->stopping, true);
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
    const int count = atomic_load(&server->num_connections);
    for (int i = 0; i < count; i++)
        shutdown(server->sockets[i], SHUT_RDWR);
    for (int i = 0; i < count; i++) {
        pthread_join(server->threads[i], NULL);
        close(server->sockets[i]);
    }
    free(server->last.body);
    server->last.body = NULL;
    pthread_mutex_destroy(&server->mutex);
}

int server_dead_port(void)
{
    const int number = bound_socket(0), port = port_of(number);
    close(number);
    return port;
}

const struct request *server_last(struct server *server)
{
    pthread_mutex_lock(&server->mutex); /* sees what the server's thread wrote */
    pthread_mutex_unlock(&server->mutex);
    return &server->last;
}

bool server_saw(struct server *server, const char *line)
{
    pthread_mutex_lock(&server->mutex);
    const char *const at = strstr(server->last.head, line);
    const bool saw = at && memcmp(at + strlen(line), "\r\n", 2) == 0;
    pthread_mutex_unlock(&server->mutex);
    return saw;
}
