/*
 * writer.h - a writer: ships the log of a store in its epoch (SPEC.md 11.3).
 *
 * Invariant: everything before `position` is in the remote, in the parts before
 * `number` of the epoch, and of those before it. `pending` is what part
 * `number` is, once it was sent: other bytes are never sent in its place.
 *
 * Threads: one at a time per writer.
 */
#ifndef AGENTWAL_REMOTE_SHIP_WRITER_H
#define AGENTWAL_REMOTE_SHIP_WRITER_H

#include "agentwal/remote.h"
#include "remote/ship/takeover.h"

struct wal_remote_writer {
    struct wal_remote *remote;
    struct wal__part_source source;
    struct wal__store_source store; /* the context of `source` in a library */
    uint8_t uuid[16];
    uint8_t writer[16];
    uint64_t part_size;
    uint64_t known_epoch; /* of the last part that this writer knows of */
    uint64_t known_part;
    uint64_t epoch;
    uint64_t number;               /* of the next part */
    struct wal__position position; /* after the last one */
    uint64_t last_epoch; /* of the last part, which may be another writer's */
    uint64_t last_part;  /* its number; 0: there is none */
    uint64_t seen_ms;    /* when the epoch was last known to be the newest */
    bool is_fenced;
    struct wal__buf pending; /* empty: none */
    struct wal__position pending_after;
    struct wal__buf found; /* in place of the pending part */
};

/* Starts: the fields before `epoch` are set, all else is zero.
 * See wal_remote_writer_open. */
enum wal_status wal__writer_start(struct wal_remote_writer *writer,
                                  bool takes_over,
                                  struct wal_error *error) WAL_MUST_USE;

/* See wal_remote_push. Counts what it stores in *result. */
enum wal_status wal__writer_push(struct wal_remote_writer *writer,
                                 struct wal_remote_push_result *result,
                                 struct wal_error *error) WAL_MUST_USE;

void wal__writer_deinit(struct wal_remote_writer *writer);

/* WAL_ECONFLICT unless the log has the past that the position has; with
 * `is_known` false also when compaction leaves that open. */
enum wal_status wal__writer_verify(const struct wal__part_source *source,
                                   const struct wal__position *position,
                                   bool is_known,
                                   struct wal_error *error) WAL_MUST_USE;

/* Sends the pending object until it is there; see writer.c. */
enum wal_status wal__writer_send(struct wal_remote_writer *writer,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
