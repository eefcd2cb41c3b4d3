/*
 * remote.c - what remotes cost, and how fast they are; for bench/remote/run.sh.
 *
 *   remote appends URL DIR SECONDS RATE SIZE DEPTH
 *                      64 threads append entries of SIZE bytes with
 *                      WAL_CLUSTER, each DEPTH before it waits for the first,
 *                      at most RATE parts a second; then the same
 *                      objects as bare PUTs, 16 at a time, and one PUT for
 *                      each append
 *   remote push URL DIR ENTRIES
 *                      a push of a log of entries of 16 KiB; then the same
 *                      objects as bare PUTs, 16 at a time
 *   remote local URL DIR SECONDS
 *                      durable appends of 4 threads, while shipping and without
 *   remote lag URL DIR SECONDS
 *                      from a durable append until a follower has it
 *   remote handoff URL DIR ENTRIES
 *                      a session to an empty machine, until its last 50 entries
 *                      are read
 *   remote resume URL DIR SESSIONS ENTRIES
 *                      one session of a store to an empty machine, as much of
 *                      it as that needs, and then with the whole store
 *
 * DIR does not exist, and URL has nothing. Prints a line of JSON each.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentwal/remote.h"
#include "remote/history/remote.h"

enum {
    WRITERS = 64,
    LOCAL_WRITERS = 4,
    DEPTH_MAX = 64,
    PARALLEL = 16,
    ROUNDS = 5,
    OBJECTS_MAX = 100000,
    LAG_MAX = 20000,
    LAG_PAUSE_MS = 40,
    SHOWN = 50,
    PAYLOAD_MAX = 1 << 20
};

static char payload[PAYLOAD_MAX + 64];
static size_t payload_size;

static void check(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        fprintf(stderr, "remote: %s: %s\n", error->file, error->text);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static struct wal_slice text(const char *string)
{
    return (struct wal_slice){string, strlen(string)};
}

/* Random hexadecimal digits, so that nothing is smaller compressed. */
static void make_payload(size_t size)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t state = 7;
    size_t at = (size_t)snprintf(payload, sizeof(payload), "{\"text\":\"");

    for (; at + 2 < size; at++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        payload[at] = digits[state >> 60];
    }
    memcpy(payload + at, "\"}", 2);
    payload_size = at + 2;
}

/* --- a store that is shipped -------------------------------------------- */

struct place {
    struct wal_remote *remote;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_remote_writer *writer;
    struct wal_remote_shipper *shipper;
};

static void open_place(struct place *place, const char *url, const char *path)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE};
    const struct wal_session_options named = {.struct_size = sizeof(named), .id = text("s")};
    struct wal_error error = WAL_INIT(wal_error);

    check(wal_remote_open(url, &place->remote, &error), &error);
    check(wal_open(path, &options, &place->store, &error), &error);
    check(wal_session_create(place->store, &named, &place->session, &error), &error);
    check(wal_remote_writer_open(place->remote, place->store, NULL, &place->writer, &error),
          &error);
}

static void start_shipper(struct place *place, uint32_t rate)
{
    struct wal_remote_shipper_options options = WAL_INIT(wal_remote_shipper_options);
    struct wal_error error = WAL_INIT(wal_error);

    options.parts_per_second = rate;
    check(wal_remote_shipper_start(place->writer, &options, &place->shipper, &error), &error);
}

static void stop_shipper(struct place *place)
{
    wal_remote_shipper_stop(place->shipper);
    place->shipper = NULL;
}

static void close_place(struct place *place)
{
    struct wal_error error = WAL_INIT(wal_error);

    stop_shipper(place);
    wal_remote_writer_close(place->writer);
    wal_session_close(place->session);
    check(wal_close(place->store, &error), &error);
    wal_remote_close(place->remote);
}

/* Returns the sequence number. */
static uint64_t append(struct place *place, uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    const struct wal_entry entry = {.struct_size = sizeof(entry),
                                    .type = text(WAL_TYPE_MESSAGE),
                                    .payload = {payload, payload_size}};
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = WAL_INIT(wal_error);

    check(wal_append(place->session, &entry, 1, &options, &result, &error), &error);
    return result.sequence;
}

/* --- threads ------------------------------------------------------------ */

struct appending {
    struct place *place;
    uint32_t durability;
    int depth; /* appends that a thread has not waited for */
    double until;
    _Atomic uint64_t count;
};

static struct wal_ticket *submit(struct place *place, uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    const struct wal_entry entry = {.struct_size = sizeof(entry),
                                    .type = text(WAL_TYPE_MESSAGE),
                                    .payload = {payload, payload_size}};
    struct wal_ticket *ticket = NULL;
    struct wal_error error = WAL_INIT(wal_error);

    check(wal_submit(place->session, &entry, 1, &options, &ticket, &error), &error);
    return ticket;
}

/* The same with DEPTH tickets. */
static void *submit_until(void *arg)
{
    struct appending *appending = arg;
    struct wal_ticket *tickets[DEPTH_MAX] = {NULL};
    struct wal_error error = WAL_INIT(wal_error);

    for (int i = 0; now() < appending->until; i = (i + 1) % appending->depth) {
        if (tickets[i] != NULL) {
            check(wal_ticket_wait(tickets[i], -1, NULL, &error), &error);
            wal_ticket_destroy(tickets[i]);
            atomic_fetch_add(&appending->count, 1);
        }
        tickets[i] = submit(appending->place, appending->durability);
    }
    for (int i = 0; i < appending->depth; i++) {
        if (tickets[i] != NULL) {
            check(wal_ticket_wait(tickets[i], -1, NULL, &error), &error);
            wal_ticket_destroy(tickets[i]);
            atomic_fetch_add(&appending->count, 1);
        }
    }
    return NULL;
}

static void *append_until(void *arg)
{
    struct appending *appending = arg;

    while (now() < appending->until) {
        (void)append(appending->place, appending->durability);
        atomic_fetch_add(&appending->count, 1);
    }
    return NULL;
}

/* Runs the function in threads; returns the seconds that they took. */
static double run_threads(int count, void *(*run)(void *), void *arg)
{
    pthread_t threads[WRITERS];
    const double begin = now();

    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, run, arg) != 0) {
            exit(1);
        }
    }
    for (int i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return now() - begin;
}

/* Appends a second, by threads. */
static double append_rate(struct place *place, int threads, uint32_t durability, int depth,
                          double seconds)
{
    struct appending appending = {
        .place = place, .durability = durability, .depth = depth, .until = now() + seconds};
    const double took = run_threads(threads, depth > 1 ? submit_until : append_until, &appending);

    return (double)atomic_load(&appending.count) / took;
}

/* --- bare PUTs ---------------------------------------------------------- */

struct bare {
    struct wal_remote *remote;
    const uint64_t *sizes; /* of the objects */
    uint64_t count;
    double until; /* 0: until all are stored */
    const char *prefix;
    _Atomic uint64_t next;
};

static void *put_all(void *arg)
{
    struct bare *bare = arg;
    static char zeros[64 << 20];

    for (;;) {
        const uint64_t at = atomic_fetch_add(&bare->next, 1);
        struct wal_error error = WAL_INIT(wal_error);
        char name[64];

        if (bare->until > 0 ? now() >= bare->until : at >= bare->count) {
            return NULL;
        }
        snprintf(name, sizeof(name), "bare/%s/%016" PRIx64, bare->prefix, at);
        check(bare->remote->driver->calls->put_if_absent(
                  bare->remote->driver, name,
                  (struct wal_slice){zeros, bare->sizes[at % bare->count]}, &error),
              &error);
    }
}

/* --- appends ------------------------------------------------------------ */

struct shipped {
    uint64_t sizes[OBJECTS_MAX];
    uint64_t count;
    uint64_t bytes;
};

static bool see_part(void *ctx, const char *name, uint64_t size)
{
    struct shipped *shipped = ctx;

    if (strstr(name, "/part/") != NULL && shipped->count < OBJECTS_MAX) {
        shipped->sizes[shipped->count++] = size;
        shipped->bytes += size;
    }
    return true;
}

static void run_appends(const char *url, const char *path, double seconds, uint32_t rate,
                        size_t size, int depth)
{
    static struct shipped shipped;
    struct place place = {.remote = NULL};
    struct wal_error error = WAL_INIT(wal_error);
    struct bare bare = {.sizes = shipped.sizes, .prefix = "same"};
    struct bare each = {.count = 1, .prefix = "each"};
    const uint64_t own_size = size;
    double begin;
    double appends;
    double took;
    double same;

    make_payload(size);
    open_place(&place, url, path);
    start_shipper(&place, rate);
    begin = now();
    appends = append_rate(&place, WRITERS, WAL_CLUSTER, depth, seconds);
    stop_shipper(&place);
    took = now() - begin;
    check(
        place.remote->driver->calls->list(place.remote->driver, "", "", see_part, &shipped, &error),
        &error);
    bare.remote = place.remote;
    bare.count = shipped.count;
    same = (double)shipped.bytes / run_threads(PARALLEL, put_all, &bare);
    each.remote = place.remote;
    each.sizes = &own_size;
    each.until = now() + seconds / 2;
    (void)run_threads(1, put_all, &each);
    printf("{\"rate\":%" PRIu32 ",\"size\":%zu,\"depth\":%d,\"appends\":%.0f,\"puts\":%.1f,"
           "\"bytes\":%.0f,\"bareBytes\":%.0f,\"ofBare\":%.2f,"
           "\"putPerAppend\":%.0f,\"ofPutPerAppend\":%.1f}\n",
           rate, size, depth, appends, (double)shipped.count / took, (double)shipped.bytes / took,
           same, (double)shipped.bytes / took / same, (double)(each.next - 1) / (seconds / 2),
           appends / ((double)(each.next - 1) / (seconds / 2)));
    close_place(&place);
}

/* --- a push ------------------------------------------------------------- */

static void run_push(const char *url, const char *path, uint64_t entries)
{
    static struct shipped shipped;
    struct place place = {.remote = NULL};
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    struct wal_error error = WAL_INIT(wal_error);
    struct bare bare = {.sizes = shipped.sizes, .prefix = "same"};
    double took;
    double same;

    make_payload(16384);
    open_place(&place, url, path);
    for (uint64_t i = 0; i < entries; i++) {
        (void)append(&place, WAL_WRITTEN);
    }
    check(wal_sync(place.store, &error), &error);
    took = now();
    check(wal_remote_push(place.writer, &result, &error), &error);
    took = now() - took;
    check(
        place.remote->driver->calls->list(place.remote->driver, "", "", see_part, &shipped, &error),
        &error);
    bare.remote = place.remote;
    bare.count = shipped.count;
    same = run_threads(PARALLEL, put_all, &bare);
    printf("{\"parts\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"seconds\":%.2f,\"bareSeconds\":%.2f,\"ofBare\":%.2f}\n",
           result.parts, result.bytes, took, same, same / took);
    close_place(&place);
}

/* --- local appends ------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const double one = *(const double *)a;
    const double other = *(const double *)b;

    return one < other ? -1 : one > other;
}

static void run_local(const char *url, const char *path, double seconds)
{
    struct place place = {.remote = NULL};
    double ratios[ROUNDS];

    make_payload(1024);
    open_place(&place, url, path);
    for (int i = 0; i < ROUNDS; i++) {
        double with;
        double without = append_rate(&place, LOCAL_WRITERS, WAL_DURABLE, 1, seconds / ROUNDS);

        start_shipper(&place, 0);
        with = append_rate(&place, LOCAL_WRITERS, WAL_DURABLE, 1, seconds / ROUNDS);
        stop_shipper(&place);
        ratios[i] = with / without;
    }
    qsort(ratios, ROUNDS, sizeof(ratios[0]), compare);
    printf("{\"shippingToNot\":%.2f,\"min\":%.2f,\"max\":%.2f}\n", ratios[ROUNDS / 2], ratios[0],
           ratios[ROUNDS - 1]);
    close_place(&place);
}

/* --- a follower --------------------------------------------------------- */

struct following {
    const char *url;
    const char *path;
    _Atomic int is_over;
    _Atomic uint64_t appended;
    double at[LAG_MAX]; /* by sequence number: when it was durable */
    double lags[LAG_MAX];
    uint64_t count;
    uint64_t seen;
};

static int32_t see_follower(void *ctx, const struct wal_remote_pull_result *result,
                            const struct wal_error *failure)
{
    struct following *following = ctx;
    const double time = now();

    (void)failure;
    for (; following->seen < result->sequence &&
           following->seen < atomic_load(&following->appended) && following->count < LAG_MAX;
         following->seen++) {
        following->lags[following->count++] = time - following->at[following->seen + 1];
    }
    return atomic_load(&following->is_over);
}

static void *follow_main(void *arg)
{
    struct following *following = arg;
    struct wal_remote *remote = NULL;
    struct wal_error error = WAL_INIT(wal_error);

    check(wal_remote_open(following->url, &remote, &error), &error);
    check(wal_remote_follow(remote, following->path, NULL, see_follower, following, &error),
          &error);
    wal_remote_close(remote);
    return NULL;
}

static void run_lag(const char *url, const char *path, double seconds)
{
    static struct following following;
    static char copy[4096];
    struct place place = {.remote = NULL};
    pthread_t thread;
    double until;

    make_payload(1024);
    open_place(&place, url, path);
    start_shipper(&place, 0);
    following.seen = append(&place, WAL_CLUSTER);
    atomic_store(&following.appended, following.seen);
    snprintf(copy, sizeof(copy), "%s.copy", path);
    following.url = url;
    following.path = copy;
    if (pthread_create(&thread, NULL, follow_main, &following) != 0) {
        exit(1);
    }
    pause_ms(1500);
    for (until = now() + seconds; now() < until; pause_ms(LAG_PAUSE_MS)) {
        const uint64_t sequence = append(&place, WAL_DURABLE);

        if (sequence >= LAG_MAX) {
            break;
        }
        following.at[sequence] = now();
        atomic_store(&following.appended, sequence);
    }
    pause_ms(3000);
    atomic_store(&following.is_over, 1);
    (void)append(&place, WAL_CLUSTER);
    (void)pthread_join(thread, NULL);
    if (following.count == 0) {
        exit(1);
    }
    qsort(following.lags, following.count, sizeof(following.lags[0]), compare);
    printf("{\"lags\":%" PRIu64 ",\"medianMs\":%.0f,\"p90Ms\":%.0f,"
           "\"maxMs\":%.0f}\n",
           following.count, following.lags[following.count / 2] * 1000,
           following.lags[following.count * 9 / 10] * 1000,
           following.lags[following.count - 1] * 1000);
    close_place(&place);
}

/* --- a session that moves ----------------------------------------------- */

/* Reads the last entries; returns how many there were. */
static uint64_t read_last(struct wal_store *store, const char *id)
{
    const struct wal_entry_cursor_options query = {.struct_size = sizeof(query), .last = SHOWN};
    struct wal_session *session = NULL;
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_error error = WAL_INIT(wal_error);
    uint64_t count = 0;

    check(wal_session_open(store, text(id), &session, &error), &error);
    check(wal_entry_cursor_open(session, &query, &cursor, &error), &error);
    while (wal_entry_cursor_next(cursor, &entry, &error) == WAL_OK) {
        count++;
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    return count;
}

static void run_handoff(const char *url, const char *path, uint64_t entries)
{
    const struct wal_open_options create = {.struct_size = sizeof(create),
                                            .flags = WAL_OPEN_CREATE};
    static char other[4096];
    static char replicas[4096];
    struct place place = {.remote = NULL};
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);
    struct wal_remote_resume_result result = WAL_INIT(wal_remote_resume_result);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_store *store = NULL;
    double begin;
    double brought;
    uint64_t shown;

    make_payload(512);
    open_place(&place, url, path);
    start_shipper(&place, 0);
    for (uint64_t i = 0; i < entries; i++) {
        (void)append(&place, WAL_WRITTEN);
    }
    (void)append(&place, WAL_CLUSTER);
    snprintf(other, sizeof(other), "%s.other", path);
    snprintf(replicas, sizeof(replicas), "%s.replicas", path);
    begin = now();
    check(wal_open(other, &create, &store, &error), &error);
    options.session = text("s");
    options.directory = text(replicas);
    check(wal_remote_resume(place.remote, store, &options, &result, &error), &error);
    brought = now();
    shown = read_last(store, result.session);
    printf("{\"entries\":%" PRIu64 ",\"parts\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"shown\":%" PRIu64
           ",\"seconds\":%.2f,\"broughtSeconds\":%.2f}\n",
           result.entries, result.parts, result.bytes, shown, now() - begin, brought - begin);
    check(wal_close(store, &error), &error);
    close_place(&place);
}

/* --- one session of many ------------------------------------------------ */

static struct {
    const struct wal__driver_calls *calls;
    _Atomic uint64_t requests;
    _Atomic uint64_t bytes;
} counted;

static enum wal_status count_get(struct wal__driver *driver, const char *name, uint64_t offset,
                                 uint64_t size, struct wal__buf *bytes, struct wal_error *error)
{
    const size_t before = bytes->size;
    enum wal_status status = counted.calls->get(driver, name, offset, size, bytes, error);

    atomic_fetch_add(&counted.requests, 1);
    atomic_fetch_add(&counted.bytes, bytes->size - before);
    return status;
}

static enum wal_status count_list(struct wal__driver *driver, const char *prefix, const char *after,
                                  wal__driver_list_fn *each, void *ctx, struct wal_error *error)
{
    atomic_fetch_add(&counted.requests, 1);
    return counted.calls->list(driver, prefix, after, each, ctx, error);
}

/* A random payload of the size, of digits that no other one has. */
static void append_random(struct place *place, struct wal_session *session, size_t size)
{
    static uint64_t state = 11;

    for (size_t at = 16; at + 16 < size; at += 16) {
        char digits[17];

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
        snprintf(digits, sizeof(digits), "%016" PRIx64, state);
        memcpy(payload + at, digits, 16);
    }
    payload_size = size;
    memcpy(payload + size - 2, "\"}", 2);
    place->session = session;
    (void)append(place, WAL_WRITTEN);
}

/* Entries of 2 KiB to all sessions by turns, each 50th of 200 KiB, which is stored as content. */
static void fill(struct place *place, uint64_t sessions, uint64_t entries)
{
    struct wal_session **opened = calloc(sessions, sizeof(struct wal_session *));
    struct wal_error error = WAL_INIT(wal_error);

    for (uint64_t i = 0; opened != NULL && i < sessions; i++) {
        char id[32];
        struct wal_session_options named = {.struct_size = sizeof(named)};

        snprintf(id, sizeof(id), "s%" PRIu64, i);
        named.id = text(id);
        check(wal_session_create(place->store, &named, &opened[i], &error), &error);
    }
    make_payload(PAYLOAD_MAX);
    for (uint64_t i = 0; opened != NULL && i < sessions * entries; i++) {
        /* Five sessions are active at a time. */
        const uint64_t at = i / (5 * entries) * 5 + i % 5;

        append_random(place, opened[at % sessions], i / 5 % 50 == 49 ? 200 * 1024 : 2048);
    }
    place->session = NULL;
    for (uint64_t i = 0; opened != NULL && i < sessions; i++) {
        wal_session_close(opened[i]);
    }
    free(opened);
}

static void print_resume(const struct place *place, const char *path, const char *what,
                         const char *session, const char *replicas)
{
    const struct wal_open_options create = {.struct_size = sizeof(create),
                                            .flags = WAL_OPEN_CREATE};
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);
    struct wal_remote_resume_result result = WAL_INIT(wal_remote_resume_result);
    struct wal_error error = WAL_INIT(wal_error);
    struct wal_store *store = NULL;
    char other[4096];
    double begin = now();

    snprintf(other, sizeof(other), "%s.%s", path, what);
    atomic_store(&counted.requests, 0);
    atomic_store(&counted.bytes, 0);
    check(wal_open(other, &create, &store, &error), &error);
    options.session = text(session);
    options.directory = text(replicas);
    check(wal_remote_resume(place->remote, store, &options, &result, &error), &error);
    printf("{\"what\":\"%s\",\"entries\":%" PRIu64 ",\"parts\":%" PRIu64 ",\"requests\":%" PRIu64
           ",\"bytes\":%" PRIu64 ",\"seconds\":%.2f}\n",
           what, result.entries, result.parts, atomic_load(&counted.requests),
           atomic_load(&counted.bytes), now() - begin);
    check(wal_close(store, &error), &error);
}

static void run_resume(const char *url, const char *path, uint64_t sessions, uint64_t entries)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    struct wal_remote_pull_options pulled = WAL_INIT(wal_remote_pull_options);
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal__driver_calls calls;
    struct place place = {.remote = NULL};
    struct wal_error error = WAL_INIT(wal_error);
    char replicas[4096];
    char replica[4200];

    open_place(&place, url, path);
    wal_session_close(place.session);
    fill(&place, sessions, entries);
    check(wal_sync(place.store, &error), &error);
    check(wal_remote_push(place.writer, NULL, &error), &error);
    options.flags = WAL_REMOTE_COMPACT_NOW;
    check(wal_remote_compact(place.remote, place.store, &options, NULL, &error), &error);
    check(wal_store_get_info(place.store, &info, &error), &error);
    counted.calls = place.remote->driver->calls;
    calls = *counted.calls;
    calls.get = count_get;
    calls.list = count_list;
    place.remote->driver->calls = &calls;
    snprintf(replicas, sizeof(replicas), "%s.replicas", path);
    print_resume(&place, path, "needed", "s7", replicas);
    snprintf(replica, sizeof(replica), "%s/", replicas);
    for (size_t i = 0; i < sizeof(info.uuid); i++) {
        snprintf(replica + strlen(replica), 3, "%02x", info.uuid[i]);
    }
    atomic_store(&counted.requests, 0);
    atomic_store(&counted.bytes, 0);
    memcpy(pulled.uuid, info.uuid, sizeof(pulled.uuid));
    check(wal_remote_pull(place.remote, replica, &pulled, NULL, &error), &error);
    printf("{\"what\":\"store\",\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
           atomic_load(&counted.requests), atomic_load(&counted.bytes));
    place.remote->driver->calls = counted.calls;
    close_place(&place);
}

int main(int argc, char **argv)
{
    const double number = argc > 4 ? strtod(argv[4], NULL) : 0;

    if (argc == 8 && strcmp(argv[1], "appends") == 0 && atoi(argv[7]) > 0 &&
        atoi(argv[7]) <= DEPTH_MAX) {
        run_appends(argv[2], argv[3], number, (uint32_t)atoi(argv[5]), (size_t)atoi(argv[6]),
                    atoi(argv[7]));
    } else if (argc == 5 && strcmp(argv[1], "push") == 0) {
        run_push(argv[2], argv[3], (uint64_t)number);
    } else if (argc == 5 && strcmp(argv[1], "local") == 0) {
        run_local(argv[2], argv[3], number);
    } else if (argc == 5 && strcmp(argv[1], "lag") == 0) {
        run_lag(argv[2], argv[3], number);
    } else if (argc == 5 && strcmp(argv[1], "handoff") == 0) {
        run_handoff(argv[2], argv[3], (uint64_t)number);
    } else if (argc == 6 && strcmp(argv[1], "resume") == 0 && number >= 10) {
        run_resume(argv[2], argv[3], (uint64_t)number, (uint64_t)atoi(argv[5]));
    } else {
        fprintf(stderr, "remote: see the beginning of remote.c\n");
        return 2;
    }
    return 0;
}
