/*
 * session.c - creating, opening, forking and changing sessions, and appending
 * to them; interface.txt has most other calls.
 *
 * The function that computes a change is one of JavaScript, which a thread
 * cannot call. lib/session/session.js reads the session, calls it, and passes
 * the change with the version that it was made from; the library's callback
 * here refuses another version, and lib/session/session.js begins again. A
 * batch would not do: it skips a change that is equal to the present state,
 * so that two callers that each add one might write the same value.
 */
#include <agentwal/admin.h>
#include <string.h>

#include "bindings/node/native/base/uuid.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/batch.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

/* A session that was opened, until JavaScript has it. */
struct opened_session {
    struct wal_session *session; /* NULL: none */
    char id[WAL_ID_SIZE];
    size_t id_size; /* of an id, which may have NUL */
};

/* Fills the id once the session is there, in the thread that opened it: its
 * promise may be settled when the store is closed. `status` is that of opening
 * it, and returned if it is a failure. Any thread. */
static enum wal_status session_identify(struct opened_session *opened,
                                        enum wal_status status,
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
    array_push(
        call, pair, 1,
        make_text(call, (struct wal_slice){opened->id, opened->id_size}));
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
    enum wal_status status = wal_session_create(job->store->wal, &self->options,
                                                &self->made.session, error);

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

static const struct job_kind create_kind = {"create", sizeof(struct create_job),
                                            create_run, create_finish,
                                            create_discard};

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
                                 struct opened_session *opened,
                                 enum wal_status status)
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
    status = wal_session_create(store->wal, &options, &made.session,
                                call_error(call));
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
    status =
        wal_session_open(store->wal, id, &opened.session, call_error(call));
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
    status = wal_session_open_latest(store->wal, cwd, &opened.session,
                                     call_error(call));
    return status == WAL_ENOTFOUND
               ? make_null(call)
               : return_session(call, store, &opened, status);
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

static enum wal_status open_or_create_run(struct job *job,
                                          struct wal_error *error)
{
    struct named_job *self = (struct named_job *)job;
    enum wal_status status = wal_session_open_or_create(
        job->store->wal, &self->options, &self->opened.session, &self->created,
        error);

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

static const struct job_kind open_or_create_kind = {
    "openOrCreate", sizeof(struct named_job), open_or_create_run,
    open_or_create_finish, named_discard};

/* openOrCreate(store, OPTIONS) */
static napi_value open_or_create(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct named_job *self =
        job_create(call, &open_or_create_kind, store, NULL);

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

static enum wal_status next_session(void *cursor, void *info,
                                    struct wal_error *error)
{
    return wal_session_cursor_next(cursor, info, error);
}

/* listNext(list, max): an array of states, shorter at the end */
static napi_value list_next(struct call *call)
{
    struct handle *list = handle_get(call, 0, &list_type);
    uint32_t max = value_u32(call, call_arg(call, 1));

    return call->failed ? NULL
                        : make_rows(call, &wal_session_info_out, next_session,
                                    list->object, max);
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
        wal_session_fork(job->handle->object, self->at, &self->options,
                         &self->fork.session, error);

    return session_identify(&self->fork, status, error);
}

static napi_value fork_finish(struct call *call, struct job *job)
{
    return session_make(call, job->store, &((struct fork_job *)job)->fork);
}

static const struct job_kind fork_kind = {"fork", sizeof(struct fork_job),
                                          fork_run, fork_finish, fork_discard};

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

    enum wal_status status = wal_session_compact(
        job->handle->object, &options,
        self->is_fork ? &self->fork.session : NULL, &self->result, error);

    return self->is_fork ? session_identify(&self->fork, status, error)
                         : status;
}

static enum wal_status redact_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;

    return wal_session_redact(job->handle->object, self->at, self->text,
                              &self->result, error);
}

/* [[session, id] or null, result] */
static napi_value result_finish(struct call *call, struct job *job)
{
    struct fork_job *self = (struct fork_job *)job;
    napi_value pair = make_array(call);

    array_push(call, pair, 0, session_make(call, job->store, &self->fork));
    array_push(call, pair, 1,
               make_struct(call, &wal_append_result_out, &self->result));
    return pair;
}

static const struct job_kind compact_kind = {"compact", sizeof(struct fork_job),
                                             compact_run, result_finish,
                                             fork_discard};
static const struct job_kind redact_kind = {
    "redact", sizeof(struct fork_job), redact_run, result_finish, fork_discard};

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
        status = wal_session_migrate(session, self->schema,
                                     self->has_change ? give_change : NULL,
                                     self, NULL, error);
    }
    return status == WAL_ECALLBACK ? WAL_END : status;
}

static napi_value change_finish(struct call *call, struct job *job)
{
    return make_bool(call, job->status == WAL_OK);
}

static const struct job_kind change_kind = {"change", sizeof(struct change_job),
                                            change_run, change_finish, NULL};

/* changeSession(session, schema, version, fields, metadata, title, cwd,
 * project, schemaVersion, expectSequence): fulfils with false when the session
 * had changed. fields undefined: the library knows the change. */
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

/* submit(session, slot, BATCH_ARGS): the made id of the last entry or
 * undefined. numbers[0] is 1 when the batch is accepted and nothing will be
 * reported. */
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

/* commit(session, BATCH_ARGS): as submit, and waits. numbers: appended,
 * duplicates, sequence. */
static napi_value commit_batch(struct call *call)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct handle *session = handle_get(call, 0, &session_type);
    struct batch_input *input;

    if (session == NULL) {
        return NULL;
    }
    /* It may run JavaScript, which may close the session and use the memory
     * that batches are read to. */
    submissions_flush_backlog(session->store);
    session = handle_get(call, 0, &session_type);
    input = batch_read(call, 1);
    if (call->failed) {
        return NULL;
    }
    if (!call_check(call, wal_batch_commit(session->object, &input->batch,
                                           &input->options, &result,
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
    {NULL, NULL},
};
