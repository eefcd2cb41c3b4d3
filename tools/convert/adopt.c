/*
 * adopt.c - the verb adopt: finds the clients of this user, and imports
 * their sessions.
 *
 * Invariant: nothing is written before the user agrees. What is printed are
 * names of folders and numbers, never content.
 *
 * Threads: the tools are single-threaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/convert/adopt_unit.h"
#include "tools/convert/import_run.h"

enum {
    CLIENTS_MAX = 16
};

struct adopt {
    const struct cli *cli;
    const char *store;
    bool is_agreed;
    bool installs;
    bool uninstalls;
    bool is_verbose;
    struct wal_import_client clients[CLIENTS_MAX];
    struct wal_import_result plans[CLIENTS_MAX];
    size_t count;
};

/* ----------------------------------------------------------------- plan --- */

/* Whether the folder is that of a client before. */
static bool is_known(const struct adopt *adopt, const char *folder)
{
    for (size_t i = 0; i < adopt->count; i++) {
        if (strcmp(adopt->clients[i].folder, folder) == 0) {
            return true;
        }
    }
    return false;
}

/* Counts what is in the folder of a client. */
static bool scan_client(struct adopt *adopt,
                        const struct wal_import_client *client)
{
    const struct wal_slice path = cli_slice(client->folder);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result plan = WAL_INIT(wal_import_result);

    options.exclude = cli_slice(adopt->store);
    if (access(client->folder, F_OK) != 0 ||
        wal_import_scan(&path, 1, &options, &plan, NULL) != WAL_OK) {
        return false;
    }
    adopt->clients[adopt->count] = *client;
    adopt->plans[adopt->count++] = plan;
    return true;
}

static void find_clients(struct adopt *adopt)
{
    struct wal_import_client client;

    for (uint32_t i = 0; adopt->count < CLIENTS_MAX; i++) {
        enum wal_status status;

        client = (struct wal_import_client)WAL_INIT(wal_import_client);
        status = wal_import_client(i, &client, NULL);
        if (status == WAL_END) {
            break;
        }
        if (status == WAL_OK && !is_known(adopt, client.folder)) {
            (void)scan_client(adopt, &client);
        }
    }
}

static uint64_t count_sessions(const struct adopt *adopt)
{
    uint64_t sessions = 0;

    for (size_t i = 0; i < adopt->count; i++) {
        sessions += adopt->plans[i].sessions;
    }
    return sessions;
}

static void write_plan(const struct wal_import_client *client,
                       const struct wal_import_result *plan)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "client", cli_slice(client->name));
    cli_json_member_text(&json, "dialect", cli_slice(client->dialect));
    cli_json_member_text(&json, "folder", cli_slice(client->folder));
    wal__json_out_member_count(&json, "sessions", plan->sessions);
    wal__json_out_member_count(&json, "bytes", plan->bytes);
    wal__json_out_member_open(&json, "leftOut", '{');
    for (uint32_t i = 0; i < WAL_IMPORT_LEFT_OUT_SIZE; i++) {
        cli_json_key_text(&json, cli_slice(wal_import_left_out_name(i)));
        wal__json_out_count(&json, plan->left_out[i]);
    }
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_plan(const struct adopt *adopt)
{
    for (size_t i = 0; i < adopt->count; i++) {
        const struct wal_import_result *plan = &adopt->plans[i];

        if (adopt->cli->json) {
            write_plan(&adopt->clients[i], plan);
            continue;
        }
        printf("%s: ", adopt->clients[i].name);
        cli_print_name(stdout, cli_slice(adopt->clients[i].folder));
        printf(": %" PRIu64 " %s, ", plan->sessions,
               cli_plural(plan->sessions, "session", "sessions"));
        convert_print_bytes(stdout, plan->bytes);
        putchar('\n');
        convert_print_left_out(stdout, "    left out: ", plan);
    }
    if (!adopt->cli->json) {
        fputs("store: ", stdout);
        cli_print_name(stdout, cli_slice(adopt->store));
        putchar('\n');
    }
    fflush(stdout);
}

/* ------------------------------------------------------------- question --- */

/* Asks on the terminal. */
static bool ask(const struct adopt *adopt)
{
    char answer[16];

    fprintf(stderr, "Import %" PRIu64 " %s%s? [y/N] ", count_sessions(adopt),
            cli_plural(count_sessions(adopt), "session", "sessions"),
            adopt->installs ? ", and follow these folders from now on" : "");
    fflush(stderr);
    return fgets(answer, sizeof(answer), stdin) != NULL &&
           (answer[0] == 'y' || answer[0] == 'Y');
}

/* Returns CLI_CONTINUE if the user agrees. */
static int agree(const struct adopt *adopt)
{
    if (adopt->is_agreed) {
        return CLI_CONTINUE;
    }
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        return cli_error(adopt->cli, CLI_OK, NULL,
                         "nothing was imported: this is the plan; do it with "
                         "--yes");
    }
    return ask(adopt)
               ? CLI_CONTINUE
               : cli_error(adopt->cli, CLI_OK, NULL, "nothing was imported");
}

/* --------------------------------------------------------------- import --- */

static void print_next(const struct adopt *adopt)
{
    fputs("to follow these folders: agentwal import --follow", stdout);
    for (size_t i = 0; i < adopt->count; i++) {
        putchar(' ');
        cli_print_name(stdout, cli_slice(adopt->clients[i].folder));
    }
    puts("\nto do so at each login: agentwal adopt --install");
}

/* Imports the folders of all clients. */
static int import_clients(const struct adopt *adopt, struct wal_store *store)
{
    struct convert_run run = {.cli = adopt->cli,
                              .exclude = adopt->store,
                              .is_verbose = adopt->is_verbose};
    struct wal_slice paths[CLIENTS_MAX];
    int code;

    for (size_t i = 0; i < adopt->count; i++) {
        paths[i] = cli_slice(adopt->clients[i].folder);
    }
    code = convert_run_import(&run, store, paths, (uint32_t)adopt->count);
    convert_run_print(&run);
    convert_run_deinit(&run);
    return code;
}

static int import_and_install(const struct adopt *adopt)
{
    const struct cli *cli = adopt->cli;
    struct wal_store *store = NULL;
    char *absolute;
    int code;

    convert_catch_signals();
    code = cli_open_store(cli, adopt->store, 0, &store);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = import_clients(adopt, store);
    code = cli_close_store(cli, adopt->store, store, code);
    convert_end_interrupted(cli);
    if (adopt->installs) {
        absolute = cli_absolute_path(adopt->store);
        code = cli_worse_code(
            code,
            adopt_unit_install(cli, absolute, adopt->clients, adopt->count));
        free(absolute);
    } else if (!cli->json) {
        print_next(adopt);
    }
    return code;
}

static int adopt_clients(struct adopt *adopt)
{
    int code;

    find_clients(adopt);
    if (adopt->count == 0) {
        return cli_error(adopt->cli, CLI_NEGATIVE, NULL,
                         "no folder of a known client was found (see: agentwal "
                         "help import)");
    }
    print_plan(adopt);
    code = agree(adopt);
    return code == CLI_CONTINUE ? import_and_install(adopt) : code;
}

int verb_adopt(struct cli *cli, int argc, char **argv)
{
    struct adopt *adopt = cli_alloc(sizeof(*adopt));
    const struct cli_option options[] = {
        {.name = "yes", .letter = 'y', .flag = &adopt->is_agreed},
        {.name = "install", .flag = &adopt->installs},
        {.name = "uninstall", .flag = &adopt->uninstalls},
        {.name = "verbose", .letter = 'v', .flag = &adopt->is_verbose},
        {.name = NULL},
    };
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE && adopt->installs && adopt->uninstalls) {
        code = cli_error(cli, CLI_USAGE, "--install",
                         "not together with --uninstall");
    }
    if (code == CLI_CONTINUE) {
        adopt->cli = cli;
        adopt->store = cli->items[1];
        code = adopt->uninstalls ? adopt_unit_uninstall(cli)
                                 : adopt_clients(adopt);
    }
    free(adopt);
    return code;
}
