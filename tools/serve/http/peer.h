/*
 * peer.h - the connections of a server: how many there are, and which of them
 * take too long to send a request.
 *
 * A client that sends a byte now and then is not idle to libmicrohttpd. A
 * connection that has not sent the head of its next request within the idle
 * time is therefore shut down, and one whose body takes ten times as long.
 *
 * All users of the machine reach a port, from the same address. A connection is
 * a stranger until it has sent a valid token. Strangers do not count against
 * the limit of connections: there are at most SERVE_STRANGERS, another one has
 * the oldest shut down, and each is after SERVE_STRANGER_S. To a Unix socket
 * the processes of other users, except root, are strangers for good.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_PEER_H
#define AGENTWAL_TOOLS_SERVE_HTTP_PEER_H

#include "tools/serve/http/server.h"

enum serve_wait {
    SERVE_WAIT_HEAD, /* the next request's head is awaited */
    SERVE_WAIT_BODY,
    SERVE_WAIT_NONE /* a request is answered */
};

/* Functions of libmicrohttpd's options: whether a connection may be accepted,
 * and that one began or ended. `ctx` is the server. */
enum MHD_Result serve_peer_accept(void *ctx, const struct sockaddr *address,
                                  socklen_t size);
void serve_peer_notify(void *ctx, struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code);

/* Counts the connection among those that are known, once it has sent a valid
 * token. Returns false when there are too many of them. */
bool serve_peer_admit(struct serve_server *server,
                      struct MHD_Connection *connection);

/* Whether the process at the other end of a Unix socket is another user's. */
bool serve_peer_is_foreign(struct MHD_Connection *connection);

/* Sends a line of status, and shuts the connection down. */
void serve_peer_cut(struct MHD_Connection *connection, const char *status);

/* What the connection is waited for from now on. */
void serve_peer_wait_for(struct serve_server *server,
                         struct MHD_Connection *connection,
                         enum serve_wait what);

/* Shuts all connections down. The caller has the server's lock. */
void serve_peer_shut_down(const struct serve_server *server);

/* Starts and stops the thread that shuts slow connections down. */
bool serve_peer_start(struct serve_server *server);
void serve_peer_stop(struct serve_server *server);

#endif
