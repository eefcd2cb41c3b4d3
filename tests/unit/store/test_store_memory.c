/*
 * test_store_memory.c - tests of WAL_OPEN_MEMORY: a store that behaves as any other and makes no
 * file on disk.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/store_kit.h"

/* A heap for the tests that check for leaks. */
static struct faulty_heap heap;

static struct wal_store *open_memory(uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_MEMORY | flags};
    struct wal_store *store = NULL;

    assert_done(wal_open(NULL, &options, &store, kit_error()));
    return kit_keep(store);
}

static void assert_no_files(void)
{
    DIR *directory = opendir(".");
    const struct dirent *entry;

    assert_non_null(directory);
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        assert_true(entry->d_name[0] == '.');
    }
    (void)closedir(directory);
}

/* The bytes of memory of this process's memfds. A file may have a descriptor of its name and others
 * of handles. */
static uint64_t memfd_bytes(void)
{
    enum { descriptor_max = 256 };
    ino_t seen[descriptor_max] = {0};
    uint64_t bytes = 0;

    for (int fd = 0; fd < descriptor_max; fd++) {
        char path[32];
        char link[64] = "";
        struct stat st;
        int at = 0;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, link, sizeof(link) - 1) < 0 || strncmp(link, "/memfd:", 7) != 0 ||
            fstat(fd, &st) != 0) {
            continue;
        }
        while (seen[at] != 0 && seen[at] != st.st_ino) {
            at++;
        }
        bytes += seen[at] == 0 ? (uint64_t)st.st_blocks * 512 : 0;
        seen[at] = st.st_ino;
    }
    return bytes;
}

KIT_TEST(store_memory__sessions_entries_and_forks)
{
    const uint32_t flags[] = {0, WAL_OPEN_PREAD, WAL_OPEN_CREATE,
                              WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE, WAL_OPEN_STRICT};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct wal_store *store = open_memory(flags[i]);
        struct wal_session *session = kit_create(store, "s");
        struct wal_session *fork;

        kit_append_all(session, "a b c");
        fork = kit_fork(session, "b", "f");
        kit_append_all(fork, "d e");
        kit_append_all(session, "g");
        assert_branch(session, "a b c g");
        assert_branch(fork, "a b d e");
        assert_int_equal(kit_info(fork).inherited, 2);
        wal_session_close(fork);
        fork = kit_session(store, "f");
        assert_branch(fork, "a b d e");
        assert_int_equal(kit_store_info(store).sessions, 2);
        wal_session_close(fork);
        wal_session_close(session);
        kit_close(store);
    }
    assert_no_files();
}

KIT_TEST(store_memory__path_is_ignored)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_MEMORY};
    const char *const paths[] = {"here", "no/such/directory", "", "/"};

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct wal_store *store = NULL;

        assert_ok(wal_open(paths[i], &options, &store, kit_error()));
        wal_session_close(kit_create(store, "s"));
        kit_close(store);
    }
    assert_no_files();
}

KIT_TEST(store_memory__stores_are_independent_and_end)
{
    struct wal_store *a = open_memory(0);
    struct wal_store *b = open_memory(0);
    struct wal_session *session = kit_create(a, "s");
    struct wal_session *other = kit_create(b, "s");

    kit_append_all(session, "a");
    kit_append_all(other, "b c");
    assert_branch(session, "a");
    assert_branch(other, "b c");
    assert_memory_not_equal(kit_store_info(a).uuid, kit_store_info(b).uuid, 16);
    wal_session_close(session);
    kit_close(a);
    a = open_memory(0);
    assert_int_equal(kit_store_info(a).sessions, 0);
    assert_branch(other, "b c");
}

static void refuse(const char *path, uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;

    assert_int_equal(wal_open(path, &options, &store, kit_error()), WAL_EINVAL);
    assert_null(store);
}

KIT_TEST(store_memory__incompatible_options_are_refused)
{
    struct wal_store *store = NULL;

    refuse(NULL, WAL_OPEN_MEMORY | WAL_OPEN_READ_ONLY);
    refuse("x", WAL_OPEN_MEMORY | WAL_OPEN_READ_ONLY);
    refuse(NULL, WAL_OPEN_MEMORY | WAL_OPEN_NOOP);
    refuse(NULL, WAL_OPEN_CREATE);
    assert_int_equal(wal_open(NULL, NULL, &store, kit_error()), WAL_EINVAL);
    assert_null(store);
    assert_no_files();
}

/* ---------------------------------------------------------- segments --- */

enum { payload_size = 1 << 18, payload_count = 320 };

/* A payload that cannot be compressed. */
static void make_payload(char *payload, uint64_t seed)
{
    payload[0] = '"';
    for (size_t i = 1; i < payload_size - 1; i++) {
        payload[i] = (char)('A' + kit_random(&seed) % 58);
        payload[i] = payload[i] == '\\' ? '-' : payload[i];
    }
    payload[payload_size - 1] = '"';
}

static void append_payloads(struct wal_session *session)
{
    char *payload = malloc(payload_size);

    assert_non_null(payload);
    for (uint64_t i = 1; i <= payload_count; i++) {
        char id[16];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "e%u", (unsigned)i);
        entry = kit_entry(id, NULL, "0");
        make_payload(payload, i);
        entry.payload = (struct wal_slice){payload, payload_size};
        assert_ok(kit_try_append(session, &entry, NULL, kit_error()));
    }
    free(payload);
}

static void check_payloads(struct wal_session *session)
{
    char *payload = malloc(payload_size);
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_non_null(payload);
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, kit_error()));
    assert_int_equal(wal_entry_cursor_remaining(cursor), payload_count);
    for (uint64_t i = 1; i <= payload_count; i++) {
        assert_ok(wal_entry_cursor_next(cursor, &entry, kit_error()));
        make_payload(payload, i);
        assert_int_equal(entry.payload.size, payload_size);
        assert_memory_equal(entry.payload.data, payload, payload_size);
    }
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, kit_error()), WAL_END);
    wal_entry_cursor_close(cursor);
    free(payload);
}

/* Preallocated space takes no memory. */
static void check_memory(struct wal_store *store)
{
    struct wal_store_info info = kit_store_info(store);

    assert_in_range(info.disk_bytes, info.log_bytes, info.log_bytes + (4 << 20));
    assert_in_range(memfd_bytes(), info.log_bytes, info.log_bytes + (4 << 20));
}

KIT_TEST(store_memory__spans_several_segments)
{
    const uint32_t flags[] = {0, WAL_OPEN_PREAD};

    for (size_t i = 0; i < 2; i++) {
        struct wal_store *store = open_memory(flags[i]);
        struct wal_session *session = kit_create(store, "s");
        struct wal_session *fork;

        append_payloads(session);
        assert_true(kit_store_info(store).segments >= 4);
        check_memory(store);
        check_payloads(session);
        fork = kit_fork(session, NULL, "f");
        check_payloads(fork);
        wal_session_close(fork);
        wal_session_close(session);
        kit_close(store);
    }
    assert_no_files();
}

/* ----------------------------------------------------------- threads --- */

enum { thread_count = 4, entries_each = 200 };

static void *append_alone(void *arg)
{
    struct wal_session *session = arg;

    for (int i = 0; i < entries_each; i++) {
        char id[16];
        struct wal_entry entry;
        struct wal_entry_cursor *cursor = NULL;
        enum wal_status status;

        (void)snprintf(id, sizeof(id), "e%d", i);
        entry = kit_entry(id, NULL, "{\"n\":1}");
        status = wal_append(session, &entry, 1, NULL, NULL, NULL);
        WAL__ASSERT(status == WAL_OK);
        status = wal_entry_cursor_open(session, NULL, &cursor, NULL);
        WAL__ASSERT(status == WAL_OK);
        WAL__ASSERT(wal_entry_cursor_remaining(cursor) == (uint64_t)i + 1);
        for (int at = 0; at <= i; at++) {
            struct wal_entry read = {.struct_size = sizeof(read)};

            status = wal_entry_cursor_next(cursor, &read, NULL);
            WAL__ASSERT(status == WAL_OK && read.payload.size == 7);
            WAL__ASSERT(memcmp(read.payload.data, "{\"n\":1}", 7) == 0);
        }
        wal_entry_cursor_close(cursor);
    }
    return NULL;
}

KIT_TEST(store_memory__threads_write_and_read)
{
    struct wal_store *store = open_memory(0);
    struct wal_session *sessions[thread_count];
    pthread_t threads[thread_count];
    struct wal_error error = KIT_ERROR;

    for (size_t i = 0; i < thread_count; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "s%zu", i);
        sessions[i] = kit_create(store, id);
        assert_int_equal(pthread_create(&threads[i], NULL, append_alone, sessions[i]), 0);
    }
    for (size_t i = 0; i < thread_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(kit_info(sessions[i]).entries, entries_each);
        wal_session_close(sessions[i]);
    }
    assert_ok(wal_sync(store, &error));
    assert_true(kit_store_info(store).acknowledged >= thread_count * entries_each);
}

KIT_TEST(store_memory__belongs_to_its_process)
{
    struct wal_store *store = open_memory(0);
    struct wal_session *session = kit_create_filled(store, "s", "a");
    pid_t child;

    child = kit_start_process();
    if (child == 0) {
        struct wal_entry entry = kit_entry("b", NULL, "1");
        bool good = wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_EFORKED &&
                    wal_close(store, NULL) == WAL_EFORKED;

        _exit(good ? 0 : 1);
    }
    kit_expect_exit(child, 0);
    kit_append_all(session, "b");
    assert_branch(session, "a b");
}

/* ------------------------------------------------------------- memory --- */

KIT_TEST(store_memory__closing_frees_everything)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_MEMORY};
    struct wal_store *store = NULL;
    struct wal_session *session;

    faulty_heap_init(&heap, &wal__heap_libc);
    assert_ok(wal__store_open(NULL, &options, &heap.heap, &wal__io_posix, &store, kit_error()));
    session = kit_create(store, "s");
    append_payloads(session);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(memfd_bytes(), 0);
    assert_int_equal(heap.live, 0);
}

/* A store in memory writes no commit mark and no index. */
KIT_TEST(store_memory__closing_creates_no_file)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_MEMORY};
    struct wal_store *store = NULL;
    struct wal_session *session;
    uint64_t allocations;

    faulty_heap_init(&heap, &wal__heap_libc);
    assert_ok(wal__store_open(NULL, &options, &heap.heap, &wal__io_posix, &store, kit_error()));
    session = kit_create(store, "s");
    append_payloads(session);
    wal_session_close(session);
    assert_ok(wal_sync(store, kit_error()));
    allocations = atomic_load(&heap.allocations);
    kit_close(store);
    assert_int_equal(atomic_load(&heap.allocations), allocations);
    assert_int_equal(heap.live, 0);
}

KIT_TEST(store_memory__opening_without_memory)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_MEMORY};
    struct wal_store *store = NULL;
    uint64_t nth = 0;

    while (store == NULL) {
        enum wal_status status;

        faulty_heap_init(&heap, &wal__heap_libc);
        faulty_heap_fail(&heap, ++nth, true);
        status = wal__store_open(NULL, &options, &heap.heap, &wal__io_posix, &store, kit_error());
        if (status != WAL_OK) {
            assert_int_equal(status, WAL_ENOMEM);
            assert_null(store);
            assert_int_equal(heap.live, 0);
        }
    }
    assert_true(nth > 5);
    faulty_heap_fail(&heap, 0, false);
    wal_session_close(kit_create(store, "s"));
    kit_close(store);
    assert_int_equal(heap.live, 0);
}
