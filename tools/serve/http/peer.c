/*
 * peer.c - the connections of a server (peer.h).
 */
#include "tools/serve/http/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum {
    BODY_FACTOR = 10 /* a body may take N times the idle time */
};

struct serve_peer {
    struct serve_peer *next;
    struct serve_peer *previous;
    int fd;
    enum serve_wait wait;
    time_t since; /* monotonic seconds */
};

static time_t now_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

enum MHD_Result serve_peer_accept(void *ctx, const struct sockaddr *address,
                                  socklen_t size)
{
    struct serve_server *server = ctx;

    (void)address;
    (void)size;
    /* Several workers accept at the same time. */
    if (atomic_fetch_add(&server->connections, 1) < server->connection_limit) {
        return MHD_YES;
    }
    atomic_fetch_sub(&server->connections, 1);
    return MHD_NO;
}

static void begin(struct serve_server *server,
                  struct MHD_Connection *connection, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct serve_peer *peer = cli_alloc(sizeof(*peer));

    peer->fd = info != NULL ? info->connect_fd : -1;
    peer->since = now_s();
    *socket_context = peer;
    pthread_mutex_lock(&server->lock);
    peer->next = server->peers;
    if (peer->next != NULL) {
        peer->next->previous = peer;
    }
    server->peers = peer;
    pthread_mutex_unlock(&server->lock);
}

static void end(struct serve_server *server, struct serve_peer *peer)
{
    pthread_mutex_lock(&server->lock);
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        server->peers = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_sub(&server->connections, 1);
    free(peer);
}

void serve_peer_notify(void *ctx, struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin(ctx, connection, socket_context);
    } else if (*socket_context != NULL) {
        end(ctx, *socket_context);
        *socket_context = NULL;
    }
}

void serve_peer_wait_for(struct serve_server *server,
                         struct MHD_Connection *connection,
                         enum serve_wait what)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct serve_peer *peer = info != NULL ? info->socket_context : NULL;

    if (peer != NULL) {
        pthread_mutex_lock(&server->lock);
        peer->wait = what;
        peer->since = now_s();
        pthread_mutex_unlock(&server->lock);
    }
}

/* Lock. The descriptor is open as long as the peer is in the list. */
static void shut_slow_down(const struct serve_server *server)
{
    time_t now = now_s();

    for (struct serve_peer *peer = server->peers; peer != NULL;
         peer = peer->next) {
        time_t limit = (time_t)server->idle_s *
                       (peer->wait == SERVE_WAIT_BODY ? BODY_FACTOR : 1);

        if (peer->wait != SERVE_WAIT_NONE && peer->fd >= 0 &&
            now - peer->since > limit) {
            shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

void serve_peer_shut_down(const struct serve_server *server)
{
    for (struct serve_peer *peer = server->peers; peer != NULL;
         peer = peer->next) {
        if (peer->fd >= 0) {
            shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

static void *sweep(void *ctx)
{
    struct serve_server *server = ctx;

    pthread_mutex_lock(&server->lock);
    while (!atomic_load(&server->is_stopping)) {
        struct timespec until = {0};

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        shut_slow_down(server);
        (void)pthread_cond_timedwait(&server->changed, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

bool serve_peer_start(struct serve_server *server)
{
    server->has_sweeper =
        pthread_create(&server->sweeper, NULL, sweep, server) == 0;
    return server->has_sweeper;
}

void serve_peer_stop(struct serve_server *server)
{
    if (server->has_sweeper) {
        pthread_join(server->sweeper, NULL);
        server->has_sweeper = false;
    }
}
