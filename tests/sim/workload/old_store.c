/*
 * old_store.c - see old_store.h.
 */
#include "tests/sim/workload/old_store.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/store.h"
#include "format/bytes/bytes.h"
#include "format/segment/frame.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/golden.h"
#include "tests/lib/test.h"

enum { TEXT = 64 };

static const char *const ids[OLD_SESSIONS] = {"alpha", "beta", "gamma"};

/* The fields of a session, from its version 0 record only. */
struct session_record {
    char title[TEXT];
    int64_t created_ms;
};

static struct session_record session_record[OLD_SESSIONS];
struct old_snapshot old_before;

/* --- processes ---------------------------------------------------------- */

static void on_death(void *arg)
{
    struct old_process *machine = arg;

    machine->died = true;
    longjmp(machine->death, 1);
}

void old_process_start(struct old_process *machine, struct sim_disk *disk)
{
    memset(machine, 0, sizeof(*machine));
    machine->process = sim_process_create(disk);
    sim_process_on_death(machine->process, on_death, machine);
    arena_heap_init(&machine->arena);
    faulty_heap_init(&machine->heap, &machine->arena.heap);
}

void old_process_stop(struct old_process *machine)
{
    sim_process_destroy(machine->process);
    arena_heap_deinit(&machine->arena);
    memset(machine, 0, sizeof(*machine));
}

struct wal_error old_error;

enum wal_status old_open(struct old_process *machine)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};

    old_error = (struct wal_error){.struct_size = sizeof(old_error)};
    return wal__store_open(OLD_ROOT, &options, &machine->heap.heap,
                           sim_process_io(machine->process), &machine->store, &old_error);
}

void old_close(struct old_process *machine)
{
    assert_ok(wal_close(machine->store, &old_error));
    machine->store = NULL;
    assert_int_equal(arena_heap_count(&machine->arena), 0);
}

enum wal_status old_migrate(struct old_process *machine, struct wal_migrate_result *result)
{
    enum wal_status status;

    old_error = (struct wal_error){.struct_size = sizeof(old_error)};
    *result = (struct wal_migrate_result){.struct_size = sizeof(*result)};
    status = wal__store_migrate(OLD_ROOT, NULL, &machine->heap.heap,
                                sim_process_io(machine->process), result, &old_error);
    if (arena_heap_count(&machine->arena) != 0) {
        fail_msg("migrating (%d) leaves %zu blocks", status, arena_heap_count(&machine->arena));
    }
    return status;
}

struct wal_slice old_slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static struct wal_session *open_session(struct wal_store *store, uint32_t i)
{
    struct wal_session *session = NULL;

    if (wal_session_open(store, old_slice(ids[i]), &session, &old_error) != WAL_OK) {
        fail_msg("session %s: %s", ids[i], old_error.text);
    }
    return session;
}

/* --- the store ---------------------------------------------------------- */

/* Reads the records as SPEC.md 2.17 has them. */
static void read_records(struct sim_disk *disk)
{
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t offset = WAL__SEGMENT_HEADER_SIZE;
    uint32_t count = 0;
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(disk, OLD_FIRST, &bytes, &size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    assert_int_equal(header.version, 0);
    while (wal__frame_decode(bytes + offset, size - offset, header.salt, offset, &frame) ==
           WAL__FMT_OK) {
        const uint8_t *at = bytes + offset + WAL__FRAME_SIZE;
        char text[512] = {0};
        char *title;

        offset += wal__frame_total_size(frame.stored_size);
        if (frame.type != WAL__FRAME_SESSION) {
            continue;
        }
        assert_true(count < OLD_SESSIONS && frame.stored_size < sizeof(text));
        assert_memory_equal(at + 28, ids[count], strlen(ids[count]));
        session_record[count].created_ms = (int64_t)wal__get64(at) * 1000;
        memcpy(text, at + 28, frame.stored_size - 28);
        title = strstr(text, "\"title\":\"");
        assert_non_null(title);
        (void)snprintf(session_record[count].title, TEXT, "%.*s", (int)strcspn(title + 9, "\""),
                       title + 9);
        count++;
    }
    assert_int_equal(count, OLD_SESSIONS);
    free(bytes);
}

static struct sim_disk *load(void)
{
    struct sim_disk *disk = sim_disk_create(1);

    golden_load(disk, OLD_ROOT, AGENTWAL_SOURCE_DIR "/tests/golden/version_0.golden");
    return disk;
}

/* --- reading ------------------------------------------------------------ */

static void mix(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * 0x9e3779b97f4a7c15u;
    *digest ^= *digest >> 29;
}

static void mix_text(uint64_t *digest, struct wal_slice text)
{
    const uint8_t *bytes = text.data;

    mix(digest, text.size);
    for (uint64_t i = 0; i < text.size; i++) {
        mix(digest, bytes[i]);
    }
}

static void read_entries(struct wal_session *session, uint32_t mode, uint64_t *digest,
                         uint32_t *errors)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options), .mode = mode};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &old_error);

    assert_ok(status);
    while ((status = wal_entry_cursor_next(cursor, &entry, &old_error)) != WAL_END) {
        if (status != WAL_OK) {
            assert_int_equal(status, WAL_ECORRUPT);
            (*errors)++;
            continue;
        }
        mix_text(digest, entry.id);
        mix_text(digest, entry.parent_id);
        mix_text(digest, entry.type);
        mix_text(digest, entry.timestamp);
        mix_text(digest, entry.run_id);
        mix_text(digest, entry.payload);
        mix_text(digest, entry.meta);
        mix(digest, entry.sequence);
        mix(digest, entry.depth);
    }
    wal_entry_cursor_close(cursor);
}

static void read_info(struct wal_session *session, uint32_t i, struct old_snapshot *seen)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    uint64_t *digest = &seen->content[i];

    assert_ok(wal_session_get_info(session, &info, &old_error));
    seen->schema[i] = info.schema_version;
    if (info.created_ms != session_record[i].created_ms) {
        fail_msg("session %s was made at %lld", ids[i], (long long)info.created_ms);
    }
    if (info.schema_version == 0
            ? info.title.size != 0
            : info.title.size != strlen(session_record[i].title) ||
                  memcmp(info.title.data, session_record[i].title, info.title.size) != 0) {
        fail_msg("session %s of schema %u has the title \"%.*s\"", ids[i], info.schema_version,
                 (int)info.title.size, (const char *)info.title.data);
    }
    mix(digest, info.number);
    mix(digest, info.flags);
    mix_text(digest, info.cwd);
    mix_text(digest, info.project);
    mix_text(digest, info.parent_id);
    mix_text(digest, info.head);
    mix_text(digest, info.source);
    mix_text(digest, info.metadata);
    mix_text(digest, info.first_text);
    mix(digest, info.entries);
    mix(digest, info.inherited);
}

uint32_t old_count_listed(struct wal_store *store)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    uint32_t count = 0;

    assert_ok(wal_session_cursor_open(store, NULL, &list, &old_error));
    while (wal_session_cursor_next(list, &info, &old_error) == WAL_OK) {
        count++;
    }
    wal_session_cursor_close(list);
    return count;
}

void old_read(struct wal_store *store, struct old_snapshot *seen)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    memset(seen, 0, sizeof(*seen));
    assert_ok(wal_store_get_info(store, &info, &old_error));
    seen->version = info.format_version;
    seen->status = info.status;
    assert_int_equal(info.sessions, OLD_SESSIONS);
    assert_int_equal(old_count_listed(store), OLD_SESSIONS);
    for (uint32_t i = 0; i < OLD_SESSIONS; i++) {
        struct wal_session *session = open_session(store, i);

        read_info(session, i, seen);
        read_entries(session, WAL_ENTRY_CURSOR_ALL, &seen->content[i], &seen->errors);
        read_entries(session, WAL_ENTRY_CURSOR_BRANCH, &seen->content[i], &seen->errors);
        wal_session_close(session);
    }
}

/* --- writing ------------------------------------------------------------ */

const struct wal_entry old_new_entry = {.struct_size = sizeof(old_new_entry),
                                        .id = {"new", 3},
                                        .type = {"message", 7},
                                        .payload = {"{}", 2}};

static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = old_slice("another");
    return 0;
}

static void expect_version(enum wal_status status, int call)
{
    if (status != WAL_EVERSION || strstr(old_error.text, " 0") == NULL ||
        strstr(old_error.text, " 1") == NULL) {
        fail_msg("call %d answers %d: %s", call, status, old_error.text);
    }
    old_error.text[0] = '\0';
}

/* Every call that would write. */
void old_expect_refused(struct wal_store *store)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = old_slice("k"), .value = old_slice("1")};
    const struct wal_head head = {
        .struct_size = sizeof(head), .name = old_slice("kept"), .entry_id = old_slice("a1")};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &old_new_entry};
    const struct wal_compact_options compact = {
        .struct_size = sizeof(compact), .first_kept = old_slice("a1"), .summary = old_slice("s")};
    const struct wal_session_options other_id = {.struct_size = sizeof(other_id),
                                                 .id = old_slice("none such")};
    struct wal_session *session = open_session(store, 0);
    struct wal_session *other = NULL;
    struct wal_ticket *ticket = NULL;
    int call = 0;

#define REFUSED(expression) expect_version(expression, call++)
    REFUSED(wal_session_create(store, NULL, &other, &old_error));
    REFUSED(wal_session_fork(session, old_slice("a1"), NULL, &other, &old_error));
    REFUSED(wal_session_open_or_create(store, &other_id, &other, NULL, &old_error));
    REFUSED(wal_append(session, &old_new_entry, 1, NULL, NULL, &old_error));
    REFUSED(wal_submit(session, &old_new_entry, 1, NULL, &ticket, &old_error));
    REFUSED(wal_batch_commit(session, &batch, NULL, NULL, &old_error));
    REFUSED(wal_batch_submit(session, &batch, NULL, &ticket, &old_error));
    REFUSED(wal_head_move(session, &head, NULL, &old_error));
    REFUSED(wal_doc_put(store, session, &doc, NULL, &old_error));
    REFUSED(wal_doc_put(store, NULL, &doc, NULL, &old_error));
    REFUSED(wal_doc_delete(store, session, &doc, NULL, &old_error));
    REFUSED(wal_session_redact(session, old_slice("a1"), old_slice("r"), NULL, &old_error));
    REFUSED(wal_session_compact(session, &compact, NULL, NULL, &old_error));
    REFUSED(wal_session_update(session, retitle, NULL, &old_error));
    REFUSED(wal_session_migrate(session, 1, NULL, NULL, NULL, &old_error));
    REFUSED(wal_session_delete(session, &old_error));
    REFUSED(wal_session_accept_damage(session, &old_error));
    REFUSED(wal_store_accept_damage(store, &old_error));
    REFUSED(wal_sync(store, &old_error));
#undef REFUSED
    wal_session_close(session);
}

static void expect_writes(struct wal_store *store)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = old_slice("k"), .value = old_slice("1")};
    struct wal_session *fork = NULL;

    for (uint32_t i = 0; i < OLD_SESSIONS; i++) {
        struct wal_session *session = open_session(store, i);

        if (wal_append(session, &old_new_entry, 1, NULL, NULL, &old_error) != WAL_OK) {
            fail_msg("session %s: %s", ids[i], old_error.text);
        }
        assert_ok(wal_doc_put(store, session, &doc, NULL, &old_error));
        assert_ok(wal_session_update(session, retitle, NULL, &old_error));
        assert_ok(wal_session_fork(session, old_slice("new"), NULL, &fork, &old_error));
        wal_session_close(fork);
        wal_session_close(session);
    }
}

/* --- judging ------------------------------------------------------------ */

static void expect_content(const struct old_snapshot *seen)
{
    for (uint32_t i = 0; i < OLD_SESSIONS; i++) {
        if (seen->content[i] != old_before.content[i]) {
            fail_msg("session %s is not what it was", ids[i]);
        }
        if (seen->schema[i] > 1 || (seen->version == 1 && seen->schema[i] != 1)) {
            fail_msg("session %s has schema %u in version %u", ids[i], seen->schema[i],
                     seen->version);
        }
    }
    assert_int_equal(seen->errors, old_before.errors);
}

/* Opens and reads; the store is old and refuses, or it is new. */
uint32_t old_expect_old_or_new(struct sim_disk *disk)
{
    struct old_process machine;
    struct old_snapshot seen;
    enum wal_status status;

    old_process_start(&machine, disk);
    status = old_open(&machine);
    if (status != WAL_OK) {
        fail_msg("the store cannot be opened: %d %s (%s)", status, old_error.text, old_error.file);
    }
    old_read(machine.store, &seen);
    expect_content(&seen);
    if (seen.version == 0) {
        assert_int_equal(seen.status, WAL_EVERSION);
        old_expect_refused(machine.store);
    } else {
        assert_int_equal(seen.version, 1);
        assert_ok(seen.status);
    }
    old_close(&machine);
    old_process_stop(&machine);
    return seen.version;
}

/* Migrates without any trouble, and finds all in its place; then writes. */
static void expect_migration(struct sim_disk *disk)
{
    struct old_process machine;
    struct wal_migrate_result result;
    struct old_snapshot seen;
    enum wal_status status;

    old_process_start(&machine, disk);
    status = old_migrate(&machine, &result);
    if (status != WAL_OK) {
        fail_msg("migrating again answers %d: %s (%s)", status, old_error.text, old_error.file);
    }
    assert_int_equal(result.to, 1);
    assert_ok(old_migrate(&machine, &result));
    assert_int_equal(result.from, 1);
    assert_int_equal(result.to, 1);
    assert_int_equal(result.sessions, 0);
    assert_ok(old_open(&machine));
    old_read(machine.store, &seen);
    assert_int_equal(seen.version, 1);
    assert_ok(seen.status);
    expect_content(&seen);
    expect_writes(machine.store);
    old_close(&machine);
    old_process_stop(&machine);
    old_process_start(&machine, disk);
    assert_ok(old_open(&machine));
    expect_writes(machine.store); /* which are there already */
    old_process_stop(&machine);
}

/* The invariants after any fault. */
void old_expect_migratable(struct sim_disk *disk)
{
    (void)old_expect_old_or_new(disk);
    expect_migration(disk);
}

int old_set_up(void **state)
{
    struct sim_disk *disk = load();
    struct old_process machine;

    read_records(disk);
    old_process_start(&machine, disk);
    assert_ok(old_open(&machine));
    old_read(machine.store, &old_before);
    old_close(&machine);
    old_process_stop(&machine);
    assert_int_equal(old_before.version, 0);
    assert_int_equal(old_before.errors, 0);
    *state = disk;
    return 0;
}

int old_tear_down(void **state)
{
    sim_disk_destroy(*state);
    return 0;
}
