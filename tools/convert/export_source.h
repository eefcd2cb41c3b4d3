/*
 * export_source.h - write the file of one imported session.
 *
 * Invariant: a file with other content, or with content after the session's, is
 * not changed.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_EXPORT_SOURCE_H
#define AGENTWAL_TOOLS_CONVERT_EXPORT_SOURCE_H

#include "tools/cli/cli.h"

struct convert_source {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const char *root;    /* output directory; NULL: standard output */
    const char *path;    /* of the file, below root */
    const char *name;    /* of the file, in messages */
    uint32_t stream;     /* stream that the file's lines are in */
    int64_t modified_ms; /* time of the file; 0: that of the session */
};

struct convert_outcome {
    uint64_t added;        /* lines that the file lacked */
    uint64_t native_count; /* entries that are not lines of the file */
    uint64_t damaged;      /* entries that cannot be read */
    bool is_rejected;      /* nothing was written; the error was printed */
};

/* Creates or extends the file; does nothing if it is complete. Returns an exit
 * code. */
int convert_source_write(const struct convert_source *source,
                         struct convert_outcome *outcome);

/* Writes the bytes to standard output. Returns an exit code. */
int convert_source_print(const struct convert_source *source,
                         struct convert_outcome *outcome);

#endif
