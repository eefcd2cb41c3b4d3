/*
 * server.c - connections and requests (server.h).
 *
 * Invariant: a request reaches the route only after all checks; the body of one
 * that is refused at its head is not kept.
 */
#include "tools/serve/http/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/serve/http/exchange.h"
#include "tools/serve/http/peer.h"

enum {
    POOL_SIZE = 48 << 10, /* bytes of a connection's memory */
    WORKERS_MAX = 8,
    DROPPED_MAX = 1 << 20, /* bytes of a refused body that are read */
    OTHER_FILES = 256      /* descriptors, without those of connections */
};

/* --- the head of a request ---------------------------------------------- */

static bool is_change(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0 ||
           strcmp(method, "DELETE") == 0 || strcmp(method, "PUT") == 0;
}

/* Checks what says where the request ends, which proxies must not see
 * otherwise. */
static bool check_framing(struct serve_exchange *exchange)
{
    unsigned lengths = 0;
    unsigned encodings = 0;
    const char *length =
        serve_exchange_header(exchange, "Content-Length", &lengths);
    const char *encoding =
        serve_exchange_header(exchange, "Transfer-Encoding", &encodings);

    if (lengths > 1 || encodings > 1 || (lengths > 0 && encodings > 0) ||
        (encoding != NULL && strcasecmp(encoding, "chunked") != 0) ||
        (length != NULL && strspn(length, "0123456789") != strlen(length))) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the length of the body is ambiguous");
        return false;
    }
    if (length != NULL &&
        (strlen(length) > 10 || strtoull(length, NULL, 10) > SERVE_BODY_MAX)) {
        serve_exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE,
                              "a body has at most %d bytes", SERVE_BODY_MAX);
        return false;
    }
    return true;
}

/* Bytes that a head has as libmicrohttpd understood it. */
struct understood {
    size_t size;
    size_t empty;   /* headers without a value */
    bool has_blank; /* in a name */
};

static enum MHD_Result see_size(void *ctx, enum MHD_ValueKind kind,
                                const char *name, const char *value)
{
    struct understood *understood = ctx;

    (void)kind;
    understood->size += strlen(name) + 4; /* ": " and CR LF */
    understood->size += value != NULL ? strlen(value) : 0;
    understood->empty += value == NULL || value[0] == '\0';
    understood->has_blank |= name[strcspn(name, " \t")] != '\0';
    return MHD_YES;
}

/* Checks that the head has no byte more or less than what was understood of it:
 * libmicrohttpd takes folded headers, lines that end without CR, and blanks
 * before the colon, and cuts a text at a NUL, where a proxy may not. */
static bool check_bytes(struct serve_exchange *exchange, const char *version)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct understood understood = {
        .size = strlen(exchange->method) + strlen(exchange->target) +
                strlen(version) + 6 /* two blanks, and CR LF twice */
    };
    size_t size = info != NULL ? info->header_size : 0;

    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, see_size,
                              &understood);
    if (understood.has_blank || size > understood.size ||
        size + understood.empty < understood.size) {
        exchange->is_last = true;
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the head of a request has lines that end with "
                              "CR LF, and headers as \"Name: value\", without "
                              "a NUL");
        return false;
    }
    return true;
}

static bool check_head(struct serve_exchange *exchange, const char *version)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *method = exchange->method;

    if (info != NULL && info->header_size > SERVE_HEAD_MAX) {
        serve_exchange_refuse(
            exchange, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the head of a request has at most %d bytes", SERVE_HEAD_MAX);
        return false;
    }
    if (!check_bytes(exchange, version) || !check_framing(exchange)) {
        return false;
    }
    if (exchange->server->has_port) {
        if (!serve_access_check(exchange)) {
            return false;
        }
    } else if (serve_peer_is_foreign(exchange->connection)) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "the socket is of another user");
        return false;
    }
    if (!serve_peer_admit(exchange->server, exchange->connection)) {
        exchange->is_last = true;
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server has %u connections at a time",
                              exchange->server->connection_limit);
        return false;
    }
    if (exchange->is_bad_path) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the path is not percent-encoded, or has too "
                              "many parts");
        return false;
    }
    if (is_change(method)) {
        return serve_access_check_change(exchange);
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "no resource has this method");
        return false;
    }
    return true;
}

/* Whether the body of a request that was refused is read: a client that is
 * still sending when the connection is closed may lose the answer. */
static bool has_short_body(const struct serve_exchange *exchange)
{
    const char *length =
        serve_exchange_header(exchange, "Content-Length", NULL);
    unsigned encodings = 0;

    (void)serve_exchange_header(exchange, "Transfer-Encoding", &encodings);
    return encodings == 0 && length != NULL && strlen(length) < 10 &&
           strspn(length, "0123456789") == strlen(length) &&
           strtoul(length, NULL, 10) <= DROPPED_MAX;
}

/* --- requests ----------------------------------------------------------- */

static void count_request(struct serve_exchange *exchange, bool begins)
{
    struct serve_server *server = exchange->server;

    exchange->is_counted = begins;
    pthread_mutex_lock(&server->lock);
    server->requests += begins ? 1U : -1U;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* Makes room for what a body gets next. Returns false when the bodies of all
 * requests have taken what they may. */
static bool reserve_body(struct serve_exchange *exchange, size_t size)
{
    atomic_size_t *total = &exchange->server->body_bytes;

    while (exchange->body_capacity - exchange->body_size < size) {
        size_t before = exchange->body_capacity;

        if (atomic_load(total) + before > SERVE_BODIES_MAX) {
            return false;
        }
        exchange->body = cli_reserve(exchange->body, exchange->body_capacity,
                                     &exchange->body_capacity, sizeof(char));
        atomic_fetch_add(total, exchange->body_capacity - before);
    }
    return true;
}

static void take_body(struct serve_exchange *exchange, const char *data,
                      size_t size)
{
    if (exchange->body_is_too_big || exchange->is_refused) {
        return;
    }
    if (size > SERVE_BODY_MAX - exchange->body_size) {
        exchange->body_is_too_big = true;
        return;
    }
    if (!reserve_body(exchange, size)) {
        exchange->is_refused = true;
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server reads %d bytes of bodies at a time; "
                              "try again",
                              SERVE_BODIES_MAX);
        return;
    }
    memcpy(exchange->body + exchange->body_size, data, size);
    exchange->body_size += size;
}

static enum MHD_Result answer(struct serve_exchange *exchange)
{
    serve_peer_wait_for(exchange->server, exchange->connection,
                        SERVE_WAIT_NONE);
    if (exchange->is_refused) {
        /* It has its answer. */
    } else if (exchange->body_is_too_big) {
        serve_exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE,
                              "a body has at most %d bytes", SERVE_BODY_MAX);
    } else {
        exchange->server->route(exchange);
    }
    /* A job may have answered already: the worker calls again. */
    if (exchange->job != NULL) {
        return MHD_YES;
    }
    atomic_store(&exchange->step, SERVE_STEP_ANSWERED);
    return serve_exchange_queue(exchange);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    struct serve_exchange *exchange = *request;

    (void)ctx;
    (void)url;
    if (exchange == NULL) {
        return MHD_NO;
    }
    switch (atomic_load(&exchange->step)) {
    case SERVE_STEP_NEW:
        exchange->connection = connection;
        exchange->method = method;
        count_request(exchange, true);
        exchange->is_refused = !check_head(exchange, version);
        serve_peer_wait_for(exchange->server, connection, SERVE_WAIT_BODY);
        if (exchange->is_refused && !has_short_body(exchange)) {
            atomic_store(&exchange->step, SERVE_STEP_ANSWERED);
            return serve_exchange_queue(exchange);
        }
        atomic_store(&exchange->step, SERVE_STEP_BODY);
        return MHD_YES;
    case SERVE_STEP_BODY:
        if (*upload_size > 0) {
            take_body(exchange, upload, *upload_size);
            *upload_size = 0;
            return MHD_YES;
        }
        return answer(exchange);
    case SERVE_STEP_RUNNING:
        return MHD_YES;
    case SERVE_STEP_ANSWERED:
        return serve_exchange_queue(exchange);
    }
    return MHD_NO;
}

/* libmicrohttpd 0.9.75 stops where the parameters of a query do not fit its
 * memory, and answers nothing. */
static bool has_many_parameters(const char *target)
{
    size_t count = 0;

    for (; *target != '\0'; target++) {
        count += *target == '&';
    }
    return count >= SERVE_PARAMETERS_MAX;
}

static void *begin_request(void *ctx, const char *target,
                           struct MHD_Connection *connection)
{
    if (has_many_parameters(target)) {
        serve_peer_cut(connection, "414 URI Too Long");
    }
    return serve_exchange_create(ctx, target, connection);
}

static void end_request(void *ctx, struct MHD_Connection *connection,
                        void **request, enum MHD_RequestTerminationCode code)
{
    struct serve_exchange *exchange = *request;

    (void)ctx;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    serve_peer_wait_for(exchange->server, connection, SERVE_WAIT_HEAD);
    if (exchange->is_counted) {
        count_request(exchange, false);
    }
    serve_exchange_destroy(exchange);
    *request = NULL;
}

/* --- start and stop ----------------------------------------------------- */

static unsigned count_workers(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 2             ? 2
           : processors > WORKERS_MAX ? WORKERS_MAX
                                      : (unsigned)processors;
}

/* A connection takes a descriptor. */
static void raise_file_limit(unsigned connections)
{
    rlim_t wanted = (rlim_t)connections + OTHER_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* libmicrohttpd gives each worker a part of its limit; peer.c keeps that of
 * all. */
static struct MHD_Daemon *start_daemon(struct serve_server *server, int fd)
{
    unsigned workers = count_workers();

    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0,
        serve_peer_accept, server, handle, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_THREAD_POOL_SIZE, workers, MHD_OPTION_CONNECTION_LIMIT,
        workers * (server->connection_limit + 4 * SERVE_STRANGERS),
        MHD_OPTION_CONNECTION_TIMEOUT, server->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_SIZE,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        begin_request, server, MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
        MHD_OPTION_NOTIFY_CONNECTION, serve_peer_notify, server,
        MHD_OPTION_END);
}

static void stop_daemons(struct serve_server *server)
{
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->daemons[i] != NULL) {
            MHD_stop_daemon(server->daemons[i]);
            server->daemons[i] = NULL;
        }
        if (server->sockets[i] >= 0) {
            close(server->sockets[i]);
            server->sockets[i] = -1;
        }
    }
}

int serve_start(struct serve_server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    raise_file_limit(server->connection_limit);
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->sockets[i] < 0) {
            continue;
        }
        server->daemons[i] = start_daemon(server, server->sockets[i]);
        if (server->daemons[i] == NULL) {
            stop_daemons(server);
            return cli_error(server->cli, CLI_FAILED, "serve",
                             "cannot start the server");
        }
    }
    if (!serve_peer_start(server)) {
        stop_daemons(server);
        return cli_error(server->cli, CLI_FAILED, "serve",
                         "cannot start a thread");
    }
    return CLI_CONTINUE;
}

/* Waits until no request is answered. Lock. */
static void drain(struct serve_server *server, time_t seconds)
{
    struct timespec until = {0};

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while ((server->requests > 0 || server->jobs > 0 || server->streams > 0) &&
           pthread_cond_timedwait(&server->changed, &server->lock, &until) !=
               ETIMEDOUT) {
    }
}

bool serve_stop(struct serve_server *server)
{
    bool has_ended;

    atomic_store(&server->is_stopping, true);
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->daemons[i] != NULL) {
            (void)MHD_quiesce_daemon(server->daemons[i]);
        }
    }
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->changed);
    drain(server, SERVE_DRAIN_S);
    serve_peer_shut_down(server);
    drain(server, SERVE_SHUT_DOWN_S);
    has_ended = server->jobs == 0 && server->streams == 0;
    pthread_mutex_unlock(&server->lock);
    serve_peer_stop(server);
    if (has_ended) {
        stop_daemons(server);
        pthread_cond_destroy(&server->changed);
        pthread_mutex_destroy(&server->lock);
    }
    return has_ended;
}
