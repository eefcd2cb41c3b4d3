/*
 * branch.h - a part of a branch of a session, whose first messages may be
 * documents of an import.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SERVE_MODEL_BRANCH_H
#define AGENTWAL_TOOLS_SERVE_MODEL_BRANCH_H

#include "tools/shown/documents.h"

enum {
    SERVE_PAYLOAD_MAX = 64 << 20 /* bytes of a payload that is read */
};

/* Which part. Empty slices are not given. */
struct serve_range {
    struct wal_slice head;
    struct wal_slice leaf;
    struct wal_slice before;
    uint64_t after; /* sequence; UINT64_MAX: none */
    uint64_t limit; /* entries */
};

/* Zeroed: nothing to deinit. */
struct serve_branch {
    struct wal_store *store;
    struct wal_session *session;
    struct shown_documents documents;
    size_t *path; /* numbers of messages in documents, root first */
    size_t path_count;
    size_t path_at;                  /* the next one */
    struct wal_entry_cursor *cursor; /* of entries in the log, or NULL */
    struct wal_entry first;          /* already read from the cursor */
    enum wal_status first_status;
    bool has_first;
    uint64_t after;
    uint64_t left;  /* entries still to return */
    uint64_t bytes; /* of payloads that were returned, with `after` */
};

/* Opens a part of a branch. Errors: WAL_ENOTFOUND for the head or an entry. */
enum wal_status serve_branch_open(struct serve_branch *branch,
                                  struct wal_store *store,
                                  struct wal_session *session,
                                  const struct serve_range *range,
                                  struct wal_error *error);

/* Fills *entry with the next one; WAL_END after the last. WAL_ECORRUPT and
 * WAL_EIO concern this entry only. */
enum wal_status serve_branch_next(struct serve_branch *branch,
                                  struct wal_entry *entry,
                                  struct wal_error *error);

void serve_branch_deinit(struct serve_branch *branch);

/* Finds one entry, of the log or of the documents. It holds until the next call
 * or the deinit. */
enum wal_status serve_branch_get(struct serve_branch *branch,
                                 struct wal_store *store,
                                 struct wal_session *session,
                                 struct wal_slice id, struct wal_entry *entry,
                                 struct wal_error *error);

#endif
