/*
 * sessions.c - print sessions.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/source/source_name.h"
#include "format/bytes/fmt.h"
#include "tools/cli/session.h"
#include "tools/cli/short_id.h"
#include "tools/terminal/cell.h"
#include "tools/terminal/when.h"

bool cli_session_move(struct wal_store *store,
                      const struct wal_session_info *info,
                      struct wal_session_move *move)
{
    struct wal_session *session = NULL;
    const bool result =
        (info->flags & WAL_SESSION_MOVED) != 0 &&
        wal_session_open(store, info->id, &session, NULL) == WAL_OK &&
        wal_session_get_move(session, move, NULL) == WAL_OK;

    wal_session_close(session);
    return result;
}

/* Nobody has a session yet that was handed off. */
static void write_move(struct wal__json_out *json,
                       const struct wal_session_move *move)
{
    static const uint8_t none[sizeof(move->store)];
    char store[2 * sizeof(move->store) + 1] = "";

    if (memcmp(move->store, none, sizeof(none)) != 0) {
        wal__hex_write(move->store, sizeof(move->store), store);
    }
    cli_json_member_text_or_null(json, "movedTo", cli_slice(move->host));
    cli_json_member_text_or_null(json, "movedToStore", cli_slice(store));
}

void cli_session_json(struct wal__json_out *json,
                      const struct wal_session_info *info,
                      const struct wal_session_move *move)
{
    cli_json_member_text(json, "sessionId", info->id);
    cli_json_member_text_or_null(json, "title", info->title);
    cli_json_member_text_or_null(json, "firstText", info->first_text);
    cli_json_member_text_or_null(json, "cwd", info->cwd);
    cli_json_member_text_or_null(json, "projectId", info->project);
    cli_json_member_text_or_null(json, "parentId", info->parent_id);
    cli_json_member_time(json, "created", info->created_ms);
    cli_json_member_time(json, "updated", info->updated_ms);
    wal__json_out_member_count(json, "entries", info->entries);
    cli_json_member_text_or_null(json, "head", info->head);
    if ((info->flags & WAL_SESSION_TRASHED) != 0) {
        wal__json_out_member_bool(json, "trashed", true);
    }
    if ((info->flags & WAL_SESSION_MOVED) != 0) {
        wal__json_out_member_bool(json, "moved", true);
    }
    if (move != NULL) {
        write_move(json, move);
    }
}

static void write_row(struct wal__json_out *json, struct wal_store *store,
                      const struct wal_session_info *info)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    wal__json_out_open(json, '{');
    cli_session_json(json, info,
                     cli_session_move(store, info, &move) ? &move : NULL);
    wal__json_out_close_line(json);
}

/* The table that verbs print. Widths are in columns; 0: no limit. */
struct table {
    const struct terminal *terminal;
    struct cli_short_ids ids;
    size_t id_width;
    size_t directory_width;
    size_t title_width;
    int64_t now_ms;
    const char *home;
};

enum {
    ID_WIDTH_MAX = 36, /* of a UUID */
    ENTRIES_WIDTH = 7,
    DIRECTORY_WIDTH_MIN = 12,
    DIRECTORY_WIDTH = 28,
    TITLE_WIDTH_MIN = 12,
    TITLE_NAME_MAX = 255, /* bytes of a file's name */
    GAPS = 4 * 2
};

static void table_init(struct table *table, const struct cli *cli,
                       struct wal_store *store)
{
    size_t columns = cli->terminal->columns;
    size_t fixed = GAPS + WHEN_AGE_COLUMNS + ENTRIES_WIDTH;
    size_t width;

    *table = (struct table){
        .terminal = cli->terminal,
        .id_width = sizeof("SESSION") - 1,
        .now_ms = when_now_ms(),
        .home = getenv("HOME"),
    };
    cli_short_ids_add_sessions(&table->ids, store);
    for (size_t i = 0; i < table->ids.count; i++) {
        struct wal_slice id = cli_short_id(&table->ids, table->ids.items[i]);
        width = cell_width(id.data, (size_t)id.size);
        table->id_width = width > table->id_width ? width : table->id_width;
    }
    if (table->id_width > ID_WIDTH_MAX || !table->ids.is_complete) {
        table->id_width = ID_WIDTH_MAX;
    }
    table->directory_width = DIRECTORY_WIDTH;
    if (columns == 0) {
        return;
    }
    fixed += table->id_width;
    width = columns > fixed ? columns - fixed : 0;
    if (width / 3 < table->directory_width) {
        table->directory_width =
            width / 3 > DIRECTORY_WIDTH_MIN ? width / 3 : DIRECTORY_WIDTH_MIN;
    }
    table->title_width = width > table->directory_width + TITLE_WIDTH_MIN
                             ? width - table->directory_width
                             : TITLE_WIDTH_MIN;
}

struct wal_slice cli_session_title(const struct wal_session_info *info,
                                   char text[CLI_TEXT_MAX])
{
    struct wal__source source;
    const char *slash;

    if (info->title.size > 0) {
        return info->title;
    }
    if (info->first_text.size > 0) {
        return info->first_text;
    }
    if (!wal__source_parse(info->source, &source)) {
        return cli_slice("(no messages)");
    }
    slash = strrchr(source.path, '/');
    snprintf(text, CLI_TEXT_MAX, "(no messages) %.*s", TITLE_NAME_MAX,
             slash != NULL && slash[1] != '\0' ? slash + 1 : source.path);
    return cli_slice(text);
}

/* Prints a directory, with ~ for the user's home. Without a limit of the line's
 * width it is never cut. */
static void put_directory(const struct table *table, struct wal_slice directory)
{
    size_t home_size = table->home != NULL ? strlen(table->home) : 0;
    const char *at = directory.data;
    size_t size = (size_t)directory.size;
    char text[CLI_TEXT_MAX + 2];
    size_t width;

    if (home_size > 1 && size >= home_size && size <= CLI_TEXT_MAX &&
        memcmp(at, table->home, home_size) == 0 &&
        (size == home_size || at[home_size] == '/')) {
        text[0] = '~';
        memcpy(text + 1, at + home_size, size - home_size);
        at = text;
        size = size - home_size + 1;
    }
    width = cell_width(at, size);
    if (table->title_width > 0 || width < table->directory_width) {
        width = table->directory_width;
    }
    if (width > 0) {
        cell_print(stdout, at, size, width, CELL_PAD | CELL_KEEP_END);
    }
}

static void print_move(struct wal_store *store,
                       const struct wal_session_info *info)
{
    struct wal_session_move move = WAL_INIT(wal_session_move);

    if (cli_session_move(store, info, &move) && move.host[0] != '\0') {
        printf("  [moved to %s]", move.host);
    } else if ((info->flags & WAL_SESSION_MOVED) != 0) {
        fputs("  [moved]", stdout);
    }
}

static void put_row(struct table *table, struct wal_store *store,
                    const struct wal_session_info *info)
{
    struct wal_slice id = cli_short_id(&table->ids, info->id);
    char text[CLI_TEXT_MAX];
    struct wal_slice title = cli_session_title(info, text);
    char age[WHEN_SIZE];

    terminal_put_style(table->terminal, TERMINAL_ID);
    if (id.size == info->id.size) {
        /* A complete id is never cut. */
        size_t width = cli_print_name(stdout, id);
        printf("%*s",
               width < table->id_width ? (int)(table->id_width - width) : 0,
               "");
    } else {
        cell_print(stdout, id.data, (size_t)id.size, table->id_width, CELL_PAD);
    }
    terminal_put_style(table->terminal, TERMINAL_DIM);
    when_age(info->updated_ms, table->now_ms, age);
    printf("  %-*s", WHEN_AGE_COLUMNS, age);
    terminal_put_style(table->terminal, TERMINAL_PLAIN);
    printf("  %*llu  ", ENTRIES_WIDTH, (unsigned long long)info->entries);
    put_directory(table, info->cwd);
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        terminal_put_style(table->terminal, TERMINAL_ALARM);
        fputs("  [damaged]", stdout);
        terminal_put_style(table->terminal, TERMINAL_PLAIN);
    }
    print_move(store, info);
    if (title.size > 0) {
        fputs("  ", stdout);
        cell_print(stdout, title.data, (size_t)title.size, table->title_width,
                   0);
    }
    putchar('\n');
}

static void put_header(const struct table *table)
{
    terminal_put_style(table->terminal, TERMINAL_STRONG);
    printf("%-*s  %-*s  %*s  %-*s  %s\n", (int)table->id_width, "SESSION",
           WHEN_AGE_COLUMNS, "UPDATED", ENTRIES_WIDTH, "ENTRIES",
           (int)table->directory_width, "DIRECTORY", "TITLE");
    terminal_put_style(table->terminal, TERMINAL_PLAIN);
}

/* After the last session of a page: prints the cursor of the next page if there
 * are more sessions. */
static enum wal_status print_cursor(struct wal_session_cursor *list,
                                    struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    char cursor[WAL_CURSOR_TEXT_SIZE];
    enum wal_status status = wal_session_cursor_encode(list, cursor, error);

    if (status == WAL_OK) {
        status = wal_session_cursor_next(list, &info, error);
    }
    if (status == WAL_OK) {
        fprintf(stderr, "%s\n", cursor);
    }
    return status;
}

int cli_print_sessions(const struct cli *cli, struct wal_store *store,
                       const char *path,
                       const struct wal_session_cursor_options *options,
                       uint64_t limit, bool cursor)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session_cursor *list = NULL;
    enum wal_status status;
    struct table table = {.terminal = cli->terminal};
    struct wal__json_out json;
    uint64_t count = 0;

    if (!cli->json) {
        table_init(&table, cli, store);
    }
    status = wal_session_cursor_open(store, options, &list, &error);
    if (status == WAL_OK) {
        cli_start_pager(cli);
    }
    cli_json_init(&json, stdout);
    while (status == WAL_OK && (limit == 0 || count < limit) &&
           !cli_output_failed() &&
           (status = wal_session_cursor_next(list, &info, &error)) == WAL_OK) {
        if (cli->json) {
            write_row(&json, store, &info);
        } else {
            if (count == 0) {
                put_header(&table);
            }
            put_row(&table, store, &info);
        }
        count++;
    }
    cli_short_ids_deinit(&table.ids);
    if (status == WAL_OK && cursor && count == limit) {
        status = print_cursor(list, &error);
    }
    wal_session_cursor_close(list);
    if (status == WAL_EINVAL && strstr(error.text, "cursor") != NULL) {
        return cli_error(cli, CLI_USAGE, "--after",
                         "is not a cursor; use the text that --cursor printed");
    }
    return status == WAL_OK || status == WAL_END
               ? CLI_OK
               : cli_report(cli, path, status, &error);
}
