/*
 * test_compact_leftovers.c - what compactions leave. One fails or is killed while it replaces
 * segments: what was replaced stays as long as the new name may be lost, and an erasing compaction
 * by another process leaves nothing of it, also after a power cut; a process that does not know the
 * new files reads what is there. Temporary files of processes that were killed, and those that a
 * process is writing (SPEC.md 3.9). Index files of search that belong to no segment
 * (docs/search.md, Files).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/record.h"
#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/log/control.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "format/index/search_file.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"
#include "tests/lib/test.h"
#include "tests/sim/disk/sim.h"

enum {
    ENTRIES = 40,
    MUCH = 100 * 1024, /* bytes of an entry */
    LARGE = 300 * 1024
};

static jmp_buf death;

static struct wal_store *open_store_with(struct sim_process *process, const struct wal__heap *heap,
                                         uint32_t flags)
{
    struct wal_open_options options = {.struct_size = sizeof(options),
                                       .flags = WAL_OPEN_CREATE | flags};
    struct wal_store *store = NULL;

    assert_done(
        wal__store_open("/store", &options, heap, sim_process_io(process), &store, kit_error()));
    return store;
}

static struct wal_store *open_store(struct sim_process *process)
{
    return open_store_with(process, &wal__heap_libc, 0);
}

static void append_half(struct wal_session *session, int first)
{
    for (int i = first; i < first + ENTRIES / 2; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%d", i);
        kit_append(session, id, NULL);
    }
}

static enum wal_status try_compact(struct wal_store *store)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};

    return wal_store_compact(store, &options, NULL, NULL);
}

/* A store with a rewritten segment, and entries after it: the next compaction makes one segment of
 * both. */
static struct sim_disk *make_disk(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_create(store, "s");

    append_half(session, 0);
    assert_ok(try_compact(store));
    append_half(session, ENTRIES / 2);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* Compacts while the sync of the log's directory fails, after some that do not. False: it did not
 * come to that one. */
static bool fail_to_compact(struct sim_disk *disk, uint64_t after)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    const struct sim_fault fault = {
        .call = SIM_SYNC_DIRECTORY, .path = "/store/log", .after = after, .sys_errno = EIO};
    bool struck;

    sim_process_add_fault(process, &fault);
    (void)!try_compact(store);
    struck = sim_process_counts(process)->faults > 0;
    sim_process_clear_faults(process);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
    return struck;
}

/* How many entries a reader gets. */
static uint64_t count_read(struct wal_session *session, uint32_t flags, uint32_t last)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .flags = flags, .last = last};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t count = 0;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        count++;
    }
    wal_entry_cursor_close(cursor);
    return count;
}

static void open_and_check(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_session(store, "s");

    assert_int_equal(kit_info(session).entries, ENTRIES);
    wal_session_close(session);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
}

TEST(leftovers__name_that_may_be_lost)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct sim_disk *made = make_disk();
    uint32_t kept = 0; /* runs in which replaced segments had to stay */
    bool struck = true;

    for (uint64_t after = 0; struck; after++) {
        struct sim_disk *disk = sim_disk_clone(made);

        struck = fail_to_compact(disk, after);
        open_and_check(disk);
        kept += sim_file_exists(disk, "/store/log/0000000000000001.seg") &&
                sim_file_exists(disk, "/store/log/0000000000000003.seg");
        sim_disk_power_loss(disk, &loss, 1);
        open_and_check(disk);
        sim_disk_destroy(disk);
    }
    assert_true(kept > 0);
    sim_disk_destroy(made);
}

/* -------------------------------------------------------------- erasing --- */

/* Appends entries that make a segment so large that it is not merged with what comes after it. */
static void append_much(struct wal_session *session, const char *prefix)
{
    char *payload = malloc(MUCH + 1);

    assert_non_null(payload);
    memset(payload, '1', MUCH);
    payload[MUCH] = '\0';
    for (int i = 0; i < ENTRIES / 2; i++) {
        char id[16];
        struct wal_entry entry;

        (void)snprintf(id, sizeof(id), "%s%d", prefix, i);
        entry = kit_entry(id, NULL, payload);
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
    free(payload);
}

/* A large rewritten segment, with large content in the pack, of which half is deleted since, and
 * entries after it. */
static struct sim_disk *make_disk_to_erase(void)
{
    struct sim_disk *disk = sim_disk_create(1);
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *deleted = kit_create(store, "t");
    char *large = malloc(LARGE + 1);
    struct wal_entry entry = kit_entry("large", NULL, "{}");

    assert_non_null(large);
    memset(large, '1', LARGE);
    entry.payload = (struct wal_slice){large, LARGE};
    append_much(session, "s");
    append_much(deleted, "t");
    assert_ok(kit_try_append(deleted, &entry, NULL, NULL));
    free(large);
    assert_ok(try_compact(store));
    append_half(session, ENTRIES / 2);
    assert_ok(wal_session_delete(deleted, NULL));
    wal_session_close(deleted);
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* A compaction by a process that the fault strikes. False: it did not. */
static bool compact_with_fault(struct sim_disk *disk, const struct sim_fault *fault)
{
    struct sim_process *process = sim_process_create(disk);
    struct arena_heap arena;
    struct wal_store *store;
    bool struck;

    arena_heap_init(&arena);
    store = open_store_with(process, &arena.heap, 0);
    sim_process_on_death(process, sim_jump, &death);
    sim_process_add_fault(process, fault);
    if (setjmp(death) == 0) {
        (void)!try_compact(store);
    }
    struck = sim_process_counts(process)->faults > 0;
    sim_process_destroy(process);
    arena_heap_deinit(&arena);
    return struck;
}

/* The files of a stream: segments that the chain does not have, and files that a compaction was
 * writing. */
static uint32_t count_leftovers(struct sim_disk *disk, const char *directory, const uint64_t *ids,
                                uint32_t count)
{
    uint32_t found = 0;

    for (uint64_t id = 1; id < 64; id++) {
        char path[64];
        bool is_live = false;

        for (uint32_t i = 0; i < count; i++) {
            is_live |= ids[i] == id;
        }
        (void)snprintf(path, sizeof(path), "/store/%s/%016" PRIx64 ".rewrite", directory, id);
        found += sim_file_exists(disk, path);
        (void)snprintf(path, sizeof(path), "/store/%s/%016" PRIx64 ".seg", directory, id);
        found += sim_file_exists(disk, path) && !is_live && id < ids[count - 1];
    }
    return found;
}

static void check_no_leftovers(struct sim_disk *disk, struct wal_store *store)
{
    struct wal__log *logs[] = {&store->core.log, &store->core.blobs.log};

    for (size_t k = 0; k < 2; k++) {
        uint64_t ids[64];
        uint32_t count = wal__log_segment_count(logs[k]);

        assert_in_range(count, 1, 64);
        for (uint32_t i = 0; i < count; i++) {
            ids[i] = wal__log_segment_at(logs[k], i)->id;
        }
        assert_int_equal(count_leftovers(disk, logs[k]->directory, ids, count), 0);
    }
}

/* What erasing would still find. */
static uint64_t count_dead_bytes(struct wal_store *store)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .flags = WAL_STORE_COMPACT_DRY_RUN |
                                                               WAL_STORE_COMPACT_ERASE};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_store_compact(store, &options, &result, NULL));
    return result.dead_bytes;
}

static void erase_from(struct sim_disk *disk, struct wal_store *store)
{
    assert_ok(try_compact(store));
    check_no_leftovers(disk, store);
    assert_int_equal(count_dead_bytes(store), 0);
}

/* Erases as another process, which opens the store now. */
static void erase(struct sim_disk *disk)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);

    erase_from(disk, store);
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
}

/* A process has the store open all the time, so that none opens it alone. It does not know of new
 * files; it erases, or one that opens the store then. */
static bool erases_after(struct sim_disk *disk, const struct sim_fault *fault, bool by_old)
{
    const struct sim_power_loss loss = {.landing = SIM_PERSIST_NONE};
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store =
        open_store_with(process, &wal__heap_libc, by_old ? WAL_OPEN_PREAD : 0);
    struct wal_session *session = kit_session(store, "s");
    bool struck;

    /* The indexes of the segments are loaded then. */
    assert_int_equal(count_read(session, 0, 0), ENTRIES);
    wal_session_close(session);
    struck = compact_with_fault(disk, fault);
    /* Then the next compaction makes a segment of another id. */
    wal_session_close(kit_create(store, "u"));
    if (by_old) {
        erase_from(disk, store);
    } else {
        erase(disk);
    }
    (void)!wal_close(store, NULL);
    sim_process_destroy(process);
    sim_disk_power_loss(disk, &loss, 1);
    process = sim_process_create(disk);
    store = open_store(process);
    assert_int_equal(count_dead_bytes(store), 0);
    check_no_leftovers(disk, store);
    kit_close(store);
    sim_process_destroy(process);
    open_and_check(disk);
    return struck;
}

static void erase_after_each(struct sim_fault fault)
{
    struct sim_disk *made = make_disk_to_erase();
    bool struck = true;

    for (fault.after = 0; struck; fault.after++) {
        for (int by_old = 0; by_old <= 1; by_old++) {
            struct sim_disk *disk = sim_disk_clone(made);

            struck = erases_after(disk, &fault, by_old != 0);
            sim_disk_destroy(disk);
        }
    }
    assert_true(fault.after > 3);
    sim_disk_destroy(made);
}

TEST(leftovers__erasing_after_a_killed_compaction)
{
    erase_after_each((struct sim_fault){.call = SIM_ANY, .effect = SIM_KILL_AFTER});
}

TEST(leftovers__erasing_after_a_failed_sync)
{
    erase_after_each(
        (struct sim_fault){.call = SIM_SYNC_DIRECTORY, .effect = SIM_FAIL, .sys_errno = EIO});
}

/* -------------------------------------------------------------- reading --- */

/* As make_disk; then a summary replaces the first entry. */
static struct sim_disk *make_summarised_disk(void)
{
    const struct wal_compact_options options = {
        .struct_size = sizeof(options), .first_kept = kit_text("e1"), .summary = kit_text("e0")};
    struct sim_disk *disk = make_disk();
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = open_store(process);
    struct wal_session *session = kit_session(store, "s");

    assert_ok(wal_session_compact(session, &options, NULL, NULL, NULL));
    wal_session_close(session);
    kit_close(store);
    sim_process_destroy(process);
    return disk;
}

/* A process that reads by pread(2) and does not know that segments were replaced finds what a
 * compaction of the session kept. */
TEST(leftovers__kept_entries_of_a_replaced_segment)
{
    struct sim_fault fault = {.call = SIM_ANY, .effect = SIM_KILL_AFTER};
    struct sim_disk *made = make_summarised_disk();
    bool struck = true;

    for (fault.after = 0; struck; fault.after++) {
        struct sim_disk *disk = sim_disk_clone(made);
        struct sim_process *process = sim_process_create(disk);
        struct wal_store *store = open_store_with(process, &wal__heap_libc, WAL_OPEN_PREAD);
        struct wal_session *session = kit_session(store, "s");

        /* The branch is loaded then, the ids are not. */
        assert_int_equal(count_read(session, 0, 0), ENTRIES + 1);
        struck = compact_with_fault(disk, &fault);
        assert_int_equal(count_read(session, WAL_ENTRY_CURSOR_SINCE_COMPACTION, 0), ENTRIES);
        wal_session_close(session);
        (void)!wal_close(store, NULL);
        sim_process_destroy(process);
        sim_disk_destroy(disk);
    }
    assert_true(fault.after > 3);
    sim_disk_destroy(made);
}

enum { HELD_US = 300000 };

static const char canary[] = "CANARY-of-a-title-4711";

/* A store with a catalogue that has the title of a session, which is deleted since. */
static struct wal_store *make_store(void)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_titled(store, "s", canary);

    kit_append(session, "a", NULL);
    (void)kit_compact(store, 0);
    assert_true((kit_find("store/index/catalogue", canary, sizeof(canary) - 1) >= 0));
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    return store;
}

/* Locks a byte of LOCK, as a process that writes a file does. */
static int lock_byte(off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int file = open("store/LOCK", O_RDWR | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    return file;
}

KIT_TEST(abandoned__files_go_though_others_have_the_store_open)
{
    const char *const paths[] = {"store/index/catalogue.new",
                                 "store/index/0000000000000001.idx.new",
                                 "store/index/pack-0000000000000001.idx.new",
                                 "store/log/0000000000000007.seg.new",
                                 "store/pack/0000000000000007.seg.new",
                                 "store/log/0000000000000001.rewrite"};
    const size_t count = sizeof(paths) / sizeof(paths[0]);
    struct wal_store *store = make_store();
    uint8_t digest[32];

    (void)kit_store();
    assert_ok(wal_blob_put(store, kit_text(canary), digest, NULL));
    for (size_t i = 0; i < count; i++) {
        kit_write_file(paths[i], canary, sizeof(canary));
    }
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    for (size_t i = 0; i < count; i++) {
        if (kit_exists(paths[i])) {
            fail_msg("%s is still there", paths[i]);
        }
    }
    assert_true(kit_exists("store/index/catalogue"));
    assert_false((kit_find("store/index/catalogue", canary, sizeof(canary) - 1) >= 0));
}

/* Of a log that was empty when the compaction looked, as another process began and ended its first
 * segment meanwhile. */
KIT_TEST(abandoned__index_of_a_segment_after_an_empty_log_stays)
{
    const char *path = "store/index/0000000000000001.idx";
    struct wal_store *store = kit_store();

    kit_write_file(path, canary, sizeof(canary));
    (void)kit_compact(store, 0);
    assert_true(kit_exists(path));
}

/* The first was killed before it wrote the catalogue; nothing is left to rewrite for the second. */
KIT_TEST(erase__old_catalogue_goes_though_nothing_is_rewritten)
{
    struct wal_store *store = make_store();

    (void)kit_store();
    assert_int_equal(rename("store/index/catalogue", "old"), 0);
    while (kit_compact(store, WAL_STORE_COMPACT_ERASE).rewritten > 0) {
    }
    assert_int_equal(rename("old", "store/index/catalogue"), 0);
    assert_true((kit_find("store/index/catalogue", canary, sizeof(canary) - 1) >= 0));
    assert_int_equal(kit_compact(store, WAL_STORE_COMPACT_ERASE).rewritten, 0);
    assert_false((kit_find("store/index/catalogue", canary, sizeof(canary) - 1) >= 0));
}

/* A process that has what was erased in memory writes a catalogue meanwhile. */
KIT_TEST(erase__waits_for_a_process_that_writes_a_catalogue)
{
    struct wal_store *store = make_store();
    int how;
    pid_t child;
    int says[2];
    char byte;

    assert_int_equal(pipe(says), 0);
    child = kit_start_process();
    if (child == 0) {
        (void)lock_byte(WAL__LOCK_CATALOGUE);
        kit_write_file("store/index/catalogue.new", canary, sizeof(canary));
        assert_int_equal(write(says[1], "l", 1), 1);
        (void)usleep(HELD_US);
        _exit(rename("store/index/catalogue.new", "store/index/catalogue"));
    }
    assert_int_equal(read(says[0], &byte, 1), 1);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_true(kit_exists("store/index/catalogue"));
    assert_false((kit_find("store/index/catalogue", canary, sizeof(canary) - 1) >= 0));
    assert_false(kit_exists("store/index/catalogue.new"));
    (void)close(says[0]);
    (void)close(says[1]);
}

/* With the lock of its writers, nobody writes a temporary file. */
KIT_TEST(abandoned__files_that_a_process_writes_stay)
{
    struct wal_store *store = make_store();
    int held = lock_byte(WAL__LOCK_INDEX);

    kit_write_file("store/index/0000000000000099.idx.new", canary, sizeof(canary));
    (void)kit_compact(store, 0);
    assert_true(kit_exists("store/index/0000000000000099.idx.new"));
    (void)close(held);
    (void)kit_compact(store, 0);
    assert_false(kit_exists("store/index/0000000000000099.idx.new"));
}

static struct wal_segment_info first_segment(struct wal_store *store)
{
    struct wal_segment_cursor *cursor = NULL;
    struct wal_segment_info info = WAL_INIT(wal_segment_info);

    assert_ok(wal_segment_cursor_open(store, &cursor, NULL));
    assert_ok(wal_segment_cursor_next(cursor, &info, NULL));
    wal_segment_cursor_close(cursor);
    return info;
}

/* Writes the header of an index file of the segment; *path is its name. */
static void put_index(const char *store, const struct wal_segment_info *segment,
                      enum wal__search_kind kind, char path[128])
{
    struct wal__search_file file = {
        .kind = (uint32_t)kind, .id = segment->id, .identity = segment->identity, .page_count = 1};
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    char name[WAL__SEARCH_FILE_NAME];

    wal__search_file_encode(&file, bytes);
    wal__search_file_name(segment->id, kind, name);
    snprintf(path, 128, "%s/index/%s", store, name);
    kit_write_file(path, bytes, sizeof(bytes));
}

KIT_TEST(names__of_both_kinds_and_others)
{
    static const struct {
        const char *name;
        bool is_one;
        bool is_temporary;
    } cases[] = {
        {"00000000000000ab.fts", true, false},
        {"00000000000000ab.deep.fts", true, false},
        {"00000000000000ab.fts.new-0123456789abcdef", true, true},
        {"00000000000000ab.deep.fts.new-0123456789abcdef", true, true},
        {"00000000000000ab.fts.new-0123456789abcde", false, false},
        {"00000000000000ab.fts.new-0123456789abcdef0", false, false},
        {"00000000000000ab.fts.new", false, false},
        {"00000000000000AB.fts", false, false},
        {"0000000000000ab.fts", false, false},
        {"00000000000000ab.idx", false, false},
        {"pack-00000000000000ab.idx", false, false},
        {"catalogue", false, false},
        {"", false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum wal__search_kind kind = WAL__SEARCH_TEXT;
        bool is_temporary = false;
        uint64_t id = 0;
        bool is_one = wal__search_file_is_name(cases[i].name, &id, &kind, &is_temporary);

        assert_int_equal(is_one, cases[i].is_one);
        if (is_one) {
            assert_int_equal(id, 0xab);
            assert_int_equal(is_temporary, cases[i].is_temporary);
            assert_int_equal(kind, strstr(cases[i].name, "deep") != NULL ? WAL__SEARCH_DEEP
                                                                         : WAL__SEARCH_TEXT);
        }
    }
}

KIT_TEST(header__each_damaged_byte_is_detected)
{
    const struct wal__search_file file = {.kind = WAL__SEARCH_DEEP,
                                          .id = 3,
                                          .identity = UINT64_MAX,
                                          .last_sequence = 5,
                                          .time_min = -1,
                                          .time_max = 6,
                                          .text_size = 7,
                                          .rows = 8,
                                          .page_count = 1025,
                                          .table_crc = 9};
    struct wal__search_file read;
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    const struct wal__span cut = {bytes, sizeof(bytes) - 1};

    wal__search_file_encode(&file, bytes);
    assert_int_equal(wal__search_file_decode(span, &read), WAL__FMT_OK);
    assert_int_equal(read.id, 3);
    assert_true(read.identity == UINT64_MAX);
    assert_int_equal(read.time_min, -1);
    assert_int_equal(read.page_count, 1025);
    assert_int_equal(wal__search_file_pages(&read), 4096 + 8192);
    assert_int_equal(wal__search_file_decode(cut, &read), WAL__FMT_SHORT);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 0x10;
        assert_int_not_equal(wal__search_file_decode(span, &read), WAL__FMT_OK);
        bytes[i] ^= 0x10;
    }
}

KIT_TEST(compact__removes_the_index_of_a_replaced_segment)
{
    struct wal_store *store = kit_store();
    struct wal_segment_info segment;
    char text[128];
    char deep[128];

    (void)kit_create_filled(store, "s", "a b");
    segment = first_segment(store);
    put_index("store", &segment, WAL__SEARCH_TEXT, text);
    put_index("store", &segment, WAL__SEARCH_DEEP, deep);
    kit_compact(store, 0);
    assert_false(kit_exists(text));
    assert_false(kit_exists(deep));
    segment = first_segment(store);
    put_index("store", &segment, WAL__SEARCH_TEXT, text);
    kit_compact(store, 0);
    assert_true(kit_exists(text)); /* nothing replaced it */
}

KIT_TEST(compact__removes_unfinished_and_damaged_files)
{
    static const char *const gone[] = {
        "store/index/0000000000000001.fts.new-0123456789abcdef",
        "store/index/0000000000000001.deep.fts",
        "store/index/00000000000000ff.fts",
    };
    struct wal_store *store = kit_store();

    (void)kit_create_filled(store, "s", "a b");
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        kit_write_file(gone[i], "canary", 6);
    }
    kit_write_file("store/index/other", "mine", 4);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        assert_false(kit_exists(gone[i]));
    }
    assert_true(kit_exists("store/index/other"));
}

static const char draft[] = "store/index/0000000000000001.fts.new-0123456789abcdef";

static const char named[] = "store/index/0000000000000001.fts";

/* Its maker names the draft before it can be removed. */
static enum wal_status unlink_late(void *ctx, const char *path, int *sys_errno)
{
    if (strstr(path, ".fts.new-") != NULL) {
        assert_int_equal(rename(draft, named), 0);
    }
    return wal__io_posix.unlink(ctx, path, sys_errno);
}

KIT_TEST(compact__draft_that_gets_its_name_is_removed)
{
    const struct wal_open_options options = {.struct_size = sizeof(options)};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal__io io = wal__io_posix;

    wal_session_close(session);
    kit_close(store);
    io.unlink = unlink_late;
    assert_ok(wal__store_open("store", &options, &wal__heap_libc, &io, &store, NULL));
    kit_write_file(draft, "canary", 6);
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_false(kit_exists(draft));
    assert_false(kit_exists(named));
    kit_close(store);
}

KIT_TEST(compact__index_that_cannot_be_removed)
{
    static const char path[] = "store/index/00000000000000ff.fts";
    struct wal_store *store = kit_store();
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_error error = KIT_ERROR;

    (void)kit_create_filled(store, "s", "a b");
    assert_int_equal(mkdir(path, 0700), 0); /* a directory in its place */
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    options.flags = WAL_STORE_COMPACT_ERASE;
    assert_int_not_equal(wal_store_compact(store, &options, NULL, &error), WAL_OK);
    assert_non_null(strstr(error.file, "00000000000000ff.fts"));
}

KIT_TEST(backup__removes_the_index_of_a_replaced_segment)
{
    struct wal_store *store = kit_store();
    struct wal_segment_info segment;
    char path[128];

    (void)kit_create_filled(store, "s", "a b");
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    segment = first_segment(store);
    put_index("copy", &segment, WAL__SEARCH_TEXT, path);
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    assert_true(kit_exists(path));
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_ok(wal_store_backup(store, "copy", NULL, NULL, NULL));
    assert_false(kit_exists(path));
}
