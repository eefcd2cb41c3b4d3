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
    struct opened_session fork;
    struct wal_append_result result;
};

static void fork_discard(struct job *job)
{
    session_discard(&((struct fork_job *)job)->fork);
}

/* --- fork --------------------------------------------------------------- */

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

const struct call_method session_fork_methods[] = {
    {"fork", fork_session},
    {"compactSession", compact_session},
    {"redact", redact},
    {NULL, NULL},
};
