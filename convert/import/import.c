/*
 * import.c - reports, progress and errors of an import; times, metadata and
 * project of a new session (import.h).
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "convert/source/json_string.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "format/payload/timestamp.h"

static enum wal_status check_callback(int32_t result, struct wal_error *error)
{
    return result == 0 ? WAL_OK
                       : wal__fail_at(error, WAL_ECALLBACK, result, NULL, 0,
                                      "the callback stopped the import");
}

enum wal_status wal__import_progress(struct wal__import *import,
                                     const char *path, uint64_t done,
                                     uint64_t total, struct wal_error *error)
{
    if (import->progress == NULL) {
        return WAL_OK;
    }
    return check_callback(
        import->progress(import->ctx, wal__slice_from_text(path), done, total),
        error);
}

static enum wal_status send_report(struct wal__import *import,
                                   struct wal_import_report *report,
                                   struct wal_error *error)
{
    report->struct_size = sizeof(*report);
    if (import->view_session != NULL) {
        report->flags |= WAL_IMPORT_CHANGED_VIEW;
        report->view_session = wal__slice_from_text(import->view_session);
    }
    return import->report == NULL
               ? WAL_OK
               : check_callback(import->report(import->ctx, report), error);
}

enum wal_status wal__import_report(struct wal__import *import,
                                   struct wal_import_report *report,
                                   struct wal_session *session,
                                   struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    report->session_id = info.id;
    if (report->kind != WAL_IMPORT_STREAM) {
        import->result.sessions++;
        import->result.appended += report->appended;
        import->result.duplicates += report->duplicates;
    }
    return send_report(import, report, error);
}

enum wal_status wal__import_fail(struct wal__import *import, const char *path,
                                 enum wal_status status,
                                 struct wal_error *error)
{
    struct wal_import_report report = {
        .status = status, .path = wal__slice_from_text(path), .error = error};

    if (status == WAL_ECALLBACK || status == WAL_ENOMEM) {
        return status;
    }
    if (import->retries && (status == WAL_EBUSY || status == WAL_ECLAIMED)) {
        import->must_retry = true;
        *error = (struct wal_error){.struct_size = sizeof(*error)};
        return WAL_OK;
    }
    import->result.failed++;
    if (import->first.status == WAL_OK) {
        import->first = *error;
        import->first.status = status;
    }
    status = send_report(import, &report, error);
    *error = (struct wal_error){.struct_size = sizeof(*error)};
    return status;
}

enum wal_status wal__import_errno(struct wal_error *error)
{
    int number = errno;
    enum wal_status status = WAL_EIO;

    if (number == ENOMEM) {
        return wal__no_memory(error);
    }
    if (number == ENOENT) {
        status = WAL_ENOTFOUND;
    } else if (number == EACCES || number == EPERM) {
        status = WAL_EACCESS;
    }
    return wal__fail_at(error, status, number, NULL, 0, "%s",
                        number == ESTALE ? "became shorter while it was read"
                                         : strerror(number));
}

enum wal_status wal__import_check_memory(const struct wal__import *import,
                                         struct wal_error *error)
{
    return import->arena.has_failed || import->walk.has_failed
               ? wal__no_memory(error)
               : WAL_OK;
}

char *wal__import_path(struct wal__import *import, const char *root,
                       const char *path)
{
    size_t size = strlen(root) + strlen(path) + 2;
    char *text = wal__arena_alloc(&import->arena.arena, size);

    if (text != NULL) {
        snprintf(text, size, "%s/%s", root, path);
    }
    return text;
}

enum wal_status wal__import_try_ids(wal__import_create_fn *create, void *ctx,
                                    struct wal_session_options *options,
                                    const char *base, struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char id[WAL__SOURCE_SIZE_MAX + 1];

    for (unsigned n = 1; n <= WAL__IMPORT_ID_TRIES && status == WAL_EEXISTS;
         n++) {
        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", base, n);
        options->id = wal__slice_from_text(id);
        status = create(ctx, options, error);
    }
    return status;
}

/* The session that was imported from the source last, in the trash or not;
 * WAL_END: none. *info is valid until the list is closed. */
static enum wal_status find_source(struct wal_store *store, const char *source,
                                   uint32_t flags,
                                   struct wal_session_cursor **list,
                                   struct wal_session_info *info,
                                   struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .source = wal__slice_from_text(source),
    };
    enum wal_status status =
        wal_session_cursor_open(store, &options, list, error);

    return status == WAL_OK ? wal_session_cursor_next(*list, info, error)
                            : status;
}

enum wal_status wal__session_open_source(struct wal_store *store,
                                         const char *source,
                                         struct wal_session **session,
                                         struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status = find_source(store, source, 0, &list, &info, error);

    if (status == WAL_END) {
        wal_session_cursor_close(list);
        list = NULL;
        status = find_source(store, source, WAL_SESSION_CURSOR_TRASH, &list,
                             &info, error);
    }
    if (status == WAL_OK) {
        status = wal_session_open(store, info.id, session, error);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_ENOTFOUND : status;
}

/* --- new sessions -------------------------------------------------------- */

#define PROJECT_SIZE 4097                     /* of an id with its terminator */
#define TIME_LAST    INT64_C(253402300799999) /* of the year 9999 */

/* Writes a time as text, without quotes. */
static void write_time(int64_t ms, char time[WAL__IMPORT_TIME_SIZE])
{
    uint8_t text[WAL__MODEL_TIME_SIZE];

    (void)wal__model_time_write(ms < 0 || ms > TIME_LAST ? 0 : ms, text);
    snprintf(time, WAL__IMPORT_TIME_SIZE, "%.*s", (int)sizeof(text) - 2,
             (const char *)text + 1);
}

/* {"created":TIME,"imported":TIME}, or without `created`. */
static struct wal_slice make_metadata(struct wal__import *import,
                                      const char *created)
{
    struct wal__arena *arena = &import->arena.arena;
    char members[WAL__IMPORT_TIME_SIZE + 16];
    char time[WAL__IMPORT_TIME_SIZE];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    write_time((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, time);
    if (created == NULL) {
        return wal__slice_from_text(wal__string_object(
            arena, "imported", wal__slice_from_text(time), ""));
    }
    snprintf(members, sizeof(members), ",\"imported\":\"%s\"", time);
    return wal__slice_from_text(wal__string_object(
        arena, "created", wal__slice_from_text(created), members));
}

void wal__import_describe(struct wal__import *import, const char *created,
                          struct wal_session_options *options)
{
    char *project;
    int64_t created_ms;

    options->metadata = make_metadata(import, created);
    if (created != NULL && options->created_ms == 0 &&
        wal__model_time_read_text(
            (struct wal__json_span){(const uint8_t *)created, strlen(created)},
            &created_ms)) {
        options->created_ms = created_ms;
    }
    if (options->project.size > 0 || options->cwd.size == 0) {
        return;
    }
    options->project = options->cwd;
    if (import->project == NULL) {
        return;
    }
    project = wal__arena_alloc(&import->arena.arena, PROJECT_SIZE);
    if (project != NULL && import->project(import->ctx, options->cwd, project,
                                           PROJECT_SIZE) == 0) {
        options->project = wal__slice_from_text(project);
    }
}

enum wal_status wal__import_first_time(struct wal_session *session,
                                       struct wal_slice known,
                                       const char *created,
                                       char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status;

    if (known.size > 0 && known.size < WAL__IMPORT_TIME_SIZE) {
        memcpy(time, known.data, (size_t)known.size);
        time[known.size] = '\0';
        return WAL_OK;
    }
    if (created != NULL) {
        snprintf(time, WAL__IMPORT_TIME_SIZE, "%s", created);
        return WAL_OK;
    }
    status = wal_session_get_info(session, &info, error);
    if (status == WAL_OK) {
        write_time(info.created_ms, time);
    }
    return status;
}
