/*
 * session.c - creating and opening sessions (session.h); interface.txt has most
 * other calls on them.
 */
#include "bindings/node/native/session/session.h"

#include <string.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

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

/* --- openOrCreate ------------------------------------------------------ */

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

/* --- heads, and lists of sessions -------------------------------------- */

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

const struct call_method session_methods[] = {
    {"create", create_session},       {"createSync", create_now},
    {"session", open_session},        {"latest", open_latest},
    {"openOrCreate", open_or_create}, {"head", get_head},
    {"listNext", list_next},          {NULL, NULL},
};
