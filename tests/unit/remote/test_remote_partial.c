/*
 * test_remote_partial.c - a session of a store that was not handed off comes to another machine
 * with few bytes of that store, whatever it needs of it; and with all of the store where the
 * remote lacks what that takes, or has it damaged.
 */
#include <sys/wait.h>

#include "agentwal/remote.h"
#include "agentwal/transfer.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "remote/layout/layout.h"
#include "tests/lib/kit/describe_kit.h"
#include "tests/lib/kit/large_kit.h"
#include "tests/lib/kit/parts_kit.h"
#include "tests/lib/remote/memory_driver.h"

enum { FILLERS = 24, ENTRY_SIZE = 16 * 1024, CALLS_MAX = 500, NAME_SIZE = 64 };

static struct {
    struct memory_driver memory;
    struct wal_store *store;
    struct wal_remote_writer *writer;
    uint8_t uuid[16];
    struct wal_session *fillers[FILLERS];
    unsigned round;
    struct wal_store *other;
} world;

static struct wal_remote *const remote = &world.memory.remote;
static struct wal_remote_resume_result resumed;

/* --- the store ------------------------------------------------------------ */

/* Entries of noise in all sessions but those that are looked at: some MiB. */
static void fill(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++, world.round++) {
        for (unsigned k = 0; k < FILLERS; k++) {
            char *payload = large_json(world.round * FILLERS + k, ENTRY_SIZE);
            char id[32];

            snprintf(id, sizeof(id), "f%u", world.round);
            large_append(world.fillers[k], id, payload, 0);
        }
    }
}

static void append(const char *id, const char *ids)
{
    struct wal_session *session = kit_session(world.store, id);

    kit_append_all(session, ids);
    wal_session_close(session);
}

static void delete (const char *id)
{
    struct wal_session *session = kit_session(world.store, id);

    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
}

/* An entry whose payload is content; the same one with an edit for each `edits`, which is stored as
 * the difference to the one before. */
static void append_content(const char *id, const char *entry, unsigned edits)
{
    struct wal_session *session = kit_session(world.store, id);
    char *payload = large_json(7, LARGE_MIN + 1000);

    for (unsigned i = 0; i < edits; i++) {
        memcpy(payload + 1000 + (size_t)i * 5000, "edited", 6);
    }
    large_append(session, entry, payload, 0);
    wal_session_close(session);
}

static void end_writer(void *writer)
{
    wal_remote_writer_close(writer);
}

static void push(void)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);

    options.writer[0] = 1;
    options.parallel = 1;
    assert_ok(wal_sync(world.store, NULL));
    if (world.writer == NULL) {
        assert_done(
            wal_remote_writer_open(remote, world.store, &options, &world.writer, kit_error()));
        test_at_end(end_writer, world.writer);
    }
    assert_done(wal_remote_push(world.writer, NULL, kit_error()));
}

static void make_base(uint32_t flags)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);

    options.flags = WAL_REMOTE_COMPACT_NOW | flags;
    assert_done(wal_remote_compact(remote, world.store, &options, &result, kit_error()));
    assert_true(result.base > 0);
}

/* The session s, with entries at the beginning and the end of the store, and content; its fork t;
 * and u, which has one entry. */
static int set_up(void **state)
{
    int result = kit_set_up(state);
    struct wal_session *session;

    memset(&world, 0, sizeof(world));
    memory_driver_init(&world.memory);
    world.store = kit_open("a", WAL_OPEN_CREATE);
    memcpy(world.uuid, kit_store_info(world.store).uuid, 16);
    for (unsigned i = 0; i < FILLERS; i++) {
        char id[16];

        snprintf(id, sizeof(id), "filler%u", i);
        world.fillers[i] = kit_create(world.store, id);
    }
    session = kit_create_titled(world.store, "s", "the one");
    kit_append_all(session, "a b c");
    append_content("s", "large0", 0);
    (void)kit_put(world.store, session, "key", "1");
    wal_session_close(kit_create(world.store, "u"));
    append("u", "only");
    fill(10);
    append_content("s", "large1", 1);
    kit_append_all(session, "d e");
    kit_redact(session, "b");
    fill(8);
    wal_session_close(kit_fork(session, "d", "t"));
    append("t", "t1 t2");
    append_content("t", "large2", 2);
    (void)kit_put(world.store, session, "key", "2");
    wal_session_close(session);
    fill(4);
    append("s", "f");
    push();
    make_base(0);
    return result;
}

/* The other machine has a new store. */
static void begin_other(void)
{
    if (world.other != NULL) {
        kit_close(world.other);
    }
    assert_int_equal(system("rm -rf b b.remotes"), 0);
    world.other = kit_open("b", WAL_OPEN_CREATE);
}

static int tear_down(void **state)
{
    memory_driver_deinit(&world.memory);
    return kit_tear_down(state);
}

#define PARTIAL_TEST(name) TEST_WITH(name, set_up, tear_down)

static uint64_t remote_size(void)
{
    uint64_t size = 0;

    for (size_t i = 0; i < world.memory.count; i++) {
        size += world.memory.objects[i].size;
    }
    return size;
}

/* The objects of a kind: the one of that rank, or NULL. */
static struct memory_object *find(const char *room, unsigned rank)
{
    for (size_t i = 0; i < world.memory.count; i++) {
        if (strstr(world.memory.objects[i].name, room) != NULL && rank-- == 0) {
            return &world.memory.objects[i];
        }
    }
    return NULL;
}

static void remove_all(const char *room)
{
    while (find(room, 0) != NULL) {
        memory_remove(&world.memory, find(room, 0)->name);
    }
}

/* The error is that of the kit. */
static enum wal_status try_resume(const char *id)
{
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);

    options.session = kit_text(id);
    options.directory = WAL_STR("b.remotes");
    options.key = kit_test_key();
    memcpy(options.uuid, world.uuid, sizeof(options.uuid));
    resumed = (struct wal_remote_resume_result)WAL_INIT(wal_remote_resume_result);
    return wal_remote_resume(remote, world.other, &options, &resumed, kit_error());
}

/* Brings the session to a new store, in which it is the same. */
static void bring(const char *id)
{
    begin_other();
    remove_all("/own/");
    assert_done(try_resume(id));
    assert_same_session(world.store, world.other, id);
}

static void bring_alone(const char *id)
{
    bring(id);
    assert_int_equal(resumed.parts, 0);
    assert_true(resumed.bytes > 0);
}

static void bring_whole(const char *id)
{
    bring(id);
    assert_true(resumed.parts > 0);
}

/* --- what it needs -------------------------------------------------------- */

PARTIAL_TEST(partial__a_small_session_takes_few_bytes)
{
    bring_alone("u");
    assert_true(remote_size() > 2 * 8 * KIT_MIB);
    /* The store is there twice, in parts and in segments. */
    assert_true(resumed.bytes < remote_size() / 2 / 8);
}

PARTIAL_TEST(partial__content_and_its_bases_come_along)
{
    bring_alone("s");
    assert_true(resumed.bytes < remote_size() / 2 / 2);
}

static void assert_redacted(const char *id, const char *entry_id)
{
    struct wal_session *session = kit_session(world.other, id);
    struct wal_entry entry = WAL_INIT(wal_entry);

    assert_int_equal(wal_entry_get(session, kit_text(entry_id), &entry, kit_error()),
                     WAL_EREDACTED);
    wal_session_close(session);
}

PARTIAL_TEST(partial__what_is_redacted_remains_so)
{
    bring_alone("s");
    assert_redacted("s", "b");
}

PARTIAL_TEST(partial__a_fork_has_what_it_shares)
{
    bring_alone("t");
    assert_true(resumed.bytes < remote_size() / 2 / 2);
}

PARTIAL_TEST(partial__redacted_through_a_fork)
{
    struct wal_session *session = kit_session(world.store, "t");

    kit_redact(session, "c");
    wal_session_close(session);
    push();
    bring_alone("t");
    begin_other();
    assert_done(try_resume("s"));
    assert_int_equal(resumed.parts, 0);
    assert_redacted("s", "c");
}

PARTIAL_TEST(partial__what_came_after_the_base)
{
    struct wal_session *session = kit_create_filled(world.store, "late", "x y");

    wal_session_close(session);
    append_content("late", "large3", 3);
    push();
    append("s", "g");
    push();
    fill(1);
    push();
    bring_alone("late");
    bring_alone("s");
    /* And a base that reuses segments of the one before. */
    make_base(0);
    fill(10);
    append("late", "z");
    push();
    make_base(0);
    bring_alone("late");
    bring_alone("s");
    bring_alone("u");
    assert_true(resumed.bytes < remote_size() / 2 / 8);
}

PARTIAL_TEST(partial__of_a_store_that_was_compacted)
{
    (void)kit_compact(world.store, 0);
    append("s", "g");
    push();
    make_base(WAL_REMOTE_COMPACT_ANEW);
    bring_alone("s");
    bring_alone("t");
    bring_alone("u");
    assert_true(resumed.bytes < remote_size() / 8);
}

/* Segments that were rewritten take the place of those that the base had. */
PARTIAL_TEST(partial__of_a_store_that_was_compacted_between_bases)
{
    fill(6);
    append("s", "g");
    (void)kit_compact(world.store, 0);
    append("s", "h");
    push();
    bring_alone("s");
    make_base(0);
    bring_alone("s");
    bring_alone("t");
}

PARTIAL_TEST(partial__again_it_brings_what_is_new)
{
    bring_alone("s");
    append("s", "g");
    push();
    assert_done(try_resume("s"));
    assert_int_equal(resumed.kind, WAL_TRANSFER_CONTINUED);
    assert_int_equal(resumed.entries, 1);
    assert_int_equal(resumed.parts, 0);
}

/* --- what is not there ---------------------------------------------------- */

static void name_replica(char path[NAME_SIZE], const char *suffix)
{
    memcpy(path, "b.remotes/", sizeof("b.remotes/"));
    for (unsigned i = 0; i < 16; i++) {
        snprintf(path + strlen(path), 3, "%02x", world.uuid[i]);
    }
    snprintf(path + strlen(path), 16, "%s", suffix);
}

static void assert_unclaimed(void)
{
    assert_null(find("/own/", 0));
    assert_int_equal(kit_store_info(world.other).sessions, 0);
}

PARTIAL_TEST(partial__no_such_session)
{
    char path[NAME_SIZE];

    begin_other();
    assert_fails(try_resume("none"), WAL_ENOTFOUND, "remote sessions");
    assert_unclaimed();
    name_replica(path, "");
    assert_false(kit_exists(path));
}

PARTIAL_TEST(partial__a_session_that_was_deleted_since)
{
    delete ("u");
    push();
    begin_other();
    assert_int_equal(try_resume("u"), WAL_ENOTFOUND);
    assert_unclaimed();
}

/* Without indexes all is read, and is right. */
PARTIAL_TEST(partial__a_base_without_indexes)
{
    assert_non_null(find("/index/", 0));
    remove_all("/index/");
    bring("s");
    bring("u");
}

PARTIAL_TEST(partial__no_base)
{
    remove_all("/index/");
    remove_all("/base/");
    remove_all("/seg/");
    bring_whole("s");
}

/* The parts that the base has are gone, as after a collection. */
PARTIAL_TEST(partial__parts_below_the_base_are_gone)
{
    append("s", "g");
    push();
    remove_all("/part/0000000000000001/0000000000000001");
    bring_alone("s");
}

/* The parts have it yet: with them, or not, if nothing is before it. */
PARTIAL_TEST(partial__a_segment_is_lost)
{
    enum wal_status status;

    memory_remove(&world.memory, find("/seg/", 0)->name);
    begin_other();
    status = try_resume("s");
    if (status == WAL_OK) {
        assert_same_session(world.store, world.other, "s");
    } else {
        assert_int_equal(status, WAL_ECORRUPT);
        assert_unclaimed();
    }
}

/* --- what is damaged ------------------------------------------------------ */

static void put_index(const char *name, const uint8_t *bytes, size_t size)
{
    struct wal__driver *driver = remote->driver;

    memory_remove(&world.memory, name);
    assert_ok(driver->calls->put_if_absent(driver, name, (struct wal_slice){bytes, size}, NULL));
}

/* Whatever is in place of the indexes: the sessions are right. */
PARTIAL_TEST(partial__indexes_of_any_bytes)
{
    const struct memory_object *object = find("/index/", 0);
    char name[WAL__STORE_OBJECT_SIZE];
    const size_t size = object->size;
    uint8_t *sound = test_memory(size);
    uint8_t *bytes = test_memory(size + 1);
    uint64_t random = kit_seed();

    assert_true(sound != NULL && bytes != NULL);
    memcpy(sound, object->data, size);
    memcpy(name, object->name, sizeof(name));
    for (unsigned i = 0; i < 24; i++) {
        size_t kept = size;

        memcpy(bytes, sound, size);
        if (i % 3 == 0) {
            kept = (size_t)rng_below(&random, size);
        } else if (i % 3 == 1) {
            bytes[rng_below(&random, i < 12 ? 112 : size)] ^=
                (uint8_t)(1 + rng_below(&random, 255));
        } else {
            /* Counts that are larger than anything. */
            memset(bytes + 12 + 4 * rng_below(&random, 3), 0xff, 4);
        }
        put_index(name, bytes, kept);
        bring(i % 2 == 0 ? "s" : "u");
    }
}

/* Makes the checksums of a log's index right again. */
static void seal_index(uint8_t *index)
{
    const size_t size = 112 + (size_t)wal__get32(index + 12) * 160 +
                        (size_t)wal__get32(index + 16) * 32 + wal__get32(index + 20);

    wal__put32(index + 104, wal__crc32(0, index + 112, size - 112));
    wal__put32(index + 108, wal__crc32(0, index, 108));
}

/* Indexes with right checksums and wrong numbers: postings that lead elsewhere, another segment,
 * another store, another end. */
PARTIAL_TEST(partial__indexes_with_wrong_numbers)
{
    const struct memory_object *object = find("/index/", 0);
    char name[WAL__STORE_OBJECT_SIZE];
    const size_t size = object->size;
    uint8_t *sound = test_memory(size);
    uint8_t *bytes = test_memory(size);
    size_t at = 0;

    assert_true(sound != NULL && bytes != NULL);
    memcpy(sound, object->data, size);
    memcpy(name, object->name, sizeof(name));
    /* The first one of the log. */
    while (memcmp(sound + at, "AGWALIDX", 8) != 0) {
        at++;
    }
    for (unsigned i = 0; i < 8; i++) {
        const size_t postings = at + 112 + (size_t)wal__get32(sound + at + 12) * 160;
        const uint32_t count = wal__get32(sound + at + 16);

        memcpy(bytes, sound, size);
        if (i < 2) {
            for (uint32_t k = 0; k < count; k++) {
                uint8_t *posting = bytes + postings + (size_t)k * 32;

                wal__put32(posting, i == 0 ? 4096 + 8 * k : UINT32_MAX - 64);
            }
        } else {
            static const size_t fields[] = {24, 32, 48, 56, 80, 72};

            bytes[at + fields[i - 2]] ^= 1;
        }
        seal_index(bytes + at);
        put_index(name, bytes, size);
        bring("s");
        bring("u");
    }
}

/* A segment that is damaged where the session is: with the whole store, which reports it, or
 * without, if that part of it is not read. */
PARTIAL_TEST(partial__segments_that_are_damaged)
{
    uint64_t random = kit_seed();

    for (unsigned i = 0; find("/seg/", i) != NULL; i++) {
        struct memory_object *object = find("/seg/", i);
        const size_t at = (size_t)rng_below(&random, object->size);
        enum wal_status status;

        object->data[at] ^= 0x10;
        begin_other();
        remove_all("/own/");
        status = try_resume("u");
        if (status == WAL_OK) {
            assert_same_session(world.store, world.other, "u");
        } else {
            assert_int_equal(status, WAL_ECORRUPT);
            assert_unclaimed();
        }
        /* Claims come before it in the order of names. */
        find("/seg/", i)->data[at] ^= 0x10;
    }
}

/* --- what fails ----------------------------------------------------------- */

/* Each call fails once, before it is done or after it: the next attempt brings the session, with
 * what it needs. */
PARTIAL_TEST(partial__nth_call_fails)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        enum wal_status status;

        begin_other();
        remove_all("/own/");
        world.memory.fails_after = nth % 2 == 0;
        world.memory.fail_at = world.memory.calls + nth;
        status = try_resume("s");
        struck = world.memory.calls >= world.memory.fail_at;
        world.memory.fail_at = 0;
        assert_true(status == WAL_OK || (struck && status == WAL_EREMOTE));
        assert_true(nth < CALLS_MAX);
        assert_done(try_resume("s"));
        assert_int_equal(resumed.parts, 0);
        assert_same_session(world.store, world.other, "s");
    }
}

/* Ends the process at the call of that number. */
static void end_process(void *ctx, const char *call, const char *name)
{
    unsigned *left = ctx;

    (void)call;
    (void)name;
    if (--*left == 0) {
        _exit(1);
    }
}

/* A process is killed at each call, with what it has on disk: the next one brings the session. */
PARTIAL_TEST(partial__killed_at_each_call)
{
    int result = 1;

    for (unsigned nth = 1; result != 0; nth++) {
        pid_t child;

        assert_true(nth < CALLS_MAX);
        begin_other();
        remove_all("/own/");
        kit_close(world.other);
        world.other = NULL;
        child = kit_start_process();
        if (child == 0) {
            world.other = kit_open("b", 0);
            world.memory.hook = end_process;
            world.memory.hook_ctx = &nth;
            _exit(try_resume("t") == WAL_OK ? 0 : 2);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) != 2);
        world.other = kit_open("b", 0);
        assert_done(try_resume("t"));
        assert_int_equal(resumed.parts, 0);
        assert_same_session(world.store, world.other, "t");
    }
}

/* What a process that was killed left there is in nobody's way. */
PARTIAL_TEST(partial__after_a_process_that_was_killed)
{
    char path[NAME_SIZE];

    bring_alone("s");
    name_replica(path, ".bundle");
    assert_false(kit_exists(path));
    kit_write_file(path, "left", 4);
    append("s", "g");
    push();
    assert_done(try_resume("s"));
    assert_int_equal(resumed.entries, 1);
    assert_int_equal(resumed.parts, 0);
    assert_false(kit_exists(path));
}

/* Another process makes a base, and collects the one that is read. */
static void collect(void *ctx, const char *call, const char *name)
{
    bool *is_done = ctx;
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);

    if (*is_done || strcmp(call, "get") != 0 || strstr(name, "/seg/") == NULL) {
        return;
    }
    *is_done = true;
    options.flags = WAL_REMOTE_COMPACT_NOW | WAL_REMOTE_COMPACT_ANEW;
    options.keep_ms = 1;
    assert_done(wal_remote_compact(remote, world.store, &options, NULL, kit_error()));
    kit_pause_ms(5);
    options.flags = 0;
    assert_done(wal_remote_compact(remote, world.store, &options, NULL, kit_error()));
}

PARTIAL_TEST(partial__collected_while_it_is_read)
{
    bool is_done = false;

    begin_other();
    world.memory.hook = collect;
    world.memory.hook_ctx = &is_done;
    assert_done(try_resume("s"));
    world.memory.hook = NULL;
    assert_true(is_done);
    assert_same_session(world.store, world.other, "s");
    assert_true(resumed.parts > 0);
}

/* --- care ----------------------------------------------------------------- */

PARTIAL_TEST(partial__indexes_go_with_their_segments)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    char first[WAL__STORE_OBJECT_SIZE];

    memcpy(first, find("/index/", 0)->name, sizeof(first));
    fill(2);
    push();
    make_base(WAL_REMOTE_COMPACT_ANEW);
    kit_pause_ms(5);
    options.keep_ms = 1;
    assert_done(wal_remote_compact(remote, world.store, &options, NULL, kit_error()));
    assert_null(memory_find(&world.memory, first));
    assert_non_null(find("/index/", 0));
    assert_null(find("/index/", 1));
    bring_alone("s");
}

PARTIAL_TEST(partial__a_check_names_a_damaged_index)
{
    struct memory_object *object = find("/index/", 0);

    assert_done(wal_remote_check(remote, world.uuid, NULL, NULL, NULL, kit_error()));
    object->data[object->size / 2] ^= 1;
    assert_fails(wal_remote_check(remote, world.uuid, NULL, NULL, NULL, kit_error()), WAL_ECORRUPT,
                 "index");
    assert_string_equal(kit_last_error()->file, object->name);
}

static unsigned count_text(const char *text)
{
    const size_t size = strlen(text);
    unsigned count = 0;

    for (size_t i = 0; i < world.memory.count; i++) {
        const struct memory_object *object = &world.memory.objects[i];

        count += object->size >= size && memmem(object->data, object->size, text, size) != NULL;
    }
    return count;
}

/* Indexes have titles and first texts, of which nothing remains. */
PARTIAL_TEST(partial__what_is_erased_is_in_no_index)
{
    struct wal_session *session = kit_create_titled(world.store, "v", "gone-title");
    const struct wal_entry entry =
        kit_entry("v1", NULL, "{\"role\":\"user\",\"content\":\"gone-text\"}");

    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    wal_session_close(session);
    fill(12);
    push();
    make_base(0);
    assert_true(count_text("gone-title") > 0);
    assert_true(count_text("gone-text") > 0);
    delete ("v");
    (void)kit_compact(world.store, WAL_STORE_COMPACT_ERASE);
    assert_done(wal_remote_erase(world.writer, NULL, kit_error()));
    assert_int_equal(count_text("gone-title"), 0);
    assert_int_equal(count_text("gone-text"), 0);
    bring_alone("s");
}
