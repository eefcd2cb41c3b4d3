/*
 * api_session.c - the public functions on sessions and lists of them
 * (agentwal.h): arguments are checked here, everything else is below.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/session/session_trash.h"
#include "engine/store/input_text.h"
#include "engine/store/session.h"

enum {
    OPEN_ATTEMPTS_MAX = 100
};

/* --- sessions ----------------------------------------------------------- */

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
    if (status == WAL_OK && (summary.flags & WAL__SUMMARY_TRASHED) != 0) {
        return wal__session_fail_trashed(id, error);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, core->env.root, 0,
                            status == WAL_ENOTFOUND
                                ? "there is no session \"%.*s\""
                                : "session \"%.*s\" cannot be looked up",
                            (int)id.size, (const char *)id.data);
    }
    return wal__session_open(core, summary.number, session, error);
}

/* is_only: see wal__session_create. A store that forgets has any session that
 * is named (SPEC.md 5.11). */
static enum wal_status create(struct wal_store *store,
                              const struct wal_session_options *options,
                              bool is_only, struct wal_session **session,
                              struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_session_options own;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_options), &own,
                                  options, error);
    }
    while (status == WAL_OK) {
        status = wal__session_create(core, &own, is_only, session, error);
        if (status == WAL_EEXISTS && !is_only && core->env.io->forgets) {
            status = open_session(
                core, (struct wal__span){own.id.data, (size_t)own.id.size},
                session, error);
        }
        if (!wal__core_invalidate_derived(core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_create(struct wal_store *store,
                                   const struct wal_session_options *options,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    return create(store, options, false, session, error);
}

enum wal_status wal_session_open(struct wal_store *store, struct wal_slice id,
                                 struct wal_session **session,
                                 struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        return wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    while (status == WAL_OK) {
        status = open_session(core, span, session, error);
        if (!wal__core_invalidate_derived(core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_ENOTFOUND && span.size > 0 && core->env.io->forgets) {
        const struct wal_session_options named = {.struct_size = sizeof(named),
                                                  .id = id};

        status = create(store, &named, false, session, error);
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
    uint64_t looked = 0;
    const struct wal__struct *type = WAL__STRUCT(wal_session_info);
    struct wal_session_info own = WAL_INIT(wal_session_info);
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        status = wal__struct_check_output(type, info, error);
    }
    while (status == WAL_OK) {
        status = wal__session_get_info(session, &own, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__struct_store(type, info, &own);
    }
    return status;
}

enum wal_status wal_session_fork(struct wal_session *session,
                                 struct wal_slice at,
                                 const struct wal_session_options *options,
                                 struct wal_session **fork,
                                 struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_session_options own;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK && fork == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_options), &own,
                                  options, error);
    }
    while (status == WAL_OK) {
        status = wal__session_fork(session, at, false, &own, fork, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
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

    if (status != WAL_OK) {
        return status;
    }
    return wal__session_accept_damage(session->core, session->number,
                                      session->text_size, error);
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

    return status == WAL_OK ? wal__session_update(session, fn, ctx, error)
                            : status;
}

enum wal_status wal_session_migrate(struct wal_session *session, uint32_t to,
                                    wal_update_fn *fn, void *ctx,
                                    struct wal_migrate_result *result,
                                    struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_migrate_result);
    struct wal_migrate_result done = WAL_INIT(wal_migrate_result);
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_migrate(session, to, fn, ctx, &done, error);
    if (status == WAL_OK) {
        wal__struct_store(type, result, &done);
    }
    return status;
}

enum wal_status
wal_session_remove(struct wal_session *session,
                   const struct wal_session_remove_options *options,
                   struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal_session_remove_options own;
    const uint64_t *expected;
    enum wal_status status =
        wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_remove_options), &own,
                                  options, error);
    }
    if (status == WAL_OK &&
        (own.flags & ~(uint32_t)(WAL_SESSION_REMOVE_TRASH |
                                 WAL_SESSION_REMOVE_EXPECT)) != 0) {
        status = wal__invalid(error, "the flags of the removal are not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    expected = (own.flags & WAL_SESSION_REMOVE_EXPECT) != 0
                   ? &own.expected_sequence
                   : NULL;
    while (status == WAL_OK) {
        status = (own.flags & WAL_SESSION_REMOVE_TRASH) != 0
                     ? wal__session_set_trashed(session->core, session->number,
                                                true, expected, error)
                     : wal__session_delete(session, expected, error);
        if (!wal__core_invalidate_derived(session->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

enum wal_status wal_session_delete(struct wal_session *session,
                                   struct wal_error *error)
{
    return wal_session_remove(session, NULL, error);
}

enum wal_status wal_session_trash(struct wal_session *session,
                                  struct wal_error *error)
{
    struct wal_session_remove_options options =
        WAL_INIT(wal_session_remove_options);

    options.flags = WAL_SESSION_REMOVE_TRASH;
    return wal_session_remove(session, &options, error);
}

enum wal_status wal_session_undelete(struct wal_store *store,
                                     struct wal_slice id,
                                     struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal__span span;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = wal__text_check(id, WAL__ID_MAX, "session's id", &span, error);
    }
    while (status == WAL_OK) {
        status = wal__session_undelete(core, span, error);
        if (!wal__core_invalidate_derived(core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

/* --- opening or creating ------------------------------------------------ */

static enum wal_status open_latest(struct wal__core *core, struct wal_slice cwd,
                                   struct wal_session **session,
                                   struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .cwd = cwd};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal__session_cursor_open(core, &options, &list, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__session_cursor_next(list, &info, error);
    if (status == WAL_OK) {
        status = wal__session_open(core, info.number, session, error);
    } else if (status == WAL_END) {
        status = wal__fail_at(error, WAL_ENOTFOUND, 0, core->env.root, 0,
                              cwd.size == 0 ? "there is no session"
                                            : "there is no session of \"%.*s\"",
                              (int)cwd.size, (const char *)cwd.data);
    }
    wal__session_cursor_close(list);
    return status;
}

enum wal_status wal_session_open_latest(struct wal_store *store,
                                        struct wal_slice cwd,
                                        struct wal_session **session,
                                        struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && session == NULL) {
        status = wal__invalid(error, "the place for the handle is null");
    }
    while (status == WAL_OK) {
        status = open_latest(core, cwd, session, error);
        if (!wal__core_invalidate_derived(core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    return status;
}

/* Opens the session that the options name. */
static enum wal_status open_existing(struct wal_store *store,
                                     const struct wal_session_options *options,
                                     struct wal_session **session,
                                     struct wal_error *error)
{
    return options->id.size > 0
               ? wal_session_open(store, options->id, session, error)
               : wal_session_open_latest(store, options->cwd, session, error);
}

enum wal_status wal_session_open_or_create(
    struct wal_store *store, const struct wal_session_options *options,
    struct wal_session **session, int32_t *created, struct wal_error *error)
{
    struct wal_session_options wanted;
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_session_options),
                                              &wanted, options, error);
    bool is_new = false;

    if (status != WAL_OK) {
        return status;
    }
    if (wanted.id.size == 0) {
        wanted.id.data = NULL; /* an empty text is not an id */
    }
    /* Another process may create or delete it between two steps. The leader
     * decides whether one is created: by its id, or by its directory. */
    for (int i = 0; i < OPEN_ATTEMPTS_MAX; i++) {
        is_new = false;
        status = open_existing(store, &wanted, session, &own);
        if (status != WAL_ENOTFOUND) {
            break;
        }
        is_new = true;
        status = create(store, &wanted, wanted.id.size == 0, session, &own);
        if (status != WAL_EEXISTS) {
            break;
        }
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
        return status;
    }
    if (created != NULL) {
        *created = is_new;
    }
    return WAL_OK;
}

/* --- lists -------------------------------------------------------------- */

enum wal_status wal_session_cursor_open(
    struct wal_store *store, const struct wal_session_cursor_options *options,
    struct wal_session_cursor **list, struct wal_error *error)
{
    uint64_t looked = 0;
    struct wal__core *core = store == NULL ? NULL : &store->core;
    struct wal_session_cursor_options own;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && list == NULL) {
        status = wal__invalid(error, "the place for the list is null");
    }
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_session_cursor_options), &own,
                                  options, error);
    }
    while (status == WAL_OK) {
        status = wal__session_cursor_open(core, &own, list, error);
        if (!wal__core_invalidate_derived(core, status, &looked)) {
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
    uint64_t looked = 0;
    const struct wal__struct *type = WAL__STRUCT(wal_session_info);
    struct wal_session_info own;
    struct wal_session_info *out = NULL;
    enum wal_status status =
        wal__check_core(list == NULL ? NULL : list->core, error);

    if (status == WAL_OK) {
        status = wal__struct_check_output(type, info, error);
    }
    if (status == WAL_OK) {
        out = wal__struct_target(type, info, &own);
    }
    while (status == WAL_OK) {
        status = wal__session_cursor_next(list, out, error);
        if (!wal__core_invalidate_derived(list->core, status, &looked)) {
            break;
        }
        status = WAL_OK;
    }
    if (status == WAL_OK) {
        wal__struct_store(type, info, out);
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
        wal__session_cursor_encode(list, cursor);
    }
    return status;
}

void wal_session_cursor_close(struct wal_session_cursor *list)
{
    wal__session_cursor_close(list);
}
