/*
 * chaos_writer.c - appends entries that the remote has, until it is killed or the time is over:
 *
 *   remote_chaos_writer STORE URL FIRST SECONDS [MACHINE]
 *
 * Makes the store, or goes on. Eight threads append entries of the session `chaos` with
 * WAL_CLUSTER, with numbers from FIRST; each is printed when it is acknowledged. Repeats what fails
 * because the remote does, for a minute longer than SECONDS; prints why on stderr. Of several
 * machines each has a number, and takes over.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/remote.h"

enum {
    APPENDERS = 8,
    EACH = 100000, /* numbers of each */
    WAIT_MS = 50,
    GRACE_S = 60
};

static int64_t now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Exits, unless the call succeeded. */
static void check(enum wal_status status, const char *what, const struct wal_error *error)
{
    if (status != WAL_OK) {
        (void)fprintf(stderr, "%s: %d: %s (%s)\n", what, (int)status, error->text, error->file);
        exit(1);
    }
}

/* Whether a call is to be made again: the remote failed. */
static bool may_repeat(enum wal_status status, const struct wal_error *error, int64_t until)
{
    const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000};

    if (status != WAL_EREMOTE || now_s() >= until) {
        return false;
    }
    (void)fprintf(stderr, "again: %s\n", error->text);
    (void)nanosleep(&wait, NULL);
    return true;
}

static struct wal_remote_writer *open_writer(struct wal_remote *remote, struct wal_store *store,
                                             int machine, int64_t until)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    /* Each process is the same writer. */
    memset(options.writer, 7 + machine, sizeof(options.writer));
    options.flags = machine > 0 ? (uint32_t)WAL_REMOTE_TAKE_OVER : 0;
    do {
        status = wal_remote_writer_open(remote, store, &options, &writer, &error);
    } while (may_repeat(status, &error, until));
    check(status, "open the writer", &error);
    return writer;
}

/* One of the threads that append. */
struct appender {
    struct wal_session *session;
    uint64_t number; /* of its first entry */
    int64_t end;     /* when it stops, in seconds */
};

/* Appends an entry; when it returns, the remote has it. Sent again, it is found by its id, and
 * waited for. */
static void append(const struct appender *appender, uint64_t number)
{
    const struct wal_append_options cluster = {.struct_size = sizeof(cluster),
                                               .durability = WAL_CLUSTER};
    char id[32];
    char text[64];
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = WAL_INIT(wal_error);
    enum wal_status status;

    (void)snprintf(id, sizeof(id), "n%llu", (unsigned long long)number);
    (void)snprintf(text, sizeof(text), "{\"chaos\":%llu}", (unsigned long long)number);
    entry.id = (struct wal_slice){id, strlen(id)};
    entry.type = (struct wal_slice){"note", 4};
    entry.payload = (struct wal_slice){text, strlen(text)};
    do {
        status = wal_append(appender->session, &entry, 1, &cluster, NULL, &error);
    } while (may_repeat(status, &error, appender->end + GRACE_S));
    check(status, "append", &error);
}

static void *append_all(void *arg)
{
    struct appender *appender = arg;

    for (; now_s() < appender->end; appender->number++) {
        append(appender, appender->number);
        /* One write of a line, whole. */
        (void)printf("%llu\n", (unsigned long long)appender->number);
        (void)fflush(stdout);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct wal_open_options open = WAL_INIT(wal_open_options);
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_error error = WAL_INIT(wal_error);
    struct appender appenders[APPENDERS];
    pthread_t threads[APPENDERS];
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_remote *remote = NULL;
    struct wal_remote_writer *writer;
    struct wal_remote_shipper *shipper = NULL;

    if (argc != 5 && argc != 6) {
        (void)fputs("usage: STORE URL FIRST SECONDS [MACHINE]\n", stderr);
        return 2;
    }

    uint64_t number = strtoull(argv[3], NULL, 10);
    int64_t end = now_s() + strtol(argv[4], NULL, 10);

    open.flags = WAL_OPEN_CREATE;
    check(wal_open(argv[1], &open, &store, &error), "open the store", &error);
    options.id = (struct wal_slice){"chaos", 5};
    check(wal_session_open_or_create(store, &options, &session, NULL, &error), "open the session",
          &error);
    check(wal_remote_open(argv[2], &remote, &error), "open the remote", &error);
    writer = open_writer(remote, store, argc > 5 ? atoi(argv[5]) : 0, end + GRACE_S);
    check(wal_remote_shipper_start(writer, NULL, &shipper, &error), "ship", &error);
    for (int i = 0; i < APPENDERS; i++) {
        appenders[i] = (struct appender){session, number + (uint64_t)i * EACH, end};
        if (pthread_create(&threads[i], NULL, append_all, &appenders[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < APPENDERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    wal_remote_shipper_stop(shipper);
    wal_remote_writer_close(writer);
    wal_remote_close(remote);
    wal_session_close(session);
    check(wal_close(store, &error), "close the store", &error);
    return 0;
}
