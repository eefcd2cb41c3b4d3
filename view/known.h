/*
 * known.h - what a session is known by.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_VIEW_KNOWN_H
#define AGENTWAL_VIEW_KNOWN_H

#include "view/items.h"

struct wal__known {
    struct wal__heap_arena memory;
    struct wal__model_session session;
    struct wal__json_span head;         /* entry that the session goes on
                                         * behind, or empty */
    const struct wal__dialect *dialect; /* of its lines */
    uint64_t last_sequence;             /* of its newest record */
    uint64_t metadata_version;
    uint64_t documents;
    bool is_fork;
};

/* The owner zeroes it; deinit in any case. Reads what the store says, and the
 * first lines. */
enum wal_status wal__known_read(struct wal__known *known,
                                const struct wal__heap *heap,
                                struct wal_store *store,
                                struct wal_session *session,
                                struct wal_error *error) WAL_MUST_USE;
void wal__known_deinit(struct wal__known *known);

/* Whether both say the same, but for when the session was last changed. */
bool wal__known_equal(const struct wal__known *one,
                      const struct wal__known *two);

/* A hash of what equality is told by. */
uint64_t wal__known_hash(const struct wal__known *known);

#endif
