/*
 * walconv.c - import session files into a store and export them.
 *
 * Invariant: exporting the source of an imported file gives the same bytes.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/walconv.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/suggest.h"

static const char help[] =
    "Usage: walconv COMMAND [OPTION]... [ARGUMENT]...\n"
    "\n"
    "  import [--dialect auto|NAME] [--all-files] [--follow] [--summary]\n"
    "         STORE PATH...\n"
    "        import files, and the files in directories; of clients' folders\n"
    "        the session files only, unless --all-files is given; a file\n"
    "        becomes a session and a line an entry; directories of sdk,\n"
    "        spec11 and opencode become sessions too; a repeated import adds\n"
    "        what is new; --follow then imports what changes; --summary adds\n"
    "        sums\n"
    "  export --dialect source [--session SESSION]... STORE OUTDIR\n"
    "        write imported files back, byte for byte; a repeated export adds\n"
    "        what is new\n"
    "  export --dialect NAME [--session SESSION]... STORE OUTDIR\n"
    "        write sessions in a client's format, and report what is lost\n"
    "  export --dialect source|NAME --session SESSION --stdout STORE\n"
    "        write one of them to standard output\n"
    "  follow --dialect NAME STORE OUTDIR\n"
    "        keep these files current until interrupted\n"
    "  path --dialect source|NAME [--stream N] STORE OUTDIR SESSION\n"
    "        print the path of a session's file\n"
    "  dialects\n"
    "        list dialects: whether each can be imported and exported, and\n"
    "        what it can represent\n"
    "\n"
    "SESSION: an id, a unique prefix of one, @latest (of the current\n"
    "directory), or the path of a file that was imported.\n";

static bool carries(const struct wal__dialect *dialect, unsigned feature)
{
    return dialect->write_ops != NULL &&
           (dialect->write_ops->carries >> feature & 1) != 0;
}

/* Features for losses of no particular dialect are not listed. */
static bool is_feature(unsigned feature)
{
    return feature < WAL__FEATURE_FIELDS || feature == WAL__FEATURE_PARENTS;
}

/* `dialect` is NULL for the source. */
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

/* Prints a table of what each writable dialect can represent. */
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

int walconv_dialects(struct cli *cli, int argc, char **argv)
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
    print_dialect(cli, "source", "the files as they were imported", NULL);
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

/* The first argument that is not an option; common options have no argument. */
static const char *command_name(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            return argv[i];
        }
    }
    return NULL;
}

static int report_no_command(const struct cli *cli, const char *name)
{
    struct cli_suggestion suggestion = {.typed = name};

    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        cli_suggest(&suggestion, commands[i].name);
    }
    if (suggestion.nearest != NULL) {
        return cli_error(cli, CLI_USAGE, name,
                         "no such command; did you mean %s? (see %s --help)",
                         suggestion.nearest, cli->tool);
    }
    return cli_error(cli, CLI_USAGE, name, "no such command (see %s --help)",
                     cli->tool);
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option no_options[] = {{.name = NULL}};
    const char *name = command_name(argc, argv);
    int code;

    for (size_t i = 0; name != NULL && i < sizeof(commands) / sizeof(*commands);
         i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return commands[i].run(cli, argc, argv);
        }
    }
    if (name != NULL) {
        return report_no_command(cli, name);
    }
    code = cli_parse(cli, argc, argv, no_options);
    return code != CLI_CONTINUE
               ? code
               : cli_error(cli, CLI_USAGE, "COMMAND",
                           "no command given (see %s --help)", cli->tool);
}

int walconv_main(int argc, char **argv)
{
    static struct cli cli = {.tool = "walconv", .help = help};

    return cli_finish(&cli, run(&cli, argc, argv));
}
