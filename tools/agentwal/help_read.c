/*
 * help_read.c - the help of the verbs for reading.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

const struct verb_help help_list = {
    .usage = "[--cwd DIR] [--project ID] [--trash] [--limit N] [--cursor] "
             "[--after CURSOR]",
    .summary = "List the sessions, newest first",
    .options =
        (const struct verb_option[]){
            {"--cwd DIR", "only sessions of this directory"},
            {"--project ID", "only sessions of this project"},
            {"--trash", "the sessions in the trash, instead of all others"},
            {"--limit N", "at most N sessions; 0: all"},
            {"--cursor", "print the cursor of the next page on standard error"},
            {"--after CURSOR", "continue after a page"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal list --limit 20", "the 20 newest"},
            {"agentwal list --cwd .", "those of this directory"},
            {"agentwal list --json", "one JSON object per session"},
            {NULL, NULL},
        },
};

const struct verb_help help_show = {
    .usage = "SESSION",
    .summary = "Show the details of a session",
    .examples =
        (const struct verb_example[]){
            {"agentwal show @latest", "the newest session of this directory"},
            {"agentwal show --json 7f3a21c", "as a JSON object"},
            {NULL, NULL},
        },
};

const struct verb_help help_tree = {
    .usage = "SESSION [--all] [--stream N] [--deltas] [--redacted]",
    .summary = "Draw the branches of a session, with its heads",
    .options =
        (const struct verb_option[]){
            {"--all", "all branches in log order"},
            {"--stream N", "another stream than the conversation, which is 0"},
            {"--deltas", "with entries of type message_delta_batch"},
            {"--redacted", "with redacted entries"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal tree @latest", "the newest session of this directory"},
            {"agentwal tree --deltas 7f3a21c",
             "with the partial messages of a stream"},
            {NULL, NULL},
        },
};

const struct verb_help help_cat = {
    .usage =
        "SESSION [--text] [--branch ENTRY|HEAD | --up-to ENTRY] [OPTION]...\n"
        "cat --frames [SEGMENT]",
    .summary = "Print the entries of a session, one JSON object per line",
    .options =
        (const struct verb_option[]){
            {"--text", "a readable conversation"},
            {"--branch ENTRY|HEAD",
             "the branch of that entry or head instead of the live one"},
            {"--up-to ENTRY", "the branch, ending with that entry"},
            {"--since-compaction",
             "from the first entry kept at the last compaction"},
            {"--all", "all branches, in log order"},
            {"--stream N", "another stream than the conversation, which is 0"},
            {"--type T", "only entries of that type"},
            {"--tail N", "only the last N; 0: none"},
            {"--deltas", "with entries of type message_delta_batch"},
            {"--redacted", "with redacted entries"},
            {"--tree", "a drawing of the branches and heads"},
            {"--follow", "print new entries until interrupted; without a "
                         "SESSION, those of all sessions"},
            {"--frames", "every frame of the store, or of a segment file"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal cat --text @latest", "read the newest conversation"},
            {"agentwal cat --tail 5 7f3a21c", "its last five entries"},
            {"agentwal cat --follow 7f3a21c", "watch a session"},
            {NULL, NULL},
        },
};

const struct verb_help help_latest = {
    .usage = "[--cwd DIR]",
    .summary = "Print the id of the newest session",
    .options =
        (const struct verb_option[]){
            {"--cwd DIR", "the newest of this directory"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal latest --cwd .", "the session to resume here"},
            {"agentwal latest --json", "with its details"},
            {NULL, NULL},
        },
};

const struct verb_help help_children = {
    .usage = "SESSION",
    .summary = "List the forks of a session",
    .examples =
        (const struct verb_example[]){
            {"agentwal children 7f3a21c", "a table"},
            {"agentwal children --json 7f3a21c", "one JSON object per session"},
            {NULL, NULL},
        },
};

const struct verb_help help_projects = {
    .usage = "",
    .summary = "List the projects of the sessions",
    .examples =
        (const struct verb_example[]){
            {"agentwal projects", "a table"},
            {"agentwal projects --json", "one JSON object per project"},
            {NULL, NULL},
        },
};

const struct verb_help help_project = {
    .usage = "[DIR]",
    .summary = "Print the project id of a directory",
    .examples =
        (const struct verb_example[]){
            {"agentwal project", "of the current directory"},
            {"agentwal list --project \"$(agentwal project)\"",
             "the sessions of this repository"},
            {NULL, NULL},
        },
};

const struct verb_help help_stats = {
    .usage = "",
    .summary = "Show the counts and sizes of the store and its sessions",
    .text = "OWN: bytes of records that no other session sees. SHARED: of "
            "entries that\n"
            "forks see, and of those that a fork sees of its source. "
            "RECLAIMABLE: of dead\n"
            "records; gc gives them back. All before compression.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal stats", "for people"},
            {"agentwal stats --json", "with exact numbers"},
            {NULL, NULL},
        },
};

const struct verb_help help_search = {
    .usage = "[OPTION]... WORD...",
    .summary = "Search the text of all sessions",
    .text =
        "A record must have all words. \"a phrase\", begin* and -without are "
        "known. Case\nand diacritics do not matter. What was redacted, "
        "deleted or put in the trash is\nnot found. The first search makes "
        "the index. Exit code 1: nothing was found.\n",
    .options =
        (const struct verb_option[]){
            {"--project ID", "sessions of that project"},
            {"--cwd DIR", "sessions of that directory"},
            {"--session SESSION", "one session"},
            {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: "
                             "12h, 7d, 2w"},
            {"--until TIME", "before that time"},
            {"--role ROLE", "user, assistant, tool, title, summary or result; "
                            "may be repeated"},
            {"--tool NAME", "calls of that tool; without a word, all of them"},
            {"--deep", "the results of tools too"},
            {"--substring", "the text, inside words too"},
            {"--limit N", "at most N sessions; otherwise 20"},
            {"--around N", "print N entries before and after each hit"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal search rounding error", "sessions with both words"},
            {"agentwal search --cwd . --since 7d --role user migrat*",
             "what you asked for here this week"},
            {"agentwal search --around 2 -- '\"one cent\"' -tax",
             "a phrase without a word; -- ends the options"},
            {NULL, NULL},
        },
};

const struct verb_help help_usage = {
    .usage = "[OPTION]...",
    .summary = "Add up the tokens and costs that the sessions state",
    .text =
        "An answer that several lines, sessions or forks have is counted once. "
        "INPUT is\nwithout what was read from or written to a cache. COST USD "
        "is what clients\nwrote; many write none. There is no table of "
        "prices.\n",
    .options =
        (const struct verb_option[]){
            {"--by GROUP", "day (the default), model, project, client or "
                           "session"},
            {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: "
                             "12h, 7d, 2w"},
            {"--until TIME", "before that time"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal usage --since 30d", "each day of the last month"},
            {"agentwal usage --by model --json", "with exact numbers"},
            {NULL, NULL},
        },
};

const struct verb_help help_watch = {
    .usage = "[STORE] [--session ID]... [OPTION]...",
    .summary = "Watch what is appended to all sessions, until interrupted",
    .text =
        "On a terminal: the sessions at work, who claims them, their last "
        "message and\nentries a minute; q ends it, Enter prints the command "
        "that resumes the session.\nElse, with --plain and with --json: a line "
        "for each new entry.\n",
    .options =
        (const struct verb_option[]){
            {"--session ID", "only this one; several times: only these"},
            {"--project ID", "only sessions of this project"},
            {"--cwd DIR", "only sessions of this directory"},
            {"--since TIME", "begin with entries from 2026-11-20, "
                             "2026-11-20T14:03, or an age: 10m, 12h, 7d"},
            {"--plain", "lines on a terminal too"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal watch", "all agents"},
            {"agentwal watch --cwd . --since 1h --plain",
             "this directory, with the last hour"},
            {"agentwal watch --json", "one JSON object per entry"},
            {NULL, NULL},
        },
};

const struct verb_help help_resume = {
    .usage = "[WORD]... [OPTION]...\n"
             "resume --remote URL [--store-id ID] [--take-over] SESSION\n"
             "resume --take-back SESSION",
    .summary = "Pick a session and print the command that resumes it, or bring "
               "one here",
    .text =
        "The list has the newest first. What you type filters it: each word "
        "must be in\nthe title, the first message, the directory, the project "
        "or the id. Up, Down,\nPgUp, PgDn, Ctrl-K, Ctrl-J, Ctrl-P and Ctrl-N "
        "move, Ctrl-U clears the words,\nEnter picks, Esc and Ctrl-C end with "
        "130. The list is drawn on the terminal, so\nthat eval "
        "\"$(agentwal resume)\" runs what it prints. Without a terminal: a "
        "table.\n\n"
        "With --remote the session comes from another machine's store, which "
        "is in the\nbucket (agentwal remote push), goes on here, and is "
        "refused there. Its last 50\nentries are printed. When both went on, "
        "both remain: docs/machines.md.\n",
    .options =
        (const struct verb_option[]){
            {"--run", "run the command instead of printing it"},
            {"--project ID", "only sessions of this project"},
            {"--cwd DIR", "only sessions of this directory"},
            {"--limit N", "of the table: at most N sessions; 0: all; else 20"},
            {"--remote URL", "bring the session from a store in this bucket"},
            {"--store-id ID", "of that store, where the bucket has several"},
            {"--take-over", "also when it is at a machine that is not in the "
                            "bucket"},
            {"--take-back", "go on with a session that has moved away"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal resume --run", "pick one and go on with it"},
            {"agentwal resume parser --cwd .",
             "begin with a word, in this directory"},
            {"agentwal resume --remote s3://sessions 7f3a21c0",
             "go on with a session of another machine"},
            {NULL, NULL},
        },
};

const struct verb_help help_view = {
    .usage = "SESSION [OPTION]...",
    .summary = "Write a session as one HTML file, to read and to share",
    .text =
        "The file has the page of agentwal serve and the session: its "
        "conversation, tree,\nfiles changed and costs. It loads nothing and "
        "sends nothing.\n\n"
        "Known forms of secrets are struck out: keys and tokens of providers, "
        "private\nkeys, values of Authorization, passwords in URLs, values of "
        "names such as\nAPI_KEY. They are counted by kind on standard error. "
        "Read the page before you\nshare it: a secret of another form stays. "
        "Redacted entries are left out.\n",
    .options =
        (const struct verb_option[]){
            {"--redact PATTERN", "strike out what matches this extended "
                                 "regular expression, too; may be repeated"},
            {"--no-tool-results", "leave the results of tools out"},
            {"--no-paths", "shorten absolute paths to their last name, or to "
                           "what is below the session's directory"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal view @latest >page.html", "the session used last"},
            {"agentwal view 7f3a9c1 --no-paths --redact acme >page.html",
             "without the names of a customer"},
            {NULL, NULL},
        },
};
