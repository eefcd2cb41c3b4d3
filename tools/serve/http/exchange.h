/*
 * exchange.h - a request and its answer.
 *
 * A handler reads the request, and either writes JSON to `json` or calls one of
 * the functions below that set another answer; the last call counts.
 *
 * Invariant: memory of an answer is bounded by its resource, not by a session.
 *
 * Threads: one at a time per exchange.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_EXCHANGE_H
#define AGENTWAL_TOOLS_SERVE_HTTP_EXCHANGE_H

#include "tools/cli/json.h"
#include "tools/serve/http/server.h"
#include "tools/shown/shown.h"

enum {
    SERVE_SEGMENTS = 8
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
    bool is_refused;   /* the rest of the body is read and dropped */
    bool is_last;      /* the connection ends with the answer */
    bool is_sandboxed; /* the answer is content of a session */
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
};

/* Creates the exchange of a request line's target. */
struct serve_exchange *serve_exchange_create(struct serve_server *server,
                                             const char *target,
                                             struct MHD_Connection *connection);
void serve_exchange_destroy(struct serve_exchange *exchange);

/* Whether the path has these segments; "*" is any one. */
bool serve_exchange_matches(const struct serve_exchange *exchange,
                            const char *pattern);

/* Returns the value of a parameter of the query; NULL data: there is none. */
struct wal_slice serve_exchange_query(const struct serve_exchange *exchange,
                                      const char *name);

/* Reads a parameter that is a decimal number from min to max; *number stays as
 * it is when there is none. Returns false after the answer 400. */
bool serve_exchange_number(struct serve_exchange *exchange, const char *name,
                           uint64_t min, uint64_t max, uint64_t *number);

/* Returns the value of a header that occurs once; NULL: it is missing or occurs
 * several times, as *count says. */
const char *serve_exchange_header(const struct serve_exchange *exchange,
                                  const char *name, unsigned *count);

/* Drops what `json` has so far and begins another answer. */
void serve_exchange_restart(struct serve_exchange *exchange, unsigned status);

/* Answer with an error: of HTTP, named by its status, and of the library. */
void serve_exchange_refuse(struct serve_exchange *exchange, unsigned status,
                           const char *text, ...)
    __attribute__((format(printf, 3, 4)));
void serve_exchange_fail(struct serve_exchange *exchange,
                         enum wal_status status, const struct wal_error *error);

/* Answers with another response, which the exchange takes. */
void serve_exchange_respond(struct serve_exchange *exchange, unsigned status,
                            struct MHD_Response *response);

/* Adds a header; a failure is that of no memory and ends the process. */
void serve_response_header(struct MHD_Response *response, const char *name,
                           const char *value);

/* Runs a handler in a separate thread, since it may take long; the workers
 * answer others meanwhile. */
void serve_exchange_run(struct serve_exchange *exchange,
                        void (*handler)(struct serve_exchange *exchange));

/* Gives the answer to the connection. */
enum MHD_Result serve_exchange_queue(struct serve_exchange *exchange);

/* Returns the name of a status of HTTP, such as BAD_REQUEST. */
const char *serve_status_name(unsigned status);

#endif
