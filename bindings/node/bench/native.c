/*
 * native.c - what bench.mjs compares with: the same work through the library alone.
 *
 *   append STORE COUNT IN_FLIGHT SIZE   durable appends of one session
 *   read STORE COUNT SIZE               entries of one session, three times
 *
 * Prints a line of JSON: the rate in a second, and of appends the median time in microseconds.
 */
#include <agentwal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct wal_error error = WAL_INIT(wal_error);

static void check(enum wal_status status)
{
    if (status < WAL_OK) {
        fprintf(stderr, "native: %s\n", error.text);
        exit(1);
    }
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

/* A payload of about `size` bytes. */
static struct wal_slice make_payload(size_t size)
{
    static const char head[] = "{\"role\":\"user\",\"content\":\"";
    char *text = malloc(size + 1);

    if (text == NULL || size < sizeof(head) + 2) {
        exit(2);
    }
    memset(text, 'x', size);
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + size - 2, "\"}", 2);
    return (struct wal_slice){text, size};
}

static struct wal_store *open_store(const char *path)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_store *store = NULL;

    options.flags = WAL_OPEN_CREATE;
    check(wal_open(path, &options, &store, &error));
    return store;
}

static void bench_append(const char *path, size_t count, size_t in_flight, size_t size)
{
    struct wal_store *store = open_store(path);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_session *session = NULL;
    struct wal_ticket **tickets = calloc(in_flight, sizeof(struct wal_ticket *));
    double *began = calloc(in_flight, sizeof(*began));
    double *times = calloc(count, sizeof(*times));
    double begin;

    if (tickets == NULL || began == NULL || times == NULL) {
        exit(2);
    }
    check(wal_session_create(store, NULL, &session, &error));
    entry.type = WAL_STR("message");
    entry.payload = make_payload(size);
    begin = now_us();
    for (size_t i = 0; i < count + in_flight; i++) {
        size_t slot = i % in_flight;

        if (i >= in_flight) {
            check(wal_ticket_wait(tickets[slot], -1, NULL, &error));
            times[i - in_flight] = now_us() - began[slot];
            wal_ticket_destroy(tickets[slot]);
        }
        if (i < count) {
            began[slot] = now_us();
            check(wal_submit(session, &entry, 1, NULL, &tickets[slot], &error));
        }
    }
    begin = now_us() - begin;
    qsort(times, count, sizeof(*times), compare);
    printf("{\"rate\":%.0f,\"p50\":%.1f}\n", (double)count * 1e6 / begin, times[count / 2]);
    wal_session_close(session);
    (void)wal_close(store, NULL);
}

static void bench_read(const char *path, size_t count, size_t size)
{
    struct wal_store *store = open_store(path);
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_session *session = NULL;
    double best = 0;

    options.durability = WAL_WRITTEN;
    check(wal_session_create(store, NULL, &session, &error));
    entry.type = WAL_STR("message");
    entry.payload = make_payload(size);
    for (size_t i = 0; i < count; i++) {
        check(wal_append(session, &entry, 1, &options, NULL, &error));
    }
    for (int round = 0; round < 3; round++) {
        struct wal_entry_cursor *cursor = NULL;
        double begin = now_us();
        double rate;

        check(wal_entry_cursor_open(session, NULL, &cursor, &error));
        while (wal_entry_cursor_next(cursor, &entry, &error) == WAL_OK) {
        }
        wal_entry_cursor_close(cursor);
        rate = (double)count * 1e6 / (now_us() - begin);
        best = rate > best ? rate : best;
        entry = (struct wal_entry)WAL_INIT(wal_entry);
    }
    printf("{\"rate\":%.0f}\n", best);
    wal_session_close(session);
    (void)wal_close(store, NULL);
}

int main(int count, char **arguments)
{
    if (count == 6 && strcmp(arguments[1], "append") == 0) {
        bench_append(arguments[2], (size_t)atol(arguments[3]), (size_t)atol(arguments[4]),
                     (size_t)atol(arguments[5]));
        return 0;
    }
    if (count == 5 && strcmp(arguments[1], "read") == 0) {
        bench_read(arguments[2], (size_t)atol(arguments[3]), (size_t)atol(arguments[4]));
        return 0;
    }
    fprintf(stderr, "usage: append STORE COUNT IN_FLIGHT SIZE\n"
                    "       read STORE COUNT SIZE\n");
    return 2;
}
