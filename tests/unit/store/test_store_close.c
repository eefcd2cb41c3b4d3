/*
 * test_store_close.c - tests of closing (SPEC.md 4.5): handles of every kind are closed in any
 * order, before and after their store, by several threads at once: the last handle's close, in any
 * thread, frees the store.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "agentwal/convert.h"
#include "engine/base/heap.h"
#include "engine/session/store.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/store_kit.h"

enum handle_kind {
    HANDLE_SESSION,
    HANDLE_SESSION_CURSOR,
    HANDLE_ENTRY_CURSOR,
    HANDLE_DOC_CURSOR,
    HANDLE_HEAD_CURSOR,
    HANDLE_CLAIM_CURSOR,
    HANDLE_FILE_CURSOR,
    HANDLE_CHECKPOINT_CURSOR,
    HANDLE_FILE_CHANGE_CURSOR,
    HANDLE_TICKET,
    HANDLE_BLOB_WRITER,
    HANDLE_VIEW,
    HANDLE_BLOB, /* the last: with WAL_OPEN_NOOP there is none */
    HANDLE_COUNT
};

/* A handle; null once closed. */
struct handle {
    enum handle_kind kind;
    void *at;
};

#define TEXT(text) ((struct wal_slice){text, sizeof(text) - 1})

static const uint32_t handle_stores[3] = {WAL_OPEN_CREATE, WAL_OPEN_MEMORY, WAL_OPEN_NOOP};

/* ----------------------------------------------------------- opening --- */

static void must(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        fail_msg("%d: %s", (int)status, error->text);
    }
}

static enum wal_status import_checkpoint(struct wal_session *session,
                                         struct wal_file_cursor **cursor, struct wal_error *error)
{
    const struct wal_file file = {
        .struct_size = sizeof(file), .kind = WAL_FILE_ABSENT, .path = TEXT("absent")};
    const struct wal_checkpoint_options options = {
        .struct_size = sizeof(options), .id = TEXT("c"), .root = TEXT("/nowhere")};

    return wal_checkpoint_import(session, &file, 1, &options, cursor, error);
}

/* Opens a new store with these flags, "store" if it is on disk, and creates the session "s" with
 * something for each kind of cursor to return. */
static struct wal_store *handle_store(uint32_t flags, const struct wal__heap *heap,
                                      struct wal_session **session)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    const struct wal_doc doc = {.struct_size = sizeof(doc), .key = TEXT("d"), .value = TEXT("1")};
    struct wal_store *store = NULL;

    assert_int_equal(system("rm -rf store"), 0);
    must(wal__store_open("store", &options, heap, &wal__io_posix, &store, kit_error()),
         kit_error());
    *session = kit_create(store, "s");
    kit_append_all(*session, "a b c");
    must(wal_doc_put(NULL, *session, &doc, NULL, kit_error()), kit_error());
    must(import_checkpoint(*session, NULL, kit_error()), kit_error());
    return store;
}

/* What a handle is opened on. */
struct from {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t random;
};

static enum wal_status open_session(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = from->random % 2 == 0
                                 ? wal_session_open(from->store, TEXT("s"), &session, error)
                                 : wal_session_fork(from->session, TEXT(""), NULL, &session, error);

    *at = session;
    return status;
}

static enum wal_status open_ticket(const struct from *from, void **at, struct wal_error *error)
{
    const struct wal_entry entry = kit_entry(NULL, NULL, "1");
    struct wal_ticket *ticket = NULL;
    enum wal_status status = wal_submit(from->session, &entry, 1, NULL, &ticket, error);

    *at = ticket;
    return status;
}

static enum wal_status open_writer(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_blob_writer *writer = NULL;
    enum wal_status status = wal_blob_create(from->store, &writer, error);

    *at = writer;
    return status == WAL_OK ? wal_blob_write(writer, TEXT("piece"), error) : status;
}

static int32_t put(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return 0;
}

/* Of files, which it does not write yet, or of lines that were put. */
static enum wal_status open_view(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = TEXT("claude"), .root = TEXT("views")};
    struct wal_view *view = NULL;
    enum wal_status status;

    if (from->random % 2 != 0) {
        options.root = TEXT("");
        options.put = put;
    }
    status = wal_view_open(from->store, from->session, &options, &view, error);
    *at = view;
    return status == WAL_OK && options.put != NULL ? wal_view_flush(view, NULL, error) : status;
}

static enum wal_status open_blob(const struct from *from, void **at, struct wal_error *error)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status = wal_blob_put(from->store, TEXT("content"), digest, error);

    if (status == WAL_OK) {
        status = wal_blob_open(from->store, digest, &blob, error);
    }
    *at = blob;
    return status;
}

static enum wal_status open_session_cursor(const struct from *from, void **at,
                                           struct wal_error *error)
{
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status = wal_session_cursor_open(from->store, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_entry_cursor(const struct from *from, void **at,
                                         struct wal_error *error)
{
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(from->session, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_doc_cursor(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_doc_cursor *cursor = NULL;
    enum wal_status status = wal_doc_cursor_open(from->store, from->session, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_head_cursor(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_head_cursor *cursor = NULL;
    enum wal_status status = wal_head_cursor_open(from->session, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_claim_cursor(const struct from *from, void **at,
                                         struct wal_error *error)
{
    struct wal_claim_cursor *cursor = NULL;
    enum wal_status status = wal_claim_cursor_open(from->store, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_file_cursor(const struct from *from, void **at, struct wal_error *error)
{
    struct wal_file_cursor *cursor = NULL;
    enum wal_status status = import_checkpoint(from->session, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_checkpoint_cursor(const struct from *from, void **at,
                                              struct wal_error *error)
{
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(from->session, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_file_change_cursor(const struct from *from, void **at,
                                               struct wal_error *error)
{
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status = wal_session_diff(from->session, &cursor, error);

    *at = cursor;
    return status;
}

/* ----------------------------------------------------------- closing --- */

static void close_session(void *at)
{
    wal_session_close(at);
}

static void close_session_cursor(void *at)
{
    wal_session_cursor_close(at);
}

static void close_entry_cursor(void *at)
{
    wal_entry_cursor_close(at);
}

static void close_doc_cursor(void *at)
{
    wal_doc_cursor_close(at);
}

static void close_claim_cursor(void *at)
{
    wal_claim_cursor_close(at);
}

static void close_head_cursor(void *at)
{
    wal_head_cursor_close(at);
}

static void close_file_cursor(void *at)
{
    wal_file_cursor_close(at);
}

static void close_checkpoint_cursor(void *at)
{
    wal_checkpoint_cursor_close(at);
}

static void close_file_change_cursor(void *at)
{
    wal_file_change_cursor_close(at);
}

static void close_ticket(void *at)
{
    wal_ticket_destroy(at);
}

static void close_writer(void *at)
{
    wal_blob_discard(at);
}

static void close_view(void *at)
{
    wal_view_close(at);
}

static void close_blob(void *at)
{
    wal_blob_close(at);
}

/* ------------------------------------------------------------- calls --- */

/* What a call returned, and whether that was expected. */
struct calls {
    struct wal_error error;
    enum wal_status wanted;
    bool good;
};

static void check(struct calls *calls, enum wal_status status, const char *call)
{
    if (status != calls->wanted || calls->error.status != (int32_t)status ||
        calls->error.text[0] == '\0') {
        (void)fprintf(stderr, "%d, not %d, \"%s\": %s\n", (int)status, (int)calls->wanted,
                      calls->error.text, call);
        calls->good = false;
    }
    calls->error = KIT_ERROR;
}

#define CHECK(call) check(calls, (call), #call)

static int32_t update(void *ctx, const struct wal_session_info *now,
                      struct wal_session_change *change)
{
    (void)ctx;
    (void)now;
    (void)change;
    return 0;
}

static void call_writers(struct wal_session *session, struct calls *calls)
{
    const struct wal_entry entry = kit_entry(NULL, NULL, "1");
    const struct wal_batch batch = {
        .struct_size = sizeof(batch), .entries = &entry, .entry_count = 1};
    const struct wal_doc doc = {.struct_size = sizeof(doc), .key = TEXT("d"), .value = TEXT("2")};
    const struct wal_head head = {
        .struct_size = sizeof(head), .name = TEXT("h"), .entry_id = TEXT("a")};
    const struct wal_compact_options compact = {
        .struct_size = sizeof(compact), .first_kept = TEXT("b"), .summary = TEXT("s")};
    struct wal_error *error = &calls->error;
    struct wal_session *fork = NULL;
    struct wal_ticket *ticket = NULL;

    CHECK(wal_append(session, &entry, 1, NULL, NULL, error));
    CHECK(wal_append_one(session, "message", TEXT("1"), NULL, error));
    CHECK(wal_submit(session, &entry, 1, NULL, &ticket, error));
    CHECK(wal_batch_commit(session, &batch, NULL, NULL, error));
    CHECK(wal_batch_submit(session, &batch, NULL, &ticket, error));
    CHECK(wal_doc_put(NULL, session, &doc, NULL, error));
    CHECK(wal_doc_delete(NULL, session, &doc, NULL, error));
    CHECK(wal_head_move(session, &head, NULL, error));
    CHECK(wal_session_redact(session, TEXT("a"), TEXT(""), NULL, error));
    CHECK(wal_session_compact(session, &compact, NULL, NULL, error));
    CHECK(wal_session_fork(session, TEXT(""), NULL, &fork, error));
    CHECK(wal_session_update(session, update, NULL, error));
    CHECK(wal_session_migrate(session, 2, update, NULL, NULL, error));
    CHECK(wal_session_accept_damage(session, error));
    CHECK(wal_session_claim(session, error));
    CHECK(wal_session_unclaim(session, error));
    CHECK(wal_session_trash(session, error));
    CHECK(wal_session_delete(session, error));
    CHECK(wal_session_remove(session, NULL, error));
}

static void call_readers(struct wal_session *session, struct calls *calls)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error *error = &calls->error;
    struct wal_entry_cursor *entries = NULL;
    struct wal_doc_cursor *docs = NULL;
    struct wal_head_cursor *heads = NULL;
    char id[WAL_ID_SIZE];

    CHECK(wal_session_get_info(session, &info, error));
    CHECK(wal_entry_get(session, TEXT("a"), &entry, error));
    CHECK(wal_doc_get(NULL, session, TEXT("d"), 0, &doc, error));
    CHECK(wal_head_get(session, 0, TEXT(""), id, error));
    CHECK(wal_entry_cursor_open(session, NULL, &entries, error));
    CHECK(wal_doc_cursor_open(NULL, session, NULL, &docs, error));
    CHECK(wal_head_cursor_open(session, &heads, error));
}

static void call_checkpoints(struct wal_session *session, struct calls *calls)
{
    const struct wal_slice path = TEXT("f");
    struct wal_error *error = &calls->error;
    struct wal_file_cursor *files = NULL;
    struct wal_checkpoint_cursor *checkpoints = NULL;
    struct wal_file_change_cursor *changes = NULL;

    CHECK(wal_checkpoint_create(session, &path, 1, NULL, &files, error));
    CHECK(import_checkpoint(session, &files, error));
    CHECK(wal_checkpoint_delete(session, TEXT("c"), error));
    CHECK(wal_session_set_checkpointing(session, 0, error));
    CHECK(wal_file_cursor_open(session, TEXT("c"), &files, error));
    CHECK(wal_checkpoint_cursor_open(session, &checkpoints, error));
    CHECK(wal_checkpoint_diff(session, TEXT("c"), TEXT(""), &changes, error));
    CHECK(wal_session_diff(session, &changes, error));
    CHECK(wal_rewind(session, TEXT("c"), NULL, NULL, &changes, error));
}

static void call_ticket(void *at, struct calls *calls)
{
    struct wal_ticket *ticket = at;
    struct wal_append_result result = {.struct_size = sizeof(result)};

    if (calls->wanted != WAL_ECLOSED) {
        CHECK(wal_ticket_wait(ticket, -1, &result, &calls->error));
        return;
    }
    for (int64_t timeout_ms = -1; timeout_ms <= 1; timeout_ms++) {
        calls->good = calls->good &&
                      wal_ticket_wait(ticket, timeout_ms, &result, &calls->error) == WAL_OK &&
                      result.appended == 1;
    }
}

static void call_blob(void *at, struct calls *calls)
{
    struct wal_blob *blob = at;
    uint8_t data[16];
    uint64_t got = 0;

    CHECK(wal_blob_read(blob, 0, data, sizeof(data), &got, &calls->error));
    calls->good = calls->good && wal_blob_size(blob) == 7;
}

static void call_writer(void *at, struct calls *calls)
{
    struct wal_blob_writer *writer = at;
    CHECK(wal_blob_write(writer, TEXT("more"), &calls->error));
    CHECK(wal_blob_finish(writer, NULL, NULL, &calls->error));
}

static void call_view(void *at, struct calls *calls)
{
    struct wal_view *view = at;
    struct wal_error *error = &calls->error;
    const char *text = NULL;
    uint64_t number = 0;

    CHECK(wal_view_path(view, 0, &text, error));
    CHECK(wal_view_flush(view, NULL, error));
    CHECK(wal_view_import(view, NULL, error));
    CHECK(wal_view_loss(view, 0, &text, &number, error));
    CHECK(wal_view_issue(view, 0, &number, &text, error));
}

static void call_session_cursor(void *at, struct calls *calls)
{
    struct wal_session_cursor *cursor = at;
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char position[WAL_CURSOR_TEXT_SIZE];

    CHECK(wal_session_cursor_next(cursor, &info, &calls->error));
    CHECK(wal_session_cursor_encode(cursor, position, &calls->error));
}

/* In a child of fork() cursors over entries and heads may be read on. */
static void call_entry_cursor(void *at, struct calls *calls)
{
    struct wal_entry_cursor *cursor = at;
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    if (calls->wanted == WAL_ECLOSED) {
        CHECK(wal_entry_cursor_next(cursor, &entry, &calls->error));
        CHECK(wal_entry_cursor_get(cursor, TEXT("a"), &entry, &calls->error));
        calls->good = calls->good && wal_entry_cursor_remaining(cursor) < 100;
    }
}

static void call_claim_cursor(void *at, struct calls *calls)
{
    struct wal_claim_cursor *cursor = at;
    struct wal_claim claim = {.struct_size = sizeof(claim)};

    if (calls->wanted == WAL_ECLOSED) {
        CHECK(wal_claim_cursor_next(cursor, &claim, &calls->error));
    }
}

static void call_head_cursor(void *at, struct calls *calls)
{
    struct wal_head_cursor *cursor = at;
    struct wal_head head = {.struct_size = sizeof(head)};

    if (calls->wanted == WAL_ECLOSED) {
        CHECK(wal_head_cursor_next(cursor, &head, &calls->error));
    }
}

static void call_doc_cursor(void *at, struct calls *calls)
{
    struct wal_doc_cursor *cursor = at;
    struct wal_doc doc = {.struct_size = sizeof(doc)};

    CHECK(wal_doc_cursor_next(cursor, &doc, &calls->error));
    CHECK(wal_doc_cursor_get(cursor, TEXT("d"), 0, &doc, &calls->error));
}

static void call_file_cursor(void *at, struct calls *calls)
{
    struct wal_file_cursor *cursor = at;
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_file file = {.struct_size = sizeof(file)};

    CHECK(wal_checkpoint_get_info(cursor, &info, &calls->error));
    CHECK(wal_file_cursor_next(cursor, &file, &calls->error));
}

static void call_file_change_cursor(void *at, struct calls *calls)
{
    struct wal_file_change_cursor *cursor = at;
    struct wal_file_changes_info info = {.struct_size = sizeof(info)};
    struct wal_file_change change = {.struct_size = sizeof(change)};

    CHECK(wal_file_changes_get_info(cursor, &info, &calls->error));
    CHECK(wal_file_change_cursor_next(cursor, &change, &calls->error));
}

static void call_checkpoint_cursor(void *at, struct calls *calls)
{
    struct wal_checkpoint_cursor *cursor = at;
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};

    CHECK(wal_checkpoint_cursor_next(cursor, &info, &calls->error));
}

static void call_session(void *at, struct calls *calls)
{
    call_writers(at, calls);
    call_readers(at, calls);
    call_checkpoints(at, calls);
}

/* ------------------------------------------------------------- kinds --- */

static const struct {
    enum wal_status (*open)(const struct from *from, void **at, struct wal_error *error);
    void (*close)(void *at);
    void (*call)(void *at, struct calls *calls);
} handle_kinds[HANDLE_COUNT] = {
    [HANDLE_SESSION] = {open_session, close_session, call_session},
    [HANDLE_SESSION_CURSOR] = {open_session_cursor, close_session_cursor, call_session_cursor},
    [HANDLE_ENTRY_CURSOR] = {open_entry_cursor, close_entry_cursor, call_entry_cursor},
    [HANDLE_DOC_CURSOR] = {open_doc_cursor, close_doc_cursor, call_doc_cursor},
    [HANDLE_CLAIM_CURSOR] = {open_claim_cursor, close_claim_cursor, call_claim_cursor},
    [HANDLE_HEAD_CURSOR] = {open_head_cursor, close_head_cursor, call_head_cursor},
    [HANDLE_FILE_CURSOR] = {open_file_cursor, close_file_cursor, call_file_cursor},
    [HANDLE_CHECKPOINT_CURSOR] = {open_checkpoint_cursor, close_checkpoint_cursor,
                                  call_checkpoint_cursor},
    [HANDLE_FILE_CHANGE_CURSOR] = {open_file_change_cursor, close_file_change_cursor,
                                   call_file_change_cursor},
    [HANDLE_TICKET] = {open_ticket, close_ticket, call_ticket},
    [HANDLE_BLOB_WRITER] = {open_writer, close_writer, call_writer},
    [HANDLE_VIEW] = {open_view, close_view, call_view},
    [HANDLE_BLOB] = {open_blob, close_blob, call_blob},
};

/* Opens a handle of the kind on the session. random: chooses between ways of opening one. */
static struct handle handle_open(struct wal_store *store, struct wal_session *session,
                                 enum handle_kind kind, uint64_t random)
{
    const struct from from = {store, session, random};
    struct handle handle = {kind, NULL};
    struct wal_error error = KIT_ERROR;

    must(handle_kinds[kind].open(&from, &handle.at, &error), &error);
    assert_non_null(handle.at);
    return handle;
}

/* Any thread. */
static void handle_close(struct handle *handle)
{
    handle_kinds[handle->kind].close(handle->at);
    handle->at = NULL;
}

/* Every call on the handle returns `status` and a sentence, or with WAL_ECLOSED what it does after
 * wal_close. False: prints the call that does not. */
static bool handle_returns(const struct handle *handle, enum wal_status status)
{
    struct calls calls = {KIT_ERROR, status, true};

    handle_kinds[handle->kind].call(handle->at, &calls);
    return calls.good;
}

enum {
    STORES = sizeof(handle_stores) / sizeof(handle_stores[0]),
    LARGE = 300 * 1024 /* bytes of a payload that is a blob */
};

/* Of every test: a heap that counts. */
static struct faulty_heap heap;

static struct wal_store *begin(uint32_t flags, struct wal_session **session)
{
    faulty_heap_init(&heap, &wal__heap_libc);
    return handle_store(flags, &heap.heap, session);
}

/* The kinds that a store with these flags has. */
static uint32_t kinds(uint32_t flags)
{
    return flags == WAL_OPEN_NOOP ? HANDLE_BLOB : HANDLE_COUNT;
}

static void expect_busy(struct wal_store *store, unsigned live)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "closed; %u of its handles %s still open", live,
                   live == 1 ? "is" : "are");
    assert_fails(wal_close(store, kit_error()), WAL_EBUSY, text);
}

static void expect_closed(const struct handle *handle)
{
    assert_true(handle_returns(handle, WAL_ECLOSED));
}

/* ------------------------------------------------------- live handles --- */

KIT_TEST(close__live_handle_of_each_kind)
{
    for (int i = 0; i < STORES; i++) {
        for (uint32_t kind = 0; kind < kinds(handle_stores[i]); kind++) {
            struct wal_session *session;
            struct wal_store *store = begin(handle_stores[i], &session);
            struct handle handle = handle_open(store, session, kind, (uint64_t)i);

            wal_session_close(session);
            expect_busy(store, 1);
            expect_closed(&handle);
            handle_close(&handle);
            assert_int_equal(heap.live, 0);
        }
    }
}

KIT_TEST(close__live_session_with_its_handles)
{
    for (int i = 0; i < STORES; i++) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct handle handles[2] = {{HANDLE_SESSION, NULL}};
        struct wal_session *session;
        struct wal_store *store = begin(handle_stores[i], &session);

        (void)!wal_entry_get(session, kit_text("a"), &entry, NULL);
        (void)!wal_doc_get(NULL, session, kit_text("d"), 0, &doc, NULL);
        (void)!wal_doc_get(store, NULL, kit_text("d"), 0, &doc, NULL);
        assert_ok(wal_session_claim(session, NULL));
        handles[0].at = session;
        handles[1] = handle_open(store, session, HANDLE_VIEW, 0);
        expect_busy(store, 2);
        expect_closed(&handles[0]);
        handle_close(&handles[0]);
        expect_closed(&handles[1]);
        handle_close(&handles[1]);
        assert_int_equal(heap.live, 0);
    }
}

/* It keeps no lock. */
KIT_TEST(close__live_handles_of_a_read_only_store)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_OPEN_READ_ONLY};
    struct handle handles[2];
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    wal_session_close(session);
    kit_close(store);
    assert_ok(wal__store_open("store", &options, &heap.heap, &wal__io_posix, &store, NULL));
    session = kit_session(store, "s");
    handles[0] = (struct handle){HANDLE_SESSION, session};
    handles[1] = handle_open(store, session, HANDLE_ENTRY_CURSOR, 0);
    expect_busy(store, 2);
    for (int i = 0; i < 2; i++) {
        expect_closed(&handles[i]);
        handle_close(&handles[i]);
    }
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close__no_live_handle)
{
    for (int i = 0; i < STORES; i++) {
        struct wal_session *session;
        struct wal_store *store = begin(handle_stores[i], &session);
        struct wal_error error = KIT_ERROR;

        for (uint32_t kind = 0; kind < kinds(handle_stores[i]); kind++) {
            struct handle handle = handle_open(store, session, kind, 1);

            handle_close(&handle);
        }
        wal_session_close(session);
        assert_ok(wal_close(store, &error));
        assert_string_equal(error.text, "");
        assert_int_equal(heap.live, 0);
    }
}

/* An error of an operation that nobody waited for, and a live handle. */
KIT_TEST(close__failure_has_priority)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED,
                                               .flags = WAL_APPEND_EXPECT,
                                               .expected_tail = kit_text("other")};
    const struct wal_entry entry = kit_entry("x", NULL, "1");
    struct handle handle = {HANDLE_SESSION, NULL};
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
    assert_fails(wal_close(store, kit_error()), WAL_ECONFLICT, "other");
    handle.at = session;
    expect_closed(&handle);
    handle_close(&handle);
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close__ticket_reports_the_outcome)
{
    const struct wal_append_options options = {
        .struct_size = sizeof(options), .flags = WAL_APPEND_EXPECT, .expected_tail = kit_text("c")};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    struct wal_ticket *tickets[2];
    struct wal_session *session;
    struct wal_store *store = begin(WAL_OPEN_CREATE, &session);

    for (int i = 0; i < 2; i++) {
        const struct wal_entry entry = kit_entry(i == 0 ? "d" : "e", NULL, "1");

        assert_ok(wal_submit(session, &entry, 1, &options, &tickets[i], NULL));
    }
    wal_session_close(session);
    expect_busy(store, 2);
    assert_ok(wal_ticket_wait(tickets[0], 0, &result, NULL));
    assert_string_equal(result.last_id, "d");
    assert_int_equal(wal_ticket_wait(tickets[1], 0, NULL, &error), WAL_ECONFLICT);
    assert_string_equal(error.actual, "d");
    wal_ticket_destroy(tickets[1]);
    wal_ticket_destroy(tickets[0]);
    assert_int_equal(heap.live, 0);
}

/* ----------------------------------------------- released by wal_close --- */

static int count_names(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count;
}

/* Appends and claims, which needs every lock. */
static bool can_use(void)
{
    const struct wal_entry entry = kit_entry(NULL, NULL, "1");
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    bool good = wal_open("store", NULL, &store, NULL) == WAL_OK &&
                wal_session_open(store, kit_text("s"), &session, NULL) == WAL_OK &&
                wal_session_claim(session, NULL) == WAL_OK &&
                wal_append(session, &entry, 1, NULL, NULL, NULL) == WAL_OK;

    wal_session_close(session);
    return wal_close(store, NULL) == WAL_OK && good;
}

KIT_TEST(close__locks_descriptors_and_threads_are_released)
{
    static const uint32_t flags[] = {WAL_OPEN_CREATE, WAL_OPEN_CREATE | WAL_OPEN_PREAD};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        int descriptors = count_names("/proc/self/fd");
        int threads = count_names("/proc/self/task");
        struct wal_session *session;
        struct wal_store *store;
        struct handle handle;
        int32_t fd = -1;
        pid_t child;

        store = begin(flags[i], &session);
        handle = handle_open(store, session, HANDLE_BLOB, 0);
        assert_ok(wal_store_completion_fd(store, WAL_COMPLETION_EVENTFD, &fd, NULL));
        assert_ok(wal_session_claim(session, NULL));
        expect_busy(store, 2);
        assert_int_equal(count_names("/proc/self/fd"), descriptors);
        assert_int_equal(count_names("/proc/self/task"), threads);
        child = kit_start_process();
        if (child == 0) {
            _exit(can_use() ? 0 : 1);
        }
        kit_expect_exit(child, 0);
        assert_true(can_use());
        wal_session_close(session);
        handle_close(&handle);
        assert_int_equal(heap.live, 0);
    }
}

/* A close with live handles writes what a close without them does. */
KIT_TEST(close__commits_the_queue_and_writes_the_indexes)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_QUEUED};
    int names[2];

    for (int live = 0; live < 2; live++) {
        struct wal_session *session;
        struct wal_session *again;
        struct wal_store *store;

        store = begin(WAL_OPEN_CREATE, &session);
        for (int i = 0; i < 100; i++) {
            const struct wal_entry entry = kit_entry(NULL, NULL, "1");

            assert_ok(wal_append(session, &entry, 1, &options, NULL, NULL));
        }
        if (live == 0) {
            wal_session_close(session);
            kit_close(store);
        } else {
            expect_busy(store, 1);
        }
        names[live] = count_names("store/index");
        store = kit_open("store", 0);
        again = kit_session(store, "s");
        assert_int_equal(kit_info(again).entries, 103);
        wal_session_close(again);
        kit_close(store);
        if (live != 0) {
            wal_session_close(session);
        }
        assert_int_equal(heap.live, 0);
    }
    assert_int_equal(names[0], names[1]);
    assert_true(names[0] > 2);
}

/* -------------------------------------------------------------- slices --- */

static void append_large(struct wal_session *session)
{
    char *payload = malloc(LARGE);
    struct wal_entry entry = kit_entry("large", NULL, "");

    assert_non_null(payload);
    memset(payload, 'x', LARGE);
    payload[0] = '"';
    payload[LARGE - 1] = '"';
    entry.payload = (struct wal_slice){payload, LARGE};
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

KIT_TEST(close__slices_of_live_cursors_remain_valid)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .flags = WAL_ENTRY_CURSOR_PINNED};

    for (int i = 0; handle_stores[i] != WAL_OPEN_NOOP; i++) {
        struct wal_session *session;
        struct wal_store *store = begin(handle_stores[i], &session);
        struct wal_entry entries[4];
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        struct wal_entry_cursor *cursor = NULL;
        struct wal_doc_cursor *docs = NULL;

        append_large(session);
        assert_ok(wal_doc_cursor_open(store, session, NULL, &docs, NULL));
        assert_ok(wal_doc_cursor_next(docs, &doc, NULL));
        assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
        for (int k = 0; k < 4; k++) {
            entries[k] = (struct wal_entry){.struct_size = sizeof(struct wal_entry)};
            assert_ok(wal_entry_cursor_next(cursor, &entries[k], NULL));
        }
        expect_busy(store, 3);
        wal_session_close(session);
        assert_true(handle_stores[i] == WAL_OPEN_MEMORY || can_use());
        assert_slice(doc.value, "1");
        assert_slice(entries[0].id, "a");
        assert_slice(entries[1].parent_id, "a");
        assert_slice(entries[2].payload, "{\"id\":\"c\"}");
        assert_int_equal(entries[3].payload.size, LARGE);
        assert_memory_equal((const char *)entries[3].payload.data + LARGE - 3, "xx\"", 3);
        wal_doc_cursor_close(docs);
        assert_slice(entries[2].id, "c");
        wal_entry_cursor_close(cursor);
        assert_int_equal(heap.live, 0);
    }
}

/* ----------------------------------------------------------- any order --- */

enum { TREE = 40, ROUNDS = 20 };

/* A tree of handles: those of sessions of the tree come later in it. */
struct tree {
    struct wal_store *store; /* null: closed */
    struct handle handles[TREE];
    uint64_t random;
};

static unsigned count_live(const struct tree *tree)
{
    unsigned live = 0;

    for (int i = 0; i < TREE; i++) {
        live += tree->handles[i].at != NULL;
    }
    return live;
}

/* An open session of the tree. */
static struct wal_session *pick_session(struct tree *tree, int count)
{
    int at;

    do {
        at = (int)rng_below(&tree->random, (uint64_t)count);
    } while (tree->handles[at].kind != HANDLE_SESSION || tree->handles[at].at == NULL);
    return tree->handles[at].at;
}

static void grow(struct tree *tree, uint32_t flags)
{
    struct wal_session *session;

    tree->store = begin(flags, &session);
    tree->handles[0] = (struct handle){HANDLE_SESSION, session};
    for (int i = 1; i < TREE; i++) {
        uint32_t kind = (uint32_t)rng_below(&tree->random, kinds(flags));
        int other = (int)rng_below(&tree->random, (uint64_t)i);

        kind = rng_below(&tree->random, 3) == 0 ? HANDLE_SESSION : kind;
        tree->handles[i] = handle_open(tree->store, pick_session(tree, i), (enum handle_kind)kind,
                                       rng_next(&tree->random));
        if (other > 0 && rng_below(&tree->random, 8) == 0) {
            handle_close(&tree->handles[other]);
        }
    }
}

static void close_store(struct tree *tree)
{
    unsigned live = count_live(tree);

    if (live > 0) {
        expect_busy(tree->store, live);
    } else {
        assert_ok(wal_close(tree->store, NULL));
    }
    tree->store = NULL;
}

/* Closes all, the store at a random place. */
static void close_all(struct tree *tree)
{
    unsigned steps = (unsigned)rng_below(&tree->random, count_live(tree) + 1);

    for (;;) {
        int at = (int)rng_below(&tree->random, TREE);

        if (steps == 0 && tree->store != NULL) {
            close_store(tree);
        }
        if (count_live(tree) == 0) {
            return;
        }
        while (tree->handles[at].at == NULL) {
            at = (at + 1) % TREE;
        }
        if (tree->store == NULL) {
            expect_closed(&tree->handles[at]);
        }
        handle_close(&tree->handles[at]);
        steps -= steps > 0;
    }
}

KIT_TEST(close__any_order)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STORES; i++) {
            struct tree tree = {.random = rng_next(&random)};

            grow(&tree, handle_stores[i]);
            close_all(&tree);
            assert_null(tree.store);
            assert_int_equal(heap.live, 0);
        }
    }
}

/* ---------------------------------------------------------------- fork --- */

/* One handle of each kind. */
static void open_each(struct wal_store *store, struct wal_session *session, uint32_t flags,
                      struct handle *handles)
{
    memset(handles, 0, HANDLE_COUNT * sizeof(*handles));
    for (uint32_t kind = 0; kind < kinds(flags); kind++) {
        handles[kind] = handle_open(store, session, kind, 0);
    }
}

static bool each_returns(const struct handle *handles, enum wal_status status)
{
    bool good = true;

    for (int i = 0; i < HANDLE_COUNT; i++) {
        good = good && (handles[i].at == NULL || handle_returns(&handles[i], status));
    }
    return good;
}

static void close_each(struct handle *handles)
{
    for (int i = 0; i < HANDLE_COUNT; i++) {
        if (handles[i].at != NULL) {
            handle_close(&handles[i]);
        }
    }
}

KIT_TEST(close__in_a_child)
{
    for (int i = 0; i < STORES; i++) {
        uint32_t flags = handle_stores[i];
        struct handle handles[HANDLE_COUNT];
        struct wal_session *session;
        struct wal_store *store = begin(flags, &session);
        pid_t child;

        open_each(store, session, flags, handles);
        assert_ok(wal_session_claim(session, NULL));
        child = kit_start_process();
        if (child == 0) {
            bool good = wal_close(store, NULL) == WAL_EFORKED && each_returns(handles, WAL_EFORKED);

            close_each(handles);
            wal_session_close(session);
            _exit(good && heap.live != 0 ? 0 : 1);
        }
        kit_expect_exit(child, 0);
        close_each(handles);
        kit_append_all(session, "d");
        wal_session_close(session);
        assert_ok(wal_close(store, NULL));
        assert_int_equal(heap.live, 0);
    }
}

KIT_TEST(close__in_a_child_after_the_parent_closed)
{
    for (int i = 0; i < STORES; i++) {
        uint32_t flags = handle_stores[i];
        struct handle handles[HANDLE_COUNT];
        struct wal_session *session;
        struct wal_store *store = begin(flags, &session);
        pid_t child;

        open_each(store, session, flags, handles);
        wal_session_close(session);
        expect_busy(store, kinds(flags));
        child = kit_start_process();
        if (child == 0) {
            bool good = each_returns(handles, WAL_EFORKED);

            close_each(handles);
            _exit(good && heap.live != 0 ? 0 : 1);
        }
        kit_expect_exit(child, 0);
        assert_true(each_returns(handles, WAL_ECLOSED));
        close_each(handles);
        assert_int_equal(heap.live, 0);
    }
}

enum {
    THREADS = 4,
    HANDLES = 24, /* of each thread */
    THREAD_ROUNDS = 8
};

/* A thread and the handles that it closes. */
struct closer {
    struct handle handles[HANDLES];
    pthread_t thread;
};

static atomic_int unready; /* threads that have not begun */

static void *close_handles(void *ctx)
{
    struct closer *closer = ctx;

    atomic_fetch_sub(&unready, 1);
    while (atomic_load(&unready) > 0) {
        (void)sched_yield();
    }
    for (int i = 0; i < HANDLES; i++) {
        handle_close(&closer->handles[i]);
    }
    return NULL;
}

static void run_threads(struct closer *closers)
{
    atomic_store(&unready, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&closers[i].thread, NULL, close_handles, &closers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(closers[i].thread, NULL), 0);
    }
}

/* Deals the session with its claim, and handles of all kinds on it, to the threads. */
static void distribute_handles(struct wal_store *store, struct wal_session *session, uint32_t flags,
                               struct closer *closers, uint64_t *random)
{
    uint64_t kinds = flags == WAL_OPEN_NOOP ? HANDLE_BLOB : HANDLE_COUNT;

    for (int i = 0; i < THREADS * HANDLES; i++) {
        closers[i % THREADS].handles[i / THREADS] = handle_open(
            store, session, (enum handle_kind)rng_below(random, kinds), rng_next(random));
    }
    assert_ok(wal_session_claim(session, NULL));
    handle_close(&closers[0].handles[0]);
    closers[0].handles[0] = (struct handle){HANDLE_SESSION, session};
}

/* One round: wal_close before the threads close their handles, or after. */
static void run(uint32_t flags, bool store_first, uint64_t *random)
{
    struct closer closers[THREADS];
    struct wal_session *session;
    struct wal_store *store;

    faulty_heap_init(&heap, &wal__heap_libc);
    store = handle_store(flags, &heap.heap, &session);
    distribute_handles(store, session, flags, closers, random);
    if (store_first) {
        assert_int_equal(wal_close(store, NULL), WAL_EBUSY);
    }
    run_threads(closers);
    if (!store_first) {
        assert_true(heap.live > 0);
        assert_ok(wal_close(store, NULL));
    }
    assert_int_equal(heap.live, 0);
}

KIT_TEST(close_threads__after_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < THREAD_ROUNDS; round++) {
        run(handle_stores[round % STORES], true, &random);
    }
}

KIT_TEST(close_threads__before_the_store)
{
    uint64_t random = kit_seed();

    for (int round = 0; round < THREAD_ROUNDS; round++) {
        run(handle_stores[round % STORES], false, &random);
    }
}
