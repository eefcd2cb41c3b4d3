/*
 * verbs.c - the help and the table of the verbs.
 *
 * Invariant: the verbs of a group are adjacent, in the order of the help.
 */
#include "tools/agentwal/verbs.h"

#include <string.h>

#include "tools/cli/verbs.h"

static const struct verb_help help_import = {
    .usage = "[--dialect auto|NAME] [--all-files] [--follow] PATH...",
    .summary = "Import session files, or all session files below directories",
    .text = "A file becomes a session and a line an entry. Of a directory, the session files\n"
            "of Claude Code, Codex, pi and OpenCode are imported by their paths, and other\n"
            "files of lines by their content; credentials, settings and everything else are\n"
            "left out and counted. A repeated import adds only what is new, from whichever\n"
            "directory. The store is created if it does not exist. A bundle, which agentwal\n"
            "bundle wrote, gives its sessions back with everything they have.\n",
    .options =
        {
            {"--dialect NAME", "the format of the files; auto recognises it"},
            {"--all-files", "import every file below a directory"},
            {"--follow", "then import what changes, until interrupted"},
            {"--summary", "with --json: a last object {\"summary\":...}"},
            {"-v, --verbose", "print every source and every warning"},
        },
    .examples =
        {
            {"agentwal import ~/.claude", "all sessions of Claude Code"},
            {"agentwal import session.jsonl work.bundle", "a file, and the sessions of a bundle"},
            {"agentwal import --follow ~/.codex ~/.pi/agent", "keep the store current"},
        },
};

static const struct verb_help help_adopt = {
    .usage = "[--yes] [--install | --uninstall]",
    .summary = "Find the clients of this user, and import their sessions",
    .text = "Prints the folders of Claude Code, Codex, pi, OpenCode and the other clients of\n"
            "\"agentwal dialects\" with the number of sessions and what is left out, asks, and\n"
            "imports. Variables that move a folder, such as CLAUDE_CONFIG_DIR, are respected.\n"
            "Without a terminal and without --yes only the plan is printed.\n",
    .options =
        {
            {"-y, --yes", "do not ask"},
            {"--install", "then follow the folders by a systemd user unit, from each login on"},
            {"--uninstall", "stop and remove that unit; import nothing"},
            {"-v, --verbose", "print every source and every warning"},
        },
    .examples =
        {
            {"agentwal adopt", "show the plan and ask"},
            {"agentwal adopt --yes --install", "import, and keep current"},
        },
};

static const struct verb_help help_export = {
    .usage = "--dialect source|NAME [-v] [--session SESSION]... OUTDIR|--stdout",
    .summary = "Write sessions as the files of a client",
    .text = "A repeated export adds what is new. What a format cannot express is listed.\n",
    .options =
        {
            {"--dialect source", "the imported files, byte for byte"},
            {"--dialect NAME", "the format of a client (see agentwal dialects)"},
            {"--session SESSION", "only this session; may be repeated"},
            {"--stdout", "one session to standard output"},
            {"-v, --verbose", "print each file"},
        },
    .examples =
        {
            {"agentwal export --dialect source backup", "all imported files below backup"},
            {"agentwal export --dialect pi --session 7f3a21c ~/.pi/agent",
             "continue a session in another client"},
            {"agentwal export --dialect claude --session @latest --stdout", "print one session"},
        },
};

static const struct verb_help help_follow = {
    .usage = "--dialect NAME OUTDIR",
    .summary = "Keep the files of a client current until interrupted",
    .options =
        {
            {"--dialect NAME", "the format of the client (see agentwal dialects)"},
        },
    .examples =
        {
            {"agentwal follow --dialect claude ~/.claude", "show all sessions in Claude Code"},
            {"agentwal follow --dialect pi /tmp/view", "write them to another directory"},
        },
};

static const struct verb_help help_path = {
    .usage = "--dialect source|NAME [--stream N] OUTDIR SESSION",
    .summary = "Print the path of a session's file below a directory",
    .options =
        {
            {"--dialect NAME", "the format of the file"},
            {"--stream N", "of another stream than the conversation, which is 0"},
        },
    .examples =
        {
            {"agentwal path --dialect claude ~/.claude @latest",
             "where export writes the newest session"},
            {"agentwal path --dialect source out 7f3a21c",
             "where its imported file is written back"},
        },
};

static const struct verb_help help_dialects = {
    .usage = "",
    .summary = "List the formats that can be imported and exported",
    .examples =
        {
            {"agentwal dialects", "a table, and what each format can express"},
            {"agentwal dialects --json", "one JSON object per format"},
        },
};

static const struct verb_help help_list = {
    .usage = "[--cwd DIR] [--project ID] [--client NAME] [--title TEXT] [--since TIME] "
             "[--trash] [--subagents] [--limit N] [--cursor] [--after CURSOR]",
    .summary = "List the sessions, newest first",
    .text = "Sessions of subagents are below those that started them: see children. On a\n"
            "terminal a long id is shown by its end, which is accepted where it is unique.\n",
    .options =
        {
            {"--cwd DIR", "only sessions of this directory"},
            {"--project ID", "only sessions of this project"},
            {"--client NAME", "only sessions of this client, such as claude or codex"},
            {"--title TEXT", "only sessions with the text in the title or first message"},
            {"--since TIME", "only what changed since 2026-11-20, or an age: 12h, 7d, 2w"},
            {"--trash", "the sessions in the trash, instead of all others"},
            {"--subagents", "with those that do a part of another one's work"},
            {"--limit N", "at most N sessions; 0: all"},
            {"--cursor", "print the cursor of the next page on standard error"},
            {"--after CURSOR", "continue after a page"},
        },
    .examples =
        {
            {"agentwal list --cwd .", "those of this directory"},
            {"agentwal list --client codex --since 7d", "this week's sessions of one client"},
            {"agentwal list --json", "one JSON object per session"},
        },
};

static const struct verb_help help_show = {
    .usage = "SESSION",
    .summary = "Show the details of a session",
    .examples =
        {
            {"agentwal show @latest", "the newest session of this directory"},
            {"agentwal show --json 7f3a21c", "as a JSON object"},
        },
};

static const struct verb_help help_tree = {
    .usage = "SESSION [--all] [--stream N] [--deltas] [--redacted]",
    .summary = "Draw the branches of a session, with its heads",
    .options =
        {
            {"--all", "all branches in log order"},
            {"--stream N", "another stream than the conversation, which is 0"},
            {"--deltas", "with entries of type message_delta_batch"},
            {"--redacted", "with redacted entries"},
        },
    .examples =
        {
            {"agentwal tree @latest", "the newest session of this directory"},
            {"agentwal tree --deltas 7f3a21c", "with the partial messages of a stream"},
        },
};

static const struct verb_help help_cat = {
    .usage = "SESSION [--text] [--branch ENTRY|HEAD | --up-to ENTRY] [OPTION]...\n"
             "cat --frames [SEGMENT]",
    .summary = "Print the entries of a session, one JSON object per line",
    .options =
        {
            {"--text", "a readable conversation"},
            {"--branch ENTRY|HEAD", "the branch of that entry or head instead of the live one"},
            {"--up-to ENTRY", "the branch, ending with that entry"},
            {"--since-compaction", "from the first entry kept at the last compaction"},
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
        },
    .examples =
        {
            {"agentwal cat --text @latest", "read the newest conversation"},
            {"agentwal cat --text session.jsonl", "read a file of a client, without a store"},
            {"agentwal cat --follow 7f3a21c", "watch a session"},
        },
};

static const struct verb_help help_latest = {
    .usage = "[--cwd DIR]",
    .summary = "Print the id of the newest session",
    .options =
        {
            {"--cwd DIR", "the newest of this directory"},
        },
    .examples =
        {
            {"agentwal latest --cwd .", "the session to resume here"},
            {"agentwal latest --json", "with its details"},
        },
};

static const struct verb_help help_children = {
    .usage = "SESSION",
    .summary = "List the forks of a session",
    .examples =
        {
            {"agentwal children 7f3a21c", "a table"},
            {"agentwal children --json 7f3a21c", "one JSON object per session"},
        },
};

static const struct verb_help help_projects = {
    .usage = "",
    .summary = "List the projects of the sessions",
    .examples =
        {
            {"agentwal projects", "a table"},
            {"agentwal projects --json", "one JSON object per project"},
        },
};

static const struct verb_help help_project = {
    .usage = "[DIR]",
    .summary = "Print the project id of a directory",
    .examples =
        {
            {"agentwal project", "of the current directory"},
            {"agentwal list --project \"$(agentwal project)\"", "the sessions of this repository"},
        },
};

static const struct verb_help help_stats = {
    .usage = "",
    .summary = "Show the counts and sizes of the store and its sessions",
    .text = "OWN: bytes of records that no other session sees. SHARED: of entries that\n"
            "forks see, and of those that a fork sees of its source. RECLAIMABLE: of dead\n"
            "records; gc gives them back. All before compression.\n",
    .examples =
        {
            {"agentwal stats", "for people"},
            {"agentwal stats --json", "with exact numbers"},
        },
};

static const struct verb_help help_search = {
    .usage = "[OPTION]... WORD...",
    .summary = "Search the text of all sessions",
    .text = "A record must have all words. \"a phrase\", begin* and -without are known. Case\n"
            "and diacritics do not matter. What was redacted, deleted or put in the trash is\n"
            "not found. The first search makes the index. Exit code 1: nothing was found.\n",
    .options =
        {
            {"--project ID", "sessions of that project"},
            {"--cwd DIR", "sessions of that directory"},
            {"--session SESSION", "one session"},
            {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w"},
            {"--until TIME", "before that time"},
            {"--role ROLE", "user, assistant, tool, title, summary or result; may be repeated"},
            {"--tool NAME", "calls of that tool; without a word, all of them"},
            {"--deep", "the results of tools too"},
            {"--substring", "the text, inside words too"},
            {"--limit N", "at most N sessions; otherwise 20"},
            {"--around N", "print N entries before and after each hit"},
        },
    .examples =
        {
            {"agentwal search rounding error", "sessions with both words"},
            {"agentwal search --cwd . --since 7d --role user migrat*",
             "what you asked for here this week"},
            {"agentwal search --around 2 -- '\"one cent\"' -tax",
             "a phrase without a word; -- ends the options"},
        },
};

static const struct verb_help help_usage = {
    .usage = "[OPTION]...",
    .summary = "Add up the tokens and costs of the sessions",
    .text = "An answer that several lines, sessions or forks have is counted once. REQS:\n"
            "requests. CACHE-R and CACHE-W: read from and written to a cache, which INPUT is\n"
            "without. REASON: reasoning. COST is what clients wrote, in US dollars; with ~ it\n"
            "is in part computed with list prices, of requests of which clients wrote none.\n"
            "A model without a price is named, and adds nothing. Columns without a number,\n"
            "and those that do not fit, are left out.\n",
    .options =
        {
            {"--by GROUP", "day (the default), model, project, client or session"},
            {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w"},
            {"--until TIME", "before that time"},
            {"--prices FILE", "list prices, in the form of LiteLLM, instead of the built-in ones"},
        },
    .examples =
        {
            {"agentwal usage --since 30d", "each day of the last month"},
            {"agentwal usage --by model --json", "with exact numbers"},
        },
};

static const struct verb_help help_watch = {
    .usage = "[STORE] [--session ID]... [OPTION]...",
    .summary = "Watch what is appended to all sessions, until interrupted",
    .text = "On a terminal: the sessions at work, who claims them, their last message and\n"
            "entries a minute; q ends it, Enter prints the command that resumes the session.\n"
            "Else, with --plain and with --json: a line for each new entry.\n",
    .options =
        {
            {"--session ID", "only this one; several times: only these"},
            {"--project ID", "only sessions of this project"},
            {"--cwd DIR", "only sessions of this directory"},
            {"--since TIME", "begin with entries from 2026-11-20, "
                             "2026-11-20T14:03, or an age: 10m, 12h, 7d"},
            {"--plain", "lines on a terminal too"},
        },
    .examples =
        {
            {"agentwal watch", "all agents"},
            {"agentwal watch --cwd . --since 1h --plain", "this directory, with the last hour"},
            {"agentwal watch --json", "one JSON object per entry"},
        },
};

static const struct verb_help help_resume = {
    .usage = "[SESSION | WORD...] [OPTION]...\n"
             "resume --remote URL [--store-id ID] [--take-over] SESSION\n"
             "resume --take-back SESSION",
    .summary = "Print the command that continues a session, or bring one here",
    .text = "Sees to it first that the client has the whole session: a file that it\n"
            "deleted is written again, and entries that only the store has are added.\n"
            "eval \"$(agentwal resume)\" runs what is printed.\n"
            "\n"
            "Without a SESSION you pick one from a list, newest first. Type to filter it:\n"
            "each word must be in the title, the first message, the directory, the project\n"
            "or the id. Up, Down, PgUp, PgDn, Ctrl-K, Ctrl-J, Ctrl-P and Ctrl-N move, Ctrl-U\n"
            "clears the words, Enter picks, Esc and Ctrl-C end with 130. Without a terminal\n"
            "the sessions are printed as a table, unless the words fit one alone.\n"
            "\n"
            "--remote takes the session from another machine's store in the bucket (agentwal\n"
            "remote push). It goes on here, and is refused there; its last 50 entries are\n"
            "printed. When both went on, both remain: docs/machines.md.\n",
    .options =
        {
            {"--in CLIENT", "continue in claude, codex, pi, gemini, copilot, qwen or kimi"},
            {"--run", "run the command instead of printing it"},
            {"--project ID", "only sessions of this project"},
            {"--cwd DIR", "only sessions of this directory"},
            {"--limit N", "of the table: at most N sessions; 0: all; else 20"},
            {"--remote URL", "bring the session from a store in this bucket"},
            {"--store-id ID", "of that store, where the bucket has several"},
            {"--take-over", "also when it is at a machine that is not in the bucket"},
            {"--take-back", "go on with a session that has moved away"},
        },
    .examples =
        {
            {"agentwal resume 7f3a21c --in pi", "go on with it in another client"},
            {"agentwal resume parser --cwd . --run", "begin with a word, pick, and go on"},
            {"agentwal resume --remote s3://sessions 7f3a21c0",
             "go on with a session of another machine"},
        },
};

static const struct verb_help help_view = {
    .usage = "SESSION [OPTION]...",
    .summary = "Write a session as one HTML file, to read and to share",
    .text = "The file has the page of agentwal serve and the session: its conversation, tree,\n"
            "files changed and costs. It loads nothing and sends nothing. SESSION may also be\n"
            "the file of a client; it is not imported.\n"
            "\n"
            "Known forms of secrets are hidden: keys and tokens of providers, private\n"
            "keys, values of Authorization, passwords in URLs, values of names such as\n"
            "API_KEY. They are counted by kind on standard error. Read the page before you\n"
            "share it: a secret of another form stays. Redacted entries are left out.\n",
    .options =
        {
            {"--redact PATTERN", "hide what matches this extended "
                                 "regular expression, too; may be repeated"},
            {"--no-tool-results", "leave the results of tools out"},
            {"--no-paths", "shorten absolute paths to their last name, or to "
                           "what is below the session's directory"},
            {"--prices FILE", "list prices, in the form of LiteLLM, instead of the built-in ones"},
        },
    .examples =
        {
            {"agentwal view @latest >page.html", "the session used last"},
            {"agentwal view session.jsonl >page.html", "a file, without a store"},
            {"agentwal view 7f3a9c1 --no-paths --redact acme >page.html",
             "without the names of a customer"},
        },
};

static const struct verb_help help_create = {
    .usage = "[--id ID] [--cwd DIR] [--project ID] [--title T] [--meta JSON]",
    .summary = "Create a session and print its id",
    .options =
        {
            {"--id ID", "its id; a new UUID without it"},
            {"--cwd DIR", "its directory; the current one without it"},
            {"--project ID", "its project; that of its directory without it"},
            {"--title T", "its title"},
            {"--meta JSON", "its metadata, a JSON object"},
        },
    .examples =
        {
            {"agentwal create --title \"Fix the build\"", "in the current directory"},
            {"id=$(agentwal create)", "for a script"},
        },
};

static const struct verb_help help_append = {
    .usage = "SESSION [--create] [--each] [--expect-tail ENTRY] [--stream N] "
             "[--durability durable|written|queued|cluster] < entries.jsonl\n"
             "append SESSION --user TEXT [OPTION]...",
    .summary = "Append entries from standard input, one JSON object per line",
    .text = "A line is an object with \"type\" and \"payload\", and optionally \"id\", "
            "\"parentId\",\n"
            "\"timestamp\", \"runId\" and \"meta\". Without parentId the entry follows the head;\n"
            "null makes a root.\n",
    .options =
        {
            {"--create", "create the session if it does not exist"},
            {"--user TEXT", "a message of the user, instead of standard input"},
            {"--each", "one append and one result per line, instead of one atomic batch"},
            {"--expect-tail ENTRY", "refuse if the last entry is another one"},
            {"--stream N", "another stream than the conversation, which is 0"},
            {"--durability LEVEL", "durable (default), written, queued or cluster: in the remote "
                                   "too, by agentwal remote push --follow"},
        },
    .examples =
        {
            {"agentwal append 7f3a21c < entries.jsonl", "one atomic batch"},
            {"agentwal append --create notes --user \"round up\"",
             "a message, to a session that may not exist yet"},
            {"agent | agentwal append --each --json 7f3a21c",
             "acknowledge each line once it is durable"},
        },
};

static const struct verb_help help_fork = {
    .usage = "SESSION [--at ENTRY] [--id NEW]",
    .summary = "Create a session that shares the beginning of another one, and print its id",
    .options =
        {
            {"--at ENTRY", "the last shared entry; the head without it"},
            {"--id NEW", "the id of the new session"},
        },
    .examples =
        {
            {"agentwal fork @latest", "from the newest session of this directory"},
            {"agentwal fork 7f3a21c --at b2d90c4", "from one of its entries"},
        },
};

static const struct verb_help help_head = {
    .usage = "SESSION [NAME [ENTRY]] [--stream N] [--expect ENTRY] [--note TEXT]",
    .summary = "List, show or move the heads of a session",
    .text = "An empty ENTRY removes the head.\n",
    .options =
        {
            {"--stream N", "of another stream than the conversation, which is 0"},
            {"--expect ENTRY", "move only if the head is at this entry"},
            {"--note TEXT", "a note to keep with the move"},
        },
    .examples =
        {
            {"agentwal head 7f3a21c", "all heads"},
            {"agentwal head 7f3a21c main b2d90c4", "rewind the conversation to an entry"},
            {"agentwal head 7f3a21c tried b2d90c4", "name a branch"},
        },
};

static const struct verb_help help_meta = {
    .usage = "SESSION [--merge JSON]",
    .summary = "Print the metadata of a session, after applying a merge patch",
    .options =
        {
            {"--merge JSON", "a merge patch (RFC 7386)"},
        },
    .examples =
        {
            {"agentwal meta 7f3a21c", "print it"},
            {"agentwal meta 7f3a21c --merge '{\"reviewed\":true}'", "set a member"},
        },
};

static const struct verb_help help_title = {
    .usage = "SESSION TEXT",
    .summary = "Give a session another title",
    .text = "An empty TEXT: its title is the beginning of its first message.\n",
    .examples =
        {
            {"agentwal title @latest \"Invoices off by one cent\"",
             "of the newest session of this directory"},
            {"agentwal title 7f3a21c \"\"", "take it away"},
        },
};

static const struct verb_help help_doc = {
    .usage = "put|get|delete|list|scan SESSION|--store [KEY|PREFIX] [--if-version "
             "V] [--at V] [--history]",
    .summary = "Keep JSON documents with a session, or with the store",
    .options =
        {
            {"--store", "documents of the store instead of a session; the directory of the\n"
                        "store is then given as --store=DIR or before the verb"},
            {"--if-version V", "put and delete: only if this is the current version"},
            {"--at V", "get: the value of that version"},
            {"--history", "scan: with former versions and deletions"},
        },
    .examples =
        {
            {"agentwal doc put 7f3a21c plan < plan.json", "store a document"},
            {"agentwal doc get 7f3a21c plan", "print it"},
            {"agentwal doc list --store config/", "the keys of the store that begin with config/"},
        },
};

static const struct verb_help help_compact_session = {
    .usage = "SESSION --first-kept ENTRY [--new ID] < summary",
    .summary = "Replace the entries before an entry by a summary from standard input",
    .options =
        {
            {"--first-kept ENTRY", "the first entry that is kept"},
            {"--new ID", "fork first: the id of the new session"},
        },
    .examples =
        {
            {"agentwal compact-session 7f3a21c --first-kept b2d90c4 < summary.txt", "in place"},
            {"agentwal compact-session 7f3a21c --first-kept b2d90c4 --new short < text",
             "in a fork"},
        },
};

static const struct verb_help help_redact = {
    .usage = "SESSION ENTRY [--reason TEXT] [--erase] [--views] [--undo]",
    .summary = "Hide the content of an entry",
    .text = "It is hidden in every session that has the entry: in the one that SESSION was\n"
            "forked from too; all are printed. The bytes stay in the store until gc --erase;\n"
            "--erase erases them at once. Until then --undo shows the entry again, but not the\n"
            "title that it gave. docs/keeping.md says what erasing does not reach. A secret\n"
            "that got into a session must be revoked.\n",
    .options =
        {
            {"--undo", "show the content again, unless it was erased"},
            {"--reason TEXT", "why; shown in its place"},
            {"--erase", "leave no byte of it in any file of the store"},
            {"--views", "with --erase: rewrite the views that the store knows "
                        "of and\nthat may hold it"},
        },
    .examples =
        {
            {"agentwal redact 0d7f3a21 b2d90c4 --reason \"a password\"",
             "SESSION: the complete id, or its last 7 characters"},
            {"agentwal cat --redacted 0d7f3a21", "show what was redacted, and why"},
        },
};

static const struct verb_help help_delete = {
    .usage = "SESSION... [--erase] [--views]",
    .summary = "Move sessions to the trash",
    .text = "Until \"agentwal gc --erase\" nothing is lost: \"agentwal undelete\" takes them\n"
            "back. Their forks stay as they are.\n",
    .options =
        {
            {"--erase", "delete them for good, and leave no byte of them in any file of the\n"
                        "store, but what forks see"},
            {"--views", "with --erase: remove their views that the store knows of"},
        },
    .examples =
        {
            {"agentwal delete 01976f2e-7c1a-7b52-9c7d-0d5cba7f3a21", "by the complete id"},
            {"agentwal delete 0d7f3a21 5c2e9b07", "by endings of at least 7 characters"},
            {"agentwal delete \"$(agentwal latest --cwd .)\"",
             "the newest session of this directory"},
        },
};

static const struct verb_help help_undelete = {
    .usage = "SESSION...",
    .summary = "Take sessions out of the trash",
    .text = "SESSION: an id, a unique prefix of one, or a unique ending of at "
            "least 4\ncharacters, of a session in the trash.\n",
    .examples =
        {
            {"agentwal list --trash", "what is in the trash"},
            {"agentwal undelete 0d7f3a21", "as it was before"},
        },
};

static const struct verb_help help_pin = {
    .usage = "SESSION [--off]",
    .summary = "Keep a session whatever the rules of retain say",
    .text = "Sets the member \"pinned\" of its metadata.\n",
    .options =
        {
            {"--off", "unpin"},
        },
    .examples =
        {
            {"agentwal pin @latest", "the newest session of this directory"},
            {"agentwal pin --off 7f3a21c", "retain may choose it again"},
        },
};

static const struct verb_help help_checkpoint = {
    .usage = "SESSION ID [--root DIR] [--files-from FILE|- [-0]] [--all-or-none] "
             "[--] FILE...",
    .summary = "Record the state of files, including that one does not exist",
    .text = "A relative FILE is relative to --root if that is given; else to the current\n"
            "directory if that is inside the session's directory; else to the session's\n"
            "directory. Names that cannot be recorded are printed, and the exit code is 1.\n",
    .options =
        {
            {"--root DIR", "the directory of the files; that of the session without it"},
            {"--files-from FILE", "read names from FILE, or with - from standard input"},
            {"-0, --null", "the names end with a zero byte"},
            {"--all-or-none", "record no file when one cannot be recorded"},
        },
    .examples =
        {
            {"agentwal checkpoint @latest before-edit src/main.c", "record one file"},
            {"git ls-files -z | agentwal checkpoint @latest all --files-from - -0",
             "record a work tree"},
        },
};

static const struct verb_help help_checkpoints = {
    .usage = "SESSION",
    .summary = "List the checkpoints of a session",
    .examples =
        {
            {"agentwal checkpoints @latest", "a table"},
            {"agentwal checkpoints --json @latest", "one JSON object per checkpoint"},
        },
};

static const struct verb_help help_checkpoint_show = {
    .usage = "SESSION ID",
    .summary = "List the files of a checkpoint",
    .examples =
        {
            {"agentwal checkpoint-show @latest before-edit", "a table"},
            {"agentwal checkpoint-show --json @latest before-edit", "with the hashes as JSON"},
        },
};

static const struct verb_help help_checkpoint_diff = {
    .usage = "SESSION A [B] [--patch]",
    .summary = "Show the changes from a checkpoint to another one, or to the files on disk",
    .options =
        {
            {"-p, --patch", "the changed lines, as git does"},
        },
    .examples =
        {
            {"agentwal checkpoint-diff @latest before-edit", "what changed on disk since"},
            {"agentwal checkpoint-diff @latest before-edit after-edit", "between two checkpoints"},
        },
};

static const struct verb_help help_checkpoint_delete = {
    .usage = "SESSION ID",
    .summary = "Delete a checkpoint",
    .examples =
        {
            {"agentwal checkpoint-delete @latest before-edit", "delete one"},
            {"agentwal checkpoints @latest", "see which remain"},
        },
};

static const struct verb_help help_checkpoint_export = {
    .usage = "SESSION OUTDIR --layout sdk|spec11",
    .summary = "Write the checkpoints of a session as manifests and contents",
    .options =
        {
            {"--layout NAME", "sdk or spec11: the names and manifests of the files"},
        },
    .examples =
        {
            {"agentwal checkpoint-export @latest out --layout sdk", "below out/checkpoints"},
            {"agentwal checkpoint-export 7f3a21c out --layout spec11", "in the other layout"},
        },
};

static const struct verb_help help_checkpoint_import = {
    .usage = "SESSION DIR [--root DIR]",
    .summary = "Read checkpoints that were written as files, in either layout",
    .options =
        {
            {"--root DIR", "the directory of the files; that of the session without it"},
        },
    .examples =
        {
            {"agentwal checkpoint-import 7f3a21c out", "from out/checkpoints"},
            {"agentwal checkpoint-import 7f3a21c out --root ~/src/app", "for files elsewhere"},
        },
};

static const struct verb_help help_checkpointing = {
    .usage = "SESSION on|off",
    .summary = "Turn checkpoints of a session on or off",
    .examples =
        {
            {"agentwal checkpointing @latest off", "checkpoint records nothing from now on"},
            {"agentwal checkpointing @latest on", "record again"},
        },
};

static const struct verb_help help_rewind = {
    .usage = "SESSION CHECKPOINT|--to ENTRY [--root DIR] [--dry-run] [--expect "
             "CHECKPOINT] [--force] [--head]",
    .summary = "Restore files from a checkpoint, all or none",
    .text = "The state before the rewind is kept as a checkpoint, which is printed: rewind to\n"
            "it to undo.\n",
    .options =
        {
            {"--to ENTRY", "move the conversation to ENTRY, and the files to the checkpoint\n"
                           "that belongs to it"},
            {"--head", "move the conversation to the entry of the checkpoint too"},
            {"--root DIR", "the directory of the files"},
            {"--dry-run", "report what would change"},
            {"--expect CHECKPOINT", "refuse if files changed since this checkpoint"},
            {"--force", "rewind although files changed"},
        },
    .examples =
        {
            {"agentwal rewind @latest before-edit --dry-run", "see what would change"},
            {"agentwal rewind @latest before-edit", "restore the files"},
            {"agentwal rewind @latest --to b2d90c4", "the conversation and the files together"},
        },
};

static const struct verb_help help_init = {
    .usage = "",
    .summary = "Create a store",
    .text = "import, create, append --create and doc put --store create a missing store too.\n",
    .examples =
        {
            {"agentwal init", "the default store"},
            {"agentwal --store /srv/sessions init", "a store in another directory"},
        },
};

static const struct verb_help help_check = {
    .usage = "[--jobs N]\n"
             "check [--store-id ID] --remote URL|STORE",
    .summary = "Read everything in the store and report the damage",
    .text = "It needs no write permission, and works while others use the store. With\n"
            "--strict an ambiguous tail is damage.\n",
    .options =
        {
            {"--jobs N", "read with N threads; one per processor without it"},
            {"--remote URL|STORE", "read what the remote, or that of the store, has instead"},
            {"--store-id ID", "--remote: which store, where the remote has several"},
        },
    .examples =
        {
            {"agentwal check", "exit code 0: sound, 1: damaged"},
            {"agentwal check --json", "a report for programs"},
        },
};

static const struct verb_help help_salvage = {
    .usage = "OUT [--jobs N]",
    .summary = "Build a sound store in OUT from everything that can be read",
    .options =
        {
            {"--jobs N", "read with N threads; one per processor without it"},
        },
    .examples =
        {
            {"agentwal salvage recovered", "OUT must not exist"},
            {"agentwal --store recovered list", "the sessions that were saved"},
        },
};

static const struct verb_help help_migrate = {
    .usage = "[SESSION]",
    .summary = "Convert the store, or a session, to this version",
    .examples =
        {
            {"agentwal migrate", "the store"},
            {"agentwal migrate 7f3a21c", "the schema of one session"},
        },
};

static const struct verb_help help_accept_damage = {
    .usage = "[SESSION]",
    .summary = "Allow appends to sessions that lost entries",
    .examples =
        {
            {"agentwal check", "see what was lost, first"},
            {"agentwal accept-damage", "all damaged sessions"},
            {"agentwal accept-damage 7f3a21c", "one session"},
        },
};

static const struct verb_help help_gc = {
    .usage = "[--dry-run] [--erase] [--views] [--keep-deltas]\n"
             "[--max-bytes SIZE] [--rate SIZE]",
    .summary = "Give back the space of what is dead, and compress the rest",
    .text = "Others may use the store meanwhile. Stopped at any time, it leaves a sound\n"
            "store, and the next run goes on. A damaged segment is left as it is, and the\n"
            "exit code is 1 then. docs/keeping.md says what is dead.\n"
            "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or KiB, MiB,\n"
            "GiB, TiB (powers of 1024).\n",
    .options =
        {
            {"--dry-run", "change nothing; show what would come back, per session and in total"},
            {"--erase", "delete what is in the trash, and leave no byte of what was\n"
                        "deleted or redacted in the log; list the views that may hold it"},
            {"--views", "rewrite the views that the store knows of and that may "
                        "hold what\nwas deleted or redacted"},
            {"--keep-deltas", "keep the deltas of messages that are complete; not with\n"
                              "--erase"},
            {"--max-bytes SIZE", "rewrite at most SIZE of segments"},
            {"--rate SIZE", "read and write at most SIZE in a second; 0: no "
                            "limit; 64MiB without it"},
        },
    .examples =
        {
            {"agentwal gc --dry-run", "what would come back"},
            {"agentwal gc", "run it, with others at work"},
            {"agentwal gc --erase", "after delete or redact"},
        },
};

static const struct verb_help help_backup = {
    .usage = "DIR",
    .summary = "Copy the store to DIR, and later only what is new",
    .text = "Others may use the store meanwhile. DIR is a store, as of the moment the\n"
            "backup began: read it with --store DIR, or copy it back to restore. Stopped at\n"
            "any time, it leaves DIR as the last backup did, or newer, and the next run\n"
            "goes on. A DIR that was written to is refused. docs/keeping.md has the rest.\n",
    .examples =
        {
            {"agentwal backup /mnt/backup/agentwal", "all, or what is new"},
            {"agentwal --store /mnt/backup/agentwal check", "check the copy"},
        },
};

static const struct verb_help help_retain = {
    .usage = "[--older-than AGE] [--keep-last N] [--max-bytes SIZE]\n"
             "[--project ID] [--archive DIR] [--all] [--apply]",
    .summary = "Move old sessions to the trash, by rules",
    .text = "Without --apply it changes nothing and shows what it would move. A session that\n"
            "is pinned, or claimed by a process, stays, and so does what a session that stays\n"
            "was forked from. docs/keeping.md says how rules combine.\n"
            "AGE: a number of hours, days, weeks or years: 12h, 90d, 8w, 1y.\n"
            "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or KiB, MiB,\n"
            "GiB, TiB (powers of 1024).\n",
    .options =
        {
            {"--older-than AGE", "sessions last active longer ago"},
            {"--keep-last N", "keep the N newest ones whatever the other rules "
                              "say; alone:\nmove all others"},
            {"--max-bytes SIZE", "the oldest ones, until the others have at most SIZE of records"},
            {"--project ID", "only sessions of this project"},
            {"--archive DIR", "copy them to DIR first, a store, which is made if needed"},
            {"--all", "permit rules that leave no session"},
            {"--apply", "move them"},
        },
    .examples =
        {
            {"agentwal retain --older-than 90d", "what would go"},
            {"agentwal retain --older-than 90d --keep-last 50 --apply",
             "move it, but keep the 50 newest"},
            {"agentwal gc --erase", "delete what is in the trash"},
        },
};

static const struct verb_help help_restore = {
    .usage = "DIR SESSION...",
    .summary = "Take sessions back from an archive of retain",
    .text = "DIR is the store that retain --archive has written. A session in "
            "the trash is\ntaken out of it, and what is missing is copied. "
            "\"agentwal merge DIR\" takes all\nsessions.\n",
    .examples =
        {
            {"agentwal --store archive list", "what is there"},
            {"agentwal restore archive 0d7f3a21", "one of them"},
        },
};

static const struct verb_help help_help = {
    .usage = "[VERB]...",
    .summary = "Show the verbs, or how to use one",
    .examples =
        {
            {"agentwal help", "all verbs"},
            {"agentwal help rewind", "one verb"},
            {"agentwal help --json", "the same for programs"},
        },
};

static const struct verb_help help_bundle = {
    .usage = "SESSION... FILE",
    .summary = "Write sessions to one file, with everything they have",
    .text = "Entries of all branches, heads, documents with their versions, checkpoints with\n"
            "their files. Content that was redacted is left out. A fork takes what it shares\n"
            "along. agentwal import FILE takes them into another store. FILE must not exist.\n",
    .examples =
        {
            {"agentwal bundle 7f3a21c work.bundle", "one session"},
            {"agentwal bundle @latest 7f3a21c work.bundle", "two of them"},
            {"agentwal --store new import work.bundle", "on another machine"},
        },
};

static const struct verb_help help_merge = {
    .usage = "[--keep-both] OTHER",
    .summary = "Take all sessions of another store into this one",
    .text = "OTHER is the directory of a store, which is only read. A session that both have\n"
            "is continued if this store has its beginning, and left if it has more. One with\n"
            "other entries is refused by name, and the exit code is 1. Documents of the store\n"
            "are added where there are none. Merging again adds only what is new. The store\n"
            "is created if it does not exist.\n",
    .options =
        {
            {"--keep-both", "instead of a refusal: the other one becomes a "
                            "fork, ID@ and 8 digits of OTHER's id"},
        },
    .examples =
        {
            {"agentwal merge /mnt/laptop/agentwal", "the sessions of another machine"},
            {"agentwal --store all merge work", "one store into another"},
        },
};

static const struct verb_help help_index = {
    .usage = "[--deep]",
    .summary = "Bring the index of search up to date",
    .text = "search does it too. The files are derived: they may be removed at any time.\n",
    .options =
        {
            {"--deep", "the index of tools' results too"},
        },
    .examples =
        {
            {"agentwal index", "after an import, so that the first search is fast"},
            {"agentwal index --deep --json", "with results, and the sizes"},
        },
};

static const struct verb_help help_remote = {
    .usage = "add [--replace] URL\n"
             "remote remove\n"
             "remote list URL\n"
             "remote sessions [--store-id ID] URL\n"
             "remote push [--take-over] [--follow [--rate N]]\n"
             "remote handoff SESSION\n"
             "remote pull [--store-id ID] [--take-over|--follow] URL DIR\n"
             "remote status\n"
             "remote compact [--now] [--anew] [--erase]",
    .summary = "Keep the store in a bucket too, and bring it to other machines",
    .text = "URL is s3://BUCKET[/PREFIX], with ?endpoint=URL&region=NAME if needed, or\n"
            "file:///DIR. Credentials come from the environment, from ~/.aws/credentials, or\n"
            "from the command in AGENTWAL_REMOTE_CREDENTIALS_COMMAND.\n"
            "  add       name the remote; refuses one that replaces objects\n"
            "  remove    forget it; its objects stay\n"
            "  list      the stores in it, with their ids\n"
            "  sessions  the sessions in it, as of the last push\n"
            "  push      upload what is new and durable\n"
            "  pull      copy a store to DIR, to read it, or update the copy\n"
            "  handoff   refuse appends to a session, push, and give it to the machine that\n"
            "            resumes it next\n"
            "  status    what is pushed\n"
            "  compact   after many pushes: write a new base for pulls, and remove the\n"
            "            parts that a base made a day ago has replaced\n"
            "One store writes at a time; --take-over ends the writing of the other for good.\n"
            "docs/machines.md has the rest.\n",
    .options =
        {
            {"--replace", "add: replace the remote that the store has"},
            {"--take-over", "push: from another copy of the store; pull: make DIR the store that\n"
                            "writes"},
            {"--follow", "push: upload records as they become durable; pull: keep the copy\n"
                         "current; until interrupted"},
            {"--rate N", "push --follow: at most N parts a second, each a PUT; default 20"},
            {"--now", "compact: even after few pushes"},
            {"--anew", "compact: from the whole store as gc left it; implies --now"},
            {"--erase", "compact: as gc --erase, then remove at once all that the remote had"},
            {"--store-id ID", "pull, sessions: which of several stores in the remote"},
        },
    .examples =
        {
            {"agentwal remote add s3://sessions", "name the bucket"},
            {"agentwal remote push", "store what is new"},
            {"agentwal remote pull --take-over s3://sessions ~/sessions", "go on elsewhere"},
        },
};

static const struct verb_help help_serve = {
    .usage = "[OPTION]...",
    .summary = "Answer programs and browsers over HTTP",
    .text = "It prints a link that opens the page of all sessions in one browser; Enter\n"
            "prints another link. Programs use --socket, to which only you can connect, or\n"
            "the token of --token-file. It is read-only without --write, and runs until it\n"
            "is interrupted.\n",
    .options =
        {
            {"--open", "open the page in the browser"},
            {"--port N", "listen on port N of 127.0.0.1 and ::1; otherwise a free one"},
            {"--token-file PATH", "write a token for programs there"},
            {"--socket PATH", "listen on that Unix socket, not on a port"},
            {"--write", "allow changes"},
            {"--connections N", "at most N connections; otherwise 256"},
            {"--idle SECONDS", "close a connection that is idle for so long; otherwise 60"},
            {"--link-time SECONDS", "how long the link may be opened; otherwise 600"},
            {"--prices FILE", "list prices, in the form of LiteLLM, instead of the built-in ones"},
        },
    .examples =
        {
            {"agentwal serve --open", "read sessions in the browser"},
            {"agentwal serve --socket serve.sock", "answer programs on a Unix socket"},
        },
};

/* --- the table --- */

enum {
    NONE = CLI_NO_STORE
};

/* name, group, flags, index of the store, function, help */
static const struct verb verbs[] = {
    {"import", VERB_CONVERT, VERB_ADDS, 1, verb_import, &help_import},
    {"adopt", VERB_CONVERT, VERB_ADDS | VERB_EVERY_DAY, 1, verb_adopt, &help_adopt},
    {"export", VERB_CONVERT, 0, 1, verb_export, &help_export},
    {"follow", VERB_CONVERT, 0, 1, verb_follow, &help_follow},
    {"path", VERB_CONVERT, 0, 1, verb_path, &help_path},
    {"dialects", VERB_CONVERT, 0, NONE, verb_dialects, &help_dialects},
    {"list", VERB_READ, VERB_FENCED | VERB_EVERY_DAY, 1, verb_list, &help_list},
    {"show", VERB_READ, 0, 1, verb_show, &help_show},
    {"tree", VERB_READ, VERB_NAMELESS, 0, verb_tree, &help_tree},
    {"cat", VERB_READ, VERB_NAMELESS | VERB_EVERY_DAY, 0, verb_cat, &help_cat},
    {"latest", VERB_READ, 0, 1, verb_latest, &help_latest},
    {"children", VERB_READ, 0, 1, verb_children, &help_children},
    {"projects", VERB_READ, 0, 1, verb_projects, &help_projects},
    {"project", VERB_READ, 0, NONE, verb_project, &help_project},
    {"stats", VERB_READ, 0, 1, verb_stats, &help_stats},
    {"search", VERB_READ, VERB_EVERY_DAY, 1, search_run, &help_search},
    {"usage", VERB_READ, VERB_EVERY_DAY, 1, usage_run, &help_usage},
    {"watch", VERB_READ, VERB_EVERY_DAY, 1, watch_run, &help_watch},
    {"resume", VERB_READ, VERB_EVERY_DAY, 1, agentwal_resume, &help_resume},
    {"serve", VERB_READ, VERB_EVERY_DAY, 1, serve_run, &help_serve},
    {"view", VERB_READ, VERB_NAMELESS, 0, view_run, &help_view},
    {"create", VERB_WRITE, VERB_ADDS | VERB_FENCED, 1, verb_create, &help_create},
    {"append", VERB_WRITE, VERB_FENCED, 1, verb_append, &help_append},
    {"fork", VERB_WRITE, VERB_EVERY_DAY, 1, verb_fork, &help_fork},
    {"title", VERB_WRITE, 0, 1, verb_title, &help_title},
    {"head", VERB_WRITE, 0, 1, verb_head, &help_head},
    {"meta", VERB_WRITE, 0, 1, verb_meta, &help_meta},
    {"doc", VERB_WRITE, 0, 2, verb_doc, &help_doc},
    {"compact-session", VERB_WRITE, 0, 1, verb_compact_session, &help_compact_session},
    {"redact", VERB_WRITE, 0, 1, verb_redact, &help_redact},
    {"delete", VERB_WRITE, 0, 1, verb_delete, &help_delete},
    {"undelete", VERB_WRITE, 0, 1, verb_undelete, &help_undelete},
    {"pin", VERB_WRITE, 0, 1, verb_pin, &help_pin},
    {"checkpoint", VERB_FILES, 0, 1, verb_checkpoint, &help_checkpoint},
    {"checkpoints", VERB_FILES, 0, 1, verb_checkpoints, &help_checkpoints},
    {"checkpoint-show", VERB_FILES, 0, 1, verb_checkpoint_show, &help_checkpoint_show},
    {"checkpoint-diff", VERB_FILES, 0, 1, verb_checkpoint_diff, &help_checkpoint_diff},
    {"checkpoint-delete", VERB_FILES, 0, 1, verb_checkpoint_delete, &help_checkpoint_delete},
    {"checkpoint-export", VERB_FILES, 0, 1, verb_checkpoint_export, &help_checkpoint_export},
    {"checkpoint-import", VERB_FILES, 0, 1, verb_checkpoint_import, &help_checkpoint_import},
    {"checkpointing", VERB_FILES, 0, 1, verb_checkpointing, &help_checkpointing},
    {"rewind", VERB_FILES, VERB_EVERY_DAY, 1, verb_rewind, &help_rewind},
    {"init", VERB_CARE, VERB_ADDS, 1, verb_init, &help_init},
    {"check", VERB_CARE, VERB_NAMELESS, 0, verb_check, &help_check},
    {"salvage", VERB_CARE, VERB_NAMELESS, 0, verb_salvage, &help_salvage},
    {"migrate", VERB_CARE, 0, 1, verb_migrate, &help_migrate},
    {"accept-damage", VERB_CARE, 0, 1, verb_accept_damage, &help_accept_damage},
    {"gc", VERB_CARE, 0, 1, verb_gc, &help_gc},
    {"backup", VERB_CARE, 0, 1, verb_backup, &help_backup},
    {"bundle", VERB_CARE, 0, 1, verb_bundle, &help_bundle},
    {"merge", VERB_CARE, VERB_ADDS, 1, verb_merge, &help_merge},
    {"index", VERB_CARE, 0, 1, search_run_index, &help_index},
    {"retain", VERB_CARE, 0, 1, verb_retain, &help_retain},
    {"remote", VERB_CARE, 0, 2, remote_run, &help_remote},
    {"restore", VERB_CARE, 0, 1, verb_restore, &help_restore},
    {"help", VERB_CARE, 0, NONE, help_run, &help_help},
};

const struct verb *verb_at(size_t index)
{
    return index < sizeof(verbs) / sizeof(verbs[0]) ? &verbs[index] : NULL;
}

const struct verb *verb_find(const char *name)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

const char *verb_suggest(const char *name)
{
    /* What other programs call it. */
    static const char *const others[][2] = {
        {"ls", "list"},
        {"rm", "delete"},
        {"grep", "search"},
        {"log", "cat"},
        {"diff", "checkpoint-diff"},
        {"rename", "title"},
    };
    struct cli_suggestion suggestion = {.typed = name};
    const struct verb *verb;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(others[i][0], name) == 0) {
            return others[i][1];
        }
    }
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        cli_suggest(&suggestion, verb->name);
    }
    return suggestion.nearest;
}

bool verb_has_command(const char *verb_name, const char *name)
{
    const struct verb *verb = verb_find(verb_name);
    size_t size = strlen(verb_name);

    if (verb == NULL || verb_find(name) != NULL) {
        return false;
    }
    /* The lines of its usage: the verb is before each but the first. */
    for (const char *line = verb->help->usage; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strncmp(line, verb_name, size) == 0 ? size : 0;
        line += *line == ' ';
        if (strcspn(line, " \n") == strlen(name) && strncmp(line, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}
