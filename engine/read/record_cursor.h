/*
 * record_cursor.h - reads the records of one segment, session by session
 * (agentwal/record.h). One thread at a time per cursor.
 *
 * Invariant: an entry that was redacted before the call is not returned.
 */
#ifndef AGENTWAL_ENGINE_READ_RECORD_CURSOR_H
#define AGENTWAL_ENGINE_READ_RECORD_CURSOR_H

#include "agentwal/record.h"
#include "engine/store/core.h"

/* Location of a record to return. */
struct wal__record_cursor_item {
    uint64_t sequence;
    uint32_t session;
    uint32_t offset; /* in the segment */
    uint8_t type;    /* of its frame */
};

struct wal_record_cursor {
    struct wal__core *core;
    uint32_t flags; /* enum wal_record_cursor_flag */
    uint64_t segment;
    uint64_t identity;
    uint64_t payload_limit;
    struct wal__buf items; /* struct wal__record_cursor_item */
    size_t next;           /* rank of the next one */
    /* The session of the record returned last. */
    uint32_t session;       /* 0: none */
    uint32_t session_flags; /* enum wal_record_flag */
    bool is_left_out;
    uint64_t redaction_generation; /* as of which the next two were read */
    struct wal__buf redacted;      /* sequences of entries, ascending */
    struct wal__buf session_id;
    /* The record returned last. */
    struct wal__record_buf scratch;
    struct wal__buf payload; /* out of line */
    struct wal_entry entry;
    struct wal_doc doc;
    struct wal_session_info info;
};

/* options is of this library's size, with a payload_limit. */
enum wal_status wal__record_cursor_open(
    struct wal__core *core, const struct wal_record_cursor_options *options,
    struct wal_record_cursor **cursor, struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__record_cursor_next(struct wal_record_cursor *cursor,
                                        struct wal_record *record,
                                        struct wal_error *error) WAL_MUST_USE;
enum wal_status wal__record_cursor_get(struct wal_record_cursor *cursor,
                                       uint32_t session, uint64_t sequence,
                                       struct wal_record *record,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__record_cursor_close(struct wal_record_cursor *cursor);

/* record_cursor_read.c: reads the record at a position whose session was
 * loaded. WAL_ENOTFOUND, without an error, when it is one that is left out. */
enum wal_status
wal__record_cursor_read(struct wal_record_cursor *cursor, uint64_t position,
                        const struct wal__record_cursor_item *item,
                        struct wal_record *record,
                        struct wal_error *error) WAL_MUST_USE;

#endif
