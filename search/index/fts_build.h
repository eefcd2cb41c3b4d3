/*
 * fts_build.h - fills the database of an index with the records of a segment.
 *
 * Threads: one at a time per struct.
 */
#ifndef AGENTWAL_SEARCH_INDEX_FTS_BUILD_H
#define AGENTWAL_SEARCH_INDEX_FTS_BUILD_H

#include "search/index/database.h"
#include "search/text/message_column.h"

/* What an update does meanwhile. */
struct wal__build_progress {
    int32_t (*call)(void *ctx, uint64_t done, uint64_t total); /* or NULL */
    void *ctx;
    uint64_t done;  /* bytes of segments before this one */
    uint64_t total; /* bytes of segments to index */
    uint64_t text_bytes;
    uint64_t damaged; /* records */
    uint64_t unread;  /* records: the system failed to read them */
};

struct wal__build {
    struct wal_store *store;
    const struct wal_segment_info *segment;
    struct wal__database *database;
    struct wal__message_columns *columns;
    struct wal__build_progress *progress;
};

/*
 * Adds the records of the segment after head->last_sequence; head has the
 * counts of what the database holds already, and gets the new ones. WAL_OK
 * when all of them are there, except those that cannot be read. WAL_ENOTFOUND
 * when the log has no such segment any more, WAL_ECALLBACK, WAL_ENOMEM.
 */
enum wal_status wal__build_add(const struct wal__build *build,
                               struct wal__search_file *head,
                               struct wal_error *error) WAL_MUST_USE;

#endif
