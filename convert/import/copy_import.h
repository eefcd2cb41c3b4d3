/*
 * copy_import.h - imports a file that begins as a copy of the file of another
 * session in the store (SPEC.md 5.17).
 *
 * A first pass walks both files in parallel and finds where the copy ends. The
 * session is then created as a fork, and a second pass writes a delta for each
 * shared line. The result is compared with the file, as at every import.
 *
 * Invariant: a session is a copy only if every shared line is rebuilt byte for
 * byte.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_COPY_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_COPY_IMPORT_H

#include "convert/import/copy_names.h"
#include "convert/import/copy_origin.h"
#include "convert/import/import.h"
#include "convert/import/line_import.h"

/* A file, and the session that it is a copy of. */
struct wal__copy_import {
    struct wal__heap_arena *arena; /* for texts; its heap for the rest */
    struct wal_store *store;
    int fd;
    uint64_t size;
    const struct wal__file_probe *probe;
    struct wal_session *origin; /* NULL: not a copy */
    /* This import created the file's session as a fork of it. */
    bool is_created;
    char fork_point[WAL__LINE_ID_SIZE]; /* id of the fork point */
    char head[WAL__LINE_ID_SIZE]; /* id of the entry that the head is at */
    uint64_t lines;               /* of the file, up to the end of the copy */
    uint64_t shared;              /* of these, shared */
    uint64_t shared_bytes;
    uint64_t own;      /* of these, appended as own lines */
    uint64_t appended; /* entries, of own lines and of chunks */
};

struct wal__copy_import
wal__copy_import_init(struct wal__heap_arena *arena, struct wal_store *store,
                      int fd, uint64_t size,
                      const struct wal__file_probe *probe);
void wal__copy_import_deinit(struct wal__copy_import *copy);

/*
 * Finds the session that the file is a copy of. `session` is the file's own
 * session, which has what *match describes, or NULL. *must_delete is set when
 * that session must be deleted and created again: when its import of the shared
 * lines did not finish, or when it has little more than copied lines, nobody
 * modified it, and the file shares more lines. What is appended to it later is
 * seen when it is deleted, by its last_sequence.
 */
enum wal_status wal__copy_import_detect(struct wal__copy_import *copy,
                                        struct wal_session *session,
                                        const struct wal__source_match *match,
                                        bool *must_delete,
                                        struct wal_error *error);

/*
 * Writes the copied lines to their session, a new fork at copy->fork_point of
 * copy->origin, and compares it with the file. *match is the result;
 * *must_delete is set when they differ.
 */
enum wal_status wal__copy_import_write(struct wal__copy_import *copy,
                                       struct wal_session *session,
                                       struct wal__source_match *match,
                                       bool *must_delete,
                                       struct wal_error *error);

#endif
