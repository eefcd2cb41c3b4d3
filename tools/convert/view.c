/*
 * view.c - flush views, and print results and losses.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "convert/source/checkpoint_manifest.h"
#include "convert/source/source_name.h"
#include "tools/convert/checkpoints.h"
#include "tools/convert/file_history.h"

void convert_write_loss(struct wal__json_out *json, const char *what,
                        uint64_t count)
{
    if (count == 0) {
        return;
    }
    wal__json_out_open(json, '{');
    cli_json_member_text(json, "what", cli_slice(what));
    wal__json_out_member_count(json, "count", count);
    wal__json_out_close(json, '}');
}

static void write_json(const struct convert_view *target,
                       const struct wal_view *view, const char *name,
                       const char *path,
                       const struct wal_view_flush_result *result,
                       uint64_t missing)
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
    for (uint32_t i = 0; wal_view_loss(view, i, &what, &count, NULL) == WAL_OK;
         i++) {
        convert_write_loss(&json, what, count);
    }
    convert_write_loss(&json, "file backups", missing);
    convert_write_loss(&json, "entries that cannot be read",
                       result->unreadable);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print(const struct convert_view *target,
                  const struct wal_view *view, const char *name,
                  const char *path, const struct wal_view_flush_result *result,
                  uint64_t missing)
{
    FILE *file = target->root != NULL ? stdout : stderr;
    const char *what;
    uint64_t count;

    if (target->cli->json) {
        write_json(target, view, name, path, result, missing);
        return;
    }
    if (target->root != NULL) {
        cli_print_name(stdout, cli_slice(path));
        printf(": session ");
        cli_print_name(stdout, cli_slice(name));
        printf(", %" PRIu64 " %s added\n", result->lines,
               cli_plural(result->lines, "line", "lines"));
    }
    for (uint32_t i = 0; wal_view_loss(view, i, &what, &count, NULL) == WAL_OK;
         i++) {
        fprintf(file, "  lost: %" PRIu64 " %s\n", count, what);
    }
    if (missing > 0) {
        fprintf(file, "  lost: %" PRIu64 " file backups\n", missing);
    }
}

int convert_view_print(const struct convert_view *target, struct wal_view *view,
                       const char *name,
                       const struct wal_view_flush_result *result,
                       uint64_t missing)
{
    struct wal_error error = CLI_ERROR_INIT;
    const char *path = NULL;
    enum wal_status status = wal_view_path(view, 0, &path, &error);

    if (status == WAL_ENOTFOUND) {
        return CLI_OK; /* it was deleted since it was flushed */
    }
    if (status != WAL_OK) {
        return cli_report(target->cli, name, status, &error);
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
    return strncmp(path, root, size) == 0 &&
           (path[size] == '/' || path[size] == '\0');
}

int convert_view_fail(const struct convert_view *target, const char *name,
                      enum wal_status status, const struct wal_error *error)
{
    struct wal_error reported = *error;
    bool has_root;
    char *path;
    int code;

    if (target->root == NULL || reported.file[0] == '\0' ||
        is_beneath(reported.file, target->store_path)) {
        return cli_report(target->cli, name, status, error);
    }
    has_root = is_beneath(reported.file, target->root);
    path = cli_alloc(strlen(target->root) + strlen(reported.file) + 2);
    sprintf(path, "%s%s%s", has_root ? "" : target->root, has_root ? "" : "/",
            reported.file);
    reported.file[0] = '\0'; /* the path contains it */
    code = cli_report(target->cli, path, status, &reported);
    free(path);
    return code;
}

static int32_t write_stdout(void *ctx, const void *data, uint64_t size)
{
    (void)ctx;
    return fwrite(data, 1, (size_t)size, stdout) == size ? 0 : 1;
}

enum wal_status convert_view_open(const struct convert_view *target,
                                  struct wal_session *session,
                                  struct wal_view **view,
                                  struct wal_error *error)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice(target->dialect),
        .root = cli_slice(target->root != NULL ? target->root : ""),
        .put = target->root == NULL ? write_stdout : NULL,
    };

    return wal_view_open(target->store, session, &options, view, error);
}

/* Has the store list the root, so that erasing finds the view there; where the
 * list may not be written, it does not. WAL_ENOTFOUND: there is no root. */
static enum wal_status add_root(const struct convert_view *target)
{
    return target->root == NULL
               ? WAL_OK
               : wal_view_root_add(target->store, cli_slice(target->dialect),
                                   cli_slice(target->root), NULL);
}

enum wal_status convert_view_flush(const struct convert_view *target,
                                   struct wal_view *view,
                                   struct wal_view_flush_result *result,
                                   struct wal_error *error)
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
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = convert_view_flush(target, view, &result, &error);

    if (status == WAL_ECALLBACK && cli_output_failed()) {
        return CLI_OK; /* the reader has closed the pipe */
    }
    if (status != WAL_OK) {
        return convert_view_fail(target, name, status, &error);
    }
    code = convert_file_history_export(target, session, view, name, &missing);
    return cli_worse_code(
        code, convert_view_print(target, view, name, &result, missing));
}

bool convert_view_has_checkpoints(const struct convert_view *target)
{
    return target->root != NULL &&
           wal__checkpoint_layout_find(target->dialect) != NULL;
}

int convert_view_export_checkpoints(const struct convert_view *target,
                                    struct wal_session *session,
                                    struct wal_view *view, const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    const char *path = NULL;
    enum wal_status status = wal_view_path(view, 0, &path, &error);

    if (status == WAL_OK) {
        return convert_checkpoints_export(target->cli, target->store, session,
                                          id, target->dialect, path);
    }
    return status == WAL_ENOTFOUND
               ? CLI_OK /* it was deleted since it was flushed */
               : cli_report(target->cli, id, status, &error);
}

/* Whether it is a transcript of a subagent: its client finds it by its path
 * next to that of the session that started it. */
static bool is_subagent(const struct wal_session_info *info)
{
    return memmem(info->id.data, (size_t)info->id.size, "~agent-", 7) != NULL;
}

bool convert_view_has_messages(const char *dialect,
                               const struct wal_session_info *info)
{
    struct wal__source source;
    bool is_imported = wal__source_parse(info->source, &source);
    bool is_client =
        !is_imported ||
        !wal__dialect_is(wal__dialect_find(source.dialect), "lines");

    if (is_imported && is_client && is_subagent(info)) {
        /* OpenCode shows it below its parent, others in the list. */
        return info->entries > 0 && (strcmp(source.dialect, dialect) == 0 ||
                                     strcmp(dialect, "opencode") == 0);
    }
    return is_client && (info->first_text.size > 0 ||
                         (info->documents > 0 && info->cwd.size > 0) ||
                         (info->entries > 0 && info->source.size == 0));
}

int convert_view_export(const struct convert_view *target, const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_view *view = NULL;
    enum wal_status status =
        wal_session_open(target->store, cli_slice(id), &session, &error);
    int code;

    if (status != WAL_OK) {
        return cli_report(target->cli, id, status, &error);
    }
    status = convert_view_open(target, session, &view, &error);
    if (status != WAL_OK) {
        wal_session_close(session);
        return cli_report(target->cli, id, status, &error);
    }
    code = flush(target, session, view, id);
    if (code <= CLI_NEGATIVE && convert_view_has_checkpoints(target)) {
        code = cli_worse_code(
            code, convert_view_export_checkpoints(target, session, view, id));
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
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_path(&json, cli_slice(path));
    wal__json_out_close_line(&json);
}

int convert_view_print_path(const struct convert_view *target,
                            struct wal_session *session, const char *name,
                            uint32_t stream)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_view *view = NULL;
    const char *path = NULL;
    enum wal_status status = convert_view_open(target, session, &view, &error);

    if (status != WAL_OK) {
        return cli_report(target->cli, name, status, &error);
    }
    status = wal_view_path(view, stream, &path, &error);
    if (status == WAL_OK) {
        convert_print_path(target->cli, path);
    }
    wal_view_close(view);
    return status == WAL_OK ? CLI_OK
                            : cli_report(target->cli, name, status, &error);
}
