/*
 * store_steps.c - calls on stores, sessions, documents and blobs (runner.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "tests/conformance/runner.h"

/* --- stores ------------------------------------------------------------- */

static uint32_t open_flags(const json_t *step)
{
    return (json_is_false(json_object_get(step, "create")) ||
                    json_is_true(json_object_get(step, "readOnly"))
                ? 0u
                : WAL_OPEN_CREATE) |
           (json_is_true(json_object_get(step, "exclusive")) ? WAL_OPEN_EXCLUSIVE : 0u) |
           (json_is_true(json_object_get(step, "readOnly")) ? WAL_OPEN_READ_ONLY : 0u);
}

static void close_sessions(struct runner *runner)
{
    while (runner->session_count > 0) {
        wal_session_close(runner->sessions[--runner->session_count].session);
    }
}

/* Closes the store; sessions remain, and are closed handles. */
static enum wal_status run_close(struct runner *runner, const json_t *step, json_t **result)
{
    enum wal_status status = wal_close(runner->store, &runner->error);

    (void)step;
    (void)result;
    runner->store = NULL;
    return status == WAL_EBUSY ? WAL_OK : status;
}

/* Closes the store and opens it again. */
static enum wal_status run_reopen(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);

    (void)result;
    close_sessions(runner);
    (void)wal_close(runner->store, NULL);
    runner->store = NULL;
    options.flags = open_flags(step);
    return wal_open(runner->path, &options, &runner->store, &runner->error);
}

/* Opens a store at another path, or at that of the case, and closes it. */
static enum wal_status run_open(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    const char *name = json_string_value(json_object_get(step, "path"));
    struct wal_store *store = NULL;
    enum wal_status status;
    char path[4200];

    (void)result;
    (void)snprintf(path, sizeof(path), "%s%s", runner->path, name == NULL ? "" : name);
    options.flags = open_flags(step);
    status = wal_open(path, &options, &store, &runner->error);
    (void)wal_close(store, NULL);
    return status;
}

static enum wal_status run_sync(struct runner *runner, const json_t *step, json_t **result)
{
    (void)step;
    (void)result;
    return wal_sync(runner->store, &runner->error);
}

/* --- sessions ----------------------------------------------------------- */

static enum wal_status run_create(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_session_options options;
    struct wal_session *session = NULL;
    enum wal_status status;

    (void)result;
    runner_session_options(runner, step, &options);
    status = wal_session_create(runner->store, &options, &session, &runner->error);
    if (status == WAL_OK) {
        runner_add(runner, json_string_value(json_object_get(step, "id")), session);
    }
    return status;
}

static enum wal_status run_session(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(runner->store, runner_text(runner, step, "id"), &session, &runner->error);

    (void)result;
    if (status == WAL_OK) {
        runner_add(runner, json_string_value(json_object_get(step, "id")), session);
    }
    return status;
}

static enum wal_status run_fork(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_session_options options;
    struct wal_session *session = NULL;
    enum wal_status status;

    (void)result;
    runner_session_options(runner, step, &options);
    status = wal_session_fork(runner_session(runner, step), runner_text(runner, step, "at"),
                              &options, &session, &runner->error);
    if (status == WAL_OK) {
        runner_add(runner, json_string_value(json_object_get(step, "id")), session);
    }
    return status;
}

static json_t *make_info(const struct wal_session_info *info)
{
    json_t *made = json_object();

    json_object_set_new(made, "id", runner_string(info->id));
    json_object_set_new(made, "title", runner_string(info->title));
    json_object_set_new(made, "cwd", runner_string(info->cwd));
    json_object_set_new(made, "project", runner_string(info->project));
    json_object_set_new(made, "parentId", runner_string(info->parent_id));
    json_object_set_new(made, "source", runner_string(info->source));
    json_object_set_new(made, "head", runner_string(info->head));
    json_object_set_new(made, "firstText", runner_string(info->first_text));
    json_object_set_new(made, "entries", json_integer((json_int_t)info->entries));
    json_object_set_new(made, "inherited", json_integer((json_int_t)info->inherited));
    json_object_set_new(made, "isFork", json_boolean((info->flags & WAL_SESSION_FORK) != 0));
    json_object_set_new(
        made, "metadata",
        info->metadata.size == 0
            ? json_null()
            : json_loadb(info->metadata.data, (size_t)info->metadata.size, 0, NULL));
    return made;
}

static enum wal_status run_info(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal_session_get_info(runner_session(runner, step), &info, &runner->error);

    if (status == WAL_OK) {
        *result = make_info(&info);
    }
    return status;
}

struct update {
    struct runner *runner;
    const json_t *change;
};

static int32_t set_change(void *ctx, const struct wal_session_info *now,
                          struct wal_session_change *change)
{
    struct update *update = ctx;

    (void)now;
    runner_change(update->runner, update->change, change);
    return 0;
}

static enum wal_status run_update(struct runner *runner, const json_t *step, json_t **result)
{
    struct update update = {runner, json_object_get(step, "change")};

    (void)result;
    return wal_session_update(runner_session(runner, step), set_change, &update, &runner->error);
}

static enum wal_status run_delete(struct runner *runner, const json_t *step, json_t **result)
{
    (void)result;
    return wal_session_delete(runner_session(runner, step), &runner->error);
}

static enum wal_status run_trash(struct runner *runner, const json_t *step, json_t **result)
{
    (void)result;
    return wal_session_trash(runner_session(runner, step), &runner->error);
}

static enum wal_status run_undelete(struct runner *runner, const json_t *step, json_t **result)
{
    (void)result;
    return wal_session_undelete(runner->store, runner_text(runner, step, "id"), &runner->error);
}

static enum wal_status run_list(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *cursor = NULL;
    enum wal_status status;

    options.prefix = runner_text(runner, step, "prefix");
    options.project = runner_text(runner, step, "project");
    options.cwd = runner_text(runner, step, "cwd");
    options.source = runner_text(runner, step, "source");
    options.parent = runner_text(runner, step, "parent");
    options.flags = json_is_true(json_object_get(step, "trash")) ? WAL_SESSION_CURSOR_TRASH : 0u;
    status = wal_session_cursor_open(runner->store, &options, &cursor, &runner->error);
    if (status != WAL_OK) {
        return status;
    }
    *result = json_array();
    while ((status = wal_session_cursor_next(cursor, &info, &runner->error)) == WAL_OK) {
        json_array_append_new(*result, runner_string(info.id));
    }
    wal_session_cursor_close(cursor);
    return status;
}

/* --- documents: of a session, or without `session` of the store --------- */

static struct wal_session *owner_of(struct runner *runner, const json_t *step)
{
    return json_object_get(step, "session") == NULL ? NULL : runner_session(runner, step);
}

static enum wal_status run_put_document(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_doc document = WAL_INIT(wal_doc);
    uint64_t version = 0;
    enum wal_status status;

    document.key = runner_text(runner, step, "key");
    document.value = runner_json(runner, step, "value");
    document.version = runner_number(runner, step, "expect");
    document.flags = json_object_get(step, "expect") ? WAL_DOC_EXPECT : 0u;
    status =
        wal_doc_put(runner->store, owner_of(runner, step), &document, &version, &runner->error);
    *result = json_integer((json_int_t)version);
    return status;
}

static enum wal_status run_delete_document(struct runner *runner, const json_t *step,
                                           json_t **result)
{
    struct wal_doc document = WAL_INIT(wal_doc);

    (void)result;
    document.key = runner_text(runner, step, "key");
    document.version = runner_number(runner, step, "expect");
    document.flags = json_object_get(step, "expect") ? WAL_DOC_EXPECT : 0u;
    return wal_doc_delete(runner->store, owner_of(runner, step), &document, NULL, &runner->error);
}

static enum wal_status run_get_document(struct runner *runner, const json_t *step, json_t **result)
{
    struct wal_doc document = WAL_INIT(wal_doc);
    enum wal_status status =
        wal_doc_get(runner->store, owner_of(runner, step), runner_text(runner, step, "key"),
                    runner_number(runner, step, "version"), &document, &runner->error);

    if (status == WAL_OK) {
        *result = json_object();
        json_object_set_new(*result, "value",
                            json_loadb(document.value.data, (size_t)document.value.size,
                                       JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status run_list_documents(struct runner *runner, const json_t *step,
                                          json_t **result)
{
    struct wal_doc_cursor_options options = WAL_INIT(wal_doc_cursor_options);
    struct wal_doc document = WAL_INIT(wal_doc);
    struct wal_doc_cursor *cursor = NULL;
    enum wal_status status;

    options.prefix = runner_text(runner, step, "prefix");
    status = wal_doc_cursor_open(runner->store, owner_of(runner, step), &options, &cursor,
                                 &runner->error);
    if (status != WAL_OK) {
        return status;
    }
    *result = json_array();
    while ((status = wal_doc_cursor_next(cursor, &document, &runner->error)) == WAL_OK) {
        json_array_append_new(*result, runner_string(document.key));
    }
    wal_doc_cursor_close(cursor);
    return status;
}

/* --- blobs -------------------------------------------------------------- */

static enum wal_status run_put_blob(struct runner *runner, const json_t *step, json_t **result)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    char digits[2 * WAL_DIGEST_SIZE + 1];
    enum wal_status status =
        wal_blob_put(runner->store, runner_text(runner, step, "content"), digest, &runner->error);

    if (status == WAL_OK) {
        for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
            (void)snprintf(digits + 2 * i, 3, "%02x", digest[i]);
        }
        *result = json_string(digits);
    }
    return status;
}

/* The size of a blob, or null. */
static enum wal_status run_blob_size(struct runner *runner, const json_t *step, json_t **result)
{
    const char *digits = json_string_value(json_object_get(step, "digest"));
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status;

    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};

        digest[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    status = wal_blob_open(runner->store, digest, &blob, &runner->error);
    if (status == WAL_OK) {
        *result = json_integer((json_int_t)wal_blob_size(blob));
        wal_blob_close(blob);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

const struct step_kind store_steps[] = {
    {"close", run_close},
    {"reopen", run_reopen},
    {"open", run_open},
    {"sync", run_sync},
    {"create", run_create},
    {"session", run_session},
    {"fork", run_fork},
    {"info", run_info},
    {"update", run_update},
    {"delete", run_delete},
    {"trash", run_trash},
    {"undelete", run_undelete},
    {"list", run_list},
    {"putDocument", run_put_document},
    {"deleteDocument", run_delete_document},
    {"getDocument", run_get_document},
    {"listDocuments", run_list_documents},
    {"putBlob", run_put_blob},
    {"blobSize", run_blob_size},
    {NULL, NULL},
};
