/*
 * agentwal.c - the program: its verbs and their help, and how one is run. walcat and walcheck are
 * names of it.
 *
 * One table has all verbs; the help, the man page, the completion and the dispatch are made from
 * it. A new verb is an item of the table, with its help, and its function in tools/cli/verbs.h.
 *
 * Invariant: the verbs of a group are adjacent, in the order of the help.
 */
#include <stdio.h>
#include <string.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

/* --- the verbs ------------------------------------------------------------ */

enum verb_group { VERB_CONVERT, VERB_READ, VERB_WRITE, VERB_FILES, VERB_CARE, VERB_GROUP_COUNT };

enum {
    /* The verb creates the store that is missing. */
    VERB_ADDS = 1,
    /* Its name is not one of the operands that `run` gets. */
    VERB_NAMELESS = 2,
    /* It says whether another machine has taken the store over. */
    VERB_FENCED = 4,
    /* The overview begins with it. */
    VERB_EVERY_DAY = 8
};

enum {
    VERB_OPTIONS = 14, /* of a verb at most, with the end of the list */
    VERB_EXAMPLES = 4
};

struct verb_option {
    const char *usage; /* "--at ENTRY"; NULL after the last one */
    const char *text;
};

struct verb_example {
    const char *command; /* NULL after the last one */
    const char *text;
};

struct verb {
    const char *name;
    enum verb_group group;
    unsigned flags;
    int store_at; /* index among the operands that `run` gets */
    int (*run)(struct cli *cli, int argc, char **argv);
    /* Its help. */
    const char *usage;   /* operands and options, after the verb's name */
    const char *summary; /* one sentence, without its full stop */
    const char *text;    /* more, or NULL */
    struct verb_option options[VERB_OPTIONS];
    struct verb_example examples[VERB_EXAMPLES];
};

enum { NONE = CLI_NO_STORE };

#define NO_SECRETS_TEXT "known forms of secrets are replaced, and counted"
#define RULES_TEXT      "more forms of secrets: docs/secrets.md"

/* name, group, flags, index of the store, function, and the help */
static const struct verb verbs[] = {
    {"import", VERB_CONVERT, VERB_ADDS, 1, verb_import,
     .usage = "[--dialect auto|NAME] [--all-files] [--follow] PATH...",
     .summary = "Import session files, or all session files below directories",
     .text = "A file becomes a session and a line an entry. Of a directory, the session files\n"
             "of Claude Code, Codex, pi and OpenCode are imported by their paths, and other\n"
             "files of lines by their content; credentials, settings, empty files and\n"
             "everything else are left out and counted. A repeated import adds only what is\n"
             "new, from whichever directory. The store is created if it does not exist. A\n"
             "bundle, which agentwal bundle wrote, gives its sessions back with everything\n"
             "they have.\n",
     .options = {{"--dialect NAME", "the format of the files; auto recognises it"},
                 {"--all-files", "import every file below a directory"},
                 {"--follow", "then import what changes, until interrupted"},
                 {"--summary", "with --json: a last object {\"summary\":...}"},
                 {"--redact-secrets", "then redact what is new and has a known secret"},
                 {"--rules FILE", RULES_TEXT},
                 {"--bundle-passphrase-fd N", "of an encrypted bundle; else it is asked for"},
                 {"--bundle-key-file FILE", "the key of an encrypted bundle"},
                 {"-v, --verbose", "print every source and every warning"}},
     .examples = {{"agentwal import ~/.claude", "all sessions of Claude Code"},
                  {"agentwal import session.jsonl work.bundle",
                   "a file, and the sessions of a bundle"},
                  {"agentwal import --follow ~/.codex ~/.pi/agent", "keep the store current"}}},
    {"adopt", VERB_CONVERT, VERB_ADDS | VERB_EVERY_DAY, 1, verb_adopt,
     .usage = "[--yes] [--install | --uninstall]",
     .summary = "Find the clients of this user, and import their sessions",
     .text = "Prints the folders of Claude Code, Codex, pi, OpenCode and the other clients of\n"
             "\"agentwal dialects\" with the number of sessions and what is left out, asks, and\n"
             "imports. Variables that move a folder, such as CLAUDE_CONFIG_DIR, are respected.\n"
             "Without a terminal and without --yes only the plan is printed.\n",
     .options = {{"-y, --yes", "do not ask"},
                 {"--install",
                  "then follow the folders by a systemd user unit, from each login on"},
                 {"--uninstall", "stop and remove that unit; import nothing"},
                 {"-v, --verbose", "print every source and every warning"}},
     .examples = {{"agentwal adopt", "show the plan and ask"},
                  {"agentwal adopt --yes --install", "import, and keep current"}}},
    {"export", VERB_CONVERT, 0, 1, verb_export,
     .usage = "--dialect source|NAME [-v] [--session SESSION]... [--no-secrets] OUTDIR|--stdout",
     .summary = "Write sessions as the files of a client",
     .text = "A repeated export adds what is new. What a format cannot express is listed.\n",
     .options = {{"--dialect source", "the imported files, byte for byte"},
                 {"--dialect NAME", "the format of a client (see agentwal dialects)"},
                 {"--session SESSION", "only this session; may be repeated"},
                 {"--stdout", "one session to standard output"},
                 {"--no-secrets", NO_SECRETS_TEXT},
                 {"--rules FILE", RULES_TEXT},
                 {"-v, --verbose", "print each file"}},
     .examples = {{"agentwal export --dialect source backup", "all imported files below backup"},
                  {"agentwal export --dialect pi --session 7f3a21c ~/.pi/agent",
                   "continue a session in another client"},
                  {"agentwal export --dialect claude --session @latest --stdout",
                   "print one session"}}},
    {"follow", VERB_CONVERT, 0, 1, verb_follow, .usage = "--dialect NAME OUTDIR",
     .summary = "Keep the files of a client current until interrupted",
     .options = {{"--dialect NAME", "the format of the client (see agentwal dialects)"}},
     .examples = {{"agentwal follow --dialect claude ~/.claude",
                   "show all sessions in Claude Code"},
                  {"agentwal follow --dialect pi /tmp/view", "write them to another directory"}}},
    {"path", VERB_CONVERT, 0, 1, verb_path,
     .usage = "--dialect source|NAME [--stream N] OUTDIR SESSION",
     .summary = "Print the path of a session's file below a directory",
     .options = {{"--dialect NAME", "the format of the file"},
                 {"--stream N", "of another stream than the conversation, which is 0"}},
     .examples = {{"agentwal path --dialect claude ~/.claude @latest",
                   "where export writes the newest session"},
                  {"agentwal path --dialect source out 7f3a21c",
                   "where its imported file is written back"}}},
    {"dialects", VERB_CONVERT, 0, NONE, verb_dialects, .usage = "",
     .summary = "List the formats that can be imported and exported",
     .examples = {{"agentwal dialects", "a table, and what each format can express"},
                  {"agentwal dialects --json", "one JSON object per format"}}},
    {"list", VERB_READ, VERB_FENCED | VERB_EVERY_DAY, 1, verb_list,
     .usage = "[--cwd DIR] [--project ID] [--client NAME] [--title TEXT] [--since TIME] "
              "[--trash] [--subagents] [--limit N] [--cursor] [--after CURSOR]",
     .summary = "List the sessions, newest first",
     .text = "Sessions of subagents are below those that started them: see children. On a\n"
             "terminal a long id is shown by its end, which is accepted where it is unique.\n",
     .options = {{"--cwd DIR", "only sessions of this directory"},
                 {"--project ID", "only sessions of this project"},
                 {"--client NAME", "only sessions of this client, such as claude or codex"},
                 {"--title TEXT", "only sessions with the text in the title or first message"},
                 {"--since TIME", "only what changed since 2026-11-20, or an age: 12h, 7d, 2w"},
                 {"--trash", "the sessions in the trash, instead of all others"},
                 {"--subagents", "with those that do a part of another one's work"},
                 {"--limit N", "at most N sessions; 0: all"},
                 {"--cursor", "print the cursor of the next page on standard error"},
                 {"--after CURSOR", "continue after a page"}},
     .examples = {{"agentwal list --cwd .", "those of this directory"},
                  {"agentwal list --client codex --since 7d", "this week's sessions of one client"},
                  {"agentwal list --json", "one JSON object per session"}}},
    {"show", VERB_READ, 0, 1, verb_show, .usage = "SESSION",
     .summary = "Show the details of a session",
     .examples = {{"agentwal show @latest", "the newest session of this directory"},
                  {"agentwal show --json 7f3a21c", "as a JSON object"}}},
    {"tree", VERB_READ, VERB_NAMELESS, 0, verb_tree,
     .usage = "SESSION [--all] [--stream N] [--deltas] [--redacted]",
     .summary = "Draw the branches of a session, with its heads",
     .text = "SESSION may also be the file of a client; it is not imported.\n",
     .options = {{"--all", "all branches in log order"},
                 {"--stream N", "another stream than the conversation, which is 0"},
                 {"--deltas", "with entries of type message_delta_batch"},
                 {"--redacted", "with redacted entries"}},
     .examples = {{"agentwal tree @latest", "the newest session of this directory"},
                  {"agentwal tree --deltas 7f3a21c", "with the partial messages of a stream"}}},
    {"cat", VERB_READ, VERB_NAMELESS | VERB_EVERY_DAY, 0, verb_cat,
     .usage = "SESSION [--text] [--branch ENTRY|HEAD | --up-to ENTRY] [OPTION]...\n"
              "cat --frames [SEGMENT]",
     .summary = "Print the entries of a session, one JSON object per line",
     .text = "SESSION may also be the file of a client; it is not imported.\n",
     .options = {{"--text", "a readable conversation"},
                 {"--branch ENTRY|HEAD",
                  "the branch of that entry or head instead of the live one"},
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
                 {"--frames", "every frame of the store, or of a segment file"}},
     .examples = {{"agentwal cat --text @latest", "read the newest conversation"},
                  {"agentwal cat --text session.jsonl", "read a file of a client, without a store"},
                  {"agentwal cat --follow 7f3a21c", "watch a session"}}},
    {"latest", VERB_READ, 0, 1, verb_latest, .usage = "[--cwd DIR]",
     .summary = "Print the id of the newest session",
     .options = {{"--cwd DIR", "the newest of this directory"}},
     .examples = {{"agentwal latest --cwd .", "the session to resume here"},
                  {"agentwal latest --json", "with its details"}}},
    {"children", VERB_READ, 0, 1, verb_children, .usage = "SESSION",
     .summary = "List the forks of a session",
     .examples = {{"agentwal children 7f3a21c", "a table"},
                  {"agentwal children --json 7f3a21c", "one JSON object per session"}}},
    {"projects", VERB_READ, 0, 1, verb_projects, .usage = "",
     .summary = "List the projects of the sessions",
     .examples = {{"agentwal projects", "a table"},
                  {"agentwal projects --json", "one JSON object per project"}}},
    {"project", VERB_READ, 0, NONE, verb_project, .usage = "[DIR]",
     .summary = "Print the project id of a directory",
     .examples = {{"agentwal project", "of the current directory"},
                  {"agentwal list --project \"$(agentwal project)\"",
                   "the sessions of this repository"}}},
    {"stats", VERB_READ, 0, 1, verb_stats, .usage = "",
     .summary = "Show the counts and sizes of the store and its sessions",
     .text = "OWN: bytes of records that no other session sees. SHARED: of entries that\n"
             "forks see, and of those that a fork sees of its source. RECLAIMABLE: of dead\n"
             "records; gc gives them back. All before compression.\n",
     .examples = {{"agentwal stats", "for people"},
                  {"agentwal stats --json", "with exact numbers"}}},
    {"search", VERB_READ, VERB_EVERY_DAY, 1, search_run,
     .usage = "[OPTION]... WORD...\n"
              "search --secrets [--session SESSION] [--project ID] [--cwd DIR]",
     .summary = "Search the text of all sessions",
     .text = "A record must have all words. \"a phrase\", begin* and -without are known. Case\n"
             "and diacritics do not matter. What was redacted, deleted or put in the trash is\n"
             "not found. The first search makes the index. Exit code 1: nothing was found.\n",
     .options = {{"--project ID", "sessions of that project"},
                 {"--cwd DIR", "sessions of that directory"},
                 {"--session SESSION", "one session"},
                 {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w"},
                 {"--until TIME", "before that time"},
                 {"--role ROLE",
                  "user, assistant, tool, title, summary or result; may be repeated"},
                 {"--tool NAME", "calls of that tool; without a word, all of them"},
                 {"--deep", "the results of tools too"},
                 {"--substring", "the text, inside words too"},
                 {"--secrets", "known forms of secrets instead of words; see agentwal secrets"},
                 {"--limit N", "at most N sessions; otherwise 20"},
                 {"--around N", "print N entries before and after each hit"}},
     .examples = {{"agentwal search rounding error", "sessions with both words"},
                  {"agentwal search --cwd . --since 7d --role user migrat*",
                   "what you asked for here this week"},
                  {"agentwal search --around 2 -- '\"one cent\"' -tax",
                   "a phrase without a word; -- ends the options"}}},
    {"usage", VERB_READ, VERB_EVERY_DAY, 1, usage_run, .usage = "[OPTION]...",
     .summary = "Add up the tokens and costs of the sessions",
     .text = "An answer that several lines, sessions or forks have is counted once. REQS:\n"
             "requests. CACHE-R and CACHE-W: read from and written to a cache, which INPUT is\n"
             "without. REASON: reasoning. COST is what clients wrote, in US dollars; with ~ it\n"
             "is in part computed with list prices, of requests of which clients wrote none.\n"
             "A model without a price is named, and adds nothing. Columns without a number,\n"
             "and those that do not fit, are left out.\n",
     .options = {{"--by GROUP", "day (the default), model, project, client or session"},
                 {"--since TIME", "from 2026-11-20, 2026-11-20T14:03, or an age: 12h, 7d, 2w"},
                 {"--until TIME", "before that time"},
                 {"--prices FILE",
                  "list prices, in the form of LiteLLM, instead of the built-in ones"}},
     .examples = {{"agentwal usage --since 30d", "each day of the last month"},
                  {"agentwal usage --by model --json", "with exact numbers"}}},
    {"watch", VERB_READ, VERB_EVERY_DAY, 1, watch_run,
     .usage = "[STORE] [--session ID]... [OPTION]...",
     .summary = "Watch what is appended to all sessions, until interrupted",
     .text = "On a terminal: the sessions at work, who claims them, their last message and\n"
             "entries a minute; q ends it, Enter prints the command that resumes the session.\n"
             "Else, with --plain and with --json: a line for each new entry.\n",
     .options = {{"--session ID", "only this one; several times: only these"},
                 {"--project ID", "only sessions of this project"},
                 {"--cwd DIR", "only sessions of this directory"},
                 {"--since TIME", "begin with entries from 2026-11-20, "
                                  "2026-11-20T14:03, or an age: 10m, 12h, 7d"},
                 {"--plain", "lines on a terminal too"}},
     .examples = {{"agentwal watch", "all agents"},
                  {"agentwal watch --cwd . --since 1h --plain",
                   "this directory, with the last hour"},
                  {"agentwal watch --json", "one JSON object per entry"}}},
    {"resume", VERB_READ, VERB_EVERY_DAY, 1, agentwal_resume,
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
     .options = {{"--in CLIENT", "continue in claude, codex, pi, gemini, copilot, qwen or kimi"},
                 {"--run", "run the command instead of printing it"},
                 {"--project ID", "only sessions of this project"},
                 {"--cwd DIR", "only sessions of this directory"},
                 {"--limit N", "of the table: at most N sessions; 0: all; else 20"},
                 {"--remote URL", "bring the session from a store in this bucket"},
                 {"--store-id ID", "of that store, where the bucket has several"},
                 {"--take-over", "also when it is at a machine that is not in the bucket"},
                 {"--take-back", "go on with a session that has moved away"}},
     .examples = {{"agentwal resume 7f3a21c --in pi", "go on with it in another client"},
                  {"agentwal resume parser --cwd . --run", "begin with a word, pick, and go on"},
                  {"agentwal resume --remote s3://sessions 7f3a21c0",
                   "go on with a session of another machine"}}},
    {"serve", VERB_READ, VERB_EVERY_DAY, 1, serve_run, .usage = "[OPTION]...",
     .summary = "Answer programs and browsers over HTTP",
     .text = "It prints a link that opens the page of all sessions in one browser; Enter\n"
             "prints another link. Programs use --socket, to which only you can connect, or\n"
             "the token of --token-file. It is read-only without --write, and runs until it\n"
             "is interrupted.\n",
     .options = {{"--open", "open the page in the browser"},
                 {"--port N", "listen on port N of 127.0.0.1 and ::1; otherwise a free one"},
                 {"--token-file PATH", "write a token for programs there"},
                 {"--socket PATH", "listen on that Unix socket, not on a port"},
                 {"--write", "allow changes"},
                 {"--connections N", "at most N connections; otherwise 256"},
                 {"--idle SECONDS", "close a connection that is idle for so long; otherwise 60"},
                 {"--link-time SECONDS", "how long the link may be opened; otherwise 600"},
                 {"--prices FILE",
                  "list prices, in the form of LiteLLM, instead of the built-in ones"}},
     .examples = {{"agentwal serve --open", "read sessions in the browser"},
                  {"agentwal serve --socket serve.sock", "answer programs on a Unix socket"}}},
    {"view", VERB_READ, VERB_NAMELESS, 0, view_run, .usage = "SESSION [OPTION]...",
     .summary = "Write a session as one HTML file, to read and to share",
     .text = "The file has the page of agentwal serve and the session: its conversation, tree,\n"
             "files changed and costs. It loads nothing and sends nothing. SESSION may also be\n"
             "the file of a client; it is not imported.\n"
             "\n"
             "Known forms of secrets are hidden: keys and tokens of vendors, private keys,\n"
             "values of Authorization, passwords in URLs, values of names such as API_KEY.\n"
             "They are counted by kind on standard error. Read the page before you share it:\n"
             "a secret of another form stays. Redacted entries are left out.\n",
     .options = {{"--redact PATTERN", "hide what matches this extended "
                                      "regular expression, too; may be repeated"},
                 {"--rules FILE", RULES_TEXT},
                 {"--no-tool-results", "leave the results of tools out"},
                 {"--no-paths", "shorten absolute paths to their last name, or to "
                                "what is below the session's directory"},
                 {"--prices FILE",
                  "list prices, in the form of LiteLLM, instead of the built-in ones"}},
     .examples = {{"agentwal view @latest >page.html", "the session used last"},
                  {"agentwal view session.jsonl >page.html", "a file, without a store"},
                  {"agentwal view 7f3a9c1 --no-paths --redact acme >page.html",
                   "without the names of a customer"}}},
    {"create", VERB_WRITE, VERB_ADDS | VERB_FENCED, 1, verb_create,
     .usage = "[--id ID] [--cwd DIR] [--project ID] [--title T] [--meta JSON]",
     .summary = "Create a session and print its id",
     .options = {{"--id ID", "its id; a new UUID without it"},
                 {"--cwd DIR", "its directory; the current one without it"},
                 {"--project ID", "its project; that of its directory without it"},
                 {"--title T", "its title"},
                 {"--meta JSON", "its metadata, a JSON object"}},
     .examples = {{"agentwal create --title \"Fix the build\"", "in the current directory"},
                  {"id=$(agentwal create)", "for a script"}}},
    {"append", VERB_WRITE, VERB_FENCED, 1, verb_append,
     .usage = "SESSION [--create] [--each] [--expect-tail ENTRY] [--stream N] "
              "[--durability durable|written|queued|cluster] < entries.jsonl\n"
              "append SESSION --user TEXT [OPTION]...",
     .summary = "Append entries from standard input, one JSON object per line",
     .text = "A line is an object with \"type\" and \"payload\", and optionally \"id\", "
             "\"parentId\",\n"
             "\"timestamp\", \"runId\" and \"meta\". Without parentId the entry follows the head;\n"
             "null makes a root.\n",
     .options = {{"--create", "create the session if it does not exist"},
                 {"--user TEXT", "a message of the user, instead of standard input"},
                 {"--each", "one append and one result per line, instead of one atomic batch"},
                 {"--expect-tail ENTRY", "refuse if the last entry is another one"},
                 {"--stream N", "another stream than the conversation, which is 0"},
                 {"--durability LEVEL",
                  "durable (default), written, queued or cluster: in the remote "
                  "too, by agentwal remote push --follow"}},
     .examples = {{"agentwal append 7f3a21c < entries.jsonl", "one atomic batch"},
                  {"agentwal append --create notes --user \"round up\"",
                   "a message, to a session that may not exist yet"},
                  {"agent | agentwal append --each --json 7f3a21c",
                   "acknowledge each line once it is durable"}}},
    {"fork", VERB_WRITE, VERB_EVERY_DAY, 1, verb_fork, .usage = "SESSION [--at ENTRY] [--id NEW]",
     .summary = "Create a session that shares the beginning of another one, and print its id",
     .options = {{"--at ENTRY", "the last shared entry; the head without it"},
                 {"--id NEW", "the id of the new session"}},
     .examples = {{"agentwal fork @latest", "from the newest session of this directory"},
                  {"agentwal fork 7f3a21c --at b2d90c4", "from one of its entries"}}},
    {"title", VERB_WRITE, 0, 1, verb_title, .usage = "SESSION TEXT",
     .summary = "Give a session another title",
     .text = "An empty TEXT: its title is the beginning of its first message.\n",
     .examples = {{"agentwal title @latest \"Invoices off by one cent\"",
                   "of the newest session of this directory"},
                  {"agentwal title 7f3a21c \"\"", "take it away"}}},
    {"head", VERB_WRITE, 0, 1, verb_head,
     .usage = "SESSION [NAME [ENTRY]] [--stream N] [--expect ENTRY] [--note TEXT]",
     .summary = "List, show or move the heads of a session",
     .text = "An empty ENTRY removes the head.\n",
     .options = {{"--stream N", "of another stream than the conversation, which is 0"},
                 {"--expect ENTRY", "move only if the head is at this entry"},
                 {"--note TEXT", "a note to keep with the move"}},
     .examples = {{"agentwal head 7f3a21c", "all heads"},
                  {"agentwal head 7f3a21c main b2d90c4", "rewind the conversation to an entry"},
                  {"agentwal head 7f3a21c tried b2d90c4", "name a branch"}}},
    {"meta", VERB_WRITE, 0, 1, verb_meta, .usage = "SESSION [--merge JSON]",
     .summary = "Print the metadata of a session, after applying a merge patch",
     .options = {{"--merge JSON", "a merge patch (RFC 7386)"}},
     .examples = {{"agentwal meta 7f3a21c", "print it"},
                  {"agentwal meta 7f3a21c --merge '{\"reviewed\":true}'", "set a member"}}},
    {"doc", VERB_WRITE, 0, 2, verb_doc,
     .usage = "put|get|delete|list|scan SESSION|--store [KEY|PREFIX] [--if-version "
              "V] [--at V] [--history]",
     .summary = "Keep JSON documents with a session, or with the store",
     .options = {{"--store", "documents of the store instead of a session; the directory of the\n"
                             "store is then given as --store=DIR or before the verb"},
                 {"--if-version V", "put and delete: only if this is the current version"},
                 {"--at V", "get: the value of that version"},
                 {"--history", "scan: with former versions and deletions"}},
     .examples = {{"agentwal doc put 7f3a21c plan < plan.json", "store a document"},
                  {"agentwal doc get 7f3a21c plan", "print it"},
                  {"agentwal doc list --store config/",
                   "the keys of the store that begin with config/"}}},
    {"compact-session", VERB_WRITE, 0, 1, verb_compact_session,
     .usage = "SESSION --first-kept ENTRY [--new ID] < summary",
     .summary = "Replace the entries before an entry by a summary from standard input",
     .options = {{"--first-kept ENTRY", "the first entry that is kept"},
                 {"--new ID", "fork first: the id of the new session"}},
     .examples = {{"agentwal compact-session 7f3a21c --first-kept b2d90c4 < summary.txt",
                   "in place"},
                  {"agentwal compact-session 7f3a21c --first-kept b2d90c4 --new short < text",
                   "in a fork"}}},
    {"redact", VERB_WRITE, 0, 1, verb_redact,
     .usage = "SESSION ENTRY [--reason TEXT] [--erase] [--views] [--undo]",
     .summary = "Hide the content of an entry",
     .text = "It is hidden in every session that has the entry: in the one that SESSION was\n"
             "forked from too; all are printed. The bytes stay in the store until gc --erase;\n"
             "--erase erases them at once. Until then --undo shows the entry again, but not\n"
             "the title that it gave. docs/keeping.md says what erasing does not reach. A\n"
             "secret that got into a session must be revoked.\n",
     .options = {{"--undo", "show the content again, unless it was erased"},
                 {"--reason TEXT", "why; shown in its place"},
                 {"--erase", "leave no byte of it in any file of the store"},
                 {"--views", "with --erase: rewrite the views that the store knows "
                             "of and\nthat may hold it"}},
     .examples = {{"agentwal redact 0d7f3a21 b2d90c4 --reason \"a password\"",
                   "SESSION: the complete id, or its last 7 characters"},
                  {"agentwal cat --redacted 0d7f3a21", "show what was redacted, and why"}}},
    {"delete", VERB_WRITE, 0, 1, verb_delete, .usage = "SESSION... [--erase] [--views]",
     .summary = "Move sessions to the trash",
     .text = "Until \"agentwal gc --erase\" nothing is lost: \"agentwal undelete\" takes them\n"
             "back. Their forks stay as they are.\n",
     .options = {{"--erase", "delete them for good, and leave no byte of them in any file of the\n"
                             "store, but what forks see"},
                 {"--views", "with --erase: remove their views that the store knows of"}},
     .examples = {{"agentwal delete 01976f2e-7c1a-7b52-9c7d-0d5cba7f3a21", "by the complete id"},
                  {"agentwal delete 0d7f3a21 5c2e9b07", "by endings of at least 7 characters"},
                  {"agentwal delete \"$(agentwal latest --cwd .)\"",
                   "the newest session of this directory"}}},
    {"undelete", VERB_WRITE, 0, 1, verb_undelete, .usage = "SESSION...",
     .summary = "Take sessions out of the trash",
     .text = "SESSION: an id, a unique prefix of one, or a unique ending of at "
             "least 4\ncharacters, of a session in the trash.\n",
     .examples = {{"agentwal list --trash", "what is in the trash"},
                  {"agentwal undelete 0d7f3a21", "as it was before"}}},
    {"pin", VERB_WRITE, 0, 1, verb_pin, .usage = "SESSION [--off]",
     .summary = "Keep a session whatever the rules of retain say",
     .text = "Sets the member \"pinned\" of its metadata.\n", .options = {{"--off", "unpin"}},
     .examples = {{"agentwal pin @latest", "the newest session of this directory"},
                  {"agentwal pin --off 7f3a21c", "retain may choose it again"}}},
    {"checkpoint", VERB_FILES, 0, 1, verb_checkpoint,
     .usage = "SESSION ID [--root DIR] [--files-from FILE|- [-0]] [--all-or-none] "
              "[--] FILE...",
     .summary = "Record the state of files, including that one does not exist",
     .text = "A relative FILE is relative to --root if that is given; else to the current\n"
             "directory if that is inside the session's directory; else to the session's\n"
             "directory. Names that cannot be recorded are printed, and the exit code is 1.\n",
     .options = {{"--root DIR", "the directory of the files; that of the session without it"},
                 {"--files-from FILE", "read names from FILE, or with - from standard input"},
                 {"-0, --null", "the names end with a zero byte"},
                 {"--all-or-none", "record no file when one cannot be recorded"}},
     .examples = {{"agentwal checkpoint @latest before-edit src/main.c", "record one file"},
                  {"git ls-files -z | agentwal checkpoint @latest all --files-from - -0",
                   "record a work tree"}}},
    {"checkpoints", VERB_FILES, 0, 1, verb_checkpoints, .usage = "SESSION",
     .summary = "List the checkpoints of a session",
     .examples = {{"agentwal checkpoints @latest", "a table"},
                  {"agentwal checkpoints --json @latest", "one JSON object per checkpoint"}}},
    {"checkpoint-show", VERB_FILES, 0, 1, verb_checkpoint_show, .usage = "SESSION ID",
     .summary = "List the files of a checkpoint",
     .examples = {{"agentwal checkpoint-show @latest before-edit", "a table"},
                  {"agentwal checkpoint-show --json @latest before-edit",
                   "with the hashes as JSON"}}},
    {"checkpoint-diff", VERB_FILES, 0, 1, verb_checkpoint_diff, .usage = "SESSION A [B] [--patch]",
     .summary = "Show the changes from a checkpoint to another one, or to the files on disk",
     .options = {{"-p, --patch", "the changed lines, as git does"}},
     .examples = {{"agentwal checkpoint-diff @latest before-edit", "what changed on disk since"},
                  {"agentwal checkpoint-diff @latest before-edit after-edit",
                   "between two checkpoints"}}},
    {"checkpoint-delete", VERB_FILES, 0, 1, verb_checkpoint_delete, .usage = "SESSION ID",
     .summary = "Delete a checkpoint",
     .examples = {{"agentwal checkpoint-delete @latest before-edit", "delete one"},
                  {"agentwal checkpoints @latest", "see which remain"}}},
    {"checkpoint-export", VERB_FILES, 0, 1, verb_checkpoint_export,
     .usage = "SESSION OUTDIR --layout sdk|spec11",
     .summary = "Write the checkpoints of a session as manifests and contents",
     .options = {{"--layout NAME", "sdk or spec11: the names and manifests of the files"}},
     .examples = {{"agentwal checkpoint-export @latest out --layout sdk", "below out/checkpoints"},
                  {"agentwal checkpoint-export 7f3a21c out --layout spec11",
                   "in the other layout"}}},
    {"checkpoint-import", VERB_FILES, 0, 1, verb_checkpoint_import,
     .usage = "SESSION DIR [--root DIR]",
     .summary = "Read checkpoints that were written as files, in either layout",
     .options = {{"--root DIR", "the directory of the files; that of the session without it"}},
     .examples = {{"agentwal checkpoint-import 7f3a21c out", "from out/checkpoints"},
                  {"agentwal checkpoint-import 7f3a21c out --root ~/src/app",
                   "for files elsewhere"}}},
    {"checkpointing", VERB_FILES, 0, 1, verb_checkpointing, .usage = "SESSION on|off",
     .summary = "Turn checkpoints of a session on or off",
     .examples = {{"agentwal checkpointing @latest off", "checkpoint records nothing from now on"},
                  {"agentwal checkpointing @latest on", "record again"}}},
    {"rewind", VERB_FILES, VERB_EVERY_DAY, 1, verb_rewind,
     .usage = "SESSION CHECKPOINT|--to ENTRY [--root DIR] [--dry-run] [--expect "
              "CHECKPOINT] [--force] [--head]",
     .summary = "Restore files from a checkpoint, all or none",
     .text = "The state before the rewind is kept as a checkpoint, which is printed: rewind to\n"
             "it to undo.\n",
     .options = {{"--to ENTRY", "move the conversation to ENTRY, and the files to the checkpoint\n"
                                "that belongs to it"},
                 {"--head", "move the conversation to the entry of the checkpoint too"},
                 {"--root DIR", "the directory of the files"},
                 {"--dry-run", "report what would change"},
                 {"--expect CHECKPOINT", "refuse if files changed since this checkpoint"},
                 {"--force", "rewind although files changed"}},
     .examples = {{"agentwal rewind @latest before-edit --dry-run", "see what would change"},
                  {"agentwal rewind @latest before-edit", "restore the files"},
                  {"agentwal rewind @latest --to b2d90c4",
                   "the conversation and the files together"}}},
    {"init", VERB_CARE, VERB_ADDS, 1, verb_init,
     .usage = "[--encrypt [--label TEXT] [--no-recovery-code]]",
     .summary = "Create a store, encrypted if asked",
     .text = "import, create, append --create and doc put --store create a missing store too.\n"
             "\n"
             "With --encrypt the key is that of --key-file, which is made if it is not there,\n"
             "--key-command, --key-keyring or --passphrase-fd; else you are asked for a\n"
             "passphrase. A recovery code is printed once: write it down. Losing all keys is\n"
             "losing the store. docs/encryption.md has the rest.\n",
     .options = {{"--encrypt", "encrypt everything that is written to it"},
                 {"--passphrase", "ask for a passphrase"},
                 {"--label TEXT", "what agentwal keys shows of the key"},
                 {"--no-recovery-code", "make none"}},
     .examples = {{"agentwal init", "the default store"},
                  {"agentwal --store /srv/sessions init", "a store in another directory"},
                  {"agentwal init --encrypt --key-file ~/.config/agentwal.key",
                   "an encrypted one"}}},
    {"encrypt", VERB_CARE, 0, 1, verb_encrypt, .usage = "[--label TEXT] [--no-recovery-code]",
     .summary = "Encrypt a store that has content",
     .text = "The key is named as for init --encrypt. Nobody else may use the store at first.\n"
             "Then everything in it is rewritten, as by gc; stopped, agentwal gc goes on. The\n"
             "disk, backups and snapshots may keep what was there before.\n",
     .options = {{"--passphrase", "ask for a passphrase"},
                 {"--label TEXT", "what agentwal keys shows of the key"},
                 {"--no-recovery-code", "make none"}},
     .examples = {{"agentwal encrypt --passphrase", "the default store"},
                  {"agentwal encrypt --key-command 'pass show agentwal'",
                   "with a key that a program keeps"}}},
    {"keys", VERB_CARE, 0, 1, verb_keys,
     .usage = "[list]\n"
              "keys add [--label TEXT] NEW-KEY\n"
              "keys remove ID\n"
              "keys rotate",
     .summary = "Show and change the keys that open an encrypted store",
     .text = "  list    the keys, without anything secret; needs none of them\n"
             "  add     let another key open the store too: one of the options --new-...\n"
             "  remove  let a key open it no more\n"
             "  rotate  encrypt what is written from now on by a new key; agentwal gc then\n"
             "          rewrites the rest\n",
     .options = {{"--new-key-file FILE", "add: a file, which is made if it does not exist"},
                 {"--new-key-command COMMAND", "add: what a command prints, one line"},
                 {"--new-key-keyring NAME", "add: a key of the keyring of Linux"},
                 {"--new-passphrase", "add: ask for a passphrase"},
                 {"--new-passphrase-fd N", "add: read one from a descriptor"},
                 {"--new-recovery-code", "add: make a recovery code, and print it"},
                 {"--label TEXT", "add: what list shows of it"}},
     .examples = {{"agentwal keys", "which keys open the store"},
                  {"agentwal keys add --new-passphrase", "next to the one that you have"},
                  {"agentwal keys rotate && agentwal gc", "after a theft of a copy"}}},
    {"check", VERB_CARE, VERB_NAMELESS, 0, verb_check,
     .usage = "[--jobs N]\n"
              "check [--store-id ID] --remote URL|STORE",
     .summary = "Read everything in the store and report the damage",
     .text = "It needs no write permission, and works while others use the store. With\n"
             "--strict an ambiguous tail is damage.\n",
     .options = {{"--jobs N", "read with N threads; one per processor without it"},
                 {"--remote URL|STORE", "read what the remote, or that of the store, has instead"},
                 {"--store-id ID", "--remote: which store, if the remote has several"}},
     .examples = {{"agentwal check", "exit code 0: sound, 1: damaged"},
                  {"agentwal check --json", "a report for programs"}}},
    {"salvage", VERB_CARE, VERB_NAMELESS, 0, verb_salvage, .usage = "OUT [--jobs N]",
     .summary = "Build a sound store in OUT from everything that can be read",
     .options = {{"--jobs N", "read with N threads; one per processor without it"}},
     .examples = {{"agentwal salvage recovered", "OUT must not exist"},
                  {"agentwal --store recovered list", "the sessions that were saved"}}},
    {"migrate", VERB_CARE, 0, 1, verb_migrate, .usage = "[SESSION]",
     .summary = "Convert the store, or a session, to this version",
     .examples = {{"agentwal migrate", "the store"},
                  {"agentwal migrate 7f3a21c", "the schema of one session"}}},
    {"accept-damage", VERB_CARE, 0, 1, verb_accept_damage, .usage = "[SESSION]",
     .summary = "Allow appends to sessions that lost entries",
     .examples = {{"agentwal check", "see what was lost, first"},
                  {"agentwal accept-damage", "all damaged sessions"},
                  {"agentwal accept-damage 7f3a21c", "one session"}}},
    {"gc", VERB_CARE, 0, 1, verb_gc,
     .usage = "[--dry-run] [--erase] [--views] [--keep-deltas]\n"
              "[--max-bytes SIZE] [--rate SIZE]",
     .summary = "Give back the space of what is dead, and compress the rest",
     .text = "Others may use the store meanwhile. Stopped at any time, it leaves a sound\n"
             "store, and the next run goes on. A damaged segment is left as it is, and the\n"
             "exit code is 1 then. docs/keeping.md says what is dead.\n"
             "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or KiB, MiB,\n"
             "GiB, TiB (powers of 1024).\n",
     .options = {{"--dry-run",
                  "change nothing; show what would come back, per session and in total"},
                 {"--erase", "delete what is in the trash, and leave no byte of what was\n"
                             "deleted or redacted in the log; list the views that may hold it"},
                 {"--views", "rewrite the views that the store knows of and that may "
                             "hold what\nwas deleted or redacted"},
                 {"--keep-deltas", "keep the deltas of messages that are complete; not with\n"
                                   "--erase"},
                 {"--max-bytes SIZE", "rewrite at most SIZE of segments"},
                 {"--rate SIZE", "read and write at most SIZE in a second; 0: no "
                                 "limit; 64MiB without it"}},
     .examples = {{"agentwal gc --dry-run", "what would come back"},
                  {"agentwal gc", "run it, with others at work"},
                  {"agentwal gc --erase", "after delete or redact"}}},
    {"backup", VERB_CARE, 0, 1, verb_backup, .usage = "DIR",
     .summary = "Copy the store to DIR, and later only what is new",
     .text = "Others may use the store meanwhile. DIR is a store, as of the moment the\n"
             "backup began: read it with --store DIR, or copy it back to restore. Stopped at\n"
             "any time, it leaves DIR as the last backup did, or newer, and the next run\n"
             "goes on. A DIR that was written to is refused. docs/keeping.md has the rest.\n",
     .examples = {{"agentwal backup /mnt/backup/agentwal", "all, or what is new"},
                  {"agentwal --store /mnt/backup/agentwal check", "check the copy"}}},
    {"bundle", VERB_CARE, 0, 1, verb_bundle, .usage = "[--no-secrets] [KEY] SESSION... FILE",
     .summary = "Write sessions to one file, with everything they have",
     .text = "Entries of all branches, heads, documents with their versions, checkpoints with\n"
             "their files. Content that was redacted is left out. A fork takes what it shares\n"
             "along. agentwal import FILE takes them into another store. FILE must not exist.\n"
             "That of an encrypted store has a separate passphrase, which is asked for.\n",
     .options = {{"--no-secrets", NO_SECRETS_TEXT "; no checkpoints"},
                 {"--rules FILE", RULES_TEXT},
                 {"--bundle-passphrase", "ask for one, of any store"},
                 {"--bundle-passphrase-fd N", "the same, read from this descriptor"},
                 {"--bundle-key-file FILE", "a key in place of it; made if it does not exist"},
                 {"--no-passphrase", "do not encrypt it"}},
     .examples = {{"agentwal bundle 7f3a21c work.bundle", "one session"},
                  {"agentwal bundle @latest 7f3a21c work.bundle", "two of them"},
                  {"agentwal --store new import work.bundle", "on another machine"}}},
    {"merge", VERB_CARE, VERB_ADDS, 1, verb_merge, .usage = "[--keep-both] OTHER",
     .summary = "Take all sessions of another store into this one",
     .text = "OTHER is the directory of a store, which is only read. A session that both have\n"
             "is continued if this store has its beginning, and left if it has more. One with\n"
             "other entries is refused by name, and the exit code is 1. Documents of the store\n"
             "are added where there are none. Merging again adds only what is new. The store\n"
             "is created if it does not exist.\n",
     .options = {{"--keep-both", "instead of a refusal: the other one becomes a "
                                 "fork, ID@ and 8 digits of OTHER's id"}},
     .examples = {{"agentwal merge /mnt/laptop/agentwal", "the sessions of another machine"},
                  {"agentwal --store all merge work", "one store into another"}}},
    {"index", VERB_CARE, 0, 1, search_run_index, .usage = "[--deep]",
     .summary = "Bring the index of search up to date",
     .text = "search does it too. The files are derived: they may be removed at any time.\n",
     .options = {{"--deep", "the index of tools' results too"}},
     .examples = {{"agentwal index", "after an import, so that the first search is fast"},
                  {"agentwal index --deep --json", "with results, and the sizes"}}},
    {"secrets", VERB_CARE, 0, 1, verb_secrets,
     .usage = "[SESSION]... [--redact [--erase [--views]]] [--possible]",
     .summary = "List the known forms of secrets in the store, or redact their entries",
     .text = "No secret is printed: a line has the session, the entry, the kind and at most\n"
             "four characters. Exit code 1: there are some, or with --redact some stay: those\n"
             "in documents, titles and metadata. Random letters and digits without a known\n"
             "form are counted as possible, and never redacted: docs/secrets.md. A secret that\n"
             "got into a session must be revoked.\n",
     .options = {{"--redact", "hide the content of each entry that has one"},
                 {"--erase", "with --redact: leave no byte of it in any file of the store"},
                 {"--views", "with --erase: rewrite the views that the store knows of"},
                 {"--possible", "list the possible ones too"},
                 {"--rules FILE", RULES_TEXT}},
     .examples = {{"agentwal secrets", "what is in the store"},
                  {"agentwal secrets --redact --erase", "take it out"}}},
    {"retain", VERB_CARE, 0, 1, verb_retain,
     .usage = "[--older-than AGE] [--keep-last N] [--max-bytes SIZE]\n"
              "[--project ID] [--archive DIR] [--all] [--apply]",
     .summary = "Move old sessions to the trash, by rules",
     .text = "Without --apply it changes nothing and shows what it would move. A session that\n"
             "is pinned, or claimed by a process, stays, and so does what a session that stays\n"
             "was forked from. docs/keeping.md says how rules combine.\n"
             "AGE: a number of hours, days, weeks or years: 12h, 90d, 8w, 1y.\n"
             "SIZE: bytes, or a number with kB, MB, GB, TB (powers of 1000), or KiB, MiB,\n"
             "GiB, TiB (powers of 1024).\n",
     .options = {{"--older-than AGE", "sessions last active longer ago"},
                 {"--keep-last N", "keep the N newest ones whatever the other rules "
                                   "say; alone:\nmove all others"},
                 {"--max-bytes SIZE",
                  "the oldest ones, until the others have at most SIZE of records"},
                 {"--project ID", "only sessions of this project"},
                 {"--archive DIR", "copy them to DIR first, a store, which is made if needed"},
                 {"--all", "permit rules that leave no session"},
                 {"--apply", "move them"}},
     .examples = {{"agentwal retain --older-than 90d", "what would go"},
                  {"agentwal retain --older-than 90d --keep-last 50 --apply",
                   "move it, but keep the 50 newest"},
                  {"agentwal gc --erase", "delete what is in the trash"}}},
    {"remote", VERB_CARE, 0, 2, remote_run,
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
     .options = {{"--replace", "add: replace the remote that the store has"},
                 {"--take-over",
                  "push: from another copy of the store; pull: make DIR the store that\n"
                  "writes"},
                 {"--follow", "push: upload records as they become durable; pull: keep the copy\n"
                              "current; until interrupted"},
                 {"--rate N", "push --follow: at most N parts a second, each a PUT; default 20"},
                 {"--now", "compact: even after few pushes"},
                 {"--anew", "compact: from the whole store as gc left it; implies --now"},
                 {"--erase", "compact: as gc --erase, then remove at once all that the remote had"},
                 {"--store-id ID", "pull, sessions: which of several stores in the remote"}},
     .examples = {{"agentwal remote add s3://sessions", "name the bucket"},
                  {"agentwal remote push", "store what is new"},
                  {"agentwal remote pull --take-over s3://sessions ~/sessions",
                   "go on elsewhere"}}},
    {"restore", VERB_CARE, 0, 1, verb_restore, .usage = "DIR SESSION...",
     .summary = "Take sessions back from an archive of retain",
     .text = "DIR is the store that retain --archive has written. A session in "
             "the trash is\ntaken out of it, and what is missing is copied. "
             "\"agentwal merge DIR\" takes all\nsessions.\n",
     .examples = {{"agentwal --store archive list", "what is there"},
                  {"agentwal restore archive 0d7f3a21", "one of them"}}},
    {"help", VERB_CARE, 0, NONE, help_run, .usage = "[VERB]...",
     .summary = "Show the verbs, or how to use one",
     .examples = {{"agentwal help", "all verbs"},
                  {"agentwal help rewind", "one verb"},
                  {"agentwal help --json", "the same for programs"}}},
};

/* Returns the verb at an index, in the order of the help, or NULL after the last one. */
static const struct verb *verb_at(size_t index)
{
    return index < sizeof(verbs) / sizeof(verbs[0]) ? &verbs[index] : NULL;
}

/* Returns the verb of a name, or NULL. */
static const struct verb *verb_find(const char *name)
{
    const struct verb *verb;

    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

/* Returns the name in the table that is nearest to a mistyped one, or NULL when none is near. */
static const char *verb_suggest(const char *name)
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

/* Whether the name is a command of a verb, as push is of remote. */
static bool verb_has_command(const char *verb_name, const char *name)
{
    const struct verb *verb = verb_find(verb_name);
    size_t size = strlen(verb_name);

    if (verb == NULL || verb_find(name) != NULL) {
        return false;
    }
    /* The lines of its usage: the verb is before each but the first. */
    for (const char *line = verb->usage; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        line += strncmp(line, verb_name, size) == 0 ? size : 0;
        line += *line == ' ';
        if (strcspn(line, " \n") == strlen(name) && strncmp(line, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

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
    {"--key-file FILE", "the key of an encrypted store; else AGENTWAL_KEY_FILE"},
    {"--key-command COMMAND", "one line that it prints; else AGENTWAL_KEY_COMMAND"},
    {"--key-keyring NAME", "a key of type user in the keyring of Linux"},
    {"--passphrase-fd N", "read the passphrase from a descriptor, not the terminal"},
    {"--recovery-code", "the passphrase is a recovery code"},
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
    const char *at = verb->usage;

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

/* Returns the help of a verb. */
static const char *help_of_verb(const struct verb *verb)
{
    const struct verb_example *example = verb->examples;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cli_open_memory(&text, &size);

    print_usage(file, verb);
    fprintf(file, "\n%s.\n", verb->summary);
    if (verb->text != NULL) {
        fprintf(file, "\n%s", verb->text);
    }
    if (verb->options[0].usage != NULL) {
        fputs("\nOptions:\n", file);
        print_options(file, verb->options);
    }
    fputs("\nExamples:\n", file);
    for (; example->command != NULL; example++) {
        fprintf(file, "  %s\n      %s\n", example->command, example->text);
    }
    fputs("\nThe options of every verb: agentwal help\n", file);
    fclose(file);
    return cli_keep(text);
}

static void print_summary(const struct verb *verb)
{
    printf("  %-18s ", verb->name);
    print_indented(stdout, verb->summary, INDENT - 2);
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
    const struct verb_example *example = verb->examples;

    wal__json_out_open(json, '{');
    cli_json_member_text(json, "verb", cli_slice(verb->name));
    cli_json_member_text(json, "group", cli_slice(group_titles[verb->group]));
    cli_json_member_text(json, "usage", cli_slice(verb->usage));
    cli_json_member_text(json, "summary", cli_slice(verb->summary));
    cli_json_member_text_or_null(json, "text", cli_slice(verb->text));
    write_options(json, verb->options);
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

    if (verb == NULL) {
        return cli_error(cli, CLI_USAGE, name, "no such verb%s%s",
                         nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "");
    }
    if (cli->json) {
        cli_json_init(&json, stdout);
        write_verb(&json, verb);
        return CLI_OK;
    }
    fputs(help_of_verb(verb), stdout);
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
    return run_verb(cli, verb, help_of_verb(verb), argc, argv);
}

/* --- the verbs that a build lacks ----------------------------------------- */

/* Weak: those of a build that has search, serve and remotes replace them. */
#define WEAK __attribute__((weak))

#define WITHOUT(library, packages)             \
    "this agentwal was built without " library \
    "; install the package agentwal, or build it with " packages
#define WITHOUT_REMOTE WITHOUT("libcurl", "libcurl4-openssl-dev and libexpat1-dev")

#define MISSING_VERB(name, why)                           \
    WEAK int name(struct cli *cli, int argc, char **argv) \
    {                                                     \
        return cli_refuse_missing(cli, argc, argv, why);  \
    }

MISSING_VERB(search_run, WITHOUT("SQLite", "libsqlite3-dev"))
MISSING_VERB(search_run_index, WITHOUT("SQLite", "libsqlite3-dev"))
MISSING_VERB(serve_run, WITHOUT("libmicrohttpd", "libmicrohttpd-dev"))
MISSING_VERB(remote_run, WITHOUT_REMOTE)
MISSING_VERB(remote_resume_run, WITHOUT_REMOTE)

WEAK int remote_check(const struct cli *cli, const char *target, const char *store_id)
{
    (void)target;
    (void)store_id;
    return cli_error(cli, CLI_FAILED, "--remote", "%s", WITHOUT_REMOTE);
}

WEAK void remote_note_fenced(const struct cli *cli)
{
    (void)cli;
}

/* --- the program ---------------------------------------------------------- */

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
