/*
 * test_damaged_cursor.c - cursors over damage: each returns exactly the entries
 * that can be read, an error for each other one, and ends. In both kinds of
 * reading, on a branch, over all entries and over the last ones, in a session
 * and in a fork of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/entry_cursor.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"

enum {
    ENTRIES = 1200, /* of "s"; its fork "f" has as many after them */
    OWN = 30,       /* of the fork */
    READ_BEFORE = 5,
    PAYLOAD = 2000, /* so that they take three segments */
    LAST = 900
};

/* How a cursor reads. */
struct reading {
    uint32_t open_flags;
    uint32_t mode;
    uint64_t last;
    const char *session;
};

static const struct reading readings[] = {
    {0, WAL_ENTRY_CURSOR_BRANCH, 0, "s"},
    {0, WAL_ENTRY_CURSOR_ALL, 0, "s"},
    {0, WAL_ENTRY_CURSOR_BRANCH, LAST, "s"},
    {0, WAL_ENTRY_CURSOR_BRANCH, 0, "f"},
    {0, WAL_ENTRY_CURSOR_ALL, 0, "f"},
    {0, WAL_ENTRY_CURSOR_BRANCH, LAST, "f"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_BRANCH, 0, "s"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_ALL, 0, "s"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_BRANCH, LAST, "s"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_BRANCH, 0, "f"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_ALL, 0, "f"},
    {WAL_OPEN_PREAD, WAL_ENTRY_CURSOR_BRANCH, LAST, "f"},
};

enum {
    READINGS = sizeof(readings) / sizeof(readings[0])
};

/* --- the store ---------------------------------------------------------- */

/* Appends the entries `first` to `end`, whose payloads name them. */
static void append(struct wal_session *session, int first, int end)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    char payload[PAYLOAD + 64];
    char id[16];

    for (int i = first; i < end; i++) {
        struct wal_entry entry;
        int size = snprintf(payload, sizeof(payload), "{\"of\":\"<%d>", i);

        memset(payload + size, 'x', PAYLOAD);
        (void)snprintf(payload + size + PAYLOAD, 8, "\"}");
        (void)snprintf(id, sizeof(id), "e%d", i);
        entry = kit_entry(id, NULL, payload);
        WAL__ASSERT(wal_append(session, &entry, 1, &options, NULL, NULL) ==
                    WAL_OK);
    }
}

static void make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;

    append(session, 0, ENTRIES);
    fork = kit_fork(session, NULL, "f");
    append(fork, ENTRIES, ENTRIES + OWN);
    wal_session_close(fork);
    wal_session_close(session);
    kit_close(store);
}

/* Flips a bit of the byte after the first occurrence of the text in the log. */
static void flip_after(const char *text)
{
    const size_t size = strlen(text);
    bool is_found = false;

    for (int id = 1; id < 9 && !is_found; id++) {
        char path[64];
        struct stat stat;
        uint8_t *bytes;
        uint8_t *found;
        int fd;

        (void)snprintf(path, sizeof(path), "store/log/%016x.seg", (unsigned)id);
        fd = open(path, O_RDWR);
        if (fd < 0) {
            continue;
        }
        assert_int_equal(fstat(fd, &stat), 0);
        bytes = malloc((size_t)stat.st_size);
        assert_non_null(bytes);
        assert_int_equal(pread(fd, bytes, (size_t)stat.st_size, 0),
                         stat.st_size);
        found = memmem(bytes, (size_t)stat.st_size, text, size);
        is_found = found != NULL;
        if (is_found) {
            found[size] ^= 0x10;
            assert_int_equal(pwrite(fd, found + size, 1, found + size - bytes),
                             1);
        }
        free(bytes);
        assert_int_equal(close(fd), 0);
    }
    assert_true(is_found);
}

/* --- reading ------------------------------------------------------------ */

/* A cursor, and what it has returned. */
struct reader {
    const struct reading *reading;
    struct wal_store *store;
    struct wal_session *session;
    struct wal_entry_cursor *cursor;
    int next;   /* the entry that it returns next, if it can be read */
    int end;    /* that after the last one */
    int passed; /* entries that were passed over with an error */
    char errors[1024];
};

/* Reads up to `count` entries; false: it ended. Whatever fails is one entry. */
static bool read_entries(struct reader *reader, int count)
{
    for (int i = 0; i < count; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_error error = KIT_ERROR;
        const uint64_t left = wal_entry_cursor_remaining(reader->cursor);
        char id[16];
        enum wal_status status =
            wal_entry_cursor_next(reader->cursor, &entry, &error);

        if (status == WAL_END) {
            return false;
        }
        assert_int_equal(wal_entry_cursor_remaining(reader->cursor), left - 1);
        if (status == WAL_OK) {
            (void)snprintf(id, sizeof(id), "e%d", reader->next);
            assert_slice(entry.id, id);
            assert_int_equal(entry.depth, reader->next);
        } else {
            assert_true(status == WAL_ECORRUPT || status == WAL_EIO);
            (void)snprintf(reader->errors, sizeof(reader->errors), "%.900s",
                           error.text);
            reader->passed++;
        }
        reader->next++;
    }
    return true;
}

static struct reader begin(const struct reading *reading,
                           struct wal_store *store)
{
    const struct wal_entry_cursor_options options = {.struct_size =
                                                         sizeof(options),
                                                     .mode = reading->mode,
                                                     .last = reading->last};
    struct reader reader = {.reading = reading, .store = store};

    reader.session = kit_session(store, reading->session);
    reader.end = strcmp(reading->session, "f") == 0 ? ENTRIES + OWN : ENTRIES;
    reader.next = reading->last == 0 ? 0 : reader.end - LAST;
    assert_ok(
        wal_entry_cursor_open(reader.session, &options, &reader.cursor, NULL));
    assert_true(read_entries(&reader, READ_BEFORE));
    assert_int_equal(reader.passed, 0);
    return reader;
}

/* Reads the rest: all but `unreadable` entries. */
static void read_rest(struct reader *reader, int unreadable)
{
    assert_false(read_entries(reader, 2 * (ENTRIES + OWN)));
    if (reader->passed != unreadable) {
        fail_msg("%d entries were not read: %s", reader->passed,
                 reader->errors);
    }
    assert_int_equal(reader->next, reader->end);
}

static void end(struct reader *reader)
{
    wal_entry_cursor_close(reader->cursor);
    wal_session_close(reader->session);
    /* What is damaged may refuse to be closed. */
    (void)!wal_close(reader->store, NULL);
    assert_int_equal(system("rm -rf store"), 0);
}

/* --- damage of what the cursor reads ------------------------------------ */

KIT_TEST(damaged_cursor__entry_is_passed_over)
{
    for (int i = 0; i < READINGS; i++) {
        struct reader reader;

        make_store();
        reader = begin(&readings[i], kit_open("store", readings[i].open_flags));
        flip_after("<600>xxx");
        flip_after("<1198>xxx");
        read_rest(&reader, 2);
        end(&reader);
    }
}

/* A lookup of a damaged entry of this process comes first. The tail has no
 * index that is written: it is made anew from the log. */
KIT_TEST(damaged_cursor__entry_was_looked_up_before)
{
    for (int i = 0; i < READINGS; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_session *session;
        struct wal_session *fork;
        struct reader reader;

        reader.store =
            kit_open("store", WAL_OPEN_CREATE | readings[i].open_flags);
        session = kit_create(reader.store, "s");
        append(session, 0, ENTRIES);
        fork = kit_fork(session, NULL, "f");
        append(fork, ENTRIES, ENTRIES + OWN);
        flip_after("<1190>xxx");
        for (int k = 0; k < 2; k++) {
            assert_int_equal(
                wal_entry_get(session, kit_text("e1190"), &entry, NULL),
                WAL_ECORRUPT);
        }
        reader = begin(&readings[i], reader.store);
        read_rest(&reader, 1);
        wal_session_close(fork);
        wal_session_close(session);
        end(&reader);
    }
}

/* The index of a session that was read before is damaged when the cursor needs
 * it again: it is made from the log. */
KIT_TEST(damaged_cursor__index_is_made_anew)
{
    for (int i = 0; i < READINGS; i++) {
        struct wal__segment *segment;
        struct reader reader;
        char path[64];
        uint8_t byte;
        int fd;

        make_store();
        reader = begin(&readings[i], kit_open("store", readings[i].open_flags));
        segment = wal__log_segment_at(&reader.store->core.log, 0);
        assert_true(segment->sealed);
        (void)snprintf(path, sizeof(path), "store/log/%016x.seg", 1U);
        fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        assert_int_equal(
            pread(fd, &byte, 1, (off_t)segment->trailer.index_offset + 300), 1);
        byte ^= 0x10;
        assert_int_equal(
            pwrite(fd, &byte, 1, (off_t)segment->trailer.index_offset + 300),
            1);
        assert_int_equal(close(fd), 0);
        reader.store->core.log.needs_reload = true; /* as by a heal */
        read_rest(&reader, 0);
        /* The last entries were all located at the opening. */
        assert_true(reader.store->core.rebuild_from_log ||
                    readings[i].last != 0);
        end(&reader);
    }
}

/* --- damage of what another process wrote since ------------------------- */

/* A process that waits for a byte, and then begins segments. It is started
 * before this one has threads, whose locks it would inherit. */
static pid_t start_writer(int *go)
{
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = kit_start_process();
    if (child == 0) {
        struct wal_session *session;
        struct wal_store *store;
        char byte;

        WAL__ASSERT(close(ends[1]) == 0 && read(ends[0], &byte, 1) == 1);
        store = kit_store();
        session = kit_session(store, "s");
        append(session, ENTRIES + OWN, 3 * ENTRIES);
        wal_session_close(session);
        kit_close(store);
        _exit(0);
    }
    assert_int_equal(close(ends[0]), 0);
    *go = ends[1];
    return child;
}

static void write_elsewhere(pid_t writer, int go)
{
    int code = -1;

    assert_int_equal(write(go, "", 1), 1);
    assert_int_equal(waitpid(writer, &code, 0), writer);
    assert_int_equal(code, 0);
    assert_int_equal(close(go), 0);
}

static uint64_t tail_id(const struct wal_store *store)
{
    return store->core.log.tail_segment->id;
}

static void damage_segment(uint64_t id, bool is_missing)
{
    char path[64];
    char garbage[8192];
    int fd;

    (void)snprintf(path, sizeof(path), "store/log/%016x.seg", (unsigned)id);
    if (is_missing) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    memset(garbage, 0x5a, sizeof(garbage));
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
    assert_int_equal(close(fd), 0);
}

static void read_before_damage(const struct reading *reading, bool is_missing)
{
    struct reader reader;
    pid_t writer;
    uint64_t id;
    int go = -1;

    make_store();
    writer = start_writer(&go);
    reader = begin(reading, kit_open("store", reading->open_flags));
    id = tail_id(reader.store) + 1;
    write_elsewhere(writer, go);
    damage_segment(id, is_missing);
    read_rest(&reader, 0);
    end(&reader);
}

KIT_TEST(damaged_cursor__later_segment_is_damaged)
{
    for (int i = 0; i < READINGS; i++) {
        read_before_damage(&readings[i], false);
    }
}

KIT_TEST(damaged_cursor__later_segment_is_missing)
{
    for (int i = 0; i < READINGS; i++) {
        read_before_damage(&readings[i], true);
    }
}

/* --- indexes that cannot be loaded -------------------------------------- */

static bool indexes_fail;
static int tries;

static enum wal_status map(void *ctx, struct wal__file *file, uint64_t size,
                           bool writable, void **at, int *sys_errno)
{
    if (indexes_fail) {
        tries++;
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.map(ctx, file, size, writable, at, sys_errno);
}

KIT_TEST(damaged_cursor__indexes_cannot_be_loaded)
{
    for (int i = 0; i < READINGS; i++) {
        const struct wal_open_options options = {
            .struct_size = sizeof(options), .flags = readings[i].open_flags};
        struct wal__io io = wal__io_posix;
        struct wal_store *store = NULL;
        struct reader reader;
        int passed;

        io.map = map;
        make_store();
        assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io,
                                  &store, NULL));
        reader = begin(&readings[i], store);
        store->core.log.needs_reload = true;
        indexes_fail = true;
        tries = 0;
        assert_true(read_entries(&reader, 700));
        /* Hundreds of entries failed with few attempts. */
        assert_true(readings[i].last != 0 || reader.passed > 400);
        assert_true(tries < 50);
        passed = reader.passed + (int)reader.cursor->unlocated_left;
        indexes_fail = false;
        read_rest(&reader, passed);
        end(&reader);
    }
}
