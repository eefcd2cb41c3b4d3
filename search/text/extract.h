/*
 * extract.h - the texts of a record that are searched: the columns of its rows (docs/search.md,
 * What is indexed).
 *
 * A record has one unit, which is one row; a document that holds a whole session has a unit for
 * each message.
 *
 * Threads: one at a time per extractor.
 */
#ifndef AGENTWAL_SEARCH_TEXT_EXTRACT_H
#define AGENTWAL_SEARCH_TEXT_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal/record.h"
#include "engine/base/heap.h"
#include "format/json/json_scan.h"

/* Columns of the table, in its order; that of the deep index is RESULT. */
enum wal__column {
    WAL__COLUMN_USER,
    WAL__COLUMN_ASSISTANT,
    WAL__COLUMN_TOOL,
    WAL__COLUMN_PATH,
    WAL__COLUMN_TITLE,
    WAL__COLUMN_SUMMARY,
    WAL__COLUMN_RESULT,
    WAL__COLUMN_COUNT,
    WAL__COLUMN_NONE = WAL__COLUMN_COUNT
};

/* Bytes of a payload that is searched: its texts are a row of SQLite, which has at most 1 GB, and
 * are in memory for that. */
#define WAL__EXTRACT_PAYLOAD_MAX (UINT64_C(256) << 20)

/* A text of a column. */
struct wal__text_field {
    enum wal__column column;
    struct wal_slice text;
    struct wal_slice tool; /* of TOOL and PATH: the name of the call's tool */
};

/* Slices hold until the function that it is passed to returns. */
struct wal__unit {
    uint32_t number; /* in the record, from 0 */
    const struct wal__text_field *fields;
    size_t count;
    struct wal_slice entry_id; /* or of the message that a document is of */
    struct wal_slice timestamp;
    int64_t time_ms; /* 0: unknown */
};

/* Returns false to stop. */
typedef bool wal__unit_fn(void *ctx, const struct wal__unit *unit);

/* Returns the column of the texts of a message of OpenCode, USER or ASSISTANT, whose part is in
 * another document; NONE when it is not known. *time_ms is set to the message's time, if that is
 * known. */
typedef enum wal__column wal__message_column_fn(void *ctx, const struct wal_record *record,
                                                struct wal_slice message_id, int64_t *time_ms);

struct wal__extractor {
    wal__message_column_fn *message_column;
    void *ctx; /* of message_column */
    struct wal__heap_arena arena;
    struct wal__text_field *fields;
    size_t count;
    size_t capacity;
    bool has_failed; /* no memory */
};

void wal__extractor_init(struct wal__extractor *extractor, wal__message_column_fn *message_column,
                         void *ctx);
void wal__extractor_deinit(struct wal__extractor *extractor);

/* Passes the units of a record that have a text to `each`. WAL_ENOMEM. */
enum wal_status wal__extract(struct wal__extractor *extractor, const struct wal_record *record,
                             wal__unit_fn *each, void *ctx) WAL_MUST_USE;

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
                                     struct wal_slice message_id, int64_t *time_ms);

#endif
