/*
 * sessions.c - the public functions on sessions and lists of them (agentwal.h):
 * arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/check.h"
#include "engine/noop.h"
#include "engine/session/session.h"
#include "engine/session/text.h"

/* --- sessions ----------------------------------------------------------- */

enum wal_status wal_session_create(struct wal_store *store,
                                   const struct wal_session_options *options,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the handle is null");
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_session_create(core, options, session, error);
    }
    while (status == WAL_OK) {
        status = wal__session_create(core, options, session, error);
        if (!wal__core_distrust(core, status)) {
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
        return wal__fail(error, status, 0, core->env.root, 0,
                         status == WAL_ENOTFOUND
                             ? "there is no session \"%.*s\""
                             : "session \"%.*s\" cannot be looked up",
                         (int)id.size, (const char *)id.data);
    }
    return wal__session_handle(core, summary.number, session, error);
}

enum wal_status wal_session_open(struct wal_store *store, struct wal_slice id,
                                 struct wal_session **session,
                                 struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_session_open(core, span, session, error);
    }
    while (status == WAL_OK) {
        status = open_session(core, span, session, error);
        if (!wal__core_distrust(core, status)) {
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

enum wal_status wal_session_status(struct wal_session *session,
                                   struct wal_session_info *info,
                                   struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = wal__check_struct(info, info == NULL ? 0 : info->struct_size,
                                   sizeof(*info), error);
    }
    if (status == WAL_OK && session->core->noop) {
        wal__noop_session_status(session, info);
        return WAL_OK;
    }
    while (status == WAL_OK) {
        status = wal__session_status(session, info, error);
        if (!wal__core_distrust(session->core, status)) {
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
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the handle is null");
    }
    if (status == WAL_OK && session->core->noop) {
        return wal__noop_session_fork(session, at, options, fork, error);
    }
    while (status == WAL_OK) {
        status = wal__session_fork(session, at, options, fork, error);
        if (!wal__core_distrust(session->core, status)) {
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
    return wal__session_accept(session->core, session->number,
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
        wal__session_unclaim(session);
    }
    return status;
}

static enum wal_status check_update(struct wal_session *session,
                                    wal_update_fn *fn, struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fn == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
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
                                    struct wal_migration *result,
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

static enum wal_status find_latest(struct wal__core *core, struct wal_slice cwd,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    const struct wal_list_options options = {.struct_size = sizeof(options),
                                             .cwd = cwd};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list *list = NULL;
    enum wal_status status = wal__list_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__list_next(list, &info, error);
    if (status == WAL_OK) {
        status = wal__session_handle(core, info.number, session, error);
    } else if (status == WAL_END) {
        status = wal__fail(error, WAL_ENOTFOUND, 0, core->env.root, 0,
                           cwd.size == 0 ? "there is no session"
                                         : "there is no session of \"%.*s\"",
                           (int)cwd.size, (const char *)cwd.data);
    }
    wal__list_close(list);
    return status;
}

enum wal_status wal_session_latest(struct wal_store *store,
                                   struct wal_slice cwd,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the handle is null");
    }
    if (status == WAL_OK && core->noop) {
        return wal__noop_not_found(error);
    }
    while (status == WAL_OK) {
        status = find_latest(core, cwd, session, error);
        if (!wal__core_distrust(core, status)) {
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
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "the options for resuming, or the place for the "
                         "handle, are not valid");
    }
    if ((options->from != WAL_RESUME_ID &&
         options->from != WAL_RESUME_LATEST) ||
        (options->how != WAL_RESUME_IN_PLACE &&
         options->how != WAL_RESUME_FORK)) {
        return wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                         "say which session is resumed, and whether in place "
                         "or in a fork: there is no default");
    }
    return WAL_OK;
}

/* In place the head goes where the caller resumes. */
static enum wal_status go_on(struct wal_session *source,
                             const struct wal_resume_options *options,
                             struct wal_session **session,
                             struct wal_error *error)
{
    const struct wal_head head = {.struct_size = sizeof(head),
                                  .entry_id = options->at};
    enum wal_status status = WAL_OK;

    if (options->how == WAL_RESUME_FORK) {
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
        status = wal_session_latest(store, options->cwd, &source, error);
    }
    return status == WAL_OK ? go_on(source, options, session, error) : status;
}

/* --- lists -------------------------------------------------------------- */

enum wal_status wal_list_open(struct wal_store *store,
                              const struct wal_list_options *options,
                              struct wal_list **list, struct wal_error *error)
{
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && list == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the list is null");
    }
    while (status == WAL_OK) {
        status = wal__list_open(core, options, list, error);
        if (!wal__core_distrust(core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_list_next(struct wal_list *list,
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
        if (!wal__core_distrust(list->core, status)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_list_cursor(struct wal_list *list,
                                char cursor[WAL_CURSOR_SIZE],
                                struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(list == NULL ? NULL : list->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the place for the cursor is null");
    }
    if (status == WAL_OK) {
        wal__list_cursor(list, cursor);
    }
    return status;
}

void wal_list_close(struct wal_list *list)
{
    wal__list_close(list);
}
