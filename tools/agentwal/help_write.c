/*
 * help_write.c - the help of the verbs for writing.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/agentwal/help.h"

const struct verb_help help_create = {
    .usage = "[--id ID] [--cwd DIR] [--project ID] [--title T] [--meta JSON]",
    .summary = "Create a session and print its id",
    .options =
        (const struct verb_option[]){
            {"--id ID", "its id; a new UUID without it"},
            {"--cwd DIR", "its directory; the current one without it"},
            {"--project ID", "its project; that of its directory without it"},
            {"--title T", "its title"},
            {"--meta JSON", "its metadata, a JSON object"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal create --title \"Fix the build\"",
             "in the current directory"},
            {"id=$(agentwal create)", "for a script"},
            {NULL, NULL},
        },
};

const struct verb_help help_append = {
    .usage = "SESSION [--create] [--each] [--expect-tail ENTRY] [--stream N] "
             "[--durability durable|written|queued|cluster] < entries.jsonl",
    .summary = "Append entries from standard input, one JSON object per line",
    .text = "A line is an object with \"type\" and \"payload\", and optionally "
            "\"id\", \"parentId\",\n"
            "\"timestamp\", \"runId\" and \"meta\". Without parentId the entry "
            "follows the head;\n"
            "null makes a root.\n",
    .options =
        (const struct verb_option[]){
            {"--create", "create the session if it does not exist"},
            {"--each",
             "one append and one result per line, instead of one atomic batch"},
            {"--expect-tail ENTRY", "refuse if the last entry is another one"},
            {"--stream N", "another stream than the conversation, which is 0"},
            {"--durability LEVEL",
             "durable (default), written, queued or cluster: in the remote "
             "too, by agentwal remote push --follow"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal append 7f3a21c < entries.jsonl", "one atomic batch"},
            {"agentwal append --create notes < entries.jsonl",
             "to a session that may not exist yet"},
            {"agent | agentwal append --each --json 7f3a21c",
             "acknowledge each line once it is durable"},
            {NULL, NULL},
        },
};

const struct verb_help help_fork = {
    .usage = "SESSION [--at ENTRY] [--id NEW]",
    .summary = "Create a session that shares the beginning of another one, and "
               "print its id",
    .options =
        (const struct verb_option[]){
            {"--at ENTRY", "the last shared entry; the head without it"},
            {"--id NEW", "the id of the new session"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal fork @latest",
             "from the newest session of this directory"},
            {"agentwal fork 7f3a21c --at b2d90c4", "from one of its entries"},
            {NULL, NULL},
        },
};

const struct verb_help help_head = {
    .usage =
        "SESSION [NAME [ENTRY]] [--stream N] [--expect ENTRY] [--note TEXT]",
    .summary = "List, show or move the heads of a session",
    .text = "An empty ENTRY removes the head.\n",
    .options =
        (const struct verb_option[]){
            {"--stream N",
             "of another stream than the conversation, which is 0"},
            {"--expect ENTRY", "move only if the head is at this entry"},
            {"--note TEXT", "a note to keep with the move"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal head 7f3a21c", "all heads"},
            {"agentwal head 7f3a21c main b2d90c4",
             "rewind the conversation to an entry"},
            {"agentwal head 7f3a21c tried b2d90c4", "name a branch"},
            {NULL, NULL},
        },
};

const struct verb_help help_meta = {
    .usage = "SESSION [--merge JSON]",
    .summary = "Print the metadata of a session, after applying a merge patch",
    .options =
        (const struct verb_option[]){
            {"--merge JSON", "a merge patch (RFC 7386)"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal meta 7f3a21c", "print it"},
            {"agentwal meta 7f3a21c --merge '{\"reviewed\":true}'",
             "set a member"},
            {NULL, NULL},
        },
};

const struct verb_help help_title = {
    .usage = "SESSION TEXT",
    .summary = "Give a session another title",
    .text = "An empty TEXT: its title is the beginning of its first message.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal title @latest \"Invoices off by one cent\"",
             "of the newest session of this directory"},
            {"agentwal title 7f3a21c \"\"", "take it away"},
            {NULL, NULL},
        },
};

const struct verb_help help_doc = {
    .usage =
        "put|get|delete|list|scan SESSION|--store [KEY|PREFIX] [--if-version "
        "V] [--at V] [--history]",
    .summary = "Keep JSON documents with a session, or with the store",
    .options =
        (const struct verb_option[]){
            {"--store",
             "documents of the store instead of a session; the directory of "
             "the\n"
             "store is then given as --store=DIR or before the verb"},
            {"--if-version V",
             "put and delete: only if this is the current version"},
            {"--at V", "get: the value of that version"},
            {"--history", "scan: with former versions and deletions"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal doc put 7f3a21c plan < plan.json", "store a document"},
            {"agentwal doc get 7f3a21c plan", "print it"},
            {"agentwal doc list --store config/",
             "the keys of the store that begin with config/"},
            {NULL, NULL},
        },
};

const struct verb_help help_compact_session = {
    .usage = "SESSION --first-kept ENTRY [--new ID] < summary",
    .summary =
        "Replace the entries before an entry by a summary from standard input",
    .options =
        (const struct verb_option[]){
            {"--first-kept ENTRY", "the first entry that is kept"},
            {"--new ID", "fork first: the id of the new session"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal compact-session 7f3a21c --first-kept b2d90c4 < "
             "summary.txt",
             "in place"},
            {"agentwal compact-session 7f3a21c --first-kept b2d90c4 "
             "--new short < text",
             "in a fork"},
            {NULL, NULL},
        },
};

const struct verb_help help_redact = {
    .usage = "SESSION ENTRY [--reason TEXT] [--erase] [--views]",
    .summary = "Hide the content of an entry",
    .text =
        "The bytes remain in the store until gc --erase, or with --erase until "
        "this ends;\n"
        "docs/keeping.md says what that does not reach. A secret that got "
        "into a\n"
        "session must be revoked.\n",
    .options =
        (const struct verb_option[]){
            {"--reason TEXT", "why; shown in its place"},
            {"--erase", "leave no byte of it in any file of the store"},
            {"--views", "with --erase: rewrite the views that the store knows "
                        "of and\nthat may hold it"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal redact 0d7f3a21 b2d90c4 --reason \"a password\"",
             "SESSION: the complete id, or its last 7 characters"},
            {"agentwal cat --redacted 0d7f3a21",
             "show what was redacted, and why"},
            {NULL, NULL},
        },
};

const struct verb_help help_delete = {
    .usage = "SESSION [--erase] [--views]",
    .summary = "Move a session to the trash",
    .text = "Nothing of it is lost before \"agentwal gc --erase\". Until then "
            "it can be\ntaken back: \"agentwal undelete\". Forks of it stay as "
            "they are.\n",
    .options =
        (const struct verb_option[]){
            {"--erase", "delete it for good, and leave no byte of it in any "
                        "file of the\nstore, but what forks of it see"},
            {"--views", "with --erase: remove the views of it that the store "
                        "knows of"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal delete 01976f2e-7c1a-7b52-9c7d-0d5cba7f3a21",
             "by the complete id"},
            {"agentwal delete 0d7f3a21",
             "by an ending of at least 7 characters"},
            {"agentwal delete \"$(agentwal latest --cwd .)\"",
             "the newest session of this directory"},
            {NULL, NULL},
        },
};

const struct verb_help help_undelete = {
    .usage = "SESSION",
    .summary = "Take a session out of the trash",
    .text = "SESSION: an id, a unique prefix of one, or a unique ending of at "
            "least 4\ncharacters, of a session in the trash.\n",
    .examples =
        (const struct verb_example[]){
            {"agentwal list --trash", "what is in the trash"},
            {"agentwal undelete 0d7f3a21", "as it was before"},
            {NULL, NULL},
        },
};

const struct verb_help help_pin = {
    .usage = "SESSION [--off]",
    .summary = "Keep a session whatever the rules of retain say",
    .text = "Sets the member \"pinned\" of its metadata.\n",
    .options =
        (const struct verb_option[]){
            {"--off", "no longer"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal pin @latest", "the newest session of this directory"},
            {"agentwal pin --off 7f3a21c", "retain may choose it again"},
            {NULL, NULL},
        },
};
