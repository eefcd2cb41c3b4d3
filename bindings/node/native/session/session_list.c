/*
 * session_list.c - lists of sessions, and the latest one.
 */
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/store.h"

static void close_list(void *object)
{
    wal_session_cursor_close(object);
}

static const struct handle_type list_type = {"list", close_list, false};

/* openList(store, flags, cwd, project, prefix, source, parent, lineageOf,
 * after, changedAfter, recordedAfter) */
static napi_value open_list(struct call *call)
{
    struct store *store = store_get(call, 0);
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = value_u32(call, call_arg(call, 1)),
        .cwd = value_text(call, call_arg(call, 2)),
        .project = value_text(call, call_arg(call, 3)),
        .prefix = value_text(call, call_arg(call, 4)),
        .source = value_text(call, call_arg(call, 5)),
        .parent = value_text(call, call_arg(call, 6)),
        .lineage_of = value_text(call, call_arg(call, 7)),
        .after = value_text(call, call_arg(call, 8)),
        .changed_after = value_i64(call, call_arg(call, 9)),
        .recorded_after = value_u64(call, call_arg(call, 10)),
    };
    struct wal_session_cursor *cursor = NULL;

    if (call->failed ||
        !call_check(call, wal_session_cursor_open(store->wal, &options, &cursor,
                                                  call_error(call)))) {
        return NULL;
    }
    return handle_make(call, &list_type, store, cursor);
}

/* listNext(list, max): an array of states, shorter at the end */
static napi_value list_next(struct call *call)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct handle *list = handle_get(call, 0, &list_type);
    uint32_t max = value_u32(call, call_arg(call, 1));
    napi_value infos = make_array(call);

    for (uint32_t i = 0; i < max && !call->failed; i++) {
        enum wal_status status =
            wal_session_cursor_next(list->object, &info, call_error(call));

        if (!call_check(call, status) || status == WAL_END) {
            break;
        }
        array_push(call, infos, i, session_make_info(call, &info));
    }
    return infos;
}

/* listPosition(list) */
static napi_value list_position(struct call *call)
{
    char position[WAL_CURSOR_TEXT_SIZE];
    struct handle *list = handle_get(call, 0, &list_type);

    if (list == NULL ||
        !call_check(call, wal_session_cursor_encode(list->object, position,
                                                    call_error(call)))) {
        return NULL;
    }
    return make_string(call, position);
}

/* closeList(list) */
static napi_value close_handle(struct call *call)
{
    struct handle *list = handle_find(call, 0, &list_type);

    if (list != NULL) {
        handle_close(list);
    }
    return make_undefined(call);
}

/* latest(store, cwd): a session, or null */
static napi_value open_latest(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct wal_slice cwd = value_text(call, call_arg(call, 1));
    struct wal_session *session = NULL;
    enum wal_status status;

    if (call->failed) {
        return NULL;
    }
    status =
        wal_session_open_latest(store->wal, cwd, &session, call_error(call));
    if (status == WAL_ENOTFOUND) {
        return make_null(call);
    }
    return call_check(call, status)
               ? handle_make(call, &session_type, store, session)
               : NULL;
}

const struct call_method session_list_methods[] = {
    {"openList", open_list},         {"listNext", list_next},
    {"listPosition", list_position}, {"closeList", close_handle},
    {"latest", open_latest},         {NULL, NULL},
};
