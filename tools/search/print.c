/*
 * print.c - prints hits, session by session (print.h).
 *
 * Invariant: a text of a session reaches the terminal only as plain text.
 */
#include "tools/search/print.h"

#include <inttypes.h>

#include "tools/cli/session.h"
#include "tools/search/around.h"
#include "tools/search/hit_json.h"
#include "tools/shown/shown.h"
#include "tools/walcat/walcat.h"

/* What the callbacks need. */
struct printer {
    const struct search_print *print;
    struct wal__json_out json;
    struct cli_short_ids ids;
    struct wal_session *session;  /* of the hits */
    struct wal_session_info info; /* of it */
    enum wal_status status;
    struct wal_error error;
};

static bool is_for_people(const struct printer *printer)
{
    return !printer->print->cli->json;
}

/* --- around ------------------------------------------------------------- */

static void print_around(void *ctx, const struct wal_entry *entry, bool is_hit)
{
    struct printer *printer = ctx;
    struct wal_store *store = printer->print->store;
    enum wal_status status;

    if (printer->status != WAL_OK) {
        return;
    }
    if (is_for_people(printer)) {
        const struct terminal *terminal = printer->print->cli->terminal;

        if (terminal != NULL && is_hit) {
            terminal_put_style(terminal, TERMINAL_STRONG);
        }
        status = walcat_print_text(store, entry, &printer->error);
        if (terminal != NULL && is_hit) {
            terminal_put_style(terminal, TERMINAL_PLAIN);
        }
    } else {
        status = cli_entry_write_value(&printer->json, store, entry,
                                       &printer->error);
    }
    printer->status = status;
}

static enum wal_status visit_around(struct printer *printer,
                                    const struct wal_search_hit *hit)
{
    enum wal_status status = search_visit_around(
        printer->print->store, printer->session, hit->entry_id,
        printer->print->around, print_around, printer, &printer->error);

    return printer->status != WAL_OK ? printer->status : status;
}

/* --- JSON --------------------------------------------------------------- */

static void write_hit(struct printer *printer, const struct wal_search_hit *hit)
{
    struct wal__json_out *json = &printer->json;

    search_hit_open(json, hit);
    if (printer->print->shows_around) {
        wal__json_out_member_open(json, "around", '[');
        printer->status = visit_around(printer, hit);
        wal__json_out_close(json, ']');
    }
    wal__json_out_close(json, '}');
}

/* --- for people --------------------------------------------------------- */

static void put_style(const struct printer *printer, enum terminal_style style)
{
    const struct terminal *terminal = printer->print->cli->terminal;

    if (terminal != NULL) {
        terminal_put_style(terminal, style);
    }
}

static void begin_session(struct printer *printer,
                          const struct wal_search_hit *hit)
{
    char resume[SHOWN_RESUME_SIZE];
    char when[WHEN_SIZE];

    shown_resume_text(&printer->info, resume);
    when_text(hit->session_updated_ms, when);
    put_style(printer, TERMINAL_ID);
    cli_print_name(stdout, cli_short_id(&printer->ids, hit->session_id));
    put_style(printer, TERMINAL_PLAIN);
    printf("  %s  ", when);
    put_style(printer, TERMINAL_STRONG);
    cli_print_text(stdout, hit->title, 0, false);
    put_style(printer, TERMINAL_PLAIN);
    fputs("\n  ", stdout);
    put_style(printer, TERMINAL_DIM);
    cli_print_name(stdout, cli_slice(resume));
    put_style(printer, TERMINAL_PLAIN);
    putchar('\n');
}

static struct wal_slice part(struct wal_slice text, uint32_t begin,
                             uint32_t end)
{
    return (struct wal_slice){(const char *)text.data + begin, end - begin};
}

static void print_snippet(const struct printer *printer,
                          const struct wal_search_hit *hit)
{
    uint32_t at = 0;

    fputs("    ", stdout);
    for (uint32_t i = 0; i < hit->match_count; i++) {
        uint32_t begin = hit->matches[2 * (size_t)i];
        uint32_t end = hit->matches[2 * (size_t)i + 1];

        cli_print_text(stdout, part(hit->snippet, at, begin), 0, false);
        put_style(printer, TERMINAL_ALARM);
        cli_print_text(stdout, part(hit->snippet, begin, end), 0, false);
        put_style(printer, TERMINAL_PLAIN);
        at = end;
    }
    cli_print_text(stdout, part(hit->snippet, at, (uint32_t)hit->snippet.size),
                   0, false);
    putchar('\n');
}

static void print_hit(struct printer *printer, const struct wal_search_hit *hit)
{
    char when[WHEN_SIZE] = "-";

    if (hit->time_ms != 0) {
        when_text(hit->time_ms, when);
    }
    printf("  %-9s  %s", search_role_name(hit->role), when);
    if (hit->entry_id.size > 0) {
        fputs("  ", stdout);
        put_style(printer, TERMINAL_ID);
        cli_print_name(stdout, hit->entry_id);
        put_style(printer, TERMINAL_PLAIN);
    }
    putchar('\n');
    print_snippet(printer, hit);
    if (printer->print->shows_around) {
        putchar('\n');
        printer->status = visit_around(printer, hit);
    }
}

/* Ends the output of a session, of which this many hits were printed. */
static void end_session(struct printer *printer,
                        const struct wal_search_hit *hit, uint64_t printed)
{
    if (hit->session_hits > printed) {
        put_style(printer, TERMINAL_DIM);
        printf("  %" PRIu64 " more: agentwal search --session ",
               hit->session_hits - printed);
        cli_print_name(stdout, cli_short_id(&printer->ids, hit->session_id));
        fputs(" ...", stdout);
        put_style(printer, TERMINAL_PLAIN);
        putchar('\n');
    }
    putchar('\n');
}

/* --- sessions ----------------------------------------------------------- */

/* Opens the session of a hit. */
static enum wal_status open_session(struct printer *printer,
                                    const struct wal_search_hit *hit)
{
    enum wal_status status;

    wal_session_close(printer->session);
    printer->session = NULL;
    status = wal_session_open(printer->print->store, hit->session_id,
                              &printer->session, &printer->error);
    if (status == WAL_OK) {
        printer->info = (struct wal_session_info)WAL_INIT(wal_session_info);
        status = wal_session_get_info(printer->session, &printer->info,
                                      &printer->error);
    }
    return status;
}

/* Ends the session of the hit before this one; ends all when `hit` is NULL. */
static void end(struct printer *printer, const struct wal_search_hit *last,
                uint64_t printed)
{
    if (printed == 0) {
        return;
    }
    if (is_for_people(printer)) {
        end_session(printer, last, printed);
    } else {
        search_session_close(&printer->json);
        wal__json_out_newline(&printer->json);
    }
}

int search_print_hits(const struct search_print *print,
                      struct wal_search_cursor *cursor)
{
    struct printer printer = {.print = print, .error = CLI_ERROR_INIT};
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    struct wal_search_hit last = hit;
    uint64_t printed = 0;
    int code = CLI_OK;

    cli_json_init(&printer.json, stdout);
    cli_short_ids_add_sessions(&printer.ids, print->store);
    while (printer.status == WAL_OK && !cli_output_failed() &&
           wal_search_cursor_next(cursor, &hit, NULL) == WAL_OK) {
        if (printed == 0 || hit.rank != last.rank) {
            end(&printer, &last, printed);
            printed = 0;
            printer.status = open_session(&printer, &hit);
            if (printer.status == WAL_ENOTFOUND ||
                printer.status == WAL_ETRASHED) {
                printer.status = WAL_OK; /* it was deleted meanwhile */
                continue;
            }
            if (printer.status != WAL_OK) {
                break;
            }
            if (is_for_people(&printer)) {
                begin_session(&printer, &hit);
            } else {
                search_session_open(&printer.json, &printer.info, &hit);
            }
        }
        if (is_for_people(&printer)) {
            print_hit(&printer, &hit);
        } else {
            write_hit(&printer, &hit);
        }
        printed++;
        last = hit;
    }
    end(&printer, &last, printed);
    if (printer.status != WAL_OK) {
        code = cli_report(print->cli, "search", printer.status, &printer.error);
    }
    wal_session_close(printer.session);
    cli_short_ids_deinit(&printer.ids);
    return code;
}
