/*
 * test_store_fold.c - tests of the catalogue that is written while the store is in use (SPEC.md
 * 2.13, 3.6): deleted sessions leave it, forks keep what they need, and what it omits is restored
 * where the log is scanned again.
 */
#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/log/rotate.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "tests/sim/ledger/ledger.h"

enum {
    FILLER = 100 * 1024, /* bytes of an entry */
    WAIT_MS = 20000
};

/* Opens the store, which folds at every end of a segment. */
static struct wal_store *open_folding(const char *path)
{
    struct wal_store *store = kit_open(path, WAL_OPEN_CREATE);

    store->core.fold.slots_min = 1;
    store->core.fold.sync_step = 1;
    return store;
}

static bool is_pending(struct wal_store *store)
{
    bool pending;

    assert_ok(wal__core_read_lock(&store->core, NULL));
    pending = store->core.fold.pending;
    wal__core_unlock(&store->core);
    return pending;
}

static void wait_for_fold(struct wal_store *store)
{
    for (int i = 0; i < WAIT_MS && is_pending(store); i++) {
        (void)usleep(1000);
    }
    assert_false(is_pending(store));
}

/* JSON of this many bytes. */
static char *blank_json(size_t size)
{
    char *payload = test_memory(size);

    memset(payload, ' ', size);
    payload[0] = '1';
    return payload;
}

static void fill_segment(struct wal_store *store, struct wal_session *filler)
{
    uint64_t tail = store->core.log.tail_segment->id;
    struct wal_entry entry = {.struct_size = sizeof(entry), .type = kit_text("message")};
    char *payload = blank_json(FILLER);

    entry.payload = (struct wal_slice){payload, FILLER};
    while (store->core.log.tail_segment->id == tail) {
        assert_ok(wal_append(filler, &entry, 1, NULL, NULL, NULL));
    }
}

/* Appends until closing does not end the tail segment. */
static void use_tail(struct wal_store *store, struct wal_session *filler)
{
    struct wal_entry entry = {.struct_size = sizeof(entry), .type = kit_text("message")};
    char *payload = blank_json(FILLER);

    entry.payload = (struct wal_slice){payload, FILLER};
    while (wal__prealloc_has_excess(&store->core.log)) {
        assert_ok(wal_append(filler, &entry, 1, NULL, NULL, NULL));
    }
}

/* Fills the tail segment, and waits for the fold. */
static void end_segment(struct wal_store *store, struct wal_session *filler)
{
    fill_segment(store, filler);
    wait_for_fold(store);
}

static uint32_t overlay_count(struct wal_store *store)
{
    uint32_t count;

    assert_ok(wal__core_read_lock(&store->core, NULL));
    count = wal__catalogue_overlay_count(&store->core.catalogue);
    wal__core_unlock(&store->core);
    return count;
}

static enum wal_status get(struct wal_store *store, uint32_t number, struct wal__summary *summary)
{
    enum wal_status status;

    assert_ok(wal__core_read_lock(&store->core, NULL));
    status = wal__catalogue_get(&store->core.catalogue, number, summary);
    wal__core_unlock(&store->core);
    return status;
}

static bool is_in_snapshot(struct wal_store *store, uint32_t number)
{
    bool found = false;

    assert_ok(wal__core_read_lock(&store->core, NULL));
    assert_ok(wal__catalogue_is_in_snapshot(&store->core.catalogue, number, &found));
    wal__core_unlock(&store->core);
    return found;
}

static uint64_t catalogue_size(void)
{
    struct stat stat_of;

    assert_int_equal(stat("store/index/catalogue", &stat_of), 0);
    return (uint64_t)stat_of.st_size;
}

static uint32_t create_and_delete(struct wal_store *store, const char *id)
{
    struct wal_session *session = kit_create(store, id);
    uint32_t number = session->number;

    kit_append(session, "e", NULL);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    return number;
}

KIT_TEST(fold__deleted_sessions_leave_memory_and_catalogue)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal__summary summary;
    uint32_t last = 0;

    for (int round = 0; round < 3; round++) {
        uint32_t first = 0;

        for (int i = 0; i < 200; i++) {
            char id[16];

            (void)snprintf(id, sizeof(id), "s%d", i); /* again and again */
            last = create_and_delete(store, id);
            first = first == 0 ? last : first;
        }
        end_segment(store, filler);
        assert_in_range(overlay_count(store), 0, 1);
        assert_int_equal(wal__position_segment(store->core.snapshot_position),
                         store->core.log.tail_segment->open.previous_id);
        assert_int_equal(get(store, first, &summary), WAL_ENOTFOUND);
        assert_int_equal(get(store, last, &summary), WAL_ENOTFOUND);
        assert_in_range(catalogue_size(), 1, 6 * 4096 + 64);
        assert_string_equal(kit_list_sessions(store, NULL), "filler");
    }
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
    store = open_folding("store");
    assert_string_equal(kit_list_sessions(store, NULL), "filler");
    filler = kit_create(store, "s0");
    assert_int_equal(filler->number, last + 1);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

/* A handle of a session that the catalogue has forgotten. */
KIT_TEST(fold__handle_of_a_forgotten_session_reports_it)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *gone = kit_create(store, "gone");
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_entry entry = kit_entry("e", NULL, "1");
    struct wal_session *fork = NULL;

    assert_ok(wal_session_delete(gone, NULL));
    end_segment(store, filler);
    assert_fails(wal_session_get_info(gone, &info, kit_error()), WAL_ENOTFOUND, "deleted");
    assert_fails(wal_append(gone, &entry, 1, NULL, NULL, kit_error()), WAL_ENOTFOUND, "deleted");
    assert_int_equal(wal_session_delete(gone, NULL), WAL_ENOTFOUND);
    assert_int_equal(wal_session_fork(gone, (struct wal_slice){NULL, 0}, NULL, &fork, NULL),
                     WAL_ENOTFOUND);
    assert_int_equal(wal_session_accept_damage(gone, NULL), WAL_ENOTFOUND);
    wal_session_close(gone);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

KIT_TEST(fold__fork_of_a_deleted_session_is_read)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *source = kit_create(store, "source");
    uint32_t number = source->number;
    struct wal__summary summary;
    struct wal_session *fork;

    kit_append_all(source, "a b");
    (void)kit_put(store, source, "key", "1");
    fork = kit_fork(source, NULL, "fork");
    kit_append_all(fork, "c");
    assert_ok(wal_session_delete(source, NULL));
    wal_session_close(source);
    for (int round = 0; round < 3; round++) {
        end_segment(store, filler);
        assert_ok(get(store, number, &summary));
        assert_branch(fork, "a b c");
        assert_string_equal(kit_docs(store, fork, 0, ""), "key=1");
        wal_session_close(fork);
        wal_session_close(filler);
        kit_close(store);
        kit_check_sound("store");
        store = open_folding("store");
        fork = kit_session(store, "fork");
        filler = kit_session(store, "filler");
    }
    assert_ok(wal_session_delete(fork, NULL));
    wal_session_close(fork);
    end_segment(store, filler);
    assert_int_equal(get(store, number, &summary), WAL_ENOTFOUND);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

/* In a process that dies then, which leaves the tail without an index file. */
static void append_and_die(const char *path, struct wal_slice payload, uint32_t count)
{
    pid_t child = kit_start_process();
    int status = -1;

    if (child == 0) {
        struct wal_store *store = kit_open(path, 0);
        struct wal_session *filler = kit_session(store, "filler");
        struct wal_entry entries[64];

        for (uint32_t i = 0; i < count; i++) {
            entries[i] = (struct wal_entry){
                .struct_size = sizeof(entries[i]), .type = kit_text("message"), .payload = payload};
        }
        _exit(wal_append(filler, entries, count, NULL, NULL, NULL) == WAL_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The catalogue of a clean close omits sessions that have records in the tail segment, whose index
 * is written later and must have them: where the tail is loaded from its index file, and where it
 * is scanned after a kill. */
KIT_TEST(fold__omitted_session_of_the_tail_is_restored)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *source = kit_create(store, "source");
    struct wal_session *old = kit_create(store, "old");
    const uint32_t deleted[] = {source->number, old->number, old->number + 1, old->number + 2};
    struct wal__summary summary;
    struct wal_session *fork;

    kit_append_all(source, "a b");
    kit_append_all(old, "c");
    end_segment(store, filler);
    end_segment(store, filler);
    fork = kit_fork(source, NULL, "fork");
    assert_ok(wal_session_delete(source, NULL));
    assert_ok(wal_session_delete(fork, NULL));
    assert_ok(wal_session_delete(old, NULL));
    wal_session_close(source);
    wal_session_close(fork);
    wal_session_close(old);
    assert_int_equal(create_and_delete(store, "again"), deleted[3]);
    wal_session_close(kit_create(store, "again"));
    wal_session_close(kit_create(store, "old"));
    use_tail(store, filler);
    wal_session_close(filler);
    assert_int_equal(remove("store/index/catalogue"), 0);
    store->core.snapshot_position = 0; /* so that closing writes one */
    kit_close(store);
    kit_check_sound("store");
    assert_int_equal(system("cp -r store second"), 0);
    append_and_die("second", kit_text("1"), 1);
    for (int killed = 0; killed < 2; killed++) {
        const char *path = killed != 0 ? "second" : "store";

        store = open_folding(path);
        assert_int_equal(store->core.tail_base.id != 0, killed == 0);
        assert_non_null(store->core.catalogue.snapshot);
        for (size_t i = 0; i < sizeof(deleted) / sizeof(deleted[0]); i++) {
            assert_false(is_in_snapshot(store, deleted[i]));
            assert_ok(get(store, deleted[i], &summary));
            assert_int_equal(summary.flags & WAL__SUMMARY_DELETED, WAL__SUMMARY_DELETED);
        }
        assert_string_equal(kit_list_sessions(store, NULL), "filler old again");
        filler = kit_session(store, "filler");
        end_segment(store, filler);
        for (size_t i = 0; i < sizeof(deleted) / sizeof(deleted[0]); i++) {
            assert_int_equal(get(store, deleted[i], &summary), WAL_ENOTFOUND);
        }
        wal_session_close(filler);
        kit_close(store);
        kit_check_sound(path);
    }
}

/* A segment may end where a catalogue of a clean close ends: its summaries do not name the segment,
 * and the sessions' records there are found all the same. */
KIT_TEST(fold__segment_ends_at_the_position_of_a_close)
{
    enum { SIZE = 200 * 1024, COUNT = 40 };
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *session = kit_create(store, "session");
    char *payload = blank_json(SIZE);
    uint64_t end;

    fill_segment(store, filler);
    fill_segment(store, filler);
    kit_append_all(session, "a b");
    wal_session_close(session);
    wal_session_close(filler);
    kit_close(store);
    append_and_die("store", (struct wal_slice){payload, SIZE}, COUNT);
    store = kit_open("store", 0);
    assert_non_null(store->core.catalogue.snapshot);
    end = wal__position(store->core.log.tail_segment->open.previous_id,
                        store->core.log.tail_segment->open.previous_end);
    assert_int_equal(store->core.snapshot_position, end);
    session = kit_session(store, "session");
    assert_branch(session, "a b");
    wal_session_close(session);
    kit_close(store);
    kit_check_sound("store");
}

/* The index of the segment that the catalogue covers is made from the log, and not from the
 * catalogue, which has the same records. */
KIT_TEST(fold__damaged_index_below_the_catalogue_is_rebuilt)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *session = kit_create_filled(store, "session", "a b");
    char path[64];
    uint64_t id;
    uint64_t at;
    FILE *file;

    id = store->core.log.tail_segment->id;
    end_segment(store, filler);
    assert_int_equal(wal__position_segment(store->core.catalogue.snapshot->header.position), id);
    at = wal__log_segment(&store->core.log, id)->trailer.index_offset;
    wal_session_close(session);
    wal_session_close(filler);
    kit_close(store);
    snprintf(path, sizeof(path), "store/log/%016" PRIx64 ".seg", id);
    file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at + WAL__FRAME_SIZE, SEEK_SET), 0);
    assert_int_equal(fputc('?', file), '?');
    assert_int_equal(fclose(file), 0);
    store = kit_open("store", 0);
    session = kit_session(store, "session");
    assert_branch(session, "a b");
}

/* The catalogue that was written on closing stops where the segment ends then, and does not know
 * that it has ended. */
KIT_TEST(fold__catalogue_of_the_close_is_not_taken)
{
    enum { SIZE = 200 * 1024 };
    const struct wal_entry_cursor_options last = {.struct_size = sizeof(last), .last = 2};
    struct wal_store *store = kit_open("store", WAL_OPEN_CREATE);
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session *session = kit_create(store, "session");
    struct wal_entry entry = {.struct_size = sizeof(entry), .type = kit_text("message")};
    struct wal_entry_cursor *cursor = NULL;
    char *payload = blank_json(SIZE);
    struct wal__summary summary;
    uint64_t tail;

    entry.payload = (struct wal_slice){payload, SIZE};
    fill_segment(store, filler);
    fill_segment(store, filler);
    kit_append_all(session, "a b");
    while (store->core.log.tail_segment->header.capacity -
               atomic_load(&store->core.log.tail_segment->end) >
           SIZE + SIZE / 2) {
        assert_ok(wal_append(filler, &entry, 1, NULL, NULL, NULL));
    }
    wal_session_close(session);
    wal_session_close(filler);
    kit_close(store);
    store = open_folding("store");
    tail = store->core.log.tail_segment->id;
    assert_int_equal(store->core.snapshot_position, atomic_load(&store->core.log.end));
    filler = kit_session(store, "filler");
    assert_ok(wal_append(filler, &entry, 1, NULL, NULL, NULL));
    assert_int_not_equal(store->core.log.tail_segment->id, tail);
    wait_for_fold(store);
    session = kit_session(store, "session");
    assert_ok(get(store, session->number, &summary));
    assert_int_equal(summary.segment, tail);
    kit_append_all(session, "c");
    assert_ok(wal_entry_cursor_open(session, &last, &cursor, NULL));
    assert_int_equal(wal_entry_cursor_remaining(cursor), 2);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

/* A cursor returns what was there when it was opened, each once and in order, while sessions
 * change, are deleted and are folded. */
KIT_TEST(fold__open_cursor_keeps_its_order)
{
    enum { COUNT = 60 };
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;

    for (int i = 0; i < COUNT; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "s%d", i);
        wal_session_close(kit_create(store, id));
        if (i == COUNT / 2) {
            end_segment(store, filler);
        }
    }
    kit_append(filler, "newest", NULL);
    assert_ok(wal_session_cursor_open(store, NULL, &list, NULL));
    assert_ok(wal_session_cursor_next(list, &info, NULL));
    assert_slice(info.id, "filler");
    for (int i = COUNT - 1; i >= 0; i--) {
        char id[16];

        if (i % 15 == 7) {
            struct wal_session *moved = kit_session(store, "s3");

            kit_append(moved, id, NULL);
            wal_session_close(moved);
            (void)snprintf(id, sizeof(id), "new%d", i);
            wal_session_close(kit_create(store, id));
            end_segment(store, filler);
        }
        assert_ok(wal_session_cursor_next(list, &info, NULL));
        (void)snprintf(id, sizeof(id), "s%d", i);
        assert_slice(info.id, id);
    }
    assert_int_equal(wal_session_cursor_next(list, &info, NULL), WAL_END);
    wal_session_cursor_close(list);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

/* Two handles fold at the same ends of segments: one writes, both adopt. */
KIT_TEST(fold__other_process_adopts_what_was_written)
{
    struct wal_store *store = open_folding("store");
    struct wal_store *other = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 50; i++) {
            char id[16];

            (void)snprintf(id, sizeof(id), "s%d", i);
            (void)create_and_delete(store, id);
        }
        end_segment(store, filler);
        assert_string_equal(kit_list_sessions(other, NULL), "filler");
    }
    /* The last fold of the other handle may have been left to the first: it adopts at the next
     * end. */
    end_segment(store, filler);
    assert_string_equal(kit_list_sessions(other, NULL), "filler");
    assert_in_range(overlay_count(store), 0, 1);
    assert_in_range(overlay_count(other), 0, 51);
    wal_session_close(filler);
    kit_close(other);
    kit_close(store);
    kit_check_sound("store");
}

/* A temporary file that a killed process left stops folds, until a process is alone in the
 * store. */
KIT_TEST(fold__partial_file_is_removed_by_the_first_opener)
{
    struct wal_store *store = open_folding("store");
    struct wal_session *filler = kit_create(store, "filler");
    FILE *partial = fopen("store/index/catalogue.new", "w");

    assert_non_null(partial);
    assert_int_equal(fclose(partial), 0);
    fill_segment(store, filler);
    wal_session_close(filler);
    kit_close(store);
    store = open_folding("store");
    assert_int_not_equal(access("store/index/catalogue.new", F_OK), 0);
    filler = kit_session(store, "filler");
    end_segment(store, filler);
    assert_in_range(overlay_count(store), 0, 1);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}

static struct wal__io counted_io;
static uint32_t catalogues; /* files of that name that were written */

static enum wal_status count_rename(void *ctx, const char *from, const char *to, int *sys_errno)
{
    const char *name = strrchr(to, '/');

    catalogues += name != NULL && strcmp(name, "/catalogue") == 0;
    return wal__io_posix.rename(ctx, from, to, sys_errno);
}

/* Compacts one of three segments that have a session each. Returns the catalogues that were
 * written. */
static uint32_t compact_sessions(const char *path, uint32_t loaded_max)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};
    /* One segment, so that the others are not merged with it. */
    struct wal_store_compact_options least = {.struct_size = sizeof(least),
                                              .max_bytes = 1536 * 1024};
    struct wal_store *store = kit_open(path, WAL_OPEN_CREATE);
    struct wal_session *filler = kit_create(store, "filler");

    for (int i = 0; i < 3; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "s%d", i);
        wal_session_close(kit_create(store, id));
        fill_segment(store, filler);
    }
    wal_session_close(filler);
    kit_close(store);
    counted_io = wal__io_posix;
    counted_io.rename = count_rename;
    assert_ok(wal__store_open(path, &options, &wal__heap_libc, &counted_io, &store, NULL));
    if (loaded_max != 0) {
        store->core.fold.loaded_max = loaded_max;
    }
    catalogues = 0;
    assert_ok(wal_store_compact(store, &least, NULL, NULL));
    assert_in_range(overlay_count(store), 0, 1); /* what the tail has */
    assert_string_equal(kit_list_sessions(store, NULL), "filler s2 s1 s0");
    kit_close(store);
    kit_check_sound(path);
    return catalogues;
}

/* So that it takes no more memory the more sessions there are. */
KIT_TEST(fold__compaction_writes_sessions_while_it_loads)
{
    assert_int_equal(compact_sessions("store", 0), 1);
    assert_in_range(compact_sessions("other", 1), 2, 4);
}

/* OPEN of a segment was lost: it does not say what is before it. */
KIT_TEST(fold__compaction_before_a_segment_without_open)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal_store_compact_options least = {.struct_size = sizeof(least),
                                              .max_bytes = 1536 * 1024};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_store *store = kit_store();
    struct wal_session *filler = kit_create(store, "filler");

    for (int i = 0; i < 3; i++) {
        fill_segment(store, filler);
    }
    wal_session_close(filler);
    kit_close(store);
    kit_flip("store/log/0000000000000003.seg", WAL__SEGMENT_HEADER_SIZE + WAL__FRAME_SIZE);
    store = kit_open("store", 0);
    store->core.fold.loaded_max = 1;
    assert_ok(wal_store_compact(store, &least, &result, NULL));
    assert_int_not_equal(result.rewritten, 0);
    assert_string_equal(kit_list_sessions(store, NULL), "filler");
}

static bool is_replaced; /* a segment, which the compaction loads next */

static enum wal_status rename_noting(void *ctx, const char *from, const char *to, int *sys_errno)
{
    is_replaced = is_replaced || strstr(from, ".rewrite") != NULL;
    return wal__io_posix.rename(ctx, from, to, sys_errno);
}

/* Once the compaction has listed the segments that it replaced, another process ends the tail, and
 * writes the catalogue. */
static enum wal_status open_late(void *ctx, const char *path, int flags, struct wal__file **file,
                                 int *sys_errno)
{
    if (is_replaced && strstr(path, "/index/catalogue") != NULL) {
        struct wal_store *store;
        struct wal_session *filler;

        is_replaced = false;
        store = open_folding("store");
        filler = kit_session(store, "filler");
        kit_append(filler, "a", NULL);
        end_segment(store, filler);
        wal_session_close(filler);
        kit_close(store);
    }
    return wal__io_posix.open(ctx, path, flags, file, sys_errno);
}

/* The catalogue that the compaction writes is not of the segment that ended, and nothing of that is
 * counted twice. */
KIT_TEST(fold__tail_ends_while_a_compaction_loads)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal__io io = wal__io_posix;
    struct wal_store *store = kit_store();
    struct wal_session *filler = kit_create(store, "filler");

    fill_segment(store, filler);
    wal_session_close(filler);
    kit_close(store);
    io.open = open_late;
    io.rename = rename_noting;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    filler = kit_session(store, "filler");
    assert_int_not_equal(kit_compact(store, 0).rewritten, 0);
    assert_false(is_replaced);
    ledger_check_counts(store);
    fill_segment(store, filler);
    ledger_check_counts(store);
    wal_session_close(filler);
    kit_close(store);
    kit_check_sound("store");
}
