/*
 * test_migrate.c - bringing a store of format version 0 to this version
 * (SPEC.md 7.1) on the simulated machine: what it comes to, and what it leaves
 * when any call to the system or any allocation fails, the power is cut or the
 * process dies at any place of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/assert.h"
#include "engine/store.h"
#include "format/bytes.h"
#include "format/frame.h"
#include "format/segment_fmt.h"
#include "tests/lib/arena_heap.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/golden.h"
#include "tests/sim/sim_io.h"

#define ROOT  "/store"
#define FIRST ROOT "/log/0000000000000001.seg"

enum {
    SESSIONS = 3,
    TEXT = 64
};

static const char *const ids[SESSIONS] = {"alpha", "beta", "gamma"};

/* What a session was, told by its version 0 record alone. */
struct told {
    char title[TEXT];
    int64_t created_ms;
};

/* What was read of a store. */
struct seen {
    uint32_t version;
    int32_t status;
    uint32_t schema[SESSIONS];
    uint64_t content[SESSIONS]; /* all but the title and the schema version */
    uint32_t errors;
};

static struct told told[SESSIONS];
static struct seen old;

/* --- processes ---------------------------------------------------------- */

struct machine {
    struct sim_process *process;
    struct arena_heap arena;
    struct faulty_heap heap;
    struct wal_store *store;
    jmp_buf death;
    bool died;
};

static void on_death(void *arg)
{
    struct machine *machine = arg;

    machine->died = true;
    longjmp(machine->death, 1);
}

static void boot(struct machine *machine, struct sim_disk *disk)
{
    memset(machine, 0, sizeof(*machine));
    machine->process = sim_process_create(disk);
    sim_process_on_death(machine->process, on_death, machine);
    arena_heap_init(&machine->arena);
    faulty_heap_init(&machine->heap, &machine->arena.heap);
}

static void halt(struct machine *machine)
{
    sim_process_destroy(machine->process);
    arena_heap_deinit(&machine->arena);
    memset(machine, 0, sizeof(*machine));
}

static struct wal_error error;

static enum wal_status open_store(struct machine *machine)
{
    struct wal_open_options options = {.struct_size = sizeof(options)};

    error = (struct wal_error){.struct_size = sizeof(error)};
    return wal__store_open(ROOT, &options, &machine->heap.heap,
                           sim_process_io(machine->process), &machine->store,
                           &error);
}

static void close_store(struct machine *machine)
{
    assert_int_equal(wal_close(machine->store, &error), WAL_OK);
    machine->store = NULL;
    assert_int_equal(arena_heap_count(&machine->arena), 0);
}

static enum wal_status migrate(struct machine *machine,
                               struct wal_migration *result)
{
    enum wal_status status;

    error = (struct wal_error){.struct_size = sizeof(error)};
    *result = (struct wal_migration){.struct_size = sizeof(*result)};
    status =
        wal__store_migrate(ROOT, NULL, &machine->heap.heap,
                           sim_process_io(machine->process), result, &error);
    if (arena_heap_count(&machine->arena) != 0) {
        fail_msg("migrating (%d) leaves %zu blocks", status,
                 arena_heap_count(&machine->arena));
    }
    return status;
}

static struct wal_slice slice_of(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static struct wal_session *open_session(struct wal_store *store, uint32_t i)
{
    struct wal_session *session = NULL;

    if (wal_session_open(store, slice_of(ids[i]), &session, &error) != WAL_OK) {
        fail_msg("session %s: %s", ids[i], error.text);
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

    sim_disk_read_file(disk, FIRST, &bytes, &size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    assert_int_equal(header.version, 0);
    while (wal__frame_decode(bytes + offset, size - offset, header.salt, offset,
                             &frame) == WAL__FMT_OK) {
        const uint8_t *at = bytes + offset + WAL__FRAME_SIZE;
        char text[512] = {0};
        char *title;

        offset += wal__frame_span(frame.stored_size);
        if (frame.type != WAL__FRAME_SESSION) {
            continue;
        }
        assert_true(count < SESSIONS && frame.stored_size < sizeof(text));
        assert_memory_equal(at + 28, ids[count], strlen(ids[count]));
        told[count].created_ms = (int64_t)wal__get64(at) * 1000;
        memcpy(text, at + 28, frame.stored_size - 28);
        title = strstr(text, "\"title\":\"");
        assert_non_null(title);
        (void)snprintf(told[count].title, TEXT, "%.*s",
                       (int)strcspn(title + 9, "\""), title + 9);
        count++;
    }
    assert_int_equal(count, SESSIONS);
    free(bytes);
}

static struct sim_disk *load(void)
{
    struct sim_disk *disk = sim_disk_create(1);

    golden_load(disk, ROOT,
                AGENTWAL_SOURCE_DIR "/tests/golden/version_0.golden");
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

static void read_entries(struct wal_session *session, uint32_t mode,
                         uint64_t *digest, uint32_t *errors)
{
    struct wal_iter_options options = {.struct_size = sizeof(options),
                                       .mode = mode};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_iter *iter = NULL;
    enum wal_status status = wal_iter_open(session, &options, &iter, &error);

    assert_int_equal(status, WAL_OK);
    while ((status = wal_iter_next(iter, &entry, &error)) != WAL_END) {
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
    wal_iter_close(iter);
}

static void read_info(struct wal_session *session, uint32_t i,
                      struct seen *seen)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    uint64_t *digest = &seen->content[i];

    assert_int_equal(wal_session_status(session, &info, &error), WAL_OK);
    seen->schema[i] = info.schema_version;
    if (info.created_ms != told[i].created_ms) {
        fail_msg("session %s was made at %lld", ids[i],
                 (long long)info.created_ms);
    }
    if (info.schema_version == 0 ? info.title.size != 0
                                 : info.title.size != strlen(told[i].title) ||
                                       memcmp(info.title.data, told[i].title,
                                              info.title.size) != 0) {
        fail_msg("session %s of schema %u has the title \"%.*s\"", ids[i],
                 info.schema_version, (int)info.title.size,
                 (const char *)info.title.data);
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

static uint32_t count_listed(struct wal_store *store)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list *list = NULL;
    uint32_t count = 0;

    assert_int_equal(wal_list_open(store, NULL, &list, &error), WAL_OK);
    while (wal_list_next(list, &info, &error) == WAL_OK) {
        count++;
    }
    wal_list_close(list);
    return count;
}

static void read_all(struct wal_store *store, struct seen *seen)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    memset(seen, 0, sizeof(*seen));
    assert_int_equal(wal_store_status(store, &info, &error), WAL_OK);
    seen->version = info.format_version;
    seen->status = info.status;
    assert_int_equal(info.sessions, SESSIONS);
    assert_int_equal(count_listed(store), SESSIONS);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct wal_session *session = open_session(store, i);

        read_info(session, i, seen);
        read_entries(session, WAL_ITER_ALL, &seen->content[i], &seen->errors);
        read_entries(session, WAL_ITER_BRANCH, &seen->content[i],
                     &seen->errors);
        wal_session_close(session);
    }
}

/* --- writing ------------------------------------------------------------ */

static const struct wal_entry new_entry = {.struct_size = sizeof(new_entry),
                                           .id = {"new", 3},
                                           .type = {"message", 7},
                                           .payload = {"{}", 2}};

static int32_t retitle(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = slice_of("another");
    return 0;
}

static void expect_version(enum wal_status status, int call)
{
    if (status != WAL_EVERSION || strstr(error.text, " 0") == NULL ||
        strstr(error.text, " 1") == NULL) {
        fail_msg("call %d answers %d: %s", call, status, error.text);
    }
    error.text[0] = '\0';
}

/* Every call that would write. */
static void expect_refused(struct wal_store *store)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc),
                                .key = slice_of("k"),
                                .value = slice_of("1")};
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .name = slice_of("kept"),
                                  .entry_id = slice_of("a1")};
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entry_count = 1, .entries = &new_entry};
    const struct wal_compact_options compact = {.struct_size = sizeof(compact),
                                                .first_kept = slice_of("a1"),
                                                .summary = slice_of("s")};
    const struct wal_resume_options resume = {.struct_size = sizeof(resume),
                                              .from = WAL_RESUME_ID,
                                              .how = WAL_RESUME_FORK,
                                              .id = slice_of("alpha")};
    struct wal_session *session = open_session(store, 0);
    struct wal_session *other = NULL;
    struct wal_ticket *ticket = NULL;
    int call = 0;

#define REFUSED(expression) expect_version(expression, call++)
    REFUSED(wal_session_create(store, NULL, &other, &error));
    REFUSED(wal_session_fork(session, slice_of("a1"), NULL, &other, &error));
    REFUSED(wal_session_resume(store, &resume, &other, &error));
    REFUSED(wal_append(session, &new_entry, 1, NULL, NULL, &error));
    REFUSED(wal_submit(session, &new_entry, 1, NULL, &ticket, &error));
    REFUSED(wal_batch_commit(session, &batch, NULL, NULL, &error));
    REFUSED(wal_batch_submit(session, &batch, NULL, &ticket, &error));
    REFUSED(wal_head_move(session, &head, NULL, &error));
    REFUSED(wal_doc_put(store, session, &doc, NULL, &error));
    REFUSED(wal_doc_put(store, NULL, &doc, NULL, &error));
    REFUSED(wal_doc_delete(store, session, &doc, NULL, &error));
    REFUSED(wal_session_redact(session, slice_of("a1"), slice_of("r"), NULL,
                               &error));
    REFUSED(wal_session_compact(session, &compact, NULL, NULL, &error));
    REFUSED(wal_session_update(session, retitle, NULL, &error));
    REFUSED(wal_session_migrate(session, 1, NULL, NULL, NULL, &error));
    REFUSED(wal_session_delete(session, &error));
    REFUSED(wal_session_accept_damage(session, &error));
    REFUSED(wal_store_accept_damage(store, &error));
    REFUSED(wal_sync(store, &error));
#undef REFUSED
    wal_session_close(session);
}

static void expect_writes(struct wal_store *store)
{
    const struct wal_doc doc = {.struct_size = sizeof(doc),
                                .key = slice_of("k"),
                                .value = slice_of("1")};
    struct wal_session *fork = NULL;

    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct wal_session *session = open_session(store, i);

        if (wal_append(session, &new_entry, 1, NULL, NULL, &error) != WAL_OK) {
            fail_msg("session %s: %s", ids[i], error.text);
        }
        assert_int_equal(wal_doc_put(store, session, &doc, NULL, &error),
                         WAL_OK);
        assert_int_equal(wal_session_update(session, retitle, NULL, &error),
                         WAL_OK);
        assert_int_equal(
            wal_session_fork(session, slice_of("new"), NULL, &fork, &error),
            WAL_OK);
        wal_session_close(fork);
        wal_session_close(session);
    }
}

/* --- judging ------------------------------------------------------------ */

static void expect_content(const struct seen *seen)
{
    for (uint32_t i = 0; i < SESSIONS; i++) {
        if (seen->content[i] != old.content[i]) {
            fail_msg("session %s is not what it was", ids[i]);
        }
        if (seen->schema[i] > 1 ||
            (seen->version == 1 && seen->schema[i] != 1)) {
            fail_msg("session %s has schema %u in version %u", ids[i],
                     seen->schema[i], seen->version);
        }
    }
    assert_int_equal(seen->errors, old.errors);
}

/* Opens and reads; the store is old and refuses, or it is new. */
static uint32_t expect_either(struct sim_disk *disk)
{
    struct machine machine;
    struct seen seen;
    enum wal_status status;

    boot(&machine, disk);
    status = open_store(&machine);
    if (status != WAL_OK) {
        fail_msg("the store cannot be opened: %d %s (%s)", status, error.text,
                 error.file);
    }
    read_all(machine.store, &seen);
    expect_content(&seen);
    if (seen.version == 0) {
        assert_int_equal(seen.status, WAL_EVERSION);
        expect_refused(machine.store);
    } else {
        assert_int_equal(seen.version, 1);
        assert_int_equal(seen.status, WAL_OK);
    }
    close_store(&machine);
    halt(&machine);
    return seen.version;
}

/* Migrates without any trouble, and finds all in its place; then writes. */
static void expect_migration(struct sim_disk *disk)
{
    struct machine machine;
    struct wal_migration result;
    struct seen seen;
    enum wal_status status;

    boot(&machine, disk);
    status = migrate(&machine, &result);
    if (status != WAL_OK) {
        fail_msg("migrating again answers %d: %s (%s)", status, error.text,
                 error.file);
    }
    assert_int_equal(result.to, 1);
    assert_int_equal(migrate(&machine, &result), WAL_OK);
    assert_int_equal(result.from, 1);
    assert_int_equal(result.to, 1);
    assert_int_equal(result.sessions, 0);
    assert_int_equal(open_store(&machine), WAL_OK);
    read_all(machine.store, &seen);
    assert_int_equal(seen.version, 1);
    assert_int_equal(seen.status, WAL_OK);
    expect_content(&seen);
    expect_writes(machine.store);
    close_store(&machine);
    halt(&machine);
    boot(&machine, disk);
    assert_int_equal(open_store(&machine), WAL_OK);
    expect_writes(machine.store); /* which are there already */
    halt(&machine);
}

/* What must hold after any trouble. */
static void expect_sound(struct sim_disk *disk)
{
    (void)expect_either(disk);
    expect_migration(disk);
}

static int set_up(void **state)
{
    struct sim_disk *disk = load();
    struct machine machine;

    read_records(disk);
    boot(&machine, disk);
    assert_int_equal(open_store(&machine), WAL_OK);
    read_all(machine.store, &old);
    close_store(&machine);
    halt(&machine);
    assert_int_equal(old.version, 0);
    assert_int_equal(old.errors, 0);
    *state = disk;
    return 0;
}

static int tear_down(void **state)
{
    sim_disk_destroy(*state);
    return 0;
}

/* --- tests -------------------------------------------------------------- */

static void test_migrate__old_store_is_read_and_refuses(void **state)
{
    uint8_t *before;
    uint8_t *after;
    size_t size;

    sim_disk_read_file(*state, FIRST, &before, &size);
    assert_int_equal(expect_either(*state), 0);
    sim_disk_read_file(*state, FIRST, &after, &size);
    assert_memory_equal(before, after, size);
    free(before);
    free(after);
}

static void test_migrate__new_version_has_all(void **state)
{
    struct wal_migration result;
    struct machine machine;
    uint8_t *before;
    uint8_t *after;
    size_t size;

    sim_disk_read_file(*state, FIRST, &before, &size);
    boot(&machine, *state);
    assert_int_equal(migrate(&machine, &result), WAL_OK);
    assert_int_equal(result.from, 0);
    assert_int_equal(result.to, 1);
    assert_int_equal(result.sessions, SESSIONS);
    halt(&machine);
    assert_int_equal(expect_either(*state), 1);
    sim_disk_read_file(*state, FIRST, &after, &size);
    assert_memory_equal(before, after, size); /* it is left as it was */
    free(before);
    free(after);
    expect_sound(*state);
}

static bool is_documented(enum wal_status status)
{
    return status == WAL_EIO || status == WAL_ENOSPACE ||
           status == WAL_ENOMEM || status == WAL_EPOISONED ||
           status == WAL_ELOCKED || status == WAL_EREADONLY;
}

static bool fail_call(struct sim_disk *base, const struct sim_fault *way,
                      uint64_t nth)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct sim_fault fault = *way;
    struct wal_migration result;
    struct machine machine;
    enum wal_status status;
    bool struck;

    boot(&machine, disk);
    fault.after = nth;
    sim_process_add_fault(machine.process, &fault);
    status = migrate(&machine, &result);
    struck = sim_process_counts(machine.process)->faults > 0;
    sim_process_clear_faults(machine.process);
    if (status != WAL_OK && !is_documented(status)) {
        fail_msg("call %llu: migrating answers %d: %s", (unsigned long long)nth,
                 status, error.text);
    }
    if (nth % 2 == 0) {
        halt(&machine);
    }
    if (status == WAL_OK) {
        assert_int_equal(expect_either(disk), 1);
    }
    if (struck) {
        expect_sound(disk);
    }
    if (nth % 2 == 1) {
        halt(&machine);
    }
    sim_disk_destroy(disk);
    return struck;
}

static void test_migrate__every_call_fails(void **state)
{
    static const struct sim_fault ways[] = {
        {.call = SIM_ANY, .sys_errno = EIO},
        {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
        {.call = SIM_ANY, .sys_errno = ENOSPC},
        {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
        {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
        {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 100},
        {.call = SIM_PWRITEV, .sys_errno = EIO, .put = 1u << 30},
        {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    };
    uint64_t runs = 0;

    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        for (uint64_t nth = 0; fail_call(*state, &ways[way], nth); nth++) {
            runs++;
        }
    }
    print_message("%llu failures\n", (unsigned long long)runs);
}

static bool fail_allocation(struct sim_disk *base, uint64_t nth, bool sticky)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct wal_migration result;
    struct machine machine;
    enum wal_status status;
    bool struck;

    boot(&machine, disk);
    faulty_heap_fail(&machine.heap, nth, sticky);
    status = migrate(&machine, &result);
    struck = machine.heap.failures > 0;
    faulty_heap_fail(&machine.heap, 0, false);
    if (status != WAL_OK && status != WAL_ENOMEM) {
        fail_msg("allocation %llu: migrating answers %d: %s",
                 (unsigned long long)nth, status, error.text);
    }
    if (nth % 2 == 0) {
        halt(&machine);
    }
    if (struck) {
        expect_sound(disk);
    }
    if (nth % 2 == 1) {
        halt(&machine);
    }
    sim_disk_destroy(disk);
    return struck;
}

static void test_migrate__every_allocation_fails(void **state)
{
    uint64_t runs = 0;

    for (int sticky = 0; sticky < 2; sticky++) {
        for (uint64_t nth = 1; fail_allocation(*state, nth, sticky != 0);
             nth++) {
            runs++;
        }
    }
    print_message("%llu failures\n", (unsigned long long)runs);
}

/* Migrates until the process dies, or is done. */
static void migrate_or_die(struct machine *machine)
{
    struct wal_migration result;

    if (setjmp(machine->death) == 0) {
        assert_int_equal(migrate(machine, &result), WAL_OK);
    }
}

static bool kill_at(struct sim_disk *base, const struct sim_fault *death,
                    uint64_t nth)
{
    struct sim_disk *disk = sim_disk_clone(base);
    struct sim_fault fault = *death;
    struct machine machine;
    bool died;

    boot(&machine, disk);
    fault.after = nth;
    sim_process_add_fault(machine.process, &fault);
    migrate_or_die(&machine);
    died = machine.died;
    halt(&machine);
    if (died) {
        expect_sound(disk);
    }
    sim_disk_destroy(disk);
    return died;
}

static void test_migrate__killed_at_every_call(void **state)
{
    static const struct sim_fault deaths[] = {
        {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
        {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
        {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 24},
        {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 200},
    };
    uint64_t runs = 0;

    for (size_t way = 0; way < sizeof(deaths) / sizeof(deaths[0]); way++) {
        for (uint64_t nth = 0; kill_at(*state, &deaths[way], nth); nth++) {
            runs++;
        }
    }
    print_message("%llu deaths\n", (unsigned long long)runs);
}

/* The power goes after each call that a migration makes. */
struct cuts {
    struct sim_disk *disk;
    uint64_t calls;
};

static void cut(void *arg, const struct sim_event *event)
{
    struct cuts *cuts = arg;

    (void)event;
    for (int landing = SIM_LAND_NONE; landing < SIM_LANDINGS; landing++) {
        struct sim_power_loss loss = {.landing = (enum sim_landing)landing,
                                      .garbage = cuts->calls % 2 == 0};
        struct sim_disk *copy = sim_disk_clone(cuts->disk);

        sim_disk_on_call(copy, NULL, NULL);
        sim_disk_power_loss(copy, &loss, cuts->calls);
        expect_sound(copy);
        sim_disk_destroy(copy);
    }
    cuts->calls++;
}

static void test_migrate__power_lost_at_every_call(void **state)
{
    struct cuts cuts = {.disk = *state};
    struct sim_power_loss none = {.landing = SIM_LAND_NONE};
    struct wal_migration result;
    struct machine machine;

    boot(&machine, *state);
    sim_disk_on_call(*state, cut, &cuts);
    assert_int_equal(migrate(&machine, &result), WAL_OK);
    sim_disk_on_call(*state, NULL, NULL);
    halt(&machine);
    sim_disk_power_loss(*state, &none, 1);
    assert_int_equal(expect_either(*state), 1); /* it was promised */
    print_message("%llu calls\n", (unsigned long long)cuts.calls);
}

/* --- stores that are not sound, or in use ------------------------------- */

/* Behind the last frame. */
static uint64_t end_of(struct sim_disk *disk)
{
    uint8_t *bytes;
    size_t size;
    size_t end = 0;

    sim_disk_read_file(disk, FIRST, &bytes, &size);
    for (size_t i = 0; i < size; i++) {
        end = bytes[i] != 0 ? i + 1 : end;
    }
    free(bytes);
    return (end + 7) / 8 * 8;
}

static void test_migrate__torn_tail(void **state)
{
    struct sim_disk *disk = *state;
    uint64_t end = end_of(disk);

    for (uint64_t at = end; at < end + 100; at += 3) {
        sim_file_flip(disk, FIRST, at, (unsigned)(at % 8));
    }
    assert_int_equal(expect_either(disk), 0);
    expect_sound(disk);
}

/* Which frame of the first segment is hit. */
static void hit(struct sim_disk *disk, uint8_t type, uint32_t nth)
{
    struct wal__segment_header header;
    struct wal__frame frame;
    uint64_t offset = WAL__SEGMENT_HEADER_SIZE;
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(disk, FIRST, &bytes, &size);
    assert_int_equal(wal__segment_header_decode(bytes, &header), WAL__FMT_OK);
    while (wal__frame_decode(bytes + offset, size - offset, header.salt, offset,
                             &frame) == WAL__FMT_OK) {
        if (frame.type == type && nth-- == 0) {
            sim_file_flip(disk, FIRST, offset + WAL__FRAME_SIZE + 30, 3);
            break;
        }
        offset += wal__frame_span(frame.stored_size);
    }
    free(bytes);
}

static void forget_index(struct sim_disk *disk)
{
    static const char *const paths[] = {ROOT "/index/0000000000000001.idx",
                                        ROOT "/index/catalogue"};
    struct sim_process *process = sim_process_create(disk);
    const struct wal__io *io = sim_process_io(process);

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int err = 0;

        if (sim_file_exists(disk, paths[i])) {
            assert_int_equal(io->unlink(io->ctx, paths[i], &err), WAL_OK);
        }
    }
    sim_process_destroy(process);
}

static uint32_t flags_of(struct wal_store *store, const char *id)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = NULL;

    assert_int_equal(wal_session_open(store, slice_of(id), &session, &error),
                     WAL_OK);
    assert_int_equal(wal_session_status(session, &info, &error), WAL_OK);
    wal_session_close(session);
    return info.flags;
}

static enum wal_status append_to(struct wal_store *store, const char *id)
{
    struct wal_session *session = NULL;
    enum wal_status status;

    assert_int_equal(wal_session_open(store, slice_of(id), &session, &error),
                     WAL_OK);
    status = wal_append(session, &new_entry, 1, NULL, NULL, &error);
    wal_session_close(session);
    return status;
}

/* An entry was lost, or the record of a session: all else is migrated, and the
 * loss stays told. */
static void migrate_damaged(struct sim_disk *disk, const char *id)
{
    struct wal_migration result;
    struct machine machine;
    enum wal_status status;

    forget_index(disk);
    boot(&machine, disk);
    assert_int_equal(open_store(&machine), WAL_OK);
    assert_int_not_equal(flags_of(machine.store, id) & WAL_SESSION_DAMAGED, 0);
    close_store(&machine);
    status = migrate(&machine, &result);
    if (status != WAL_OK) {
        fail_msg("a damaged store answers %d: %s", status, error.text);
    }
    assert_int_equal(open_store(&machine), WAL_OK);
    assert_int_not_equal(flags_of(machine.store, id) & WAL_SESSION_DAMAGED, 0);
    assert_int_equal(append_to(machine.store, id), WAL_EDAMAGED);
    assert_int_equal(count_listed(machine.store), SESSIONS);
    close_store(&machine);
    assert_int_equal(migrate(&machine, &result), WAL_OK);
    assert_int_equal(result.from, 1);
    halt(&machine);
}

static void test_migrate__session_that_lost_an_entry(void **state)
{
    hit(*state, WAL__FRAME_ENTRY, 0);
    migrate_damaged(*state, "alpha");
}

static void test_migrate__session_that_lost_its_record(void **state)
{
    hit(*state, WAL__FRAME_SESSION, 1);
    migrate_damaged(*state, "lost-2");
}

/* Another process that has the store open reads on, whatever is done. */
struct onlooker {
    struct machine machine;
    struct sim_process *migrating;
    uint64_t reads;
    bool inside;
};

static void look(void *arg, const struct sim_event *event)
{
    struct onlooker *onlooker = arg;
    struct seen seen;

    if (onlooker->inside || event->process != onlooker->migrating) {
        return;
    }
    onlooker->inside = true;
    read_all(onlooker->machine.store, &seen);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        assert_int_equal(seen.content[i], old.content[i]);
    }
    assert_int_equal(seen.version, 0);
    assert_int_equal(seen.status, WAL_EVERSION);
    onlooker->reads++;
    onlooker->inside = false;
}

static void test_migrate__beside_a_reader(void **state)
{
    struct onlooker onlooker = {.reads = 0};
    struct wal_migration result;
    struct machine machine;

    boot(&onlooker.machine, *state);
    assert_int_equal(open_store(&onlooker.machine), WAL_OK);
    boot(&machine, *state);
    onlooker.migrating = machine.process;
    sim_disk_on_call(*state, look, &onlooker);
    assert_int_equal(migrate(&machine, &result), WAL_OK);
    sim_disk_on_call(*state, NULL, NULL);
    assert_int_equal(result.sessions, SESSIONS);
    assert_true(onlooker.reads > 10);
    expect_refused(onlooker.machine.store);
    close_store(&onlooker.machine);
    halt(&onlooker.machine);
    halt(&machine);
    expect_sound(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_migrate__old_store_is_read_and_refuses),
        TEST(test_migrate__new_version_has_all),
        TEST(test_migrate__every_call_fails),
        TEST(test_migrate__every_allocation_fails),
        TEST(test_migrate__killed_at_every_call),
        TEST(test_migrate__power_lost_at_every_call),
        TEST(test_migrate__torn_tail),
        TEST(test_migrate__session_that_lost_an_entry),
        TEST(test_migrate__session_that_lost_its_record),
        TEST(test_migrate__beside_a_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
