/*
 * repair.c - claims of sessions, and damage that is accepted.
 */
#include <agentwal/admin.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static napi_value make_claim(struct call *call, const struct wal_claim *claim)
{
    napi_value object = make_object(call);

    object_text(call, object, "sessionId", claim->session_id);
    object_number(call, object, "sessionNumber", claim->session_number);
    object_set(call, object, "processId", make_signed(call, claim->process_id));
    object_bool(call, object, "own", (claim->flags & WAL_CLAIM_OWN) != 0);
    return object;
}

/* claims(store) */
static napi_value list_claims(struct call *call)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    struct store *store = store_get(call, 0);
    struct wal_claim_cursor *cursor = NULL;
    napi_value array = make_array(call);
    enum wal_status status = WAL_OK;

    if (call->failed ||
        !call_check(call, wal_claim_cursor_open(store->wal, &cursor,
                                                call_error(call)))) {
        return NULL;
    }
    for (uint32_t i = 0; !call->failed && status != WAL_END; i++) {
        status = wal_claim_cursor_next(cursor, &claim, call_error(call));
        if (call_check(call, status) && status == WAL_OK) {
            array_push(call, array, i, make_claim(call, &claim));
        }
    }
    wal_claim_cursor_close(cursor);
    return array;
}

/* --- damage ------------------------------------------------------------- */

static enum wal_status accept_store_run(struct job *job,
                                        struct wal_error *error)
{
    return wal_store_accept_damage(job->store->wal, error);
}

static enum wal_status accept_session_run(struct job *job,
                                          struct wal_error *error)
{
    return wal_session_accept_damage(job->handle->object, error);
}

static const struct job_kind accept_store_kind = {
    "acceptDamage", sizeof(struct job), accept_store_run, NULL, NULL};
static const struct job_kind accept_session_kind = {
    "acceptSessionDamage", sizeof(struct job), accept_session_run, NULL, NULL};

/* acceptDamage(store) */
static napi_value accept_store(struct call *call)
{
    struct store *store = store_get(call, 0);

    return job_start(call, job_create(call, &accept_store_kind, store, NULL));
}

/* acceptSessionDamage(session) */
static napi_value accept_session(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);

    return job_start(call,
                     job_create(call, &accept_session_kind, NULL, session));
}

const struct call_method repair_methods[] = {
    {"claims", list_claims},
    {"acceptDamage", accept_store},
    {"acceptSessionDamage", accept_session},
    {NULL, NULL},
};
