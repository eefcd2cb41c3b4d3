/*
 * help_remote.c - help of the verb that keeps a store elsewhere too.
 *
 * Threads: the tools are single-threaded.
 */
#include <stddef.h>

#include "tools/agentwal/help.h"

const struct verb_help help_remote = {
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
    .text =
        "URL is s3://BUCKET[/PREFIX], with ?endpoint=URL&region=NAME where "
        "they are\nneeded, or file:///DIR. It has no "
        "credentials: they come\nfrom the environment, from "
        "~/.aws/credentials, or from the command in\n"
        "AGENTWAL_REMOTE_CREDENTIALS_COMMAND. add checks that the remote "
        "refuses to\nreplace an object; remove forgets it, and leaves what is "
        "there. list shows the\nstores that a remote has, with their ids; "
        "sessions lists the sessions in them,\nas of the last push, without "
        "pulling any. push stores what is new and durable.\npull makes a copy "
        "that can be read, or brings it up to date. One store writes at\na "
        "time: --take-over ends that of the other one, for good. handoff "
        "refuses\nappends to a session, pushes, and gives it to the machine "
        "that resumes it next.\ncompact makes a base, from which a pull "
        "begins, when much was pushed, and\nremoves what a base of a day has "
        "made needless. docs/machines.md has the rest.\n",
    .options =
        (const struct verb_option[]){
            {"--replace", "add: instead of the remote that the store has"},
            {"--take-over", "push: from another copy of the store; pull: make "
                            "DIR the store that writes"},
            {"--follow",
             "push: ship what becomes durable, as it does; pull: go on "
             "with what comes; until interrupted"},
            {"--rate N", "push --follow: at most N parts a second, each a PUT "
                         "(20)"},
            {"--now", "compact: make a base though little was pushed"},
            {"--anew", "compact: of the whole store, as it is after gc; makes "
                       "one now"},
            {"--erase",
             "compact: as gc --erase, and remove all that the remote "
             "had before, at once"},
            {"--store-id ID",
             "pull: which store, where the remote has several; sessions: of "
             "this one only"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal remote add s3://sessions", "name the bucket"},
            {"agentwal remote push", "store what is new"},
            {"agentwal remote pull --take-over s3://sessions ~/sessions",
             "go on elsewhere"},
            {NULL, NULL},
        },
};
