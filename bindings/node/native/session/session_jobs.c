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

static enum wal_status delete_run(struct job *job, struct wal_error *error)
{
    return wal_session_delete(job->handle->object, error);
}

static enum wal_status trash_run(struct job *job, struct wal_error *error)
{
    return wal_session_trash(job->handle->object, error);
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

static napi_value delete_session(struct call *call)
{
    static const struct job_kind kind = {"delete", sizeof(struct job),
                                         delete_run, NULL, NULL};

    return start_plain(call, &kind);
}

static napi_value trash_session(struct call *call)
{
    static const struct job_kind kind = {"trash", sizeof(struct job), trash_run,
                                         NULL, NULL};

    return start_plain(call, &kind);
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
    struct wal_session *session;
    int32_t created;
};

static void named_discard(struct job *job)
{
    wal_session_close(((struct named_job *)job)->session);
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

    return wal_session_open_or_create(job->store->wal, &self->options,
                                      &self->session, &self->created, error);
}

/* [session, created] */
static napi_value open_or_create_finish(struct call *call, struct job *job)
{
    struct named_job *self = (struct named_job *)job;
    struct wal_session *session = self->session;
    napi_value pair = make_array(call);

    self->session = NULL;
    array_push(call, pair, 0,
               handle_make(call, &session_type, job->store, session));
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
    {"deleteSession", delete_session},
    {"trashSession", trash_session},
    {"claimSession", claim_session},
    {"unclaimSession", unclaim_session},
    {"undelete", undelete_session},
    {"openOrCreate", open_or_create},
    {NULL, NULL},
};
