/*
 * help.c - print the help of the verbs, and the table as JSON.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/json.h"

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
    "characters), @latest (the newest of the current directory), or the path "
    "of\n"
    "a file that was imported. ENTRY, HEAD and CHECKPOINT are ids, or unique\n"
    "beginnings or endings of them.\n"
    "\n"
    "Exit codes: 0 done; 1 the answer is no (damage found, conflict, not\n"
    "found); 2 the command line is wrong; 3 could not do it.\n";

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
    for (; options != NULL && options->usage != NULL; options++) {
        if (strlen(options->usage) > INDENT - 4) {
            fprintf(file, "  %s\n%*s", options->usage, INDENT, "");
        } else {
            fprintf(file, "  %-*s", INDENT - 2, options->usage);
        }
        print_indented(file, options->text, INDENT);
        putc('\n', file);
    }
}

/* Prints the usage; its lines after the first one are other forms. A form that
 * is too long for a line is broken between its parts. */
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

char *help_of_verb(const struct verb *verb)
{
    const struct verb_help *help = verb->help;
    const struct verb_example *example = help->examples;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return cli_copy_text("", 0);
    }
    print_usage(file, verb);
    fprintf(file, "\n%s.\n", help->summary);
    if (help->text != NULL) {
        fprintf(file, "\n%s", help->text);
    }
    if (help->options != NULL) {
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

void help_print_overview(void)
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
            if ((verb->flags & VERB_EVERY_DAY) == 0 &&
                (int)verb->group == group) {
                print_summary(verb);
            }
        }
    }
    fputs(overview_end, stdout);
    print_options(stdout, common_options);
    fputs(names_text, stdout);
    printf(
        "\nSee agentwal help VERB for its options and examples. Begin with:\n"
        "  agentwal import ~/.claude\n"
        "  agentwal list\n");
}

static void write_pairs(struct wal__json_out *json, const char *key,
                        const char *name, const char *first, const char *text)
{
    wal__json_out_open(json, '{');
    cli_json_member_text(json, key, cli_slice(first));
    cli_json_member_text(json, name, cli_slice(text));
    wal__json_out_close(json, '}');
}

static void write_options(struct wal__json_out *json,
                          const struct verb_option *options)
{
    wal__json_out_member_open(json, "options", '[');
    for (; options != NULL && options->usage != NULL; options++) {
        write_pairs(json, "option", "text", options->usage, options->text);
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
        write_pairs(json, "command", "text", example->command, example->text);
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
                         nearest != NULL ? "; did you mean " : "",
                         nearest != NULL ? nearest : "");
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
    static const struct cli_option no_options[] = {{.name = NULL}};
    int code = cli_parse(cli, argc, argv, no_options);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = CLI_OK;
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
