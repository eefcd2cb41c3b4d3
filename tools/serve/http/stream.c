/*
 * stream.c - answers that a thread writes (stream.h).
 */
#include "tools/serve/http/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* --- the producer ------------------------------------------------------- */

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

/* A function of fopencookie. */
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

static void end_stream(struct serve_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->streams--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void *run_producer(void *ctx)
{
    struct stream *stream = ctx;
    struct serve_server *server = stream->server;
    const cookie_io_functions_t functions = {.write = put};
    FILE *file = fopencookie(stream, "w", functions);
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
    end_stream(server);
    return NULL;
}

/* --- the response ------------------------------------------------------- */

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

static bool take_place(struct serve_server *server)
{
    bool has_room;

    pthread_mutex_lock(&server->lock);
    has_room = server->streams < SERVE_STREAMS_MAX;
    server->streams += has_room ? 1 : 0;
    pthread_mutex_unlock(&server->lock);
    return has_room;
}

void serve_exchange_stream(struct serve_exchange *exchange,
                           const char *content_type, uint64_t size,
                           serve_produce_fn *produce,
                           void (*release)(void *ctx), void *ctx)
{
    struct serve_server *server = exchange->server;
    struct MHD_Response *response;
    struct stream *stream;
    pthread_t thread;

    if (!take_place(server)) {
        release(ctx);
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server sends %d exports and trees at a "
                              "time; try again",
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
    response = MHD_create_response_from_callback(size, BLOCK_SIZE, read_stream,
                                                 stream, close_stream);
    if (response == NULL) {
        fputs("agentwal: serve: out of memory\n", stderr);
        abort();
    }
    if (pthread_create(&thread, NULL, run_producer, stream) != 0) {
        release(ctx);
        drop(stream);
        MHD_destroy_response(response);
        end_stream(server);
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the system has no thread left; try again");
        return;
    }
    pthread_detach(thread);
    serve_response_header(response, "Content-Type", content_type);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
}
