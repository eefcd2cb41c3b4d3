/*
 * view_lines.c - imports a view of a session of the store into that session.
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import_tree/view_lines.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentwal/convert.h"
#include "convert/import/file_probe.h"
#include "engine/base/error.h"

struct view_import {
    struct wal__import *import;
    int fd;
    const char *name;
    struct wal_view_info info;
    struct wal_session *session;
    struct wal_view *view;
    struct wal_view_import_result result;
};

static enum wal_status import_view(struct view_import *view_import,
                                   struct wal_error *error)
{
    struct wal_store *store = view_import->import->store;
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = wal__slice_from_text(view_import->info.dialect),
        .root = wal__slice_from_text(view_import->info.root),
    };
    enum wal_status status =
        wal_session_open(store, wal__slice_from_text(view_import->info.session),
                         &view_import->session, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal_view_open(store, view_import->session, &options,
                           &view_import->view, error);
    if (status != WAL_OK) {
        return status;
    }
    view_import->result.struct_size = sizeof(view_import->result);
    return wal_view_import(view_import->view, &view_import->result, error);
}

/* Returns true if the file is the main file of a view whose dialect the options
 * allow. */
static bool is_view_file(struct view_import *view_import)
{
    const struct wal__dialect *forced = view_import->import->forced;

    view_import->info.struct_size = sizeof(view_import->info);
    return wal__view_index_find(&view_import->import->views,
                                wal__slice_from_text(view_import->name),
                                &view_import->info, NULL) == WAL_OK &&
           (forced == NULL ||
            strcmp(forced->name, view_import->info.dialect) == 0);
}

/* Whether the file is a document: its view has no lines. */
static bool is_document(const struct view_import *view_import)
{
    const struct wal__dialect *dialect =
        wal__dialect_find(view_import->info.dialect);

    return dialect != NULL && dialect->write_ops->join != NULL;
}

/* Counts the file's lines, and of these the ones that the session had. */
static enum wal_status count_lines(struct view_import *view_import,
                                   struct wal_import_report *report,
                                   struct wal_error *error)
{
    struct stat stat;
    char last = '\n';

    if (is_document(view_import)) {
        report->lines = view_import->result.lines;
        report->duplicates = view_import->result.duplicates;
        return WAL_OK;
    }
    if (fstat(view_import->fd, &stat) != 0 ||
        (stat.st_size > 0 &&
         pread(view_import->fd, &last, 1, stat.st_size - 1) != 1) ||
        wal__file_count_lines(view_import->import->heap, view_import->fd,
                              (uint64_t)stat.st_size, &report->lines) < 0) {
        return wal__import_errno(error);
    }
    view_import->import->result.bytes += (uint64_t)stat.st_size;
    report->duplicates = report->lines - report->appended;
    if (last != '\n' && report->duplicates > 0) {
        report->duplicates--; /* a partial line waits for its newline */
    }
    return WAL_OK;
}

/* Lists the issues of the view, in the arena. */
static enum wal_status list_issues(struct view_import *view_import,
                                   struct wal_import_report *report,
                                   struct wal_error *error)
{
    struct wal__import *import = view_import->import;
    struct wal_import_issue *issues;
    uint64_t lines = 0;
    uint64_t offset;
    const char *reason;
    uint32_t count = 0;

    while (wal_view_issue(view_import->view, count, &offset, &reason, NULL) ==
           WAL_OK) {
        count++;
    }
    issues = wal__arena_calloc(&import->arena.arena,
                               (count + 1) * sizeof(issues[0]));
    for (uint32_t i = 0; issues != NULL && i < count; i++) {
        if (wal_view_issue(view_import->view, i, &offset, &reason, NULL) !=
                WAL_OK ||
            wal__file_count_lines(import->heap, view_import->fd, offset,
                                  &lines) < 0) {
            return wal__import_errno(error);
        }
        issues[i] = (struct wal_import_issue){
            .struct_size = sizeof(struct wal_import_issue),
            .path = wal__slice_from_text(view_import->name),
            .reason = wal__slice_from_text(reason),
            .line = lines + 1,
            .offset = offset,
        };
    }
    report->issues = issues;
    report->issue_count = count;
    return wal__import_check_memory(import, error);
}

static enum wal_status report_view(struct view_import *view_import,
                                   struct wal_error *error)
{
    struct wal_import_report report = {
        .kind = WAL_IMPORT_VIEW,
        .path = wal__slice_from_text(view_import->name),
        .dialect = wal__slice_from_text(view_import->info.dialect),
        .appended = view_import->result.appended,
    };
    enum wal_status status = count_lines(view_import, &report, error);

    if (status == WAL_OK) {
        status = list_issues(view_import, &report, error);
    }
    return status == WAL_OK ? wal__import_report(view_import->import, &report,
                                                 view_import->session, error)
                            : status;
}

/* Keeps the id of the session of a changed view for the file's report. */
static enum wal_status keep_session(struct view_import *view_import,
                                    struct wal_error *error)
{
    struct wal__json_span id = {(const uint8_t *)view_import->info.session,
                                strlen(view_import->info.session) + 1};

    id = wal__arena_copy(&view_import->import->arena.arena, id);
    view_import->import->view_session = (const char *)id.data;
    return id.data != NULL ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__import_view(struct wal__import *import, int fd,
                                 const char *name, bool *is_view,
                                 struct wal_error *error)
{
    struct view_import view_import = {.import = import, .fd = fd, .name = name};
    enum wal_status status;

    *is_view = false;
    if (!is_view_file(&view_import)) {
        return WAL_OK;
    }
    status = import_view(&view_import, error);
    if (status == WAL_ECHANGED) {
        status = keep_session(&view_import, error);
    } else if (status == WAL_ENOTFOUND) {
        status = WAL_OK;
    } else {
        *is_view = true;
    }
    if (*is_view && status == WAL_OK) {
        status = report_view(&view_import, error);
    }
    wal_view_close(view_import.view);
    wal_session_close(view_import.session);
    return status;
}
