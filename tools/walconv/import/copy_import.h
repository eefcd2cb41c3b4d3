/*
 * copy_import.h - importing a file that begins as a copy of the file of a
 * session that the store has (SPEC.md 5.17).
 *
 * A first pass walks both files side by side and finds how far the copy goes.
 * Then the session is made as a fork of the other, and a second pass writes
 * what tells the copy's lines. What comes out is compared with the file, as at
 * every import.
 *
 * Invariant: a session is a copy only where every line that is told comes out
 * as it went in.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_IMPORT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_IMPORT_H

#include "tools/walconv/import/copy_names.h"
#include "tools/walconv/import/copy_origin.h"
#include "tools/walconv/import/line_import.h"

/* The file, and the session that it is a copy of. */
struct walconv_copy {
    struct wal_store *store;
    int fd;
    uint64_t size;
    const struct walconv_file_probe *probe;
    struct wal_session *origin; /* null: it is no copy */
    bool is_created;            /* its session was made as a fork of that */
    char fork_point[WALCONV_ID_SIZE]; /* the fork point, */
    char head[WALCONV_ID_SIZE];       /* and where the head is */
    uint64_t lines;                   /* up to there */
    uint64_t shared;                  /* of these */
    uint64_t shared_bytes;
    uint64_t own; /* the others, appended */
};

struct walconv_copy walconv_copy_init(struct wal_store *store, int fd,
                                      uint64_t size,
                                      const struct walconv_file_probe *probe);
void walconv_copy_deinit(struct walconv_copy *copy);

/*
 * Looks for a session that the file is a copy of. The file may have a session
 * of its own, which has what *match says, or none (null). One whose import did
 * not come to the end of what it shares, and one that has little but copied
 * lines, though the file has more of them, and that nobody did anything with,
 * *must_delete: is to be deleted, and made anew.
 */
enum wal_status walconv_copy_detect(struct walconv_copy *copy,
                                    struct wal_session *session,
                                    const struct cli_match *match,
                                    bool *must_delete, struct wal_error *error);

/*
 * Writes what tells the copy's lines into its session, a new fork at
 * copy->fork_point of copy->origin, and compares it with the file: *match, or
 * *must_delete: it is not the same.
 */
enum wal_status walconv_copy_write(struct walconv_copy *copy,
                                   struct wal_session *session,
                                   struct cli_match *match, bool *must_delete,
                                   struct wal_error *error);

/* Answers WAL_EIO, and errno in *error. */
enum wal_status walconv_copy_errno(struct wal_error *error);

#endif
