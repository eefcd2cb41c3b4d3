/*
 * view.c - the verb view: a session as one HTML file (verbs.h, docs/seeing.md).
 *
 * Invariant: nothing is written before all of the session is read and filtered.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/page/page.h"
#include "tools/shown/shown.h"
#include "tools/usage/usage.h"
#include "tools/view/filter.h"

enum {
    TEXT_MAX = 1 << 20,     /* bytes of a text in the file */
    NOTED_BYTES = 256 << 20 /* of a page that is named large */
};

struct view {
    struct shown shown;
    struct wal_store *store;
    struct wal_session *session;
    struct view_filter filter;
    uint64_t damaged; /* entries that could not be read */
};

/* --- the data ----------------------------------------------------------- */

static enum wal_status put_entry(void *ctx, const struct wal_entry *entry, struct wal_error *error)
{
    struct view *view = ctx;

    return shown_entry(&view->shown, view->store, entry, error);
}

static enum wal_status put_entries(struct view *view, struct wal_error *error)
{
    enum wal_status status;

    wal__json_out_member_open(view->shown.json, "entries", '[');
    status =
        shown_entries_visit(view->store, view->session, 0, put_entry, view, &view->damaged, error);
    wal__json_out_close(view->shown.json, ']');
    wal__json_out_member_count(view->shown.json, "damaged", view->damaged);
    return status;
}

/* Writes the last entry of a head's branch that is not redacted. */
static void put_leaf(struct view *view, struct wal_slice head)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;

    options.head = head;
    options.last = 1;
    wal__json_out_key(view->shown.json, "entryId");
    if (wal_entry_cursor_open(view->session, &options, &cursor, NULL) != WAL_OK ||
        wal_entry_cursor_next(cursor, &entry, NULL) != WAL_OK) {
        entry.id = cli_slice(NULL);
    }
    cli_json_text_or_null(view->shown.json, entry.id);
    wal_entry_cursor_close(cursor);
}

static enum wal_status put_heads(struct view *view, struct wal_error *error)
{
    struct cli_heads heads = {.items = NULL};
    enum wal_status status = cli_heads_read(&heads, view->session, error);

    wal__json_out_member_open(view->shown.json, "heads", '[');
    for (size_t i = 0; i < heads.count; i++) {
        if (heads.items[i].stream == 0) {
            wal__json_out_open(view->shown.json, '{');
            shown_member(&view->shown, "name", heads.items[i].name);
            put_leaf(view, heads.items[i].name);
            wal__json_out_close(view->shown.json, '}');
        }
    }
    wal__json_out_close(view->shown.json, ']');
    cli_heads_deinit(&heads);
    return status;
}

/* Writes the member "diffs": of each checkpoint with the one before it, newest first. One that
 * cannot be compared is null. */
static enum wal_status put_diffs(struct view *view, struct wal_error *error)
{
    struct cli_texts list = {.items = NULL};
    enum wal_status status = shown_checkpoints_read(&list, view->session, error);

    wal__json_out_member_open(view->shown.json, "diffs", '[');
    for (size_t i = list.count; i > 1 && status == WAL_OK; i--) {
        wal__json_out_open(view->shown.json, '{');
        shown_member(&view->shown, "before", cli_slice(list.items[i - 2]));
        shown_member(&view->shown, "after", cli_slice(list.items[i - 1]));
        status = shown_diff(&view->shown, view->store, view->session, cli_slice(list.items[i - 2]),
                            cli_slice(list.items[i - 1]), error);
        wal__json_out_close(view->shown.json, '}');
        if (status == WAL_ECORRUPT || status == WAL_ENOTFOUND) {
            view->damaged++;
            status = WAL_OK;
        }
    }
    wal__json_out_close(view->shown.json, ']');
    cli_texts_deinit(&list);
    return status;
}

static enum wal_status put_usage(struct view *view, struct wal_error *error)
{
    enum wal_status status;

    wal__json_out_member_open(view->shown.json, "usage", '{');
    status = shown_usage(&view->shown, view->store, view->session, error);
    wal__json_out_close(view->shown.json, '}');
    return status;
}

static void put_struck(struct view *view)
{
    wal__json_out_member_count(view->shown.json, "struck", view_filter_count(&view->filter));
    wal__json_out_member_bool(view->shown.json, "hidesResults", view->shown.hides_results);
}

static enum wal_status put_data(struct view *view, const struct wal_session_info *info,
                                struct wal_error *error)
{
    struct shown_subagents subagents = {.items = NULL};
    enum wal_status status;

    wal__json_out_open(view->shown.json, '{');
    wal__json_out_key(view->shown.json, "session");
    shown_session(&view->shown, view->store, info, true);
    status = shown_subagents_read(&subagents, view->store, view->session, false, error);
    view->shown.subagents = &subagents;
    if (status == WAL_OK) {
        status = put_entries(view, error);
    }
    view->shown.subagents = NULL;
    shown_subagents_deinit(&subagents);
    if (status == WAL_OK) {
        status = put_heads(view, error);
    }
    if (status == WAL_OK) {
        status = shown_checkpoints_write(&view->shown, view->session, error);
    }
    if (status == WAL_OK) {
        status = put_diffs(view, error);
    }
    if (status == WAL_OK) {
        status = put_usage(view, error);
    }
    put_struck(view);
    wal__json_out_close(view->shown.json, '}');
    return status;
}

/* --- the verb ----------------------------------------------------------- */

/* Sets the directory that --no-paths replaces. */
static void set_cwd(struct view_filter *filter, struct wal_slice cwd)
{
    if (cwd.size == 0) {
        return;
    }
    filter->cwd = cli_copy_slice(cwd);
    filter->cwd_name = cli_copy_slice(cwd);
    for (char *at = filter->cwd_name; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '-';
        }
    }
}

/* Reads the session into memory. */
static enum wal_status read_data(struct view *view, char **data, size_t *size,
                                 struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal__json_out json;
    FILE *file = cli_open_memory(data, size);
    enum wal_status status;
    bool has_failed;

    cli_json_init(&json, file);
    view->shown.json = &json;
    view->shown.session = view->session;
    view->shown.limit = TEXT_MAX;
    view->shown.strike = view_filter_strike;
    view->shown.ctx = &view->filter;
    status = wal_session_get_info(view->session, &info, error);
    if (status == WAL_OK) {
        set_cwd(&view->filter, info.cwd);
        status = put_data(view, &info, error);
    }
    has_failed = ferror(file) != 0;
    if (fclose(file) != 0 || has_failed) {
        return WAL_ENOMEM;
    }
    return status;
}

/* Says that a page is large for a browser. */
static void note_size(const struct cli *cli, uint64_t bytes)
{
    char text[SIZE_TEXT];
    char note[SIZE_TEXT + 80];

    if (bytes >= NOTED_BYTES) {
        size_text(bytes, text);
        snprintf(note, sizeof(note), "the page has %s; --no-tool-results makes it smaller", text);
        cli_note(cli, cli->items[1], note);
    }
}

static void print(const struct cli *cli, struct view *view)
{
    char *data = NULL;
    size_t size = 0;
    enum wal_status status = read_data(view, &data, &size, cli->error);

    cli_check(cli, cli->items[1], status);
    page_write(stdout, data, size);
    note_size(cli, size);
    view_filter_report(cli, &view->filter);
    free(data);
    if (view->damaged > 0) {
        cli_fail(cli, CLI_NEGATIVE, cli->items[1],
                 "%s could not be read and %s left out; agentwal check shows them",
                 cli_counted(view->damaged, "record", "records"),
                 cli_plural(view->damaged, "is", "are"));
    }
}

int view_run(struct cli *cli, int argc, char **argv)
{
    struct view view = {.store = NULL};
    struct usage_prices prices = {.items = NULL};
    const char *prices_path = NULL;
    const char *rules = NULL;
    struct cli_values patterns = {.items = NULL};
    const struct cli_option options[] = {
        {.name = "redact", .values = &patterns},
        {.name = "rules", .value = &rules},
        {.name = "no-tool-results", .flag = &view.shown.hides_results},
        {.name = "no-paths", .flag = &view.filter.hides_paths},
        {.name = "prices", .value = &prices_path},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    view_filter_open(cli, &view.filter, rules, &patterns);
    usage_prices_open(&prices, cli, prices_path);
    view.shown.prices = &prices;
    if (isatty(STDOUT_FILENO) != 0) {
        cli_fail(cli, CLI_USAGE, "view",
                 "the page is not for a terminal; write it to a file: "
                 "agentwal view SESSION >page.html");
    }
    cli_use_session_or_file(cli, cli->items[0], cli->items[1]);
    view.store = cli->store;
    view.session = cli->session;
    print(cli, &view);
    usage_prices_deinit(&prices);
    view_filter_deinit(&view.filter);
    return CLI_OK;
}
