/*
 * walcat.c - the verbs cat and tree: print the entries, branches or frames of a
 * store; by the name walcat also its sessions.
 *
 * Invariant: nothing is appended to the store. Reading holds no lock; only
 * --follow joins the store's processes, to see what they append.
 *
 * Threads: the tool has one thread.
 */
#include "tools/walcat/walcat.h"

#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/walcat/live.h"

struct arguments {
    struct walcat_options view;
    const char *stream;
    const char *tail;
    bool frames;
    bool tree;
};

/* A read-only handle may see only the state of the store at its opening. */
static int check_follow(const struct cli *cli, struct wal_store *store)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_store_get_info(store, &info, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[0], status, &error);
    }
    if (info.status == WAL_EREADONLY) {
        return cli_error(cli, CLI_FAILED, cli->items[0],
                         "cannot be followed: --follow needs write permission");
    }
    return CLI_CONTINUE;
}

/* Reports that the session lost entries, because reading the remaining ones
 * shows no error. CLI_NEGATIVE then, else CLI_OK. */
static int report_damage(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[1], status, &error);
    }
    if ((info.flags & WAL_SESSION_DAMAGED) == 0) {
        return CLI_OK;
    }
    return cli_error(
        cli, CLI_NEGATIVE, cli->items[1],
        "the session lost entries to damage (agentwal check reports the "
        "damage)");
}

static int complete_names(const struct cli *cli, struct wal_session *session,
                          struct walcat_options *view)
{
    int code = cli_complete_name(cli, session, view->stream,
                                 CLI_NAME_ENTRY | CLI_NAME_HEAD, &view->branch);

    return code == CLI_CONTINUE
               ? cli_complete_name(cli, session, view->stream, CLI_NAME_ENTRY,
                                   &view->up_to)
               : code;
}

static int show_session(const struct cli *cli,
                        const struct arguments *arguments)
{
    struct wal_session *session = NULL;
    struct walcat_options view = arguments->view;
    struct wal_store *store = NULL;
    bool follow = view.follow;
    int code = cli_open_store(cli, cli->items[0],
                              follow ? 0 : WAL_OPEN_READ_ONLY, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = follow ? check_follow(cli, store) : CLI_CONTINUE;
    if (code == CLI_CONTINUE) {
        code = cli_open_session(cli, store, cli->items[1], &session);
    }
    if (code == CLI_CONTINUE) {
        code = complete_names(cli, session, &view);
    }
    if (code == CLI_CONTINUE) {
        int damage_code = report_damage(cli, session);
        view.store = store;
        code = arguments->tree ? walcat_print_tree(cli, session, &view)
                               : walcat_print_entries(cli, session, &view);
        code = cli_worse_code(damage_code, code);
    }
    wal_session_close(session);
    return cli_close_store(cli, cli->items[0], store, code);
}

/* --follow without a session: all of them. */
static int follow_all(const struct cli *cli, const struct arguments *arguments)
{
    static const struct cli_values none = {.count = 0};
    struct live live = {.cli = cli,
                        .path = cli->items[0],
                        .names = &none,
                        .type = arguments->view.type};
    int code = cli_open_store(cli, cli->items[0], 0, &live.store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = check_follow(cli, live.store);
    if (code == CLI_CONTINUE) {
        code = live_open(&live);
    }
    if (code == CLI_CONTINUE) {
        code = walcat_print_live(&live, arguments->view.text);
    }
    live_close(&live);
    return cli_close_store(cli, cli->items[0], live.store, code);
}

static int show_sessions(const struct cli *cli)
{
    struct wal_store *store = NULL;
    int code = cli_open_store(cli, cli->items[0], WAL_OPEN_READ_ONLY, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_print_sessions(cli, store, cli->items[0], NULL, 0, false);
    return cli_close_store(cli, cli->items[0], store, code);
}

/* Refuses options that would have no effect. */
static int check_context(const struct cli *cli,
                         const struct arguments *arguments)
{
    const struct walcat_options *view = &arguments->view;
    const struct {
        const char *name;
        bool is_given;
        bool with_tree;
        bool with_all; /* --follow of all sessions */
    } options[] = {
        {"--branch", view->branch != NULL, false, false},
        {"--up-to", view->up_to != NULL, false, false},
        {"--since-compaction", view->since_compaction, false, false},
        {"--all", view->all, true, false},
        {"--stream", arguments->stream != NULL, true, false},
        {"--type", view->type != NULL, false, true},
        {"--tail", arguments->tail != NULL, false, false},
        {"--deltas", view->deltas, true, false},
        {"--redacted", view->redacted, true, false},
        {"--text", view->text, false, true},
        {"--tree", arguments->tree, true, false},
        {"--follow", view->follow, false, true},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        bool is_of_all =
            view->follow && !arguments->frames && options[i].with_all;

        if (options[i].is_given && !is_of_all &&
            (arguments->frames || cli->count < 2)) {
            return cli_error(cli, CLI_USAGE, options[i].name,
                             "allowed only with a SESSION");
        }
        if (options[i].is_given && arguments->tree && !options[i].with_tree) {
            return cli_error(cli, CLI_USAGE, options[i].name,
                             "not allowed with --tree");
        }
    }
    return CLI_CONTINUE;
}

/* Converts the options to a view and refuses those that exclude each other. */
static int check_options(const struct cli *cli, struct arguments *arguments)
{
    struct walcat_options *view = &arguments->view;
    uint64_t stream = 0;
    bool is_path;
    int code = cli_check_operands(cli, 1, arguments->frames ? 1 : 2);

    if (code == CLI_CONTINUE && arguments->stream != NULL) {
        code =
            cli_parse_number(cli, "--stream", arguments->stream, 255, &stream);
    }
    if (code == CLI_CONTINUE && arguments->tail != NULL) {
        code = cli_parse_number(cli, "--tail", arguments->tail, UINT64_MAX,
                                &view->tail);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "--branch", view->branch);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "--up-to", view->up_to);
    }
    if (code == CLI_CONTINUE) {
        code = check_context(cli, arguments);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    view->stream = (uint32_t)stream;
    is_path = view->branch != NULL || view->up_to != NULL;
    if (view->branch != NULL && view->up_to != NULL) {
        return cli_error(cli, CLI_USAGE, "--up-to",
                         "not allowed with --branch");
    }
    if (view->all && (is_path || view->since_compaction)) {
        return cli_error(
            cli, CLI_USAGE, "--all",
            "not allowed with --branch, --up-to or --since-compaction");
    }
    if (view->follow && is_path) {
        return cli_error(cli, CLI_USAGE, "--follow",
                         "not allowed with --branch or --up-to");
    }
    return CLI_CONTINUE;
}

/* Reads the command line into *arguments. */
static int read_arguments(struct cli *cli, int argc, char **argv,
                          struct arguments *arguments)
{
    struct walcat_options *view = &arguments->view;
    const struct cli_option options[] = {
        {.name = "frames", .flag = &arguments->frames},
        {.name = "branch", .value = &view->branch},
        {.name = "up-to", .value = &view->up_to},
        {.name = "since-compaction", .flag = &view->since_compaction},
        {.name = "all", .flag = &view->all},
        {.name = "stream", .value = &arguments->stream},
        {.name = "type", .value = &view->type},
        {.name = "tail", .value = &arguments->tail},
        {.name = "deltas", .flag = &view->deltas},
        {.name = "redacted", .flag = &view->redacted},
        {.name = "text", .flag = &view->text},
        {.name = "tree", .flag = &arguments->tree},
        {.name = "follow", .flag = &view->follow},
        {.name = NULL},
    };
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE && cli->json && (view->text || arguments->tree)) {
        return cli_error(cli, CLI_USAGE, "--json", "not allowed with %s",
                         view->text ? "--text" : "a drawing of the branches");
    }
    if (code == CLI_CONTINUE && arguments->frames && !cli->names_store &&
        cli->count == 2) {
        /* agentwal cat --frames SEGMENT: not the store, but its segment. */
        cli->items++;
        cli->count--;
    }
    return code == CLI_CONTINUE ? check_options(cli, arguments) : code;
}

/* The session is optional for walcat, whose operands name the store. */
static int run(struct cli *cli, int argc, char **argv, bool is_tree)
{
    struct arguments arguments = {
        .view.tail = UINT64_MAX,
        .tree = is_tree,
    };
    int code = read_arguments(cli, argc, argv, &arguments);

    if (code != CLI_CONTINUE) {
        return code;
    }
    if (arguments.frames) {
        return walcat_print_frames(cli, cli->items[0]);
    }
    if (cli->count == 1 && arguments.view.follow) {
        return follow_all(cli, &arguments);
    }
    if (cli->count == 1 && !cli->names_store) {
        return cli_check_operands(cli, 2, 2);
    }
    return cli->count == 1 ? show_sessions(cli) : show_session(cli, &arguments);
}

int verb_cat(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, false);
}

int verb_tree(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, true);
}
