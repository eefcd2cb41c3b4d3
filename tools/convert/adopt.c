/*
 * adopt.c - the verb adopt: finds the clients of this user, imports their sessions, and writes and
 * removes the systemd user unit that follows their folders.
 *
 * Invariant: nothing is written before the user agrees. What is printed are names of folders and
 * numbers, never content. The unit is enabled by its link, so that it runs from the next login on,
 * whether systemd runs now or not.
 */
#include "tools/convert/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "engine/base/system.h"
#include "tools/cli/verbs.h"

#define UNIT "agentwal-import.service"

#define WANTS "default.target.wants"

extern char **environ;

/* ---------------------------------------------------------------- paths --- */

static char *units_folder(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");

    if (base != NULL && base[0] == '/') {
        return cli_keep(cli_format("%s/systemd/user", base));
    }
    base = getenv("HOME");
    return base != NULL && base[0] == '/' ? cli_keep(cli_format("%s/.config/systemd/user", base))
                                          : NULL;
}

/* Returns the path of the unit's file. NULL: neither XDG_CONFIG_HOME nor HOME is set. */
static char *adopt_unit_path(void)
{
    char *folder = units_folder();

    return folder != NULL ? cli_keep(cli_format("%s/%s", folder, UNIT)) : NULL;
}

/* Creates a folder and those above it. */
static void make_folders(const char *path)
{
    char *copy = cli_copy_text(path, strlen(path));

    for (char *at = copy + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(copy, 0755);
            *at = '/';
        }
    }
    (void)mkdir(copy, 0755);
    free(copy);
}

/* -------------------------------------------------------------- content --- */

/* Writes a text as one quoted word of a unit. In a command systemd expands $, in Environment= it
 * does not. Returns false if the text has control characters. */
static bool put_word(FILE *file, const char *text, bool is_command)
{
    putc('"', file);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 127) {
            return false;
        }
        if (*text == '"' || *text == '\\') {
            putc('\\', file);
        } else if (*text == '%' || (*text == '$' && is_command)) {
            putc(*text, file);
        }
        putc(*text, file);
    }
    putc('"', file);
    return true;
}

/* Writes the assignment of a variable that is set to a folder. */
static bool put_variable(FILE *file, const char *name)
{
    const char *value = getenv(name);
    bool is_valid = true;

    if (value != NULL && value[0] == '/') {
        fputs("Environment=", file);
        is_valid = put_word(file, cli_keep(cli_format("%s=%s", name, value)), false);
        putc('\n', file);
    }
    return is_valid;
}

/* Passes on the variables that name clients' folders. That of several clients is the last. */
static bool put_environment(FILE *file)
{
    const struct wal__client *client;
    bool is_valid = true;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        for (size_t f = 0; f < WAL__CLIENT_FOLDERS; f++) {
            const char *name = client->folders[f].variable;

            if (name != NULL && strcmp(name, "XDG_DATA_HOME") != 0) {
                is_valid = put_variable(file, name) && is_valid;
            }
        }
    }
    return put_variable(file, "XDG_DATA_HOME") && is_valid;
}

/* Writes the unit; returns false if a path cannot be written in one. */
static bool put_unit(FILE *file, const char *program, const char *store,
                     const struct wal_import_client *clients, size_t count)
{
    bool is_valid = true;

    fputs("[Unit]\n"
          "Description=Import the sessions of AI agents into agentwal\n"
          "\n"
          "[Service]\n"
          "Nice=10\n"
          "Restart=on-failure\n"
          "RestartSec=10\n",
          file);
    is_valid = put_environment(file);
    fputs("ExecStart=", file);
    is_valid = put_word(file, program, true) && is_valid;
    fputs(" --store ", file);
    is_valid = put_word(file, store, true) && is_valid;
    fputs(" import --follow", file);
    for (size_t i = 0; i < count; i++) {
        if (clients[i].dialect[0] != '\0') {
            putc(' ', file);
            is_valid = put_word(file, clients[i].folder, true) && is_valid;
        }
    }
    fputs("\n"
          "\n"
          "[Install]\n"
          "WantedBy=default.target\n",
          file);
    return is_valid;
}

/* Writes the file next to its final name, and renames it. Returns 0 or an errno value; EINVAL: a
 * path has control characters. */
static int write_unit(const char *path, const char *store, const struct wal_import_client *clients,
                      size_t count)
{
    char program[PATH_MAX];
    char *temporary;
    FILE *file;
    int number = 0;

    if (wal__system_program(program, sizeof(program)) < 0) {
        return errno;
    }
    temporary = cli_keep(cli_format("%s.tmp", path));
    file = fopen(temporary, "we");
    if (file == NULL) {
        number = errno;
    } else {
        number = put_unit(file, program, store, clients, count) ? 0 : EINVAL;
        if (fclose(file) != 0 && number == 0) {
            number = errno;
        }
        if (number == 0 && rename(temporary, path) != 0) {
            number = errno;
        }
        if (number != 0) {
            (void)unlink(temporary);
        }
    }
    return number;
}

/* ------------------------------------------------------------ systemctl --- */

/* Runs systemctl --user with up to two words. Returns true if it succeeded. */
static bool run_systemctl(const char *first, const char *second)
{
    char *arguments[] = {(char *)"systemctl", (char *)"--user", (char *)(uintptr_t)first,
                         (char *)(uintptr_t)second, NULL};
    posix_spawn_file_actions_t actions;
    bool is_started = false;
    pid_t child = 0;
    int result = 0;

    fflush(stdout);
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0) {
        is_started = posix_spawnp(&child, "systemctl", &actions, NULL, arguments, environ) == 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    while (is_started && waitpid(child, &result, 0) < 0) {
        is_started = errno == EINTR;
    }
    return is_started && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

/* Enables the unit as systemctl does, without systemd. Returns 0 or an errno value. */
static int enable(const char *folder)
{
    char *wants = cli_keep(cli_format("%s/%s", folder, WANTS));
    char *link = cli_keep(cli_format("%s/%s", wants, UNIT));
    int number = 0;

    make_folders(wants);
    if ((unlink(link) != 0 && errno != ENOENT) || symlink("../" UNIT, link) != 0) {
        number = errno;
    }
    return number;
}

/* ------------------------------------------------------------ interface --- */

/* Writes and enables the unit, and starts it. `store` and the folders are absolute. Prints what was
 * done and what could not be started. Returns an exit code. */
static int unit_install(const struct cli *cli, const char *store,
                        const struct wal_import_client *clients, size_t count)
{
    char *folder = units_folder();
    char *path = adopt_unit_path();
    int number = ENOENT;

    if (path != NULL) {
        make_folders(folder);
        number = write_unit(path, store, clients, count);
        number = number == 0 ? enable(folder) : number;
    }
    if (number != 0) {
        (void)cli_error(cli, CLI_OK, path != NULL ? path : "HOME", "%s",
                        number == EINVAL ? "a path has control characters, which a unit "
                                           "cannot name"
                                         : strerror(number));
    } else {
        fputs("installed ", stdout);
        cli_print_name(stdout, cli_slice(path));
        putchar('\n');
        if (run_systemctl("daemon-reload", NULL) && run_systemctl("restart", UNIT)) {
            puts("started " UNIT);
        } else {
            cli_error(cli, CLI_OK, UNIT,
                      "could not be started: systemd does not answer; it "
                      "starts at the next login, or with: systemctl --user "
                      "start " UNIT);
        }
    }
    return number == 0 ? CLI_OK : CLI_FAILED;
}

/* Stops and removes the unit. Returns an exit code. */
static int unit_uninstall(const struct cli *cli)
{
    char *folder = units_folder();
    char *path = adopt_unit_path();
    char *link = folder != NULL ? cli_keep(cli_format("%s/%s", folder, WANTS "/" UNIT)) : NULL;
    int code = CLI_OK;

    if (path == NULL || access(path, F_OK) != 0) {
        puts("no unit is installed");
    } else {
        (void)run_systemctl("stop", UNIT);
        if ((unlink(link) != 0 && errno != ENOENT) || unlink(path) != 0) {
            code = cli_error(cli, CLI_FAILED, path, "%s", strerror(errno));
        } else {
            (void)run_systemctl("daemon-reload", NULL);
            fputs("removed ", stdout);
            cli_print_name(stdout, cli_slice(path));
            putchar('\n');
        }
    }
    return code;
}

/* --- the verb ----------------------------------------------------------- */

enum { CLIENTS_MAX = 64 };

struct adopt {
    const struct cli *cli;
    const char *store;
    bool is_agreed;
    bool installs;
    bool uninstalls;
    bool is_verbose;
    struct wal_import_client clients[CLIENTS_MAX];
    struct wal_import_result plans[CLIENTS_MAX];
    struct cli_texts unread[CLIENTS_MAX]; /* of the client: why sessions cannot be read */
    size_t count;
};

/* ----------------------------------------------------------------- plan --- */

/* Whether the folder is that of a client before, or below it. */
static bool is_known(const struct adopt *adopt, const char *folder)
{
    for (size_t i = 0; i < adopt->count; i++) {
        size_t size = strlen(adopt->clients[i].folder);

        if (strncmp(adopt->clients[i].folder, folder, size) == 0 &&
            (folder[size] == '\0' || folder[size] == '/')) {
            return true;
        }
    }
    return false;
}

static bool is_read(const struct wal_import_client *client)
{
    return client->dialect[0] != '\0';
}

static bool is_any_read(const struct adopt *adopt)
{
    bool is_any = false;

    for (size_t i = 0; i < adopt->count; i++) {
        is_any = is_any || is_read(&adopt->clients[i]);
    }
    return is_any;
}

/* Keeps what the scan reports about sessions that cannot be read. */
static int32_t keep_unread(void *ctx, const struct wal_import_report *report)
{
    const char *text = report->error->text;

    if (report->status == WAL_EVERSION) {
        cli_texts_add(ctx, cli_slice(text));
    } else if (report->status != WAL_OK) {
        cli_texts_add(
            ctx, cli_slice(cli_keep(cli_format("%s: %s", (const char *)report->path.data, text))));
    }
    return 0;
}

/* Counts what is in the folder of a client. */
static bool scan_client(struct adopt *adopt, const struct wal_import_client *client)
{
    const struct wal_slice path = cli_slice(client->folder);
    struct wal_import_options options = WAL_INIT(wal_import_options);
    struct wal_import_result plan = WAL_INIT(wal_import_result);

    options.exclude = cli_slice(adopt->store);
    options.report = keep_unread;
    options.ctx = &adopt->unread[adopt->count];
    if (access(client->folder, F_OK) != 0 ||
        wal_import_scan(&path, 1, &options, &plan, NULL) != WAL_OK ||
        (!is_read(client) && plan.failed == 0)) {
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

static bool has_unread(const struct adopt *adopt)
{
    bool has = false;

    for (size_t i = 0; i < adopt->count; i++) {
        has = has || adopt->unread[i].count > 0;
    }
    return has;
}

static uint64_t count_sessions(const struct adopt *adopt)
{
    uint64_t sessions = 0;

    for (size_t i = 0; i < adopt->count; i++) {
        sessions += adopt->plans[i].sessions;
    }
    return sessions;
}

static void write_plan(const struct wal_import_client *client, const struct wal_import_result *plan,
                       const struct cli_texts *unread)
{
    struct wal__json_out json;

    cli_json_begin(&json);
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
    wal__json_out_member_open(&json, "unread", '[');
    for (size_t i = 0; i < unread->count; i++) {
        cli_json_text(&json, cli_slice(unread->items[i]));
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_unread(const struct cli_texts *unread)
{
    for (size_t i = 0; i < unread->count && i < CONVERT_NAMES_MAX; i++) {
        fputs("    ", stdout);
        cli_print_name(stdout, cli_slice(unread->items[i]));
        putchar('\n');
    }
    if (unread->count > CONVERT_NAMES_MAX) {
        printf("    and %zu more that cannot be read\n", unread->count - CONVERT_NAMES_MAX);
    }
}

static void print_plan(const struct adopt *adopt)
{
    for (size_t i = 0; i < adopt->count; i++) {
        const struct wal_import_result *plan = &adopt->plans[i];

        if (adopt->cli->json) {
            write_plan(&adopt->clients[i], plan, &adopt->unread[i]);
            continue;
        }
        printf("%s: ", adopt->clients[i].name);
        cli_print_name(stdout, cli_slice(adopt->clients[i].folder));
        printf(": %s, ", cli_counted(plan->sessions, "session", "sessions"));
        convert_print_bytes(plan->bytes);
        putchar('\n');
        convert_print_left_out("    left out: ", plan);
        print_unread(&adopt->unread[i]);
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

    fprintf(stderr, "Import %s%s? [y/N] ",
            cli_counted(count_sessions(adopt), "session", "sessions"),
            adopt->installs ? ", and follow these folders from now on" : "");
    fflush(stderr);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Ends the process unless the user agrees. */
static void agree(const struct adopt *adopt)
{
    if (adopt->is_agreed || (count_sessions(adopt) == 0 && !adopt->installs)) {
        return;
    }
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        cli_fail(adopt->cli, has_unread(adopt) ? CLI_NEGATIVE : CLI_OK, NULL,
                 "nothing was imported: this is the plan; do it with --yes");
    }
    if (!ask(adopt)) {
        cli_fail(adopt->cli, CLI_OK, NULL, "nothing was imported");
    }
}

/* --------------------------------------------------------------- import --- */

static void print_next(const struct adopt *adopt)
{
    fputs("to follow these folders: agentwal import --follow", stdout);
    for (size_t i = 0; i < adopt->count; i++) {
        if (is_read(&adopt->clients[i])) {
            putchar(' ');
            cli_print_name(stdout, cli_slice(adopt->clients[i].folder));
        }
    }
    puts("\nto do so at each login: agentwal adopt --install");
}

/* Imports the folders of all clients, unless there is nothing to import into a new store. Returns
 * the exit code. */
static int import_clients(const struct adopt *adopt, struct convert_run *run)
{
    const struct cli *cli = adopt->cli;
    struct wal_slice paths[CLIENTS_MAX];
    struct wal_store *store;
    int code;

    for (size_t i = 0; i < adopt->count; i++) {
        paths[i] = cli_slice(adopt->clients[i].folder);
    }
    if ((!adopt->installs || !is_any_read(adopt)) &&
        convert_run_is_empty(run, paths, (uint32_t)adopt->count)) {
        convert_run_print(run);
        return run->code;
    }
    store = cli_open_store(cli, adopt->store, 0);
    code = convert_run_import(run, store, paths, (uint32_t)adopt->count);
    convert_run_print(run);
    return cli_close_store(cli, adopt->store, store, code);
}

static int import_and_install(const struct adopt *adopt)
{
    const struct cli *cli = adopt->cli;
    static struct convert_run run;
    int code;

    run.cli = cli;
    run.exclude = adopt->store;
    run.is_verbose = adopt->is_verbose;
    run.hides_unread = !cli->json; /* the plan has them */
    run.has_found_paths = true;
    convert_catch_signals();
    code = import_clients(adopt, &run);
    convert_end_interrupted(cli);
    if (access(adopt->store, F_OK) != 0 || !is_any_read(adopt)) {
        return code;
    }
    if (adopt->installs) {
        code = cli_worse_code(
            code, unit_install(cli, cli_keep_absolute(adopt->store), adopt->clients, adopt->count));
    } else if (!cli->json) {
        print_next(adopt);
    }
    return code;
}

static int adopt_clients(struct adopt *adopt)
{
    find_clients(adopt);
    if (adopt->count == 0) {
        cli_fail(adopt->cli, CLI_NEGATIVE, NULL,
                 "no folder of a known client was found (see: agentwal help import)");
    }
    print_plan(adopt);
    agree(adopt);
    return import_and_install(adopt);
}

int verb_adopt(struct cli *cli, int argc, char **argv)
{
    struct adopt *adopt = cli_keep(cli_alloc(sizeof(*adopt)));
    const struct cli_option options[] = {
        {.name = "yes", .letter = 'y', .flag = &adopt->is_agreed},
        {.name = "install", .flag = &adopt->installs},
        {.name = "uninstall", .flag = &adopt->uninstalls},
        {.name = "verbose", .letter = 'v', .flag = &adopt->is_verbose},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    if (adopt->installs && adopt->uninstalls) {
        cli_fail(cli, CLI_USAGE, "--install", "not together with --uninstall");
    }
    adopt->cli = cli;
    adopt->store = cli->items[1];
    return adopt->uninstalls ? unit_uninstall(cli) : adopt_clients(adopt);
}
