/*
 * test_part.c - a store is copied part by part: the replica opens as a store after each part, with
 * what the part has and no more; parts that are damaged, of another store, out of order or of
 * another past change nothing.
 */
#include "tests/lib/kit/parts_kit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/replica.h"
#include "engine/base/sha256.h"
#include "format/segment/part.h"
#include "tests/lib/kit/reading_kit.h"
#include "tests/lib/kit/view_kit.h"
#include "tests/lib/store_bytes.h"

enum {
    LARGE = 300 * 1024, /* a payload that is stored as content */
    MEDIUM = 100 * 1024
};

/* A store, and a replica of it. */
struct scene {
    struct wal_store *store;
    struct wal_session *session;
    struct wal_part_reader *reader;
    struct wal_replica *replica;
    struct wal_part_place at[WAL_PART_STREAMS];
    int entries;
};

static void append(struct scene *scene, size_t size)
{
    char *payload = malloc(size + 32);
    struct wal_entry entry;
    char id[16];
    int begin;

    assert_non_null(payload);
    begin = snprintf(payload, size + 32, "{\"x\":\"");
    for (size_t i = 0; i < size; i++) {
        payload[(size_t)begin + i] = (char)('a' + (i * i + i / 5 + (size_t)scene->entries) % 26);
    }
    memcpy(payload + begin + size, "\"}", 3);
    (void)snprintf(id, sizeof(id), "e%d", scene->entries);
    entry = kit_entry(id, NULL, payload);
    assert_ok(kit_try_append(scene->session, &entry, NULL, NULL));
    scene->entries++;
    free(payload);
}

static struct wal_replica *open_replica(void)
{
    struct wal_replica *replica = NULL;

    assert_ok(wal_replica_open("replica", &replica, NULL));
    return replica;
}

static struct scene begin(void)
{
    struct scene scene = {.store = kit_store()};

    scene.session = kit_create(scene.store, "s");
    assert_ok(wal_part_reader_open(scene.store, &scene.reader, NULL));
    scene.replica = open_replica();
    return scene;
}

static void end(struct scene *scene)
{
    wal_replica_close(scene->replica);
    wal_part_reader_close(scene->reader);
    wal_session_close(scene->session);
    kit_close(scene->store);
}

/* Opens the store anew, which ends its segment where much of it is unused. */
static void reopen(struct scene *scene)
{
    wal_part_reader_close(scene->reader);
    wal_session_close(scene->session);
    kit_close(scene->store);
    scene->store = kit_store();
    scene->session = kit_session(scene->store, "s");
    assert_ok(wal_part_reader_open(scene->store, &scene->reader, NULL));
}

/* The number of entries of the replica, which are the first ones, and all durable. */
static int count_entries(void)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL,
                                                     .flags = WAL_ENTRY_CURSOR_DURABLE};
    struct wal_store *store = kit_open("replica", WAL_OPEN_READ_ONLY);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    int count = 0;

    if (wal_session_open(store, kit_text("s"), &session, NULL) == WAL_OK) {
        assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
        while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
            char id[16];

            (void)snprintf(id, sizeof(id), "e%d", count);
            assert_slice(entry.id, id);
            assert_true(entry.payload.size > 0);
            count++;
        }
        wal_entry_cursor_close(cursor);
        wal_session_close(session);
    }
    kit_close(store);
    return count;
}

/* Makes all durable, and reads the next part. */
static enum wal_status step(struct scene *scene, uint64_t max_size, struct wal_slice *part)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_error error = KIT_ERROR;
    enum wal_status status;

    assert_ok(wal_sync(scene->store, NULL));
    status = wal_part_reader_next(scene->reader, scene->at, max_size, part, &info, &error);
    if (status == WAL_OK) {
        assert_memory_equal(info.before, scene->at, sizeof(scene->at));
        assert_int_equal(info.size, part->size);
        assert_ok(wal_part_check(*part, &info, NULL));
        assert_ok(wal_part_verify(*part, &info, NULL));
        memcpy(scene->at, info.after, sizeof(scene->at));
    } else if (status != WAL_END) {
        fail_msg("%s", error.text);
    }
    return status;
}

static void apply(struct scene *scene, struct wal_slice part)
{
    struct wal_part_place position[WAL_PART_STREAMS];

    assert_done(wal_replica_apply(scene->replica, part, kit_error()));
    assert_ok(wal_replica_get_position(scene->replica, position, NULL));
    assert_memory_equal(position, scene->at, sizeof(position));
}

static int ship(struct scene *scene, uint64_t max_size)
{
    struct wal_slice part;
    int parts = 0;
    int last = 0;

    while (step(scene, max_size, &part) == WAL_OK) {
        int now;

        apply(scene, part);
        now = count_entries();
        assert_true(now >= last && now <= scene->entries);
        last = now;
        parts++;
    }
    return parts;
}

KIT_TEST(part__a_replica_follows_the_store)
{
    struct scene scene = begin();

    for (int i = 0; i < 30; i++) {
        append(&scene, i % 7 == 3 ? LARGE : i % 5 == 1 ? MEDIUM : 20);
        if (i % 4 == 0) {
            (void)ship(&scene, 0);
            assert_int_equal(count_entries(), scene.entries);
        }
    }
    (void)ship(&scene, 0);
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

/* The last sequence number that a handle which only reads has in parts. */
static uint64_t last_in_parts(void)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_part_place at[WAL_PART_STREAMS] = {{0}};
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_part_reader *reader = NULL;
    struct wal_slice part;

    assert_ok(wal_part_reader_open(store, &reader, NULL));
    while (wal_part_reader_next(reader, at, 0, &part, &info, NULL) == WAL_OK) {
        memcpy(at, info.after, sizeof(at));
    }
    wal_part_reader_close(reader);
    kit_close(store);
    return at[WAL_PART_LOG].sequence;
}

/* A process was killed, and others may not write. */
KIT_TEST(part__without_live_process_ends_at_the_durable_end)
{
    uint64_t durable;
    int status = 0;
    pid_t process = kit_start_process();

    if (process == 0) {
        struct wal_store *store = kit_store();
        struct wal_session *session = kit_create(store, "s");

        kit_append_as(session, WAL_DURABLE);
        kit_append_as(session, WAL_WRITTEN);
        _exit(kit_store_info(store).last_sequence == 3 ? 0 : 1);
    }
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
    durable = last_in_parts();
    assert_int_equal(durable, 2);
    kit_close(kit_store());
    assert_int_equal(last_in_parts(), durable + 1);
}

KIT_TEST(part__small_parts_have_whole_groups)
{
    struct scene scene = begin();

    for (int i = 0; i < 12; i++) {
        append(&scene, i % 4 == 3 ? LARGE : MEDIUM);
    }
    assert_true(ship(&scene, 1) > 10);
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

KIT_TEST(part__segments_end_and_parts_go_on)
{
    struct scene scene = begin();

    for (int i = 0; i < 4; i++) {
        append(&scene, MEDIUM);
        reopen(&scene);
        for (int j = 0; j < 40; j++) {
            append(&scene, MEDIUM);
        }
        (void)ship(&scene, 0);
    }
    assert_true(scene.at[WAL_PART_LOG].segment > 2);
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

/* Reads from the beginning to the end in parts of this size, and applies them to a new replica. */
static void read_to(struct scene *scene, const struct wal_part_place *end, uint64_t max_size)
{
    static int count;
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_replica *replica = NULL;
    struct wal_error error = KIT_ERROR;
    struct wal_slice part = {NULL, 0};
    enum wal_status status;
    char path[32];

    (void)snprintf(path, sizeof(path), "second%d", count++);
    assert_ok(wal_replica_open(path, &replica, NULL));
    while ((status = wal_part_reader_next_to(scene->reader, info.after, end, max_size, &part, &info,
                                             &error)) == WAL_OK) {
        assert_ok(wal_replica_apply(replica, part, &error));
    }
    if (status != WAL_END) {
        fail_msg("%s", error.text);
    }
    assert_memory_equal(info.after, end, sizeof(info.after));
    wal_replica_close(replica);
}

KIT_TEST(part__made_again_to_each_end)
{
    struct scene scene = begin();
    struct wal_part_place ends[32][WAL_PART_STREAMS];
    int count = 0;

    for (int i = 0; i < 12; i++) {
        struct wal_slice part;

        append(&scene, i % 4 == 3 ? LARGE : MEDIUM);
        if (i == 6) {
            reopen(&scene);
        }
        while (count < 32 && step(&scene, 100, &part) == WAL_OK) {
            memcpy(ends[count++], scene.at, sizeof(scene.at));
        }
    }
    assert_true(count > 12);
    for (int i = 0; i < count; i++) {
        read_to(&scene, ends[i], 0);
        read_to(&scene, ends[i], 1);
        read_to(&scene, ends[i], 50000);
    }
    end(&scene);
}

KIT_TEST(part__end_of_another_past)
{
    struct scene scene = begin();
    struct wal_part_place end_place[WAL_PART_STREAMS];
    struct wal_slice part;

    append(&scene, MEDIUM);
    while (step(&scene, 0, &part) == WAL_OK) {
    }
    append(&scene, MEDIUM);
    assert_ok(wal_sync(scene.store, NULL));
    memcpy(end_place, scene.at, sizeof(end_place));
    end_place[WAL_PART_LOG].chain ^= 1;
    assert_int_equal(
        wal_part_reader_next_to(scene.reader, NULL, end_place, 0, NULL, NULL, kit_error()),
        WAL_ECONFLICT);
    end_place[WAL_PART_LOG].chain ^= 1;
    end_place[WAL_PART_LOG].identity ^= 1;
    assert_int_equal(
        wal_part_reader_next_to(scene.reader, NULL, end_place, 0, NULL, NULL, kit_error()),
        WAL_ECONFLICT);
    end_place[WAL_PART_LOG].identity ^= 1;
    end_place[WAL_PART_LOG].offset = UINT64_MAX;
    assert_int_equal(
        wal_part_reader_next_to(scene.reader, NULL, end_place, 0, NULL, NULL, kit_error()),
        WAL_ECONFLICT);
    end(&scene);
}

KIT_TEST(part__a_replica_opened_again_goes_on)
{
    struct scene scene = begin();
    struct wal_replica *second = NULL;

    for (int i = 0; i < 6; i++) {
        append(&scene, i == 2 ? LARGE : 20);
        (void)ship(&scene, 0);
        assert_int_equal(wal_replica_open("replica", &second, kit_error()), WAL_ELOCKED);
        wal_replica_close(scene.replica);
        scene.replica = open_replica();
    }
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

KIT_TEST(part__applied_twice_changes_nothing)
{
    struct scene scene = begin();
    struct wal_slice part;

    append(&scene, LARGE);
    while (step(&scene, 0, &part) == WAL_OK) {
        apply(&scene, part);
        apply(&scene, part);
    }
    end(&scene);
}

KIT_TEST(part__a_replica_refuses_writes)
{
    struct scene scene = begin();
    struct wal_store *store;
    struct wal_session *session;
    struct wal_entry entry = kit_entry("x", NULL, "{}");

    append(&scene, 20);
    (void)ship(&scene, 0);
    store = kit_open("replica", 0);
    session = kit_session(store, "s");
    assert_int_equal(kit_try_append(session, &entry, NULL, NULL), WAL_EREADONLY);
    append(&scene, 20);
    (void)ship(&scene, 0); /* it keeps no lock */
    end(&scene);
}

KIT_TEST(part__damage_is_found)
{
    struct scene scene = begin();
    struct wal_slice part;
    uint64_t random = kit_seed();
    uint8_t *copy;

    append(&scene, 2000);
    assert_ok(step(&scene, 0, &part));
    copy = test_memory(part.size);
    for (int i = 0; i < 300; i++) {
        size_t at = i < 264 ? (size_t)i : kit_random(&random) % part.size;
        struct wal_slice bad = {copy, part.size};

        memcpy(copy, part.data, part.size);
        copy[at] ^= (uint8_t)(1u << kit_random(&random) % 8);
        assert_true(wal_part_check(bad, NULL, NULL) < 0);
        assert_true(wal_replica_apply(scene.replica, bad, NULL) < 0);
        bad.size = kit_random(&random) % part.size;
        memcpy(copy, part.data, part.size);
        assert_true(wal_part_check(bad, NULL, NULL) < 0);
        assert_true(wal_replica_apply(scene.replica, bad, NULL) < 0);
    }
    apply(&scene, part);
    end(&scene);
}

/* A digest that matches says only that the bytes are those that were sent. */
KIT_TEST(part__damaged_groups_with_a_digest)
{
    struct scene scene = begin();
    struct wal__sha256_alg sha256_alg;
    struct wal_slice part;
    uint8_t *copy;

    append(&scene, 2000);
    assert_ok(step(&scene, 0, &part));
    copy = test_memory(part.size);
    wal__sha256_alg_init(&sha256_alg);
    for (size_t at = part.size - WAL__PART_DIGEST_SIZE - 1; at > 400 + WAL__SEGMENT_HEADER_SIZE;
         at -= 97) {
        const size_t size = part.size - WAL__PART_DIGEST_SIZE;
        struct wal_slice bad = {copy, part.size};
        struct wal__digest digest;

        memcpy(copy, part.data, part.size);
        copy[at] ^= 1;
        assert_ok(wal__sha256(&sha256_alg, (struct wal__span){copy, size}, &digest));
        memcpy(copy + size, digest.bytes, sizeof(digest.bytes));
        assert_ok(wal_part_check(bad, NULL, NULL));
        assert_true(wal_part_verify(bad, NULL, NULL) < 0);
        assert_true(wal_replica_apply(scene.replica, bad, NULL) < 0);
    }
    wal__sha256_alg_deinit(&sha256_alg);
    end(&scene);
}

/* Zeros some bytes of the newest segment of the replica's log. */
static void damage_tail(const struct scene *scene, uint64_t offset)
{
    const uint8_t zeros[16] = {0};
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "replica/log/%016llx.seg",
                   (unsigned long long)scene->at[WAL_PART_LOG].segment);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
    assert_int_equal(fclose(file), 0);
}

/* A later group is there that names an earlier one durable: in another store that is damage. */
KIT_TEST(part__a_hole_in_the_tail_is_its_end)
{
    struct scene scene = begin();
    struct wal_part_place middle;
    struct wal_slice parts[3] = {{NULL, 0}};
    struct wal_slice part;

    for (int i = 0; i < 3; i++) {
        append(&scene, 20);
        assert_ok(step(&scene, 0, &part));
        parts[i].data = memcpy(malloc(part.size), part.data, part.size);
        parts[i].size = part.size;
        if (i == 0) {
            middle = scene.at[WAL_PART_LOG];
        }
        apply(&scene, part);
    }
    wal_replica_close(scene.replica);
    damage_tail(&scene, middle.offset);
    assert_int_equal(count_entries(), 1);
    kit_close(kit_open("replica", WAL_OPEN_READ_ONLY | WAL_OPEN_STRICT));
    scene.replica = open_replica();
    for (int i = 0; i < 3; i++) {
        assert_ok(wal_replica_apply(scene.replica, parts[i], NULL));
        free((void *)(uintptr_t)parts[i].data);
    }
    assert_int_equal(count_entries(), 3);
    end(&scene);
}

KIT_TEST(part__a_missing_part_is_refused)
{
    struct scene scene = begin();
    struct wal_slice part;

    append(&scene, 20);
    (void)ship(&scene, 0);
    append(&scene, 20);
    assert_ok(step(&scene, 0, &part)); /* not applied */
    append(&scene, 20);
    assert_ok(step(&scene, 0, &part));
    assert_fails(wal_replica_apply(scene.replica, part, kit_error()), WAL_ECONFLICT,
                 "does not follow");
    assert_int_equal(count_entries(), 1);
    end(&scene);
}

KIT_TEST(part__a_store_that_is_older_is_refused)
{
    struct scene scene = begin();
    struct wal_slice part;

    append(&scene, 20);
    assert_ok(wal_store_backup(scene.store, "old", NULL, NULL, NULL));
    append(&scene, 20);
    (void)ship(&scene, 0);
    wal_part_reader_close(scene.reader);
    wal_session_close(scene.session);
    kit_close(scene.store);
    assert_int_equal(system("rm -rf store && mv old store"), 0);
    scene.store = kit_store();
    scene.session = kit_session(scene.store, "s");
    assert_ok(wal_part_reader_open(scene.store, &scene.reader, NULL));
    for (int i = 0; i < 2; i++) {
        assert_fails(wal_part_reader_next(scene.reader, scene.at, 0, &part, NULL, kit_error()),
                     WAL_ECONFLICT, "another past");
        for (int j = 0; j < 50; j++) {
            append(&scene, MEDIUM); /* as long as the other one, and longer */
        }
    }
    end(&scene);
}

/* A store whose ended segments compaction has written. */
static struct scene begin_compacted(void)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};
    struct scene scene = begin();

    for (int i = 0; i < 60; i++) {
        append(&scene, i % 9 == 3 ? LARGE : MEDIUM);
    }
    reopen(&scene);
    append(&scene, 20);
    assert_ok(wal_store_compact(scene.store, &options, NULL, NULL));
    return scene;
}

KIT_TEST(part__what_was_compacted_comes_in_segments)
{
    struct scene scene = begin_compacted();
    struct wal_slice part;
    int segments = 0;

    while (step(&scene, 0, &part) == WAL_OK) {
        struct wal_part_info info = WAL_INIT(wal_part_info);

        assert_ok(wal_part_check(part, &info, NULL));
        segments += (info.flags & WAL_PART_SEGMENT) != 0;
        apply(&scene, part);
        apply(&scene, part);
        (void)count_entries();
    }
    assert_true(segments > 0);
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

/* Compaction replaces segments of which a replica has a part. */
/* Promoted, it is written to, sound, and is what parts of it go on from. */
KIT_TEST(part__a_store_that_ends_with_a_rewritten_segment)
{
    struct scene scene = begin_compacted();
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice part;
    int there;

    while ((info.flags & WAL_PART_SEGMENT) == 0 || scene.at[WAL_PART_LOG].segment == 0) {
        assert_ok(step(&scene, 0, &part));
        assert_ok(wal_part_check(part, &info, NULL));
        apply(&scene, part);
    }
    there = count_entries();
    assert_ok(wal_replica_promote(scene.replica, NULL));
    scene.replica = NULL;
    end(&scene);
    assert_int_equal(system("rm -rf store; mv replica store"), 0);
    scene.store = kit_store();
    scene.session = kit_session(scene.store, "s");
    assert_ok(wal_part_reader_open(scene.store, &scene.reader, NULL));
    scene.replica = open_replica();
    scene.entries = there;
    for (int i = 0; i < 3; i++) {
        append(&scene, 20);
        reopen(&scene);
        assert_ok(step(&scene, 0, &part));
    }
    memset(scene.at, 0, sizeof(scene.at));
    (void)ship(&scene, 0);
    assert_int_equal(count_entries(), there + 3);
    end(&scene);
}

/* The replica gets the feature with the part, and keeps it when it is promoted. */
KIT_TEST(part__redaction_that_was_undone)
{
    struct scene scene = begin();
    struct wal_entry redaction = kit_entry("r", NULL, "{\"targetEntryId\":\"e2\"}");
    struct wal_store *promoted;
    struct wal_session *session;

    for (int i = 0; i < 3; i++) {
        append(&scene, 20);
    }
    redaction.type = kit_text("redaction");
    redaction.stream = 9;
    assert_ok(kit_try_append(scene.session, &redaction, NULL, NULL));
    (void)ship(&scene, 0);
    assert_int_equal(count_entries(), 2);
    assert_ok(wal_session_unredact(scene.session, kit_text("e2"), NULL));
    (void)ship(&scene, 0);
    assert_int_equal(count_entries(), 3);
    assert_ok(wal_replica_promote(scene.replica, NULL));
    scene.replica = NULL;
    end(&scene);
    promoted = kit_open("replica", 0);
    session = kit_session(promoted, "s");
    kit_redact(session, "e1");
    assert_ok(wal_session_unredact(session, kit_text("e1"), NULL));
    wal_session_close(session);
    kit_close(promoted);
    kit_check_sound("replica");
}

KIT_TEST(part__compaction_overtakes_a_replica)
{
    const struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                      .rate = UINT64_MAX};
    struct scene scene = begin();

    for (int i = 0; i < 5; i++) {
        append(&scene, i == 2 ? LARGE : MEDIUM);
    }
    (void)ship(&scene, 0);
    for (int i = 0; i < 60; i++) {
        append(&scene, i % 9 == 3 ? LARGE : MEDIUM);
    }
    reopen(&scene);
    append(&scene, 20);
    assert_ok(wal_store_compact(scene.store, &options, NULL, NULL));
    (void)ship(&scene, 0);
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

/* Applies what follows, whatever its entries are. */
static void ship_unseen(struct scene *scene)
{
    struct wal_slice part;

    while (step(scene, 0, &part) == WAL_OK) {
        apply(scene, part);
    }
}

/* A text in a file, raw or decompressed. */
struct search {
    const char *text;
    int count;
};

static void search(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    struct search *search = ctx;

    (void)file;
    search->count += memmem(bytes, size, search->text, strlen(search->text)) != NULL;
}

static int count_files(const char *directory, const char *text)
{
    struct search found = {.text = text};

    store_bytes_visit_directory(directory, search, &found);
    return found.count;
}

/* Applies the segments that replace what the replica has; returns how many there are. */
static int replace_segments(struct scene *scene)
{
    struct wal_part_info info = WAL_INIT(wal_part_info);
    struct wal_slice part;
    int count = 0;

    while (wal_part_reader_next(scene->reader, info.after, 0, &part, &info, NULL) == WAL_OK) {
        struct wal_slice begin = part;
        int32_t needs = 2;

        if (begin.size > WAL_PART_BEGIN_SIZE) {
            begin.size = WAL_PART_BEGIN_SIZE;
        }
        assert_ok(wal_replica_needs(scene->replica, begin, &needs, kit_error()));
        assert_true(needs == 0 || (info.flags & WAL_PART_SEGMENT) != 0);
        assert_done(wal_replica_apply(scene->replica, part, kit_error()));
        count += needs;
    }
    return count;
}

KIT_TEST(part__what_was_erased_is_erased_in_the_replica)
{
    static const char dead[] = "vK83hTz0Qe51";
    const struct wal_store_compact_options plain = {.struct_size = sizeof(plain),
                                                    .rate = UINT64_MAX};
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
    const struct wal_entry entry = kit_entry("dead", NULL, "{\"x\":\"vK83hTz0Qe51\"}");
    struct scene scene = begin();

    assert_ok(kit_try_append(scene.session, &entry, NULL, NULL));
    append(&scene, LARGE);
    reading_redact(scene.session, "dead", "");
    assert_ok(wal_store_compact(scene.store, &plain, NULL, NULL));
    append(&scene, LARGE);
    ship_unseen(&scene);
    assert_ok(wal_store_compact(scene.store, &options, NULL, NULL));
    append(&scene, 20);
    ship_unseen(&scene);
    assert_int_equal(count_files("store", dead), 0);
    assert_true(count_files("replica", dead) > 0);
    view_kit_write("replica/index/catalogue", dead, strlen(dead), false);
    assert_true(replace_segments(&scene) > 0);
    assert_int_equal(count_files("replica", dead), 0);
    assert_int_equal(replace_segments(&scene), 0);
    append(&scene, 20);
    ship_unseen(&scene);
    wal_replica_close(scene.replica);
    scene.replica = open_replica();
    assert_int_equal(replace_segments(&scene), 0);
    end(&scene);
}

KIT_TEST(part__a_promoted_replica_is_a_store)
{
    struct scene scene = begin();
    struct wal_store *store;

    append(&scene, 20);
    append(&scene, LARGE);
    (void)ship(&scene, 0);
    assert_ok(wal_replica_promote(scene.replica, NULL));
    assert_int_equal(wal_replica_open("replica", &scene.replica, NULL), WAL_EEXISTS);
    scene.replica = NULL;
    end(&scene);
    store = kit_open("replica", WAL_OPEN_STRICT);
    scene.session = kit_session(store, "s");
    append(&scene, 20);
    wal_session_close(scene.session);
    kit_close(store);
    assert_int_equal(count_entries(), 3);
}

/* --- a store that becomes a replica again --------------------------------- */

static struct wal_replica *open_store(void)
{
    struct wal_replica *replica = NULL;

    assert_ok(wal_replica_open_store("replica", &replica, NULL));
    return replica;
}

/* Replica and store have the same, and both are stores. */
static struct scene begin_two_stores(void)
{
    struct scene scene = begin();

    append(&scene, 20);
    append(&scene, LARGE);
    (void)ship(&scene, 0);
    assert_ok(wal_replica_promote(scene.replica, NULL));
    scene.replica = NULL;
    return scene;
}

static bool is_replica(void)
{
    struct wal_store *store = kit_open("replica", WAL_OPEN_READ_ONLY);
    struct wal_store_info info = WAL_INIT(wal_store_info);

    assert_ok(wal_store_get_info(store, &info, NULL));
    kit_close(store);
    return info.is_replica != 0;
}

KIT_TEST(part__a_store_follows_the_one_that_went_on)
{
    struct scene scene = begin_two_stores();

    scene.replica = open_store();
    append(&scene, 20);
    append(&scene, MEDIUM);
    (void)ship(&scene, 0);
    assert_true(is_replica());
    assert_int_equal(count_entries(), scene.entries);
    assert_ok(wal_replica_promote(scene.replica, NULL));
    scene.replica = NULL;
    assert_false(is_replica());
    assert_int_equal(count_entries(), scene.entries);
    end(&scene);
}

/* A part that is not longer than the store is not compared; it does not lead to the same place, and
 * what follows is refused. */
KIT_TEST(part__a_store_that_went_on_itself_is_refused)
{
    struct scene scene = begin_two_stores();
    struct wal_part_place position[WAL_PART_STREAMS];
    struct wal_store *store = kit_open("replica", 0);
    struct wal_session *session = kit_session(store, "s");
    const struct wal_entry entry = kit_entry("e9", NULL, "{\"x\":\"zzzzzzzzzzzzzzzzzzzz\"}");
    struct wal_slice part;

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    wal_session_close(session);
    kit_close(store);
    scene.replica = open_store();
    append(&scene, 20);
    assert_ok(step(&scene, 0, &part));
    assert_ok(wal_replica_apply(scene.replica, part, kit_error()));
    assert_ok(wal_replica_get_position(scene.replica, position, NULL));
    assert_memory_not_equal(position, scene.at, sizeof(position));
    append(&scene, 20);
    assert_ok(step(&scene, 0, &part));
    assert_fails(wal_replica_apply(scene.replica, part, kit_error()), WAL_EEXISTS, "by itself");
    wal_replica_close(scene.replica);
    scene.replica = NULL;
    assert_false(is_replica());
    end(&scene);
}

KIT_TEST(part__a_store_that_is_open_is_refused)
{
    struct scene scene = begin_two_stores();

    (void)kit_open("replica", 0);
    assert_fails(wal_replica_open_store("replica", &scene.replica, kit_error()), WAL_ELOCKED,
                 "has the store open");
    end(&scene);
}

KIT_TEST(part__another_store_is_refused)
{
    struct scene scene = begin();
    struct wal_slice part;

    append(&scene, 20);
    (void)ship(&scene, 0);
    end(&scene);
    assert_int_equal(system("rm -rf store"), 0);
    scene = begin();
    append(&scene, 20);
    assert_ok(step(&scene, 0, &part));
    assert_int_equal(wal_replica_apply(scene.replica, part, kit_error()), WAL_EEXISTS);
    assert_int_equal(count_entries(), 1);
    end(&scene);
}

KIT_TEST(part__misuse_is_refused)
{
    struct wal_store *store = kit_store();
    struct wal_part_info small = {.struct_size = 3};
    struct wal_part_reader *reader = NULL;
    struct wal_replica *replica = NULL;
    struct wal_slice part = {NULL, 7};

    assert_int_equal(wal_part_reader_open(NULL, &reader, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_reader_open(store, NULL, NULL), WAL_EINVAL);
    assert_ok(wal_part_reader_open(store, &reader, NULL));
    assert_int_equal(wal_part_reader_next(NULL, NULL, 0, NULL, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_reader_next(reader, NULL, 0, NULL, &small, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_check(part, NULL, NULL), WAL_EINVAL);
    assert_int_equal(wal_part_get_info((struct wal_slice){NULL, 0}, NULL, NULL), WAL_ECORRUPT);
    assert_int_equal(wal_replica_open(NULL, &replica, NULL), WAL_EINVAL);
    assert_int_equal(wal_replica_open("store", &replica, NULL), WAL_EEXISTS);
    assert_int_equal(wal_replica_open("none/below", &replica, NULL), WAL_EEXISTS);
    assert_int_equal(wal_replica_apply(NULL, part, NULL), WAL_EINVAL);
    assert_int_equal(wal_replica_promote(NULL, NULL), WAL_EINVAL);
    wal_replica_close(NULL);
    wal_part_reader_close(NULL);
    /* After the store. */
    assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    assert_int_equal(wal_part_reader_next(reader, NULL, 0, NULL, NULL, NULL), WAL_ECLOSED);
    wal_part_reader_close(reader);
    replica = open_replica();
    assert_int_equal(wal_replica_promote(replica, NULL), WAL_ENOTSTORE);
}
