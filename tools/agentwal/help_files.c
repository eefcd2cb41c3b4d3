/*
 * help_files.c - the help of the verbs for checkpoints of files.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

const struct verb_help help_checkpoint = {
    .usage = "SESSION ID [--root DIR] [--files-from FILE|- [-0]] [--] FILE...",
    .summary = "Record the state of files, including that one does not exist",
    .text =
        "A relative FILE is relative to --root if that is given; else to the "
        "current\n"
        "directory if that is inside the session's directory; else to the "
        "session's\n"
        "directory.\n",
    .options =
        (const struct verb_option[]){
            {"--root DIR",
             "the directory of the files; that of the session without it"},
            {"--files-from FILE",
             "read names from FILE, or with - from standard input"},
            {"-0, --null", "the names end with a zero byte"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint @latest before-edit src/main.c",
             "record one file"},
            {"git ls-files -z | agentwal checkpoint @latest all --files-from "
             "- -0",
             "record a work tree"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoints = {
    .usage = "SESSION",
    .summary = "List the checkpoints of a session",
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoints @latest", "a table"},
            {"agentwal checkpoints --json @latest",
             "one JSON object per checkpoint"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoint_show = {
    .usage = "SESSION ID",
    .summary = "List the files of a checkpoint",
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint-show @latest before-edit", "a table"},
            {"agentwal checkpoint-show --json @latest before-edit",
             "with the hashes as JSON"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoint_diff = {
    .usage = "SESSION A [B]",
    .summary =
        "Show the changes from a checkpoint to another one, or to the files "
        "on disk",
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint-diff @latest before-edit",
             "what changed on disk since"},
            {"agentwal checkpoint-diff @latest before-edit after-edit",
             "between two checkpoints"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoint_delete = {
    .usage = "SESSION ID",
    .summary = "Delete a checkpoint",
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint-delete @latest before-edit", "delete one"},
            {"agentwal checkpoints @latest", "see which remain"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoint_export = {
    .usage = "SESSION OUTDIR --layout sdk|spec11",
    .summary = "Write the checkpoints of a session as manifests and contents",
    .options =
        (const struct verb_option[]){
            {"--layout NAME",
             "sdk or spec11: the names and manifests of the files"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint-export @latest out --layout sdk",
             "below out/checkpoints"},
            {"agentwal checkpoint-export 7f3a21c out --layout spec11",
             "in the other layout"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpoint_import = {
    .usage = "SESSION DIR [--root DIR]",
    .summary = "Read checkpoints that were written as files, in either layout",
    .options =
        (const struct verb_option[]){
            {"--root DIR",
             "the directory of the files; that of the session without it"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpoint-import 7f3a21c out", "from out/checkpoints"},
            {"agentwal checkpoint-import 7f3a21c out --root ~/src/app",
             "for files elsewhere"},
            {NULL, NULL},
        },
};

const struct verb_help help_checkpointing = {
    .usage = "SESSION on|off",
    .summary = "Turn checkpoints of a session on or off",
    .examples =
        (const struct verb_example[]){
            {"agentwal checkpointing @latest off",
             "checkpoint records nothing from now on"},
            {"agentwal checkpointing @latest on", "record again"},
            {NULL, NULL},
        },
};

const struct verb_help help_rewind = {
    .usage = "SESSION CHECKPOINT|--to ENTRY [--root DIR] [--dry-run] [--expect "
             "CHECKPOINT] [--force] [--head]",
    .summary = "Restore files from a checkpoint, all or none",
    .text = "The state before the rewind is kept as a checkpoint, which is "
            "printed: rewind to\n"
            "it to undo.\n",
    .options =
        (const struct verb_option[]){
            {"--to ENTRY",
             "move the conversation to ENTRY, and the files to the checkpoint\n"
             "that belongs to it"},
            {"--head",
             "move the conversation to the entry of the checkpoint too"},
            {"--root DIR", "the directory of the files"},
            {"--dry-run", "report what would change"},
            {"--expect CHECKPOINT",
             "refuse if files changed since this checkpoint"},
            {"--force", "rewind although files changed"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal rewind @latest before-edit --dry-run",
             "see what would change"},
            {"agentwal rewind @latest before-edit", "restore the files"},
            {"agentwal rewind @latest --to b2d90c4",
             "the conversation and the files together"},
            {NULL, NULL},
        },
};
