/*
 * feed.c - events of the store (feed.h).
 *
 * Locks: that of the feed guards clients and recent events. The follower reads
 * the log without it.
 */
#include "tools/serve/events/feed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/serve/events/client.h"
#include "tools/serve/events/known.h"

enum {
    WAIT_MS = 500, /* at most, for a record */
    PAUSE_US = 20, /* for each client, so that events go out together */
    PAUSE_MAX_US = 50000,
    RETRY_MS = 200 /* after an error of the store */
};

int64_t serve_now_ms(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_us(uint64_t us)
{
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000};

    (void)nanosleep(&time, NULL);
}

/* --- the follower ------------------------------------------------------- */

/* Closes what the renderer of lagging clients has open, so that no file is kept
 * that compaction has replaced. With `all` drops the parts of the log that were
 * sorted, too. */
static void close_reading(struct serve_feed *feed, bool all)
{
    pthread_mutex_lock(&feed->reading);
    serve_renderer_deinit(&feed->renderer);
    for (size_t i = 0; all && i < SERVE_ORDERS; i++) {
        serve_order_deinit(&feed->orders[i]);
    }
    pthread_mutex_unlock(&feed->reading);
}

static void drop_rest(struct serve_client *client)
{
    if (client->rest != NULL) {
        explicit_bzero(client->rest, client->rest_size);
        free(client->rest);
        client->rest = NULL;
    }
}

/* Drops events that were made before what they show was changed. */
static void forget(struct serve_feed *feed, enum serve_change change)
{
    if (change == SERVE_ADDS) {
        return;
    }
    close_reading(feed, true);
    pthread_mutex_lock(&feed->lock);
    serve_recent_drop(&feed->recent, UINT64_MAX);
    for (struct serve_client *client = feed->clients;
         client != NULL && change != SERVE_REPLACES; client = client->next) {
        if (client->rest != NULL && client->has_events) {
            drop_rest(client);
            client->is_cut = true;
        }
    }
    pthread_mutex_unlock(&feed->lock);
}

/* Makes the event of an item, and keeps it. */
static void keep(struct serve_feed *feed, struct serve_renderer *renderer,
                 const struct serve_order_item *item)
{
    struct serve_event event = {
        .sequence = item->sequence,
        .session = item->change == SERVE_REDACTS ? 0 : item->session};
    FILE *file = open_memstream(&event.data, &event.size);

    if (file == NULL) {
        abort();
    }
    serve_render(renderer, item, file);
    fclose(file);
    if (event.size == 0) {
        free(event.data);
        return;
    }
    pthread_mutex_lock(&feed->lock);
    serve_recent_add(&feed->recent, event);
    pthread_mutex_unlock(&feed->lock);
}

/* Reads the log from the end of the recent events up to `limit`. */
static bool read_log(struct serve_feed *feed, struct serve_renderer *renderer,
                     struct serve_known *known, uint64_t limit)
{
    struct serve_order order = {.items = NULL};
    uint64_t end = feed->recent.end; /* only this thread changes it */
    enum wal_status status = WAL_OK;

    while (end < limit && status == WAL_OK) {
        status =
            serve_order_read(&order, feed->server->store, end, limit, NULL);
        if (status == WAL_OK) {
            serve_known_update(known, feed->server->store, &order, end);
        }
        for (size_t i = serve_order_find(&order, end);
             status == WAL_OK && i < order.count; i++) {
            forget(feed, order.items[i].change);
            keep(feed, renderer, &order.items[i]);
        }
        if (status == WAL_OK) {
            end = order.upto;
        }
    }
    serve_order_deinit(&order);
    pthread_mutex_lock(&feed->lock);
    feed->recent.end = end;
    pthread_mutex_unlock(&feed->lock);
    return status == WAL_OK;
}

/* Whether the recent events have all that a client has not seen. A client that
 * has just come reads what is older from the log, as it is now. Lock. */
static bool keeps_up(const struct serve_client *client)
{
    return client->position >= client->feed->recent.after &&
           client->position >= client->start;
}

/* Drops the events that all clients have which keep up. Lock. */
static void drop_sent(struct serve_feed *feed)
{
    uint64_t sent = feed->recent.end;

    for (const struct serve_client *client = feed->clients; client != NULL;
         client = client->next) {
        if (keeps_up(client) && client->position < sent) {
            sent = client->position;
        }
    }
    serve_recent_drop(&feed->recent, sent);
}

/* Resumes the connections that have something to send. Lock. */
static void wake_clients(struct serve_feed *feed)
{
    const struct serve_recent *recent = &feed->recent;
    int64_t now = serve_now_ms();

    for (struct serve_client *client = feed->clients; client != NULL;
         client = client->next) {
        if (!client->is_waiting) {
            continue;
        }
        if (keeps_up(client) && serve_recent_next(recent, client->position,
                                                  client->session) == NULL) {
            client->position =
                recent->end > client->position ? recent->end : client->position;
        }
        client->wants_comment = now - client->sent_ms >= SERVE_COMMENT_MS;
        if (client->position < recent->end || client->wants_comment ||
            feed->is_stopping) {
            client->is_waiting = false;
            MHD_resume_connection(client->connection);
        }
    }
}

static void *follow(void *ctx)
{
    struct serve_feed *feed = ctx;
    struct serve_renderer renderer = {.store = feed->server->store};
    struct serve_known known = {.items = NULL};
    uint64_t sequence = feed->recent.end;
    bool is_stopping = false;

    /* Without the list no session is reported as deleted for good. */
    (void)!serve_known_read(&known, feed->server->store, NULL);
    while (!is_stopping) {
        enum wal_status status = wal_store_wait(feed->server->store, &sequence,
                                                WAL_WRITTEN, WAIT_MS, NULL);
        uint64_t pause;

        if ((status != WAL_OK && status != WAL_EBUSY) ||
            !read_log(feed, &renderer, &known, sequence)) {
            sleep_us(RETRY_MS * 1000);
        }
        if (status == WAL_EBUSY) {
            serve_renderer_deinit(&renderer);
            close_reading(feed, false);
        }
        pthread_mutex_lock(&feed->lock);
        drop_sent(feed);
        wake_clients(feed);
        pause = feed->client_count * PAUSE_US;
        is_stopping = feed->is_stopping;
        pthread_mutex_unlock(&feed->lock);
        if (status == WAL_OK && feed->client_count > 1 && !is_stopping) {
            sleep_us(pause < PAUSE_MAX_US ? pause : PAUSE_MAX_US);
        }
    }
    serve_known_deinit(&known);
    serve_renderer_deinit(&renderer);
    return NULL;
}

/* --- clients ------------------------------------------------------------ */

/* Copies what a client sends next; the rest stays with it. */
static size_t send_bytes(struct serve_client *client, const char *bytes,
                         size_t size, char *data, size_t max)
{
    size_t now = size < max ? size : max;

    memcpy(data, bytes, now);
    if (now < size) {
        client->has_events = true;
        client->rest = cli_copy_text(bytes + now, size - now);
        client->rest_size = size - now;
        client->rest_at = 0;
    }
    client->sent_ms = serve_now_ms();
    return now;
}

static size_t send_rest(struct serve_client *client, char *data, size_t max)
{
    size_t size = client->rest_size - client->rest_at;

    size = size < max ? size : max;
    memcpy(data, client->rest + client->rest_at, size);
    client->rest_at += size;
    if (client->rest_at == client->rest_size) {
        drop_rest(client);
    }
    client->sent_ms = serve_now_ms();
    return size;
}

/* Copies recent events, as many as fit whole, or a part of one. Lock. */
static size_t send_recent(struct serve_client *client, char *data, size_t max)
{
    const struct serve_recent *recent = &client->feed->recent;
    size_t size = 0;

    while (client->rest == NULL) {
        const struct serve_event *event =
            serve_recent_next(recent, client->position, client->session);

        if (event == NULL) {
            client->position =
                recent->end > client->position ? recent->end : client->position;
            break;
        }
        if (size > 0 && event->size > max - size) {
            break;
        }
        size += send_bytes(client, event->data, event->size, data + size,
                           max - size);
        client->position = event->sequence;
    }
    return size;
}

/* Reads from the log; the lock is released meanwhile. */
static size_t send_old(struct serve_client *client, char *data, size_t max)
{
    struct serve_feed *feed = client->feed;
    uint64_t limit = feed->recent.end;
    uint64_t position = client->position;
    size_t size = 0;
    size_t sent = 0;
    char *bytes;

    pthread_mutex_unlock(&feed->lock);
    bytes = serve_catch_up(feed, client->session, limit, &position, &size);
    pthread_mutex_lock(&feed->lock);
    client->position = position;
    if (size > 0) {
        sent = send_bytes(client, bytes, size, data, max);
    }
    explicit_bzero(bytes, size);
    free(bytes);
    return sent;
}

/* Waits until the follower resumes the connection. Lock. */
static void wait_for_events(struct serve_client *client)
{
    client->is_waiting = true;
    MHD_suspend_connection(client->connection);
}

static ssize_t read_events(void *ctx, uint64_t offset, char *data, size_t max)
{
    static const char comment[] = ":\n\n";
    struct serve_client *client = ctx;
    struct serve_feed *feed = client->feed;
    size_t size = 0;
    bool has_ended = false;
    bool yields = false; /* to the worker's other connections */

    (void)offset;
    pthread_mutex_lock(&feed->lock);
    while (size == 0 && !has_ended && !yields && !client->is_waiting) {
        uint64_t before = client->position;

        if (feed->is_stopping || client->is_cut) {
            has_ended = true;
        } else if (client->rest != NULL) {
            size = send_rest(client, data, max);
        } else if (!keeps_up(client)) {
            size = send_old(client, data, max);
            if (size == 0 && client->position == before) {
                wait_for_events(client); /* the store cannot be read now */
            } else {
                yields = true;
            }
        } else {
            size = send_recent(client, data, max);
            if (size == 0 && client->wants_comment) {
                size =
                    send_bytes(client, comment, sizeof(comment) - 1, data, max);
            } else if (size == 0) {
                wait_for_events(client);
            }
            client->wants_comment = false;
        }
    }
    pthread_mutex_unlock(&feed->lock);
    return has_ended ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)size;
}

static void end_client(void *ctx)
{
    struct serve_client *client = ctx;
    struct serve_feed *feed = client->feed;

    pthread_mutex_lock(&feed->lock);
    if (client->previous != NULL) {
        client->previous->next = client->next;
    } else {
        feed->clients = client->next;
    }
    if (client->next != NULL) {
        client->next->previous = client->previous;
    }
    feed->client_count--;
    pthread_mutex_unlock(&feed->lock);
    drop_rest(client);
    free(client);
}

/* Returns the position of a client that has none, or one that is above the
 * log's end: of another store, or of this one before it was restored. */
static uint64_t check_position(struct serve_feed *feed, uint64_t position)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    uint64_t end;

    pthread_mutex_lock(&feed->lock);
    end = feed->recent.end;
    pthread_mutex_unlock(&feed->lock);
    /* The log may be further than the events. */
    if (position <= end ||
        (position != UINT64_MAX &&
         wal_store_get_info(feed->server->store, &info, NULL) == WAL_OK &&
         position <= info.last_sequence)) {
        return position;
    }
    return end;
}

/* Adds a client at a position, or at the end when it has none. */
static struct serve_client *add_client(struct serve_exchange *exchange,
                                       uint32_t session, uint64_t position)
{
    struct serve_feed *feed = exchange->server->feed;
    struct serve_client *client = cli_alloc(sizeof(*client));

    client->feed = feed;
    client->connection = exchange->connection;
    client->session = session;
    client->rest = cli_alloc(128);
    client->sent_ms = serve_now_ms();
    client->position = check_position(feed, position);
    pthread_mutex_lock(&feed->lock);
    client->start = feed->recent.end;
    client->rest_size = (size_t)snprintf(
        client->rest, 128, "event: hello\ndata: {\"sequence\":%llu}\n\n",
        (unsigned long long)client->position);
    client->next = feed->clients;
    if (client->next != NULL) {
        client->next->previous = client;
    }
    feed->clients = client;
    feed->client_count++;
    pthread_mutex_unlock(&feed->lock);
    return client;
}

/* Reads the number of the last event that the client saw. Returns false after
 * the answer 400. */
static bool read_position(struct serve_exchange *exchange, uint64_t *position)
{
    const char *last = serve_exchange_header(exchange, "Last-Event-ID", NULL);
    char *end = NULL;

    *position = UINT64_MAX;
    if (last == NULL) {
        return serve_exchange_number(exchange, "after", 0, INT64_MAX, position);
    }
    *position = strtoull(last, &end, 10);
    if (last[0] < '0' || last[0] > '9' || *end != '\0' ||
        *position > INT64_MAX) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "Last-Event-ID must be a number from 0 to %lld",
                              (long long)INT64_MAX);
        return false;
    }
    return true;
}

/* Finds the number of the session that is asked for; 0: all. Returns false
 * after the answer. */
static bool read_session(struct serve_exchange *exchange, uint32_t *number)
{
    struct wal_slice id = serve_exchange_query(exchange, "session");
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    enum wal_status status;

    *number = 0;
    if (id.data == NULL) {
        return true;
    }
    status = wal_session_open(exchange->server->store, id, &session, &error);
    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, &error);
    }
    *number = info.number;
    wal_session_close(session);
    if (status != WAL_OK) {
        serve_exchange_fail(
            exchange, status == WAL_EINVAL ? WAL_ENOTFOUND : status, &error);
    }
    return status == WAL_OK;
}

void serve_get_events(struct serve_exchange *exchange)
{
    struct MHD_Response *response;
    uint64_t position;
    uint32_t session;

    if (!read_position(exchange, &position) ||
        !read_session(exchange, &session)) {
        return;
    }
    response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 32 << 10, read_events,
        add_client(exchange, session, position), end_client);
    if (response == NULL) {
        fputs("agentwal: serve: out of memory\n", stderr);
        abort();
    }
    serve_response_header(response, "Content-Type", "text/event-stream");
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
}

/* --- start and stop ----------------------------------------------------- */

struct serve_feed *serve_feed_start(struct serve_server *server)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_store_get_info(server->store, &info, &error);
    struct serve_feed *feed;

    if (status != WAL_OK) {
        (void)cli_report(server->cli, "serve", status, &error);
        return NULL;
    }
    feed = cli_alloc(sizeof(*feed));
    feed->server = server;
    feed->renderer.store = server->store;
    feed->recent.after = feed->recent.end = info.last_sequence;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->reading, NULL);
    if (pthread_create(&feed->follower, NULL, follow, feed) != 0) {
        (void)cli_error(server->cli, CLI_FAILED, "serve",
                        "cannot start a thread");
        free(feed);
        return NULL;
    }
    return feed;
}

void serve_feed_stop(struct serve_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->is_stopping = true;
    wake_clients(feed);
    pthread_mutex_unlock(&feed->lock);
    pthread_join(feed->follower, NULL);
}

void serve_feed_destroy(struct serve_feed *feed)
{
    if (feed == NULL) {
        return;
    }
    for (size_t i = 0; i < SERVE_ORDERS; i++) {
        serve_order_deinit(&feed->orders[i]);
    }
    serve_renderer_deinit(&feed->renderer);
    serve_recent_deinit(&feed->recent);
    pthread_mutex_destroy(&feed->reading);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}
