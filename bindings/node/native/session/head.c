/*
 * head.c - heads of a session.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/job.h"

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

static napi_value make_head(struct call *call, const struct wal_head *head)
{
    napi_value object = make_object(call);

    object_text(call, object, "name", head->name);
    object_number(call, object, "stream", head->stream);
    object_text(call, object, "entryId", head->entry_id);
    object_text(call, object, "note", head->note);
    object_number(call, object, "version", head->version);
    return object;
}

/* heads(session): an array */
static napi_value list_heads(struct call *call)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct handle *session = handle_get(call, 0, &session_type);
    struct wal_head_cursor *cursor = NULL;
    napi_value heads = make_array(call);
    enum wal_status status = WAL_OK;

    if (call->failed ||
        !call_check(call, wal_head_cursor_open(session->object, &cursor,
                                               call_error(call)))) {
        return NULL;
    }
    for (uint32_t i = 0; !call->failed; i++) {
        status = wal_head_cursor_next(cursor, &head, call_error(call));
        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        array_push(call, heads, i, make_head(call, &head));
    }
    wal_head_cursor_close(cursor);
    return heads;
}

/* --- moving ------------------------------------------------------------- */

struct move_job {
    struct job job;
    struct wal_head head;
    char previous[WAL_ID_SIZE];
};

static enum wal_status move_run(struct job *job, struct wal_error *error)
{
    struct move_job *self = (struct move_job *)job;

    return wal_head_move(job->handle->object, &self->head, self->previous,
                         error);
}

static napi_value move_finish(struct call *call, struct job *job)
{
    struct move_job *self = (struct move_job *)job;

    return self->previous[0] == '\0' ? make_null(call)
                                     : make_string(call, self->previous);
}

static const struct job_kind move_kind = {"move", sizeof(struct move_job),
                                          move_run, move_finish, NULL};

/* moveHead(session, entryId, name, note, expected, flags, stream): the id of
 * the entry that it had, or null */
static napi_value move_head(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    struct move_job *self = job_create(call, &move_kind, NULL, session);

    if (self == NULL) {
        return NULL;
    }
    self->head = (struct wal_head){
        .struct_size = sizeof(self->head),
        .entry_id = value_text(call, call_arg(call, 1)),
        .name = value_text(call, call_arg(call, 2)),
        .note = value_text(call, call_arg(call, 3)),
        .expected = value_text(call, call_arg(call, 4)),
        .flags = value_u32(call, call_arg(call, 5)),
        .stream = value_u32(call, call_arg(call, 6)),
    };
    return job_start(call, &self->job);
}

const struct call_method head_methods[] = {
    {"head", get_head},
    {"heads", list_heads},
    {"moveHead", move_head},
    {NULL, NULL},
};
