/*
 * watch.c - the verb watch: all sessions at work, live (verbs.h).
 *
 * Invariant: rows are in order of the last change, the newest first. A text of a session reaches
 * the terminal only as plain text.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/system.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/shown/shown.h"
#include "tools/terminal/screen.h"
#include "tools/walcat/live.h"
#include "tools/walcat/walcat.h"

enum {
    VIEW_SECONDS = 60,   /* of the rate */
    VIEW_LAST_SIZE = 400 /* bytes of a last message with its terminator */
};

/* A session. */
struct row {
    char *id;
    char last[VIEW_LAST_SIZE]; /* "role: text" */
    int64_t changed_ms;
    int64_t second;                /* of the newest count */
    uint32_t counts[VIEW_SECONDS]; /* of entries, by second */
    int32_t process;               /* that claims it; 0: unknown */
    bool is_claimed;
};

/* Zeroed but for `live`: no rows. */
struct view {
    struct live *live;
    struct row *rows;
    size_t count;
    size_t capacity;
    size_t at;  /* the row of the cursor */
    size_t top; /* the first row that is drawn */
};

enum {
    LOAD_MAX = 100, /* sessions that are shown before they change */
    LAST_ENTRIES = 8,
    NAME_SIZE = 32 /* of a process */
};

/* --- rows --------------------------------------------------------------- */

static struct row *find_row(struct view *view, const char *id)
{
    for (size_t i = 0; i < view->count; i++) {
        if (strcmp(view->rows[i].id, id) == 0) {
            return &view->rows[i];
        }
    }
    return NULL;
}

static struct row *find_or_add_row(struct view *view, const char *id)
{
    struct row *row = find_row(view, id);

    if (row == NULL) {
        row = CLI_PUSH(view->rows, view->count, view->capacity);
        memset(row, 0, sizeof(*row));
        row->id = cli_copy_text(id, strlen(id));
    }
    return row;
}

/* Sets the last message, unless the entry has no text. */
static void set_last(struct view *view, struct row *row, const struct wal_entry *entry)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    walcat_print_preview(file, view->live->store, entry, VIEW_LAST_SIZE / 4);
    if (fclose(file) == 0 && size > 2) {
        snprintf(row->last, sizeof(row->last), "%s", text + 2);
    }
    free(text);
}

/* Reads the last message of a session that has not changed yet, and when that was. */
static void load_last(struct view *view, struct row *row)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(view->live->store, cli_slice(row->id), &session, NULL);

    options.flags = WAL_ENTRY_CURSOR_OUT_OF_LINE;
    options.last = LAST_ENTRIES;
    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, NULL);
    }
    if (status == WAL_OK) {
        row->changed_ms = info.updated_ms;
        status = wal_entry_cursor_open(session, &options, &cursor, NULL);
    }
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_OK) {
            set_last(view, row, &entry);
        }
    }
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
}

/* Adds the newest sessions that were changed since a time. */
static enum wal_status view_load(struct view *view, int64_t since_ms, struct wal_error *error)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct cli_sessions list;

    options.changed_after = since_ms - 1;
    options.project = cli_slice(view->live->project);
    for (cli_sessions_open(&list, view->live->store, &options, error); cli_sessions_next(&list);) {
        struct live_session *session = live_find(view->live, list.info.id);

        if (session != NULL && session->is_selected) {
            struct row *row = find_or_add_row(view, session->id);

            load_last(view, row);
            list.status = view->count < LOAD_MAX ? WAL_OK : WAL_END;
        }
    }
    return list.status;
}

/* --- rate --------------------------------------------------------------- */

/* Clears the counts of the seconds since the newest one. */
static void advance(struct row *row, int64_t second)
{
    int64_t from = row->second;

    if (second - from > VIEW_SECONDS) {
        from = second - VIEW_SECONDS;
    }
    while (from < second) {
        from++;
        row->counts[from % VIEW_SECONDS] = 0;
    }
    row->second = second;
}

static uint64_t count_minute(struct row *row, int64_t second)
{
    uint64_t sum = 0;

    advance(row, second);
    for (size_t i = 0; i < VIEW_SECONDS; i++) {
        sum += row->counts[i];
    }
    return sum;
}

/* Counts an item for its session. */
static void view_add(struct view *view, const struct live_item *item)
{
    struct row *row = find_or_add_row(view, item->session->id);

    if (item->is_old) {
        row->changed_ms = live_item_time(item);
    } else {
        row->changed_ms = when_now_ms();
        advance(row, row->changed_ms / 1000);
        row->counts[row->second % VIEW_SECONDS]++;
    }
    if (item->doc == NULL) {
        set_last(view, row, &item->entry);
    } else {
        snprintf(row->last, sizeof(row->last), "document %.*s", WAL_ARG(item->doc->key));
    }
}

/* --- claims ------------------------------------------------------------- */

/* Reads which processes claim sessions. */
static void view_read_claims(struct view *view)
{
    struct wal_claim claim = WAL_INIT(wal_claim);
    struct wal_claim_cursor *claims = NULL;

    if (wal_claim_cursor_open(view->live->store, &claims, NULL) != WAL_OK) {
        return; /* LOCK may not be read: nobody is known */
    }
    for (size_t i = 0; i < view->count; i++) {
        view->rows[i].is_claimed = false;
    }
    while (wal_claim_cursor_next(claims, &claim, NULL) == WAL_OK) {
        struct live_session *session = live_find(view->live, claim.session_id);

        if (session != NULL && session->is_selected) {
            struct row *row = find_or_add_row(view, session->id);

            row->is_claimed = true;
            row->process = claim.process_id;
            if (row->changed_ms == 0) {
                load_last(view, row);
            }
        }
    }
    wal_claim_cursor_close(claims);
}

/* "NAME PID" of the process; only the number where the name is not known. */
static void describe_process(const struct row *row, char *text, size_t size)
{
    char name[NAME_SIZE] = "";

    text[0] = '\0';
    if (!row->is_claimed) {
        return;
    }
    if (row->process > 0) {
        wal__system_process_name((uint32_t)row->process, name, sizeof(name));
    }
    if (row->process == 0) {
        snprintf(text, size, "unknown");
    } else {
        snprintf(text, size, "%s%s%d", name, name[0] != '\0' ? " " : "", (int)row->process);
    }
}

/* --- drawing ------------------------------------------------------------ */

static int compare_rows(const void *a, const void *b)
{
    const struct row *left = a;
    const struct row *right = b;

    return (left->changed_ms < right->changed_ms) - (left->changed_ms > right->changed_ms);
}

/* Sorts the rows; the cursor stays at the first one or on its session. */
static void sort(struct view *view)
{
    const char *id = view->at > 0 && view->at < view->count ? view->rows[view->at].id : NULL;

    if (view->count > 0) {
        qsort(view->rows, view->count, sizeof(*view->rows), compare_rows);
    }
    for (size_t i = 0; i < view->count && id != NULL; i++) {
        if (view->rows[i].id == id) {
            view->at = i;
        }
    }
}

static void put_row(struct view *view, struct table *table, struct row *row, int64_t now_ms)
{
    struct live_session *session = live_find(view->live, cli_slice(row->id));
    char text[NAME_SIZE + 16];

    table_put(table, cli_session_short(view->live->store, cli_slice(row->id)));
    describe_process(row, text, sizeof(text));
    table_put(table, cli_slice(text));
    table_put_count(table, count_minute(row, now_ms / 1000));
    table_put_age(table, row->changed_ms, now_ms);
    table_put_directory(table, cli_slice(session != NULL ? session->cwd : ""));
    table_put(table, cli_slice(session != NULL ? session->title : "(deleted)"));
}

/* Draws a row of the table, and below it the last message. */
static void draw_row(const struct view *view, struct screen *screen, const struct table *table,
                     size_t index)
{
    const struct row *row = &view->rows[index];
    size_t printed;

    screen_put_inverse(screen, index == view->at);
    printed = table_print_row(table, index - view->top + 1);
    if (index == view->at && printed < screen->columns) {
        fprintf(screen->file, "%*s", (int)(screen->columns - printed), "");
    }
    screen_put_inverse(screen, false);
    screen_end_line(screen);
    if (screen_has_room(screen)) {
        screen_put_style(screen, TERMINAL_DIM);
        fputs("    ", screen->file);
        cell_print(screen->file, row->last, strlen(row->last),
                   screen->columns > 5 ? screen->columns - 5 : 1, 0);
        screen_put_style(screen, TERMINAL_PLAIN);
        screen_end_line(screen);
    }
}

static void view_draw(struct view *view, struct screen *screen)
{
    const struct terminal terminal = {.columns = screen->columns};
    size_t height = screen->rows > 3 ? (screen->rows - 2) / 2 : 1;
    int64_t now_ms = when_now_ms();
    struct table table;
    uint64_t rate = 0;

    sort(view);
    if (view->at >= view->count) {
        view->at = view->count > 0 ? view->count - 1 : 0;
    }
    view->top = view->at < view->top             ? view->at
                : view->at >= view->top + height ? view->at - height + 1
                                                 : view->top;
    for (size_t i = 0; i < view->count; i++) {
        rate += count_minute(&view->rows[i], now_ms / 1000);
    }
    screen_begin(screen);
    fprintf(screen->file, "%s, %s in the last minute",
            cli_counted(view->count, "session", "sessions"), cli_counted(rate, "entry", "entries"));
    screen_end_line(screen);
    table_init(&table, screen->file, &terminal,
               TABLE_COLUMNS(TABLE_ID("SESSION"), TABLE_ANY("PROCESS", 18, 12, TABLE_KEEP_END),
                             TABLE_ANY("/MIN", 0, 0, TABLE_RIGHT), TABLE_TIME("CHANGED"),
                             TABLE_PATH("DIRECTORY", TABLE_ID_MAX), TABLE_TEXT("TITLE", 24)));
    for (size_t i = view->top;
         i < view->count && i < view->top + height && i < view->top + TABLE_PAGE; i++) {
        put_row(view, &table, &view->rows[i], now_ms);
    }
    table_fit(&table);
    screen_put_style(screen, TERMINAL_STRONG);
    (void)table_print_row(&table, 0);
    screen_put_style(screen, TERMINAL_PLAIN);
    screen_end_line(screen);
    for (size_t i = 0; i < table_rows(&table) && screen_has_room(screen); i++) {
        draw_row(view, screen, &table, view->top + i);
    }
    cli_texts_deinit(&table.cells);
    screen_end(screen);
}

/* --- the verb ----------------------------------------------------------- */

enum {
    WAIT_MS = 100,    /* between looks at the keyboard */
    REDRAW_MS = 1000, /* without a change */
    HOUR_MS = 3600000
};

struct arguments {
    struct cli_values sessions;
    const char *project;
    const char *cwd;
    int64_t since_ms;
    bool plain;
};

/* --- the screen --------------------------------------------------------- */

/* Counts what there is now. *changed is set when there was something. */
static enum wal_status read_rest(struct view *view, bool *changed, struct wal_error *error)
{
    struct live_item item = {.session = NULL};
    enum wal_status status;

    do {
        status = live_next(view->live, &item, error);
        if (status == WAL_OK) {
            view_add(view, &item);
            *changed = true;
        }
    } while (status == WAL_OK || status == WAL_ECORRUPT);
    return status;
}

/* Obeys a key. Returns false when the user is done; *picked is set by Enter. */
static bool obey(struct view *view, const struct key *key, bool *picked)
{
    switch (key->kind) {
    case KEY_UP:
        view->at -= view->at > 0 ? 1 : 0;
        return true;
    case KEY_DOWN:
        view->at += view->at + 1 < view->count ? 1 : 0;
        return true;
    case KEY_HOME:
        view->at = 0;
        return true;
    case KEY_ENTER:
        *picked = view->count > 0;
        return !*picked;
    case KEY_TEXT:
        return strcmp(key->text, "q") != 0;
    case KEY_ESCAPE:
    case KEY_INTERRUPT:
    case KEY_CLOSED:
        return false;
    case KEY_NONE:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
    case KEY_END:
    case KEY_BACKSPACE:
    case KEY_ERASE_WORD:
    case KEY_ERASE_LINE:
    case KEY_RESIZE:
        break;
    }
    return true;
}

static enum wal_status show(struct view *view, struct screen *screen, bool *picked,
                            struct wal_error *error)
{
    struct key key = {.kind = KEY_NONE};
    enum wal_status status = WAL_OK;
    int64_t drawn_ms = 0;
    bool changed = true;

    while (status == WAL_OK || status == WAL_EBUSY) {
        status = read_rest(view, &changed, error);
        if (status != WAL_END) {
            return status;
        }
        if (changed || when_now_ms() - drawn_ms >= REDRAW_MS) {
            view_read_claims(view);
            view_draw(view, screen);
            drawn_ms = when_now_ms();
            changed = false;
        }
        status = cli_tail_wait(&view->live->tail, WAIT_MS, error);
        do {
            screen_read_key(screen, 0, &key);
            changed = changed || key.kind != KEY_NONE;
            if (!obey(view, &key, picked)) {
                return WAL_OK;
            }
        } while (key.kind != KEY_NONE);
        if (status == WAL_OK && when_now_ms() - drawn_ms < WAIT_MS) {
            usleep(WAIT_MS * 1000); /* ten frames a second are enough */
        }
    }
    return status;
}

/* Prints the command that resumes the session. */
static int print_command(struct live *live, const char *id)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(live->store, cli_slice(id), &session, live->cli->error);

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, live->cli->error);
    }
    if (status == WAL_OK) {
        char *command = shown_resume(live->cli, &info);

        cli_print_name(stdout, cli_slice(command));
        putchar('\n');
        free(command);
    }
    wal_session_close(session);
    return cli_report(live->cli, id, status);
}

static int show_screen(struct live *live, struct screen *screen)
{
    static struct view view;
    bool picked = false;
    int64_t since_ms = live->since_ms > 0 ? live->since_ms : when_now_ms() - HOUR_MS;
    enum wal_status status;
    int code = CLI_OK;

    view.live = live;
    status = view_load(&view, since_ms, live->cli->error);
    if (status == WAL_OK) {
        status = show(&view, screen, &picked, live->cli->error);
    }
    screen_close(screen);
    if (status != WAL_OK) {
        code = cli_report(live->cli, live->cli->items[1], status);
    } else if (picked) {
        code = print_command(live, view.rows[view.at].id);
    }
    return code;
}

/* --- the verb ----------------------------------------------------------- */

static int watch(const struct cli *cli, struct arguments *arguments, struct wal_store *store)
{
    static struct live live;
    struct screen screen = {.file = NULL};
    bool is_screen =
        !cli->json && !arguments->plain && isatty(STDIN_FILENO) == 1 && cli->terminal->is_terminal;
    int code;

    for (size_t i = 0; i < arguments->sessions.count; i++) {
        arguments->sessions.items[i] =
            cli_session_id(cli, cli->store, arguments->sessions.items[i]);
    }
    live = (struct live){.cli = cli,
                         .path = cli->items[1],
                         .store = store,
                         .names = &arguments->sessions,
                         .project = arguments->project,
                         .cwd = arguments->cwd,
                         .since_ms = arguments->since_ms};
    live_open(&live);
    code = is_screen && screen_open(&screen, cli->no_colour) ? show_screen(&live, &screen)
                                                             : walcat_print_live(&live, false);
    live_close(&live);
    return code;
}

int watch_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.project = NULL};
    const struct cli_option options[] = {
        {.name = "session", .values = &arguments.sessions},
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .directory = &arguments.cwd},
        {.name = "since", .time = &arguments.since_ms},
        {.name = "plain", .flag = &arguments.plain},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 2, 3);
    if (cli->count == 3) {
        cli->items[1] = cli->items[2]; /* the operand names the store */
    }
    live_use_store(cli, cli->items[1], "cannot be watched without write permission");
    return watch(cli, &arguments, cli->store);
}
