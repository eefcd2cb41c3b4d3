/*
 * client.h - a client of the events, and what it and the feed share (feed.h).
 *
 * Threads: the lock of the feed.
 */
#ifndef AGENTWAL_TOOLS_SERVE_EVENTS_CLIENT_H
#define AGENTWAL_TOOLS_SERVE_EVENTS_CLIENT_H

#include "tools/serve/events/feed.h"
#include "tools/serve/events/recent.h"
#include "tools/serve/events/render.h"

enum {
    SERVE_ORDERS = 4,         /* parts of the log that are kept in order */
    SERVE_COMMENT_MS = 15000, /* between comments */
    SERVE_CATCH_UP_BYTES = 64 << 10 /* that a client reads of the log at once */
};

struct serve_client {
    struct serve_feed *feed;
    struct MHD_Connection *connection;
    struct serve_client *next;
    struct serve_client *previous;
    uint64_t position;
    uint64_t start;   /* where the events were when it connected */
    uint32_t session; /* its number; 0: all */
    bool is_waiting;  /* the connection is suspended */
    bool wants_comment;
    int64_t sent_ms; /* monotonic; the last bytes */
    bool has_events; /* `rest` has some, and not the greeting */
    bool is_cut;     /* what did not fit was hidden meanwhile */
    /* What is being sent and did not fit. */
    char *rest;
    size_t rest_size;
    size_t rest_at;
};

struct serve_feed {
    struct serve_server *server;
    pthread_t follower;
    pthread_mutex_t lock;
    struct serve_client *clients;
    size_t client_count;
    struct serve_recent recent;
    bool is_stopping;
    /* For clients that lag; its own lock, taken without the other. */
    pthread_mutex_t reading;
    struct serve_renderer renderer;
    struct serve_order orders[SERVE_ORDERS];
    uint64_t uses;
};

/* Reads events after a position up to `limit` from the log, as many as fit in a
 * piece; sets *position to how far. Returns them, to be freed; NULL: none. */
char *serve_catch_up(struct serve_feed *feed, uint32_t session, uint64_t limit,
                     uint64_t *position, size_t *size);

int64_t serve_now_ms(void);

#endif
