/*
 * message_column.h - whose message a document with a part of one belongs to: a
 * person's or a model's. OpenCode keeps that in another document.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_TEXT_MESSAGE_COLUMN_H
#define AGENTWAL_SEARCH_TEXT_MESSAGE_COLUMN_H

#include "search/text/extract.h"

/* The owner sets the store and zeroes the rest. Remembers the last message. */
struct wal__message_columns {
    struct wal_store *store;
    struct wal_session *session; /* of the last lookup, or NULL */
    uint32_t session_number;
    char message_id[WAL_ID_SIZE];
    enum wal__column column;
    int64_t time_ms; /* of the message; 0: unknown */
};

void wal__message_columns_deinit(struct wal__message_columns *columns);

/* A wal__message_column_fn; ctx is the struct. */
enum wal__column wal__message_column(void *ctx, const struct wal_record *record,
                                     struct wal_slice message_id,
                                     int64_t *time_ms);

#endif
