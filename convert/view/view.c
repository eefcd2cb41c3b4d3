/*
 * view.c - the public functions of one view (SPEC.md 10).
 *
 * Threads: one thread at a time per view.
 */
#include "convert/view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agentwal/admin.h"
#include "convert/view/view_import.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

const char *wal_view_dialect(uint32_t index)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL && index-- == 0) {
            return dialect->name;
        }
    }
    return NULL;
}

const struct wal__dialect *wal__view_find_dialect(struct wal_slice name)
{
    const struct wal__dialect *dialect;

    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL && strlen(dialect->name) == name.size &&
            memcmp(dialect->name, name.data, name.size) == 0) {
            return dialect;
        }
    }
    return NULL;
}

static enum wal_status check_arguments(const struct wal_store *store,
                                       const struct wal_session *session,
                                       const struct wal_view_options *options,
                                       struct wal_view *const *view,
                                       struct wal_error *error)
{
    if (store == NULL || session == NULL || view == NULL ||
        options->dialect.size == 0 ||
        (options->root.size == 0) == (options->put == NULL)) {
        return wal__invalid(
            error,
            "store, session and view must not be NULL, and the options need a "
            "dialect and either a root or put");
    }
    return WAL_OK;
}

void wal__view_key(char key[WAL__VIEW_KEY_SIZE], const char *dialect,
                   const char *session)
{
    struct wal__json_span id = {(const uint8_t *)session, strlen(session)};

    snprintf(key, WAL__VIEW_KEY_SIZE, "%.16s-%016" PRIx64, dialect,
             wal__model_hash(0, id));
}

enum wal_status wal__view_set_identity(struct wal_view *view,
                                       struct wal_slice id,
                                       struct wal_error *error)
{
    struct wal_store_info store = {.struct_size = sizeof(store)};
    static const uint8_t none[sizeof(store.uuid)];
    enum wal_status status = wal_store_get_info(view->store, &store, error);

    if (status != WAL_OK) {
        return status;
    }
    view->id = wal__heap_copy_text(view->env.heap, id.data, (size_t)id.size);
    if (view->id == NULL) {
        return wal__no_memory(error);
    }
    memcpy(view->identity.store, store.uuid, sizeof(store.uuid));
    /* A store without an id has no persistence. */
    view->is_disabled = memcmp(store.uuid, none, sizeof(none)) == 0;
    view->identity.session = (struct wal_slice){view->id, id.size};
    view->identity.dialect = view->dialect->name;
    wal__view_key(view->key, view->dialect->name, view->id);
    return WAL_OK;
}

/* Opens a separate handle: slices that the caller's handle returned must remain
 * valid while the view reads. */
static enum wal_status open_session(struct wal_view *view,
                                    struct wal_session *of,
                                    struct wal_error *error)
{
    struct wal_session_info session = {.struct_size = sizeof(session)};
    enum wal_status status = wal_session_get_info(of, &session, error);

    if (status == WAL_OK) {
        status = wal__view_set_identity(view, session.id, error);
    }
    return status == WAL_OK
               ? wal_session_open(view->store, view->identity.session,
                                  &view->session, error)
               : status;
}

enum wal_status wal__view_open(struct wal_store *store,
                               struct wal_session *session,
                               const struct wal_view_options *options,
                               const struct wal__view_env *env,
                               struct wal_view **view, struct wal_error *error)
{
    enum wal_status status =
        check_arguments(store, session, options, view, error);
    const struct wal__dialect *dialect;
    struct wal_view *opened;

    if (status != WAL_OK) {
        return status;
    }
    dialect = wal__view_find_dialect(options->dialect);
    if (dialect == NULL) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "views cannot be written in the dialect '%.*s'",
                         (int)options->dialect.size,
                         (const char *)options->dialect.data);
    }
    opened = wal__heap_zalloc(env->heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->env = *env;
    opened->store = store;
    opened->dialect = dialect;
    wal__view_files_init(&opened->files, &opened->env);
    opened->files.put = options->put;
    opened->files.put_ctx = options->ctx;
    opened->files.key = opened->key;
    opened->files.dialect = dialect;
    status = open_session(opened, session, error);
    if (status == WAL_OK && options->root.size > 0) {
        opened->root = wal__heap_copy_text(env->heap, options->root.data,
                                           (size_t)options->root.size);
        opened->files.root = opened->root;
        if (opened->root == NULL) {
            status = wal__no_memory(error);
        }
    }
    if (status != WAL_OK) {
        wal_view_close(opened);
        return status;
    }
    *view = opened;
    return WAL_OK;
}

enum wal_status wal_view_open(struct wal_store *store,
                              struct wal_session *session,
                              const struct wal_view_options *options,
                              struct wal_view **view, struct wal_error *error)
{
    const struct wal__view_env env = {.heap = &wal__heap_libc};
    struct wal_view_options own;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_view_options), &own, options, error);

    return status == WAL_OK
               ? wal__view_open(store, session, &own, &env, view, error)
               : status;
}

/* Whether the store is open and this process opened it. A view claims nothing,
 * so that the call only checks the handle. */
static enum wal_status check_open(const struct wal_view *view,
                                  struct wal_error *error)
{
    return wal_session_unclaim(view->session, error);
}

/* Joins the root and a path below it. */
static char *join_path(const struct wal__heap *heap, const char *root,
                       const char *path)
{
    size_t size = strlen(root);
    size_t room = size + strlen(path) + 2;
    char *text = wal__heap_alloc(heap, room);

    if (text != NULL) {
        snprintf(text, room, "%s%s%s", root,
                 size > 0 && root[size - 1] != '/' ? "/" : "", path);
    }
    return text;
}

enum wal_status wal_view_path(struct wal_view *view, uint32_t stream,
                              const char **path, struct wal_error *error)
{
    struct wal__session_snapshot snapshot = {.dialect = NULL};
    const char *below = NULL;
    enum wal_status status;

    if (view == NULL || path == NULL) {
        return wal__invalid(error, "view and path must not be NULL");
    }
    status = wal__session_snapshot_read(&snapshot, view->env.heap, view->store,
                                        view->session, error);
    if (status != WAL_OK) {
        goto done;
    }
    below = view->dialect->write_ops->path(&snapshot.session, stream,
                                           &snapshot.memory.arena);
    if (snapshot.memory.has_failed) {
        status = wal__no_memory(error);
        goto done;
    }
    if (below == NULL) {
        status = wal__fail(
            error, WAL_ENOTFOUND,
            "the session has no file of this stream in the dialect of the "
            "view");
        goto done;
    }
    wal__heap_free(view->env.heap, view->path);
    view->path =
        join_path(view->env.heap, view->root != NULL ? view->root : "", below);
    if (view->path == NULL) {
        status = wal__no_memory(error);
        goto done;
    }
    *path = view->path;
done:
    wal__session_snapshot_deinit(&snapshot);
    return status;
}

static enum wal_status check_report(const struct wal_view *view,
                                    const struct wal__struct *type,
                                    const void *report, struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL) {
        return wal__invalid(error, "view must not be NULL");
    }
    status = check_open(view, error);
    return status == WAL_OK ? wal__struct_check_optional(type, report, error)
                            : status;
}

enum wal_status wal_view_flush(struct wal_view *view,
                               struct wal_view_flush_result *report,
                               struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_flush_result);
    struct wal_view_flush_result own = WAL_INIT(wal_view_flush_result);
    enum wal_status status = check_report(view, type, report, error);

    if (status == WAL_OK) {
        status = wal__view_flush(view, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, report, &own);
    }
    return status;
}

enum wal_status wal_view_loss(const struct wal_view *view, uint32_t index,
                              const char **name, uint64_t *count,
                              struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL || name == NULL || count == NULL) {
        return wal__invalid(error, "view, name and count must not be NULL");
    }
    status = check_open(view, error);
    if (status != WAL_OK) {
        return status;
    }
    for (unsigned i = 0; i < WAL__FEATURE_COUNT; i++) {
        if (view->position.losses[i] > 0 && index-- == 0) {
            *name = wal__feature_text((enum wal__feature)i);
            *count = view->position.losses[i];
            return WAL_OK;
        }
    }
    return WAL_END;
}

enum wal_status wal_view_import(struct wal_view *view,
                                struct wal_view_import_result *report,
                                struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_view_import_result);
    struct wal_view_import_result own = WAL_INIT(wal_view_import_result);
    enum wal_status status = check_report(view, type, report, error);

    if (status != WAL_OK) {
        return status;
    }
    if (view->root == NULL && !view->is_disabled) {
        return wal__invalid(error, "the view has no root, and so no file");
    }
    if (!view->is_disabled) {
        status = wal__view_import(view, &own, error);
    }
    if (status == WAL_OK) {
        wal__struct_store(type, report, &own);
    }
    return status;
}

enum wal_status wal_view_issue(const struct wal_view *view, uint32_t index,
                               uint64_t *offset, const char **reason,
                               struct wal_error *error)
{
    enum wal_status status;

    if (view == NULL || offset == NULL || reason == NULL) {
        return wal__invalid(error, "view, offset and reason must not be NULL");
    }
    status = check_open(view, error);
    if (status != WAL_OK) {
        return status;
    }
    if (index >= view->issue_count) {
        return WAL_END;
    }
    *offset = view->issues[index].offset;
    *reason = view->issues[index].reason;
    return WAL_OK;
}

void wal_view_close(struct wal_view *view)
{
    if (view == NULL) {
        return;
    }
    wal__converter_deinit(&view->convert);
    wal__view_files_deinit(&view->files);
    wal_session_close(view->session);
    wal__heap_free(view->env.heap, view->issues);
    wal__heap_free(view->env.heap, view->root);
    wal__heap_free(view->env.heap, view->path);
    wal__heap_free(view->env.heap, view->id);
    wal__heap_free(view->env.heap, view);
}
