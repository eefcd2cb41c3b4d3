/*
 * watch.c - the verb watch: all sessions live (verbs.h).
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/verbs.h"
#include "tools/shown/shown.h"
#include "tools/watch/view.h"

enum {
    WAIT_MS = 100,    /* between looks at the keyboard */
    REDRAW_MS = 1000, /* without a change */
    HOUR_MS = 3600000
};

struct arguments {
    struct cli_values sessions;
    const char *project;
    const char *cwd;
    const char *since;
    bool plain;
};

/* --- the screen --------------------------------------------------------- */

/* Counts what there is now. *changed is set when there was something. */
static enum wal_status read_rest(struct view *view, bool *changed,
                                 struct wal_error *error)
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

static enum wal_status show(struct view *view, struct screen *screen,
                            bool *picked, struct wal_error *error)
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
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    char command[SHOWN_RESUME_SIZE];
    enum wal_status status =
        wal_session_open(live->store, cli_slice(id), &session, &error);

    if (status == WAL_OK) {
        status = wal_session_get_info(session, &info, &error);
    }
    if (status == WAL_OK) {
        shown_resume_text(&info, command);
        cli_print_name(stdout, cli_slice(command));
        putchar('\n');
    }
    wal_session_close(session);
    return status == WAL_OK ? CLI_OK
                            : cli_report(live->cli, id, status, &error);
}

static int show_screen(struct live *live, struct screen *screen)
{
    struct view view = {.live = live};
    struct wal_error error = CLI_ERROR_INIT;
    bool picked = false;
    int64_t since_ms =
        live->since_ms > 0 ? live->since_ms : when_now_ms() - HOUR_MS;
    enum wal_status status = view_load(&view, since_ms, &error);
    int code = CLI_OK;

    if (status == WAL_OK) {
        status = show(&view, screen, &picked, &error);
    }
    screen_close(screen);
    if (status != WAL_OK) {
        code = cli_report(live->cli, live->cli->items[1], status, &error);
    } else if (picked) {
        code = print_command(live, view.rows[view.at].id);
    }
    view_deinit(&view);
    return code;
}

/* --- the verb ----------------------------------------------------------- */

/* Replaces the names of --session by ids. */
static int complete_sessions(const struct cli *cli, struct wal_store *store,
                             struct cli_values *names)
{
    int code = CLI_CONTINUE;

    for (size_t i = 0; i < names->count && code == CLI_CONTINUE; i++) {
        struct wal_session_info info = WAL_INIT(wal_session_info);
        struct wal_error error = CLI_ERROR_INIT;
        struct wal_session *session = NULL;
        enum wal_status status;
        char *id;

        code = cli_open_session(cli, store, names->items[i], &session);
        if (code != CLI_CONTINUE) {
            break;
        }
        status = wal_session_get_info(session, &info, &error);
        if (status != WAL_OK) {
            code = cli_report(cli, names->items[i], status, &error);
        } else {
            id = cli_copy_text(info.id.data, (size_t)info.id.size);
            names->items[i] = cli_keep_text(id);
            free(id);
        }
        wal_session_close(session);
    }
    return code;
}

/* A read-only handle may see only the state of the store at its opening. */
static int check_writable(const struct cli *cli, struct wal_store *store)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_store_get_info(store, &info, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status, &error);
    }
    return info.status == WAL_EREADONLY
               ? cli_error(cli, CLI_FAILED, cli->items[1],
                           "cannot be watched without write permission")
               : CLI_CONTINUE;
}

static int watch(const struct cli *cli, struct arguments *arguments,
                 struct wal_store *store)
{
    char *cwd =
        arguments->cwd != NULL ? cli_absolute_path(arguments->cwd) : NULL;
    struct live live = {.cli = cli,
                        .path = cli->items[1],
                        .store = store,
                        .names = &arguments->sessions,
                        .project = arguments->project,
                        .cwd = cwd};
    struct screen screen = {.file = NULL};
    bool is_screen = !cli->json && !arguments->plain &&
                     isatty(STDIN_FILENO) == 1 && cli->terminal->is_terminal;
    int code = check_writable(cli, store);

    if (code == CLI_CONTINUE) {
        code = complete_sessions(cli, store, &arguments->sessions);
    }
    if (code == CLI_CONTINUE) {
        code = cli_parse_time(cli, "--since", arguments->since, &live.since_ms);
    }
    if (code == CLI_CONTINUE) {
        code = live_open(&live);
    }
    if (code == CLI_CONTINUE) {
        code = is_screen && screen_open(&screen, cli->no_colour)
                   ? show_screen(&live, &screen)
                   : walcat_print_live(&live, false);
    }
    live_close(&live);
    free(cwd);
    return code;
}

int watch_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.project = NULL};
    const struct cli_option options[] = {
        {.name = "session", .values = &arguments.sessions},
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .value = &arguments.cwd},
        {.name = "since", .value = &arguments.since},
        {.name = "plain", .flag = &arguments.plain},
        {.name = NULL},
    };
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 3);
    }
    if (code == CLI_CONTINUE && cli->count == 3) {
        cli->items[1] = cli->items[2]; /* the operand names the store */
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code == CLI_CONTINUE) {
        code = cli_close_store(cli, cli->items[1], store,
                               watch(cli, &arguments, store));
    }
    free(arguments.sessions.items);
    return code;
}
