/*
 * help_care.c - the help of the verbs for care of the store.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

const struct verb_help help_init = {
    .usage = "",
    .summary = "Create a store",
    .text = "import, create, append --create and doc put --store create a "
            "missing store too.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal init", "the default store"},
            {"agentwal --store /srv/sessions init",
             "a store in another directory"},
            {NULL, NULL},
        },
};

const struct verb_help help_check = {
    .usage = "[--jobs N]",
    .summary = "Read everything in the store and report the damage",
    .text =
        "It needs no write permission, and works while others use the store. "
        "With\n"
        "--strict an ambiguous tail is damage.\n",
    .options =
        (const struct verb_option[]){
            {"--jobs N", "read with N threads; one per processor without it"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal check", "exit code 0: sound, 1: damaged"},
            {"agentwal check --json", "a report for programs"},
            {NULL, NULL},
        },
};

const struct verb_help help_salvage = {
    .usage = "OUT [--jobs N]",
    .summary = "Build a sound store in OUT from everything that can be read",
    .options =
        (const struct verb_option[]){
            {"--jobs N", "read with N threads; one per processor without it"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal salvage recovered", "OUT must not exist"},
            {"agentwal --store recovered list", "the sessions that were saved"},
            {NULL, NULL},
        },
};

const struct verb_help help_migrate = {
    .usage = "[SESSION]",
    .summary = "Convert the store, or a session, to this version",
    .examples =
        (const struct verb_example[]){
            {"agentwal migrate", "the store"},
            {"agentwal migrate 7f3a21c", "the schema of one session"},
            {NULL, NULL},
        },
};

const struct verb_help help_accept_damage = {
    .usage = "[SESSION]",
    .summary = "Allow appends to sessions that lost entries",
    .examples =
        (const struct verb_example[]){
            {"agentwal check", "see what was lost, first"},
            {"agentwal accept-damage", "all damaged sessions"},
            {"agentwal accept-damage 7f3a21c", "one session"},
            {NULL, NULL},
        },
};

const struct verb_help help_gc = {
    .usage = "[--dry-run] [--erase] [--max-bytes SIZE] [--rate SIZE]",
    .summary = "Give back the space of what is dead, and compress the rest",
    .text =
        "Others may use the store meanwhile. Stopped at any time, it leaves a "
        "sound\n"
        "store, and the next run goes on. A damaged segment is left as it is, "
        "and the\n"
        "exit code is 1 then. docs/compaction.md says what is dead.\n"
        "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or "
        "KiB, MiB,\n"
        "GiB, TiB (powers of 1024).\n",
    .options =
        (const struct verb_option[]){
            {"--dry-run",
             "change nothing; show what would come back, per session and in "
             "total"},
            {"--erase", "leave no byte of what was deleted or redacted in the "
                        "log"},
            {"--max-bytes SIZE", "rewrite at most SIZE of segments"},
            {"--rate SIZE", "read and write at most SIZE in a second; 0: no "
                            "limit; 64MiB without it"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal gc --dry-run", "what would come back"},
            {"agentwal gc", "run it, with others at work"},
            {"agentwal gc --erase", "after delete or redact"},
            {NULL, NULL},
        },
};

const struct verb_help help_backup = {
    .usage = "DIR",
    .summary = "Copy the store to DIR, and later only what is new",
    .text =
        "Others may use the store meanwhile. DIR is a store, as of the moment "
        "the\n"
        "backup began: read it with --store DIR, or copy it back to restore. "
        "Stopped at\n"
        "any time, it leaves DIR as the last backup did, or newer, and the "
        "next run\n"
        "goes on. A DIR that was written to is refused. docs/backup.md has "
        "the rest.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal backup /mnt/backup/agentwal", "all, or what is new"},
            {"agentwal --store /mnt/backup/agentwal check", "check the copy"},
            {NULL, NULL},
        },
};

const struct verb_help help_help = {
    .usage = "[VERB]...",
    .summary = "Show the verbs, or how to use one",
    .examples =
        (const struct verb_example[]){
            {"agentwal help", "all verbs"},
            {"agentwal help rewind", "one verb"},
            {"agentwal help --json", "the same for programs"},
            {NULL, NULL},
        },
};
