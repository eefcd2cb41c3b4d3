/*
 * session.c - sessions: opening, creating, their state (session.h).
 */
#include "bindings/node/native/session/session.h"

#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void close_session(void *object)
{
    wal_session_close(object);
}

const struct handle_type session_type = {"session", close_session, true};

void session_read_options(struct call *call, size_t first,
                          struct wal_session_options *options)
{
    *options = (struct wal_session_options){
        .struct_size = sizeof(*options),
        .id = value_text(call, call_arg(call, first)),
        .cwd = value_text(call, call_arg(call, first + 1)),
        .project = value_text(call, call_arg(call, first + 2)),
        .title = value_text(call, call_arg(call, first + 3)),
        .parent_id = value_text(call, call_arg(call, first + 4)),
        .source = value_text(call, call_arg(call, first + 5)),
        .metadata = value_text(call, call_arg(call, first + 6)),
        .schema_version = value_u32(call, call_arg(call, first + 7)),
        .created_ms = value_i64(call, call_arg(call, first + 8)),
    };
}

enum wal_status session_identify(struct opened_session *opened,
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

void session_discard(struct opened_session *opened)
{
    wal_session_close(opened->session);
    opened->session = NULL;
}

napi_value session_make(struct call *call, struct store *store,
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

/* --- creating and opening ----------------------------------------------- */

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
    session_read_options(call, 1, &job->options);
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
    session_read_options(call, 1, &options);
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

/* closeSession(session) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &session_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

/* --- state -------------------------------------------------------------- */

napi_value session_make_info(struct call *call,
                             const struct wal_session_info *info)
{
    napi_value object = make_object(call);

    object_text(call, object, "id", info->id);
    object_number(call, object, "number", info->number);
    object_text(call, object, "cwd", info->cwd);
    object_text(call, object, "project", info->project);
    object_text(call, object, "title", info->title);
    object_text(call, object, "parentId", info->parent_id);
    object_text(call, object, "source", info->source);
    object_set(call, object, "metadata", make_optional(call, info->metadata));
    object_set(call, object, "head", make_optional(call, info->head));
    object_text(call, object, "firstText", info->first_text);
    object_set(call, object, "created", make_signed(call, info->created_ms));
    object_set(call, object, "updated", make_signed(call, info->updated_ms));
    object_number(call, object, "entries", info->entries);
    object_number(call, object, "inherited", info->inherited);
    object_number(call, object, "bytes", info->bytes);
    object_number(call, object, "documents", info->documents);
    object_number(call, object, "lastSequence", info->last_sequence);
    object_number(call, object, "metadataVersion", info->metadata_version);
    object_number(call, object, "schemaVersion", info->schema_version);
    object_bool(call, object, "isFork", (info->flags & WAL_SESSION_FORK) != 0);
    object_bool(call, object, "isDamaged",
                (info->flags & WAL_SESSION_DAMAGED) != 0);
    object_bool(call, object, "isDeleted",
                (info->flags & WAL_SESSION_DELETED) != 0);
    object_bool(call, object, "isTrashed",
                (info->flags & WAL_SESSION_TRASHED) != 0);
    object_bool(call, object, "isMoved",
                (info->flags & WAL_SESSION_MOVED) != 0);
    return object;
}

/* sessionInfo(session) */
static napi_value session_info(struct call *call)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct handle *session = handle_get(call, 0, &session_type);

    if (session == NULL ||
        !call_check(call, wal_session_get_info(session->object, &info,
                                               call_error(call)))) {
        return NULL;
    }
    return session_make_info(call, &info);
}

const struct call_method session_methods[] = {
    {"create", create_session},
    {"createSync", create_now},
    {"session", open_session},
    {"latest", open_latest},
    {"closeSession", close_handle},
    {"sessionInfo", session_info},
    {NULL, NULL},
};
