/*
 * server.h - the listening server: its sockets, its connections, and the
 * requests that are being answered. What it answers is the caller's.
 *
 * Threads: the workers of libmicrohttpd call the handlers; a connection stays
 * with its worker. Handlers of slow requests run in separate threads
 * (exchange.h). What changes after the start is atomic or below the lock.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_SERVER_H
#define AGENTWAL_TOOLS_SERVE_HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tools/cli/cli.h"
#include "tools/serve/http/access.h"

enum {
    SERVE_SOCKETS = 2,            /* of a port: 127.0.0.1 and ::1 */
    SERVE_BODY_MAX = 32 << 20,    /* bytes */
    SERVE_BODIES_MAX = 128 << 20, /* bytes of all bodies that are read */
    SERVE_HEAD_MAX = 16 << 10,    /* bytes */
    SERVE_PARAMETERS_MAX = 128,   /* of a query */
    SERVE_JOBS_MAX = 32,          /* slow requests at a time */
    SERVE_STREAMS_MAX = 32,       /* answers at a time that a thread writes */
    SERVE_DRAIN_S = 4,            /* for requests when the server ends */
    SERVE_SHUT_DOWN_S = 1,   /* and after their connections were shut down */
    SERVE_CONNECTIONS = 256, /* default limit */
    SERVE_STRANGERS = 32,    /* connections without a valid token so far */
    SERVE_STRANGER_S = 5,    /* for which they may be open */
    SERVE_IDLE_S = 60,       /* default */
    SERVE_LINK_S = 600,      /* default */
    SERVE_METHODS_SIZE = 40  /* bytes of a list of methods */
};

struct serve_exchange;
struct serve_feed;
struct serve_index;
struct serve_peer;

struct serve_server {
    /* Set by the caller before the start. */
    const struct cli *cli;
    struct wal_store *store;
    bool can_write;
    bool has_port;
    uint16_t port;           /* 0: any; afterwards that which was taken */
    const char *socket_path; /* without a port */
    unsigned connection_limit;
    unsigned idle_s;
    /* Answers a request that passed the checks of access.h. */
    void (*route)(struct serve_exchange *exchange);
    /* Lists the methods of the resource that is asked for. */
    void (*list_methods)(const struct serve_exchange *exchange,
                         char text[SERVE_METHODS_SIZE]);
    struct serve_index *index; /* of search, or NULL */
    struct serve_feed *feed;   /* of events */

    struct serve_access access;
    struct MHD_Daemon *daemons[SERVE_SOCKETS];
    int sockets[SERVE_SOCKETS]; /* -1: none */
    atomic_size_t body_bytes;   /* of all bodies */
    atomic_bool is_stopping;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned known;           /* connections with a valid token; lock */
    unsigned strangers;       /* those without, that were not shut down; lock */
    unsigned jobs;            /* threads of slow requests; lock */
    unsigned streams;         /* threads that write answers; lock */
    unsigned requests;        /* that are being answered; lock */
    struct serve_peer *peers; /* connections; lock */
    pthread_t sweeper;
    bool has_sweeper;
};

/* Opens the sockets. Returns CLI_CONTINUE, or prints an error and returns an
 * exit code; nothing is open then. */
int serve_listen(struct serve_server *server);

/* Starts answering. As serve_listen. */
int serve_start(struct serve_server *server);

/* Stops accepting, waits for requests, and frees what the two calls above made.
 * Returns false when requests did not end in time: their threads still use the
 * server and the store, and the process has to end. */
bool serve_stop(struct serve_server *server);

#endif
