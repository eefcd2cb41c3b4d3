/*
 * walconv_view.h - a session written as a dialect's client has it.
 *
 * Invariant: a file of lines that holds other content than the beginning of
 * what is to be written is left as it is.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_VIEW_H
#define AGENTWAL_TOOLS_WALCONV_VIEW_H

#include "format/jsonl/dialect.h"
#include "tools/cli.h"

struct walconv_view {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    const char *root; /* output directory; null: standard output */
    const char *name; /* of the session, to people */
};

struct walconv_viewed {
    char *path;     /* of the main file, with the directory; to be freed */
    uint64_t added; /* lines that the files had not */
    uint64_t losses[WAL__FEATURE_COUNT];
    uint64_t unreadable; /* entries that the store cannot read */
    bool is_refused;     /* nothing was done, and that was said */
};

/* Writes the session's files; the exit code. */
int walconv_view_put(const struct walconv_view *view,
                     struct walconv_viewed *viewed);

/* Sets viewed->path alone; the exit code. */
int walconv_view_path(const struct walconv_view *view, uint32_t stream,
                      struct walconv_viewed *viewed);

#endif
