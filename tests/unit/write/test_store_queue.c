/*
 * test_store_queue.c - tests of appending without waiting (SPEC.md 4.3): its cost on a slow disk, a
 * full queue, wal_flush, the event, and failures, none of which is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/stress/brake_kit.h"
#include "tests/lib/test.h"

enum {
    QUEUE = 256,     /* the default limit */
    SLOW_MS = 20,    /* a write or sync of the slow disk */
    ROUNDS = 40,     /* of QUEUE calls each */
    LONG_MS = 60000, /* a wait that must not be over first */
    SLOWDOWN = WITH_ADDRESS_SANITIZER || WITH_THREAD_SANITIZER ? 20 : 1,
    MEDIAN_MAX_NS = 10000 * SLOWDOWN,
    RARE_MAX_NS = 15000000 * SLOWDOWN
};

/* --- a disk that is slow, holds, or fails ------------------------------- */

static struct {
    struct wal__io io;
    struct kit_brake brake;
    bool holds_writes;
    bool holds_syncs;
    _Atomic int32_t nap_ms;
    _Atomic bool fails_writes;
    _Atomic bool fails_syncs;
    _Atomic uint32_t syncs;
} disk;

static void delay(const bool *held, const char *what)
{
    int32_t nap = atomic_load(&disk.nap_ms);

    if (nap > 0) {
        kit_pause_ms(nap);
    }
    kit_brake_pass(&disk.brake, held, what);
}

static enum wal_status disk_write(void *ctx, struct wal__file *file, const struct iovec *iov,
                                  int count, uint64_t offset, size_t *put, int *sys_errno)
{
    delay(&disk.holds_writes, "a write");
    if (atomic_load(&disk.fails_writes)) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.pwritev(ctx, file, iov, count, offset, put, sys_errno);
}

static enum wal_status disk_sync(void *ctx, struct wal__file *file, int *sys_errno)
{
    delay(&disk.holds_syncs, "a sync");
    atomic_fetch_add(&disk.syncs, 1);
    if (atomic_load(&disk.fails_syncs)) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.sync(ctx, file, sys_errno);
}

static void hold(bool *what, bool held)
{
    kit_brake_set(&disk.brake, what, held);
}

static void await_held(void)
{
    kit_brake_await(&disk.brake, "a write or sync");
}

/* --- what every test needs ---------------------------------------------- */

static struct wal_store *store;
static struct wal_session *session;
static struct wal_error error;

static void open_with_mark(uint32_t flags, uint32_t idle_mark_ms)
{
    const struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .idle_mark_ms = idle_mark_ms};

    store = NULL;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &disk.io, &store, &error));
    (void)kit_keep(store);
}

static void open_store(uint32_t flags)
{
    open_with_mark(flags, 600000);
}

static int enter(void **state)
{
    if (kit_set_up(state) != 0) {
        return -1;
    }
    memset(&disk, 0, sizeof(disk));
    kit_brake_init(&disk.brake);
    disk.io = wal__io_posix;
    disk.io.pwritev = disk_write;
    disk.io.populate_writable = NULL; /* every write is a call */
    disk.io.sync = disk_sync;
    error = KIT_ERROR;
    open_store(WAL_OPEN_CREATE);
    session = kit_create(store, "s");
    return 0;
}

static int leave(void **state)
{
    kit_brake_deinit(&disk.brake);
    return kit_tear_down(state);
}

static enum wal_status close_store(void)
{
    enum wal_status status;

    wal_session_close(session);
    session = NULL;
    status = wal_close(store, &error);
    store = NULL;
    return status;
}

/* Queues an entry; flags of enum wal_append_flag. WAL_APPEND_EXPECT expects an empty session. */
static enum wal_status queue(const char *id, uint32_t flags)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options), .durability = WAL_QUEUED, .flags = flags};
    const struct wal_entry entry = kit_entry(id, NULL, "1");

    return wal_append(session, &entry, 1, &options, NULL, &error);
}

static struct wal_ticket *submit(const char *id, uint32_t durability, uint32_t flags)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options), .durability = durability, .flags = flags};
    const struct wal_entry entry = kit_entry(id, NULL, "1");
    struct wal_ticket *ticket = NULL;

    assert_ok(wal_submit(session, &entry, 1, &options, &ticket, &error));
    return ticket;
}

static struct wal_store_info status_now(void)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, &error));
    return info;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns the flags of the COMMIT of a group with this many frames, in the first segment. */
static uint32_t commit_flags_of_group(uint32_t frames)
{
    static uint8_t bytes[1024 * 1024];
    struct wal__segment_header header;
    struct wal__commit_record commit = {0};
    struct wal__frame frame;
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    int fd = open("store/log/0000000000000001.seg", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    close(fd);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    while (wal__frame_decode(bytes + at, sizeof(bytes) - at, header.salt, at, &frame) ==
           WAL__FMT_OK) {
        const struct wal__span payload = {bytes + at + WAL__FRAME_SIZE, frame.stored_size};

        if (frame.type == WAL__FRAME_COMMIT) {
            assert_int_equal(wal__commit_record_decode(payload, &commit), WAL__FMT_OK);
        }
        if (frame.type == WAL__FRAME_COMMIT && commit.frame_count == frames) {
            return commit.flags;
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    fail_msg("no group of %u frames", frames);
    return 0;
}

/* --- what a queued append costs ----------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void check_latencies(uint64_t *times, size_t count, const char *what)
{
    uint64_t median;
    uint64_t rare;

    qsort(times, count, sizeof(times[0]), compare);
    median = times[count / 2];
    rare = times[count - 1 - count / 1000];
    print_message("%s: median %llu ns, p99.9 %llu ns, of %zu\n", what, (unsigned long long)median,
                  (unsigned long long)rare, count);
    assert_true(median <= MEDIAN_MAX_NS);
    assert_true(rare <= RARE_MAX_NS);
}

/* A message of 300 bytes. */
static struct wal_entry message(void)
{
    static char payload[301];
    struct wal_entry entry = kit_entry("", NULL, "");

    (void)snprintf(payload, sizeof(payload), "{\"role\":\"user\",\"content\":\"%0*d\"}", 272, 0);
    assert_int_equal(strlen(payload), 300);
    entry.id = (struct wal_slice){NULL, 0};
    entry.payload = kit_text(payload);
    return entry;
}

TEST_WITH(queue__append_does_not_wait_for_the_disk, enter, leave)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    const struct wal_entry entry = message();
    static uint64_t times[ROUNDS * QUEUE];

    atomic_store(&disk.nap_ms, SLOW_MS);
    for (size_t i = 0; i < ROUNDS * QUEUE; i++) {
        uint64_t begin = now_ns();

        assert_ok(wal_append(session, &entry, 1, &options, NULL, &error));
        times[i] = now_ns() - begin;
        if ((i + 1) % QUEUE == 0) {
            assert_ok(wal_flush(store, &error));
        }
    }
    atomic_store(&disk.nap_ms, 0);
    check_latencies(times, ROUNDS * QUEUE, "wal_append");
    assert_int_equal(kit_info(session).entries, ROUNDS * QUEUE);
}

TEST_WITH(queue__submit_does_not_wait_for_the_disk, enter, leave)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    const struct wal_entry entry = message();
    static uint64_t times[ROUNDS * QUEUE];
    struct wal_ticket *tickets[QUEUE] = {NULL};

    atomic_store(&disk.nap_ms, SLOW_MS);
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < QUEUE; i++) {
            uint64_t begin = now_ns();

            assert_ok(wal_submit(session, &entry, 1, &options, &tickets[i], &error));
            times[round * QUEUE + i] = now_ns() - begin;
        }
        for (size_t i = 0; i < QUEUE; i++) {
            assert_ok(wal_ticket_wait(tickets[i], KIT_LONG_MS, NULL, &error));
            wal_ticket_destroy(tickets[i]);
        }
    }
    atomic_store(&disk.nap_ms, 0);
    check_latencies(times, ROUNDS * QUEUE, "wal_submit");
    assert_int_equal(kit_info(session).entries, ROUNDS * QUEUE);
}

static atomic_bool is_queued;

/* In a fork, where the hidden entry may be an ancestor's. */
static void *queue_redaction(void *arg)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    struct wal_entry entry = kit_entry("r", NULL, "");
    enum wal_status status;

    entry.type = kit_text("redaction");
    entry.payload = kit_text("{\"targetEntryId\":\"a\",\"reason\":\"key\"}");
    status = wal_append(arg, &entry, 1, &options, NULL, NULL);
    atomic_store(&is_queued, true);
    return status == WAL_OK ? arg : NULL;
}

TEST_WITH(queue__redaction_does_not_wait_for_the_disk, enter, leave)
{
    struct wal_session *fork;
    pthread_t thread;
    void *queued = NULL;
    bool in_time;

    kit_append_all(session, "a");
    fork = kit_fork(session, "a", "f");
    hold(&disk.holds_writes, true);
    assert_ok(queue("first", 0));
    await_held();
    assert_int_equal(pthread_create(&thread, NULL, queue_redaction, fork), 0);
    for (int ms = 0; ms < LONG_MS && !atomic_load(&is_queued); ms++) {
        kit_pause_ms(1);
    }
    in_time = atomic_load(&is_queued);
    hold(&disk.holds_writes, false);
    assert_int_equal(pthread_join(thread, &queued), 0);
    assert_true(in_time);
    assert_ptr_equal(queued, fork);
    assert_ok(wal_flush(store, &error));
    wal_session_close(fork);
    assert_branch(session, "first");
}

/* --- a full queue ------------------------------------------------------- */

/* One operation is being written, and the queue after it is full. */
static void fill_queue(void)
{
    char id[16];

    hold(&disk.holds_writes, true);
    assert_ok(queue("first", 0));
    await_held();
    for (int i = 0; i < QUEUE; i++) {
        (void)snprintf(id, sizeof(id), "e%d", i);
        assert_ok(queue(id, WAL_APPEND_NO_WAIT));
    }
}

TEST_WITH(queue__full_256_submit_returns_at_once, enter, leave)
{
    uint64_t begin;

    fill_queue();
    begin = now_ns();
    assert_int_equal(queue("more", WAL_APPEND_NO_WAIT), WAL_EBUSY);
    assert_true(now_ns() - begin < (uint64_t)LONG_MS * 1000000);
    assert_error(&error, WAL_EBUSY, "256");
    hold(&disk.holds_writes, false);
    assert_ok(wal_flush(store, &error));
    assert_int_equal(status_now().queued, 0);
    assert_int_equal(kit_info(session).entries, QUEUE + 1);
    assert_ok(queue("more", WAL_APPEND_NO_WAIT));
}

static _Atomic bool went_on;

static void *queue_one(void *arg)
{
    (void)arg;
    WAL__ASSERT(queue("blocked", 0) == WAL_OK);
    atomic_store(&went_on, true);
    return NULL;
}

TEST_WITH(queue__full_256_append_blocks, enter, leave)
{
    pthread_t thread;

    fill_queue();
    atomic_store(&went_on, false);
    assert_int_equal(pthread_create(&thread, NULL, queue_one, NULL), 0);
    kit_pause_ms(100);
    assert_false(atomic_load(&went_on));
    hold(&disk.holds_writes, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(wal_flush(store, &error));
    assert_int_equal(kit_info(session).entries, QUEUE + 2);
    assert_slice(kit_info(session).head, "blocked");
}

/* --- flush -------------------------------------------------------------- */

TEST_WITH(flush__waits_for_writing_and_not_for_syncing, enter, leave)
{
    uint32_t syncs = atomic_load(&disk.syncs);

    hold(&disk.holds_syncs, true);
    assert_ok(queue("a", 0));
    assert_ok(queue("b", 0));
    assert_ok(wal_flush(store, &error));
    hold(&disk.holds_syncs, false);
    assert_int_equal(atomic_load(&disk.syncs), syncs);
    assert_branch(session, "a b");
    assert_ok(wal_flush(store, &error));
    assert_ok(wal_sync(store, &error));
    assert_int_equal(atomic_load(&disk.syncs), syncs + 1);
}

static _Atomic bool enough;

static void *queue_on(void *arg)
{
    uint32_t *count = arg;

    while (!atomic_load(&enough)) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%u", *count);
        WAL__ASSERT(queue(id, 0) == WAL_OK);
        (*count)++;
    }
    return NULL;
}

/* Threads that continue to queue do not delay it. */
TEST_WITH(flush__waits_for_earlier_operations, enter, leave)
{
    uint32_t count = 0;
    pthread_t thread;

    atomic_store(&enough, false);
    atomic_store(&disk.nap_ms, 1);
    assert_int_equal(pthread_create(&thread, NULL, queue_on, &count), 0);
    for (int i = 0; i < 20; i++) {
        struct wal_error own = KIT_ERROR;

        assert_ok(wal_flush(store, &own));
    }
    atomic_store(&enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(wal_flush(store, &error));
    assert_int_equal(kit_info(session).entries, count);
}

/* The committer thread sleeps without a time: nothing was written since the store was opened. The
 * caller that writes must wake it for the mark. */
TEST_WITH(mark__first_append_of_an_idle_store_is_synced, enter, leave)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    const struct wal_entry entry = kit_entry("a", NULL, "1");
    uint32_t before;

    assert_ok(close_store());
    open_with_mark(0, 10);
    session = kit_session(store, "s");
    kit_pause_ms(200);
    before = atomic_load(&disk.syncs);
    assert_ok(wal_append(session, &entry, 1, &options, NULL, &error));
    for (int i = 0; i < 500 && atomic_load(&disk.syncs) == before; i++) {
        kit_pause_ms(20);
    }
    assert_true(atomic_load(&disk.syncs) > before);
}

/* COMMIT names the promise, whichever operation of the group it is for. */
TEST_WITH(group__durable_before_queued_is_promised, enter, leave)
{
    struct wal_ticket *ticket;

    hold(&disk.holds_writes, true);
    assert_ok(queue("first", 0));
    await_held();
    ticket = submit("durable", WAL_DURABLE, 0);
    assert_ok(queue("queued", 0));
    assert_ok(queue("last", 0));
    hold(&disk.holds_writes, false);
    assert_ok(wal_ticket_wait(ticket, KIT_LONG_MS, NULL, &error));
    wal_ticket_destroy(ticket);
    assert_ok(wal_flush(store, &error));
    assert_int_equal(commit_flags_of_group(3), WAL__COMMIT_DURABLE);
}

/* Queues an entry with a payload that is kept as content. */
static enum wal_status queue_large(const char *id, char letter)
{
    static char payload[300 * 1024];
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    struct wal_entry entry = kit_entry(id, NULL, "");

    memset(payload, letter, sizeof(payload));
    payload[0] = '"';
    payload[sizeof(payload) - 1] = '"';
    entry.payload = (struct wal_slice){payload, sizeof(payload)};
    return wal_append(session, &entry, 1, &options, NULL, &error);
}

/* The content of the first entry is durable already, that of the second one is not: the group waits
 * for both. */
TEST_WITH(group__content_of_a_later_entry_is_synced, enter, leave)
{
    struct wal_ticket *ticket;
    uint32_t before;

    assert_ok(queue_large("old", 'a'));
    assert_ok(wal_sync(store, &error));
    hold(&disk.holds_syncs, true);
    ticket = submit("first", WAL_DURABLE, 0);
    await_held();
    assert_ok(queue_large("again", 'a'));
    assert_ok(queue_large("new", 'b'));
    before = atomic_load(&disk.syncs);
    hold(&disk.holds_syncs, false);
    assert_ok(wal_ticket_wait(ticket, KIT_LONG_MS, NULL, &error));
    wal_ticket_destroy(ticket);
    assert_ok(wal_flush(store, &error));
    /* That of the first operation, and of the contents. */
    assert_int_equal(atomic_load(&disk.syncs) - before, 2);
}

TEST_WITH(flush__misuse_is_refused, enter, leave)
{
    struct wal_store *reader = kit_open("store", WAL_OPEN_READ_ONLY);

    assert_int_equal(wal_flush(NULL, &error), WAL_EINVAL);
    assert_int_equal(wal_flush(reader, &error), WAL_EREADONLY);
}

/* --- failures ----------------------------------------------------------- */

TEST_WITH(failure__is_kept_until_it_is_returned, enter, leave)
{
    /* Both are queued before the first is answered. */
    hold(&disk.holds_writes, true);
    assert_ok(queue("a", 0));
    await_held();
    assert_ok(queue("b", WAL_APPEND_EXPECT));
    assert_ok(queue("c", 0));
    hold(&disk.holds_writes, false);
    while (status_now().queue_status == WAL_OK) {
        kit_pause_ms(1);
    }
    assert_int_equal(status_now().queue_status, WAL_ECONFLICT);
    assert_int_equal(wal_flush(store, &error), WAL_ECONFLICT);
    assert_error(&error, WAL_ECONFLICT, "\"a\"");
    assert_ok(status_now().queue_status);
    assert_ok(wal_flush(store, &error));
    assert_branch(session, "a c");
}

TEST_WITH(failure__is_returned_by_the_next_queued_call, enter, leave)
{
    kit_append(session, "a", NULL);
    assert_ok(queue("b", WAL_APPEND_EXPECT));
    while (status_now().queue_status == WAL_OK) {
        kit_pause_ms(1);
    }
    kit_append(session, "c", NULL); /* not queued */
    assert_int_equal(status_now().queue_status, WAL_ECONFLICT);
    assert_int_equal(queue("d", 0), WAL_ECONFLICT);
    assert_ok(queue("d", 0));
    assert_ok(wal_flush(store, &error));
    assert_branch(session, "a c d");
}

TEST_WITH(failure__later_ones_are_counted, enter, leave)
{
    kit_append(session, "a", NULL);
    hold(&disk.holds_writes, true);
    assert_ok(queue("b", 0));
    await_held();
    assert_ok(queue("c", WAL_APPEND_EXPECT));
    assert_ok(queue("d", WAL_APPEND_EXPECT));
    assert_ok(queue("e", WAL_APPEND_EXPECT));
    hold(&disk.holds_writes, false);
    assert_int_equal(wal_flush(store, &error), WAL_ECONFLICT);
    assert_error(&error, WAL_ECONFLICT, "and 2 more operations failed");
    assert_ok(queue("f", WAL_APPEND_EXPECT));
    assert_int_equal(wal_flush(store, &error), WAL_ECONFLICT);
    assert_null(strstr(error.text, "more operations"));
}

TEST_WITH(failure__of_writing_is_returned, enter, leave)
{
    atomic_store(&disk.fails_writes, true);
    assert_ok(queue("a", 0));
    assert_int_equal(wal_flush(store, &error), WAL_EPOISONED);
    assert_ok(wal_flush(store, &error));
    atomic_store(&disk.fails_writes, false);
    assert_ok(queue("b", 0)); /* heals */
    assert_ok(wal_flush(store, &error));
    assert_slice(kit_info(session).head, "b");
}

TEST_WITH(failure__of_syncing_is_returned_by_wal_sync, enter, leave)
{
    assert_ok(queue("a", 0));
    assert_ok(wal_flush(store, &error));
    atomic_store(&disk.fails_syncs, true);
    assert_int_equal(wal_sync(store, &error), WAL_EPOISONED);
    atomic_store(&disk.fails_syncs, false);
    assert_ok(queue("b", 0));
    assert_ok(wal_sync(store, &error));
    assert_slice(kit_info(session).head, "b");
}

TEST_WITH(failure__of_a_ticket_destroyed_unread_is_kept, enter, leave)
{
    static const char *const ids[] = {"b", "d", "e"};
    struct wal_ticket *ticket;

    kit_append(session, "a", NULL);
    for (uint32_t durability = WAL_DURABLE; durability <= WAL_QUEUED; durability++) {
        /* Destroyed before it fails. */
        hold(&disk.holds_writes, true);
        ticket = submit(ids[durability], WAL_QUEUED, 0);
        await_held();
        wal_ticket_destroy(submit("c", durability, WAL_APPEND_EXPECT));
        wal_ticket_destroy(ticket);
        hold(&disk.holds_writes, false);
        assert_int_equal(wal_flush(store, &error), WAL_ECONFLICT);
        /* Destroyed after. */
        ticket = submit("c", durability, WAL_APPEND_EXPECT);
        assert_ok(wal_flush(store, &error));
        wal_ticket_destroy(ticket);
        assert_int_equal(wal_flush(store, &error), WAL_ECONFLICT);
        /* Returned by the ticket. */
        ticket = submit("c", durability, WAL_APPEND_EXPECT);
        assert_int_equal(wal_ticket_wait(ticket, KIT_LONG_MS, NULL, &error), WAL_ECONFLICT);
        wal_ticket_destroy(ticket);
        assert_ok(wal_flush(store, &error));
    }
}

/* Closing returns it, and has synced the rest all the same. */
TEST_WITH(failure__is_returned_by_closing, enter, leave)
{
    uint32_t syncs;

    kit_append(session, "a", NULL);
    hold(&disk.holds_writes, true);
    assert_ok(queue("b", 0));
    await_held();
    assert_ok(queue("c", WAL_APPEND_EXPECT));
    assert_ok(queue("d", 0));
    syncs = atomic_load(&disk.syncs);
    hold(&disk.holds_writes, false);
    assert_int_equal(close_store(), WAL_ECONFLICT);
    assert_error(&error, WAL_ECONFLICT, "\"b\"");
    assert_true(atomic_load(&disk.syncs) > syncs);
    open_store(0);
    session = kit_session(store, "s");
    assert_branch(session, "a b d");
}

TEST_WITH(failure__of_the_disk_is_returned_by_closing, enter, leave)
{
    kit_append(session, "a", NULL);
    assert_ok(wal_sync(store, &error));
    atomic_store(&disk.fails_writes, true);
    assert_ok(queue("b", 0));
    assert_int_equal(close_store(), WAL_EPOISONED);
    atomic_store(&disk.fails_writes, false);
    open_store(0);
    session = kit_session(store, "s");
    assert_branch(session, "a");
}

TEST_WITH(failure__of_syncing_is_returned_by_closing, enter, leave)
{
    assert_ok(queue("a", 0));
    atomic_store(&disk.fails_syncs, true);
    assert_int_equal(close_store(), WAL_EPOISONED);
    atomic_store(&disk.fails_syncs, false);
    open_store(0);
    session = kit_session(store, "s");
}

/* --- the event ---------------------------------------------------------- */

static int32_t event_fd(void)
{
    int32_t fd = -1;

    assert_ok(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, &error));
    return fd;
}

/* Whether it becomes readable in time; then reads it. */
static bool rings(int32_t fd, int timeout_ms)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    uint64_t count = 0;

    if (poll(&wanted, 1, timeout_ms) != 1) {
        return false;
    }
    assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
    assert_true(count > 0);
    return true;
}

TEST_WITH(event__is_signalled_when_a_ticket_completes, enter, leave)
{
    int32_t fd = event_fd();

    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_int_equal(event_fd(), fd);
    assert_false(rings(fd, 0));
    for (uint32_t durability = WAL_DURABLE; durability <= WAL_QUEUED; durability++) {
        const char *const ids[] = {"a", "b", "c"};
        struct wal_ticket *ticket;

        hold(&disk.holds_writes, true);
        ticket = submit(ids[durability], durability, 0);
        await_held();
        assert_int_equal(wal_ticket_wait(ticket, 0, NULL, &error), WAL_EBUSY);
        assert_false(rings(fd, 0));
        hold(&disk.holds_writes, false);
        assert_true(rings(fd, LONG_MS));
        assert_ok(wal_ticket_wait(ticket, 0, NULL, &error));
        wal_ticket_destroy(ticket);
        assert_false(rings(fd, 0));
    }
}

TEST_WITH(event__is_signalled_when_a_ticket_is_refused, enter, leave)
{
    int32_t fd = event_fd();
    struct wal_ticket *ticket;

    kit_append(session, "a", NULL);
    assert_ok(queue("b", 0));
    assert_ok(wal_flush(store, &error));
    assert_false(rings(fd, 0)); /* nothing was submitted */
    ticket = submit("c", WAL_WRITTEN, WAL_APPEND_EXPECT);
    assert_true(rings(fd, LONG_MS));
    assert_int_equal(wal_ticket_wait(ticket, 0, NULL, &error), WAL_ECONFLICT);
    wal_ticket_destroy(ticket);
}

/* A descriptor requested after a completion reports that completion. */
TEST_WITH(event__created_after_completion_is_signalled, enter, leave)
{
    struct wal_ticket *ticket = submit("a", WAL_WRITTEN, 0);
    int32_t fd;

    assert_ok(wal_flush(store, &error));
    fd = event_fd();
    assert_true(rings(fd, LONG_MS));
    assert_ok(wal_ticket_wait(ticket, 0, NULL, &error));
    wal_ticket_destroy(ticket);
    assert_int_equal(event_fd(), fd);
    assert_false(rings(fd, 0));
}

/* An event loop with many tickets in flight is notified of every one. */
TEST_WITH(event__loop_receives_every_ticket, enter, leave)
{
    struct wal_ticket *tickets[1000] = {NULL};
    int32_t fd = event_fd();
    size_t first = 0;

    for (size_t i = 0; i < 1000; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%zu", i);
        tickets[i] = submit(id, (uint32_t)(i % 3), 0);
    }
    while (first < 1000) {
        assert_true(rings(fd, LONG_MS));
        while (first < 1000 && wal_ticket_wait(tickets[first], 0, NULL, &error) != WAL_EBUSY) {
            wal_ticket_destroy(tickets[first]);
            first++;
        }
    }
    assert_int_equal(kit_info(session).entries, 1000);
}

TEST_WITH(event__is_closed_with_the_store, enter, leave)
{
    int32_t fd = event_fd();

    assert_ok(close_store());
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
}

TEST_WITH(event__without_descriptors_is_refused, enter, leave)
{
    struct rlimit before;
    struct rlimit none;
    int32_t fd = -7;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, &error),
                     WAL_ENOMEM);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error.sys_errno, EMFILE);
    assert_int_equal(fd, -7);
    assert_ok(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, &error));
    assert_false(rings(fd, 0));
}

TEST_WITH(event__misuse_is_refused, enter, leave)
{
    int32_t fd = -7;
    pid_t child;

    assert_int_equal(wal_store_completion_fd(NULL, WAL_COMPLETION_EVENTFD, &fd, &error),
                     WAL_EINVAL);
    assert_int_equal(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, NULL, &error),
                     WAL_EINVAL);
    child = kit_start_process();
    if (child == 0) {
        _exit(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, &error) == WAL_EFORKED &&
                      wal_flush(store, &error) == WAL_EFORKED
                  ? 0
                  : 1);
    }
    kit_expect_exit(child, 0);
    assert_int_equal(fd, -7);
}
