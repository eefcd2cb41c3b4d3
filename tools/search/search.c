/*
 * search.c - the verb search: finds words in all sessions (search.h).
 *
 * Invariant: a text of a session reaches the terminal only as plain text.
 */
#include "tools/search/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/secrets/secrets.h"
#include "tools/shown/shown.h"
#include "tools/walcat/walcat.h"

/* Returns the name of an enum wal_search_role. */
static const char *role_name(uint32_t role)
{
    static const struct {
        uint32_t role;
        const char *name;
    } names[] = {
        {WAL_SEARCH_USER, "user"},       {WAL_SEARCH_ASSISTANT, "assistant"},
        {WAL_SEARCH_TOOL, "tool"},       {WAL_SEARCH_TITLE, "title"},
        {WAL_SEARCH_SUMMARY, "summary"}, {WAL_SEARCH_RESULT, "result"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].role == role) {
            return names[i].name;
        }
    }
    return "";
}

void search_hit_open(struct wal__json_out *json, const struct wal_search_hit *hit)
{
    wal__json_out_open(json, '{');
    cli_json_member_text_or_null(json, "entryId", hit->entry_id);
    cli_json_member_text(json, "role", cli_slice(role_name(hit->role)));
    wal__json_out_key(json, "time");
    if (hit->time_ms != 0) {
        cli_json_time(json, hit->time_ms);
    } else {
        cli_json_text_or_null(json, hit->timestamp);
    }
    wal__json_out_member_count(json, "sequence", hit->sequence);
    if (hit->tool.size > 0) {
        cli_json_member_text(json, "tool", hit->tool);
    }
    cli_json_member_text(json, "snippet", hit->snippet);
    wal__json_out_member_open(json, "matches", '[');
    for (uint32_t i = 0; i < hit->match_count; i++) {
        wal__json_out_open(json, '[');
        wal__json_out_count(json, hit->matches[2 * (size_t)i]);
        wal__json_out_count(json, hit->matches[2 * (size_t)i + 1]);
        wal__json_out_close(json, ']');
    }
    wal__json_out_close(json, ']');
}

void search_session_open(const struct cli *cli, struct wal__json_out *json,
                         const struct wal_session_info *info, const struct wal_search_hit *hit)
{
    char *resume = shown_resume(cli, info);

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "sessionId", hit->session_id);
    cli_json_member_text_or_null(json, "title", hit->title);
    cli_json_member_text_or_null(json, "cwd", hit->cwd);
    cli_json_member_text_or_null(json, "projectId", hit->project);
    cli_json_member_time(json, "updated", hit->session_updated_ms);
    cli_json_member_text(json, "resume", cli_slice(resume));
    free(resume);
    wal__json_out_member_count(json, "matches", hit->session_hits);
    wal__json_out_member_open(json, "hits", '[');
}

void search_session_close(struct wal__json_out *json)
{
    wal__json_out_close(json, ']');
    wal__json_out_close(json, '}');
}

/* Calls `each` for up to `count` entries before the entry on its branch, the entry, and up to
 * `count` after it on the live branch, if it is there. The id may be that of a message that was
 * imported as documents. */
typedef void search_around_fn(void *ctx, const struct wal_entry *entry, bool is_hit);

/* --- entries before and after a hit ------------------------------------- */

enum {
    HIDDEN_MAX = 256 /* entries that depth counts and a cursor leaves out */
};

struct around {
    struct wal_store *store;
    struct wal_session *session;
    uint64_t count;
    search_around_fn *each;
    void *ctx;
    struct wal_error *error;
};

/* The branch up to the entry. */
static enum wal_status visit_before(const struct around *around, struct wal_slice id,
                                    uint32_t stream)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    options.stream = stream;
    options.up_to = id;
    options.last = around->count + 1;
    status = wal_entry_cursor_open(around->session, &options, &cursor, around->error);
    while (status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) {
        status = wal_entry_cursor_next(cursor, &entry, around->error);
        if (status == WAL_OK) {
            around->each(around->ctx, &entry, cli_slice_equal(entry.id, id));
        }
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* The live branch after the entry, which is at most this deep in it. */
static enum wal_status visit_after(const struct around *around, struct wal_slice id,
                                   uint32_t stream, uint64_t depth)
{
    struct wal_entry_cursor_options options = WAL_INIT(wal_entry_cursor_options);
    struct wal_entry entry = WAL_INIT(wal_entry);
    struct wal_entry_cursor *cursor = NULL;
    uint64_t left = around->count;
    bool is_found = false;
    enum wal_status status;

    options.stream = stream;
    options.skip = depth > HIDDEN_MAX ? depth - HIDDEN_MAX : 0;
    status = wal_entry_cursor_open(around->session, &options, &cursor, around->error);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK; /* `main` has no entry */
    }
    while ((status == WAL_OK || (cli_is_damage(status) && cursor != NULL)) && left > 0) {
        status = wal_entry_cursor_next(cursor, &entry, around->error);
        if (status != WAL_OK) {
            continue;
        }
        if (is_found) {
            around->each(around->ctx, &entry, false);
            left--;
        } else if (entry.depth > depth) {
            break; /* it is on another branch */
        }
        is_found = is_found || cli_slice_equal(entry.id, id);
    }
    wal_entry_cursor_close(cursor);
    return status == WAL_END || (cli_is_damage(status) && left == 0) ? WAL_OK : status;
}

/* The messages of documents. */
static enum wal_status visit_documents(const struct around *around, struct wal_slice id)
{
    struct shown_documents documents = {.items = NULL};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(around->session, NULL, &cursor, around->error);

    if (status == WAL_OK) {
        status =
            shown_documents_read(&documents, around->store, around->session, cursor, around->error);
    }
    for (size_t i = 0; i < documents.count && status == WAL_OK; i++) {
        if (!cli_slice_equal(documents.items[i].id, id)) {
            continue;
        }
        for (size_t k = i > around->count ? i - (size_t)around->count : 0;
             k < documents.count && k <= i + around->count; k++) {
            around->each(around->ctx, &documents.items[k], k == i);
        }
        break;
    }
    shown_documents_deinit(&documents);
    wal_entry_cursor_close(cursor);
    return status;
}

static enum wal_status search_visit_around(struct wal_store *store, struct wal_session *session,
                                           struct wal_slice entry_id, uint64_t count,
                                           search_around_fn *each, void *ctx,
                                           struct wal_error *error)
{
    const struct around around = {.store = store,
                                  .session = session,
                                  .count = count,
                                  .each = each,
                                  .ctx = ctx,
                                  .error = error};
    struct wal_entry entry = WAL_INIT(wal_entry);
    enum wal_status status;
    uint32_t stream;
    uint64_t depth;

    if (entry_id.size == 0) {
        return WAL_OK; /* a title */
    }
    status = wal_entry_get(session, entry_id, &entry, error);
    if (status == WAL_ENOTFOUND) {
        return visit_documents(&around, entry_id);
    }
    if (status != WAL_OK) {
        return status;
    }
    stream = entry.stream;
    depth = entry.depth;
    status = visit_before(&around, entry_id, stream);
    return status == WAL_OK ? visit_after(&around, entry_id, stream, depth) : status;
}

struct search_print {
    const struct cli *cli;
    struct wal_store *store;
    const char *query; /* as it was typed, for the command that shows more */
    bool shows_around; /* print entries around each hit */
    uint64_t around;   /* on each side */
};

/* --- printing ----------------------------------------------------------- */

/* What the callbacks need. */
struct printer {
    const struct search_print *print;
    struct wal__json_out json;
    struct wal_session *session;  /* of the hits */
    struct wal_session_info info; /* of it */
    enum wal_status status;
    struct wal_error error;
};

static void put_style(const struct printer *printer, enum terminal_style style)
{
    terminal_put_style(printer->print->cli->terminal, style);
}

static bool is_for_people(const struct printer *printer)
{
    return !printer->print->cli->json;
}

/* --- around ------------------------------------------------------------- */

static void print_around(void *ctx, const struct wal_entry *entry, bool is_hit)
{
    static const struct terminal plain; /* the hit has a style */
    struct printer *printer = ctx;
    struct wal_store *store = printer->print->store;
    enum wal_status status;

    if (printer->status != WAL_OK) {
        return;
    }
    if (is_for_people(printer) && cli_entry_is_repeated(printer->session, entry)) {
        return;
    }
    if (is_for_people(printer)) {
        if (is_hit) {
            put_style(printer, TERMINAL_STRONG);
        }
        status = walcat_print_text(&plain, store, entry, NULL, &printer->error);
        if (is_hit) {
            put_style(printer, TERMINAL_PLAIN);
        }
    } else {
        status = cli_entry_write_value(&printer->json, store, entry, &printer->error);
    }
    printer->status = status;
}

static enum wal_status visit_around(struct printer *printer, const struct wal_search_hit *hit)
{
    enum wal_status status =
        search_visit_around(printer->print->store, printer->session, hit->entry_id,
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

static void begin_session(struct printer *printer, const struct wal_search_hit *hit)
{
    char *resume = shown_resume(printer->print->cli, &printer->info);
    char when[WHEN_SIZE];

    when_text(hit->session_updated_ms, when);
    put_style(printer, TERMINAL_ID);
    cli_print_name(stdout, cli_session_short(printer->print->store, hit->session_id));
    put_style(printer, TERMINAL_PLAIN);
    printf("  %s  ", when);
    put_style(printer, TERMINAL_STRONG);
    cli_print_text(stdout, hit->title, 0, false);
    put_style(printer, TERMINAL_PLAIN);
    fputs("\n  ", stdout);
    put_style(printer, TERMINAL_DIM);
    cli_print_name(stdout, cli_slice(resume));
    free(resume);
    put_style(printer, TERMINAL_PLAIN);
    putchar('\n');
}

static struct wal_slice part(struct wal_slice text, uint32_t begin, uint32_t end)
{
    return (struct wal_slice){(const char *)text.data + begin, end - begin};
}

static void print_snippet(const struct printer *printer, const struct wal_search_hit *hit)
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
    cli_print_text(stdout, part(hit->snippet, at, (uint32_t)hit->snippet.size), 0, false);
    putchar('\n');
}

static void print_hit(struct printer *printer, const struct wal_search_hit *hit)
{
    char when[WHEN_SIZE] = "-";

    if (hit->time_ms != 0) {
        when_text(hit->time_ms, when);
    }
    printf("  %-9s  %s", role_name(hit->role), when);
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
static void end_session(struct printer *printer, const struct wal_search_hit *hit, uint64_t printed)
{
    if (hit->session_hits > printed) {
        char *verb = NULL;
        size_t size = 0;
        FILE *file = cli_open_memory(&verb, &size);

        fputs("search --session ", file);
        cli_put_word(file, cli_session_short(printer->print->store, hit->session_id));
        (void)fclose(file);
        put_style(printer, TERMINAL_DIM);
        printf("  %" PRIu64 " more: ", hit->session_hits - printed);
        cli_print_command(printer->print->cli, "", verb, &printer->print->query, 1);
        put_style(printer, TERMINAL_PLAIN);
        free(verb);
    }
    putchar('\n');
}

/* --- sessions ----------------------------------------------------------- */

/* Opens the session of a hit. */
static enum wal_status open_session(struct printer *printer, const struct wal_search_hit *hit)
{
    enum wal_status status;

    wal_session_close(printer->session);
    printer->session = NULL;
    status = wal_session_open(printer->print->store, hit->session_id, &printer->session,
                              &printer->error);
    if (status == WAL_OK) {
        printer->info = (struct wal_session_info)WAL_INIT(wal_session_info);
        status = wal_session_get_info(printer->session, &printer->info, &printer->error);
    }
    return status;
}

/* Ends the session of the hit before this one; ends all when `hit` is NULL. */
static void end(struct printer *printer, const struct wal_search_hit *last, uint64_t printed)
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

/* Prints the hits of the cursor: for people, or with --json an object for each session. Returns an
 * exit code. */
static int print_hits(const struct search_print *print, struct wal_search_cursor *cursor)
{
    struct printer printer = {.print = print, .error = CLI_ERROR_INIT};
    struct wal_search_hit hit = WAL_INIT(wal_search_hit);
    struct wal_search_hit last = hit;
    uint64_t printed = 0;
    int code = CLI_OK;

    cli_json_init(&printer.json, stdout);
    while (printer.status == WAL_OK && !cli_output_failed() &&
           wal_search_cursor_next(cursor, &hit, NULL) == WAL_OK) {
        if (printed == 0 || hit.rank != last.rank) {
            end(&printer, &last, printed);
            printed = 0;
            printer.status = open_session(&printer, &hit);
            if (printer.status == WAL_ENOTFOUND || printer.status == WAL_ETRASHED) {
                printer.status = WAL_OK; /* it was deleted meanwhile */
                continue;
            }
            if (printer.status != WAL_OK) {
                break;
            }
            if (is_for_people(&printer)) {
                begin_session(&printer, &hit);
            } else {
                search_session_open(print->cli, &printer.json, &printer.info, &hit);
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
        code = cli_report_error(print->cli, "search", printer.status, &printer.error);
    }
    wal_session_close(printer.session);
    return code;
}

/* --- the verb ----------------------------------------------------------- */

/* The options of the command line. */
struct arguments {
    const char *project;
    const char *cwd;
    const char *session;
    int64_t since_ms;
    int64_t until_ms;
    struct cli_values roles;
    const char *tool;
    uint64_t limit;  /* 0: the default */
    uint64_t around; /* UINT64_MAX: not given */
    bool deep;
    bool substring;
};

/* A query, and the memory of its texts. */
struct search {
    struct wal_search_query query;
    char *text;
    struct progress progress;
};

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_update_sizes(ctx, "indexing", done, total);
    return 0;
}

/* --- arguments ---------------------------------------------------------- */

static void parse_roles(const struct cli *cli, const struct cli_values *values, uint32_t *roles)
{
    static const struct {
        const char *name;
        uint32_t role;
    } names[] = {
        {"user", WAL_SEARCH_USER},       {"assistant", WAL_SEARCH_ASSISTANT},
        {"tool", WAL_SEARCH_TOOL},       {"title", WAL_SEARCH_TITLE},
        {"summary", WAL_SEARCH_SUMMARY}, {"result", WAL_SEARCH_RESULT},
    };

    for (size_t i = 0; i < values->count; i++) {
        uint32_t found = 0;

        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            found |= strcmp(values->items[i], names[k].name) == 0 ? names[k].role : 0U;
        }
        if (found == 0) {
            cli_fail(cli, CLI_USAGE, "--role",
                     "\"%s\" is no role; use user, assistant, tool, title, summary or result",
                     values->items[i]);
        }
        *roles |= found;
    }
}

/* Joins the words of the command line. */
static char *join(char **items, int from, int count)
{
    size_t size = 1;
    char *text;

    for (int i = from; i < count; i++) {
        size += strlen(items[i]) + 1;
    }
    text = cli_alloc(size);
    for (int i = from; i < count; i++) {
        strcat(strcat(text, i == from ? "" : " "), items[i]);
    }
    return text;
}

/* Fills the query from the options. */
static void fill_query(const struct cli *cli, const struct arguments *arguments,
                       struct search *search)
{
    struct wal_search_query *query = &search->query;

    query->text = cli_slice(search->text);
    query->project = cli_slice(arguments->project);
    query->tool = cli_slice(arguments->tool);
    query->flags = arguments->deep ? WAL_SEARCH_DEEP : 0U;
    query->flags |= arguments->substring ? WAL_SEARCH_SUBSTRING : 0U;
    query->progress = show_progress;
    query->ctx = &search->progress;
    query->cwd = cli_slice(arguments->cwd);
    query->session_limit = (uint32_t)arguments->limit;
    query->since_ms = arguments->since_ms;
    query->until_ms = arguments->until_ms;
    parse_roles(cli, &arguments->roles, &query->roles);
    if (arguments->session != NULL) {
        query->session = cli_slice(cli_session_id(cli, cli->store, arguments->session));
        query->hits_limit = 1000;
    }
}

/* --- searching ---------------------------------------------------------- */

/* Runs the query and prints its hits; the exit code is that of grep. */
static int query_and_print(const struct cli *cli, struct wal_store *store, struct search *search,
                           const struct arguments *arguments)
{
    struct search_print print = {.cli = cli,
                                 .store = store,
                                 .query = search->text,
                                 .shows_around = arguments->around != UINT64_MAX,
                                 .around = arguments->around};
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search *handle = NULL;
    enum wal_status status;
    int code;

    status = wal_search_open(store, NULL, &handle, cli->error);
    if (status == WAL_OK) {
        status = wal_search_find(handle, &search->query, &cursor, &summary, cli->error);
    }
    progress_clear(&search->progress);
    if (status == WAL_EINVAL) {
        cli_fail(cli, CLI_USAGE, "search", "%s", cli->error->text);
    }
    cli_check(cli, "search", status);
    if (summary.hits > 0) {
        cli_start_pager(cli);
    }
    code = print_hits(&print, cursor);
    if (code == CLI_OK && summary.complete == 0) {
        cli_note(cli, NULL, "more entries match than are ranked; add a word, or --since");
    }
    wal_search_cursor_close(cursor);
    wal_search_close(handle);
    if (code == CLI_OK && summary.hits == 0 && isatty(STDERR_FILENO) == 1) {
        cli_note(cli, NULL,
                 arguments->deep ? "nothing found"
                                 : "nothing found; --deep looks into the results of "
                                   "tools, too");
    }
    return code == CLI_OK && summary.hits == 0 ? CLI_NEGATIVE : code;
}

/* Finds secrets instead of words, in the sessions of a project, of a directory, or one. */
static int print_secrets(struct cli *cli, const struct arguments *arguments)
{
    struct wal_session_cursor_options options = WAL_INIT(wal_session_cursor_options);
    struct secrets secrets = {.items = NULL};
    struct secrets_scan scan = {.secrets = &secrets};
    struct cli_ids ids = {.items = NULL};
    struct cli_sessions list;
    int code;

    secrets_open(&secrets, cli, NULL);
    cli_use_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
    options.project = cli_slice(arguments->project);
    options.cwd = cli_slice(arguments->cwd);
    if (arguments->session != NULL) {
        (void)cli_ids_get_or_add(&ids,
                                 cli_slice(cli_session_id(cli, cli->store, arguments->session)));
        scan.only = &ids;
    } else if (arguments->project != NULL || arguments->cwd != NULL) {
        for (cli_sessions_open(&list, cli->store, &options, cli->error);
             cli_sessions_next(&list);) {
            (void)cli_ids_get_or_add(&ids, list.info.id);
        }
        cli_check(cli, "search", list.status);
        scan.only = &ids;
    }
    cli_check(cli, "search", secrets_scan(&scan, cli, cli->store, cli->error));
    secrets_scan_print(&scan, cli);
    code = secrets_scan_count(&scan) > 0 ? CLI_OK : CLI_NEGATIVE;
    secrets_scan_deinit(&scan);
    cli_ids_deinit(&ids);
    return code;
}

int search_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.around = UINT64_MAX};
    bool finds_secrets = false;
    const struct cli_option options[] = {
        {.name = "secrets", .flag = &finds_secrets},
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .directory = &arguments.cwd},
        {.name = "session", .value = &arguments.session},
        {.name = "since", .time = &arguments.since_ms},
        {.name = "until", .time = &arguments.until_ms},
        {.name = "role", .values = &arguments.roles},
        {.name = "tool", .value = &arguments.tool},
        {.name = "limit", .number = &arguments.limit, .max = 100000},
        {.name = "around", .number = &arguments.around, .max = 1000},
        {.name = "deep", .flag = &arguments.deep},
        {.name = "substring", .flag = &arguments.substring},
        {.name = NULL},
    };
    struct search search = {.query = WAL_INIT(wal_search_query)};

    cli_parse(cli, argc, argv, options);
    if (finds_secrets) {
        if (cli->count > 2) {
            cli_fail(cli, CLI_USAGE, "--secrets", "takes no words");
        }
        return print_secrets(cli, &arguments);
    }
    if (arguments.tool == NULL && cli->count < 3) {
        cli_fail(cli, CLI_USAGE, "search", "no word to search for");
    }
    cli_use_store(cli, cli->items[1], 0);
    progress_init(&search.progress, !cli->no_progress);
    search.text = cli_keep(join(cli->items, 2, cli->count));
    fill_query(cli, &arguments, &search);
    return query_and_print(cli, cli->store, &search, &arguments);
}

/* --- index -------------------------------------------------------------- */

static void print_index(const struct cli *cli, const struct wal_search_update_result *result)
{
    struct wal__json_out json;
    char size[SIZE_TEXT];

    if (cli->json) {
        cli_json_begin(&json);
        wal__json_out_member_count(&json, "segments", result->segments);
        wal__json_out_member_count(&json, "built", result->built);
        wal__json_out_member_count(&json, "readBytes", result->read_bytes);
        wal__json_out_member_count(&json, "textBytes", result->text_bytes);
        wal__json_out_member_count(&json, "indexBytes", result->index_bytes);
        wal__json_out_member_count(&json, "damaged", result->damaged);
        wal__json_out_close_line(&json);
        return;
    }
    size_text(result->index_bytes, size);
    printf("%s indexed, %llu of them now; index size: %s\n",
           cli_counted(result->segments, "segment", "segments"), (unsigned long long)result->built,
           size);
}

int search_run_index(struct cli *cli, int argc, char **argv)
{
    struct wal_search_update_options update = WAL_INIT(wal_search_update_options);
    struct wal_search_update_result result = WAL_INIT(wal_search_update_result);
    bool deep = false;
    const struct cli_option options[] = {
        {.name = "deep", .flag = &deep},
        {.name = NULL},
    };
    struct wal_search *search = NULL;
    struct progress progress;
    enum wal_status status;

    cli_begin(cli, argc, argv, options, 2, 2, 0);
    progress_init(&progress, !cli->no_progress);
    update.flags = deep ? WAL_SEARCH_UPDATE_DEEP : 0U;
    update.progress = show_progress;
    update.ctx = &progress;
    status = wal_search_open(cli->store, NULL, &search, cli->error);
    if (status == WAL_OK) {
        status = wal_search_update(search, &update, &result, cli->error);
    }
    progress_clear(&progress);
    cli_check(cli, "index", status);
    print_index(cli, &result);
    if (result.unwritten > 0) {
        cli_fail(cli, CLI_FAILED, "index",
                 "not all files could be written; each search makes the missing indexes again");
    }
    wal_search_close(search);
    return result.damaged > 0 ? CLI_NEGATIVE : CLI_OK;
}
