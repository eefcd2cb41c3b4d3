/*
 * test_store_cursor.c - tests of entry cursors: branches, all, streams, from the last compaction
 * on, up to the durable end, and single entries.
 *
 * A record that is read as damaged once, as when another process replaced its file, and is whole
 * when it is read again: no answer is made of the first reading. While the log cannot be read,
 * appends fail with WAL_EIO, and never with an answer that guesses the unread state.
 *
 * Cursors over damage: each returns exactly the entries that can be read, an error for each other
 * one, and ends. In both kinds of reading, on a branch, over all entries and over the last ones, in
 * a session and in a fork of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/session/entry_cursor.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "tests/lib/kit/store_kit.h"

static struct wal_entry_cursor_options up_to(const char *id)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .up_to = kit_text(id)};

    return options;
}

static void compact(struct wal_session *session, const char *id, const char *type,
                    const char *payload)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.type = kit_text(type);
    assert_ok(kit_try_append(session, &entry, NULL, NULL));
}

static const char *since(struct wal_session *session, const char *id)
{
    struct wal_entry_cursor_options options = up_to(id);

    options.flags = WAL_ENTRY_CURSOR_SINCE_COMPACTION;
    return kit_list_ids(session, &options);
}

/* A tree:  a b c f(head)  a d e  and a root r. */
static void append_tree(struct wal_session *session)
{
    struct wal_entry root = kit_entry("r", NULL, "1");

    kit_append_all(session, "a b c");
    kit_append(session, "d", "a");
    kit_append(session, "e", "d");
    root.flags = WAL_ENTRY_ROOT;
    assert_ok(kit_try_append(session, &root, NULL, NULL));
    kit_append(session, "f", NULL);
}

/* -------------------------------------------------------- compaction --- */

/* The path to it leaves entries of another branch out. */
KIT_TEST(compaction__of_a_branch_begins_at_itself)
{
    struct kit_bench bench = kit_bench("");

    kit_append_all(bench.session, "a b c");
    kit_append(bench.session, "x", "a");
    compact(bench.session, "k", "compaction", "{}");
    kit_append_all(bench.session, "y");
    assert_string_equal(since(bench.session, NULL), "k y");
}

/* --------------------------------------------------------------- get --- */

KIT_TEST(get__entry_on_any_branch_and_stream)
{
    struct kit_bench bench = kit_bench("");
    struct wal_session *fork;
    struct wal_entry entry = kit_entry("t", NULL, "1");
    struct wal_entry_cursor *cursor = NULL;

    append_tree(bench.session);
    entry.stream = 1;
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    entry.id = kit_text("u");
    assert_ok(kit_try_append(bench.session, &entry, NULL, NULL));
    kit_append_all(bench.session, "g");
    fork = kit_fork(bench.session, "g", "f");
    kit_append_all(bench.session, "later");
    assert_ok(wal_entry_cursor_open(fork, NULL, &cursor, NULL));
    entry = (struct wal_entry){.struct_size = sizeof(entry)};
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_ok(wal_entry_cursor_get(cursor, kit_text("e"), &entry, NULL));
    assert_slice(entry.id, "e");
    assert_slice(entry.parent_id, "d");
    assert_int_equal(entry.depth, 2);
    assert_ok(wal_entry_cursor_get(cursor, kit_text("u"), &entry, NULL));
    assert_int_equal(entry.stream, 1);
    assert_int_equal(entry.depth, 1);
    assert_slice(entry.parent_id, "t");
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("later"), &entry, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("none"), &entry, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text(""), &entry, NULL), WAL_ENOTFOUND);
    assert_slice(entry.id, "u");
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_slice(entry.id, "b");
    assert_slice(entry.parent_id, "a");
    wal_entry_cursor_close(cursor);
}

/* Flips a bit of the first occurrence of the text in the log. */
static void flip(const char *text)
{
    const char *path = "store/log/0000000000000001.seg";

    kit_flip(path, kit_find(path, text, strlen(text)));
}

/* The child is intact: it names its damaged parent by id if that is known. */
static void assert_child(struct kit_bench *bench, const char *parent)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(wal_entry_cursor_open(bench->session, NULL, &cursor, NULL));
    assert_ok(wal_entry_cursor_get(cursor, kit_text("child"), &entry, NULL));
    assert_slice(entry.parent_id, parent);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("the-parent"), &entry, NULL),
                     WAL_ECORRUPT);
    wal_entry_cursor_close(cursor);
}

KIT_TEST(get__damage_of_the_parent)
{
    struct kit_bench bench = kit_bench("");
    static const uint32_t flags[] = {0, WAL_OPEN_PREAD};

    kit_append_all(bench.session, "the-parent child");
    kit_end(&bench);
    flip("{\"id\":\"the-parent");
    for (size_t i = 0; i < 2; i++) {
        bench.store = kit_open("store", flags[i]);
        bench.session = kit_session(bench.store, "s");
        assert_child(&bench, "the-parent");
        kit_end(&bench);
    }
    flip("the-parent");
    for (size_t i = 0; i < 2; i++) {
        bench.store = kit_open("store", flags[i]);
        bench.session = kit_session(bench.store, "s");
        assert_child(&bench, "");
        kit_end(&bench);
    }
}

/* The slices of the last entry are valid until the cursor is closed. */
KIT_TEST(entry_cursor__slices_are_valid_when_the_session_is_closed)
{
    struct kit_bench bench = kit_bench("");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;

    kit_append_all(bench.session, "a b c");
    assert_ok(wal_entry_cursor_open(bench.session, NULL, &cursor, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    wal_session_close(bench.session);
    assert_slice(entry.id, "b");
    assert_slice(entry.payload, "{\"id\":\"b\"}");
    assert_slice(entry.parent_id, "a");
    wal_entry_cursor_close(cursor);
    bench.session = kit_session(bench.store, "s");
}

KIT_TEST(entry_cursor__misuse_is_refused)
{
    struct kit_bench bench = kit_bench("");
    struct wal_entry_cursor_options good = {.struct_size = sizeof(good)};
    struct wal_entry_cursor_options bad[7] = {good, good, good, good, good, good, good};
    struct wal_entry entry = {.struct_size = 1};
    struct wal_entry_cursor *cursor = NULL;

    bad[0].struct_size = 0;
    bad[1].mode = 2;
    bad[2].flags = 64;
    bad[3].stream = 256;
    bad[4].up_to = kit_text("\xff");
    bad[5].head = kit_text("\xff");
    bad[6].head = kit_text("main");
    bad[6].up_to = kit_text("a");
    for (int i = 0; i < 7; i++) {
        assert_int_equal(wal_entry_cursor_open(bench.session, &bad[i], &cursor, NULL), WAL_EINVAL);
    }
    assert_int_equal(wal_entry_cursor_open(NULL, &good, &cursor, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_cursor_open(bench.session, &good, NULL, NULL), WAL_EINVAL);
    assert_null(cursor);
    assert_ok(wal_entry_cursor_open(bench.session, &good, &cursor, NULL));
    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_cursor_next(cursor, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_cursor_get(cursor, kit_text("a"), &entry, NULL), WAL_EINVAL);
    entry.struct_size = sizeof(entry);
    assert_int_equal(wal_entry_cursor_next(NULL, &entry, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_cursor_get(NULL, kit_text("a"), &entry, NULL), WAL_EINVAL);
    assert_int_equal(wal_entry_cursor_remaining(NULL), 0);
    wal_entry_cursor_close(cursor);
    wal_entry_cursor_close(NULL);
}

/* Which of the next readings returns other bytes; 0: none. */
static int misread_at;

static enum wal_status misread(void *ctx, struct wal__file *file, void *data, size_t size,
                               uint64_t offset, size_t *bytes_read, int *sys_errno)
{
    enum wal_status status =
        wal__io_posix.pread(ctx, file, data, size, offset, bytes_read, sys_errno);

    if (misread_at > 0 && --misread_at == 0) {
        memset(data, 0xee, size);
    }
    return status;
}

static struct wal_store *open_misread(struct wal__io *io)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_CREATE | WAL_OPEN_PREAD};
    struct wal_store *store = NULL;

    *io = wal__io_posix;
    io->pread = misread;
    misread_at = 0;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, io, &store, NULL));
    return store;
}

KIT_TEST(misread__tail_of_a_conflict_is_read_again)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail = kit_text("nobody")};
    const struct wal_entry entry = kit_entry("d", NULL, "{}");
    struct wal__io io;
    struct wal_store *store = open_misread(&io);
    struct wal_session *session = kit_create_filled(store, "s", "a b c");

    for (int at = 1; at <= 4; at++) {
        struct wal_error error = KIT_ERROR;

        misread_at = at;
        assert_int_equal(wal_append(session, &entry, 1, &options, NULL, &error), WAL_ECONFLICT);
        assert_string_equal(error.actual, "c");
    }
    wal_session_close(session);
    kit_close(store);
}

/* Of the session and of a fork that took it. */
KIT_TEST(misread__title_of_a_redacted_entry_goes)
{
    bool is_misread = true;

    for (int at = 1; is_misread; at++) {
        struct wal__io io;
        struct wal_store *store = open_misread(&io);
        struct wal_session *session;
        struct wal_session *fork;
        struct wal_entry entry = kit_entry("a", NULL, "{\"text\":\"the secret\"}");
        char id[32];

        (void)snprintf(id, sizeof(id), "s%d", at);
        session = kit_create_titled(store, id, "the secret");
        assert_ok(wal_append(session, &entry, 1, NULL, NULL, kit_error()));
        (void)snprintf(id, sizeof(id), "f%d", at);
        fork = kit_fork(session, "a", id);
        assert_slice(kit_info(fork).title, "the secret");
        misread_at = at;
        assert_ok(wal_session_redact(session, kit_text("a"), kit_text(""), NULL, kit_error()));
        is_misread = misread_at == 0;
        misread_at = 0;
        assert_slice(kit_info(session).title, "");
        assert_slice(kit_info(fork).title, "");
        wal_session_close(fork);
        wal_session_close(session);
        kit_close(store);
    }
}

static uint64_t unreadable_end; /* 0: the whole log is readable */

static enum wal_status read_some(void *ctx, struct wal__file *file, void *data, size_t size,
                                 uint64_t offset, size_t *got, int *sys_errno)
{
    if (offset < unreadable_end) {
        *sys_errno = EIO;
        return WAL_EIO;
    }
    return wal__io_posix.pread(ctx, file, data, size, offset, got, sys_errno);
}

/* An open store with the entries "a" and "b", whose log can no longer be read before its present
 * end. */
static struct wal_store *open_unreadable(struct wal__io *io, struct wal_session **session)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_PREAD};
    struct wal_store *store = kit_store();

    *session = kit_create(store, "s");
    kit_append_all(*session, "a b");
    wal_session_close(*session);
    kit_close(store);
    *io = wal__io_posix;
    io->pread = read_some;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, io, &store, kit_error()));
    *session = kit_session(store, "s");
    assert_branch(*session, "a b");
    unreadable_end = atomic_load(&store->core.log.tail_segment->end);
    return store;
}

static enum wal_status expecting(struct wal_session *session, const char *tail,
                                 struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN,
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail = kit_text(tail)};
    const struct wal_entry entry = kit_entry("c", NULL, "{}");

    return wal_append(session, &entry, 1, &options, NULL, error);
}

/* An empty tail would mean that the session has no entries. */
KIT_TEST(unreadable__tail_is_not_reported_as_empty)
{
    static const char *const tails[] = {"", "unknown"};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *session;
    struct wal__io io;
    struct wal_store *store = open_unreadable(&io, &session);

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(expecting(session, tails[i], &error), WAL_EIO);
    }
    unreadable_end = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(expecting(session, tails[i], &error), WAL_ECONFLICT);
        assert_string_equal(error.actual, "b");
    }
    assert_ok(expecting(session, "b", &error));
    wal_session_close(session);
    kit_close(store);
}

KIT_TEST(unreadable__head_is_not_reported_as_missing)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .flags = WAL_HEAD_EXPECT,
                            .entry_id = kit_text(""),
                            .expected = kit_text("")};
    struct wal_error error = KIT_ERROR;
    struct wal_session *session;
    struct wal__io io;
    struct wal_store *store = open_unreadable(&io, &session);

    /* `main` has no record that would be read first. */
    head.name = kit_text("main");
    assert_int_equal(wal_head_move(session, &head, NULL, &error), WAL_EIO);
    unreadable_end = 0;
    assert_int_equal(wal_head_move(session, &head, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, "b");
    wal_session_close(session);
    kit_close(store);
}

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

enum { READINGS = sizeof(readings) / sizeof(readings[0]) };

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
        WAL__ASSERT(wal_append(session, &entry, 1, &options, NULL, NULL) == WAL_OK);
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
        assert_int_equal(pread(fd, bytes, (size_t)stat.st_size, 0), stat.st_size);
        found = memmem(bytes, (size_t)stat.st_size, text, size);
        is_found = found != NULL;
        if (is_found) {
            found[size] ^= 0x10;
            assert_int_equal(pwrite(fd, found + size, 1, found + size - bytes), 1);
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
        enum wal_status status = wal_entry_cursor_next(reader->cursor, &entry, &error);

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
            (void)snprintf(reader->errors, sizeof(reader->errors), "%.900s", error.text);
            reader->passed++;
        }
        reader->next++;
    }
    return true;
}

static struct reader begin(const struct reading *reading, struct wal_store *store)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = reading->mode, .last = reading->last};
    struct reader reader = {.reading = reading, .store = store};

    reader.session = kit_session(store, reading->session);
    reader.end = strcmp(reading->session, "f") == 0 ? ENTRIES + OWN : ENTRIES;
    reader.next = reading->last == 0 ? 0 : reader.end - LAST;
    assert_ok(wal_entry_cursor_open(reader.session, &options, &reader.cursor, NULL));
    assert_true(read_entries(&reader, READ_BEFORE));
    assert_int_equal(reader.passed, 0);
    return reader;
}

/* Reads the rest: all but `unreadable` entries. */
static void read_rest(struct reader *reader, int unreadable)
{
    assert_false(read_entries(reader, 2 * (ENTRIES + OWN)));
    if (reader->passed != unreadable) {
        fail_msg("%d entries were not read: %s", reader->passed, reader->errors);
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

/* A lookup of a damaged entry of this process comes first. The tail has no index that is written:
 * it is made anew from the log. */
KIT_TEST(damaged_cursor__entry_was_looked_up_before)
{
    for (int i = 0; i < READINGS; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_session *session;
        struct wal_session *fork;
        struct reader reader;

        reader.store = kit_open("store", WAL_OPEN_CREATE | readings[i].open_flags);
        session = kit_create(reader.store, "s");
        append(session, 0, ENTRIES);
        fork = kit_fork(session, NULL, "f");
        append(fork, ENTRIES, ENTRIES + OWN);
        flip_after("<1190>xxx");
        for (int k = 0; k < 2; k++) {
            assert_int_equal(wal_entry_get(session, kit_text("e1190"), &entry, NULL), WAL_ECORRUPT);
        }
        reader = begin(&readings[i], reader.store);
        read_rest(&reader, 1);
        wal_session_close(fork);
        wal_session_close(session);
        end(&reader);
    }
}

/* The index of a session that was read before is damaged when the cursor needs it again: it is made
 * from the log. */
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
        assert_int_equal(pread(fd, &byte, 1, (off_t)segment->trailer.index_offset + 300), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)segment->trailer.index_offset + 300), 1);
        assert_int_equal(close(fd), 0);
        reader.store->core.log.needs_reload = true; /* as by a heal */
        read_rest(&reader, 0);
        /* The last entries were all located at the opening. */
        assert_true(reader.store->core.rebuild_from_log || readings[i].last != 0);
        end(&reader);
    }
}

/* --- damage of what another process wrote since ------------------------- */

/* A process that waits for a byte, and then begins segments. It is started before this one has
 * threads, whose locks it would inherit. */
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

static enum wal_status map(void *ctx, struct wal__file *file, uint64_t size, bool writable,
                           void **at, int *sys_errno)
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
        const struct wal_open_options options = {.struct_size = sizeof(options),
                                                 .flags = readings[i].open_flags};
        struct wal__io io = wal__io_posix;
        struct wal_store *store = NULL;
        struct reader reader;
        int passed;

        io.map = map;
        make_store();
        assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
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
