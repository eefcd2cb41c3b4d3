/*
 * test_tail.c - tests of the tail of a store (tools/cli/tail.h).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/parts_kit.h"
#include "tools/cli/tail.h"

enum {
    WRITERS = 3,
    WRITER_ENTRIES = 150,
    PADDING = 180 * 1024 /* kept in line; a segment has 32 MiB */
};

/* What the tail returns until its end, each record as "ID", "KEY=VALUE" or "[TITLE]"; until the
 * next call. */
static const char *rest(struct cli_tail *tail)
{
    static char text[1024];
    struct wal_record record = WAL_INIT(wal_record);
    uint64_t previous = tail->position;
    enum wal_status status;

    text[0] = '\0';
    while ((status = cli_tail_next(tail, &record, NULL)) == WAL_OK) {
        size_t size = strlen(text);
        size_t room = sizeof(text) - size;

        assert_true(record.sequence > previous);
        assert_int_equal(record.sequence, tail->position);
        previous = record.sequence;
        switch (record.kind) {
        case WAL_RECORD_ENTRY:
            snprintf(text + size, room, "%.*s ", WAL_ARG(record.entry->id));
            break;
        case WAL_RECORD_DOC:
            snprintf(text + size, room, "%.*s=%.*s ", WAL_ARG(record.doc->key),
                     WAL_ARG(record.doc->value));
            break;
        default:
            snprintf(text + size, room, "[%.*s] ", WAL_ARG(record.session->title));
        }
    }
    assert_int_equal(status, WAL_END);
    return text;
}

/* The rest, with what was appended meanwhile. */
static const char *wait_rest(struct cli_tail *tail)
{
    assert_ok(cli_tail_wait(tail, 10000, NULL));
    return rest(tail);
}

static void open_tail(struct cli_tail *tail, struct wal_store *store, uint64_t after)
{
    assert_ok(cli_tail_open(tail, store, WAL_WRITTEN, after, NULL));
}

KIT_TEST(tail__empty_store)
{
    const uint32_t flags[] = {WAL_OPEN_CREATE, WAL_OPEN_MEMORY, WAL_OPEN_NOOP};

    for (size_t i = 0; i < 3; i++) {
        struct wal_store *store = kit_open(flags[i] == WAL_OPEN_CREATE ? "store" : NULL, flags[i]);
        struct cli_tail tail;

        open_tail(&tail, store, CLI_TAIL_END);
        assert_string_equal(rest(&tail), "");
        assert_int_equal(cli_tail_wait(&tail, 1, NULL), WAL_EBUSY);
        assert_string_equal(rest(&tail), "");
        cli_tail_close(&tail);
        cli_tail_close(&tail);
        kit_close(store);
    }
}

KIT_TEST(tail__sessions_by_sequence)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_session *b = kit_create_titled(store, "b", "B");
    struct wal_session *c;
    struct cli_tail tail;

    kit_append_all(b, "b1");
    kit_append_all(a, "a1");
    (void)kit_put(store, b, "k", "7");
    (void)kit_put(store, NULL, "k", "8"); /* of the store */
    kit_append_all(b, "b2");
    open_tail(&tail, store, 0);
    assert_string_equal(rest(&tail), "[A] [B] b1 a1 k=7 b2 ");
    assert_string_equal(rest(&tail), "");
    assert_int_equal(cli_tail_wait(&tail, 1, NULL), WAL_EBUSY);
    kit_append_all(a, "a2");
    c = kit_create_titled(store, "c", "C");
    kit_append_all(c, "c1");
    /* What was appended after the end of the wait is not looked for. */
    assert_string_equal(rest(&tail), "");
    assert_string_equal(wait_rest(&tail), "a2 [C] c1 ");
    kit_append_all(b, "b3");
    assert_string_equal(wait_rest(&tail), "b3 ");
    cli_tail_close(&tail);
}

KIT_TEST(tail__goes_on_at_any_position)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_record record = WAL_INIT(wal_record);
    struct cli_tail tail;
    uint64_t position;

    kit_append_all(a, "a1 a2 a3");
    open_tail(&tail, store, 0);
    for (int i = 0; i < 2; i++) { /* [A], a1 */
        assert_ok(cli_tail_next(&tail, &record, NULL));
    }
    position = record.sequence;
    assert_string_equal(rest(&tail), "a2 a3 ");
    cli_tail_close(&tail);
    open_tail(&tail, store, position);
    assert_string_equal(rest(&tail), "a2 a3 ");
    cli_tail_close(&tail);
    open_tail(&tail, store, CLI_TAIL_END);
    assert_string_equal(rest(&tail), "");
    kit_append_all(a, "a4");
    assert_string_equal(wait_rest(&tail), "a4 ");
    position = tail.position;
    cli_tail_close(&tail);
    wal_session_close(a);
    kit_close(store);
    store = kit_store();
    open_tail(&tail, store, position - 1);
    assert_string_equal(rest(&tail), "a4 ");
    cli_tail_close(&tail);
}

KIT_TEST(tail__without_what_was_removed_meanwhile)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_session *b = kit_create_titled(store, "b", "B");
    struct wal_record record = WAL_INIT(wal_record);
    struct cli_tail tail;

    kit_append_all(a, "a1 a2 a3");
    kit_append_all(b, "b1");
    kit_append_all(a, "a4");
    open_tail(&tail, store, 0);
    assert_ok(cli_tail_next(&tail, &record, NULL));
    assert_ok(wal_session_redact(a, kit_text("a2"), kit_text(""), NULL, NULL));
    assert_ok(wal_session_delete(b, NULL));
    kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_string_equal(rest(&tail), "a1 a3 a4 ");
    cli_tail_close(&tail);
}

/* Changes the bytes in the newest file of the log that has them. */
static void damage(const char *text)
{
    char command[300];

    snprintf(command, sizeof(command),
             "f=$(grep -rla '%s' store) && LC_ALL=C sed -i --follow-symlinks "
             "'s/%s/DAMAGED/' $f",
             text, text);
    assert_int_equal(system(command), 0);
}

KIT_TEST(tail__damaged_record_is_reported_once)
{
    struct wal_store *store = kit_store();
    struct wal_session *a = kit_create_titled(store, "a", "A");
    struct wal_entry entry = kit_entry("a2", NULL, "{\"text\":\"FRAGILE\"}");
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_record record = WAL_INIT(wal_record);
    struct cli_tail tail;

    kit_append_all(a, "a1");
    assert_ok(kit_try_append(a, &entry, &result, NULL));
    kit_append_all(a, "a3");
    wal_session_close(a);
    kit_close(store);
    damage("FRAGILE");
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    open_tail(&tail, store, 0);
    assert_fails(cli_tail_next(&tail, &record, kit_error()), WAL_ECORRUPT, "damaged");
    assert_string_equal(rest(&tail), "[A] a1 a3 ");
    cli_tail_close(&tail);
}

/* --- many writers ------------------------------------------------------- */

/* In a child: appends the entries "N-0", "N-1", ... to a new session. Small ones and such that fill
 * segments take turns. */
static _Noreturn void write_entries(int number)
{
    struct wal_store *store = kit_open("store", 0);
    char *payload = calloc(1, PADDING + 100);
    struct wal_session *session;
    uint64_t random = (uint64_t)number + 1;
    char id[40];

    snprintf(id, sizeof(id), "writer-%d", number);
    session = kit_create(store, id);
    for (int i = 0; i < WRITER_ENTRIES; i++) {
        size_t padding = i % 2 == 0 ? PADDING : 10;
        struct wal_append_result result = WAL_INIT(wal_append_result);
        struct wal_entry entry;
        size_t size = (size_t)snprintf(payload, 100, "{\"text\":\"");

        for (size_t k = 0; k < padding; k++) {
            payload[size++] = (char)('a' + kit_random(&random) % 26);
        }
        snprintf(payload + size, 10, "\"}");
        snprintf(id, sizeof(id), "%d-%d", number, i);
        entry = kit_entry(id, NULL, payload);
        if (kit_try_append(session, &entry, &result, NULL) != WAL_OK) {
            _exit(1);
        }
    }
    wal_session_close(session);
    kit_close(store);
    _exit(0);
}

/* In a child: compacts, with records that die, until it is killed. */
static _Noreturn void compact_always(void)
{
    struct wal_store *store = kit_open("store", 0);

    for (int i = 0;; i++) {
        struct wal_session *session;
        char id[40];

        snprintf(id, sizeof(id), "dead-%d", i);
        session = kit_create(store, id);
        kit_append_all(session, "x y z");
        if (wal_session_delete(session, NULL) != WAL_OK) {
            _exit(1);
        }
        wal_session_close(session);
        kit_compact(store, WAL_STORE_COMPACT_ERASE);
        usleep(1000);
    }
}

/* Reads until each writer's last entry came: all of them, in order. */
static void follow_writers(struct cli_tail *tail)
{
    int seen[WRITERS] = {0};
    int total = 0;
    uint64_t previous = 0;

    while (total < WRITERS * WRITER_ENTRIES) {
        struct wal_record record = WAL_INIT(wal_record);
        struct wal_error error = KIT_ERROR;
        enum wal_status status = cli_tail_next(tail, &record, &error);
        char id[40];
        int writer;
        int number;

        if (status == WAL_END) {
            assert_ok(cli_tail_wait(tail, 60000, &error));
            continue;
        }
        if (status != WAL_OK) {
            fail_msg("%s: %s", wal_status_text(status), error.text);
        }
        assert_true(record.sequence > previous);
        previous = record.sequence;
        if (record.kind != WAL_RECORD_ENTRY || ((const char *)record.session_id.data)[0] != 'w') {
            continue;
        }
        snprintf(id, sizeof(id), "%.*s", WAL_ARG(record.entry->id));
        assert_int_equal(sscanf(id, "%d-%d", &writer, &number), 2);
        assert_int_equal(number, seen[writer]++);
        total++;
    }
}

KIT_TEST(tail__writers_new_segments_and_compaction)
{
    struct wal_store *store = kit_store();
    struct cli_tail tail;
    pid_t children[WRITERS + 1];
    int outcome;

    kit_close(store);
    for (int i = 0; i <= WRITERS; i++) {
        children[i] = kit_start_process();
        if (children[i] == 0 && i < WRITERS) {
            write_entries(i);
        } else if (children[i] == 0) {
            compact_always();
        }
        assert_true(children[i] > 0);
    }
    store = kit_open("store", 0);
    open_tail(&tail, store, 0);
    follow_writers(&tail);
    for (int i = 0; i < WRITERS; i++) {
        kit_expect_exit(children[i], 0);
    }
    (void)kill(children[WRITERS], SIGKILL);
    assert_int_equal(waitpid(children[WRITERS], &outcome, 0), children[WRITERS]);
    assert_true(WIFSIGNALED(outcome));
    cli_tail_close(&tail);
    /* Once more from the first record. */
    open_tail(&tail, store, 0);
    follow_writers(&tail);
    cli_tail_close(&tail);
}
