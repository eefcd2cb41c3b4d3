/*
 * session.c - changing sessions, appending to them and reading them; interface.txt has most other
 * calls.
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

enum wal_status session_identify(struct opened_session *opened, enum wal_status status,
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);

    if (status == WAL_OK && opened->session != NULL) {
        status = wal_session_get_info(opened->session, &info, error);
    }
    if (status == WAL_OK && opened->session != NULL) {
        memcpy(opened->id, info.id.data, info.id.size);
        opened->id_size = info.id.size;
    }
    return status;
}

void session_discard(struct opened_session *opened)
{
    wal_session_close(opened->session);
    opened->session = NULL;
}

napi_value session_make(struct call *call, struct store *store, struct opened_session *opened)
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

enum { PAGE_TYPES = 8 };

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

const struct call_method session_methods[] = {
    {"head", get_head},          {"listNext", list_next},         {"changeSession", change_session},
    {"submit", submit_batch},    {"commit", commit_batch},        {"makeId", make_id},
    {"openCursor", open_cursor}, {"next", next_entries},          {"entry", get_entry},
    {"remaining", remaining},    {"lastSequence", last_sequence}, {NULL, NULL},
};
