/*
 * session_jobs.c - calls on a session, or by its id, that wait and return
 * nothing but the session.
 */
#include <agentwal/admin.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

struct remove_job {
    struct job job;
    struct wal_session_remove_options options;
};

static enum wal_status remove_run(struct job *job, struct wal_error *error)
{
    return wal_session_remove(job->handle->object,
                              &((struct remove_job *)job)->options, error);
}

static const struct job_kind remove_kind = {"remove", sizeof(struct remove_job),
                                            remove_run, NULL, NULL};

/* removeSession(session, flags, expectSequence) */
static napi_value remove_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct remove_job *self = job_create(call, &remove_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->options = (struct wal_session_remove_options){
        .struct_size = sizeof(self->options),
        .flags = value_u32(call, call_arg(call, 1)),
        .expected_sequence = value_u64(call, call_arg(call, 2)),
    };
    return job_start(call, &self->job);
}

static enum wal_status claim_run(struct job *job, struct wal_error *error)
{
    return wal_session_claim(job->handle->object, error);
}

static enum wal_status unclaim_run(struct job *job, struct wal_error *error)
{
    return wal_session_unclaim(job->handle->object, error);
}

/* Starts a job that has no arguments but the session. */
static napi_value start_plain(struct call *call, const struct job_kind *kind)
{
    struct handle *session = handle_get(call, 0, &session_type);

    return job_start(call, job_create(call, kind, NULL, session));
}

static napi_value claim_session(struct call *call)
{
    static const struct job_kind kind = {"claim", sizeof(struct job), claim_run,
                                         NULL, NULL};

    return start_plain(call, &kind);
}

static napi_value unclaim_session(struct call *call)
{
    static const struct job_kind kind = {"unclaim", sizeof(struct job),
                                         unclaim_run, NULL, NULL};

    return start_plain(call, &kind);
}

/* --- by its id ---------------------------------------------------------- */

struct named_job {
    struct job job;
    struct wal_session_options options; /* or the id alone */
    struct opened_session opened;
    int32_t created;
};

static void named_discard(struct job *job)
{
    session_discard(&((struct named_job *)job)->opened);
}

static enum wal_status undelete_run(struct job *job, struct wal_error *error)
{
    struct named_job *self = (struct named_job *)job;

    return wal_session_undelete(job->store->wal, self->options.id, error);
}

static const struct job_kind undelete_kind = {
    "undelete", sizeof(struct named_job), undelete_run, NULL, named_discard};

/* undelete(store, id) */
static napi_value undelete_session(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct named_job *self = job_create(call, &undelete_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->options.id = value_text(call, call_arg(call, 1));
    return job_start(call, &self->job);
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
    session_read_options(call, 1, &self->options);
    return job_start(call, &self->job);
}

const struct call_method session_job_methods[] = {
    {"removeSession", remove_session},   {"claimSession", claim_session},
    {"unclaimSession", unclaim_session}, {"undelete", undelete_session},
    {"openOrCreate", open_or_create},    {NULL, NULL},
};
