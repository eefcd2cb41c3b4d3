/*
 * search.c - the verb search: finds words in all sessions (verbs.h).
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/search/print.h"

/* The options of the command line. */
struct arguments {
    const char *project;
    const char *cwd;
    const char *session;
    const char *since;
    const char *until;
    struct cli_values roles;
    const char *tool;
    const char *limit;
    const char *around;
    bool deep;
    bool substring;
};

/* A query, and the memory of its texts. */
struct search {
    struct wal_search_query query;
    struct wal_session *session; /* --session, or NULL */
    char *text;
    char *cwd;
    struct progress progress;
};

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *progress = ctx;
    char sizes[2][SIZE_TEXT];
    char text[2 * SIZE_TEXT + 8];

    if (progress_is_due(progress)) {
        size_text(done, sizes[0]);
        size_text(total, sizes[1]);
        snprintf(text, sizeof(text), "%s of %s", sizes[0], sizes[1]);
        progress_show(progress, "indexing", text);
    }
    return 0;
}

/* --- arguments ---------------------------------------------------------- */

static int parse_roles(const struct cli *cli, const struct cli_values *values,
                       uint32_t *roles)
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
            found |= strcmp(values->items[i], names[k].name) == 0
                         ? names[k].role
                         : 0U;
        }
        if (found == 0) {
            return cli_error(cli, CLI_USAGE, "--role",
                             "\"%s\" is no role; use user, assistant, tool, "
                             "title, summary or result",
                             values->items[i]);
        }
        *roles |= found;
    }
    return CLI_CONTINUE;
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

static int set_session(const struct cli *cli, struct wal_store *store,
                       const char *name, struct search *search)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code;

    if (name == NULL) {
        return CLI_CONTINUE;
    }
    code = cli_open_session(cli, store, name, &search->session);
    if (code != CLI_CONTINUE) {
        return code;
    }
    status = wal_session_get_info(search->session, &info, &error);
    if (status != WAL_OK) {
        return cli_report(cli, name, status, &error);
    }
    search->query.session = info.id; /* until the handle is closed */
    search->query.hits_limit = 1000;
    return CLI_CONTINUE;
}

/* Fills the query from the options. */
static int fill_query(const struct cli *cli, struct wal_store *store,
                      const struct arguments *arguments, struct search *search)
{
    struct wal_search_query *query = &search->query;
    uint64_t limit = 0;
    int code = CLI_CONTINUE;

    query->text = cli_slice(search->text);
    query->project = cli_slice(arguments->project);
    query->tool = cli_slice(arguments->tool);
    query->flags = arguments->deep ? WAL_SEARCH_DEEP : 0U;
    query->flags |= arguments->substring ? WAL_SEARCH_SUBSTRING : 0U;
    query->progress = show_progress;
    query->ctx = &search->progress;
    if (arguments->cwd != NULL) {
        search->cwd = cli_absolute_path(arguments->cwd);
        query->cwd = cli_slice(search->cwd);
    }
    if (arguments->limit != NULL) {
        code =
            cli_parse_number(cli, "--limit", arguments->limit, 100000, &limit);
        query->session_limit = (uint32_t)limit;
    }
    if (code == CLI_CONTINUE) {
        code =
            cli_parse_time(cli, "--since", arguments->since, &query->since_ms);
    }
    if (code == CLI_CONTINUE) {
        code =
            cli_parse_time(cli, "--until", arguments->until, &query->until_ms);
    }
    if (code == CLI_CONTINUE) {
        code = parse_roles(cli, &arguments->roles, &query->roles);
    }
    return code == CLI_CONTINUE
               ? set_session(cli, store, arguments->session, search)
               : code;
}

/* --- searching ---------------------------------------------------------- */

/* Runs the query and prints its hits; the exit code is that of grep. */
static int query_and_print(const struct cli *cli, struct wal_store *store,
                           struct search *search,
                           const struct arguments *arguments)
{
    struct search_print print = {.cli = cli,
                                 .store = store,
                                 .query = search->text,
                                 .shows_around = arguments->around != NULL};
    struct wal_search_summary summary = WAL_INIT(wal_search_summary);
    struct wal_search_cursor *cursor = NULL;
    struct wal_search *handle = NULL;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code;

    if (arguments->around != NULL) {
        code = cli_parse_number(cli, "--around", arguments->around, 1000,
                                &print.around);
        if (code != CLI_CONTINUE) {
            return code;
        }
    }
    status = wal_search_open(store, NULL, &handle, &error);
    if (status == WAL_OK) {
        status =
            wal_search_find(handle, &search->query, &cursor, &summary, &error);
    }
    progress_clear(&search->progress);
    if (status != WAL_OK) {
        wal_search_close(handle);
        return status == WAL_EINVAL
                   ? cli_error(cli, CLI_USAGE, "search", "%s", error.text)
                   : cli_report(cli, "search", status, &error);
    }
    if (summary.hits > 0) {
        cli_start_pager(cli);
    }
    code = search_print_hits(&print, cursor);
    if (code == CLI_OK && summary.complete == 0) {
        cli_note(cli, NULL,
                 "more entries match than are ranked; add a word, or --since");
    }
    wal_search_cursor_close(cursor);
    wal_search_close(handle);
    return code == CLI_OK && summary.hits == 0 ? CLI_NEGATIVE : code;
}

int search_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.project = NULL};
    const struct cli_option options[] = {
        {.name = "project", .value = &arguments.project},
        {.name = "cwd", .value = &arguments.cwd},
        {.name = "session", .value = &arguments.session},
        {.name = "since", .value = &arguments.since},
        {.name = "until", .value = &arguments.until},
        {.name = "role", .values = &arguments.roles},
        {.name = "tool", .value = &arguments.tool},
        {.name = "limit", .value = &arguments.limit},
        {.name = "around", .value = &arguments.around},
        {.name = "deep", .flag = &arguments.deep},
        {.name = "substring", .flag = &arguments.substring},
        {.name = NULL},
    };
    struct search search = {.query = WAL_INIT(wal_search_query)};
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE && arguments.tool == NULL && cli->count < 3) {
        code = cli_error(cli, CLI_USAGE, "search", "no word to search for");
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        free(arguments.roles.items);
        return code;
    }
    progress_init(&search.progress, !cli->no_progress);
    search.text = join(cli->items, 2, cli->count);
    code = fill_query(cli, store, &arguments, &search);
    if (code == CLI_CONTINUE) {
        code = query_and_print(cli, store, &search, &arguments);
    }
    wal_session_close(search.session);
    free(arguments.roles.items);
    free(search.text);
    free(search.cwd);
    return cli_close_store(cli, cli->items[1], store, code);
}

/* --- index -------------------------------------------------------------- */

static void print_index(const struct cli *cli,
                        const struct wal_search_update_result *result)
{
    struct wal__json_out json;
    char size[SIZE_TEXT];

    if (cli->json) {
        cli_json_init(&json, stdout);
        wal__json_out_open(&json, '{');
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
    printf("%llu %s indexed, %llu of them now; the index has %s\n",
           (unsigned long long)result->segments,
           cli_plural(result->segments, "segment", "segments"),
           (unsigned long long)result->built, size);
}

int search_run_index(struct cli *cli, int argc, char **argv)
{
    struct wal_search_update_options update =
        WAL_INIT(wal_search_update_options);
    struct wal_search_update_result result = WAL_INIT(wal_search_update_result);
    bool deep = false;
    const struct cli_option options[] = {
        {.name = "deep", .flag = &deep},
        {.name = NULL},
    };
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_search *search = NULL;
    struct wal_store *store = NULL;
    struct progress progress;
    enum wal_status status;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    progress_init(&progress, !cli->no_progress);
    update.flags = deep ? WAL_SEARCH_UPDATE_DEEP : 0U;
    update.progress = show_progress;
    update.ctx = &progress;
    status = wal_search_open(store, NULL, &search, &error);
    if (status == WAL_OK) {
        status = wal_search_update(search, &update, &result, &error);
    }
    progress_clear(&progress);
    if (status == WAL_OK) {
        print_index(cli, &result);
        code = result.damaged > 0 ? CLI_NEGATIVE : CLI_OK;
        if (result.unwritten > 0) {
            code = cli_error(cli, CLI_FAILED, "index",
                             "not all files could be written; each search "
                             "makes the missing indexes again");
        }
    } else {
        code = cli_report(cli, "index", status, &error);
    }
    wal_search_close(search);
    return cli_close_store(cli, cli->items[1], store, code);
}
