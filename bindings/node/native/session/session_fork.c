/*
 * session_fork.c - forks, compactions of a conversation, and redactions.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"

struct fork_job {
    struct job job;
    struct wal_slice at; /* fork: its last entry; redact: the entry */
    struct wal_slice text;
    struct wal_session_options options;
    bool is_fork; /* compact: into a fork */
    struct wal_session *fork;
    struct wal_append_result result;
};

static void fork_discard(struct job *job)
{
    wal_session_close(((struct fork_job *)job)->fork);
}

/* The handle of the fork, or null. */
static napi_value take_fork(struct call *call, struct fork_job *self)
{
    struct wal_session *fork = self->fork;

    self->fork = NULL;
    return fork == NULL
               ? make_null(call)
               : handle_make(call, &session_type, self->job.store, fork);
}

/* --- fork --------------------------------------------------------------- */

static enum wal_status fork_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;

    return wal_session_fork(job->handle->object, self->at, &self->options,
                            &self->fork, error);
}

static napi_value fork_finish(struct call *call, struct job *job)
{
    return take_fork(call, (struct fork_job *)job);
}

static const struct job_kind fork_kind = {"fork", sizeof(struct fork_job),
                                          fork_run, fork_finish, fork_discard};

/* fork(session, at, OPTIONS): a session */
static napi_value fork_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct fork_job *self = job_create(call, &fork_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->at = value_text(call, call_arg(call, 1));
    session_read_options(call, 2, &self->options);
    return job_start(call, &self->job);
}

/* --- compact and redact ------------------------------------------------- */

static enum wal_status compact_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;
    const struct wal_compact_options options = {
        .struct_size = sizeof(options),
        .first_kept = self->at,
        .summary = self->text,
        .into = self->is_fork ? &self->options : NULL,
    };

    return wal_session_compact(job->handle->object, &options,
                               self->is_fork ? &self->fork : NULL,
                               &self->result, error);
}

static enum wal_status redact_run(struct job *job, struct wal_error *error)
{
    struct fork_job *self = (struct fork_job *)job;

    return wal_session_redact(job->handle->object, self->at, self->text,
                              &self->result, error);
}

/* [session or null, result] */
static napi_value result_finish(struct call *call, struct job *job)
{
    struct fork_job *self = (struct fork_job *)job;
    napi_value pair = make_array(call);
    napi_value result = make_object(call);

    object_number(call, result, "appended", self->result.appended);
    object_number(call, result, "duplicates", self->result.duplicates);
    object_number(call, result, "sequence", self->result.sequence);
    object_set(call, result, "lastId", make_string(call, self->result.last_id));
    array_push(call, pair, 0, take_fork(call, self));
    array_push(call, pair, 1, result);
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
    session_read_options(call, 3, &self->options);
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

const struct call_method session_fork_methods[] = {
    {"fork", fork_session},
    {"compactSession", compact_session},
    {"redact", redact},
    {NULL, NULL},
};
