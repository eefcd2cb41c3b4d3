/*
 * walctl - makes stores and sessions, appends to them, and tells of them.
 *
 * Invariant: a command answers only after what it did is as durable as it was
 * asked to be.
 *
 * Threads: one.
 */
#include "tools/walctl.h"

#include <string.h>

static const char help[] =
    "Usage: walctl COMMAND [OPTION]... STORE [ARGUMENT]...\n"
    "\n"
    "  init STORE                     make a store\n"
    "  create STORE [--id ID] [--cwd DIR] [--title T] [--meta JSON]\n"
    "                                 make a session, print its id\n"
    "  append STORE SESSION [--each] [--expect-tail ENTRY] [--stream N]\n"
    "         [--durability durable|written|queued] < entries.jsonl\n"
    "                                 append entries, a JSON object a line\n"
    "  list STORE [--cwd DIR] [--project ID] [--limit N]\n"
    "                                 sessions, newest first\n"
    "  latest STORE [--cwd DIR]       id of the newest session\n"
    "  show STORE SESSION             all about a session\n"
    "  children STORE SESSION         sessions that came from it\n"
    "  fork STORE SESSION [--at ENTRY] [--id NEW]\n"
    "                                 fork a session, print the new id\n"
    "  stats STORE                    counts and sizes\n"
    "  accept-damage STORE [SESSION]  let damaged sessions take appends\n"
    "\n"
    "SESSION: an id, a unique beginning of one, @latest (of the current\n"
    "directory), or the path of a file that was imported.\n";

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} commands[] = {
    {"init", walctl_init},         {"create", walctl_create},
    {"append", walctl_append},     {"list", walctl_list},
    {"latest", walctl_latest},     {"show", walctl_show},
    {"children", walctl_children}, {"fork", walctl_fork},
    {"stats", walctl_stats},       {"accept-damage", walctl_accept_damage},
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
    code = name != NULL ? CLI_GO_ON : cli_parse(cli, argc, argv, none);
    if (code != CLI_GO_ON) {
        return code;
    }
    return cli_error(cli, CLI_USAGE, name, "%s (see walctl --help)",
                     name != NULL ? "no such command" : "no command given");
}

int main(int argc, char **argv)
{
    struct cli cli = {.tool = "walctl", .help = help};

    return cli_finish(&cli, run(&cli, argc, argv));
}
