/*
 * exchange.c - a request and its answer, which a job or a stream may write in a separate thread
 * (http.h).
 */
#include "engine/base/system.h"
#include "tools/serve/http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- the request ---------------------------------------------------- */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %XX in place. Returns false when it is not such. */
static bool decode(char *text, size_t *size)
{
    size_t to = 0;

    for (size_t at = 0; at < *size; at++) {
        if (text[at] != '%') {
            text[to++] = text[at];
            continue;
        }
        if (*size - at < 3 || digit(text[at + 1]) < 0 || digit(text[at + 2]) < 0) {
            return false;
        }
        text[to++] = (char)(digit(text[at + 1]) * 16 + digit(text[at + 2]));
        at += 2;
    }
    *size = to;
    return true;
}

/* Drops what `json` has so far and begins another answer. */
static void restart(struct serve_exchange *exchange, unsigned status)
{
    if (exchange->file != NULL) {
        fclose(exchange->file);
    }
    free(exchange->data);
    exchange->data = NULL;
    exchange->size = 0;
    exchange->file = cli_open_memory(&exchange->data, &exchange->size);
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
        exchange->response = NULL;
    }
    exchange->status = status;
    cli_json_init(&exchange->json, exchange->file);
    exchange->shown =
        (struct shown){.json = &exchange->json, .cli = exchange->server->cli, .limit = SHOWN_LIMIT};
}

static void split(struct serve_exchange *exchange)
{
    char *at = exchange->path;
    char *end = at + strcspn(at, "?#");

    exchange->is_bad_path = *at != '/';
    while (at < end && !exchange->is_bad_path) {
        char *segment = at + 1; /* after the slash */
        size_t size = strcspn(segment, "/?#");

        at = segment + size;
        if (size == 0 && at == end) {
            return; /* a slash at the end */
        }
        if (exchange->segment_count == SERVE_SEGMENTS || !decode(segment, &size)) {
            exchange->is_bad_path = true;
            return;
        }
        exchange->segments[exchange->segment_count++] = (struct wal_slice){segment, size};
    }
}

struct serve_exchange *serve_exchange_create(struct serve_server *server, const char *target,
                                             struct MHD_Connection *connection)
{
    struct serve_exchange *exchange = cli_alloc(sizeof(*exchange));

    exchange->server = server;
    exchange->connection = connection;
    exchange->target = cli_copy_text(target, strlen(target));
    exchange->path = cli_copy_text(target, strlen(target));
    split(exchange);
    restart(exchange, MHD_HTTP_OK);
    return exchange;
}

void serve_exchange_destroy(struct serve_exchange *exchange)
{
    if (exchange->file != NULL) {
        fclose(exchange->file);
    }
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
    }
    free(exchange->data);
    atomic_fetch_sub(&exchange->server->body_bytes, exchange->body_capacity);
    free(exchange->body);
    free(exchange->target);
    free(exchange->path);
    free(exchange);
}

bool serve_exchange_matches(const struct serve_exchange *exchange, const char *pattern)
{
    unsigned count = 0;

    while (*pattern == '/') {
        size_t size = strcspn(++pattern, "/");

        if (size == 0) {
            break;
        }
        if (count == exchange->segment_count ||
            ((size != 1 || *pattern != '*') &&
             (exchange->segments[count].size != size ||
              memcmp(exchange->segments[count].data, pattern, size) != 0))) {
            return false;
        }
        count++;
        pattern += size;
    }
    return count == exchange->segment_count && !exchange->is_bad_path;
}

struct wal_slice serve_exchange_query(const struct serve_exchange *exchange, const char *name)
{
    const char *value = NULL;
    size_t size = 0;

    if (MHD_lookup_connection_value_n(exchange->connection, MHD_GET_ARGUMENT_KIND, name,
                                      strlen(name), &value, &size) != MHD_YES ||
        value == NULL) {
        return (struct wal_slice){NULL, 0};
    }
    return (struct wal_slice){value, size};
}

bool serve_exchange_number(struct serve_exchange *exchange, const char *name, uint64_t min,
                           uint64_t max, uint64_t *number)
{
    struct wal_slice text = serve_exchange_query(exchange, name);
    const char *at = text.data;
    uint64_t value = 0;
    bool is_good = text.size > 0 && text.size < 20;

    if (text.data == NULL) {
        return true;
    }
    for (uint64_t i = 0; i < text.size && is_good; i++) {
        is_good = at[i] >= '0' && at[i] <= '9';
        value = value * 10 + (uint64_t)(at[i] - '0');
    }
    if (!is_good || value < min || value > max) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "%s must be a number from %llu to %llu", name,
                              (unsigned long long)min, (unsigned long long)max);
        return false;
    }
    *number = value;
    return true;
}

struct header {
    const char *name;
    const char *value;
    unsigned count;
};

static enum MHD_Result see_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct header *header = ctx;

    (void)kind;
    if (strcasecmp(name, header->name) == 0) {
        header->count++;
        header->value = value != NULL ? value : "";
    }
    return MHD_YES;
}

const char *serve_exchange_header(const struct serve_exchange *exchange, const char *name,
                                  unsigned *count)
{
    struct header header = {.name = name};

    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, see_header, &header);
    if (count != NULL) {
        *count = header.count;
    }
    return header.count == 1 ? header.value : NULL;
}

/* --- the answer ----------------------------------------------------- */

/* Returns the name of a status of HTTP, such as BAD_REQUEST. */
static const char *serve_status_name(unsigned status)
{
    static const struct {
        unsigned status;
        const char *name;
    } names[] = {
        {400, "BAD_REQUEST"},         {401, "UNAUTHORIZED"},
        {403, "FORBIDDEN"},           {404, "NOT_FOUND"},
        {405, "METHOD_NOT_ALLOWED"},  {409, "CONFLICT"},
        {413, "CONTENT_TOO_LARGE"},   {415, "UNSUPPORTED_MEDIA_TYPE"},
        {421, "MISDIRECTED_REQUEST"}, {431, "REQUEST_HEADER_FIELDS_TOO_LARGE"},
        {501, "NOT_IMPLEMENTED"},     {503, "SERVICE_UNAVAILABLE"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].status == status) {
            return names[i].name;
        }
    }
    return "INTERNAL_SERVER_ERROR";
}

static void write_error(struct serve_exchange *exchange, unsigned status, const char *name,
                        const char *text)
{
    struct wal__json_out *json = &exchange->json;

    restart(exchange, status);
    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "error", '{');
    cli_json_member_text(json, "status", cli_slice(name));
    cli_json_member_text(json, "text", cli_slice(text));
    wal__json_out_close(json, '}');
    wal__json_out_close(json, '}');
}

void serve_exchange_refuse(struct serve_exchange *exchange, unsigned status, const char *text, ...)
{
    char buffer[1024];
    va_list arguments;

    va_start(arguments, text);
    vsnprintf(buffer, sizeof(buffer), text, arguments);
    va_end(arguments);
    write_error(exchange, status, serve_status_name(status), buffer);
}

/* The status of HTTP of a failure, and its name. */
static unsigned status_of(enum wal_status status, const char **name)
{
    static const struct {
        enum wal_status status;
        unsigned http;
    } known[] = {
        {WAL_EINVAL, 400},    {WAL_ENOTFOUND, 404}, {WAL_EEXISTS, 409},  {WAL_ECONFLICT, 409},
        {WAL_ETOOBIG, 413},   {WAL_ENOSPACE, 507},  {WAL_EIO, 500},      {WAL_ECORRUPT, 500},
        {WAL_ELOCKED, 503},   {WAL_EPOISONED, 503}, {WAL_EBUSY, 503},    {WAL_EREADONLY, 405},
        {WAL_ENOPARENT, 404}, {WAL_EBADJSON, 400},  {WAL_EDAMAGED, 409}, {WAL_EREDACTED, 410},
        {WAL_ECLAIMED, 409},  {WAL_ETRASHED, 410},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].status == status) {
            *name = cli_status_name(status);
            return known[i].http;
        }
    }
    *name = "INTERNAL_SERVER_ERROR";
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

void serve_exchange_fail(struct serve_exchange *exchange, enum wal_status status,
                         const struct wal_error *error)
{
    const char *name;
    unsigned http = status_of(status, &name);

    write_error(exchange, http, name,
                error != NULL && error->text[0] != '\0' ? error->text : wal_status_text(status));
}

void serve_exchange_respond(struct serve_exchange *exchange, unsigned status,
                            struct MHD_Response *response)
{
    restart(exchange, status);
    exchange->response = response;
}

void serve_response_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES) {
        fputs("agentwal: serve: out of memory\n", stderr);
        abort();
    }
}

void serve_response_check(struct MHD_Response *response, const char *content_type)
{
    if (response == NULL) {
        fputs("agentwal: serve: out of memory\n", stderr);
        abort();
    }
    if (content_type != NULL) {
        serve_response_header(response, "Content-Type", content_type);
    }
}

static void add_common_headers(struct MHD_Response *response, bool is_sandboxed)
{
    static const char *const headers[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };

    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        serve_response_header(response, headers[i][0], headers[i][1]);
    }
    if (MHD_get_response_header(response, "Content-Security-Policy") == NULL) {
        serve_response_header(response, "Content-Security-Policy",
                              is_sandboxed ? "sandbox; default-src 'none'; frame-ancestors 'none'"
                                           : "default-src 'none'; frame-ancestors 'none'");
    }
    if (MHD_get_response_header(response, "Content-Type") == NULL) {
        serve_response_header(response, "Content-Type", "application/json; charset=utf-8");
    }
}

/* Makes the response of the JSON that was written. */
static struct MHD_Response *take_json(struct serve_exchange *exchange)
{
    struct MHD_Response *response;

    fclose(exchange->file);
    exchange->file = NULL;
    response =
        MHD_create_response_from_buffer(exchange->size, exchange->data, MHD_RESPMEM_MUST_FREE);
    serve_response_check(response, NULL);
    exchange->data = NULL;
    return response;
}

enum MHD_Result serve_exchange_queue(struct serve_exchange *exchange)
{
    struct MHD_Response *response = exchange->response;
    char methods[SERVE_METHODS_SIZE];
    enum MHD_Result result;

    exchange->response = NULL;
    if (response == NULL) {
        response = take_json(exchange);
    }
    add_common_headers(response, exchange->is_sandboxed);
    if (exchange->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        exchange->server->list_methods(exchange, methods);
        serve_response_header(response, "Allow", methods);
    } else if (exchange->status == MHD_HTTP_UNAUTHORIZED) {
        serve_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (exchange->is_last) {
        serve_response_header(response, "Connection", "close");
    }
    result = MHD_queue_response(exchange->connection, exchange->status, response);
    MHD_destroy_response(response);
    return result;
}

/* --- jobs ----------------------------------------------------------- */

/* Takes one of at most `max` threads. */
static bool take_place(struct serve_server *server, unsigned *count, unsigned max)
{
    bool has_room;

    pthread_mutex_lock(&server->lock);
    has_room = *count < max;
    *count += has_room ? 1 : 0;
    pthread_mutex_unlock(&server->lock);
    return has_room;
}

static void leave_place(struct serve_server *server, unsigned *count)
{
    pthread_mutex_lock(&server->lock);
    --*count;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void *run_job(void *ctx)
{
    struct serve_exchange *exchange = ctx;
    struct serve_server *server = exchange->server;
    struct MHD_Connection *connection = exchange->connection;

    exchange->job(exchange);
    atomic_store(&exchange->step, SERVE_STEP_ANSWERED);
    /* From here on the worker may free the exchange. */
    MHD_resume_connection(connection);
    leave_place(server, &server->jobs);
    return NULL;
}

void serve_exchange_run(struct serve_exchange *exchange,
                        void (*handler)(struct serve_exchange *exchange))
{
    struct serve_server *server = exchange->server;
    pthread_t thread;

    if (!take_place(server, &server->jobs, SERVE_JOBS_MAX)) {
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server answers %d slow requests at a time; try again",
                              SERVE_JOBS_MAX);
        return;
    }
    exchange->job = handler;
    atomic_store(&exchange->step, SERVE_STEP_RUNNING);
    MHD_suspend_connection(exchange->connection);
    if (pthread_create(&thread, NULL, run_job, exchange) != 0) {
        run_job(exchange);
        return;
    }
    pthread_detach(thread);
}

enum {
    SERVE_STREAM_SIZE = 128 << 10 /* bytes */
};

/* --- answers that a thread writes while they are sent ------------------- */

enum {
    BLOCK_SIZE = 32 << 10 /* bytes that are sent at a time */
};

struct stream {
    struct serve_server *server;
    struct MHD_Connection *connection;
    serve_produce_fn *produce;
    void (*release)(void *ctx);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned users; /* the producer and the response */
    char *data;     /* a ring of SERVE_STREAM_SIZE bytes */
    size_t begin;
    size_t size;
    bool is_complete;
    bool has_failed;
    bool is_closed;  /* by the client */
    bool is_waiting; /* the connection is suspended */
};

static void drop(struct stream *stream)
{
    unsigned users;

    pthread_mutex_lock(&stream->lock);
    users = --stream->users;
    pthread_mutex_unlock(&stream->lock);
    if (users == 0) {
        pthread_cond_destroy(&stream->changed);
        pthread_mutex_destroy(&stream->lock);
        free(stream->data);
        free(stream);
    }
}

/* Lock. */
static void wake(struct stream *stream)
{
    if (stream->is_waiting) {
        stream->is_waiting = false;
        MHD_resume_connection(stream->connection);
    }
    pthread_cond_broadcast(&stream->changed);
}

/* --- the producer --------------------------------------------------- */

static size_t put_piece(struct stream *stream, const char *data, size_t size)
{
    size_t end = (stream->begin + stream->size) % SERVE_STREAM_SIZE;
    size_t room = SERVE_STREAM_SIZE - stream->size;

    room = room < SERVE_STREAM_SIZE - end ? room : SERVE_STREAM_SIZE - end;
    size = size < room ? size : room;
    memcpy(stream->data + end, data, size);
    stream->size += size;
    return size;
}

/* A function of wal__system_open_stream. */
static ssize_t put(void *ctx, const char *data, size_t size)
{
    struct stream *stream = ctx;
    size_t done = 0;

    pthread_mutex_lock(&stream->lock);
    while (done < size && !stream->is_closed) {
        if (stream->size == SERVE_STREAM_SIZE) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        done += put_piece(stream, data + done, size - done);
        wake(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    if (done < size) {
        errno = EPIPE;
        return 0;
    }
    return (ssize_t)size;
}

static void *run_producer(void *ctx)
{
    struct stream *stream = ctx;
    struct serve_server *server = stream->server;
    FILE *file = wal__system_open_stream(stream, put);
    bool is_good = file != NULL;

    if (is_good) {
        is_good = stream->produce(stream->ctx, file);
        is_good = fclose(file) == 0 && is_good;
    }
    stream->release(stream->ctx);
    pthread_mutex_lock(&stream->lock);
    stream->is_complete = true;
    stream->has_failed = !is_good;
    wake(stream);
    pthread_mutex_unlock(&stream->lock);
    drop(stream);
    leave_place(server, &server->streams);
    return NULL;
}

/* --- the response --------------------------------------------------- */

static ssize_t read_stream(void *ctx, uint64_t position, char *data, size_t max)
{
    struct stream *stream = ctx;
    ssize_t result = 0;

    (void)position;
    pthread_mutex_lock(&stream->lock);
    if (stream->size > 0) {
        size_t size = SERVE_STREAM_SIZE - stream->begin;

        size = size < stream->size ? size : stream->size;
        size = size < max ? size : max;
        memcpy(data, stream->data + stream->begin, size);
        stream->begin = (stream->begin + size) % SERVE_STREAM_SIZE;
        stream->size -= size;
        pthread_cond_broadcast(&stream->changed);
        result = (ssize_t)size;
    } else if (stream->is_complete) {
        result = stream->has_failed ? MHD_CONTENT_READER_END_WITH_ERROR
                                    : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        stream->is_waiting = true;
        MHD_suspend_connection(stream->connection);
    }
    pthread_mutex_unlock(&stream->lock);
    return result;
}

static void close_stream(void *ctx)
{
    struct stream *stream = ctx;

    pthread_mutex_lock(&stream->lock);
    stream->is_closed = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    drop(stream);
}

void serve_exchange_stream(struct serve_exchange *exchange, const char *content_type, uint64_t size,
                           serve_produce_fn *produce, void (*release)(void *ctx), void *ctx)
{
    struct serve_server *server = exchange->server;
    struct MHD_Response *response;
    struct stream *stream;
    pthread_t thread;

    if (!take_place(server, &server->streams, SERVE_STREAMS_MAX)) {
        release(ctx);
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server sends %d exports and trees at a time; try again",
                              SERVE_STREAMS_MAX);
        return;
    }
    stream = cli_alloc(sizeof(*stream));
    *stream = (struct stream){.server = server,
                              .connection = exchange->connection,
                              .produce = produce,
                              .release = release,
                              .ctx = ctx,
                              .users = 2,
                              .data = cli_alloc(SERVE_STREAM_SIZE)};
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    response =
        MHD_create_response_from_callback(size, BLOCK_SIZE, read_stream, stream, close_stream);
    serve_response_check(response, content_type);
    if (pthread_create(&thread, NULL, run_producer, stream) != 0) {
        release(ctx);
        drop(stream);
        MHD_destroy_response(response);
        leave_place(server, &server->streams);
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the system has no thread left; try again");
        return;
    }
    pthread_detach(thread);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
}
