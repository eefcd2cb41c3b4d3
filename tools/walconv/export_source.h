/*
 * export_source.h - the file of one imported session, written out.
 *
 * Invariant: a file that holds other content than the session's is left as it
 * is; so is one that goes on behind it.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_EXPORT_SOURCE_H
#define AGENTWAL_TOOLS_WALCONV_EXPORT_SOURCE_H

#include "tools/cli/cli.h"

struct walconv_source {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const char *root; /* output directory */
    const char *path; /* of the file below it */
    const char *name; /* of the file, to people: with the directory */
    uint32_t stream;  /* whose lines the file has */
};

struct walconv_outcome {
    uint64_t added;        /* lines that the file had not */
    uint64_t native_count; /* entries that are no lines of it */
    uint64_t damaged;      /* entries that cannot be read */
    bool is_rejected;      /* nothing was done, and that was said */
};

/* Puts the file in place, or leaves it when it has all; the exit code. */
int walconv_source_write(const struct walconv_source *source,
                         struct walconv_outcome *outcome);

/* Writes the bytes to standard output; the exit code. */
int walconv_source_print(const struct walconv_source *source,
                         struct walconv_outcome *outcome);

#endif
