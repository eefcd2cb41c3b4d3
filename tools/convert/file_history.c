/*
 * file_history.c - writes the backups that transcripts name (file_history.h).
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/file_history.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/model/dialect.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"
#include "tools/convert/export_source.h"
#include "tools/convert/output_file.h"

struct history {
    const struct convert_view *target;
    char *source;         /* name of the transcript, before its import */
    char *folder;         /* name of the view's transcript */
    struct cli_ids names; /* that rows named so far */
    struct cli_texts texts;
    char *row;
    size_t row_size;
    uint64_t missing;
};

/* Returns the file's name without .jsonl; the caller frees it. */
static char *transcript_name(const char *path)
{
    static const char suffix[] = ".jsonl";
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t size = strlen(base);

    if (size >= sizeof(suffix) &&
        strcmp(base + size - (sizeof(suffix) - 1), suffix) == 0) {
        size -= sizeof(suffix) - 1;
    }
    return cli_copy_text(base, size);
}

/* Sets the folder that the session's backups had. Returns false if the client
 * did not write the session's transcript. */
static bool find_source(struct history *history, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__source source;

    if (wal_session_get_info(session, &info, NULL) != WAL_OK ||
        !wal__source_parse(info.source, &source) ||
        strcmp(source.dialect, "claude") != 0) {
        return false;
    }
    history->source = transcript_name(source.path);
    return true;
}

/* Whether it can be the name of a file. */
static bool is_name(const char *name)
{
    return name[0] != '\0' && strlen(name) <= NAME_MAX &&
           strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* Joins two parts of a path; the caller frees it. */
static char *join_path(const char *above, const char *below)
{
    size_t size = strlen(above) + strlen(below) + 2;
    char *path = cli_alloc(size);

    snprintf(path, size, "%s/%s", above, below);
    return path;
}

/* Returns file-history/FOLDER/NAME; the caller frees it. */
static char *backup_path(const char *folder, const char *name)
{
    char *above = join_path("file-history", folder);
    char *path = join_path(above, name);

    free(above);
    return path;
}

/* Opens the session that was imported from the source, or returns NULL. */
static struct wal_session *open_source(struct wal_store *store,
                                       const char *text)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options), .source = cli_slice(text)};
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

/* Opens the session of a backup, or returns NULL. Its content, not its path,
 * determines the dialect that it was imported in. */
static struct wal_session *open_backup(const struct history *history,
                                       const char *name)
{
    struct wal_session *backup = NULL;
    char text[WAL__SOURCE_SIZE_MAX + 1];
    char *path = backup_path(history->source, name);
    const struct wal__dialect *dialect;

    for (size_t i = 0; backup == NULL && (dialect = wal__dialect_at(i)) != NULL;
         i++) {
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
    int directory =
        root != NULL ? convert_open_parent(root, path, true, &name) : -1;
    struct stat stat;
    bool is_there;

    if (directory < 0) {
        return false;
    }
    is_there = fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISREG(stat.st_mode);
    close(directory);
    return is_there;
}

/* Writes a backup, or counts it as missing. It gets the time that the row
 * states: the client restores no file that is older than its backup. */
static int write_backup(struct history *history, const char *name,
                        int64_t modified_ms)
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
    path = backup_path(history->folder, name);
    if (target->root != NULL) {
        backup = open_backup(history, name);
    }
    if (backup != NULL) {
        char *place = join_path(target->root, path);
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

    history->row = cli_realloc(history->row, history->row_size + size + 1);
    memcpy(history->row + history->row_size, data, size);
    history->row_size += size;
    return true;
}

/* Writes the backup that an object of a row names, unless it did so before. */
static int write_named(struct history *history,
                       const struct wal__json_token *name,
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
    copy = cli_copy_text(text.data, (size_t)text.size);
    code = write_backup(history, copy, modified_ms);
    free(copy);
    return code;
}

/* Writes the backups that the row names: each object with a string
 * backupFileName, at any depth. */
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

    wal__json_scan_init(&scan, history->row, history->row_size);
    while (wal__json_scan_next(&scan, &token) == WAL__JSON_OK &&
           token.kind != WAL__JSON_END) {
        if (token.kind == WAL__JSON_OBJECT_END &&
            name.kind == WAL__JSON_STRING) {
            code = cli_worse_code(code, write_named(history, &name, time));
        }
        if (token.kind == WAL__JSON_OBJECT ||
            token.kind == WAL__JSON_OBJECT_END) {
            name.kind = WAL__JSON_NULL;
            time = no_time;
        } else if (is_name_next) {
            name = token;
        } else if (is_time_next) {
            time = token.span;
        }
        is_name_next = token.kind == WAL__JSON_KEY &&
                       wal__json_string_is(token.span, "backupFileName");
        is_time_next = token.kind == WAL__JSON_KEY &&
                       wal__json_string_is(token.span, "backupTime");
    }
    return code;
}

static bool is_history_row(const struct wal_entry *entry)
{
    static const char type[] = "file-history-";
    const size_t size = sizeof(type) - 1;

    return (entry->flags & WAL_ENTRY_REDACTED) == 0 &&
           entry->type.size > size && memcmp(entry->type.data, type, size) == 0;
}

/* Writes the backups that the session's rows name. */
static int write_rows(struct history *history, struct wal_session *session,
                      const char *name)
{
    const struct convert_view *target = history->target;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal__source_lines lines;
    struct wal_entry entry;
    int code = CLI_OK;
    enum wal_status status =
        wal__source_lines_open(&lines, NULL, session, 0, &error);

    if (status != WAL_OK) {
        return cli_report(target->cli, name, status, &error);
    }
    while ((status = wal__source_lines_next(&lines, &entry, &error)) !=
           WAL_END) {
        history->row_size = 0;
        if (status == WAL_OK && is_history_row(&entry)) {
            status = wal__source_lines_read_payload(
                &lines, target->store, &entry, put_row, history, &error);
            code = status == WAL_OK ? cli_worse_code(code, write_row(history))
                                    : code;
        }
        /* The view reports entries that cannot be read. */
        if (status != WAL_OK && status != WAL_ECORRUPT && status != WAL_EIO) {
            code = cli_report(target->cli, name, status, &error);
            break;
        }
    }
    wal__source_lines_close(&lines);
    return code;
}

int convert_file_history_export(const struct convert_view *target,
                                struct wal_session *session,
                                struct wal_view *view, const char *name,
                                uint64_t *missing)
{
    struct history history = {.target = target};
    const char *path = NULL;
    int code = CLI_OK;

    *missing = 0;
    if (strcmp(target->dialect, "claude") == 0 &&
        find_source(&history, session) &&
        wal_view_path(view, 0, &path, NULL) == WAL_OK) {
        history.folder = transcript_name(path);
        code = write_rows(&history, session, name);
    }
    free(history.source);
    free(history.folder);
    free(history.row);
    cli_ids_deinit(&history.names);
    cli_texts_deinit(&history.texts);
    *missing = history.missing;
    return code;
}
