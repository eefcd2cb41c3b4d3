/*
 * payload.h - payloads that are too large for a record: each is a blob, and the record has its
 * digest, its size and an excerpt (SPEC.md 2.6, 5.16).
 *
 * Any thread. A caller that stores a payload holds neither the append lock nor the state lock.
 */
#ifndef AGENTWAL_ENGINE_STORE_PAYLOAD_H
#define AGENTWAL_ENGINE_STORE_PAYLOAD_H

#include "engine/store/core.h"

/* What the record of an out-of-line payload points to. Zeroed: nothing. */
struct wal__out_of_line {
    struct wal__digest digest;
    struct wal__buf excerpt;
};

/*
 * Stores the record's payload as a blob when it is too large to be inline. The record then points
 * to *out_of_line; op->pack_end is raised to the position in the blob stream that must be durable
 * before the record is written, and op->guard is entered. The bytes are in the page cache and not
 * synced. out_of_line must be zeroed before and deinited after the call, also on failure.
 */
enum wal_status wal__payload_store(struct wal__core *core, uint8_t kind,
                                   struct wal__entry_record *record,
                                   struct wal__out_of_line *out_of_line, struct wal__op *op,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__out_of_line_deinit(struct wal__out_of_line *out_of_line);

/* Loads the out-of-line payload of a record; replaces the contents of *out. WAL_ECORRUPT when its
 * blob is damaged or missing. */
enum wal_status wal__payload_load(struct wal__core *core, const struct wal__entry_record *record,
                                  struct wal__buf *out, struct wal_error *error) WAL_MUST_USE;

/* Appends what an erased payload leaves (SPEC.md 2.6): of a compaction the member that says where
 * its branch begins, of others nothing. Of a payload stored as a blob, the excerpt. WAL_ENOMEM. */
enum wal_status wal__payload_append_remains(struct wal__span payload, uint8_t kind,
                                            struct wal__buf *out) WAL_MUST_USE;

#endif
