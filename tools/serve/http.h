/*
 * http.h - the listening server, and a request with its answer. What it answers is the caller's.
 *
 * A handler reads the request, and either writes JSON to `json` or calls one of the functions of
 * the exchange that set another answer; the last call counts.
 *
 * Invariant: memory of an answer is bounded by its resource, not by a session.
 *
 * Threads: the workers of libmicrohttpd call the handlers; a connection stays with its worker.
 * Handlers of slow requests run in separate threads; one at a time has an exchange. What changes of
 * the server after the start is atomic or below the lock.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_H
#define AGENTWAL_TOOLS_SERVE_HTTP_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tools/shown/shown.h"

enum {
    SERVE_SOCKETS = 2,            /* of a port: 127.0.0.1 and ::1 */
    SERVE_BODY_MAX = 32 << 20,    /* bytes */
    SERVE_BODIES_MAX = 128 << 20, /* bytes of all bodies that are read */
    SERVE_HEAD_MAX = 16 << 10,    /* bytes */
    SERVE_PARAMETERS_MAX = 128,   /* of a query */
    SERVE_JOBS_MAX = 32,          /* slow requests at a time */
    SERVE_STREAMS_MAX = 32,       /* answers at a time that a thread writes */
    SERVE_DRAIN_S = 4,            /* for requests when the server ends */
    SERVE_SHUT_DOWN_S = 1,        /* and after their connections were shut down */
    SERVE_CONNECTIONS = 256,      /* default limit */
    SERVE_STRANGERS = 32,         /* connections without a valid token so far */
    SERVE_STRANGER_S = 5,         /* for which they may be open */
    SERVE_IDLE_S = 60,            /* default */
    SERVE_LINK_S = 600,           /* default */
    SERVE_METHODS_SIZE = 40,      /* bytes of a list of methods */
    SERVE_SECRET_SIZE = 65,       /* bytes of 256 bits in hexadecimal, with a NUL */
    SERVE_NAMES = 3,
    SERVE_NAME_SIZE = 32,
    SERVE_SEGMENTS = 8 /* of a path */
};

struct serve_exchange;
struct serve_feed;
struct serve_index;
struct serve_peer;
struct serve_route;
struct serve_totals;

struct serve_access {
    char names[SERVE_NAMES][SERVE_NAME_SIZE]; /* with the port */
    char token[SERVE_SECRET_SIZE];
    char cookie_name[SERVE_NAME_SIZE];
    pthread_mutex_t lock;
    char key[SERVE_SECRET_SIZE];    /* lock; of the link */
    time_t key_until;               /* lock; seconds since the system was started */
    bool key_is_used;               /* lock */
    bool is_of_key;                 /* lock; the cookie is that of this link */
    char cookie[SERVE_SECRET_SIZE]; /* lock; of the last answer to the link */
};

/* A list whose items begin with their link. Not every C library has sys/queue.h. */
struct serve_link {
    struct serve_link *next;
    struct serve_link **at; /* what points to it */
};

#define SERVE_EACH(item, first) \
    for ((item) = (void *)(first); (item) != NULL; (item) = (void *)(item)->link.next)

static inline void serve_link_insert(struct serve_link **first, struct serve_link *link)
{
    *link = (struct serve_link){.next = *first, .at = first};
    if (link->next != NULL) {
        link->next->at = &link->next;
    }
    *first = link;
}

static inline void serve_link_remove(struct serve_link *link)
{
    *link->at = link->next;
    if (link->next != NULL) {
        link->next->at = link->at;
    }
}

struct serve_server {
    /* Set by the caller before the start. */
    const struct cli *cli;
    struct wal_store *store;
    const struct usage_prices *prices;
    bool can_write;
    bool has_port;
    uint16_t port;           /* 0: any; afterwards that which was taken */
    const char *socket_path; /* without a port */
    unsigned connection_limit;
    unsigned idle_s;
    unsigned link_s; /* for which a link may be opened */
    /* Answers a request that passed the checks. */
    void (*route)(struct serve_exchange *exchange);
    /* Lists the methods of the resource that is asked for. */
    void (*list_methods)(const struct serve_exchange *exchange, char text[SERVE_METHODS_SIZE]);
    struct serve_index *index; /* of search, or NULL */
    struct serve_feed *feed;   /* of events */
    struct serve_totals *totals;

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
    struct serve_link *peers; /* connections; lock */
    pthread_t sweeper;
    bool has_sweeper;
};

enum serve_step {
    SERVE_STEP_NEW,     /* the head was read */
    SERVE_STEP_BODY,    /* the body is read */
    SERVE_STEP_RUNNING, /* a job answers */
    SERVE_STEP_ANSWERED /* the answer is complete */
};

struct serve_exchange {
    struct serve_server *server;
    struct MHD_Connection *connection;
    const char *method;
    char *target;                              /* as it was sent */
    char *path;                                /* owns the segments */
    struct wal_slice segments[SERVE_SEGMENTS]; /* of the path, decoded */
    unsigned segment_count;
    bool is_bad_path;
    bool is_cookie; /* the cookie allowed it, not the token */
    bool is_counted;
    bool is_refused;             /* the rest of the body is read and dropped */
    bool is_last;                /* the connection ends with the answer */
    bool is_sandboxed;           /* the answer is content of a session */
    struct wal_session *session; /* that a handler uses, or NULL */
    char *body;
    size_t body_size;
    size_t body_capacity;
    bool body_is_too_big;
    _Atomic enum serve_step step;
    struct wal__json_out json; /* the answer */
    struct shown shown;        /* writes to it; cuts texts */
    /* private */
    FILE *file; /* of json */
    char *data;
    size_t size;
    unsigned status;               /* of HTTP */
    struct MHD_Response *response; /* instead of json, or NULL */
    void (*job)(struct serve_exchange *exchange);
    const struct serve_route *route; /* which the answer is made by */
};

/* Makes the secrets but for the link's key. */
void serve_access_init(struct serve_access *access, uint16_t port);

/* Makes a key for the link, valid for `link_s` seconds; the one before is void. */
void serve_access_renew(struct serve_access *access, unsigned link_s);

/* Opens the sockets. Returns CLI_OK, or prints an error and returns an exit code; nothing is
 * open then. */
int serve_listen(struct serve_server *server);

/* Starts answering. As serve_listen. */
int serve_start(struct serve_server *server);

/* Stops accepting, waits for requests, and frees what the two calls above made. Returns false when
 * requests did not end in time: their threads still use the server and the store, and the process
 * has to end. */
bool serve_stop(struct serve_server *server);

/* Creates the exchange of a request line's target. */
struct serve_exchange *serve_exchange_create(struct serve_server *server, const char *target,
                                             struct MHD_Connection *connection);
void serve_exchange_destroy(struct serve_exchange *exchange);

/* Whether the path has these segments; "*" is any one. */
bool serve_exchange_matches(const struct serve_exchange *exchange, const char *pattern);

/* Returns the value of a parameter of the query; NULL data: there is none. */
struct wal_slice serve_exchange_query(const struct serve_exchange *exchange, const char *name);

/* Reads a parameter that is a decimal number from min to max; *number stays as it is when there is
 * none. Returns false after the answer 400. */
bool serve_exchange_number(struct serve_exchange *exchange, const char *name, uint64_t min,
                           uint64_t max, uint64_t *number);

/* Returns the value of a header that occurs once; NULL: it is missing or occurs several times, as
 * *count says. */
const char *serve_exchange_header(const struct serve_exchange *exchange, const char *name,
                                  unsigned *count);

/* Answer with an error: of HTTP, named by its status, and of the library. */
void serve_exchange_refuse(struct serve_exchange *exchange, unsigned status, const char *text, ...)
    __attribute__((format(printf, 3, 4)));
void serve_exchange_fail(struct serve_exchange *exchange, enum wal_status status,
                         const struct wal_error *error);

/* Answers with another response, which the exchange takes. */
void serve_exchange_respond(struct serve_exchange *exchange, unsigned status,
                            struct MHD_Response *response);

/* Adds a header; a failure is that of no memory and ends the process. */
void serve_response_header(struct MHD_Response *response, const char *name, const char *value);

/* Ends the process where there is no memory for a response; sets its type, if one is given. */
void serve_response_check(struct MHD_Response *response, const char *content_type);

/* Runs a handler in a separate thread, since it may take long; the workers answer others
 * meanwhile. */
void serve_exchange_run(struct serve_exchange *exchange,
                        void (*handler)(struct serve_exchange *exchange));

/* Gives the answer to the connection. */
enum MHD_Result serve_exchange_queue(struct serve_exchange *exchange);

/* Writes an answer to the file. Returns false when it could not be completed: the connection is
 * then closed before the answer's end. */
typedef bool serve_produce_fn(void *ctx, FILE *file);

/* Answers with what `produce` writes, which a thread calls: `size` bytes, or MHD_SIZE_UNKNOWN.
 * `release` frees ctx when it has returned, or could not be called. At most SERVE_STREAM_SIZE bytes
 * wait for the client; the thread sleeps while they do. When the client has gone, writing fails. */
void serve_exchange_stream(struct serve_exchange *exchange, const char *content_type, uint64_t size,
                           serve_produce_fn *produce, void (*release)(void *ctx), void *ctx);

#endif
