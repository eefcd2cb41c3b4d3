/*
 * session_snapshot.h - the fields of a session at one moment, as a conversion
 * uses them.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_SESSION_SNAPSHOT_H
#define AGENTWAL_CONVERT_RENDER_SESSION_SNAPSHOT_H

#include "convert/render/session_items.h"

struct wal__session_snapshot {
    struct wal__heap_arena memory;
    struct wal__model_session session;
    struct wal__json_span head;         /* id as a JSON string, or empty */
    const struct wal__dialect *dialect; /* dialect of its lines */
    uint64_t last_sequence;             /* sequence of its newest record */
    uint64_t metadata_version;
    uint64_t documents;
    bool is_fork;
};

/* Reads the session's info and the fields in its first lines. The owner zeroes
 * the snapshot and calls deinit in any case. */
enum wal_status
wal__session_snapshot_read(struct wal__session_snapshot *snapshot,
                           const struct wal__heap *heap,
                           struct wal_store *store, struct wal_session *session,
                           struct wal_error *error) WAL_MUST_USE;
void wal__session_snapshot_deinit(struct wal__session_snapshot *snapshot);

/* Whether the fields are equal, except the time of the last change. */
bool wal__session_snapshot_equal(const struct wal__session_snapshot *one,
                                 const struct wal__session_snapshot *two);

/* A hash of the fields that equality compares. */
uint64_t
wal__session_snapshot_hash(const struct wal__session_snapshot *snapshot);

#endif
