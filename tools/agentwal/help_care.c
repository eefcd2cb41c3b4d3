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
    .usage = "[--jobs N]\n"
             "check [--store-id ID] --remote URL|STORE",
    .summary = "Read everything in the store and report the damage",
    .text =
        "It needs no write permission, and works while others use the store. "
        "With\n"
        "--strict an ambiguous tail is damage.\n",
    .options =
        (const struct verb_option[]){
            {"--jobs N", "read with N threads; one per processor without it"},
            {"--remote URL|STORE",
             "read what the remote, or that of the store, has instead"},
            {"--store-id ID",
             "--remote: which store, where the remote has several"},
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
    .usage = "[--dry-run] [--erase] [--views] [--keep-deltas]\n"
             "[--max-bytes SIZE] [--rate SIZE]",
    .summary = "Give back the space of what is dead, and compress the rest",
    .text =
        "Others may use the store meanwhile. Stopped at any time, it leaves a "
        "sound\n"
        "store, and the next run goes on. A damaged segment is left as it is, "
        "and the\n"
        "exit code is 1 then. docs/keeping.md says what is dead.\n"
        "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or "
        "KiB, MiB,\n"
        "GiB, TiB (powers of 1024).\n",
    .options =
        (const struct verb_option[]){
            {"--dry-run",
             "change nothing; show what would come back, per session and in "
             "total"},
            {"--erase",
             "delete what is in the trash, and leave no byte of what "
             "was\ndeleted or redacted in the log; list the views that may "
             "hold it"},
            {"--views",
             "rewrite the views that the store knows of and that may "
             "hold what\nwas deleted or redacted"},
            {"--keep-deltas",
             "keep the deltas of messages that are complete; not with\n"
             "--erase"},
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
        "goes on. A DIR that was written to is refused. docs/keeping.md has "
        "the rest.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal backup /mnt/backup/agentwal", "all, or what is new"},
            {"agentwal --store /mnt/backup/agentwal check", "check the copy"},
            {NULL, NULL},
        },
};

const struct verb_help help_retain = {
    .usage = "[--older-than AGE] [--keep-last N] [--max-bytes SIZE]\n"
             "[--project ID] [--archive DIR] [--all] [--apply]",
    .summary = "Move old sessions to the trash, by rules",
    .text =
        "Without --apply it changes nothing and shows what it would move. A "
        "session that\n"
        "is pinned, or claimed by a process, stays, and so does what a session "
        "that stays\n"
        "was forked from. docs/keeping.md says how rules combine.\n"
        "AGE: a number of hours, days, weeks or years: 12h, 90d, 8w, 1y.\n"
        "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or "
        "KiB, MiB,\n"
        "GiB, TiB (powers of 1024).\n",
    .options =
        (const struct verb_option[]){
            {"--older-than AGE", "sessions last active longer ago"},
            {"--keep-last N", "keep the N newest ones whatever the other rules "
                              "say; alone:\nmove all others"},
            {"--max-bytes SIZE",
             "the oldest ones, until the others have at most SIZE of records"},
            {"--project ID", "only sessions of this project"},
            {"--archive DIR", "copy them to DIR first, a store, which is made "
                              "if needed"},
            {"--all", "permit rules that leave no session"},
            {"--apply", "move them"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal retain --older-than 90d", "what would go"},
            {"agentwal retain --older-than 90d --keep-last 50 --apply",
             "move it, but keep the 50 newest"},
            {"agentwal gc --erase", "delete what is in the trash"},
            {NULL, NULL},
        },
};

const struct verb_help help_restore = {
    .usage = "DIR SESSION...",
    .summary = "Take sessions back from an archive of retain",
    .text = "DIR is the store that retain --archive has written. A session in "
            "the trash is\ntaken out of it, and what is missing is copied. "
            "\"agentwal merge DIR\" takes all\nsessions.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal --store archive list", "what is there"},
            {"agentwal restore archive 0d7f3a21", "one of them"},
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

const struct verb_help help_bundle = {
    .usage = "SESSION... FILE",
    .summary = "Write sessions to one file, with everything they have",
    .text =
        "Entries of all branches, heads, documents with their versions, "
        "checkpoints with\n"
        "their files. Content that was redacted is left out. A fork takes what "
        "it shares\n"
        "along. agentwal import FILE takes them into another store. FILE must "
        "not exist.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal bundle 7f3a21c work.bundle", "one session"},
            {"agentwal bundle @latest 7f3a21c work.bundle", "two of them"},
            {"agentwal --store new import work.bundle", "on another machine"},
            {NULL, NULL},
        },
};

const struct verb_help help_merge = {
    .usage = "[--keep-both] OTHER",
    .summary = "Take all sessions of another store into this one",
    .text =
        "OTHER is the directory of a store, which is only read. A session that "
        "both have\n"
        "is continued if this store has its beginning, and left if it has "
        "more. One with\n"
        "other entries is refused by name, and the exit code is 1. Documents "
        "of the store\n"
        "are added where there are none. Merging again adds only what is "
        "new. The store\n"
        "is created if it does not exist.\n",
    .options =
        (const struct verb_option[]){
            {"--keep-both", "instead of a refusal: the other one becomes a "
                            "fork, ID@ and 8 digits of OTHER's id"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal merge /mnt/laptop/agentwal",
             "the sessions of another machine"},
            {"agentwal --store all merge work", "one store into another"},
            {NULL, NULL},
        },
};

const struct verb_help help_index = {
    .usage = "[--deep]",
    .summary = "Bring the index of search up to date",
    .text = "search does it too. The files are derived: they may be removed at "
            "any time.\n",
    .options =
        (const struct verb_option[]){
            {"--deep", "the index of tools' results too"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal index", "after an import, so that the first search is "
                               "fast"},
            {"agentwal index --deep --json", "with results, and the sizes"},
            {NULL, NULL},
        },
};
