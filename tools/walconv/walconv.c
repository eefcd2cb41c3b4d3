/*
 * walconv.c - takes session files into a store, and gives them back.
 *
 * Invariant: what comes in goes out again as the same bytes.
 *
 * Threads: one.
 */
#include "tools/walconv/walconv.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"

static const char help[] =
    "Usage: walconv COMMAND [OPTION]... [ARGUMENT]...\n"
    "\n"
    "  import [--dialect auto|NAME] STORE PATH...\n"
    "        take files, and all files below directories, into the store; a\n"
    "        file is a session, a line an entry; directories of sdk, spec11\n"
    "        and opencode are sessions too; again: only what is new\n"
    "  export --dialect source [--session SESSION]... STORE OUTDIR\n"
    "        give the files back, byte for byte; again: only what is new\n"
    "  export --dialect NAME [--session SESSION]... STORE OUTDIR\n"
    "        write sessions as that client has them, and say what is lost\n"
    "  export --dialect source|NAME --session SESSION --stdout STORE\n"
    "        one of them, on standard output\n"
    "  follow --dialect NAME STORE OUTDIR\n"
    "        keep such files current until interrupted\n"
    "  path --dialect source|NAME [--stream N] STORE OUTDIR SESSION\n"
    "        where that session's file lies\n"
    "  dialects\n"
    "        what import can read, export write, and each carries\n"
    "\n"
    "SESSION: an id, a unique beginning of one, @latest (of the current\n"
    "directory), or the path of a file that was imported.\n";

static bool carries(const struct wal__dialect *dialect, unsigned feature)
{
    return dialect->write_ops != NULL &&
           (dialect->write_ops->carries >> feature & 1) != 0;
}

/* Losses of no dialect in particular are no features. */
static bool is_feature(unsigned feature)
{
    return feature < WAL__FEATURE_FIELDS || feature == WAL__FEATURE_PARENTS;
}

/* `dialect` is null for the source. */
static void write_dialect(const char *name, const char *summary,
                          const struct wal__dialect *dialect)
{
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "name");
    cli_json_text(&json, cli_slice(name));
    cli_json_key(&json, "import");
    cli_json_bool(&json, dialect != NULL);
    cli_json_key(&json, "export");
    cli_json_bool(&json, dialect == NULL || dialect->write_ops != NULL);
    cli_json_key(&json, "summary");
    cli_json_text(&json, cli_slice(summary));
    cli_json_key(&json, "carries");
    cli_json_open(&json, '{');
    for (unsigned i = 0; dialect != NULL && i < WAL__FEATURE_COUNT; i++) {
        if (is_feature(i)) {
            cli_json_key_text(
                &json, cli_slice(wal__feature_text((enum wal__feature)i)));
            cli_json_bool(&json, carries(dialect, i));
        }
    }
    cli_json_close(&json, '}');
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void print_dialect(const struct cli *cli, const char *name,
                          const char *summary,
                          const struct wal__dialect *dialect)
{
    if (cli->json) {
        write_dialect(name, summary, dialect);
        return;
    }
    printf("%-8s  %-6s  %-6s  %s\n", name, dialect != NULL ? "import" : "-",
           dialect == NULL || dialect->write_ops != NULL ? "export" : "-",
           summary);
}

/* What each dialect that is written carries. */
static void print_features(void)
{
    const struct wal__dialect *dialect;

    printf("\n%-44s", "carried");
    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        if (dialect->write_ops != NULL) {
            printf("  %s", dialect->name);
        }
    }
    putchar('\n');
    for (unsigned f = 0; f < WAL__FEATURE_COUNT; f++) {
        if (!is_feature(f)) {
            continue;
        }
        printf("%-44s", wal__feature_text((enum wal__feature)f));
        for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
            if (dialect->write_ops != NULL) {
                printf("  %*s", (int)strlen(dialect->name),
                       carries(dialect, f) ? "yes" : "-");
            }
        }
        putchar('\n');
    }
}

static int walconv_dialects(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {{.name = NULL}};
    const struct wal__dialect *dialect;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 1, 1);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    print_dialect(cli, "source", "the files as they came in", NULL);
    for (size_t i = 0; (dialect = wal__dialect_at(i)) != NULL; i++) {
        print_dialect(cli, dialect->name, dialect->summary, dialect);
    }
    if (!cli->json) {
        print_features();
    }
    return CLI_OK;
}

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} commands[] = {
    {"import", walconv_import},     {"export", walconv_export},
    {"follow", walconv_follow},     {"path", walconv_path},
    {"dialects", walconv_dialects},
};

/* The first argument that is no option; common options take no argument. */
static const char *command_name(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            return argv[i];
        }
    }
    return NULL;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option none[] = {{.name = NULL}};
    const char *name = command_name(argc, argv);
    int code;

    for (size_t i = 0; name != NULL && i < sizeof(commands) / sizeof(*commands);
         i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return commands[i].run(cli, argc, argv);
        }
    }
    code = name != NULL ? CLI_CONTINUE : cli_parse(cli, argc, argv, none);
    if (code != CLI_CONTINUE) {
        return code;
    }
    return cli_error(cli, CLI_USAGE, name != NULL ? name : "COMMAND",
                     "%s (see walconv --help)",
                     name != NULL ? "no such command" : "no command given");
}

/* Long lines are read where they lie in a map of their file. */
static void handle_sigbus(int number)
{
    static const char text[] =
        "walconv: a file became shorter while it was read\n";
    ssize_t put = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)number;
    (void)put;
    _exit(CLI_FAILED);
}

int main(int argc, char **argv)
{
    const struct sigaction cut = {.sa_handler = handle_sigbus};
    struct cli cli = {.tool = "walconv", .help = help};

    cli_ensure_std_fds();
    (void)sigaction(SIGBUS, &cut, NULL);
    return cli_finish(&cli, run(&cli, argc, argv));
}
