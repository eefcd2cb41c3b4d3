/*
 * session_change.c - changing a session's metadata and texts, and migrating its
 * schema.
 *
 * The function that computes a change is one of JavaScript, which a thread
 * cannot call. lib/session/session.js reads the session, calls it, and passes
 * the change with the version that it was made from; the library's callback
 * here refuses another version, and lib/session/session.js begins again. A
 * batch would not do: it skips a change that is equal to the present state,
 * so that two callers that each add one might write the same value.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"

#include <agentwal/admin.h>

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

const struct call_method session_change_methods[] = {
    {"changeSession", change_session},
    {NULL, NULL},
};
