/*
 * walctl.c - makes stores and sessions, appends to them, and tells of them.
 *
 * Invariant: a command answers only after what it did is as durable as it was
 * asked to be.
 *
 * Threads: one.
 */
#include "tools/walctl/walctl.h"

#include <string.h>

static const char help[] =
    "Usage: walctl COMMAND [OPTION]... STORE [ARGUMENT]...\n"
    "\n"
    "  init STORE                     make a store\n"
    "  create STORE [--id ID] [--cwd DIR] [--project ID] [--title T]\n"
    "         [--meta JSON]           make a session, print its id\n"
    "  append STORE SESSION [--each] [--expect-tail ENTRY] [--stream N]\n"
    "         [--durability durable|written|queued] < entries.jsonl\n"
    "                                 append entries, a JSON object a line\n"
    "  list STORE [--cwd DIR] [--project ID] [--limit N] [--cursor]\n"
    "       [--after CURSOR]          sessions, newest first; N 0: all\n"
    "  latest STORE [--cwd DIR]       id of the newest session\n"
    "  show STORE SESSION             all about a session\n"
    "  meta STORE SESSION [--merge JSON]\n"
    "                                 print its metadata, changed by a merge\n"
    "                                 patch (RFC 7386)\n"
    "  children STORE SESSION         sessions that came from it\n"
    "  fork STORE SESSION [--at ENTRY] [--id NEW]\n"
    "                                 fork a session, print the new id\n"
    "  head STORE SESSION [NAME [ENTRY]] [--stream N] [--expect ENTRY]\n"
    "       [--note TEXT]             list, show or move heads\n"
    "  compact-session STORE SESSION --first-kept ENTRY [--new ID] < summary\n"
    "                                 tell what is before it by a summary\n"
    "  redact STORE SESSION ENTRY [--reason TEXT]\n"
    "                                 hide what an entry says\n"
    "  delete STORE SESSION           delete a session\n"
    "  doc put|get|delete|list|scan STORE SESSION|--store [KEY|PREFIX]\n"
    "      [--if-version V] [--at V] [--history]\n"
    "                                 documents, JSON from and to standard\n"
    "                                 input and output\n"
    "  checkpoint STORE SESSION ID [--root DIR] [--files-from FILE|- [-0]]\n"
    "             [--] FILE...        record the state of files; absent ones,\n"
    "                                 too\n"
    "  checkpoints STORE SESSION      the checkpoints of a session\n"
    "  checkpoint-show STORE SESSION ID\n"
    "                                 the files of one\n"
    "  checkpoint-diff STORE SESSION A [B]\n"
    "                                 what differs from A to B, or to the\n"
    "                                 disk: lines inserted and deleted\n"
    "  checkpoint-delete STORE SESSION ID\n"
    "                                 remove one\n"
    "  checkpointing STORE SESSION on|off\n"
    "                                 off: making one does nothing\n"
    "  rewind STORE SESSION CHECKPOINT [--root DIR] [--dry-run]\n"
    "         [--expect CHECKPOINT] [--force]\n"
    "                                 bring files back, all or none\n"
    "  checkpoint-export STORE SESSION OUTDIR --layout sdk|spec11\n"
    "                                 manifests and contents as files, below\n"
    "                                 OUTDIR/checkpoints\n"
    "  checkpoint-import STORE SESSION DIR [--root DIR]\n"
    "                                 the reverse, of either layout\n"
    "  projects STORE                 the projects that it has sessions of\n"
    "  project [DIR]                  id of the project of a directory\n"
    "  stats STORE                    counts and sizes\n"
    "  migrate STORE [SESSION]        bring it to this version\n"
    "  accept-damage STORE [SESSION]  let damaged sessions take appends\n"
    "\n"
    "SESSION: an id, a unique beginning of one, @latest (of the current\n"
    "directory), or the path of a file that was imported. For redact and\n"
    "delete a beginning is not enough.\n"
    "\n"
    "FILE: below the root, which is --root or the session's directory. A\n"
    "relative one is taken from --root where that is given, else from the\n"
    "current directory where that lies in the session's, else from the\n"
    "session's directory. The names of --files-from stand one a line, or with\n"
    "-0 (--null) are each ended by a zero byte.\n";

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
                     "%s (see walctl --help)",
                     name != NULL ? "no such command" : "no command given");
}

int main(int argc, char **argv)
{
    struct cli cli = {.tool = "walctl", .help = help};

    cli_ensure_std_fds();
    return cli_finish(&cli, run(&cli, argc, argv));
}
