/*
 * chaos_writer.c - appends entries that the remote has, until it is killed or
 * the time is over:
 *
 *   remote_chaos_writer STORE URL FIRST SECONDS
 *
 * Makes the store, or goes on. Entries of the session `chaos` have numbers from
 * FIRST; each is printed when it is acknowledged. Repeats what fails because
 * the remote does, for a minute longer than SECONDS; prints why on stderr.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentwal.h"
#include "agentwal/remote.h"

enum {
    WAIT_MS = 50,
    GRACE_S = 60
};

static struct wal_error failure = {.struct_size = sizeof(failure)};

static int64_t now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Exits, unless the call succeeded. */
static void check(enum wal_status status, const char *what)
{
    if (status != WAL_OK) {
        (void)fprintf(stderr, "%s: %d: %s (%s)\n", what, (int)status,
                      failure.text, failure.file);
        exit(1);
    }
}

/* Whether a call is to be made again: the remote failed. */
static bool may_repeat(enum wal_status status, int64_t until)
{
    const struct timespec wait = {.tv_nsec = WAIT_MS * 1000000};

    if (status != WAL_EREMOTE || now_s() >= until) {
        return false;
    }
    (void)fprintf(stderr, "again: %s\n", failure.text);
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    return true;
}

static struct wal_remote_writer *
open_writer(struct wal_remote *remote, struct wal_store *store, int64_t until)
{
    struct wal_remote_writer_options options =
        WAL_INIT(wal_remote_writer_options);
    struct wal_remote_writer *writer = NULL;
    enum wal_status status;

    /* Each process is the same writer. */
    memset(options.writer, 7, sizeof(options.writer));
    do {
        status =
            wal_remote_writer_open(remote, store, &options, &writer, &failure);
    } while (may_repeat(status, until));
    check(status, "open the writer");
    return writer;
}

/* Appends an entry; when it returns, the remote has it. */
static void append(struct wal_session *session,
                   struct wal_remote_writer *writer, uint64_t number,
                   int64_t until)
{
    char text[64];
    enum wal_status status;

    (void)snprintf(text, sizeof(text), "{\"chaos\":%llu}",
                   (unsigned long long)number);
    check(wal_append_one(session, "note",
                         (struct wal_slice){text, strlen(text)}, NULL,
                         &failure),
          "append");
    do {
        status = wal_remote_push(writer, NULL, &failure);
    } while (may_repeat(status, until));
    check(status, "push");
}

int main(int argc, char **argv)
{
    struct wal_open_options open = WAL_INIT(wal_open_options);
    struct wal_session_options options = WAL_INIT(wal_session_options);
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_remote *remote = NULL;
    struct wal_remote_writer *writer;

    if (argc != 5) {
        (void)fputs("usage: STORE URL FIRST SECONDS\n", stderr);
        return 2;
    }

    uint64_t number = strtoull(argv[3], NULL, 10);
    int64_t end = now_s() + strtol(argv[4], NULL, 10);

    open.flags = WAL_OPEN_CREATE;
    check(wal_open(argv[1], &open, &store, &failure), "open the store");
    options.id = (struct wal_slice){"chaos", 5};
    check(wal_session_open_or_create(store, &options, &session, NULL, &failure),
          "open the session");
    check(wal_remote_open(argv[2], &remote, &failure), "open the remote");
    writer = open_writer(remote, store, end + GRACE_S);
    for (; now_s() < end; number++) {
        append(session, writer, number, end + GRACE_S);
        (void)printf("%llu\n", (unsigned long long)number);
        (void)fflush(stdout);
    }
    wal_remote_writer_close(writer);
    wal_remote_close(remote);
    wal_session_close(session);
    check(wal_close(store, &failure), "close the store");
    return 0;
}
