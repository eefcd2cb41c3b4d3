/*
 * load.c - processes that write to a store and clients of its server's events, for bench_serve.py.
 *
 *   load sessions STORE COUNT          creates sessions with one entry each
 *   load paced STORE SESSION RATE COUNT DURABLE
 *                                      appends entries; each has its time
 *   load big STORE SESSION BYTES       appends entries of 10 kB
 *   load clients SOCKET CLIENTS COUNT  reads that many events by each client;
 *                                      prints what was lost or repeated
 *
 * Threads: `sessions` has several; the others one.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agentwal.h"

enum {
    THREADS = 32,
    BIG_ENTRY = 10000,
    BATCH = 64,
    READ_SIZE = 64 << 10,
    CARRY = 32, /* bytes of an id line that may be split */
    WAIT_MS = 20000
};

static void check(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        fprintf(stderr, "load: %s\n", error->text);
        exit(1);
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct wal_store *open_store(const char *path)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_store *store = NULL;

    check(wal_open(path, NULL, &store, &error), &error);
    return store;
}

/* --- sessions ----------------------------------------------------------- */

struct maker {
    pthread_t thread;
    struct wal_store *store;
    unsigned first;
    unsigned end;
};

static void *make_sessions(void *ctx)
{
    const struct maker *maker = ctx;

    for (unsigned i = maker->first; i < maker->end; i++) {
        struct wal_session_options options = WAL_INIT(wal_session_options);
        struct wal_error error = WAL_INIT(wal_error);
        struct wal_append_options append = WAL_INIT(wal_append_options);
        struct wal_entry entry = WAL_INIT(wal_entry);
        struct wal_session *session = NULL;
        char title[64];
        char cwd[64];

        snprintf(title, sizeof(title), "Session number %u", i);
        snprintf(cwd, sizeof(cwd), "/srv/project-%u", i % 100);
        options.title = (struct wal_slice){title, strlen(title)};
        options.cwd = (struct wal_slice){cwd, strlen(cwd)};
        check(wal_session_create(maker->store, &options, &session, &error), &error);
        append.durability = WAL_WRITTEN;
        entry.type = WAL_STR("message");
        entry.payload = WAL_STR("{\"role\":\"user\",\"content\":\"first\"}");
        check(wal_append(session, &entry, 1, &append, NULL, &error), &error);
        wal_session_close(session);
    }
    return NULL;
}

static void sessions(const char *path, unsigned count)
{
    struct wal_store *store = open_store(path);
    struct maker makers[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        makers[i] = (struct maker){
            .store = store, .first = count / THREADS * i, .end = count / THREADS * (i + 1)};
        if (i == THREADS - 1) {
            makers[i].end = count;
        }
        if (pthread_create(&makers[i].thread, NULL, make_sessions, &makers[i]) != 0) {
            fail("pthread_create");
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(makers[i].thread, NULL);
    }
    wal_close(store, NULL);
}

/* --- entries ------------------------------------------------------------ */

static void append_text(struct wal_session *session, const char *payload, uint32_t durability)
{
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_entry entry = WAL_INIT(wal_entry);

    options.durability = durability;
    entry.type = WAL_STR("message");
    entry.payload = (struct wal_slice){payload, strlen(payload)};
    check(wal_append(session, &entry, 1, &options, NULL, &error), &error);
}

static struct wal_session *open_session(struct wal_store *store, const char *id)
{
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_session *session = NULL;

    options.id = (struct wal_slice){id, strlen(id)};
    check(wal_session_open_or_create(store, &options, &session, NULL, &error), &error);
    return session;
}

static void paced(const char *path, const char *id, unsigned rate, unsigned count, bool is_durable)
{
    struct wal_store *store = open_store(path);
    struct wal_session *session = open_session(store, id);
    int64_t begin = now_ns();

    for (unsigned i = 0; i < count; i++) {
        int64_t due = begin + (int64_t)i * 1000000000 / rate;
        int64_t now = now_ns();
        char payload[128];

        if (due > now) {
            const struct timespec pause = {.tv_sec = (due - now) / 1000000000,
                                           .tv_nsec = (due - now) % 1000000000};

            nanosleep(&pause, NULL);
        }
        snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"%" PRId64 "\"}",
                 now_ns());
        append_text(session, payload, is_durable ? WAL_DURABLE : WAL_WRITTEN);
    }
    printf("{\"seconds\":%.3f}\n", (double)(now_ns() - begin) / 1e9);
    wal_session_close(session);
    wal_close(store, NULL);
}

static void big(const char *path, const char *id, uint64_t bytes)
{
    struct wal_store *store = open_store(path);
    struct wal_session *session = open_session(store, id);
    struct wal_append_options options = WAL_INIT(wal_append_options);
    struct wal_error error = WAL_INIT(wal_error);
    static char payload[BIG_ENTRY];
    struct wal_entry entries[BATCH];
    int head = snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"");

    for (size_t i = (size_t)head; i < sizeof(payload) - 2; i++) {
        payload[i] = (char)('a' + i * 7919 % 26);
    }
    memcpy(payload + sizeof(payload) - 2, "\"}", 2);
    options.durability = WAL_WRITTEN;
    for (size_t i = 0; i < BATCH; i++) {
        entries[i] = (struct wal_entry)WAL_INIT(wal_entry);
        entries[i].type = WAL_STR("message");
        entries[i].payload = (struct wal_slice){payload, sizeof(payload)};
    }
    for (uint64_t done = 0; done < bytes; done += BATCH * BIG_ENTRY) {
        check(wal_append(session, entries, BATCH, &options, NULL, &error), &error);
    }
    wal_session_close(session);
    wal_close(store, NULL);
}

/* --- clients ------------------------------------------------------------ */

struct client {
    int fd;
    uint64_t last; /* id of the last event */
    uint64_t count;
    uint64_t repeated;
    uint64_t bytes;
    char carry[CARRY];
    size_t carried;
};

static void connect_client(struct client *client, const char *path)
{
    static const char request[] = "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (client->fd < 0 || connect(client->fd, (const void *)&address, sizeof(address)) != 0 ||
        write(client->fd, request, sizeof(request) - 1) != (ssize_t)sizeof(request) - 1) {
        fail("connect");
    }
}

/* Finds the lines with ids. A line that is split stays for the next piece. */
static void see(struct client *client, char *data, size_t size)
{
    char *at = data;
    char *end = data + size;

    while ((at = memmem(at, (size_t)(end - at), "\nid: ", 5)) != NULL) {
        char *newline = memchr(at + 5, '\n', (size_t)(end - at - 5));
        uint64_t id;

        if (newline == NULL) {
            break;
        }
        id = strtoull(at + 5, NULL, 10);
        client->repeated += id <= client->last ? 1 : 0;
        client->last = id;
        client->count++;
        at = newline;
    }
    /* The beginning of such a line may be at the end. */
    client->carried = 0;
    at = memrchr(data, '\n', size);
    if (at != NULL && end - at <= CARRY) {
        client->carried = (size_t)(end - at);
        memcpy(client->carry, at, client->carried);
    }
}

/* Returns false at the end of the stream. */
static bool read_client(struct client *client)
{
    static char buffer[CARRY + READ_SIZE + 1];
    ssize_t got;

    memcpy(buffer, client->carry, client->carried);
    got = read(client->fd, buffer + client->carried, READ_SIZE);
    if (got <= 0) {
        return false;
    }
    client->bytes += (uint64_t)got;
    see(client, buffer, client->carried + (size_t)got);
    return true;
}

static void report(const struct client *clients, unsigned count, uint64_t expected)
{
    uint64_t lost = 0;
    uint64_t repeated = 0;
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++) {
        lost += expected > clients[i].count ? expected - clients[i].count : 0;
        repeated += clients[i].repeated;
        bytes += clients[i].bytes;
    }
    printf("{\"clients\":%u,\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"repeated\":%" PRIu64
           ",\"bytes\":%" PRIu64 "}\n",
           count, expected * count, lost, repeated, bytes);
}

static void run_clients(const char *path, unsigned count, uint64_t expected)
{
    struct client *clients = calloc(count, sizeof(*clients));
    struct epoll_event events[256];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    unsigned complete = 0;

    if (clients == NULL || epoll < 0) {
        fail("clients");
    }
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};

        connect_client(&clients[i], path);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event) != 0) {
            fail("epoll_ctl");
        }
    }
    while (complete < count) {
        int ready = epoll_wait(epoll, events, 256, WAIT_MS);

        if (ready <= 0) {
            break; /* what did not come is lost */
        }
        for (int i = 0; i < ready; i++) {
            struct client *client = &clients[events[i].data.u32];
            bool was_complete = client->count >= expected;

            if (client->bytes == 0 && events[i].data.u32 == count - 1) {
                puts("ready"); /* the last one has its first bytes */
                fflush(stdout);
            }
            if (!read_client(client)) {
                close(client->fd);
                complete += was_complete ? 0 : 1;
            } else if (!was_complete && client->count >= expected) {
                complete++;
            }
        }
    }
    report(clients, count, expected);
    free(clients);
}

int main(int argc, char **argv)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (argc == 4 && strcmp(argv[1], "sessions") == 0) {
        sessions(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
    } else if (argc == 7 && strcmp(argv[1], "paced") == 0) {
        paced(argv[2], argv[3], (unsigned)strtoul(argv[4], NULL, 10),
              (unsigned)strtoul(argv[5], NULL, 10), argv[6][0] == '1');
    } else if (argc == 5 && strcmp(argv[1], "big") == 0) {
        big(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    } else if (argc == 5 && strcmp(argv[1], "clients") == 0) {
        run_clients(argv[2], (unsigned)strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    } else {
        fputs("load: see the head of load.c\n", stderr);
        return 2;
    }
    return 0;
}
