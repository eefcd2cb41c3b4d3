/*
 * documents.h - the messages of a session that was imported as documents, which
 * have no entries in the log (SPEC.md 10.2).
 *
 * They are the entries that the session's export in the dialect `entries` has
 * before the first one of the log.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_DOCUMENTS_H
#define AGENTWAL_TOOLS_SHOWN_DOCUMENTS_H

#include "tools/cli/json.h"

/* Zeroed: none. */
struct shown_documents {
    struct wal_entry *items; /* in their order; sequences are 0 */
    size_t count;
    /* private */
    size_t capacity;
    char *text; /* the export */
    size_t text_size;
    size_t text_capacity;
    struct cli_texts texts;
};

/* Reads the messages of the session; none if it has no documents. The cursor is
 * on entries of the session, in any position; it is not moved. */
enum wal_status shown_documents_read(struct shown_documents *documents,
                                     struct wal_store *store,
                                     struct wal_session *session,
                                     struct wal_entry_cursor *cursor,
                                     struct wal_error *error);

void shown_documents_deinit(struct shown_documents *documents);

/* Returns the index of the message that a root entry of the log goes on after,
 * or count if that is none. */
size_t shown_documents_parent(const struct shown_documents *documents,
                              const struct wal_entry *entry);

/* Returns the index of the last compaction, or 0 if there is none. */
size_t shown_documents_compaction(const struct shown_documents *documents);

#endif
