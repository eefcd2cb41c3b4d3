/*
 * help_convert.c - the help of the verbs for files of other clients.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

const struct verb_help help_import = {
    .usage = "[--dialect auto|NAME] [--all-files] [--follow] PATH...",
    .summary = "Import session files, or all session files below directories",
    .text = "A file becomes a session and a line an entry. Of a directory, the "
            "session files\n"
            "of Claude Code, Codex, pi and OpenCode are imported by their "
            "paths, and other\n"
            "files of lines by their content; credentials, settings and "
            "everything else are\n"
            "left out and counted. A repeated import adds only what is new, "
            "from whichever\n"
            "directory. The store is created if it does not exist. A bundle, "
            "which agentwal\n"
            "bundle wrote, gives its sessions back with everything they "
            "have.\n",
    .options =
        (const struct verb_option[]){
            {"--dialect NAME", "the format of the files; auto recognises it"},
            {"--all-files", "import every file below a directory"},
            {"--follow", "then import what changes, until interrupted"},
            {"--summary", "with --json: a last object {\"summary\":...}"},
            {"-v, --verbose", "print every source and every warning"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal import ~/.claude", "all sessions of Claude Code"},
            {"agentwal import session.jsonl work.bundle",
             "a file, and the sessions of a bundle"},
            {"agentwal import --follow ~/.codex ~/.pi/agent",
             "keep the store current"},
            {NULL, NULL},
        },
};

const struct verb_help help_adopt = {
    .usage = "[--yes] [--install | --uninstall]",
    .summary = "Find the clients of this user, and import their sessions",
    .text = "Prints the folders of Claude Code, Codex, pi and OpenCode with "
            "the number of\n"
            "sessions and what is left out, asks, and imports. "
            "CLAUDE_CONFIG_DIR, CODEX_HOME,\n"
            "PI_CODING_AGENT_DIR and XDG_DATA_HOME are respected. Without a "
            "terminal and\n"
            "without --yes only the plan is printed.\n",
    .options =
        (const struct verb_option[]){
            {"-y, --yes", "do not ask"},
            {"--install",
             "then follow the folders by a systemd user unit, from each login "
             "on"},
            {"--uninstall", "stop and remove that unit; import nothing"},
            {"-v, --verbose", "print every source and every warning"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal adopt", "show the plan and ask"},
            {"agentwal adopt --yes --install", "import, and keep current"},
            {NULL, NULL},
        },
};

const struct verb_help help_export = {
    .usage = "--dialect source|NAME [--session SESSION]... OUTDIR|--stdout",
    .summary = "Write sessions as the files of a client",
    .text =
        "A repeated export adds what is new. What a format cannot express is "
        "listed.\n",
    .options =
        (const struct verb_option[]){
            {"--dialect source", "the imported files, byte for byte"},
            {"--dialect NAME",
             "the format of a client (see agentwal dialects)"},
            {"--session SESSION", "only this session; may be repeated"},
            {"--stdout", "one session to standard output"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal export --dialect source backup",
             "all imported files below backup"},
            {"agentwal export --dialect pi --session 7f3a21c ~/.pi/agent",
             "continue a session in another client"},
            {"agentwal export --dialect claude --session @latest --stdout",
             "print one session"},
            {NULL, NULL},
        },
};

const struct verb_help help_follow = {
    .usage = "--dialect NAME OUTDIR",
    .summary = "Keep the files of a client current until interrupted",
    .options =
        (const struct verb_option[]){
            {"--dialect NAME",
             "the format of the client (see agentwal dialects)"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal follow --dialect claude ~/.claude",
             "show all sessions in Claude Code"},
            {"agentwal follow --dialect pi /tmp/view",
             "write them to another directory"},
            {NULL, NULL},
        },
};

const struct verb_help help_path = {
    .usage = "--dialect source|NAME [--stream N] OUTDIR SESSION",
    .summary = "Print the path of a session's file below a directory",
    .options =
        (const struct verb_option[]){
            {"--dialect NAME", "the format of the file"},
            {"--stream N",
             "of another stream than the conversation, which is 0"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal path --dialect claude ~/.claude @latest",
             "where export writes the newest session"},
            {"agentwal path --dialect source out 7f3a21c",
             "where its imported file is written back"},
            {NULL, NULL},
        },
};

const struct verb_help help_dialects = {
    .usage = "",
    .summary = "List the formats that can be imported and exported",
    .examples =
        (const struct verb_example[]){
            {"agentwal dialects", "a table, and what each format can express"},
            {"agentwal dialects --json", "one JSON object per format"},
            {NULL, NULL},
        },
};
