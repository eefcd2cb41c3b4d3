/*
 * views.c - the views that the store knows of, after something was erased.
 *
 * Threads: the tool has one thread.
 */
#include <stdio.h>

#include "agentwal/convert.h"
#include "tools/care/care.h"
#include "tools/cli/verbs.h"

static const char *state_of(const struct wal_view_info *info)
{
    return (info->flags & WAL_VIEW_INFO_UNREADABLE) != 0 ? "unknown"
           : (info->flags & WAL_VIEW_INFO_DELETED) != 0  ? "deleted"
                                                         : "redacted";
}

static void write_view(struct wal__json_out *json,
                       const struct wal_view_info *info, bool is_rewritten)
{
    wal__json_out_open(json, '{');
    cli_json_member_text_or_null(json, "sessionId", cli_slice(info->session));
    cli_json_member_text(json, "dialect", cli_slice(info->dialect));
    cli_json_member_text(json, "root", cli_slice(info->root));
    cli_json_member_text(json, "state", cli_slice(state_of(info)));
    wal__json_out_member_bool(json, "rewritten", is_rewritten);
    wal__json_out_close(json, '}');
}

static void print_view(const struct wal_view_info *info, bool is_rewritten)
{
    bool is_deleted = (info->flags & WAL_VIEW_INFO_DELETED) != 0;

    fputs(!is_rewritten ? "may hold it still: "
          : is_deleted  ? "removed the view: "
                        : "rewrote the view: ",
          stdout);
    cli_print_name(stdout, cli_slice(info->root));
    printf(", %s", info->dialect);
    if (info->session[0] != '\0') {
        fputs(", session ", stdout);
        cli_print_name(stdout, cli_slice(info->session));
    } else {
        fputs(", which cannot be read", stdout);
    }
    puts(is_deleted && !is_rewritten ? ", which was deleted" : "");
}

/* Reports why a view was not rewritten, by the path of the file if it is
 * known. */
static int report(const struct cli *cli, const struct wal_view_info *info,
                  enum wal_status status, const struct wal_error *error)
{
    struct wal_error reported = *error;
    char path[2 * sizeof(info->root)];

    if (reported.file[0] == '\0' || reported.file[0] == '/') {
        return cli_report(cli, info->root, status, &reported);
    }
    snprintf(path, sizeof(path), "%s/%s", info->root, reported.file);
    reported.file[0] = '\0';
    return cli_report(cli, path, status, &reported);
}

int care_print_views(const struct cli *cli, struct wal_store *store,
                     bool rewrites, struct wal__json_out *json)
{
    const struct wal_view_cursor_options options = {
        .struct_size = sizeof(options), .flags = WAL_VIEW_CURSOR_STALE};
    struct wal_view_info info = WAL_INIT(wal_view_info);
    struct wal_view_cursor *cursor = NULL;
    struct wal_error error = CLI_ERROR_INIT;
    size_t left = 0;
    int code = CLI_OK;
    enum wal_status status =
        wal_view_cursor_open(store, &options, &cursor, &error);

    if (status != WAL_OK) {
        return cli_report(cli, "views", status, &error);
    }
    while (wal_view_cursor_next(cursor, &info, NULL) == WAL_OK) {
        status =
            rewrites ? wal_view_update(store, &info, NULL, &error) : WAL_EBUSY;
        if (json != NULL) {
            write_view(json, &info, status == WAL_OK);
        } else {
            print_view(&info, status == WAL_OK);
        }
        left += status == WAL_OK ? 0 : 1;
        if (rewrites && status != WAL_OK) {
            code = cli_worse_code(code, report(cli, &info, status, &error));
        }
    }
    wal_view_cursor_close(cursor);
    if (left > 0 && !rewrites && json == NULL) {
        printf("rewrite %s: agentwal gc --views\n", left == 1 ? "it" : "them");
    }
    return code;
}

int care_report_views(const struct cli *cli, struct wal_store *store,
                      bool rewrites)
{
    struct wal__json_out json;
    int code;

    if (!cli->json) {
        return care_print_views(cli, store, rewrites, NULL);
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    wal__json_out_member_open(&json, "views", '[');
    code = care_print_views(cli, store, rewrites, &json);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
    return code;
}
