/*
 * walctl.c - the tool: creates stores and sessions, appends to them, and
 * reports on them.
 *
 * Invariant: a command prints its result only after it is as durable as was
 * requested.
 *
 * Threads: the tool has one thread.
 */
#include "tools/walctl/walctl.h"

#include <string.h>

#include "tools/cli/suggest.h"

static const char help[] =
    "Usage: walctl COMMAND [OPTION]... STORE [ARGUMENT]...\n"
    "\n"
    "  init STORE                     create a store\n"
    "  create STORE [--id ID] [--cwd DIR] [--project ID] [--title T]\n"
    "         [--meta JSON]           create a session, print its id\n"
    "  append STORE SESSION [--create] [--each] [--expect-tail ENTRY]\n"
    "         [--stream N] [--durability durable|written|queued|cluster]\n"
    "         < entries.jsonl\n"
    "                                 append JSON objects, one per line\n"
    "  list STORE [--cwd DIR] [--project ID] [--trash] [--limit N] [--cursor]\n"
    "       [--after CURSOR]          sessions, last active first; N 0: all;\n"
    "                                 --trash: those in the trash\n"
    "  latest STORE [--cwd DIR]       print the id of the first of them\n"
    "  show STORE SESSION             details of a session\n"
    "  meta STORE SESSION [--merge JSON]\n"
    "                                 print its metadata, after applying a\n"
    "                                 merge patch (RFC 7386)\n"
    "  children STORE SESSION         sessions whose parent it is\n"
    "  fork STORE SESSION [--at ENTRY] [--id NEW]\n"
    "                                 fork a session, print the new id\n"
    "  head STORE SESSION [NAME [ENTRY]] [--stream N] [--expect ENTRY]\n"
    "       [--note TEXT]             list, show or move heads\n"
    "  compact-session STORE SESSION --first-kept ENTRY [--new ID] < summary\n"
    "                                 replace earlier entries by a summary\n"
    "  redact STORE SESSION ENTRY [--reason TEXT] [--erase] [--views]\n"
    "                                 hide the content of an entry\n"
    "  delete STORE SESSION [--erase] [--views]\n"
    "                                 delete a session for good; --erase: and\n"
    "                                 leave no byte of it in any file;\n"
    "                                 --views: nor in views that are known\n"
    "  doc put|get|delete|list|scan STORE SESSION|--store [KEY|PREFIX]\n"
    "      [--if-version V] [--at V] [--history]\n"
    "                                 documents: JSON on standard input and\n"
    "                                 output\n"
    "  checkpoint STORE SESSION ID [--root DIR] [--files-from FILE|- [-0]]\n"
    "             [--] FILE...        record the state of files, also that\n"
    "                                 one is absent\n"
    "  checkpoints STORE SESSION      the checkpoints of a session\n"
    "  checkpoint-show STORE SESSION ID\n"
    "                                 the files of a checkpoint\n"
    "  checkpoint-diff STORE SESSION A [B]\n"
    "                                 changes from A to B, or to the files\n"
    "                                 on disk: lines inserted and deleted\n"
    "  checkpoint-delete STORE SESSION ID\n"
    "                                 delete a checkpoint\n"
    "  checkpointing STORE SESSION on|off\n"
    "                                 off: checkpoint records nothing\n"
    "  rewind STORE SESSION CHECKPOINT|--to ENTRY [--root DIR] [--dry-run]\n"
    "         [--expect CHECKPOINT] [--force] [--head]\n"
    "                                 restore files, all or none; --head: and\n"
    "                                 the conversation\n"
    "  checkpoint-export STORE SESSION OUTDIR --layout sdk|spec11\n"
    "                                 write manifests and contents as files\n"
    "                                 below OUTDIR/checkpoints\n"
    "  checkpoint-import STORE SESSION DIR [--root DIR]\n"
    "                                 read such files, in either layout\n"
    "  projects STORE                 the projects of its sessions\n"
    "  project [DIR]                  print the project id of a directory\n"
    "  stats STORE                    counts and sizes\n"
    "  migrate STORE [SESSION]        convert to this version\n"
    "  accept-damage STORE [SESSION]  allow appends to damaged sessions\n"
    "\n"
    "SESSION: an id, a unique prefix of one, @latest (of the current\n"
    "directory), or the path of a file that was imported. redact and delete\n"
    "take no prefix.\n"
    "\n"
    "FILE: a file below the root, which is --root or the session's directory.\n"
    "A relative FILE is relative to --root if that is given; else to the\n"
    "current directory if that is inside the session's directory; else to the\n"
    "session's directory. --files-from reads one name per line, or with -0\n"
    "(--null) names that each end with a zero byte.\n";

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} commands[] = {
    {"init", walctl_init},
    {"create", walctl_create},
    {"append", walctl_append},
    {"list", walctl_list},
    {"latest", walctl_latest},
    {"show", walctl_show},
    {"meta", walctl_meta},
    {"children", walctl_children},
    {"fork", walctl_fork},
    {"head", walctl_head},
    {"compact-session", walctl_compact_session},
    {"redact", walctl_redact},
    {"delete", walctl_delete},
    {"doc", walctl_doc},
    {"checkpoint", walctl_checkpoint},
    {"checkpoints", walctl_checkpoints},
    {"checkpoint-show", walctl_checkpoint_show},
    {"checkpoint-diff", walctl_checkpoint_diff},
    {"checkpoint-delete", walctl_checkpoint_delete},
    {"checkpoint-export", walctl_checkpoint_export},
    {"checkpoint-import", walctl_checkpoint_import},
    {"checkpointing", walctl_checkpointing},
    {"rewind", walctl_rewind},
    {"projects", walctl_projects},
    {"project", walctl_project},
    {"stats", walctl_stats},
    {"migrate", walctl_migrate},
    {"accept-damage", walctl_accept_damage},
};

/* The first argument that is not an option; common options have no value. */
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

int walctl_main(int argc, char **argv)
{
    static struct cli cli = {.tool = "walctl", .help = help};

    return cli_finish(&cli, run(&cli, argc, argv));
}
