/*
 * agentwal.c - the program: runs a verb. walcat and walcheck are names of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/agentwal/verbs.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

/* --- print the help of the verbs, and the table as JSON ------------------- */

enum {
    INDENT = 23, /* of the text of an option */
    COLUMNS = 79
};

static const char *const group_titles[VERB_GROUP_COUNT] = {
    [VERB_CONVERT] = "Files of other clients",
    [VERB_READ] = "Read",
    [VERB_WRITE] = "Write",
    [VERB_FILES] = "Checkpoints of files",
    [VERB_CARE] = "Care of the store",
};

static const struct verb_option common_options[] = {
    {"--store DIR", "the store; else AGENTWAL_STORE, else\n"
                    "$XDG_DATA_HOME/agentwal (~/.local/share/agentwal)"},
    {"--json", "results and errors as JSON"},
    {"--no-color", "no colours; also with NO_COLOR in the environment"},
    {"--no-pager", "no pager on a terminal; it is PAGER, else less"},
    {"--no-progress", "no progress on standard error"},
    {"--strict", "refuse what recovery cannot decide"},
    {"--force-network-fs", "accept a store on a network file system"},
    {"--help, --version", "print this help or the version, and exit"},
    {NULL, NULL},
};

static const char overview_end[] = "\n"
                                   "Options of every verb:\n";

static const char names_text[] =
    "\n"
    "SESSION is an id, a unique beginning or ending of one (at least 4\n"
    "characters), @latest (the newest of the current directory), or the path of\n"
    "a file that was imported. ENTRY, HEAD and CHECKPOINT are ids, or unique\n"
    "beginnings or endings of them.\n"
    "\n"
    "Exit codes: 0 done; 1 the answer is no (damage found, conflict, not\n"
    "found); 2 the command line is wrong; 3 could not do it.\n"
    "\n"
    "Documents, which help names as docs/keeping.md, are in share/doc/agentwal of\n"
    "the folder that agentwal was installed to, such as /usr.\n";

/* Prints a text that starts at the column `indent`, broken between words. */
static void print_indented(FILE *file, const char *text, int indent)
{
    int column = indent;

    while (*text != '\0') {
        int size = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + size > COLUMNS) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) {
            putc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", size, text);
        column += size;
        text += size;
        text += *text != '\0' ? 1 : 0;
    }
}

static void print_options(FILE *file, const struct verb_option *options)
{
    for (; options->usage != NULL; options++) {
        if (strlen(options->usage) > INDENT - 4) {
            fprintf(file, "  %s\n%*s", options->usage, INDENT, "");
        } else {
            fprintf(file, "  %-*s", INDENT - 2, options->usage);
        }
        print_indented(file, options->text, INDENT);
        putc('\n', file);
    }
}

/* Prints the usage; its lines after the first one are other forms. A form that is too long for a
 * line is broken between its parts. */
static void print_usage(FILE *file, const struct verb *verb)
{
    static const char start[] = "Usage: agentwal ";
    int indent = (int)sizeof(start) - 1;
    int column = indent + (int)strlen(verb->name);
    const char *at = verb->help->usage;

    fprintf(file, "%s%s", start, verb->name);
    while (*at != '\0') {
        /* A part in brackets is not broken. */
        size_t size = strcspn(at, at[0] == '[' ? "]\n" : " \n");
        size += at[size] == ']' ? 1 : 0;
        size += strcspn(at + size, " \n");
        if (column + 1 + (int)size > COLUMNS) {
            fprintf(file, "\n%*s", indent + 3, "");
            column = indent + 3;
        }
        fprintf(file, " %.*s", (int)size, at);
        column += 1 + (int)size;
        at += size;
        if (*at == '\n') {
            fprintf(file, "\n%*s", indent - 1, "");
            column = indent - 1;
        }
        at += *at != '\0' ? 1 : 0;
    }
    putc('\n', file);
}

/* Returns the help of a verb, which the caller frees. */
static char *help_of_verb(const struct verb *verb)
{
    const struct verb_help *help = verb->help;
    const struct verb_example *example = help->examples;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    print_usage(file, verb);
    fprintf(file, "\n%s.\n", help->summary);
    if (help->text != NULL) {
        fprintf(file, "\n%s", help->text);
    }
    if (help->options[0].usage != NULL) {
        fputs("\nOptions:\n", file);
        print_options(file, help->options);
    }
    fputs("\nExamples:\n", file);
    for (; example->command != NULL; example++) {
        fprintf(file, "  %s\n      %s\n", example->command, example->text);
    }
    fputs("\nThe options of every verb: agentwal help\n", file);
    fclose(file);
    return text;
}

static void print_summary(const struct verb *verb)
{
    printf("  %-18s ", verb->name);
    print_indented(stdout, verb->help->summary, INDENT - 2);
    putchar('\n');
}

/* Prints the verbs by group. */
static void help_print_overview(void)
{
    const struct verb *verb;

    printf("Usage: agentwal [--store DIR] VERB [OPTION]... [ARGUMENT]...\n"
           "\n"
           "The store in which AI agents keep their sessions.\n"
           "\nEvery day:\n");
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if ((verb->flags & VERB_EVERY_DAY) != 0) {
            print_summary(verb);
        }
    }
    for (int group = 0; group < VERB_GROUP_COUNT; group++) {
        printf("\n%s:\n", group_titles[group]);
        for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
            if ((verb->flags & VERB_EVERY_DAY) == 0 && (int)verb->group == group) {
                print_summary(verb);
            }
        }
    }
    fputs(overview_end, stdout);
    print_options(stdout, common_options);
    fputs(names_text, stdout);
    printf("\nSee agentwal help VERB for its options and examples. Begin with:\n"
           "  agentwal adopt\n"
           "  agentwal list\n");
}

static void write_pair(struct wal__json_out *json, const char *key, const char *first,
                       const char *text)
{
    wal__json_out_open(json, '{');
    cli_json_member_text(json, key, cli_slice(first));
    cli_json_member_text(json, "text", cli_slice(text));
    wal__json_out_close(json, '}');
}

static void write_options(struct wal__json_out *json, const struct verb_option *options)
{
    wal__json_out_member_open(json, "options", '[');
    for (; options->usage != NULL; options++) {
        write_pair(json, "option", options->usage, options->text);
    }
    wal__json_out_close(json, ']');
}

static void write_verb(struct wal__json_out *json, const struct verb *verb)
{
    const struct verb_help *help = verb->help;
    const struct verb_example *example = help->examples;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "verb", cli_slice(verb->name));
    cli_json_member_text(json, "group", cli_slice(group_titles[verb->group]));
    cli_json_member_text(json, "usage", cli_slice(help->usage));
    cli_json_member_text(json, "summary", cli_slice(help->summary));
    cli_json_member_text_or_null(json, "text", cli_slice(help->text));
    write_options(json, help->options);
    wal__json_out_member_open(json, "examples", '[');
    for (; example->command != NULL; example++) {
        write_pair(json, "command", example->command, example->text);
    }
    wal__json_out_close(json, ']');
    wal__json_out_close_line(json);
}

/* Prints all verbs, and an object with the options of every verb. */
static void write_table(void)
{
    const struct verb *verb;
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        write_verb(&json, verb);
    }
    wal__json_out_open(&json, '{');
    cli_json_member_text_or_null(&json, "verb", cli_slice(NULL));
    write_options(&json, common_options);
    wal__json_out_close_line(&json);
}

static int print_verb(const struct cli *cli, const char *name)
{
    const struct verb *verb = verb_find(name);
    const char *nearest = verb_suggest(name);
    struct wal__json_out json;
    char *text;

    if (verb == NULL) {
        return cli_error(cli, CLI_USAGE, name, "no such verb%s%s",
                         nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "");
    }
    if (cli->json) {
        cli_json_init(&json, stdout);
        write_verb(&json, verb);
        return CLI_OK;
    }
    text = help_of_verb(verb);
    fputs(text, stdout);
    free(text);
    return CLI_OK;
}

int help_run(struct cli *cli, int argc, char **argv)
{
    int code = CLI_OK;

    cli_parse(cli, argc, argv, NULL);
    for (int i = 1; i < cli->count && code == CLI_OK; i++) {
        if (i == 1 || !verb_has_command(cli->items[i - 1], cli->items[i])) {
            code = print_verb(cli, cli->items[i]);
        }
    }
    if (cli->count == 1 && cli->json) {
        write_table();
    } else if (cli->count == 1) {
        help_print_overview();
    }
    return code;
}

/* --- the verb resume, of sessions here and of other machines -------------- */

static bool is_option(const char *argument, const char *name)
{
    size_t size = strlen(name);

    return strncmp(argument, name, size) == 0 && (argument[size] == '\0' || argument[size] == '=');
}

/* Whether the option is one of remotes. */
static bool is_of_remotes(const char *argument)
{
    static const char *const names[] = {"--remote", "--take-back", "--store-id", "--take-over"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_option(argument, names[i])) {
            return true;
        }
    }
    return false;
}

int agentwal_resume(struct cli *cli, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_of_remotes(argv[i])) {
            return remote_resume_run(cli, argc, argv);
        }
    }
    return resume_run(cli, argc, argv);
}

/* --- the program: runs a verb. walcat and walcheck are names of it -------- */

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
    memmove(&argv[at], &argv[at + count], (size_t)(*argc - at - count + 1) * sizeof(argv[0]));
    *argc -= count;
}

/* Removes the options --store before the verb and returns the index of the verb; 0 if there is
 * none. The other options before a verb are flags. */
static int find_verb(struct cli *cli, int *argc, char **argv)
{
    static const char option[] = "--store";
    size_t size = sizeof(option) - 1;
    int at = 1;

    while (at < *argc && argv[at][0] == '-') {
        if (strcmp(argv[at], option) == 0 && at + 1 < *argc) {
            cli->store_path = argv[at + 1];
            remove_arguments(argc, argv, at, 2);
        } else if (strncmp(argv[at], option, size) == 0 && argv[at][size] == '=') {
            cli->store_path = argv[at] + size + 1;
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
                         "no such verb; did you mean remote %s? (see agentwal help remote)", name);
    }
    if (nearest != NULL) {
        return cli_error(cli, CLI_USAGE, name, "no such verb; did you mean %s? (see agentwal help)",
                         nearest);
    }
    return cli_error(cli, CLI_USAGE, name, "no such verb (see agentwal help)");
}

/* Without a verb: the overview, or the version. */
static int run_bare(struct cli *cli, int argc, char **argv)
{
    cli->verb = "help";
    cli->store_at = CLI_NO_STORE;
    cli->help = "";
    cli_parse(cli, argc, argv, NULL);
    return cli_error(cli, CLI_USAGE, "VERB", "no verb given (see agentwal help)");
}

static bool wants_overview(int argc, char **argv)
{
    return argc == 1 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
}

/* Runs a verb with a line that has the operands which it takes, and `text` as its help. */
static int run_verb(struct cli *cli, const struct verb *verb, const char *text, int argc,
                    char **argv)
{
    int code;

    cli->help = text;
    cli->verb = verb->name;
    cli->store_at = verb->store_at;
    cli->adds_to_store = (verb->flags & VERB_ADDS) != 0;
    code = cli_close(cli, verb->run(cli, argc, argv));
    if ((verb->flags & VERB_FENCED) != 0 && code == CLI_OK) {
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
    static struct wal_error error = CLI_ERROR_INIT;
    static struct cli cli = {.tool = "agentwal", .verb = "help", .error = &error};
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
            return cli_finish(&cli,
                              run_verb(&cli, verb_find(names[i].verb), names[i].help, argc, argv));
        }
    }
    return cli_finish(&cli, argc > 0 ? run(&cli, argc, argv) : CLI_USAGE);
}
