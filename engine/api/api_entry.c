/*
 * api_entry.c - the public functions that read entries (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/read/lookup.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"

enum wal_status
wal_entry_cursor_open(struct wal_session *session,
                      const struct wal_entry_cursor_options *options,
                      struct wal_entry_cursor **cursor, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_entry_cursor_options own;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_entry_cursor_options), &own,
                                  options, error);
    }
    while (status == WAL_OK) {
        status = wal__entry_cursor_open(session, &own, cursor, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__core_retain(session->core);
    }
    return status;
}

uint64_t wal_entry_cursor_remaining(const struct wal_entry_cursor *cursor)
{
    return cursor == NULL ? 0 : cursor->remaining;
}

/* Reading needs neither locks nor threads, so that a child may go on with it;
 * and asking for the process id would cost as much as the entry. */
static enum wal_status check_read(const struct wal_entry_cursor *cursor,
                                  const struct wal_entry *entry,
                                  struct wal_error *error)
{
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(cursor->core, error);
    return status == WAL_OK
               ? wal__struct_check_output(WAL__STRUCT(wal_entry), entry, error)
               : status;
}

enum wal_status wal_entry_cursor_next(struct wal_entry_cursor *cursor,
                                      struct wal_entry *entry,
                                      struct wal_error *error)
{
    struct wal_entry own;
    struct wal_entry *out;
    enum wal_status status = check_read(cursor, entry, error);

    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    status = wal__entry_cursor_next(cursor, out, error);
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

enum wal_status wal_entry_cursor_get(struct wal_entry_cursor *cursor,
                                     struct wal_slice id,
                                     struct wal_entry *entry,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__span span;
    struct wal_entry own;
    struct wal_entry *out;
    enum wal_status status = check_read(cursor, entry, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "entry's id", &span, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    do {
        status = wal__entry_cursor_get(cursor, span, out, error);
    } while (wal__core_read_again(cursor->core, status, cursor->is_damaged,
                                  &looked));
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

enum wal_status wal_entry_get(struct wal_session *session, struct wal_slice id,
                              struct wal_entry *entry, struct wal_error *error)
{
    uint64_t looked = 0;
    bool is_damaged = false;
    struct wal__span span;
    struct wal_entry own;
    struct wal_entry *out = &own;
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_entry), entry, error);
    }
    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "entry's id", &span, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(WAL__STRUCT(wal_entry), entry, &own);
    }
    while (status == WAL_OK) {
        status = wal__lookup_entry(session, span, out, &is_damaged, error);
        if (!wal__core_read_again(session->core, status, is_damaged, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_entry), entry, out);
    }
    return status;
}

void wal_entry_cursor_close(struct wal_entry_cursor *cursor)
{
    struct wal__core *core = cursor == NULL ? NULL : cursor->core;

    wal__entry_cursor_close(cursor);
    wal__core_release(core);
}
