/*
 * tail.h - the tail of a store: the records of all sessions after a sequence number, and those that
 * any process appends later.
 *
 * Invariant: records come by ascending sequence number, each once, whatever writes, begins segments
 * or compacts meanwhile. A sequence number is therefore a position: a tail that is opened at it
 * goes on there, in any process. Left out is what wal_record_cursor_open leaves out by default, and
 * what was deleted or redacted before it was returned.
 *
 * Memory: 16 bytes for each record of one segment.
 *
 * Threads: one at a time.
 */
#ifndef AGENTWAL_TOOLS_CLI_TAIL_H
#define AGENTWAL_TOOLS_CLI_TAIL_H

#include <stddef.h>

#include "agentwal/record.h"

/*
 * Gives each record of a segment with a sequence number above `after` to
 * `visit`, in no order, by these flags (enum wal_record_cursor_flag); payloads
 * above payload_limit are out of line. Damaged records are counted in *lost; what the last of them
 * says is in *error.
 *
 * Errors: those of wal_record_cursor_open; WAL_ENOTFOUND: a compaction replaced the segment, and
 * what was visited is to be forgotten.
 */
enum wal_status cli_tail_read_segment(struct wal_store *store,
                                      const struct wal_segment_info *segment, uint32_t flags,
                                      uint64_t after, uint64_t payload_limit,
                                      void (*visit)(void *arg, const struct wal_record *record),
                                      void *arg, uint64_t *lost, struct wal_error *error);

/* Finds the first segment with a record above `after`, or returns WAL_END.
 * *before is the last sequence number of the segment before it, 0 for none. */
enum wal_status cli_tail_find_segment(struct wal_store *store, uint64_t after, uint64_t *before,
                                      struct wal_segment_info *segment, struct wal_error *error);

/* The position after the newest record. */
#define CLI_TAIL_END UINT64_MAX

/* A record to be returned. */
struct cli_tail_item {
    uint64_t sequence;
    uint32_t session_number;
};

struct cli_tail {
    struct wal_store *store;
    uint32_t durability; /* WAL_WRITTEN, or WAL_DURABLE */
    uint64_t position;   /* every record up to it was returned */
    /* private */
    uint64_t known; /* the log has records up to it */
    struct wal_record_cursor *reader;
    struct cli_tail_item *items;
    size_t count;
    size_t capacity;
    size_t next;
    uint64_t covered; /* the position after the last item */
    uint64_t lost;    /* records of the items' segment that are damaged and were
                       * not reported yet */
    struct wal_error lost_error;
};

/*
 * Starts at the position `after`: 0 for the first record of the log.
 *
 * The store stays open until the close. A handle with WAL_OPEN_READ_ONLY may not see what processes
 * append that open the store later. Errors: those of wal_store_wait.
 */
enum wal_status cli_tail_open(struct cli_tail *tail, struct wal_store *store, uint32_t durability,
                              uint64_t after, struct wal_error *error);

/* Fills *record with the next record, or returns WAL_END when there is none now. Pointers and
 * slices hold until the next call; a payload above 256 KiB is left out of line. Errors:
 * WAL_ECORRUPT concerns one record; the next call goes on after it. */
enum wal_status cli_tail_next(struct cli_tail *tail, struct wal_record *record,
                              struct wal_error *error);

/* After WAL_END: waits until the log has more. Negative: no limit. Errors: WAL_EBUSY when the time
 * is over. */
enum wal_status cli_tail_wait(struct cli_tail *tail, int64_t timeout_ms, struct wal_error *error);

/* A zeroed tail may be closed. */
void cli_tail_close(struct cli_tail *tail);

#endif
