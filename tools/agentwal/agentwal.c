/*
 * agentwal.c - the program: runs a verb. walcat and walcheck are names of it.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/agentwal/help.h"
#include "tools/remote/verbs.h"

/* Other names of the program: the first operand is the store. */
static const struct {
    const char *name;
    const char *verb;
    const char *help;
} names[] = {
    {"walcat", "cat",
     "Usage: walcat STORE [SESSION] [OPTION]...\n\n"
     "What agentwal list prints of the store, or agentwal cat of the session;\n"
     "with --tree, agentwal tree. agentwal help cat has the options.\n"},
    {"walcheck", "check",
     "Usage: walcheck [OPTION]... STORE\n"
     "       walcheck --salvage OUT STORE\n\n"
     "What agentwal check does, and agentwal salvage. agentwal help check has\n"
     "the options.\n"},
};

/* Removes `count` arguments. */
static void remove_arguments(int *argc, char **argv, int at, int count)
{
    memmove(&argv[at], &argv[at + count],
            (size_t)(*argc - at - count + 1) * sizeof(argv[0]));
    *argc -= count;
}

/* Removes the options --store before the verb and returns the index of the
 * verb; 0 if there is none. The other options before a verb are flags. */
static int find_verb(struct cli *cli, int *argc, char **argv)
{
    static const char option[] = "--store";
    size_t size = sizeof(option) - 1;
    int at = 1;

    while (at < *argc && argv[at][0] == '-') {
        if (strcmp(argv[at], option) == 0 && at + 1 < *argc) {
            cli->store = argv[at + 1];
            remove_arguments(argc, argv, at, 2);
        } else if (strncmp(argv[at], option, size) == 0 &&
                   argv[at][size] == '=') {
            cli->store = argv[at] + size + 1;
            remove_arguments(argc, argv, at, 1);
        } else {
            at++;
        }
    }
    return at < *argc ? at : 0;
}

static int report_no_verb(const struct cli *cli, const char *name)
{
    const char *nearest = verb_suggest(name);

    if (verb_has_command("remote", name)) {
        return cli_error(cli, CLI_USAGE, name,
                         "no such verb; did you mean remote %s? (see agentwal "
                         "help remote)",
                         name);
    }
    if (nearest != NULL) {
        return cli_error(cli, CLI_USAGE, name,
                         "no such verb; did you mean %s? (see agentwal help)",
                         nearest);
    }
    return cli_error(cli, CLI_USAGE, name, "no such verb (see agentwal help)");
}

/* Without a verb: the overview, or the version. */
static int run_bare(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option no_options[] = {{.name = NULL}};
    int code;

    cli->verb = "help";
    cli->store_at = CLI_NO_STORE;
    cli->help = "";
    code = cli_parse(cli, argc, argv, no_options);
    if (code == CLI_CONTINUE && argc > 1) {
        return cli_error(cli, CLI_USAGE, "VERB",
                         "no verb given (see agentwal help)");
    }
    return code;
}

static bool wants_overview(int argc, char **argv)
{
    return argc == 1 || strcmp(argv[1], "--help") == 0 ||
           strcmp(argv[1], "-h") == 0;
}

/* Runs a verb with a line that has the operands which it takes, and `text` as
 * its help. */
static int run_verb(struct cli *cli, const struct verb *verb, const char *text,
                    int argc, char **argv)
{
    int code;

    cli->help = text;
    cli->verb = verb->name;
    cli->store_at = verb->store_at;
    cli->adds_to_store = (verb->flags & VERB_ADDS) != 0;
    code = verb->run(cli, argc, argv);
    if ((verb->flags & VERB_FENCED) != 0 && code == CLI_OK &&
        cli->items != NULL) { /* it did not print its help alone */
        remote_note_fenced(cli);
    }
    return code;
}

static int run(struct cli *cli, int argc, char **argv)
{
    int at = find_verb(cli, &argc, argv);
    const struct verb *verb;
    char *text;
    int code;

    if (at == 0 && wants_overview(argc, argv)) {
        help_print_overview();
        return CLI_OK;
    }
    if (at == 0) {
        return run_bare(cli, argc, argv);
    }
    verb = verb_find(argv[at]);
    if (verb == NULL) {
        return report_no_verb(cli, argv[at]);
    }
    if ((verb->flags & VERB_NAMELESS) != 0) {
        remove_arguments(&argc, argv, at, 1);
    }
    text = help_of_verb(verb);
    code = run_verb(cli, verb, text, argc, argv);
    free(text);
    return code;
}

int main(int argc, char **argv)
{
    static struct cli cli = {.tool = "agentwal", .verb = "help"};
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : argc > 0 ? argv[0] : "";

    cli_ensure_std_fds();
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        cli.json_errors = cli.json_errors || strcmp(argv[i], "--json") == 0;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, name) == 0) {
            cli.tool = name;
            cli.names_store = true;
            return cli_finish(&cli, run_verb(&cli, verb_find(names[i].verb),
                                             names[i].help, argc, argv));
        }
    }
    return cli_finish(&cli, argc > 0 ? run(&cli, argc, argv) : CLI_USAGE);
}
