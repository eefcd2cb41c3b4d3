/*
 * help_serve.c - help of the verb that answers over HTTP.
 *
 * Threads: the tools are single-threaded.
 */
#include <stddef.h>

#include "tools/agentwal/help.h"

const struct verb_help help_serve = {
    .usage = "[OPTION]...",
    .summary = "Answer programs and browsers over HTTP",
    .text =
        "Without --port it listens on a Unix socket that only you can connect "
        "to. On a\nport, a link that opens in one browser, or a token, "
        "lets in. It is read-only\nwithout --write. It runs until it is "
        "interrupted. docs/seeing.md has the\nresources.\n",
    .options =
        (const struct verb_option[]){
            {"--port N", "listen on port N of 127.0.0.1 and ::1; 0: a free "
                         "one"},
            {"--socket PATH", "listen on that Unix socket"},
            {"--token-file PATH", "write the token of the port there"},
            {"--write", "allow changes"},
            {"--open", "open the page in the browser"},
            {"--connections N", "at most N connections; otherwise 256"},
            {"--idle SECONDS", "close a connection that is idle for so long; "
                               "otherwise 60"},
            {"--link-time SECONDS", "how long the link may be opened; "
                                    "otherwise 600"},
            {NULL, NULL},
        },
    .examples =
        (const struct verb_example[]){
            {"agentwal serve --port 0 --open", "read sessions in the browser"},
            {"agentwal serve", "answer programs on a Unix socket"},
            {NULL, NULL},
        },
};
