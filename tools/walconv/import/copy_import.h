/*
 * copy_import.h - import a file that begins as a copy of the file of another
 * session in the store (SPEC.md 5.17).
 *
 * A first pass walks both files in parallel and finds where the copy ends. The
 * session is then created as a fork, and a second pass writes a delta for each
 * shared line. The result is compared with the file, as at every import.
 *
 * Invariant: a session is a copy only if every shared line is rebuilt byte for
 * byte.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_IMPORT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_IMPORT_H

#include "tools/walconv/import/copy_names.h"
#include "tools/walconv/import/copy_origin.h"
#include "tools/walconv/import/line_import.h"

/* A file, and the session that it is a copy of. */
struct walconv_copy {
    struct wal_store *store;
    int fd;
    uint64_t size;
    const struct walconv_file_probe *probe;
    struct wal_session *origin; /* NULL: not a copy */
    /* This import created the file's session as a fork of it. */
    bool is_created;
    char fork_point[WALCONV_ID_SIZE]; /* id of the fork point */
    char head[WALCONV_ID_SIZE];       /* id of the entry that the head is at */
    uint64_t lines;  /* of the file, up to the end of the copy */
    uint64_t shared; /* of these, shared */
    uint64_t shared_bytes;
    uint64_t own; /* of these, appended as own lines */
};

struct walconv_copy walconv_copy_init(struct wal_store *store, int fd,
                                      uint64_t size,
                                      const struct walconv_file_probe *probe);
void walconv_copy_deinit(struct walconv_copy *copy);

/*
 * Finds the session that the file is a copy of. `session` is the file's own
 * session, which has what *match describes, or NULL. *must_delete is set when
 * that session must be deleted and created again: when its import of the shared
 * lines did not finish, or when it has little more than copied lines, nobody
 * modified it, and the file shares more lines.
 */
enum wal_status walconv_copy_detect(struct walconv_copy *copy,
                                    struct wal_session *session,
                                    const struct cli_match *match,
                                    bool *must_delete, struct wal_error *error);

/*
 * Writes the copied lines to their session, a new fork at copy->fork_point of
 * copy->origin, and compares it with the file. *match is the result;
 * *must_delete is set when they differ.
 */
enum wal_status walconv_copy_write(struct walconv_copy *copy,
                                   struct wal_session *session,
                                   struct cli_match *match, bool *must_delete,
                                   struct wal_error *error);

/* Stores errno in *error and returns WAL_EIO. */
enum wal_status walconv_copy_errno(struct wal_error *error);

#endif
