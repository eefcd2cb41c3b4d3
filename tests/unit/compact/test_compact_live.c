/*
 * test_compact_live.c - what readers and writers see of a store whose log was compacted: the same
 * as before, of all that is live (SPEC.md 3.9). A compaction that its progress function stops in a
 * segment (agentwal/admin.h). Records that are dead and damaged: compaction leaves their segment as
 * it is and names it, and erasing drops them unread (docs/keeping.md).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/kit/store_kit.h"

enum { ENTRIES = 400 };

/* Many entries with ids that tell their rank, and payloads that compress. */
static void append_many(struct wal_session *session, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "e%u", i);
        kit_append(session, id, NULL);
    }
}

KIT_TEST(compact__resent_entry_that_was_erased_is_a_duplicate)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_entry entry = kit_entry("a", NULL, "{\"id\":\"a\"}");

    kit_redact(session, "a");
    assert_int_equal(kit_compact(store, WAL_STORE_COMPACT_ERASE).erased_records, 1);
    assert_ok(kit_try_append(session, &entry, &result, kit_error()));
    assert_int_equal(result.duplicates, 1);
    /* What is left of it is compared. */
    entry.type = kit_text("custom");
    assert_int_equal(kit_try_append(session, &entry, &result, kit_error()), WAL_EEXISTS);
    /* A second compaction finds nothing to erase. */
    assert_int_equal(kit_compact(store, WAL_STORE_COMPACT_ERASE).erased_records, 0);
}

KIT_TEST(compact__erased_compaction_still_begins_the_branch)
{
    struct wal_entry_cursor_options since = {.struct_size = sizeof(since),
                                             .flags = WAL_ENTRY_CURSOR_SINCE_COMPACTION};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b c");
    struct wal_compact_options options = {.struct_size = sizeof(options),
                                          .first_kept = kit_text("b"),
                                          .summary = kit_text("a secret")};
    struct wal_append_result result = {.struct_size = sizeof(result)};

    assert_ok(wal_session_compact(session, &options, NULL, &result, NULL));
    kit_redact(session, result.last_id);
    kit_append(session, "d", NULL);
    for (int i = 0; i < 3; i++) {
        const char *ids = kit_list_ids(session, &since);

        assert_memory_equal(ids, "b c ", 4);
        assert_string_equal(ids + strlen(ids) - 2, " d");
        (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    }
}

/* The slices of all entries are compared after the last one was read. */
KIT_TEST(compact__pinned_slices_stay)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .flags = WAL_ENTRY_CURSOR_PINNED};
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry *entries = test_memory(ENTRIES * sizeof(*entries));
    struct wal_entry_cursor *cursor = NULL;

    append_many(session, ENTRIES);
    (void)kit_compact(store, 0);
    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        entries[i].struct_size = sizeof(entries[i]);
        assert_ok(wal_entry_cursor_next(cursor, &entries[i], NULL));
    }
    for (uint32_t i = 0; i < ENTRIES; i++) {
        char id[16];
        char payload[32];

        (void)snprintf(id, sizeof(id), "e%u", i);
        (void)snprintf(payload, sizeof(payload), "{\"id\":\"%s\"}", id);
        assert_slice(entries[i].id, id);
        assert_slice(entries[i].payload, payload);
        if (i > 0) {
            (void)snprintf(id, sizeof(id), "e%u", i - 1);
            assert_slice(entries[i].parent_id, id);
        }
    }
    wal_entry_cursor_close(cursor);
}

/* A handle that has the former tail segment as its tail. */
KIT_TEST(compact__other_handle_whose_tail_was_rewritten)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_store *other;
    struct wal_session *seen;

    (void)kit_compact(store, 0);
    kit_append(session, "c", NULL);
    other = kit_open("store", 0);
    seen = kit_session(other, "s");
    assert_branch(seen, "a b c");
    for (int i = 0; i < 3; i++) {
        (void)kit_compact(store, 0);
        assert_branch(seen, "a b c");
    }
    kit_append(seen, "d", NULL);
    kit_append(session, "e", NULL);
    assert_branch(seen, "a b c d e");
    assert_branch(session, "a b c d e");
    (void)kit_compact(other, 0);
    assert_branch(session, "a b c d e");
}

KIT_TEST(compact__open_cursors_go_on)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_doc_cursor *docs = NULL;

    append_many(session, ENTRIES);
    (void)kit_put(store, session, "k1", "1");
    (void)kit_put(store, session, "k2", "2");
    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_ok(wal_doc_cursor_open(store, session, NULL, &docs, NULL));
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    for (uint32_t i = 0; i < ENTRIES; i++) {
        char id[16];

        if (i % 100 == 50) {
            (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
            (void)snprintf(id, sizeof(id), "z%u", i);
            kit_append(session, id, NULL);
        }
        (void)snprintf(id, sizeof(id), "e%u", i);
        assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
        assert_slice(entry.id, id);
    }
    assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
    assert_slice(doc.key, "k2");
    assert_slice(doc.value, "2");
    assert_int_equal(wal_doc_cursor_next(docs, &doc, NULL), WAL_END);
    wal_doc_cursor_close(docs);
    wal_entry_cursor_close(cursor);
}

/* Damages the INDEX in the oldest segment's file. */
static void damage_index(void)
{
    static const char magic[] = "AGWALIDX";

    assert_int_equal(system("cp \"$(ls store/log/*.seg | head -n 1)\" oldest"), 0);
    kit_flip("oldest", kit_find("oldest", magic, sizeof(magic) - 1) + 20);
    assert_int_equal(system("cp oldest \"$(ls store/log/*.seg | head -n 1)\""), 0);
}

/* All but the first line, which counts the bytes of records that are there. */
static void assert_same(struct wal_store *store, struct wal_session *session, const char *before)
{
    char *now = kit_snapshot(store, session);

    assert_string_equal(strchr(now, '\n'), strchr(before, '\n'));
    free(now);
}

/* The records of its blocks are applied again, in the order of the log. */
KIT_TEST(compact__index_of_a_rewritten_segment_is_lost)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *fork;
    struct wal_session *gone = kit_create(store, "gone");
    char *before[2];

    append_many(session, ENTRIES);
    kit_append(gone, "g", NULL);
    fork = kit_fork(session, "e7", "f");
    for (int i = 0; i < 20; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "x%d", i);
        kit_append(fork, id, NULL);
        kit_append(session, id, NULL);
        (void)kit_put(store, i % 2 == 0 ? session : fork, "k", i % 4 < 2 ? "1" : "\"two\"");
    }
    kit_redact(session, "e9");
    kit_redact(fork, "e3");
    kit_move_head(session, "left", "e4");
    kit_move_head(session, "main", "x3");
    assert_ok(wal_session_delete(gone, NULL));
    wal_session_close(gone);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    before[0] = kit_snapshot(store, session);
    before[1] = kit_snapshot(store, fork);
    wal_session_close(session);
    wal_session_close(fork);
    kit_close(store);
    assert_int_equal(system("rm -f store/index/*"), 0);
    damage_index();
    for (int i = 0; i < 2; i++) {
        store = kit_open("store", i == 0 ? 0 : WAL_OPEN_PREAD);
        session = kit_session(store, "s");
        fork = kit_session(store, "f");
        assert_same(store, session, before[0]);
        assert_same(store, fork, before[1]);
        assert_int_equal(wal_session_open(store, kit_text("gone"), &gone, NULL), WAL_ENOTFOUND);
        wal_session_close(session);
        wal_session_close(fork);
        kit_close(store);
    }
    free(before[0]);
    free(before[1]);
}

/* The source of a fork was deleted after the fork was made, and a fork of the fork after that: by
 * sequence alone the fork is known when its source goes. */
KIT_TEST(compact__index_lost_and_source_deleted)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b c");
    struct wal_session *fork;
    struct wal_session *last;

    fork = kit_fork(session, "b", "f");
    kit_append(fork, "x", NULL);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    last = kit_fork(fork, "x", "g");
    kit_append(last, "y", NULL);
    assert_ok(wal_session_delete(fork, NULL));
    wal_session_close(fork);
    wal_session_close(last);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    kit_close(store);
    assert_int_equal(system("rm -f store/index/*"), 0);
    damage_index();
    store = kit_store();
    last = kit_session(store, "g");
    assert_branch(last, "a b x y");
}

enum { STOPPED_WITH = 77, CONTENT_SIZE = 1024 * 1024 };

struct caller {
    uint32_t calls;
    uint32_t stops_at;
    uint64_t done;
    uint64_t total;
};

static int32_t on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct caller *caller = ctx;

    caller->calls++;
    assert_true(done <= total);
    caller->done = done;
    caller->total = total;
    return caller->calls == caller->stops_at ? STOPPED_WITH : 0;
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Compacts at a rate at which it takes minutes, and stops it. */
static void stop_compaction(struct wal_store *store, uint32_t flags)
{
    struct caller caller = {.stops_at = 2};
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .rate = 16 * 1024,
        .progress = on_progress,
        .ctx = &caller,
    };
    struct wal_error error = KIT_ERROR;
    double begin = seconds_now();

    assert_int_equal(wal_store_compact(store, &options, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, STOPPED_WITH);
    assert_int_equal(caller.calls, 2);
    assert_int_equal(caller.done, 0);
    assert_true(seconds_now() - begin < 30);
}

KIT_TEST(stop__in_a_segment_of_the_log)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");

    for (uint32_t i = 0; i < 1000; i++) {
        kit_append(session, NULL, NULL);
    }
    kit_append_all(session, "a b");
    stop_compaction(store, 0);
    kit_append(session, "c", NULL);
    assert_true(kit_compact(store, 0).rewritten > 0);
}

/* Random content is not compressed. */
static void put_content(struct wal_store *store, uint32_t seed)
{
    uint8_t *bytes = malloc(CONTENT_SIZE);
    uint8_t digest[WAL_DIGEST_SIZE];

    assert_non_null(bytes);
    for (size_t i = 0; i < CONTENT_SIZE; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    assert_ok(wal_blob_put(store, (struct wal_slice){bytes, CONTENT_SIZE}, digest, NULL));
    free(bytes);
}

KIT_TEST(stop__in_a_segment_of_the_pack)
{
    struct wal_store *store = kit_store();

    put_content(store, 1);
    put_content(store, 2);
    stop_compaction(store, WAL_STORE_COMPACT_ERASE);
    stop_compaction(store, WAL_STORE_COMPACT_ERASE);
    assert_true(kit_compact(store, 0).rewritten > 0);
}

static const char marker[] = "QZJXKVWPYHGBFMUC";

/* Of the damaged file. */
enum place {
    SEGMENT,   /* of the log */
    REWRITTEN, /* of the log */
    PACK,      /* a segment of it */
    REWRITTEN_PACK,
    PLACES
};

enum {
    IN_LOG = 40 * 1024, /* more than a block, and not a blob */
    IN_PACK = 300 * 1024
};

/* --- the store ---------------------------------------------------------- */

/* An entry whose payload has the marker. */
static void append_marked(struct wal_session *session, size_t size)
{
    char *payload = malloc(size + 1);
    struct wal_entry entry;
    uint64_t state = 7;

    assert_non_null(payload);
    for (size_t i = 0; i < size; i++) {
        payload[i] = (char)('a' + kit_random(&state) % 26);
    }
    memcpy(payload + size / 2, marker, sizeof(marker) - 1);
    payload[0] = '"';
    payload[size - 1] = '"';
    payload[size] = '\0';
    entry = kit_entry("marked", NULL, payload);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

static struct wal_store_compact_result compact_damaged(struct wal_store *store, uint32_t flags)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags, .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};

    assert_done(wal_store_compact(store, &options, &result, kit_error()));
    return result;
}

/* Makes a store with a record that is dead and damaged in the file at *path. */
static void make(enum place place, const char **path)
{
    bool is_in_pack = place == PACK || place == REWRITTEN_PACK;
    struct wal_store *store = kit_store();
    struct wal_session *dead = kit_create(store, "dead");
    struct wal_session *live = kit_create(store, "live");

    *path = is_in_pack ? "store/pack/0000000000000001.seg" : "store/log/0000000000000001.seg";
    append_marked(dead, is_in_pack ? IN_PACK : IN_LOG);
    kit_append_all(live, "a b");
    if (place == REWRITTEN || place == REWRITTEN_PACK) {
        (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    }
    kit_append(live, "c", NULL);
    assert_ok(wal_session_delete(dead, NULL));
    wal_session_close(dead);
    wal_session_close(live);
    kit_close(store);
    kit_flip(*path, kit_find(*path, marker, sizeof(marker) - 1));
}

static ino_t inode_of(const char *path)
{
    struct stat stat;

    assert_int_equal(lstat(path, &stat), 0);
    return stat.st_ino;
}

static void assert_live(struct wal_store *store)
{
    struct wal_session *live = kit_session(store, "live");

    assert_branch(live, "a b c");
    wal_session_close(live);
}

/* --- the tests ---------------------------------------------------------- */

static void refuse(enum place place)
{
    const char *path;
    struct wal_store_compact_result result;
    struct wal_store *store;
    ino_t before;

    make(place, &path);
    before = inode_of(path);
    store = kit_store();
    result = compact_damaged(store, 0);
    if (result.refused != 1 || strstr(result.refusal.file, path) == NULL) {
        fail_msg("place %d: %u refused: %s: %s", (int)place, (unsigned)result.refused,
                 result.refusal.file, result.refusal.text);
    }
    assert_int_equal(result.refusal.status, WAL_ECORRUPT);
    assert_int_equal(inode_of(path), before);
    assert_live(store);
    kit_close(store);
    store = kit_store();
    assert_live(store);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(dead_damage__keeps_the_segment)
{
    for (int place = 0; place < PLACES; place++) {
        refuse((enum place)place);
    }
}

/* The owner of the contents of a damaged block of the pack is not known: they stay, and that is
 * reported. */
static void erase(enum place place)
{
    const bool stays = place == REWRITTEN_PACK;
    const char *path;
    struct wal_store_compact_result result;
    struct wal_store *store;
    char file[512];

    make(place, &path);
    store = kit_store();
    result = compact_damaged(store, WAL_STORE_COMPACT_ERASE);
    (void)snprintf(file, sizeof(file), "%s", result.refusal.file);
    assert_int_equal(result.refused, stays);
    assert_true(!stays || strstr(file, path) != NULL);
    assert_int_equal(system("grep -rqa ZJXKVWPYHGBFMUC store") == 0, stays);
    assert_live(store);
    kit_close(store);
    store = kit_store();
    assert_live(store);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(dead_damage__is_erased)
{
    for (int place = 0; place < PLACES; place++) {
        erase((enum place)place);
    }
}
