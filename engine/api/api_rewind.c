/*
 * api_rewind.c - the public functions that bring files back to a checkpoint
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include "engine/rewind/rewind.h"

#include "engine/api/api_check.h"
#include "engine/base/error.h"
#include "engine/store/input_text.h"

static enum wal_status check_options(const struct wal_rewind_options *options,
                                     struct wal_error *error)
{
    const uint32_t known = WAL_REWIND_DRY_RUN | WAL_REWIND_FORCE;
    struct wal__span span;
    enum wal_status status = wal__check_struct(options, options->struct_size,
                                               sizeof(*options), error);

    if (status == WAL_OK && (options->flags & ~known) != 0) {
        status =
            wal__invalid(error, "the rewind's flags are %#x", options->flags);
    }
    if (status == WAL_OK) {
        status = wal__text_check(options->expected, WAL__ID_MAX,
                                 "expected checkpoint's id", &span, error);
    }
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

enum wal_status wal_rewind(struct wal_session *session,
                           struct wal_slice checkpoint,
                           const struct wal_rewind_options *options,
                           struct wal_rewind_answer **rewind,
                           struct wal_error *error)
{
    const struct wal_rewind_options none = {.struct_size = sizeof(none)};
    struct wal__span id;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    options = options == NULL ? &none : options;
    if (status == WAL_OK) {
        status = check_options(options, error);
    }
    if (status == WAL_OK && rewind == NULL) {
        status = wal__invalid(error, "the place for the answer is null");
    }
    if (status == WAL_OK) {
        status = wal__text_check(checkpoint, WAL__ID_MAX, "checkpoint's id",
                                 &id, error);
    }
    if (status == WAL_OK && id.size == 0) {
        status = wal__invalid(error, "no checkpoint is named");
    }
    if (status != WAL_OK) {
        return status;
    }
    return session->core->noop
               ? wal__rewind_create_refused(
                     session->core, "persistence is off: nothing was kept",
                     rewind, error)
               : wal__rewind(session, id, options, rewind, error);
}

enum wal_status wal_rewind_get_info(const struct wal_rewind_answer *rewind,
                                    struct wal_rewind_info *info,
                                    struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(rewind == NULL ? NULL : rewind->core, error);

    if (status == WAL_OK) {
        status = wal__check_struct(info, info == NULL ? 0 : info->struct_size,
                                   sizeof(*info), error);
    }
    if (status == WAL_OK) {
        wal__rewind_info(rewind, info);
    }
    return status;
}

enum wal_status wal_rewind_next(struct wal_rewind_answer *rewind,
                                struct wal_file_change *change,
                                struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(rewind == NULL ? NULL : rewind->core, error);

    if (status == WAL_OK) {
        status =
            wal__check_struct(change, change == NULL ? 0 : change->struct_size,
                              sizeof(*change), error);
    }
    return status == WAL_OK ? wal__rewind_next(rewind, change) : status;
}

void wal_rewind_close(struct wal_rewind_answer *rewind)
{
    wal__rewind_close(rewind);
}
