/*
 * api_head.c - the public functions that read named heads (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include "engine/base/error.h"
#include "engine/read/head_list.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"

enum wal_status wal_head_get(struct wal_session *session, uint32_t stream,
                             struct wal_slice name, char entry_id[256],
                             struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && (entry_id == NULL || stream > 255)) {
        status = wal__invalid(error, entry_id == NULL
                                         ? "the place for the entry id is null"
                                         : "a stream has a number up to 255");
    }
    if (status == WAL_OK) {
        status =
            wal__text_check(name, WAL__ID_MAX, "head's name", &span, error);
    }
    while (status == WAL_OK) {
        status = wal__head_get(session, stream, span, entry_id, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_head_cursor_open(struct wal_session *session,
                                     struct wal_head_cursor **heads,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && heads == NULL) {
        status = wal__invalid(error, "the place for the list is null");
    }
    while (status == WAL_OK) {
        status = wal__head_cursor_open(session, heads, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_head_cursor_next(struct wal_head_cursor *heads,
                                     struct wal_head *head,
                                     struct wal_error *error)
{
    struct wal_head own;
    struct wal_head *out;
    enum wal_status status;

    if (heads == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(wal__head_cursor_core(heads), error);
    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_head), head, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_head), head, &own);
    status = wal__head_cursor_next(heads, out);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_head), head, out);
    }
    return status;
}

void wal_head_cursor_close(struct wal_head_cursor *heads)
{
    wal__head_cursor_close(heads);
}
