/*
 * view.c - flush views, print results and losses, and write what belongs next to a view: the
 * checkpoints of session directories, and the backups of files that transcripts of Claude Code
 * name.
 *
 * The dialects sdk and spec11 keep checkpoints in the folder `checkpoints` of a session's directory
 * (layout: convert/source/checkpoint_manifest.h).
 *
 * Claude Code rewinds files from file-history/SESSION/NAME next to projects/, where SESSION is the
 * name of the transcript and NAME is in a row of it. Where the store has these files, each is a
 * separate session, with its path as the source; an import with --all-files brings them.
 *
 * Invariant: no existing backup is changed, and none is written outside file-history/SESSION.
 */
#include "tools/convert/convert.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/dialect.h"
#include "convert/source/checkpoint_manifest.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"
#include "tools/cli/checkpoint_export.h"

/* --- checkpoints -------------------------------------------------------- */

static bool has_checkpoints(struct wal_session *session)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *list = NULL;
    bool is_found = wal_checkpoint_cursor_open(session, &list, NULL) == WAL_OK &&
                    wal_checkpoint_cursor_next(list, &info, NULL) != WAL_END;

    wal_checkpoint_cursor_close(list);
    return is_found;
}

static void exported(void *ctx, const struct cli_checkpoint_exported *exported)
{
    cli_checkpoint_export_losses(ctx, exported);
}

/* --- backups ------------------------------------------------------------ */

struct history {
    const struct convert_view *target;
    char *source;         /* name of the transcript, before its import */
    char *folder;         /* name of the view's transcript */
    struct cli_ids names; /* that rows named so far */
    struct cli_texts texts;
    struct wal__buf row;
    uint64_t missing;
};

/* Returns the file's name without .jsonl; the caller frees it. */
static char *transcript_name(const char *path)
{
    static const char suffix[] = ".jsonl";
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t size = strlen(base);

    if (size >= sizeof(suffix) && strcmp(base + size - (sizeof(suffix) - 1), suffix) == 0) {
        size -= sizeof(suffix) - 1;
    }
    return cli_copy_text(base, size);
}

/* Sets the folder that the session's backups had. Returns false if the client did not write the
 * session's transcript. */
static bool find_source(struct history *history, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__source source;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        !wal__source_parse(info.source, &source) || strcmp(source.dialect, "claude") != 0) {
        return false;
    }
    history->source = transcript_name(source.path);
    return true;
}

/* Whether it can be the name of a file. */
static bool is_name(const char *name)
{
    return name[0] != '\0' && strlen(name) <= NAME_MAX && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Opens the session that was imported from the source, or returns NULL. */
static struct wal_session *open_source(struct wal_store *store, const char *text)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .source = cli_slice(text)};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    struct wal_session *session = NULL;

    if (wal_session_cursor_open(store, &options, &list, NULL) == WAL_OK &&
        wal_session_cursor_next(list, &info, NULL) == WAL_OK &&
        wal_session_open(store, info.id, &session, NULL) != WAL_OK) {
        session = NULL;
    }
    wal_session_cursor_close(list);
    return session;
}

/* Opens the session of a backup, or returns NULL. Its content, not its path, determines the dialect
 * that it was imported in. */
static struct wal_session *open_backup(const struct history *history, const char *name)
{
    struct wal_session *backup = NULL;
    char text[WAL__SOURCE_SIZE_MAX + 1];
    char *path = cli_format("file-history/%s/%s", history->source, name);
    const struct wal__dialect *dialect;

    for (size_t i = 0; backup == NULL && (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (wal__source_text(text, dialect->name, 0, path)) {
            backup = open_source(history->target->store, text);
        }
    }
    free(path);
    return backup;
}

static bool is_in_place(const char *root, const char *path)
{
    const char *name = NULL;
    int directory = root != NULL ? convert_open_parent(root, path, true, &name) : -1;
    struct stat stat;
    bool is_there;

    if (directory < 0) {
        return false;
    }
    is_there = fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode);
    close(directory);
    return is_there;
}

/* Writes a backup, or counts it as missing. It gets the time that the row states: the client
 * restores no file that is older than its backup. */
static int write_backup(struct history *history, const char *name, int64_t modified_ms)
{
    const struct convert_view *target = history->target;
    struct wal_session *backup = NULL;
    struct convert_outcome outcome = {.added = 0};
    char *path;
    int code = CLI_OK;

    if (!is_name(name)) {
        history->missing++;
        return CLI_OK;
    }
    path = cli_format("file-history/%s/%s", history->folder, name);
    if (target->root != NULL) {
        backup = open_backup(history, name);
    }
    if (backup != NULL) {
        char *place = cli_format("%s/%s", target->root, path);
        const struct convert_source source = {.cli = target->cli,
                                              .store = target->store,
                                              .session = backup,
                                              .root = target->root,
                                              .path = path,
                                              .name = place,
                                              .modified_ms = modified_ms};
        code = convert_source_write(&source, &outcome);
        wal_session_close(backup);
        free(place);
    } else if (!is_in_place(target->root, path)) {
        history->missing++;
    }
    free(path);
    return code;
}

static bool put_row(void *ctx, const void *data, size_t size)
{
    struct history *history = ctx;

    cli_append(&history->row, data, size);
    return true;
}

/* Writes the backup that an object of a row names, unless it did so before. */
static int write_named(struct history *history, const struct wal__json_token *name,
                       struct wal__json_span time)
{
    struct wal_slice text = cli_unescape(name, &history->texts);
    uint32_t *is_known = cli_ids_get_or_add(&history->names, text);
    int64_t modified_ms = 0;
    char *copy;
    int code;

    if (*is_known != 0) {
        return CLI_OK;
    }
    *is_known = 1;
    (void)wal__model_time_read(time, &modified_ms);
    copy = cli_copy_slice(text);
    code = write_backup(history, copy, modified_ms);
    free(copy);
    return code;
}

/* Writes the backups that the row names: each object with a string backupFileName, at any depth. */
static int write_row(struct history *history)
{
    const struct wal__json_span no_time = {NULL, 0};
    struct wal__json_token name = {.kind = WAL__JSON_NULL};
    struct wal__json_span time = no_time;
    struct wal__json_scan scan;
    struct wal__json_token token;
    bool is_name_next = false;
    bool is_time_next = false;
    int code = CLI_OK;

    wal__json_scan_init(&scan, history->row.data, history->row.size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK && token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_OBJECT_END && name.kind == WAL__JSON_STRING) {
            code = cli_worse_code(code, write_named(history, &name, time));
        }
        if (token.kind == WAL__JSON_OBJECT || token.kind == WAL__JSON_OBJECT_END) {
            name.kind = WAL__JSON_NULL;
            time = no_time;
        } else if (is_name_next) {
            name = token;
        } else if (is_time_next) {
            time = token.span;
        }
        is_name_next =
            token.kind == WAL__JSON_KEY && wal__json_string_is(token.span, "backupFileName");
        is_time_next = token.kind == WAL__JSON_KEY && wal__json_string_is(token.span, "backupTime");
    }
    return code;
}

static bool is_history_row(const struct wal_entry *entry)
{
    static const char type[] = "file-history-";
    const size_t size = sizeof(type) - 1;

    return (entry->flags & WAL_ENTRY_REDACTED) == 0 && entry->type.size > size &&
           memcmp(entry->type.data, type, size) == 0;
}

/* Writes the backups that the session's rows name. */
static int write_rows(struct history *history, struct wal_session *session, const char *name)
{
    const struct convert_view *target = history->target;
    struct wal__source_lines lines;
    struct wal_entry entry;
    int code = CLI_OK;
    enum wal_status status =
        wal__source_lines_open(&lines, NULL, session, 0, NULL, target->cli->error);

    if (status != WAL_OK) {
        return cli_report(target->cli, name, status);
    }
    while ((status = wal__source_lines_next(&lines, &entry, target->cli->error)) != WAL_END) {
        history->row.size = 0;
        if (status == WAL_OK && is_history_row(&entry)) {
            status = wal__source_lines_read_payload(&lines, target->store, &entry, put_row, history,
                                                    target->cli->error);
            code = status == WAL_OK ? cli_worse_code(code, write_row(history)) : code;
        }
        /* The view reports entries that cannot be read. */
        if (status != WAL_OK && status != WAL_ECORRUPT && status != WAL_EIO) {
            code = cli_report(target->cli, name, status);
            break;
        }
    }
    wal__source_lines_close(&lines);
    return code;
}

int convert_file_history_export(const struct convert_view *target, struct wal_session *session,
                                struct wal_view *view, const char *name, uint64_t *missing)
{
    struct history history = {.target = target};
    const char *path = NULL;
    int code = CLI_OK;

    *missing = 0;
    if (strcmp(target->dialect, "claude") == 0 && find_source(&history, session) &&
        wal_view_path(view, 0, &path, NULL) == WAL_OK) {
        history.folder = transcript_name(path);
        code = write_rows(&history, session, name);
    }
    free(history.source);
    free(history.folder);
    free(history.row.data);
    cli_ids_deinit(&history.names);
    cli_texts_deinit(&history.texts);
    *missing = history.missing;
    return code;
}

/* --- views -------------------------------------------------------------- */

static void write_json(const struct convert_view *target, const struct wal_view *view,
                       const char *name, const char *path,
                       const struct wal_view_flush_result *result, uint64_t missing)
{
    struct wal__json_out json;
    const char *what;
    uint64_t count;

    cli_json_init(&json, target->root != NULL ? stdout : stderr);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", cli_slice(name));
    cli_json_member_text(&json, "dialect", cli_slice(target->dialect));
    cli_json_member_text_or_null(&json, "path", cli_slice(path));
    wal__json_out_member_count(&json, "added", result->lines);
    wal__json_out_member_open(&json, "losses", '[');
    for (uint32_t i = 0; wal_view_loss(view, i, &what, &count, NULL) == WAL_OK; i++) {
        cli_json_loss(&json, what, count);
    }
    cli_json_loss(&json, "file backups", missing);
    cli_json_loss(&json, "entries that cannot be read", result->unreadable);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

/* Adds to what was lost of one kind. */
static void add_loss(struct convert_summary *summary, const char *what, uint64_t count)
{
    size_t i = 0;

    while (i < summary->count && strcmp(summary->items[i].what, what) != 0) {
        i++;
    }
    if (i == summary->count) {
        *CLI_ADD(summary) = (struct convert_loss){cli_copy_text(what, strlen(what)), 0};
    }
    summary->items[i].count += count;
}

/* Prints what was added to files of lines, or of documents, which have none. */
static void print_added(uint64_t lines, uint64_t bytes)
{
    char text[SIZE_TEXT];

    size_text(bytes, text);
    if (lines == 0 && bytes > 0) {
        printf(", %s written\n", text);
    } else {
        printf(", %s added\n", cli_counted(lines, "line", "lines"));
    }
}

void convert_summary_end(struct convert_summary *summary)
{
    fputs(cli_counted(summary->files, "file", "files"), stdout);
    print_added(summary->lines, summary->bytes);
    for (size_t i = 0; i < summary->count; i++) {
        printf("  lost: %" PRIu64 " %s\n", summary->items[i].count, summary->items[i].what);
        free(summary->items[i].what);
    }
    free(summary->items);
}

/* Adds a view to the summary. */
static void sum(struct convert_summary *summary, const struct wal_view *view,
                const struct wal_view_flush_result *result, uint64_t missing)
{
    const char *what;
    uint64_t count;

    summary->files++;
    summary->lines += result->lines;
    summary->bytes += result->bytes;
    for (uint32_t i = 0; wal_view_loss(view, i, &what, &count, NULL) == WAL_OK; i++) {
        add_loss(summary, what, count);
    }
    if (missing > 0) {
        add_loss(summary, "file backups", missing);
    }
}

static void print(const struct convert_view *target, const struct wal_view *view, const char *name,
                  const char *path, const struct wal_view_flush_result *result, uint64_t missing)
{
    FILE *file = target->root != NULL ? stdout : stderr;
    const char *what;
    uint64_t count;

    if (target->cli->json) {
        write_json(target, view, name, path, result, missing);
        return;
    }
    if (target->summary != NULL) {
        sum(target->summary, view, result, missing);
        return;
    }
    if (target->root != NULL) {
        cli_print_name(stdout, cli_slice(path));
        printf(": session ");
        cli_print_name(stdout, cli_slice(name));
        print_added(result->lines, result->bytes);
    }
    for (uint32_t i = 0; wal_view_loss(view, i, &what, &count, NULL) == WAL_OK; i++) {
        fprintf(file, "  lost: %" PRIu64 " %s\n", count, what);
    }
    if (missing > 0) {
        fprintf(file, "  lost: %" PRIu64 " file backups\n", missing);
    }
}

int convert_view_print(const struct convert_view *target, struct wal_view *view, const char *name,
                       const struct wal_view_flush_result *result, uint64_t missing)
{
    const char *path = NULL;
    enum wal_status status = wal_view_path(view, 0, &path, target->cli->error);

    if (status == WAL_ENOTFOUND) {
        return CLI_OK; /* it was deleted since it was flushed */
    }
    if (status != WAL_OK) {
        return cli_report(target->cli, name, status);
    }
    print(target, view, name, path, result, missing);
    return result->unreadable > 0 ? CLI_NEGATIVE : CLI_OK;
}

static bool is_beneath(const char *path, const char *root)
{
    size_t size = strlen(root);

    while (size > 1 && root[size - 1] == '/') {
        size--;
    }
    return strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

int convert_view_fail(const struct convert_view *target, const char *name, enum wal_status status,
                      const struct wal_error *error)
{
    struct wal_error reported = *error;
    bool has_root;
    char *path;
    int code;

    if (target->root == NULL || reported.file[0] == '\0' ||
        is_beneath(reported.file, target->store_path)) {
        return cli_report_error(target->cli, name, status, error);
    }
    has_root = is_beneath(reported.file, target->root);
    path = cli_format("%s%s%s", has_root ? "" : target->root, has_root ? "" : "/", reported.file);
    reported.file[0] = '\0'; /* the path contains it */
    code = cli_report_error(target->cli, path, status, &reported);
    free(path);
    return code;
}

static int32_t write_stdout(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    return fwrite(data, 1, (size_t)size, stdout) == size ? 0 : 1;
}

enum wal_status convert_view_open(const struct convert_view *target, struct wal_session *session,
                                  struct wal_view **view, struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice(target->dialect),
        .root = cli_slice(target->root != NULL ? target->root : ""),
        .put = target->root == NULL ? write_stdout : NULL,
    };

    return wal_view_open(target->store, session, &options, view, error);
}

/* Has the store list the root, so that erasing finds the view there; where the list may not be
 * written, it does not. WAL_ENOTFOUND: there is no root. */
static enum wal_status add_root(const struct convert_view *target)
{
    return target->root == NULL ? WAL_OK
                                : wal_view_root_add(target->store, cli_slice(target->dialect),
                                                    cli_slice(target->root), NULL);
}

enum wal_status convert_view_flush(const struct convert_view *target, struct wal_view *view,
                                   struct wal_view_flush_result *result, struct wal_error *error)
{
    /* Before files are written; the first flush makes the root. */
    enum wal_status added = add_root(target);
    enum wal_status status = wal_view_flush(view, result, error);

    if (added == WAL_ENOTFOUND) {
        (void)!add_root(target);
    }
    return status;
}

static int flush(const struct convert_view *target, struct wal_session *session,
                 struct wal_view *view, const char *name)
{
    uint64_t missing = 0;
    int code;
    struct wal_view_flush_result result = WAL_INIT(wal_view_flush_result);
    enum wal_status status = convert_view_flush(target, view, &result, target->cli->error);

    if (status == WAL_ECALLBACK && cli_output_failed()) {
        return CLI_OK; /* the reader has closed the pipe */
    }
    if (status != WAL_OK) {
        return convert_view_fail(target, name, status, target->cli->error);
    }
    code = convert_file_history_export(target, session, view, name, &missing);
    return cli_worse_code(code, convert_view_print(target, view, name, &result, missing));
}

bool convert_view_has_checkpoints(const struct convert_view *target)
{
    return target->root != NULL && wal__checkpoint_layout_find(target->dialect) != NULL;
}

int convert_view_export_checkpoints(const struct convert_view *target, struct wal_session *session,
                                    struct wal_view *view, const char *id)
{
    struct progress progress;
    struct cli_checkpoint_export out = {
        .cli = target->cli,
        .store = target->store,
        .session = session,
        .name = id,
        .layout = target->dialect,
        .progress = &progress,
        .exported = exported,
        .ctx = (void *)(uintptr_t)target->cli,
    };
    const char *path = NULL;
    const char *slash;
    enum wal_status status = wal_view_path(view, 0, &path, target->cli->error);
    char *root;
    int code;

    if (status == WAL_ENOTFOUND) {
        return CLI_OK; /* it was deleted since it was flushed */
    }
    if (status != WAL_OK) {
        return cli_report(target->cli, id, status);
    }
    slash = strrchr(path, '/');
    if (slash == NULL || !has_checkpoints(session)) {
        return CLI_OK;
    }
    progress_init(&progress, !target->cli->no_progress);
    root = cli_copy_text(path, (size_t)(slash - path));
    out.root = root;
    code = cli_checkpoint_export(&out);
    free(root);
    return code;
}

/* Whether it is a transcript of a subagent: its client finds it by its path next to that of the
 * session that started it. */
static bool is_subagent(const struct wal_session_info *info)
{
    return memmem(info->id.data, (size_t)info->id.size, "~agent-", 7) != NULL;
}

bool convert_view_has_messages(const char *dialect, const struct wal_session_info *info)
{
    struct wal__source source;
    bool is_imported = wal__source_parse(info->source, &source);
    bool is_client = !is_imported || !wal__dialect_is(wal__dialect_find(source.dialect), "lines");

    if (is_imported && is_client && is_subagent(info)) {
        /* OpenCode shows it below its parent, others in the list. */
        return info->entries > 0 &&
               (strcmp(source.dialect, dialect) == 0 || strcmp(dialect, "opencode") == 0);
    }
    return is_client && (info->first_text.size > 0 || (info->documents > 0 && info->cwd.size > 0) ||
                         (info->entries > 0 && info->source.size == 0));
}

int convert_view_export(const struct convert_view *target, const char *id)
{
    struct wal_session *session = NULL;
    struct wal_view *view = NULL;
    enum wal_status status =
        wal_session_open(target->store, cli_slice(id), &session, target->cli->error);
    int code;

    if (status != WAL_OK) {
        return cli_report(target->cli, id, status);
    }
    status = convert_view_open(target, session, &view, target->cli->error);
    if (status != WAL_OK) {
        wal_session_close(session);
        return cli_report(target->cli, id, status);
    }
    code = flush(target, session, view, id);
    if (code <= CLI_NEGATIVE && convert_view_has_checkpoints(target)) {
        code = cli_worse_code(code, convert_view_export_checkpoints(target, session, view, id));
    }
    wal_view_close(view);
    wal_session_close(session);
    return code;
}

void convert_print_path(const struct cli *cli, const char *path)
{
    struct wal__json_out json;

    if (!cli->json) {
        printf("%s\n", path);
        return;
    }
    cli_json_begin(&json);
    cli_json_path(&json, cli_slice(path));
    wal__json_out_close_line(&json);
}

int convert_view_print_path(const struct convert_view *target, struct wal_session *session,
                            const char *name, uint32_t stream)
{
    struct wal_view *view = NULL;
    const char *path = NULL;
    enum wal_status status = convert_view_open(target, session, &view, target->cli->error);

    if (status != WAL_OK) {
        return cli_report(target->cli, name, status);
    }
    status = wal_view_path(view, stream, &path, target->cli->error);
    if (status == WAL_OK) {
        convert_print_path(target->cli, path);
    }
    wal_view_close(view);
    return cli_report(target->cli, name, status);
}
