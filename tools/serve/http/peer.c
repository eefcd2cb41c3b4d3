/*
 * peer.c - the connections of a server (peer.h).
 */
#include "tools/serve/http/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BODY_FACTOR = 10 /* a body may take N times the idle time */
};

struct serve_peer {
    struct serve_peer *next; /* an older one */
    struct serve_peer *previous;
    int fd;
    enum serve_wait wait;
    time_t begun; /* monotonic seconds */
    time_t since; /* when `wait` began */
    bool is_known;
    bool is_foreign;
    bool is_evicted; /* a stranger that is counted no more */
};

static time_t now_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Lock. */
static void evict(struct serve_server *server, struct serve_peer *peer)
{
    if (peer->fd >= 0) {
        shutdown(peer->fd, SHUT_RDWR);
    }
    server->strangers--;
    peer->is_evicted = true;
}

/* Lock. */
static void evict_oldest(struct serve_server *server)
{
    struct serve_peer *oldest = NULL;

    for (struct serve_peer *peer = server->peers; peer != NULL;
         peer = peer->next) {
        if (!peer->is_known && !peer->is_evicted) {
            oldest = peer;
        }
    }
    if (oldest != NULL) {
        evict(server, oldest);
    }
}

enum MHD_Result serve_peer_accept(void *ctx, const struct sockaddr *address,
                                  socklen_t size)
{
    struct serve_server *server = ctx;

    (void)address;
    (void)size;
    pthread_mutex_lock(&server->lock);
    if (server->strangers >= SERVE_STRANGERS) {
        evict_oldest(server);
    }
    server->strangers++;
    pthread_mutex_unlock(&server->lock);
    return MHD_YES;
}

/* Lock. */
static bool admit(struct serve_server *server, struct serve_peer *peer)
{
    if (peer->is_known) {
        return true;
    }
    if (peer->is_evicted || server->known >= server->connection_limit) {
        return false;
    }
    server->strangers--;
    server->known++;
    peer->is_known = true;
    return true;
}

/* Whether the process that connected to a Unix socket is another user's. The
 * mode of the socket keeps others out; this holds where it is no file, or was
 * given another mode. */
static bool has_other_user(int fd)
{
    struct ucred user = {0};
    socklen_t size = sizeof(user);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0 ||
           (user.uid != geteuid() && user.uid != 0);
}

static void begin(struct serve_server *server,
                  struct MHD_Connection *connection, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct serve_peer *peer = cli_alloc(sizeof(*peer));

    peer->fd = info != NULL ? info->connect_fd : -1;
    peer->begun = peer->since = now_s();
    peer->is_foreign = !server->has_port && has_other_user(peer->fd);
    *socket_context = peer;
    pthread_mutex_lock(&server->lock);
    if (!server->has_port && !peer->is_foreign && !admit(server, peer)) {
        evict(server, peer);
    }
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
    if (peer->is_known) {
        server->known--;
    } else if (!peer->is_evicted) {
        server->strangers--;
    }
    pthread_mutex_unlock(&server->lock);
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

static struct serve_peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

bool serve_peer_admit(struct serve_server *server,
                      struct MHD_Connection *connection)
{
    struct serve_peer *peer = peer_of(connection);
    bool is_admitted;

    pthread_mutex_lock(&server->lock);
    is_admitted = peer != NULL && admit(server, peer);
    pthread_mutex_unlock(&server->lock);
    return is_admitted;
}

bool serve_peer_is_foreign(struct MHD_Connection *connection)
{
    const struct serve_peer *peer = peer_of(connection);

    return peer == NULL || peer->is_foreign;
}

void serve_peer_cut(struct MHD_Connection *connection, const char *status)
{
    const struct serve_peer *peer = peer_of(connection);
    char answer[128];
    int size = snprintf(answer, sizeof(answer),
                        "HTTP/1.1 %s\r\nConnection: close\r\n"
                        "Content-Length: 0\r\n\r\n",
                        status);

    if (peer != NULL && peer->fd >= 0) {
        (void)!send(peer->fd, answer, (size_t)size,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(peer->fd, SHUT_RDWR);
    }
}

void serve_peer_wait_for(struct serve_server *server,
                         struct MHD_Connection *connection,
                         enum serve_wait what)
{
    struct serve_peer *peer = peer_of(connection);

    if (peer != NULL) {
        pthread_mutex_lock(&server->lock);
        peer->wait = what;
        peer->since = now_s();
        pthread_mutex_unlock(&server->lock);
    }
}

/* Lock. The descriptor is open as long as the peer is in the list. */
static void shut_slow_down(struct serve_server *server)
{
    time_t stranger_limit = (time_t)server->idle_s < SERVE_STRANGER_S
                                ? (time_t)server->idle_s
                                : SERVE_STRANGER_S;
    time_t now = now_s();

    for (struct serve_peer *peer = server->peers; peer != NULL;
         peer = peer->next) {
        time_t limit = (time_t)server->idle_s *
                       (peer->wait == SERVE_WAIT_BODY ? BODY_FACTOR : 1);

        if (!peer->is_known) {
            if (!peer->is_evicted && now - peer->begun > stranger_limit) {
                evict(server, peer);
            }
        } else if (peer->wait != SERVE_WAIT_NONE && peer->fd >= 0 &&
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
