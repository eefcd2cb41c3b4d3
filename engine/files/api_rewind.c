/*
 * api_rewind.c - the public functions that bring files back to a checkpoint
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include "engine/files/rewind.h"

#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"
#include "engine/store/input_text.h"

static enum wal_status check_options(const struct wal_rewind_options *options,
                                     struct wal_error *error)
{
    const uint32_t known =
        WAL_REWIND_DRY_RUN | WAL_REWIND_FORCE | WAL_REWIND_HEAD;
    struct wal__span span;
    enum wal_status status;

    if ((options->flags & ~known) != 0) {
        return wal__invalid(error, "the rewind's flags are %#x",
                            options->flags);
    }
    status = wal__text_check(options->expected, WAL__ID_MAX,
                             "expected checkpoint's id", &span, error);
    if (status == WAL_OK &&
        (!wal__text_span(options->root, WAL__PATH_MAX - 1, &span) ||
         (span.size > 0 && span.data[0] != '/'))) {
        status = wal__invalid(error,
                              "the root is not an absolute path of at most %d "
                              "bytes",
                              WAL__PATH_MAX - 1);
    }
    return status;
}

static enum wal_status check_arguments(struct wal_session *session,
                                       struct wal_slice checkpoint,
                                       const struct wal_rewind_options *options,
                                       const struct wal_rewind_result *result,
                                       struct wal__span *id,
                                       struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = check_options(options, error);
    }
    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_rewind_result),
                                            result, error);
    }
    if (status == WAL_OK) {
        status = wal__checkpoint_check_id(checkpoint, id, error);
    }
    return status;
}

enum wal_status wal_rewind(struct wal_session *session,
                           struct wal_slice checkpoint,
                           const struct wal_rewind_options *options,
                           struct wal_rewind_result *result,
                           struct wal_file_change_cursor **changes,
                           struct wal_error *error)
{
    struct wal_rewind_options own;
    struct wal_rewind_result made = {.struct_size = sizeof(made)};
    struct wal_file_change_cursor *cursor = NULL;
    struct wal__span id;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_rewind_options), &own, options, error);

    if (status == WAL_OK) {
        status = check_arguments(session, checkpoint, &own, result, &id, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__rewind(session, id, &own, &made, &cursor, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__struct_store(WAL__STRUCT(wal_rewind_result), result, &made);
    if (changes == NULL) {
        wal_file_change_cursor_close(cursor);
    } else {
        *changes = cursor;
    }
    return WAL_OK;
}
