/*
 * live_print.c - prints a line for each entry that is appended (live.h).
 *
 * Invariant: SIGINT and SIGTERM are unblocked only during waits, so that no
 * line is cut.
 *
 * Threads: the tool has one thread.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/session.h"
#include "tools/walcat/live.h"
#include "tools/walcat/walcat.h"

enum {
    WAIT_MS = 500, /* between checks that the output is still read */
    TITLE_WIDTH = 24,
    PREVIEW_WIDTH = 60, /* at least */
    FIXED_WIDTH = 8 + 2 + 2
};

struct printer {
    struct live *live;
    struct wal__json_out json;
    struct cli_short_ids ids;
    bool text;
    int code;
};

static void exit_on_signal(int number)
{
    (void)number;
    _exit(CLI_OK);
}

static void set_signals(int how)
{
    const struct sigaction action = {.sa_handler = exit_on_signal};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)sigprocmask(how, &set, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static bool is_output_read(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return !cli_output_failed() &&
           (poll(&output, 1, 0) <= 0 ||
            (output.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0);
}

/* {"sessionId","document":{"key","version","modified","deleted"|"value"}} */
static void write_document(struct wal__json_out *json,
                           const struct wal_doc *doc)
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

static enum wal_status write_item(struct printer *printer,
                                  const struct live_item *item,
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
        status = cli_entry_write_value(json, printer->live->store, &item->entry,
                                       error);
        if (status != WAL_OK) {
            cli_json_text_or_null(json, cli_slice(""));
        }
    }
    wal__json_out_close_line(json);
    return status;
}

/* Prints the beginning of an entry's text, or its type if it has none. */
static void print_preview(const struct printer *printer,
                          const struct wal_entry *entry, size_t columns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file != NULL) {
        walcat_print_preview(file, printer->live->store, entry, columns);
        (void)fclose(file);
    }
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
    struct wal_slice id = cli_short_id(&printer->ids, whole);
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
        used += 2 + cell_print(stdout, title.data, (size_t)title.size,
                               TITLE_WIDTH, 0);
    }
    if (item->doc != NULL) {
        fputs((item->doc->flags & WAL_DOC_DELETE) != 0 ? "  deleted document "
                                                       : "  document ",
              stdout);
        cli_print_name(stdout, item->doc->key);
    } else {
        size_t room = terminal->columns > used + PREVIEW_WIDTH
                          ? terminal->columns - used
                          : PREVIEW_WIDTH;

        print_preview(printer, &item->entry, room);
    }
    putchar('\n');
}

static void process(struct printer *printer, const struct live_item *item)
{
    const struct cli *cli = printer->live->cli;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;

    if (printer->text && item->doc == NULL) {
        terminal_put_style(cli->terminal, TERMINAL_DIM);
        fputs("# ", stdout);
        cli_print_name(stdout, cli_slice(item->session->id));
        terminal_put_style(cli->terminal, TERMINAL_PLAIN);
        putchar('\n');
        status = walcat_print_text(printer->live->store, &item->entry, &error);
    } else if (!cli->json) {
        print_item(printer, item);
    } else {
        status = write_item(printer, item, &error);
    }
    if (status != WAL_OK) {
        cli_report(cli, item->session->id, status, &error);
        printer->code = CLI_NEGATIVE;
    }
}

/* Prints what there is now. */
static enum wal_status print_rest(struct printer *printer,
                                  struct wal_error *error)
{
    struct live_item item = {.session = NULL};
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !cli_output_failed()) {
        status = live_next(printer->live, &item, error);
        if (status == WAL_OK) {
            process(printer, &item);
        } else if (status == WAL_ECORRUPT) {
            cli_report(printer->live->cli, "an entry", status, error);
            printer->code = CLI_NEGATIVE;
            status = WAL_OK;
        }
    }
    return status;
}

int walcat_print_live(struct live *live, bool text)
{
    struct terminal none = {.is_terminal = false};
    struct cli cli = *live->cli;
    struct printer printer = {.live = live, .text = text, .code = CLI_OK};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;

    cli.terminal = cli.terminal != NULL ? cli.terminal : &none;
    live->cli = &cli;
    set_signals(SIG_BLOCK);
    cli_json_init(&printer.json, stdout);
    cli_short_ids_add_sessions(&printer.ids, live->store);
    while ((status == WAL_OK || status == WAL_EBUSY) && is_output_read()) {
        status = print_rest(&printer, &error);
        if (status == WAL_END) {
            (void)fflush(stdout);
            set_signals(SIG_UNBLOCK);
            status = cli_tail_wait(&live->tail, WAIT_MS, &error);
            set_signals(SIG_BLOCK);
        }
    }
    cli_short_ids_deinit(&printer.ids);
    return status == WAL_OK || status == WAL_EBUSY
               ? printer.code
               : cli_report(&cli, live->path, status, &error);
}
