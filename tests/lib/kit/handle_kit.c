/*
 * handle_kit.c - handles of every kind (handle_kit.h).
 */
#include "tests/lib/kit/handle_kit.h"

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "agentwal/convert.h"
#include "engine/session/store.h"

#define TEXT(text) ((struct wal_slice){text, sizeof(text) - 1})

const uint32_t kit_handle_stores[3] = {WAL_OPEN_CREATE, WAL_OPEN_MEMORY,
                                       WAL_OPEN_NOOP};

/* ----------------------------------------------------------- opening --- */

static void must(enum wal_status status, const struct wal_error *error)
{
    if (status != WAL_OK) {
        fail_msg("%d: %s", (int)status, error->text);
    }
}

static enum wal_status import_checkpoint(struct wal_session *session,
                                         struct wal_file_cursor **cursor,
                                         struct wal_error *error)
{
    const struct wal_file file = {.struct_size = sizeof(file),
                                  .kind = WAL_FILE_ABSENT,
                                  .path = TEXT("absent")};
    const struct wal_checkpoint_options options = {.struct_size =
                                                       sizeof(options),
                                                   .id = TEXT("c"),
                                                   .root = TEXT("/nowhere")};

    return wal_checkpoint_import(session, &file, 1, &options, cursor, error);
}

struct wal_store *kit_handle_store(uint32_t flags, const struct wal__heap *heap,
                                   struct wal_session **session)
{
    const struct wal_open_options options = {.struct_size = sizeof(options),
                                             .flags = flags};
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = TEXT("d"), .value = TEXT("1")};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    assert_int_equal(system("rm -rf store"), 0);
    must(wal__store_open("store", &options, heap, &wal__io_posix, &store,
                         &error),
         &error);
    *session = kit_create(store, "s");
    kit_append_all(*session, "a b c");
    must(wal_doc_put(NULL, *session, &doc, NULL, &error), &error);
    must(import_checkpoint(*session, NULL, &error), &error);
    return store;
}

/* What a handle is opened on. */
struct from {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t random;
};

static enum wal_status open_session(const struct from *from, void **at,
                                    struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        from->random % 2 == 0
            ? wal_session_open(from->store, TEXT("s"), &session, error)
            : wal_session_fork(from->session, TEXT(""), NULL, &session, error);

    *at = session;
    return status;
}

static enum wal_status open_ticket(const struct from *from, void **at,
                                   struct wal_error *error)
{
    const struct wal_entry entry = kit_entry(NULL, NULL, "1");
    struct wal_ticket *ticket = NULL;
    enum wal_status status =
        wal_submit(from->session, &entry, 1, NULL, &ticket, error);

    *at = ticket;
    return status;
}

static enum wal_status open_writer(const struct from *from, void **at,
                                   struct wal_error *error)
{
    struct wal_blob_writer *writer = NULL;
    enum wal_status status = wal_blob_create(from->store, &writer, error);

    *at = writer;
    return status == WAL_OK ? wal_blob_write(writer, TEXT("piece"), error)
                            : status;
}

static int32_t put(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return 0;
}

/* Of files, which it does not write yet, or of lines that were put. */
static enum wal_status open_view(const struct from *from, void **at,
                                 struct wal_error *error)
{
    struct wal_view_options options = {.struct_size = sizeof(options),
                                       .dialect = TEXT("claude"),
                                       .root = TEXT("views")};
    struct wal_view *view = NULL;
    enum wal_status status;

    if (from->random % 2 != 0) {
        options.root = TEXT("");
        options.put = put;
    }
    status = wal_view_open(from->store, from->session, &options, &view, error);
    *at = view;
    return status == WAL_OK && options.put != NULL
               ? wal_view_flush(view, NULL, error)
               : status;
}

static enum wal_status open_blob(const struct from *from, void **at,
                                 struct wal_error *error)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status =
        wal_blob_put(from->store, TEXT("content"), digest, error);

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
    enum wal_status status =
        wal_session_cursor_open(from->store, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_entry_cursor(const struct from *from, void **at,
                                         struct wal_error *error)
{
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(from->session, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_doc_cursor(const struct from *from, void **at,
                                       struct wal_error *error)
{
    struct wal_doc_cursor *cursor = NULL;
    enum wal_status status =
        wal_doc_cursor_open(from->store, from->session, NULL, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_head_cursor(const struct from *from, void **at,
                                        struct wal_error *error)
{
    struct wal_head_cursor *cursor = NULL;
    enum wal_status status =
        wal_head_cursor_open(from->session, &cursor, error);

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

static enum wal_status open_file_cursor(const struct from *from, void **at,
                                        struct wal_error *error)
{
    struct wal_file_cursor *cursor = NULL;
    enum wal_status status = import_checkpoint(from->session, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_checkpoint_cursor(const struct from *from,
                                              void **at,
                                              struct wal_error *error)
{
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status =
        wal_checkpoint_cursor_open(from->session, &cursor, error);

    *at = cursor;
    return status;
}

static enum wal_status open_file_change_cursor(const struct from *from,
                                               void **at,
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
        (void)fprintf(stderr, "%d, not %d, \"%s\": %s\n", (int)status,
                      (int)calls->wanted, calls->error.text, call);
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
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = TEXT("d"), .value = TEXT("2")};
    const struct wal_head head = {
        .struct_size = sizeof(head), .name = TEXT("h"), .entry_id = TEXT("a")};
    const struct wal_compact_options compact = {.struct_size = sizeof(compact),
                                                .first_kept = TEXT("b"),
                                                .summary = TEXT("s")};
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
                      wal_ticket_wait(ticket, timeout_ms, &result,
                                      &calls->error) == WAL_OK &&
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
    enum wal_status (*open)(const struct from *from, void **at,
                            struct wal_error *error);
    void (*close)(void *at);
    void (*call)(void *at, struct calls *calls);
} kinds[KIT_HANDLE_COUNT] = {
    [KIT_HANDLE_SESSION] = {open_session, close_session, call_session},
    [KIT_HANDLE_SESSION_CURSOR] = {open_session_cursor, close_session_cursor,
                                   call_session_cursor},
    [KIT_HANDLE_ENTRY_CURSOR] = {open_entry_cursor, close_entry_cursor,
                                 call_entry_cursor},
    [KIT_HANDLE_DOC_CURSOR] = {open_doc_cursor, close_doc_cursor,
                               call_doc_cursor},
    [KIT_HANDLE_CLAIM_CURSOR] = {open_claim_cursor, close_claim_cursor,
                                 call_claim_cursor},
    [KIT_HANDLE_HEAD_CURSOR] = {open_head_cursor, close_head_cursor,
                                call_head_cursor},
    [KIT_HANDLE_FILE_CURSOR] = {open_file_cursor, close_file_cursor,
                                call_file_cursor},
    [KIT_HANDLE_CHECKPOINT_CURSOR] = {open_checkpoint_cursor,
                                      close_checkpoint_cursor,
                                      call_checkpoint_cursor},
    [KIT_HANDLE_FILE_CHANGE_CURSOR] = {open_file_change_cursor,
                                       close_file_change_cursor,
                                       call_file_change_cursor},
    [KIT_HANDLE_TICKET] = {open_ticket, close_ticket, call_ticket},
    [KIT_HANDLE_BLOB_WRITER] = {open_writer, close_writer, call_writer},
    [KIT_HANDLE_VIEW] = {open_view, close_view, call_view},
    [KIT_HANDLE_BLOB] = {open_blob, close_blob, call_blob},
};

struct kit_handle kit_handle_open(struct wal_store *store,
                                  struct wal_session *session,
                                  enum kit_handle_kind kind, uint64_t random)
{
    const struct from from = {store, session, random};
    struct kit_handle handle = {kind, NULL};
    struct wal_error error = KIT_ERROR;

    must(kinds[kind].open(&from, &handle.at, &error), &error);
    assert_non_null(handle.at);
    return handle;
}

void kit_handle_close(struct kit_handle *handle)
{
    kinds[handle->kind].close(handle->at);
    handle->at = NULL;
}

bool kit_handle_returns(const struct kit_handle *handle, enum wal_status status)
{
    struct calls calls = {KIT_ERROR, status, true};

    kinds[handle->kind].call(handle->at, &calls);
    return calls.good;
}
