/*
 * api_session.c - the public functions on sessions and lists of them
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/api/api_check.h"
#include "engine/api/api_noop.h"
#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"

/* --- sessions ----------------------------------------------------------- */

enum wal_status wal_session_create(struct wal_store *store,
                                   const struct wal_session_options *options,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_session_create(core, options, session, error);
    }
    while (status == WAL_OK) {
        status = wal__session_create(core, options, session, error);
        if (!wal__core_invalidate_derived(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

static enum wal_status open_session(struct wal__core *core, struct wal__span id,
                                    struct wal_session **session,
                                    struct wal_error *error)
{
    struct wal__summary summary = {0};
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__catalogue_find(&core->catalogue, id, &summary);
    wal__core_unlock(core);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, core->env.root, 0,
                            status == WAL_ENOTFOUND
                                ? "there is no session \"%.*s\""
                                : "session \"%.*s\" cannot be looked up",
                            (int)id.size, (const char *)id.data);
    }
    return wal__session_open(core, summary.number, session, error);
}

enum wal_status wal_session_open(struct wal_store *store, struct wal_slice id,
                                 struct wal_session **session,
                                 struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        return wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_session_open(core, span, session, error);
    }
    while (status == WAL_OK) {
        status = open_session(core, span, session, error);
        if (!wal__core_invalidate_derived(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

void wal_session_close(struct wal_session *session)
{
    wal__session_free(session);
}

enum wal_status wal_session_get_info(struct wal_session *session,
                                     struct wal_session_info *info,
                                     struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = wal__check_struct(info, info == NULL ? 0 : info->struct_size,
                                   sizeof(*info), error);
    }
    if (status == WAL_OK && session->core->noop) {
        wal__noop_session_info(session, info);
        return WAL_OK;
    }
    while (status == WAL_OK) {
        status = wal__session_get_info(session, info, error);
        if (!wal__core_invalidate_derived(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_fork(struct wal_session *session,
                                 struct wal_slice at,
                                 const struct wal_session_options *options,
                                 struct wal_session **fork,
                                 struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fork == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK && session->core->noop) {
        return wal__noop_session_fork(session, at, options, fork, error);
    }
    while (status == WAL_OK) {
        status = wal__session_fork(session, at, options, fork, error);
        if (!wal__core_invalidate_derived(session->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_accept_damage(struct wal_session *session,
                                          struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK || session->core->noop) {
        return status;
    }
    return wal__session_accept_damage(session->core, session->number,
                                      session->text_size, error);
}

enum wal_status wal_session_claim(struct wal_session *session,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK || session->core->noop) {
        return status;
    }
    return wal__session_claim(session, error);
}

enum wal_status wal_session_unclaim(struct wal_session *session,
                                    struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK && !session->core->noop) {
        wal__session_release_claim(session);
    }
    return status;
}

static enum wal_status check_update(struct wal_session *session,
                                    wal_update_fn *fn, struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fn == NULL) {
        status = wal__invalid(error,
                              "the function that changes the session is null");
    }
    return status;
}

enum wal_status wal_session_update(struct wal_session *session,
                                   wal_update_fn *fn, void *ctx,
                                   struct wal_error *error)
{
    enum wal_status status = check_update(session, fn, error);

    if (status == WAL_OK && session->core->noop) {
        return wal__noop_session_update(session, fn, ctx, error);
    }
    return status == WAL_OK ? wal__session_update(session, fn, ctx, error)
                            : status;
}

enum wal_status wal_session_migrate(struct wal_session *session, uint32_t to,
                                    wal_update_fn *fn, void *ctx,
                                    struct wal_migrate_result *result,
                                    struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && result != NULL) {
        status = wal__check_struct(result, result->struct_size, sizeof(*result),
                                   error);
    }
    if (status == WAL_OK && session->core->noop) {
        wal__noop_migrate(to, result);
        return WAL_OK;
    }
    return status == WAL_OK
               ? wal__session_migrate(session, to, fn, ctx, result, error)
               : status;
}

enum wal_status wal_session_delete(struct wal_session *session,
                                   struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK || session->core->noop) {
        return status;
    }
    return wal__session_delete(session, error);
}

/* --- resuming ----------------------------------------------------------- */

static enum wal_status open_latest(struct wal__core *core, struct wal_slice cwd,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .cwd = cwd};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal__list_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__list_next(list, &info, error);
    if (status == WAL_OK) {
        status = wal__session_open(core, info.number, session, error);
    } else if (status == WAL_END) {
        status = wal__fail_at(error, WAL_ENOTFOUND, 0, core->env.root, 0,
                              cwd.size == 0 ? "there is no session"
                                            : "there is no session of \"%.*s\"",
                              (int)cwd.size, (const char *)cwd.data);
    }
    wal__list_close(list);
    return status;
}

enum wal_status wal_session_open_latest(struct wal_store *store,
                                        struct wal_slice cwd,
                                        struct wal_session **session,
                                        struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_not_found(error);
    }
    while (status == WAL_OK) {
        status = open_latest(core, cwd, session, error);
        if (!wal__core_invalidate_derived(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

static enum wal_status check_resume(const struct wal_resume_options *options,
                                    struct wal_session **session,
                                    struct wal_error *error)
{
    if (options == NULL || session == NULL ||
        options->struct_size != sizeof(*options)) {
        return wal__invalid(error,
                            "the options for resuming, or the place for the "
                            "handle, are not valid");
    }
    if ((options->from != WAL_RESUME_ID &&
         options->from != WAL_RESUME_LATEST) ||
        (options->mode != WAL_RESUME_IN_PLACE &&
         options->mode != WAL_RESUME_FORK)) {
        return wal__invalid(
            error, "say which session is resumed, and whether in place "
                   "or in a fork: there is no default");
    }
    return WAL_OK;
}

/* In place the head goes where the caller resumes. */
static enum wal_status resume_at(struct wal_session *source,
                                 const struct wal_resume_options *options,
                                 struct wal_session **session,
                                 struct wal_error *error)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id = options->at};
    enum wal_status status = WAL_OK;

    if (options->mode == WAL_RESUME_FORK) {
        status = wal_session_fork(source, options->at, options->fork, session,
                                  error);
        wal_session_close(source);
        return status;
    }
    if (options->at.size > 0) {
        status = wal_head_move(source, &head, NULL, error);
    }
    if (status != WAL_OK) {
        wal_session_close(source);
        return status;
    }
    *session = source;
    return WAL_OK;
}

enum wal_status wal_session_resume(struct wal_store *store,
                                   const struct wal_resume_options *options,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    struct wal_session *source = NULL;
    enum wal_status status = check_resume(options, session, error);

    if (status == WAL_OK && options->from == WAL_RESUME_ID) {
        status = wal_session_open(store, options->id, &source, error);
    } else if (status == WAL_OK) {
        status = wal_session_open_latest(store, options->cwd, &source, error);
    }
    return status == WAL_OK ? resume_at(source, options, session, error)
                            : status;
}

/* --- lists -------------------------------------------------------------- */

enum wal_status wal_session_cursor_open(
    struct wal_store *store, const struct wal_session_cursor_options *options,
    struct wal_session_cursor **list, struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && list == NULL) {
        status = wal__invalid(error, "the place for the list is null");
    }
    while (status == WAL_OK) {
        status = wal__list_open(core, options, list, error);
        if (!wal__core_invalidate_derived(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_cursor_next(struct wal_session_cursor *list,
                                        struct wal_session_info *info,
                                        struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(list == NULL ? NULL : list->core, error);

    if (status == WAL_OK) {
        status = wal__check_struct(info, info == NULL ? 0 : info->struct_size,
                                   sizeof(*info), error);
    }
    if (status == WAL_OK && list->core->noop) {
        return WAL_END;
    }
    while (status == WAL_OK) {
        status = wal__list_next(list, info, error);
        if (!wal__core_invalidate_derived(list->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_cursor_encode(struct wal_session_cursor *list,
                                          char cursor[WAL_CURSOR_TEXT_SIZE],
                                          struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(list == NULL ? NULL : list->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        wal__list_cursor(list, cursor);
    }
    return status;
}

void wal_session_cursor_close(struct wal_session_cursor *list)
{
    wal__list_close(list);
}
