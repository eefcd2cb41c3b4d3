/*
 * live.c - reads what is appended to the sessions that are selected, and prints a line for each
 * entry (live.h).
 *
 * Invariant: SIGINT and SIGTERM are unblocked only during waits, so that no line is cut.
 */
#include "tools/walcat/live.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/session.h"
#include "tools/shown/shown.h"
#include "tools/walcat/walcat.h"

enum {
    SINCE_LAST = 64 /* entries of a session to begin the search for a time */
};

/* --- sessions ----------------------------------------------------------- */

static void close_handle(struct live_session *session)
{
    wal_entry_cursor_close(session->cursor);
    wal_session_close(session->handle);
    session->cursor = NULL;
    session->handle = NULL;
}

/* Opens the session, and closes the one that was opened LIVE_HANDLES before. */
static enum wal_status open_handle(struct live *live, struct live_session *session)
{
    size_t *slot = &live->open[live->open_next];
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    enum wal_status status = WAL_OK;

    if (session->cursor != NULL) {
        return WAL_OK;
    }
    if (session->handle == NULL) {
        if (*slot > 0) {
            close_handle(&live->sessions[*slot - 1]);
        }
        *slot = (size_t)(session - live->sessions) + 1;
        live->open_next = (live->open_next + 1) % LIVE_HANDLES;
        status = wal_session_open(live->store, cli_slice(session->id), &session->handle, NULL);
    }
    if (status == WAL_OK) {
        options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE;
        options.last = 1;
        status = wal_entry_cursor_open(session->handle, &options, &session->cursor, NULL);
    }
    if (status != WAL_OK) {
        close_handle(session);
    }
    return status;
}

/* Closes the cursors, whose slices would keep files that are replaced while the process waits. */
static void close_cursors(struct live *live)
{
    for (size_t i = 0; i < LIVE_HANDLES; i++) {
        if (live->open[i] > 0) {
            struct live_session *session = &live->sessions[live->open[i] - 1];

            wal_entry_cursor_close(session->cursor);
            session->cursor = NULL;
        }
    }
}

static bool is_named(const struct live *live, struct wal_slice id)
{
    for (size_t i = 0; i < live->names->count; i++) {
        if (cli_slice_equal(cli_slice(live->names->items[i]), id)) {
            return true;
        }
    }
    return live->names->count == 0;
}

/* Reads the texts of the session, and whether it is selected. */
static enum wal_status load_session(struct live *live, struct live_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status;
    struct wal_slice title;

    close_handle(session); /* the id may be that of another session now */
    status = open_handle(live, session);
    if (status == WAL_OK) {
        status = wal_session_get_info(session->handle, &info, NULL);
    }
    if (status != WAL_OK) {
        session->is_selected = false;
        return status;
    }
    title = info.title.size > 0 ? info.title : info.first_text;
    free(session->title);
    free(session->cwd);
    session->title = cli_copy_slice(title);
    session->cwd = cli_copy_slice(info.cwd);
    session->is_selected =
        is_named(live, info.id) &&
        (live->project == NULL || cli_slice_equal(info.project, cli_slice(live->project))) &&
        (live->cwd == NULL || wal__directory_is(&live->directory, info.cwd));
    return WAL_OK;
}

struct live_session *live_find(struct live *live, struct wal_slice id)
{
    uint32_t *number = cli_ids_get_or_add(&live->ids, id);
    struct live_session *session;

    if (*number == 0) {
        session = CLI_PUSH(live->sessions, live->count, live->capacity);
        *number = (uint32_t)live->count;
        memset(session, 0, sizeof(*session));
        session->id = cli_copy_slice(id);
    }
    session = &live->sessions[*number - 1];
    if (session->title == NULL) {
        (void)!load_session(live, session); /* it may be back from the trash */
    }
    return session->title != NULL ? session : NULL;
}

/* --- where to begin ----------------------------------------------------- */

/* Whether an entry is not older than since_ms; one without a time is. */
static bool is_since(const struct live *live, const struct wal_entry *entry)
{
    int64_t ms = shown_entry_time(entry);

    return ms > 0 && ms >= live->since_ms;
}

/* Lowers *first to the first of the session's last entries that is not older. Returns false when an
 * earlier one may be. */
static bool find_first(const struct live *live, struct wal_session *session, uint64_t last,
                       uint64_t *first)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    uint64_t count = 0;
    bool is_older = false;

    options.mode = WAL_ENTRY_CURSOR_ALL;
    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE;
    options.last = last;
    status = wal_entry_cursor_open(session, &options, &cursor, NULL);
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_OK && is_since(live, &entry) && entry.sequence < *first) {
            *first = entry.sequence;
        }
        is_older = is_older || (status == WAL_OK && !is_since(live, &entry));
        count++;
    }
    wal_entry_cursor_close(cursor);
    return is_older || count <= last;
}

/* The position before the first record that is not older than since_ms. */
static uint64_t find_since(struct live *live)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;
    uint64_t first = UINT64_MAX;

    options.changed_after = live->since_ms - 1;
    options.project = cli_slice(live->project);
    for (cli_sessions_open(&list, live->store, &options, NULL); cli_sessions_next(&list);) {
        struct live_session *session =
            is_named(live, list.info.id) ? live_find(live, list.info.id) : NULL;
        uint64_t last = SINCE_LAST;

        if (session == NULL || !session->is_selected || open_handle(live, session) != WAL_OK) {
            continue;
        }
        while (!find_first(live, session->handle, last, &first)) {
            last *= 2;
        }
    }
    return first == UINT64_MAX ? CLI_TAIL_END : first - 1;
}

void live_use_store(struct cli *cli, const char *path, const char *why)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);

    cli_use_store(cli, path, 0);
    cli_check(cli, path, wal_store_get_info(cli->store, &info, cli->error));
    if (info.status == WAL_EREADONLY) {
        cli_fail(cli, CLI_FAILED, path, "%s", why);
    }
}

void live_open(struct live *live)
{
    enum wal_status status =
        cli_tail_open(&live->tail, live->store, WAL_WRITTEN, CLI_TAIL_END, live->cli->error);
    uint64_t after = CLI_TAIL_END;

    wal__directory_init(&live->directory, cli_slice(live->cwd));
    /* What is appended from here on is new. */
    live->old_end = live->tail.known;
    if (status == WAL_OK && live->since_ms > 0) {
        after = find_since(live);
    }
    if (after < live->old_end) {
        cli_tail_close(&live->tail);
        status = cli_tail_open(&live->tail, live->store, WAL_WRITTEN, after, live->cli->error);
    }
    cli_check(live->cli, live->path, status);
}

/* --- reading ------------------------------------------------------------ */

/* Completes the entry with its parent, which the record does not have. An open handle may be that
 * of a deleted session whose id was used again. */
static enum wal_status complete_entry(struct live *live, struct live_session *session,
                                      const struct wal_record *record, struct live_item *item)
{
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status;
    bool was_open;

    do {
        was_open = session->handle != NULL;
        status = open_handle(live, session);
        if (status == WAL_OK) {
            status = wal_entry_cursor_get(session->cursor, record->entry->id, &entry, NULL);
        }
        if (status == WAL_ENOTFOUND) {
            close_handle(session);
        }
    } while (status == WAL_ENOTFOUND && was_open);
    item->entry = status == WAL_OK ? entry : *record->entry;
    return status == WAL_EREDACTED || status == WAL_ENOTFOUND ? WAL_ENOTFOUND : WAL_OK;
}

static bool is_wanted(const struct live *live, const struct wal_record *record)
{
    bool is_old = record->sequence <= live->old_end;

    if (record->kind == WAL_RECORD_ENTRY) {
        return (live->type == NULL ||
                cli_slice_equal(record->entry->type, cli_slice(live->type))) &&
               (!is_old || is_since(live, record->entry));
    }
    return record->kind == WAL_RECORD_DOC && live->type == NULL &&
           (!is_old || record->doc->modified_ms >= live->since_ms);
}

enum wal_status live_next(struct live *live, struct live_item *item, struct wal_error *error)
{
    struct wal_record record = WAL_INIT(wal_record);
    enum wal_status status;

    while ((status = cli_tail_next(&live->tail, &record, error)) == WAL_OK) {
        struct live_session *session = live_find(live, record.session_id);

        if (session != NULL && record.kind == WAL_RECORD_SESSION) {
            (void)!load_session(live, session);
        }
        if (session == NULL || !session->is_selected || !is_wanted(live, &record)) {
            continue;
        }
        item->session = session;
        item->doc = record.doc;
        item->is_old = record.sequence <= live->old_end;
        if (record.kind == WAL_RECORD_DOC ||
            complete_entry(live, session, &record, item) == WAL_OK) {
            break;
        }
    }
    if (status == WAL_END) {
        close_cursors(live);
    }
    return status;
}

int64_t live_item_time(const struct live_item *item)
{
    int64_t ms = item->doc != NULL ? item->doc->modified_ms : shown_entry_time(&item->entry);

    return item->doc != NULL || ms > 0 ? ms : when_now_ms();
}

void live_close(struct live *live)
{
    for (size_t i = 0; i < live->count; i++) {
        close_handle(&live->sessions[i]);
    }
    cli_tail_close(&live->tail);
}

/* --- printing ----------------------------------------------------------- */

enum {
    WAIT_MS = 500, /* between checks that the output is still read */
    TITLE_WIDTH = 24,
    PREVIEW_WIDTH = 60, /* at least */
    FIXED_WIDTH = 8 + 2 + 2
};

struct printer {
    struct live *live;
    struct wal__json_out json;
    bool text;
    int code;
};

/* {"sessionId","document":{"key","version","modified","deleted"|"value"}} */
static void write_document(struct wal__json_out *json, const struct wal_doc *doc)
{
    wal__json_out_member_open(json, "document", '{');
    cli_json_member_text(json, "key", doc->key);
    wal__json_out_member_count(json, "version", doc->version);
    cli_json_member_time(json, "modified", doc->modified_ms);
    if ((doc->flags & WAL_DOC_DELETE) != 0) {
        wal__json_out_member_bool(json, "deleted", true);
    } else {
        wal__json_out_key(json, "value");
        cli_json_raw(json, doc->value);
    }
    wal__json_out_close(json, '}');
}

static enum wal_status write_item(struct printer *printer, const struct live_item *item,
                                  struct wal_error *error)
{
    struct wal__json_out *json = &printer->json;
    enum wal_status status = WAL_OK;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "sessionId", cli_slice(item->session->id));
    if (item->doc != NULL) {
        write_document(json, item->doc);
    } else {
        wal__json_out_key(json, "entry");
        status = cli_entry_write_value(json, printer->live->store, &item->entry, error);
        if (status != WAL_OK) {
            cli_json_text_or_null(json, cli_slice(""));
        }
    }
    wal__json_out_close_line(json);
    return status;
}

/* Prints the beginning of an entry's text, or its type if it has none. */
static void print_preview(const struct printer *printer, const struct wal_entry *entry,
                          size_t columns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    walcat_print_preview(file, printer->live->store, entry, columns);
    (void)fclose(file);
    if (size > 0) {
        fwrite(text, 1, size, stdout);
    } else {
        fputs("  [", stdout);
        cli_print_text(stdout, entry->type, 0, false);
        putchar(']');
    }
    free(text);
}

/* TIME  SESSION  TITLE  role: text */
static void print_item(struct printer *printer, const struct live_item *item)
{
    const struct terminal *terminal = printer->live->cli->terminal;
    struct wal_slice whole = cli_slice(item->session->id);
    struct wal_slice id = cli_session_short(printer->live->store, whole);
    struct wal_slice title = cli_slice(item->session->title);
    char time[WHEN_SIZE];
    size_t used;

    when_clock(live_item_time(item), time);
    terminal_put_style(terminal, TERMINAL_DIM);
    printf("%s  ", time);
    terminal_put_style(terminal, TERMINAL_ID);
    used = FIXED_WIDTH + cli_print_name(stdout, id);
    terminal_put_style(terminal, TERMINAL_PLAIN);
    if (title.size > 0) {
        fputs("  ", stdout);
        used += 2 + cell_print(stdout, title.data, (size_t)title.size, TITLE_WIDTH, 0);
    }
    if (item->doc != NULL) {
        fputs((item->doc->flags & WAL_DOC_DELETE) != 0 ? "  deleted document " : "  document ",
              stdout);
        cli_print_name(stdout, item->doc->key);
    } else {
        size_t room =
            terminal->columns > used + PREVIEW_WIDTH ? terminal->columns - used : PREVIEW_WIDTH;

        print_preview(printer, &item->entry, room);
    }
    putchar('\n');
}

static void process(struct printer *printer, const struct live_item *item)
{
    const struct cli *cli = printer->live->cli;
    enum wal_status status = WAL_OK;

    if (printer->text && item->doc == NULL) {
        terminal_put_style(cli->terminal, TERMINAL_DIM);
        fputs("# ", stdout);
        cli_print_name(stdout, cli_slice(item->session->id));
        terminal_put_style(cli->terminal, TERMINAL_PLAIN);
        putchar('\n');
        status =
            walcat_print_text(cli->terminal, printer->live->store, &item->entry, NULL, cli->error);
    } else if (!cli->json) {
        print_item(printer, item);
    } else {
        status = write_item(printer, item, cli->error);
    }
    if (status != WAL_OK) {
        cli_report(cli, item->session->id, status);
        printer->code = CLI_NEGATIVE;
    }
}

/* Prints what there is now. */
static enum wal_status print_rest(struct printer *printer, struct wal_error *error)
{
    struct live_item item = {.session = NULL};
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !cli_output_failed()) {
        status = live_next(printer->live, &item, error);
        if (status == WAL_OK) {
            process(printer, &item);
        } else if (status == WAL_ECORRUPT) {
            cli_report_error(printer->live->cli, "an entry", status, error);
            printer->code = CLI_NEGATIVE;
            status = WAL_OK;
        }
    }
    return status;
}

int walcat_print_live(struct live *live, bool text)
{
    struct printer printer = {.live = live, .text = text, .code = CLI_OK};
    enum wal_status status = WAL_OK;

    cli_permit_end(false);
    cli_json_init(&printer.json, stdout);
    while ((status == WAL_OK || status == WAL_EBUSY) && cli_output_is_read()) {
        status = print_rest(&printer, live->cli->error);
        if (status == WAL_END) {
            (void)fflush(stdout);
            cli_permit_end(true);
            status = cli_tail_wait(&live->tail, WAIT_MS, live->cli->error);
            cli_permit_end(false);
        }
    }
    return status == WAL_OK || status == WAL_EBUSY ? printer.code
                                                   : cli_report(live->cli, live->path, status);
}
