/*
 * session.c - creating, opening, forking and changing sessions, and appending to them;
 * interface.txt has most other calls.
 *
 * The function that computes a change is one of JavaScript, which a thread cannot call.
 * lib/session/session.js reads the session, calls it, and passes the change with the version that
 * it was made from; the library's callback here refuses another version, and lib/session/session.js
 * begins again. A batch would not do: it skips a change that is equal to the present state, so that
 * two callers that each add one might write the same value.
 */
#include <agentwal/admin.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/node/native/base/call.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"
#include "bindings/node/native/store/submission.h"

/* --- sessions ------------------------------------------------------------- */

/* A session that was opened, until JavaScript has it. */
struct opened_session {
    struct wal_session *session; /* NULL: none */
    char id[WAL_ID_SIZE];
    size_t id_size; /* of an id, which may have NUL */
};

/* Fills the id once the session is there, in the thread that opened it: its promise may be settled
 * when the store is closed. `status` is that of opening it, and returned if it is a failure. Any
 * thread. */
static enum wal_status session_identify(struct opened_session *opened, enum wal_status status,
                                        struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    if (status == WAL_OK) {
        status = wal_session_get_info(opened->session, &info, error);
    }
    if (status == WAL_OK) {
        memcpy(opened->id, info.id.data, info.id.size);
        opened->id_size = info.id.size;
    }
    return status;
}

/* Closes a session that JavaScript did not get. */
static void session_discard(struct opened_session *opened)
{
    wal_session_close(opened->session);
    opened->session = NULL;
}

/* The array [session, id], or null without a session; takes the session. */
static napi_value session_make(struct call *call, struct store *store,
                               struct opened_session *opened)
{
    struct wal_session *session = opened->session;
    napi_value pair;

    if (session == NULL) {
        return make_null(call);
    }
    opened->session = NULL;
    pair = make_array(call);
    array_push(call, pair, 0, handle_make(call, &session_type, store, session));
    array_push(call, pair, 1, make_text(call, (struct wal_slice){opened->id, opened->id_size}));
    return pair;
}

/* --- creating and opening ------------------------------------------------- */

struct create_job {
    struct job job;
    struct wal_session_options options;
    struct opened_session made;
};

static enum wal_status create_run(struct job *job, struct wal_error *error)
{
    struct create_job *self = (struct create_job *)job;
    enum wal_status status =
        wal_session_create(job->store->wal, &self->options, &self->made.session, error);

    return session_identify(&self->made, status, error);
}

static napi_value create_finish(struct call *call, struct job *job)
{
    return session_make(call, job->store, &((struct create_job *)job)->made);
}

static void create_discard(struct job *job)
{
    session_discard(&((struct create_job *)job)->made);
}

static const struct job_kind create_kind = {"create", sizeof(struct create_job), create_run,
                                            create_finish, create_discard};

/* create(store, OPTIONS): [session, id] */
static napi_value create_session(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct create_job *job = job_create(call, &create_kind, store, NULL);

    if (job == NULL) {
        return NULL;
    }
    read_struct(call, 1, &wal_session_options_in, &job->options);
    return job_start(call, &job->job);
}

/* Identifies and returns a session that this thread opened. */
static napi_value return_session(struct call *call, struct store *store,
                                 struct opened_session *opened, enum wal_status status)
{
    if (!call_check(call, session_identify(opened, status, call_error(call)))) {
        session_discard(opened);
        return NULL;
    }
    return session_make(call, store, opened);
}

/* createSync(store, OPTIONS): [session, id] */
static napi_value create_now(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct opened_session made = {.session = NULL};
    struct wal_session_options options;
    enum wal_status status;

    if (store == NULL) {
        return NULL;
    }
    /* It may run JavaScript, which may close the store. */
    submissions_flush_backlog(store);
    store = store_get(call, 0);
    read_struct(call, 1, &wal_session_options_in, &options);
    if (call->failed) {
        return NULL;
    }
    status = wal_session_create(store->wal, &options, &made.session, call_error(call));
    return return_session(call, store, &made, status);
}

/* session(store, id): [session, id] */
static napi_value open_session(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct wal_slice id = value_text(call, call_arg(call, 1));
    struct opened_session opened = {.session = NULL};
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_session_open(store->wal, id, &opened.session, call_error(call));
    if (!call_check(call, status)) {
        return NULL;
    }
    /* The id is known; the state of one that is damaged may be unreadable. */
    memcpy(opened.id, id.data, id.size);
    opened.id_size = id.size;
    return session_make(call, store, &opened);
}

/* latest(store, cwd): [session, id], or null */
static napi_value open_latest(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct wal_slice cwd = value_text(call, call_arg(call, 1));
    struct opened_session opened = {.session = NULL};
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_session_open_latest(store->wal, cwd, &opened.session, call_error(call));
    return status == WAL_ENOTFOUND ? make_null(call) : return_session(call, store, &opened, status);
}

/* --- openOrCreate --------------------------------------------------------- */

struct named_job {
    struct job job;
    struct wal_session_options options;
    struct opened_session opened;
    int32_t created;
};

static void named_discard(struct job *job)
{
    session_discard(&((struct named_job *)job)->opened);
}

static enum wal_status open_or_create_run(struct job *job, struct wal_error *error)
{
    struct named_job *self = (struct named_job *)job;
    enum wal_status status = wal_session_open_or_create(
        job->store->wal, &self->options, &self->opened.session, &self->created, error);

    return session_identify(&self->opened, status, error);
}

/* [[session, id], created] */
static napi_value open_or_create_finish(struct call *call, struct job *job)
{
    struct named_job *self = (struct named_job *)job;
    napi_value pair = make_array(call);

    array_push(call, pair, 0, session_make(call, job->store, &self->opened));
    array_push(call, pair, 1, make_bool(call, self->created != 0));
    return pair;
}

static const struct job_kind open_or_create_kind = {"openOrCreate", sizeof(struct named_job),
                                                    open_or_create_run, open_or_create_finish,
                                                    named_discard};

/* openOrCreate(store, OPTIONS) */
static napi_value open_or_create(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct named_job *self = job_create(call, &open_or_create_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    read_struct(call, 1, &wal_session_options_in, &self->options);
    return job_start(call, &self->job);
}

/* --- heads, and lists of sessions ----------------------------------------- */

/* head(session, stream, name): the id of its entry, or null */
static napi_value get_head(struct call *call)
{
    char id[WAL_ID_SIZE] = {0};
    size_t size = sizeof(id);
    struct handle *session = handle_get(call, 0, &session_type);
    uint32_t stream = value_u32(call, call_arg(call, 1));
    struct wal_slice name = value_text(call, call_arg(call, 2));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_head_get(session->object, stream, name, id, call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_null(call);
    }
    if (!call_check(call, status)) {
        return NULL;
    }
    /* An id may have NUL; at its end it is not seen. */
    while (size > 0 && id[size - 1] == '\0') {
        size--;
    }
    return make_text(call, (struct wal_slice){id, size});
}

static enum wal_status next_session(void *cursor, void *info, struct wal_error *error)
{
    return wal_session_cursor_next(cursor, info, error);
}

/* listNext(list, max): an array of states, shorter at the end */
static napi_value list_next(struct call *call)
{
    struct handle *list = handle_get(call, 0, &list_type);
    uint32_t max = value_u32(call, call_arg(call, 1));

    return call->failed ? NULL
                        : make_rows(call, &wal_session_info_out, next_session, list->object, max);
}

/* --- forks, compaction, redaction ----------------------------------------- */

struct fork_job {
    struct job job;
    struct wal_slice at; /* fork: its last entry; redact: the entry */
    struct wal_slice text;
    struct wal_session_options options;
    bool is_fork; /* compact: into a fork */
    struct opened_session fork;
    struct wal_append_result result;
};

static void fork_discard(struct job *job)
{
    session_discard(&((struct fork_job *)job)->fork);
}

/* --- fork ----------------------------------------------------------------- */

static enum wal_status fork_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;
    enum wal_status status =
        wal_session_fork(job->handle->object, self->at, &self->options, &self->fork.session, error);

    return session_identify(&self->fork, status, error);
}

static napi_value fork_finish(struct call *call, struct job *job)
{
    return session_make(call, job->store, &((struct fork_job *)job)->fork);
}

static const struct job_kind fork_kind = {"fork", sizeof(struct fork_job), fork_run, fork_finish,
                                          fork_discard};

/* fork(session, at, OPTIONS): [session, id] */
static napi_value fork_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct fork_job *self = job_create(call, &fork_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->at = value_text(call, call_arg(call, 1));
    read_struct(call, 2, &wal_session_options_in, &self->options);
    return job_start(call, &self->job);
}

/* --- compact and redact --------------------------------------------------- */

static enum wal_status compact_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;
    const struct wal_compact_options options = {
        .struct_size = sizeof(options),
        .first_kept = self->at,
        .summary = self->text,
        .into = self->is_fork ? &self->options : NULL,
    };

    enum wal_status status =
        wal_session_compact(job->handle->object, &options,
                            self->is_fork ? &self->fork.session : NULL, &self->result, error);

    return self->is_fork ? session_identify(&self->fork, status, error) : status;
}

static enum wal_status redact_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;

    return wal_session_redact(job->handle->object, self->at, self->text, &self->result, error);
}

/* [[session, id] or null, result] */
static napi_value result_finish(struct call *call, struct job *job)
{
    struct fork_job *self = (struct fork_job *)job;
    napi_value pair = make_array(call);

    array_push(call, pair, 0, session_make(call, job->store, &self->fork));
    array_push(call, pair, 1, make_struct(call, &wal_append_result_out, &self->result));
    return pair;
}

static const struct job_kind compact_kind = {"compact", sizeof(struct fork_job), compact_run,
                                             result_finish, fork_discard};

static const struct job_kind redact_kind = {"redact", sizeof(struct fork_job), redact_run,
                                            result_finish, fork_discard};

/* compactSession(session, firstKept, summary, OPTIONS or nothing) */
static napi_value compact_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct fork_job *self = job_create(call, &compact_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->result.struct_size = sizeof(self->result);
    self->at = value_text(call, call_arg(call, 1));
    self->text = value_text(call, call_arg(call, 2));
    self->is_fork = call->count > 3;
    read_struct(call, 3, &wal_session_options_in, &self->options);
    return job_start(call, &self->job);
}

/* redact(session, entryId, reason) */
static napi_value redact(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct fork_job *self = job_create(call, &redact_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->result.struct_size = sizeof(self->result);
    self->at = value_text(call, call_arg(call, 1));
    self->text = value_text(call, call_arg(call, 2));
    return job_start(call, &self->job);
}

/* --- changes -------------------------------------------------------------- */

struct change_job {
    struct job job;
    struct wal_session_change change;
    uint64_t version; /* that the change was made from */
    uint32_t schema;  /* that is migrated to; 0: an update */
    bool has_change;
};

/* The result is 1 for another version; the job then fulfils with false. */
static int32_t give_change(void *ctx, const struct wal_session_info *now,
                           struct wal_session_change *change)
{
    const struct change_job *self = ctx;

    if (now->metadata_version != self->version) {
        return 1;
    }
    *change = self->change;
    return 0;
}

static enum wal_status change_run(struct job *job, struct wal_error *error)
{
    struct change_job *self = (struct change_job *)job;
    struct wal_session *session = job->handle->object;
    enum wal_status status;

    if (self->schema == 0) {
        status = wal_session_update(session, give_change, self, error);
    } else {
        status = wal_session_migrate(session, self->schema, self->has_change ? give_change : NULL,
                                     self, NULL, error);
    }
    return status == WAL_ECALLBACK ? WAL_END : status;
}

static napi_value change_finish(struct call *call, struct job *job)
{
    return make_bool(call, job->status == WAL_OK);
}

static const struct job_kind change_kind = {"change", sizeof(struct change_job), change_run,
                                            change_finish, NULL};

/* changeSession(session, schema, version, fields, metadata, title, cwd, project, schemaVersion,
 * expectSequence): fulfils with false when the session had changed. fields undefined: the library
 * knows the change. */
static napi_value change_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct change_job *self = job_create(call, &change_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->schema = value_u32(call, call_arg(call, 1));
    self->version = value_u64(call, call_arg(call, 2));
    self->has_change = !value_is_absent(call, call_arg(call, 3));
    read_struct(call, 3, &wal_session_change_in, &self->change);
    return job_start(call, &self->job);
}

/* --- appending ------------------------------------------------------------ */

/* submit(session, slot, BATCH_ARGS): the made id of the last entry or undefined. numbers[0] is 1
 * when the batch is accepted and nothing will be reported. */
static napi_value submit_batch(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    uint32_t slot = value_u32(call, call_arg(call, 1));
    struct batch_input *input = batch_read(call, 2);
    napi_value id;
    bool is_done;

    if (call->failed) {
        return NULL;
    }
    id = batch_made_id(call, input);
    is_done = input->options.durability == WAL_QUEUED;
    is_done &= submissions_add(call, session, slot, input) == WAL_OK;
    call->addon->numbers[0] = is_done;
    return id;
}

/* commit(session, BATCH_ARGS): as submit, and waits. numbers: appended, duplicates, sequence. */
static napi_value commit_batch(struct call *call)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct handle *session = handle_get(call, 0, &session_type);
    struct batch_input *input;

    if (session == NULL) {
        return NULL;
    }
    /* It may run JavaScript, which may close the session and use the memory that batches are read
     * to. */
    submissions_flush_backlog(session->store);
    session = handle_get(call, 0, &session_type);
    input = batch_read(call, 1);
    if (call->failed) {
        return NULL;
    }
    if (!call_check(call, wal_batch_commit(session->object, &input->batch, &input->options, &result,
                                           call_error(call)))) {
        return NULL;
    }
    call->addon->numbers[0] = result.appended;
    call->addon->numbers[1] = result.duplicates;
    call->addon->numbers[2] = (double)result.sequence;
    return batch_made_id(call, input);
}

/* makeId(): an id for an entry */
static napi_value make_id(struct call *call)
{
    char id[UUID_TEXT_SIZE];

    uuid_make(call->addon, id);
    return make_string(call, id);
}

/* --- reading entries ------------------------------------------------------ */

/*
 * A batch ends after CURSOR_ENTRIES entries or CURSOR_BYTES of payloads. What damage makes
 * unreadable ends it too, and is thrown by the next call.
 */

enum {
    /* Of one entry in addon->numbers and in the array of values. */
    CURSOR_NUMBERS = 5, /* flags, stream, sequence, depth, payloadSize */
    CURSOR_VALUES = 7,  /* id, parentId, type, timestamp, runId, payload,
                         * meta */
    CURSOR_ENTRIES = 256,
    CURSOR_BYTES = 1024 * 1024
};

struct cursor {
    struct wal_entry_cursor *entries;
    uint64_t after;          /* only entries with a higher sequence */
    uint64_t last;           /* sequence of the last entry that was read */
    struct wal_error *error; /* of the next entry, or NULL */
};

static void close_cursor(void *object)
{
    struct cursor *cursor = object;

    wal_entry_cursor_close(cursor->entries);
    free(cursor->error);
    free(cursor);
}

static const struct handle_type cursor_type = {"cursor", close_cursor, false};

/* openCursor(session, mode, flags, stream, upTo, head, skip, last, after) */
static napi_value open_cursor(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_entry_cursor_options options;
    uint64_t after = value_u64(call, call_arg(call, 8));
    struct cursor *cursor;

    read_struct(call, 1, &wal_entry_cursor_options_in, &options);
    if (call->failed) {
        return NULL;
    }
    cursor = calloc(1, sizeof(*cursor));
    if (cursor == NULL) {
        call_fail(call, WAL_ENOMEM, "no memory for a cursor");
        return NULL;
    }
    cursor->after = after;
    if (!call_check(call, wal_entry_cursor_open(session->object, &options, &cursor->entries,
                                                call_error(call)))) {
        close_cursor(cursor);
        return NULL;
    }
    return handle_make(call, &cursor_type, session->store, cursor);
}

/* remaining(cursor) */
static napi_value remaining(struct call *call)
{
    struct handle *handle = handle_get(call, 0, &cursor_type);
    const struct cursor *cursor = handle == NULL ? NULL : handle->object;

    return cursor == NULL ? NULL : make_number(call, wal_entry_cursor_remaining(cursor->entries));
}

/* lastSequence(cursor): of the last entry that it read, also of one that
 * `after` leaves out; 0: none */
static napi_value last_sequence(struct call *call)
{
    struct handle *handle = handle_get(call, 0, &cursor_type);
    const struct cursor *cursor = handle == NULL ? NULL : handle->object;

    return cursor == NULL ? NULL : make_number(call, cursor->last);
}

/* --- a page of entries --------------------------------------------------- */

enum {
    PAGE_TYPES = 8
};

/* Text of which a string was made. */
struct known_text {
    napi_value value; /* NULL: none */
    uint32_t size;
    char text[WAL_ID_SIZE];
};

/* The values of the entries that one call returns. */
struct page {
    struct call *call;
    uint32_t count; /* of entries */
    napi_value null;
    struct known_text id; /* of the last entry, often the next one's parent */
    struct known_text run_id;
    struct known_text types[PAGE_TYPES];
    napi_value values[CURSOR_ENTRIES * CURSOR_VALUES];
};

static void page_init(struct page *page, struct call *call)
{
    page->call = call;
    page->count = 0;
    page->null = make_null(call);
    page->id.value = NULL;
    page->run_id.value = NULL;
    for (size_t i = 0; i < PAGE_TYPES; i++) {
        page->types[i].value = NULL;
    }
}

static bool is_known(const struct known_text *known, struct wal_slice text)
{
    return known->value != NULL && known->size == text.size &&
           memcmp(known->text, text.data, text.size) == 0;
}

static napi_value remember(struct page *page, struct known_text *known, struct wal_slice text)
{
    napi_value value = make_text(page->call, text);

    known->value = NULL;
    if (text.size <= sizeof(known->text)) {
        memcpy(known->text, text.data, text.size);
        known->size = (uint32_t)text.size;
        known->value = value;
    }
    return value;
}

static napi_value page_type(struct page *page, struct wal_slice type)
{
    size_t i = 0;

    while (i < PAGE_TYPES && page->types[i].value != NULL) {
        if (is_known(&page->types[i], type)) {
            return page->types[i].value;
        }
        i++;
    }
    return i < PAGE_TYPES ? remember(page, &page->types[i], type) : make_text(page->call, type);
}

static napi_value page_parent(struct page *page, struct wal_slice parent_id)
{
    if (parent_id.size == 0) {
        return page->null;
    }
    return is_known(&page->id, parent_id) ? page->id.value : make_text(page->call, parent_id);
}

static napi_value page_run_id(struct page *page, struct wal_slice run_id)
{
    if (run_id.size == 0) {
        return page->null;
    }
    return is_known(&page->run_id, run_id) ? page->run_id.value
                                           : remember(page, &page->run_id, run_id);
}

/* A string; a buffer for a line that is not UTF-8; the digest of what is left out. */
static napi_value make_payload(struct call *call, const struct wal_entry *entry)
{
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
        return make_digest(call, entry->payload_digest);
    }
    return make_text_or_buffer(call, entry->payload);
}

static void page_add(struct page *page, const struct wal_entry *entry)
{
    struct call *call = page->call;
    napi_value *values = page->values + (size_t)page->count * CURSOR_VALUES;
    double *numbers = call->addon->numbers + (size_t)page->count * CURSOR_NUMBERS;

    values[1] = page_parent(page, entry->parent_id);
    values[0] = remember(page, &page->id, entry->id);
    values[2] = page_type(page, entry->type);
    values[3] = make_text(call, entry->timestamp);
    values[4] = page_run_id(page, entry->run_id);
    values[5] = make_payload(call, entry);
    values[6] = entry->meta.size == 0 ? page->null : make_text(call, entry->meta);
    numbers[0] = entry->flags;
    numbers[1] = entry->stream;
    numbers[2] = (double)entry->sequence;
    numbers[3] = (double)entry->depth;
    numbers[4] = (double)entry->payload_size;
    page->count++;
}

/* One array of all values: the rest parameter of a function of JavaScript, which is faster than to
 * set its elements one by one. */
static napi_value page_array(struct page *page)
{
    struct call *call = page->call;
    napi_value collect = NULL;
    napi_value array = NULL;

    if (!call->failed &&
        call_ok(call, napi_get_reference_value(call->env, call->addon->collect, &collect))) {
        call_ok(call,
                napi_call_function(call->env, page->null, collect,
                                   (size_t)page->count * CURSOR_VALUES, page->values, &array));
    }
    return array;
}

/* Throws the error that ended the last batch. */
static bool take_error(struct call *call, struct cursor *cursor)
{
    if (cursor->error == NULL) {
        return false;
    }
    *call_error(call) = *cursor->error;
    free(cursor->error);
    cursor->error = NULL;
    call->failed = true;
    return true;
}

/* Keeps a failure for the next call, when entries come before it. */
static void keep_error(struct call *call, struct cursor *cursor)
{
    cursor->error = malloc(sizeof(*cursor->error));
    if (cursor->error != NULL) {
        *cursor->error = call->addon->error;
    }
}

/* next(cursor, max): an array with the values of the entries, empty at the end; fills the numbers.
 * max undefined: CURSOR_ENTRIES. */
static napi_value next_entries(struct call *call)
{
    struct handle *handle = handle_get(call, 0, &cursor_type);
    struct cursor *cursor = handle == NULL ? NULL : handle->object;
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status = WAL_OK;
    uint64_t bytes = 0;
    uint32_t max = value_u32(call, call_arg(call, 1));
    struct page page;

    max = max == 0 || max > CURSOR_ENTRIES ? CURSOR_ENTRIES : max;
    if (call->failed || take_error(call, cursor)) {
        return NULL;
    }
    page_init(&page, call);
    while (!call->failed && page.count < max && bytes < CURSOR_BYTES) {
        status = wal_entry_cursor_next(cursor->entries, &entry, call_error(call));
        if (status != WAL_OK) {
            break;
        }
        cursor->last = entry.sequence;
        if (entry.sequence > cursor->after) {
            page_add(&page, &entry);
            bytes += entry.payload.size;
        }
    }
    if (status < WAL_OK && page.count > 0) {
        keep_error(call, cursor);
    } else {
        (void)call_check(call, status);
    }
    return page_array(&page);
}

/* entry(session, id): as next, for one entry on any branch; empty when there is none. */
static napi_value get_entry(struct call *call)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_slice id = value_text(call, call_arg(call, 1));
    enum wal_status status;
    struct page page;

    if (call->failed) {
        return NULL;
    }
    page_init(&page, call);
    status = wal_entry_get(session->object, id, &entry, call_error(call));
    if (status == WAL_OK) {
        page_add(&page, &entry);
    } else if (status != WAL_ENOTFOUND) {
        (void)call_check(call, status);
    }
    return page_array(&page);
}

/* closeCursor(cursor) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &cursor_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

/* --- documents ------------------------------------------------------------ */

/* Whose documents they are: one of the two is set. */
struct owner {
    struct store *store;
    struct handle *session;
};

static struct owner read_owner(struct call *call)
{
    struct owner owner = {NULL, NULL};

    if (value_is_absent(call, call_arg(call, 0))) {
        owner.store = store_get(call, 1);
    } else {
        owner.session = handle_get(call, 0, &session_type);
    }
    return owner;
}

static struct wal_store *owner_store(const struct owner *owner)
{
    return owner->store == NULL ? NULL : owner->store->wal;
}

static struct wal_session *owner_session(const struct owner *owner)
{
    return owner->session == NULL ? NULL : owner->session->object;
}

/* --- reading ------------------------------------------------------------ */

/* document(session, store, key, version): the document with its value as text, or null */
static napi_value get_document(struct call *call)
{
    struct wal_doc doc = WAL_INIT(wal_doc);
    struct owner owner = read_owner(call);
    struct wal_slice key = value_text(call, call_arg(call, 2));
    uint64_t version = value_u64(call, call_arg(call, 3));
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status = wal_doc_get(owner_store(&owner), owner_session(&owner), key, version, &doc,
                         call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_null(call);
    }
    return call_check(call, status) ? make_struct(call, &wal_doc_out, &doc) : NULL;
}

static enum wal_status next_document(void *cursor, void *doc, struct wal_error *error)
{
    return wal_doc_cursor_next(cursor, doc, error);
}

/* documents(session, store, prefix, flags): an array */
static napi_value list_documents(struct call *call)
{
    struct owner owner = read_owner(call);
    struct wal_doc_cursor_options options;
    struct wal_doc_cursor *cursor = NULL;
    napi_value documents;

    read_struct(call, 2, &wal_doc_cursor_options_in, &options);
    if (call->failed ||
        !call_check(call, wal_doc_cursor_open(owner_store(&owner), owner_session(&owner), &options,
                                              &cursor, call_error(call)))) {
        return NULL;
    }
    documents = make_rows(call, &wal_doc_out, next_document, cursor, UINT32_MAX);
    wal_doc_cursor_close(cursor);
    return documents;
}

/* --- writing ------------------------------------------------------------ */

struct put_job {
    struct job job;
    struct wal_doc doc;
    bool is_deletion;
    uint64_t version;
};

static enum wal_status put_run(struct job *job, struct wal_error *error)
{
    struct put_job *self = (struct put_job *)job;
    struct wal_session *session = job->handle == NULL ? NULL : job->handle->object;

    return self->is_deletion
               ? wal_doc_delete(job->store->wal, session, &self->doc, &self->version, error)
               : wal_doc_put(job->store->wal, session, &self->doc, &self->version, error);
}

static napi_value put_finish(struct call *call, struct job *job)
{
    return make_number(call, ((struct put_job *)job)->version);
}

static const struct job_kind put_kind = {"put", sizeof(struct put_job), put_run, put_finish, NULL};

/* putDocument(session, store, key, value, flags, version): the newest version. A value of undefined
 * deletes it. */
static napi_value put_document(struct call *call)
{
    struct owner owner = read_owner(call);
    struct put_job *self = job_create(call, &put_kind, owner.store, owner.session);

    if (self == NULL) {
        return NULL;
    }
    self->is_deletion = value_is_absent(call, call_arg(call, 3));
    read_struct(call, 2, &wal_doc_in, &self->doc);
    return job_start(call, &self->job);
}

const struct call_method session_methods[] = {
    {"create", create_session},
    {"createSync", create_now},
    {"session", open_session},
    {"latest", open_latest},
    {"openOrCreate", open_or_create},
    {"head", get_head},
    {"listNext", list_next},
    {"fork", fork_session},
    {"compactSession", compact_session},
    {"redact", redact},
    {"changeSession", change_session},
    {"submit", submit_batch},
    {"commit", commit_batch},
    {"makeId", make_id},
    {"openCursor", open_cursor},
    {"next", next_entries},
    {"closeCursor", close_handle},
    {"entry", get_entry},
    {"lastSequence", last_sequence},
    {"remaining", remaining},
    {"document", get_document},
    {"documents", list_documents},
    {"putDocument", put_document},
    {NULL, NULL},
};
